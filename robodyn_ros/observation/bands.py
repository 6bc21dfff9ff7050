"""`Bands`: separates slow from fast residuals."""

from __future__ import annotations

import numpy as np

from robodyn_ros.spatial import Array


class Bands:
    """A low-pass filter of order 1; what it leaves out is the fast part.

    Parameters
    ----------
    separation : float
        Cutoff frequency, Hz.
    """

    def __init__(self, separation: float):
        self._speed = 2 * np.pi * separation
        self.reset()

    def reset(self) -> None:
        """Forget all residuals."""
        self._last: tuple[float, Array] | None = None

    def update(self, t: float, residual: Array) -> Array:
        """Return the slow part of a residual at a time, s."""
        if self._last is None or t <= self._last[0]:
            self._last = t, np.zeros_like(residual)
            return self._last[1]
        x = self._speed * (t - self._last[0])
        low = self._last[1] + x / (1 + x) * (residual - self._last[1])
        self._last = t, low
        return low
