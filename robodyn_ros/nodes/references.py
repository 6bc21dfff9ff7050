"""Reads JointTrajectory messages as `Reference` in the model's order, and adds efforts to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import Reference
from robodyn_ros.errors import RobodynError, ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.model import Joints
from robodyn_ros.nodes.helper_process import HelperError, HelperProcess
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.spatial import Array

SHORT = 20_000  # bytes; reading a longer message would hold the interpreter for milliseconds
LONGEST = 64_000_000  # bytes
READ, FILL = 'read_reference', 'fill_reference'  # tasks of the helper process


class ReferenceReader:
    """Reads serialised trajectories; long ones in a separate process, apart from the control loop.

    Parameters
    ----------
    helper : HelperProcess, optional
        Runs `TASKS`; without it long trajectories are rejected.
    """

    def __init__(self, helper: HelperProcess | None):
        self._helper = helper

    @staticmethod
    def is_short(raw: bytes) -> bool:
        """Return whether a message is short enough to be read in the control process."""
        return len(raw) <= SHORT

    def read(self, raw: bytes, joints: Joints) -> tuple[Reference, int]:
        """Return the reference and its stamp, ns.

        Raises
        ------
        RobodynError
            See `read_reference`; or the message is too long.
        """
        if self.is_short(raw):
            message = deserialize_message(raw, JointTrajectory)
            return read_reference(message, joints), nanoseconds(message.header.stamp)
        stamp, arrays = self._run(READ, (raw, joints))
        return Reference(*arrays), stamp

    def fill(self, raw: bytes, tau: Array, joints: Joints) -> bytes:
        """Return the trajectory with efforts in the model's order, shape (k, n)."""
        if self.is_short(raw):
            return fill((raw, tau, joints))[1]
        filled = self._run(FILL, (raw, tau, joints))
        return bytes(filled)

    def _run(self, task: str, argument: tuple[Any, ...]) -> Any:
        if self._helper is None or len(argument[0]) > LONGEST:
            raise ShapeError('reference', f'{len(argument[0])} bytes',
                             f'at most {SHORT if self._helper is None else LONGEST}')
        try:
            done, answer = self._helper.call(task, argument, seconds=30.0)
        except HelperError as error:
            raise RobodynError(f'the reference cannot be read: {error}') from None
        if not done:
            raise RobodynError(answer)
        return answer


def read(argument: tuple[bytes, Joints]) -> tuple[bool, Any]:
    """Return (True, (stamp, arrays)) of a serialised trajectory, or (False, what is wrong)."""
    raw, joints = argument
    message = deserialize_message(raw, JointTrajectory)
    try:
        reference = read_reference(message, joints)
    except RobodynError as error:
        return False, str(error)[:2000]
    return True, (nanoseconds(message.header.stamp),
                  (reference.times, reference.q, reference.qd, reference.qdd))


def fill(argument: tuple[bytes, Array, Joints]) -> tuple[bool, bytes]:
    """Return whether it succeeded, and a serialised trajectory to which efforts were added."""
    raw, tau, joints = argument
    return True, bytes(serialize_message(with_effort(
        deserialize_message(raw, JointTrajectory), tau, joints)))


TASKS: dict[str, Callable[[Any], Any]] = {READ: read, FILL: fill}


def read_reference(message: JointTrajectory, joints: Joints) -> Reference:
    """Return the reference of a trajectory.

    Raises
    ------
    RobodynError
        Joints are unknown, missing or repeated; there are no points; a point has no velocities or
        accelerations; a number is not finite; or the times do not increase.
    """
    names = list(message.joint_names)
    for name in names:
        if name not in joints.joint_names:
            raise UnknownNameError('joint in the reference', name[:80], joints.joint_names)
    missing = [name for name in joints.joint_names if name not in names]
    if missing or len(set(names)) < len(names):
        raise ShapeError('joint_names', f'{names}'[:400],
                         f'each of {list(joints.joint_names)} once')
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


def with_effort(message: JointTrajectory, tau: Array, joints: Joints) -> JointTrajectory:
    """Fill the points of a trajectory with efforts in the model's order, shape (k, n)."""
    back = [joints.joint_names.index(name) for name in message.joint_names]
    for point, row in zip(message.points, tau[:, back].tolist(), strict=True):
        point.effort = row
    return message
