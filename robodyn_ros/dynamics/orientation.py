"""Angles that describe an orientation, and the matrix between their rates and angular velocity.

``omega = T(phi) dphi/dt`` in root axes (Velagić ch. 4; Siciliano and others, section 3.6). The
columns of T are the axes of the three elementary rotations, each rotated by those before it.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.numerics import pseudo_inverse
from robodyn_ros.spatial import Array

ANGLES = ('rpy', 'zyz')
SINGULAR = 1e-6  # singular values of T below this fraction of the largest count as zero


def angles_of(rotation: Array, kind: str) -> Array:
    """Return the angles of rotation matrices, shape (..., 3), rad.

    Parameters
    ----------
    rotation : ndarray, shape (..., 3, 3)
        Rotations from link axes to root axes.
    kind : {'rpy', 'zyz'}
        Roll, pitch and yaw as in URDF, ``Rz(yaw) Ry(pitch) Rx(roll)``, or ``Rz(a) Ry(b) Rz(c)``.
    """
    r = rotation
    if kind == 'rpy':
        parts = [np.arctan2(r[..., 2, 1], r[..., 2, 2]),
                 np.arctan2(-r[..., 2, 0], np.hypot(r[..., 0, 0], r[..., 1, 0])),
                 np.arctan2(r[..., 1, 0], r[..., 0, 0])]
    else:
        parts = [np.arctan2(r[..., 1, 2], r[..., 0, 2]),
                 np.arctan2(np.hypot(r[..., 0, 2], r[..., 1, 2]), r[..., 2, 2]),
                 np.arctan2(r[..., 2, 1], -r[..., 2, 0])]
    return np.stack(parts, axis=-1)


def rate_matrix(angles: Array, kind: str) -> Array:
    """Return T, shape (..., 3, 3), of ``omega = T dphi/dt``."""
    first, second = (angles[..., 2], angles[..., 1]) if kind == 'rpy' else (
        angles[..., 0], angles[..., 1])
    zero, one = np.zeros_like(first), np.ones_like(first)
    upright = np.stack([zero, zero, one], axis=-1)
    middle = np.stack([-np.sin(first), np.cos(first), zero], axis=-1)
    along, down = (np.cos(second), -np.sin(second)) if kind == 'rpy' else (
        np.sin(second), np.cos(second))
    last = np.stack([np.cos(first) * along, np.sin(first) * along, down], axis=-1)
    columns = [last, middle, upright] if kind == 'rpy' else [upright, middle, last]
    return np.stack(columns, axis=-1)


def rate_drift(matrix: Array, rates: Array, kind: str) -> Array:
    """Return ``dT/dt dphi/dt``, shape (..., 3), rad/s^2.

    Each axis rotates with the elementary rotations before it.
    """
    order = (2, 1, 0) if kind == 'rpy' else (0, 1, 2)
    carried, total = np.zeros_like(rates), np.zeros_like(rates)
    for k in order:
        turn = matrix[..., k] * rates[..., k:k + 1]
        total = total + np.cross(carried, turn)
        carried = carried + turn
    return total


def inverse_rates(matrix: Array) -> Array:
    """Return the inverse of T, of its shape; the pseudo-inverse where the angles are singular.

    It is nan where T is not finite.
    """
    return pseudo_inverse(matrix, SINGULAR)
