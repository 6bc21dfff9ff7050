"""Bounds of the mass matrix's eigenvalues over the joint range (Velagić 4.2.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.pose_search import PoseSearch
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array


@dataclass(frozen=True)
class InertiaBounds:
    """``lambda_min E <= M(q) <= lambda_max E`` over the joint range, found by a search.

    Attributes
    ----------
    lambda_min, lambda_max : float
        kg m^2 (kg for prismatic joints).
    q_min, q_max : ndarray, shape (n,)
        Poses in which they were found.
    evaluations : int
        Number of mass matrices evaluated.
    """

    lambda_min: float
    lambda_max: float
    q_min: Array
    q_max: Array
    evaluations: int


def inertia_bounds(model: Model, samples: int = 4096, refinements: int = 12,
                   seed: int = 0) -> InertiaBounds:
    """Estimate bounds of the eigenvalues of M over the joint range.

    Joints without limits are searched over a full turn, or over 1 m in each direction; see
    `PoseSearch`.

    Parameters
    ----------
    model : Model
        The robot.
    samples, refinements : int
        Number of random poses, and number of refinements, each with a tenth as many poses.
    seed : int
        Seed of the random numbers.
    """
    dynamics = Dynamics(model)
    model.require_fixed_base('inertia_bounds')
    search = PoseSearch(model, samples, refinements, seed)

    def eigenvalues(q: Array) -> Array:
        return np.asarray(np.linalg.eigvalsh(dynamics.mass_matrix(q)))  # in ascending order

    first = eigenvalues(search.poses)
    smallest, q_min = search.smallest(lambda q: eigenvalues(q)[:, 0], first[:, 0])
    minus_largest, q_max = search.smallest(lambda q: -eigenvalues(q)[:, -1], -first[:, -1])
    return InertiaBounds(smallest, -minus_largest, q_min, q_max, search.evaluations)
