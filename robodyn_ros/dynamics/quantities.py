"""Results of dynamics that consist of several arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.spatial import Array


class Terms(NamedTuple):
    """The terms of the equations of motion.

    Mass matrix M, shape (n, n); Coriolis and centrifugal forces C qd, gravity g and friction,
    shape (n,) each, N m or N. For N states, the shapes are preceded by N.
    """

    mass_matrix: Array
    coriolis: Array
    gravity: Array
    friction: Array


class Energy(NamedTuple):
    """Kinetic and potential energy, J."""

    kinetic: Any
    potential: Any


class FullMotion(NamedTuple):
    """The motion of all b joints of the tree for a motion of the n independent joints.

    Accelerations are ``matrix @ qdd + drift`` with the qdd of the independent joints. The shapes
    are (b,) for ``q``, ``qd`` and ``drift``, and (b, n) for ``matrix``. For N states, the shapes
    are preceded by N.
    """

    q: Array
    qd: Array
    matrix: Array
    drift: Array

    def qdd(self, independent: Array) -> Array:
        """Return the accelerations of all joints for those of the independent joints."""
        return times(self.matrix, independent) + self.drift

    def reduce(self, torque: Array) -> Array:
        """Return ``matrix' tau``: torques of all joints, reduced to the independent joints."""
        return np.asarray(np.einsum('...ij,...i->...j', self.matrix, torque))

    def reduce_mass(self, mass: Array) -> Array:
        """Return ``matrix' M matrix``: the mass matrix of the independent joints."""
        return np.asarray(np.swapaxes(self.matrix, -1, -2) @ mass @ self.matrix)


def times(matrix: Array, vector: Array) -> Array:
    """Return matrix-vector products, of one matrix or of N."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def state_by_state(function: Callable[..., Array], q: Array, qd: Array, near: ArrayLike | None,
                   ) -> Array:
    """Return the results of a function of single states for N states, shape (N, ...).

    Parameters
    ----------
    function : callable
        ``function(q, qd, near=near)``.
    q, qd : ndarray, shape (k,) or (N, k)
        States; a single one is repeated.
    near : array-like, shape (b,) or (N, b), or None
        See `RobotDynamics`.
    """
    count = max(len(array) for array in (q, qd) if array.ndim == 2)
    rows = [None] * count if near is None else np.broadcast_to(
        near, (count, np.shape(near)[-1]))
    return np.array([function(*one, near=place) for *one, place in zip(
        *(np.broadcast_to(array, (count, array.shape[-1])) for array in (q, qd)), rows,
        strict=True)])
