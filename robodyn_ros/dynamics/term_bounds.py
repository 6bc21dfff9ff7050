"""Bounds of the Coriolis matrix and of gravity over the joint range (Kolyubin 4.2).

``|C(q, qd)| <= k |qd|`` and ``|g(q)| <= k``, with spectral and Euclidean norms. Robustness margins
of control laws are stated with these constants.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.pose_search import PoseSearch
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

_SWEEPS = 8  # iterations of the search for the direction of the velocities in one pose


@dataclass(frozen=True)
class TermBounds:
    """Bounds of ``|C(q, qd)| / |qd|`` and ``|g(q)|`` over the joint range, found by a search.

    Attributes
    ----------
    coriolis : float
        Largest spectral norm of C for velocities of length 1, N m s^2 if all joints are revolute.
    gravity : float
        Largest length of g, N m or N.
    q_coriolis, qd_coriolis, q_gravity : ndarray, shape (n,)
        Poses, and velocities of length 1, in which they were found.
    unlimited : tuple of str
        Prismatic joints without limits, which were searched over 1 m in each direction. The
        terms of such a robot have no bound, but grow with the position.
    evaluations : int
        Number of poses evaluated.
    """

    coriolis: float
    gravity: float
    q_coriolis: Array
    qd_coriolis: Array
    q_gravity: Array
    unlimited: tuple[str, ...]
    evaluations: int


def term_bounds(model: Model, samples: int = 1024, refinements: int = 12,
                seed: int = 0) -> TermBounds:
    """Estimate bounds of the Coriolis matrix and of gravity over the joint range.

    The search approaches the bounds from below, as that of `inertia_bounds` does: the true ones
    may be a little larger.

    Parameters
    ----------
    model : Model
        The robot.
    samples, refinements : int
        Number of random poses, and number of refinements, each with a tenth as many poses.
    seed : int
        Seed of the random numbers.

    Raises
    ------
    ValueRangeError
        The base floats.
    """
    dynamics = Dynamics(model)
    model.require_fixed_base('term_bounds')
    search = PoseSearch(model, samples, refinements, seed)

    def minus_gravity(q: Array) -> Array:
        return np.asarray(-np.linalg.norm(dynamics.gravity(q), axis=1))

    def minus_coriolis(q: Array) -> Array:
        return -_largest_coriolis(dynamics, q)[0]

    gravity, q_gravity = search.smallest(minus_gravity, minus_gravity(search.poses))
    coriolis, q_coriolis = search.smallest(minus_coriolis, minus_coriolis(search.poses))
    unlimited = tuple(name for k, name in enumerate(model.joint_names) if model.prismatic[
        model.body_joints.index(name)] and not np.isfinite([model.lower[k], model.upper[k]]).all())
    return TermBounds(-coriolis, -gravity, q_coriolis,
                      _largest_coriolis(dynamics, q_coriolis[None])[1][0],
                      q_gravity, unlimited, search.evaluations)


def _largest_coriolis(dynamics: Dynamics, q: Array) -> tuple[Array, Array]:
    """Return the largest norm of C over velocities of length 1, (N,), and where it is, (N, n).

    C is linear in the velocities; its norm is ``max u' C(qd) v``. Maximising over u and v, and
    over qd, in turn increases it in every sweep.
    """
    count, n = q.shape
    unit = np.stack([dynamics.coriolis_matrix(q, np.broadcast_to(axis, q.shape).copy())
                     for axis in np.eye(n)], axis=1)  # (N, n, n, n): C for each unit velocity
    qd = np.linalg.svd(unit.reshape(count, n, n * n), full_matrices=False)[0][..., 0]
    for _ in range(_SWEEPS):
        left, values, right = np.linalg.svd(np.einsum('Ni,Nijk->Njk', qd, unit))
        slope = np.einsum('Nj,Nijk,Nk->Ni', left[..., 0], unit, right[..., 0, :])
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        qd = np.where(length > 0, slope / np.where(length > 0, length, 1.0), qd)
    return length[:, 0], qd
