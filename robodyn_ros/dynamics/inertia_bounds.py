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
    eigenvalues = np.linalg.eigvalsh(dynamics.mass_matrix(search.poses))
    found = []
    for sign, which in ((1.0, 0), (-1.0, -1)):
        def cost(q: Array, sign: float = sign, which: int = which) -> Array:
            return np.float64(sign) * np.linalg.eigvalsh(dynamics.mass_matrix(q))[:, which]

        value, pose = search.smallest(cost, np.float64(sign) * eigenvalues[:, which])
        found.append((sign * value, pose))
    return InertiaBounds(found[0][0], found[1][0], found[0][1], found[1][1], search.evaluations)
