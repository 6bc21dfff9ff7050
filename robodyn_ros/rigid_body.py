"""Rigid bodies as ten parameters, which is how the equations of motion are linear in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description import Array, Inertial

RIGID_NAMES = ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'm', 'mx', 'my', 'mz')


def is_inertia(tensor: Array) -> bool:
    """Whether a body can have this inertia tensor about its centre of mass."""
    if not np.isfinite(tensor).all():
        return False
    tolerance = 1e-9 * float(np.abs(tensor).max())
    moments = np.linalg.eigvalsh(tensor)
    return bool(np.abs(tensor - tensor.T).max() <= tolerance and moments[0] >= -tolerance
                and moments[2] <= moments[0] + moments[1] + tolerance)


def rigid_parameters(inertial: Inertial) -> Array:
    """Return the 10 rigid-body parameters about the frame's origin (theory section 1).

    The tensor is shifted from the centre of mass by Steiner's theorem (Kolyubin App. 3).
    """
    mass, com, tensor = inertial.mass, inertial.com, inertial.inertia
    about_origin = tensor + mass * (com @ com * np.eye(3) - np.outer(com, com))
    return np.array([*about_origin[np.triu_indices(3)], mass, *(mass * com)])


def transform_rigid(rigid: Array, rotation: Array, translation: Array) -> Array:
    """Return rigid-body parameters in another frame; shape (10,) both.

    Parameters
    ----------
    rigid : ndarray, shape (10,)
        About the origin and in the axes of frame B.
    rotation, translation : ndarray, shape (3, 3), (3,)
        Frame B in frame A.
    """
    tensor = np.zeros((3, 3))
    tensor[np.triu_indices(3)] = rigid[:6]
    tensor = tensor + np.triu(tensor, 1).T
    mass, moment, shift = rigid[6], rotation @ rigid[7:], translation
    tensor = rotation @ tensor @ rotation.T
    # I_A = I_B + sum dm ((|r + t|^2 - |r|^2) E - ((r + t)(r + t)' - r r'))
    tensor = tensor + ((2 * moment @ shift + mass * shift @ shift) * np.eye(3)
                       - np.outer(moment, shift) - np.outer(shift, moment)
                       - mass * np.outer(shift, shift))
    return np.array([*tensor[np.triu_indices(3)], mass, *(moment + mass * shift)])


def rotation_from_rpy(rpy: ArrayLike) -> Array:
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll), URDF's convention.

    Parameters
    ----------
    rpy : array-like, shape (3,)
        Roll, pitch, yaw, rad.
    """
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array([[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                     [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                     [-sp, cp * sr, cp * cr]])
