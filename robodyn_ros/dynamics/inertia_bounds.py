"""Bounds of the mass matrix's eigenvalues over the joint range (Velagić 4.2.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.dynamics.dynamics import Dynamics
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

    The search starts with random poses and continues with ever smaller random steps around the
    best one. Joints without limits are searched over a full turn, or over 1 m in each direction.

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
    rng = np.random.default_rng(seed)
    reach = np.array([1.0 if model.prismatic[model.body_joints.index(name)] else np.pi
                      for name in model.joint_names])
    lower, upper = model.joints.position_range(reach)
    poses = model.joints.sample_poses(rng, samples, reach)
    found = []
    evaluations = samples
    eigenvalues = np.linalg.eigvalsh(dynamics.mass_matrix(poses))
    for sign, which in ((1.0, 0), (-1.0, -1)):
        def cost(q: Array, sign: float = sign, which: int = which) -> Array:
            return np.float64(sign) * np.linalg.eigvalsh(dynamics.mass_matrix(q))[:, which]

        values = sign * eigenvalues[:, which]
        best, value = poses[values.argmin()], values.min()
        spread = (upper - lower) / 4
        for _ in range(refinements):
            tries = np.clip(best + spread * rng.uniform(-1, 1, (max(samples // 10, 8), model.n)),
                            lower, upper)
            values = cost(tries)
            evaluations += len(tries)
            if values.min() < value:
                best, value = tries[values.argmin()], values.min()
            spread = spread * 0.6
        found.append((sign * float(value), best))
    return InertiaBounds(found[0][0], found[1][0], found[0][1], found[1][1], evaluations)
