"""Mass matrices of numbers: scaled, factorised, and refused if they are singular."""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics.forward_dynamics import REMEDY
from robodyn_ros.dynamics.mass_solver import SINGULAR
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.spatial import Array


class ScaledMass:
    """``M = S A S`` with a diagonal S, so that the diagonal of A consists of ones.

    The elements of M have very different sizes, so A is more accurate to work with, and tells more
    reliably whether M is singular.

    Parameters
    ----------
    mass : ndarray, shape (..., n, n)
        Mass matrix.

    Attributes
    ----------
    known : ndarray of bool, shape (..., 1, 1)
        Whether M is finite; elsewhere, the identity takes its place.

    Raises
    ------
    ValueRangeError
        A mass matrix is singular.
    """

    def __init__(self, mass: Array):
        unit = np.eye(mass.shape[-1])
        self.known = np.asarray(np.isfinite(mass).all(axis=(-2, -1), keepdims=True))
        mass = np.where(self.known, mass, unit)
        try:
            with np.errstate(divide='raise', invalid='raise'):
                self._size = np.sqrt(np.diagonal(mass, axis1=-2, axis2=-1))
                self._scaled = mass / self._size[..., :, None] / self._size[..., None, :]
            self._lower = np.linalg.cholesky(self._scaled)
            regular = bool((self._lower.diagonal(axis1=-2, axis2=-1) ** 2 > SINGULAR).all())
        except (np.linalg.LinAlgError, FloatingPointError):
            regular = False
        if not regular:
            raise ValueRangeError('mass matrix', 'singular', REMEDY)

    @property
    def lower(self) -> Array:
        """Lower Cholesky factor of M, shape (..., n, n)."""
        return np.asarray(self._size[..., :, None] * self._lower)

    def solve(self, force: Array) -> Array:
        """Return the accelerations that forces cause; nan where M is not finite.

        Parameters
        ----------
        force : ndarray, shape (..., n)
            Generalised forces.
        """
        found = np.linalg.solve(self._scaled, (force / self._size)[..., None])[..., 0] / self._size
        return np.asarray(np.where(self.known[..., 0], found, np.nan))
