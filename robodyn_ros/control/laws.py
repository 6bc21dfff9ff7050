"""Control laws: pure functions of dynamics, state and reference; shape (n,) all, N m or N.

Kolyubin ch. 3 and 5.1. None of them limits or remembers anything: `saturate` limits torques, and
the caller keeps the time. ``near`` is a pose of all joints near the state, from which closed loops
are followed, see `RobotDynamics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import FlexibleDynamics, RobotDynamics
from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.spatial import Array

POSES = 256  # in which inertia and gravity are looked at
STEP = 1e-5  # rad or m, over which gravity is differentiated
HOLD = 1.2  # times what gravity needs


@dataclass(frozen=True, eq=False)
class Gains:
    """Proportional and derivative gains.

    Attributes
    ----------
    kp : ndarray, shape (n,)
        N m/rad or N/m; 1/s^2 for `computed_torque`.
    kd : ndarray, shape (n,)
        N m s/rad or N s/m; 1/s for `computed_torque`.
    """

    kp: Array
    kd: Array

    @classmethod
    def of(cls, n: int, kp: ArrayLike, kd: ArrayLike) -> Gains:
        """Make gains of numbers or lists.

        Raises
        ------
        ShapeError, ValueRangeError
            Not n numbers; negative or not finite.
        """
        arrays = []
        for name, values in (('kp', kp), ('kd', kd)):
            array = np.asarray(values, np.float64)
            if array.shape not in ((), (1,), (n,)):
                raise ShapeError(name, f'shape {array.shape}', f'one number, or ({n},)')
            array = np.broadcast_to(array, (n,)).copy()
            if not (np.isfinite(array) & (array >= 0)).all():
                raise ValueRangeError(name, array.tolist(), 'finite numbers >= 0')
            arrays.append(array)
        return cls(*arrays)


def automatic_gains(dynamics: RobotDynamics, frequency: float = 10.0) -> Gains:
    """Gains that hold the arm against gravity anywhere, and are stable at some hundred hertz.

    Gravity pushes an arm that stands upright further from its reference, feed-forward or not:
    ``kp + dg/dq`` is positive definite in every pose where kp is above the sums of its rows.

    Parameters
    ----------
    dynamics : RobotDynamics
        Of the robot.
    frequency : float
        rad/s, of each joint alone where its inertia is least, or more where gravity needs it.

    Returns
    -------
    Gains
        ``kp = max(frequency^2 m, 1.2 s)``, ``kd = 2 frequency m`` with the least diagonal entries
        m of M and the largest sums s of ``|dg_i/dq_j|`` over j.
    """
    q = _poses(dynamics)
    least = np.diagonal(dynamics.mass_matrix(q), axis1=1, axis2=2).min(axis=0)
    steps = STEP * np.eye(dynamics.joints.n)
    for step in (*steps, *-steps):  # a small step must not lead out of where loops close
        q = q[dynamics.reachable(q + step)]
    sums = np.zeros_like(q)
    for step in steps:
        sums += np.abs(dynamics.gravity(q + step) - dynamics.gravity(q - step)) / (2 * STEP)
    kp = np.maximum(frequency**2 * least, HOLD * sums.max(axis=0))
    return Gains(kp, 2 * frequency * least)


def _poses(dynamics: RobotDynamics) -> Array:
    """Poses in the joint range, the same ones every time; shape (N, n)."""
    joints = dynamics.joints
    q = joints.sample_poses(np.random.default_rng(0), POSES)
    return q[dynamics.reachable(q)]


def gravity_compensation(dynamics: RobotDynamics, q: Array, qd: Array, damping: Array,
                         near: Array | None = None) -> Array:
    """``g(q) - damping qd``: the arm stays where it is put, and is led by hand."""
    return dynamics.gravity(q, near=near) - damping * qd


def pd(q: Array, qd: Array, q_r: Array, qd_r: Array, gains: Gains) -> Array:
    """``kp (q_r - q) + kd (qd_r - qd)``: no model."""
    return gains.kp * (q_r - q) + gains.kd * (qd_r - qd)


def pd_gravity(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
               gains: Gains, near: Array | None = None) -> Array:
    """PD, and gravity at the measured position (Takegaki and Arimoto 1981)."""
    return dynamics.gravity(q, near=near) + pd(q, qd, q_r, qd_r, gains)


def feedforward_pd(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
                   qdd_r: Array, gains: Gains, near: Array | None = None) -> Array:
    """Inverse dynamics of the reference, and PD: the model never sees a measurement."""
    return dynamics.inverse_dynamics(q_r, qd_r, qdd_r, near=near) + pd(q, qd, q_r, qd_r, gains)


def feedforward_gravity(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
                        qdd_r: Array, gains: Gains, near: Array | None = None) -> Array:
    """As `feedforward_pd`, with gravity where the arm is instead of where it should be."""
    return (feedforward_pd(dynamics, q, qd, q_r, qd_r, qdd_r, gains, near)
            + dynamics.gravity(q, near=near) - dynamics.gravity(q_r, near=near))


def elastic_feedforward_pd(flexible: FlexibleDynamics, theta: Array, theta_d: Array,
                           reference: Sequence[Array], gains: Gains) -> Array:
    """Feed-forward of an elastic arm, and PD of its motors about where the springs need them.

    Measured are the motors (behind their gears); the reference has four derivatives.
    """
    need = flexible.inverse_dynamics(*reference)
    return need.torque + pd(theta, theta_d, need.theta, need.theta_d, gains)


def computed_torque(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
                    qdd_r: Array, gains: Gains, near: Array | None = None) -> Array:
    """``M (qdd_r + kd e' + kp e) + c + g + friction`` at the measured state: the error is linear.

    Friction is that of the reference's velocity, whose sign no noise turns.
    """
    acceleration = qdd_r + gains.kd * (qd_r - qd) + gains.kp * (q_r - q)
    return (dynamics.inverse_dynamics(q, qd, acceleration, near=near)
            - dynamics.friction(qd, q, near=near) + dynamics.friction(qd_r, q, near=near))
