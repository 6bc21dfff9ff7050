"""Reads the pose and twist of a floating base from nav_msgs/Odometry messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.nodes.joint_states import StateError
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.spatial import Array

UNIT = 0.01  # deviation of a quaternion's length from 1 above which it is a mistake


class BaseState:
    """The last measured state of a floating base.

    Parameters
    ----------
    link : str
        The root link of the robot, whose odometry is expected.
    timeout : float
        Longest time between an odometry message and a joint state, s.
    """

    def __init__(self, link: str, timeout: float):
        self._link, self._timeout = link, round(timeout * 1e9)
        self._stamp: int | None = None
        self._pose, self._twist = np.zeros(7), np.zeros(6)

    def read(self, message: Any) -> None:
        """Keep the state in an Odometry message.

        Raises
        ------
        StateError
            The message is about another link, or its numbers cannot be used.
        """
        if message.child_frame_id not in ('', self._link):
            raise StateError('wrong_frame', f'child_frame_id is {message.child_frame_id!r}; '
                             f'valid: {self._link!r}, the root link of the robot')
        place, turn = message.pose.pose.position, message.pose.pose.orientation
        linear, angular = message.twist.twist.linear, message.twist.twist.angular
        pose = np.array([place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w])
        twist = np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z])
        if not np.isfinite(pose.sum() + twist.sum()):
            raise StateError('not_finite', 'pose or twist is not finite')
        length = float(np.linalg.norm(pose[3:]))
        if abs(length - 1.0) > UNIT:
            raise StateError('not_a_rotation', f'the quaternion has the length {length:.4g}; '
                             'valid: 1')
        self._pose, self._twist = pose, twist
        self._stamp = nanoseconds(message.header.stamp)

    def at(self, stamp: Any) -> tuple[Array, Array]:
        """Return pose, shape (7,), and twist, shape (6,), for the stamp of a joint state.

        Raises
        ------
        StateError
            There is no odometry of this time.
        """
        if self._stamp is None:
            raise StateError('no_odometry', 'no odometry has arrived yet')
        apart = nanoseconds(stamp) - self._stamp
        if abs(apart) > self._timeout:
            raise StateError('no_odometry', f'the last odometry is {abs(apart) * 1e-9:.3f} s '
                             f'{"older" if apart > 0 else "newer"} than the joint state; valid: '
                             f'at most {self._timeout * 1e-9:g} s')
        return self._pose, self._twist
