"""Control laws: pure functions that return torques, shape (n,), N m or N.

See Kolyubin, chapter 3 and section 5.1. The laws do not limit torques (`saturate` does) and have
no memory. ``near`` is a pose of all joints near the state, from which closed loops are closed, see
`RobotDynamics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import FlexibleDynamics, RobotDynamics
from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.spatial import Array

POSES = 256  # number of poses in which inertia and gravity are evaluated
STEP = 1e-5  # rad or m, step of the numerical derivative of gravity
HOLD = 1.2  # factor on the smallest gain that holds the robot against gravity


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
        """Return gains for n joints from single numbers or lists.

        Raises
        ------
        ShapeError, ValueRangeError
            A list does not have n numbers, or a number is negative or not finite.
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
    """Return gains that hold the arm in any pose, and are stable at control rates of some 100 Hz.

    Gravity pushes an upright arm away from its reference, even with feed-forward. The stiffness
    ``kp + dg/dq`` is positive definite if each kp exceeds the sum of ``|dg_i/dq_j|`` over j.

    Parameters
    ----------
    dynamics : RobotDynamics
        Dynamics of the robot.
    frequency : float
        Natural frequency of each joint with its smallest inertia, rad/s; it is higher where
        gravity requires a larger gain.

    Returns
    -------
    Gains
        ``kp = max(frequency^2 m, 1.2 s)`` and ``kd = 2 frequency m``, with the smallest diagonal
        elements m of M and the largest sums s of ``|dg_i/dq_j|`` over j.
    """
    q = _poses(dynamics)
    least = np.diagonal(dynamics.mass_matrix(q), axis1=1, axis2=2).min(axis=0)
    steps = STEP * np.eye(dynamics.joints.n)
    for step in (*steps, *-steps):  # the loops must close at each step too
        q = q[dynamics.reachable(q + step)]
    sums = np.zeros_like(q)
    for step in steps:
        sums += np.abs(dynamics.gravity(q + step) - dynamics.gravity(q - step)) / (2 * STEP)
    kp = np.maximum(frequency**2 * least, HOLD * sums.max(axis=0))
    return Gains(kp, 2 * frequency * least)


def _poses(dynamics: RobotDynamics) -> Array:
    """Return reachable random poses within the joint limits, shape (N, n); reproducible."""
    joints = dynamics.joints
    q = joints.sample_poses(np.random.default_rng(0), POSES)
    return q[dynamics.reachable(q)]


def gravity_compensation(dynamics: RobotDynamics, q: Array, qd: Array, damping: Array,
                         near: Array | None = None) -> Array:
    """``g(q) - damping qd``: the arm can be guided by hand and stays where it is left."""
    return dynamics.gravity(q, near=near) - damping * qd


def pd(q: Array, qd: Array, q_r: Array, qd_r: Array, gains: Gains) -> Array:
    """``kp (q_r - q) + kd (qd_r - qd)``, without a model."""
    return gains.kp * (q_r - q) + gains.kd * (qd_r - qd)


def pd_gravity(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
               gains: Gains, near: Array | None = None) -> Array:
    """PD plus gravity at the measured position (Takegaki and Arimoto 1981)."""
    return dynamics.gravity(q, near=near) + pd(q, qd, q_r, qd_r, gains)


def feedforward_pd(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
                   qdd_r: Array, gains: Gains, near: Array | None = None) -> Array:
    """Inverse dynamics of the reference, plus PD; measurements do not enter the model."""
    return dynamics.inverse_dynamics(q_r, qd_r, qdd_r, near=near) + pd(q, qd, q_r, qd_r, gains)


def feedforward_gravity(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
                        qdd_r: Array, gains: Gains, near: Array | None = None) -> Array:
    """`feedforward_pd` with gravity at the measured instead of the reference position."""
    return (feedforward_pd(dynamics, q, qd, q_r, qd_r, qdd_r, gains, near)
            + dynamics.gravity(q, near=near) - dynamics.gravity(q_r, near=near))


def elastic_feedforward_pd(flexible: FlexibleDynamics, theta: Array, theta_d: Array,
                           reference: Sequence[Array], gains: Gains) -> Array:
    """Feed-forward of an elastic arm, plus PD on the motor positions that the motion requires.

    The measurements are those of the motors, seen from the output side of their gears. The
    reference has four derivatives.
    """
    need = flexible.inverse_dynamics(*reference)
    return need.torque + pd(theta, theta_d, need.theta, need.theta_d, gains)


def computed_torque(dynamics: RobotDynamics, q: Array, qd: Array, q_r: Array, qd_r: Array,
                    qdd_r: Array, gains: Gains, near: Array | None = None) -> Array:
    """``M (qdd_r + kd e' + kp e) + c + g + friction`` at the measured state.

    The error dynamics are linear. Friction is evaluated at the velocity of the reference, whose
    sign is free of noise.
    """
    acceleration = qdd_r + gains.kd * (qd_r - qd) + gains.kp * (q_r - q)
    return (dynamics.inverse_dynamics(q, qd, acceleration, near=near)
            - dynamics.friction(qd, q, near=near) + dynamics.friction(qd_r, q, near=near))
