"""Friction of a reference that rests: its direction stays that of the last motion.

An arm that came to rest moving upwards is still held by friction in that direction. Without this
the sign of a velocity that is zero, or round-off of a spline, would let the torque of Coulomb
friction vanish or chatter. With a smooth sign (``friction_width`` above 0) friction fades by
itself, and nothing is kept.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.spatial import Array

RESTING = 1e-6  # rad/s or m/s: a slower reference rests


class RestingDirection:
    """Remembers in which direction each joint of a reference moved last."""

    def __init__(self) -> None:
        self._last: Array | None = None

    def forget(self) -> None:
        """Begin as if nothing had moved."""
        self._last = None

    def __call__(self, qd: Array, friction_width: float) -> Array:
        """Return the velocities with the direction that friction has, shape (n,).

        Parameters
        ----------
        qd : ndarray, shape (n,)
            Velocities of the reference, rad/s or m/s.
        friction_width : float
            Of the dynamics.
        """
        if friction_width:
            return qd
        rests = np.abs(qd) <= RESTING
        last = self._last
        if last is None or last.shape != qd.shape:
            last = np.zeros_like(qd)
        self._last = np.where(rests, last, np.sign(qd))
        return np.where(rests, RESTING * self._last, qd)
