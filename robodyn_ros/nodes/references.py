"""JointTrajectory -> `Reference` in the model's order, and back with efforts."""

from __future__ import annotations

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import Reference, saturate
from robodyn_ros.description import Array
from robodyn_ros.dynamics import AnyDynamics
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.model import Joints


def read_reference(message: JointTrajectory, joints: Joints) -> Reference:
    """Return the reference of a trajectory.

    Raises
    ------
    RobodynError
        Unknown, missing or repeated joints; no points; points without velocities or accelerations;
        numbers that are not finite; times that do not increase.
    """
    names = list(message.joint_names)
    for name in names:
        if name not in joints.joint_names:
            raise UnknownNameError('joint in the reference', name, joints.joint_names)
    missing = [name for name in joints.joint_names if name not in names]
    if missing or len(set(names)) < len(names):
        raise ShapeError('joint_names', f'{names}', f'each of {list(joints.joint_names)} once')
    if not message.points:
        raise ShapeError('reference', '0 points', 'at least one point')
    pick = [names.index(name) for name in joints.joint_names]
    columns = []
    for field in ('positions', 'velocities', 'accelerations'):
        rows = []
        for i, point in enumerate(message.points):
            values = getattr(point, field)
            if len(values) != len(names):
                raise ShapeError(f'point {i} of the reference',
                                 f'{len(values)} {field} for {len(names)} joints',
                                 'positions, velocities and accelerations of every joint')
            rows.append(np.array(values)[pick])
        columns.append(np.array(rows))
        if not np.isfinite(columns[-1]).all():
            point, joint = np.argwhere(~np.isfinite(columns[-1]))[0]
            where = f'{field} of joint {joints.joint_names[joint]!r} in point {point}'
            raise ValueRangeError(where, columns[-1][point, joint], 'finite numbers')
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    return Reference(times, *columns)


def check_limits(reference: Reference, joints: Joints) -> None:
    """Raise ValueRangeError where a point leaves the joint range or exceeds a velocity limit."""
    slack = 1e-6
    for what, values, lower, upper in (
            ('position', reference.q, joints.lower, joints.upper),
            ('velocity', reference.qd, -joints.velocity_limit, joints.velocity_limit)):
        outside = (values < lower - slack) | (values > upper + slack)
        if outside.any():
            point, joint = np.argwhere(outside)[0]
            raise ValueRangeError(
                f'{what} of joint {joints.joint_names[joint]!r} in point {point}',
                f'{values[point, joint]:.4g}', f'{lower[joint]:.4g} to {upper[joint]:.4g}')


def check_start(reference: Reference, time: float, q: Array, tolerance: float,
                joints: Joints) -> None:
    """Raise ValueRangeError where a reference is far from the robot at a time (s)."""
    away = np.abs(reference.sample(time)[0] - q)
    joint = int(np.argmax(away))
    if not away[joint] <= tolerance:
        raise ValueRangeError(
            f'start of joint {joints.joint_names[joint]!r}',
            f'{away[joint]:.3g} from where it is', f'at most start_tolerance, {tolerance:g}')


def with_effort(message: JointTrajectory, reference: Reference,
                dynamics: AnyDynamics) -> tuple[JointTrajectory, Array]:
    """Fill the trajectory with the efforts of inverse dynamics; return it, and who saturates.

    Raises
    ------
    ValueRangeError
        The torques are not finite.
    """
    joints = dynamics.joints
    tau = dynamics.inverse_dynamics(reference.q, reference.qd, reference.qdd)
    if not np.isfinite(tau).all():
        raise ValueRangeError('torque of the reference', 'not finite', 'a moderate motion')
    tau, over = saturate(tau, joints.effort_limit)
    back = [joints.joint_names.index(name) for name in message.joint_names]
    for point, row in zip(message.points, tau[:, back].tolist(), strict=True):
        point.effort = row
    return message, over
