"""Results of dynamics that consist of several arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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


def times(matrix: Array, vector: Array) -> Array:
    """Return matrix-vector products, of one matrix or of N."""
    return np.asarray((matrix @ vector[..., None])[..., 0])
