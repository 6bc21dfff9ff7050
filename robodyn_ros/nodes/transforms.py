"""Poses of frames from the topics /tf and /tf_static.

Only distributions of ROS 2 have the Python bindings of tf2. Here the pose of one link in one other
frame is all that is needed, at the stamps of the transforms themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.nodes.joint_states import StateError
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.spatial import Array, rotation_from_quaternion

MOST_FRAMES = 10_000
UNIT = 0.01  # deviation of a quaternion's length from 1 above which it is a mistake


class TransformTree:
    """The newest transform of every frame to its parent."""

    def __init__(self) -> None:
        self._parents: dict[str, tuple[str, int | None, Array, Array]] = {}

    def read(self, message: Any, static: bool) -> None:
        """Keep the transforms of a TFMessage.

        Raises
        ------
        StateError
            A transform has values that are not finite, or no rotation; the others are kept.
        """
        wrong: StateError | None = None
        for one in message.transforms:
            if one.child_frame_id not in self._parents and len(self._parents) >= MOST_FRAMES:
                raise StateError('too_many_frames', f'there are more than {MOST_FRAMES} frames')
            try:
                rotation, place = pose_of(one.transform.translation, one.transform.rotation)
            except StateError as error:
                wrong = StateError(error.kind, f'{one.child_frame_id[:80]!r}: {error}')
                continue
            stamp = None if static else nanoseconds(one.header.stamp)
            self._parents[one.child_frame_id] = one.header.frame_id, stamp, rotation, place
        if wrong is not None:
            raise wrong

    def pose(self, frame: str, world: str) -> tuple[int, Array, Array] | None:
        """Return the stamp (ns), rotation and position of a frame in another one.

        The stamp is that of the moving transform next to the frame. None: the frames are not
        connected.
        """
        rotation, place, newest = np.eye(3), np.zeros(3), None
        for _ in range(len(self._parents)):
            if frame == world:
                break
            if frame not in self._parents:
                return None
            frame, stamp, turn, step = self._parents[frame]
            rotation, place = turn @ rotation, turn @ place + step
            newest = stamp if newest is None else newest
        return (newest or 0, rotation, place) if frame == world else None


def pose_of(place: Any, turn: Any) -> tuple[Array, Array]:
    """Return the rotation matrix and the position of a pose in a message.

    Raises
    ------
    StateError
        The values are not finite, or the quaternion's length is not 1.
    """
    position = np.array([place.x, place.y, place.z])
    quaternion = np.array([turn.x, turn.y, turn.z, turn.w])
    return rotation_from_quaternion(checked_pose(position, quaternion)), position


def checked_pose(position: Array, quaternion: Array) -> Array:
    """Return the quaternion x, y, z, w of a pose, with the length 1.

    Raises
    ------
    StateError
        The values are not finite, or the quaternion's length is not 1.
    """
    if not np.isfinite(position.sum() + quaternion.sum()):
        raise StateError('not_finite', 'pose or twist is not finite')
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1.0) > UNIT:
        raise StateError('not_a_rotation', f'the quaternion has the length {length:.4g}; '
                         'valid: 1')
    return quaternion / length
