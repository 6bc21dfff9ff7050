"""Rigid bodies and rotations: inertial parameters, inertia tensors, and changes of frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

ROUND_OFF = 1e-9  # relative to the largest element of an inertia tensor
INERTIAL_PARAMETER_NAMES = ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'm', 'mx', 'my', 'mz')


@dataclass(frozen=True)
class Inertial:
    """Inertial parameters of one body.

    Attributes
    ----------
    mass : float
        kg.
    com : ndarray, shape (3,)
        Centre of mass in the link frame, m.
    inertia : ndarray, shape (3, 3)
        Inertia tensor about the centre of mass, axes of the link frame, kg m^2.
    """

    mass: float
    com: Array
    inertia: Array


def inertia_tensor(components: Any) -> Any:
    """Return the symmetric tensor, shape (3, 3), of ``Ixx Ixy Ixz Iyy Iyz Izz ...``.

    Parameters
    ----------
    components : array-like, shape (6 or more,)
        Numbers or symbols. Entries after the sixth are ignored, so that all 10 inertial parameters
        of a body may be given.
    """
    xx, xy, xz, yy, yz, zz = components[:6]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_components(tensor: Any) -> Any:
    """Return ``Ixx Ixy Ixz Iyy Iyz Izz``, shape (6,), of a symmetric tensor, shape (3, 3)."""
    return np.asarray(tensor)[np.triu_indices(3)]


def point_inertia(position: Array) -> Array:
    """Return the inertia tensor about the origin of 1 kg at a position, m; shape (3, 3)."""
    return position @ position * np.eye(3) - np.outer(position, position)


def skew(vector: Any) -> Any:
    """Return S(a), shape (3, 3), with ``S(a) @ b = a x b``, for numbers or symbols."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def axis_rotation(axis: Array, angle: Any) -> Any:
    """Return the rotation matrix about a unit axis (Rodrigues), shape (3, 3).

    Parameters
    ----------
    axis : ndarray, shape (3,)
        Unit vector.
    angle : float or symbol
        rad.
    """
    projector = np.outer(axis, axis)
    # through an array, NumPy calls a symbol's own cos() and sin()
    cosine, sine = np.cos(np.array([angle])[0]), np.sin(np.array([angle])[0])
    return projector + cosine * (np.eye(3) - projector) + sine * skew(axis)


def is_inertia(tensor: Array) -> bool:
    """Return whether a body can have this inertia tensor about its centre of mass."""
    if not np.isfinite(tensor).all():
        return False
    tolerance = ROUND_OFF * float(np.abs(tensor).max())
    moments = np.linalg.eigvalsh(tensor)
    return bool(np.abs(tensor - tensor.T).max() <= tolerance and moments[0] >= -tolerance
                and moments[2] <= moments[0] + moments[1] + tolerance)


def inertial_parameters(inertial: Inertial) -> Array:
    """Return the 10 inertial parameters about the origin of the frame.

    The tensor is shifted from the centre of mass by Steiner's theorem (Kolyubin App. 3).
    """
    mass, com, tensor = inertial.mass, inertial.com, inertial.inertia
    about_origin = tensor + mass * point_inertia(com)
    return np.array([*inertia_components(about_origin), mass, *(mass * com)])


def inertial_of(parameters: Array) -> Inertial:
    """Return mass, centre and inertia of a body from its inertial parameters, shape (10,).

    The inverse of `inertial_parameters`; the mass must not be 0.
    """
    mass, com = float(parameters[6]), parameters[7:] / parameters[6]
    return Inertial(mass, com, inertia_tensor(parameters) - mass * point_inertia(com))


def transform_inertial(parameters: Array, rotation: Array, translation: Array) -> Array:
    """Return the inertial parameters of a body in another frame, shape (10,).

    Parameters
    ----------
    parameters : ndarray, shape (10,)
        About the origin and in the axes of frame B.
    rotation, translation : ndarray, shape (3, 3), (3,)
        Axes and origin (m) of frame B in frame A; the result is about the origin and in the
        axes of frame A.
    """
    tensor = inertia_tensor(parameters)
    mass, moment, shift = parameters[6], rotation @ parameters[7:], translation
    tensor = rotation @ tensor @ rotation.T
    # I_A = I_B + sum dm ((|r + t|^2 - |r|^2) E - ((r + t)(r + t)' - r r'))
    tensor = tensor + ((2 * moment @ shift + mass * shift @ shift) * np.eye(3)
                       - np.outer(moment, shift) - np.outer(shift, moment)
                       - mass * np.outer(shift, shift))
    return np.array([*inertia_components(tensor), mass, *(moment + mass * shift)])


def rotation_from_rpy(rpy: ArrayLike) -> Array:
    """Return the rotation matrix Rz(yaw) Ry(pitch) Rx(roll), the convention of URDF.

    Parameters
    ----------
    rpy : array-like, shape (3,)
        Roll, pitch, yaw, rad.
    """
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array([[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                     [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                     [-sp, cp * sr, cp * cr]])


def rotation_from_quaternion(quaternion: ArrayLike) -> Array:
    """Return the rotation matrix of a unit quaternion.

    Parameters
    ----------
    quaternion : array-like, shape (4,)
        x, y, z, w, as in ROS.
    """
    *v, w = np.asarray(quaternion, np.float64)
    return np.asarray((w * w - np.dot(v, v)) * np.eye(3) + 2.0 * np.outer(v, v)
                      + 2.0 * w * skew(v))


def rpy_from_rotation(rotation: Array) -> Array:
    """Return roll, pitch and yaw, shape (3,), rad: the inverse of `rotation_from_rpy`.

    Parameters
    ----------
    rotation : ndarray, shape (3, 3)
        Rotation matrix. Where the pitch is +-pi/2 the yaw is 0.
    """
    cosine = np.hypot(rotation[0, 0], rotation[1, 0])
    pitch = np.arctan2(-rotation[2, 0], cosine)
    if cosine < 1e-9:
        return np.array([np.arctan2(-rotation[1, 2], rotation[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(rotation[2, 1], rotation[2, 2]), pitch,
                     np.arctan2(rotation[1, 0], rotation[0, 0])])


def continuous_quaternions(quaternions: Array) -> Array:
    """Return quaternions with signs such that none jumps to the opposite of the one before.

    A quaternion and its negative are the same rotation.

    Parameters
    ----------
    quaternions : ndarray, shape (N, 4)
        Quaternions in the order of time.
    """
    turned = (quaternions[1:] * quaternions[:-1]).sum(axis=1) < 0
    signs = np.cumprod(np.where(turned, -1.0, 1.0))
    return np.vstack([quaternions[:1], signs[:, None] * quaternions[1:]])


def quaternion_of(rotation: Array) -> Array:
    """Return a rotation matrix as a unit quaternion x, y, z, w, shape (4,)."""
    m = np.asarray(rotation, np.float64)
    # the eigenvector of the largest eigenvalue, which is safe for every angle
    k = np.array([[m[0, 0] - m[1, 1] - m[2, 2], 0, 0, 0],
                  [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], 0, 0],
                  [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], 0],
                  [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], np.trace(m)]]) / 3
    vector = np.linalg.eigh(k)[1][:, -1]
    return np.asarray(vector if vector[3] >= 0 else -vector)
