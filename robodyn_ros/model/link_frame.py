"""`LinkFrame`: where a link is on the body that carries it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.spatial import Array, quaternion_of


@dataclass(frozen=True)
class LinkFrame:
    """The frame of a link in the frame of the body that it is fixed to; body -1 is the root."""

    body: int
    rotation: Array
    translation: Array

    def motion_of_body(self, pose: Array, twist: Array) -> tuple[Array, Array]:
        """Return pose and twist of the body for those of the link.

        Parameters
        ----------
        pose : ndarray, shape (..., 7)
            Position of the link's origin, m, and its unit quaternion x, y, z, w.
        twist : ndarray, shape (..., 6)
            Its linear and angular velocity in the axes of the link, m/s and rad/s.

        Returns
        -------
        pose, twist : ndarray, shapes (..., 7) and (..., 6)
            Those of the body, the twist in its axes.
        """
        if not self.translation.any() and np.array_equal(self.rotation, np.eye(3)):
            return pose, twist  # of the body itself, at high rates
        one, other = pose[..., 3:7], quaternion_of(self.rotation.T)
        v, w = one[..., :3], one[..., 3:]
        vector = w * other[:3] + other[3] * v + np.cross(v, other[:3])
        scalar = w * other[3] - (v @ other[:3])[..., None]
        turned = np.cross(vector, self.translation) + scalar * self.translation
        place = pose[..., :3] - self.translation - 2 * np.cross(vector, turned)
        rates = twist[..., 3:] @ self.rotation.T
        speed = twist[..., :3] @ self.rotation.T - np.cross(rates, self.translation)
        return (np.concatenate([place, vector, scalar], axis=-1),
                np.concatenate([speed, rates], axis=-1))
