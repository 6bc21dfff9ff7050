"""Simulates a robot along many references at once, for the methods and for rollouts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.spatial import Array


def simulate_along(dynamics: Dynamics, reference: Array, step: float, kp: Array, kd: Array,
                   ) -> Iterator[tuple[Array, Array]]:
    """Yield positions and velocities at each step, shape (starts, n) each.

    The torques are those that are given with the reference, plus those of a PD controller that
    leads the robot to it. The steps are linearly implicit in friction and in the damping of the
    controller, see `Dynamics.velocity_change`. States that diverge become NaN.

    Parameters
    ----------
    dynamics : Dynamics
        The robot, a tree, with a smooth sign of Coulomb friction (`friction_width` above 0).
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
    kp, kd = np.broadcast_to(kp, q.shape), np.ascontiguousarray(np.broadcast_to(kd, q.shape))
    middles = 0.5 * (reference[:-1] + reference[1:])
    torques = middles[:, :, 2 * n:] + kp * middles[:, :, :n] + kd * middles[:, :, n:2 * n]
    yield q, qd
    for torque in torques:
        with np.errstate(all='ignore'):
            change = dynamics.velocity_change(q, qd, torque - kp * q - kd * qd, kd, step)
            q, qd = q + step * (qd + 0.5 * change), qd + change
        yield q, qd
