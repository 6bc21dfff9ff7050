"""Operational-space dynamics (Kolyubin 1.18)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.dynamics.scaled_mass import ScaledMass
from robodyn_ros.spatial import Array

SINGULAR = 1e-6  # singular values of J M^-1/2 below this fraction of the largest count as zero


@dataclass(frozen=True)
class OperationalSpace:
    """``F = Lambda x'' + mu + rho`` at a link; m task axes.

    Attributes
    ----------
    Lambda : ndarray, shape (m, m) or (N, m, m)
        Inertia seen at the link. In a singular direction, where it would be infinite, it is zero
        (pseudo-inverse). It is nan, as mu and rho are, where the state is not finite; the rank is
        0 there.
    mu, rho : ndarray, shape (m,) or (N, m)
        Coriolis and gravity terms, N and N m.
    rank : int or ndarray, shape (N,)
        Number of task directions in which the robot can accelerate the link.
    singular : bool or ndarray, shape (N,)
        Whether ``rank`` is below m: too few joints, or a singular pose.
    redundancy : int or ndarray, shape (N,)
        ``n - rank``, the number of independent joint motions that do not move the link.
    condition : float or ndarray, shape (N,)
        Condition number of ``J M^-1 J'``; inf if it is exactly singular.
    """

    Lambda: Array
    mu: Array
    rho: Array
    rank: Any
    singular: Any
    redundancy: Any
    condition: Any


def operational_space(jacobian: Array, drift: Array, mass_matrix: Array, coriolis: Array,
                      gravity: Array) -> OperationalSpace:
    """Return Lambda, mu and rho.

    Parameters
    ----------
    jacobian : ndarray, shape (..., m, n)
    drift : ndarray, shape (..., m)
        ``dJ/dt qd``.
    mass_matrix : ndarray, shape (..., n, n)
    coriolis, gravity : ndarray, shape (..., n)
        N m or N.

    Raises
    ------
    ValueRangeError
        A mass matrix is singular.
    """
    m, n = jacobian.shape[-2:]
    mass = ScaledMass(mass_matrix)
    known = mass.known & np.isfinite(jacobian).all(axis=(-2, -1), keepdims=True)
    jacobian = np.where(known, jacobian, 0.0)
    lower = mass.lower
    # J M^-1 J' = A A' with A = J L^-T: the squares of its singular values are those of Lambda^-1
    scaled = np.swapaxes(np.linalg.solve(lower, np.swapaxes(jacobian, -1, -2)), -1, -2)
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    kept = values > SINGULAR * values[..., :1]
    rank = kept.sum(axis=-1)
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    weighted = left * inverse[..., None, :]
    inertia = weighted @ np.swapaxes(weighted, -1, -2)
    smallest = values[..., -1] if m <= n else np.zeros_like(values[..., -1])
    with np.errstate(divide='ignore'):
        condition = np.where(smallest > 0, (values[..., 0] / np.where(
            smallest > 0, smallest, 1.0)) ** 2, np.inf)
    acceleration = scaled @ np.linalg.solve(lower, np.stack([coriolis, gravity], axis=-1))
    mu = np.einsum('...ij,...j->...i', inertia, acceleration[..., 0] - drift)
    rho = np.einsum('...ij,...j->...i', inertia, acceleration[..., 1])
    single = jacobian.ndim == 2
    inertia = np.where(known, inertia, np.nan)
    return OperationalSpace(inertia, mu, rho, int(rank) if single else rank,
                            bool(rank < m) if single else rank < m,
                            int(n - rank) if single else n - rank,
                            float(condition) if single else condition)
