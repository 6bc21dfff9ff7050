"""Checks whether a robot can follow a reference: limits along the whole motion, and its start."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.reference import Reference, saturate
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.presliding import Presliding
from robodyn_ros.dynamics.residual_torque import ResidualTorque
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.model import Joints
from robodyn_ros.spatial import Array

SLACK = 1e-6  # rad or m, and per second: round-off of motions that were planned up to a limit
MOST_SAMPLES = 10_000  # approximate number of samples at which the torques of a motion are checked
AT_ONCE = 200  # samples per call, which bounds how long other threads wait


def check_limits(reference: Reference, joints: Joints) -> None:
    """Check positions and velocities along the whole motion, between the points as well.

    Raises
    ------
    ValueRangeError
        A limit is exceeded; the message names the joint, the time and the limit.
    """
    for order, (what, lower, upper) in enumerate((
            ('position', joints.lower, joints.upper),
            ('velocity', -joints.velocity_limit, joints.velocity_limit))):
        excess = reference.excess(order, lower - SLACK, upper + SLACK)
        if excess is not None:
            joint = excess.joint
            raise ValueRangeError(
                f'{what} of joint {joints.joint_names[joint]!r} at {excess.time:.3f} s',
                f'{excess.value:.4g}', f'{lower[joint]:.4g} to {upper[joint]:.4g}')


def check_start(reference: Reference, time: float, q: Array, tolerance: float,
                joints: Joints) -> None:
    """Check that a motion is near the robot at a time.

    Parameters
    ----------
    reference : Reference
        The motion.
    time : float
        Time from its start, s.
    q : ndarray, shape (n,)
        Measured positions, rad or m.
    tolerance : float
        Largest distance of a joint, rad or m.
    joints : Joints
        The joints, for their names.

    Raises
    ------
    ValueRangeError
        A joint is farther away.
    """
    away = np.abs(reference.sample(time)[0] - q)
    joint = int(np.argmax(away))
    if not away[joint] <= tolerance:
        raise ValueRangeError(
            f'start of joint {joints.joint_names[joint]!r}',
            f'{away[joint]:.3g} from its measured position',
            f'at most start_tolerance, {tolerance:g}')


def check_torque(reference: Reference, dynamics: RobotDynamics,
                 residual: ResidualTorque | None = None) -> None:
    """Check that the torques along the whole motion stay within the effort limits.

    A residual torque is included, see `torques`.

    Raises
    ------
    ValueRangeError
        A limit is exceeded (the message names the joint, the time and the limit), or a torque is
        not finite.
    """
    limit, names = dynamics.joints.effort_limit, dynamics.joints.joint_names
    times, *motion = reference.dense(MOST_SAMPLES)
    presliding = Presliding(dynamics)
    extra = presliding.along(*motion[:2]) if presliding else np.zeros_like(motion[1])
    for first in range(0, len(times), AT_ONCE):
        q, qd, qdd = (part[first:first + AT_ONCE] for part in motion)
        tau = torques(dynamics, q, qd, qdd, residual) + extra[first:first + AT_ONCE]
        over = np.abs(tau) > limit
        if over.any():
            sample, joint = np.argwhere(over)[0]
            raise ValueRangeError(
                f'torque of joint {names[joint]!r} at {times[first + sample]:.3f} s',
                f'{tau[sample, joint]:.4g}',
                f'at most its effort limit, {limit[joint]:.4g}; a slower motion needs less')


def torques(dynamics: RobotDynamics, q: Array, qd: Array, qdd: Array,
            residual: ResidualTorque | None = None) -> Array:
    """Return the generalised forces of a motion, shape (N, n), N m or N.

    Those of a residual model are added, if there is one.

    Raises
    ------
    ValueRangeError
        The forces are not finite.
    """
    tau = dynamics.inverse_dynamics(q, qd, qdd)
    if residual is not None:
        tau = tau + residual.torque(q, qd)
    if not np.isfinite(tau).all():
        raise ValueRangeError('torque of the reference', 'not finite', 'a moderate motion')
    return tau


def efforts(reference: Reference, dynamics: RobotDynamics,
            residual: ResidualTorque | None = None) -> tuple[Array, Array]:
    """Return the limited generalised forces at the points of a motion, see `torques`.

    Returns
    -------
    tau : ndarray, shape (k, n)
        N m or N, within the effort limits.
    saturated : ndarray of bool, shape (n,)
        Joints whose forces were limited at some point.

    Raises
    ------
    ValueRangeError
        The forces are not finite.
    """
    parts = [torques(dynamics, reference.q[a:a + AT_ONCE], reference.qd[a:a + AT_ONCE],
                     reference.qdd[a:a + AT_ONCE], residual)
             for a in range(0, len(reference.times), AT_ONCE)]
    tau, presliding = np.concatenate(parts), Presliding(dynamics)
    if presliding:  # its state depends on the motion between the samples
        _, q, qd, _ = reference.dense(MOST_SAMPLES)
        between = max(1, (len(q) - 1) // max(1, len(reference.times) - 1))
        tau += presliding.along(q, qd)[::between]
    return saturate(tau, dynamics.joints.effort_limit)
