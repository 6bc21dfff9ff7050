"""Simulates a robot along a reference, many starts at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.spatial import Array

SLOPE = 1e-3  # rad/s or m/s, for the derivative of friction


def simulate(dynamics: RobotDynamics, reference: Array, step: float, kp: Array, kd: Array,
             ) -> Iterator[tuple[Array, Array]]:
    """Yield positions and velocities at each step, shape (starts, n) each.

    A PD controller leads the robot to the reference, beside torques that are given. Each step
    solves ``(M + step D) dv = step (tau - c - g - friction)``, in which D is the slope of friction
    and of the controller: light joints with much friction would need far smaller steps otherwise.
    States that diverge are not numbers.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot, a tree, with a width of the direction of friction.
    reference : ndarray, shape (K, starts, 3 n)
        Positions, velocities and given torques at each step; the first are the states of the
        start. Rad or m, and N m or N.
    step : float
        Time between steps, s.
    kp, kd : ndarray, shape (starts, n) or (n,)
        Gains of the controller; zero for none.
    """
    n = dynamics.n
    q, qd = reference[0, :, :n].copy(), reference[0, :, n:2 * n].copy()
    own = range(n)
    yield q, qd
    for before, after in zip(reference[:-1], reference[1:], strict=True):
        with np.errstate(all='ignore'):
            middle = 0.5 * (before + after)
            tau = middle[:, 2 * n:] + kp * (middle[:, :n] - q) + kd * (middle[:, n:2 * n] - qd)
            both = dynamics.friction(np.concatenate([qd + SLOPE, qd - SLOPE]),
                                     np.concatenate([q, q]))
            slope = (both[:len(q)] - both[len(q):]) / (2 * SLOPE)
            terms = dynamics.terms(q, qd)
            matrix = terms.mass_matrix
            matrix[:, own, own] += step * (np.maximum(slope, 0.0) + kd)
            force = tau - terms.coriolis - terms.gravity - terms.friction
            old = qd
            qd = qd + step * _solved(matrix, force)
            q = q + step / 2 * (old + qd)
        yield q, qd


def _solved(matrices: Array, right: Array) -> Array:
    """Solve linear systems; the solution of a singular one is not a number."""
    try:
        return np.asarray(np.linalg.solve(matrices, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)
