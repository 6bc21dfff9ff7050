"""`Bands` separates slow from fast residuals; `Conditions` tells when both may be large."""

from __future__ import annotations

import numpy as np

from robodyn_ros.spatial import Array

SMOOTH = 0.01  # rad/s or m/s, width of the sign of Coulomb friction if the dynamics have none


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


class Conditions:
    """What makes residuals large without contact: inertial torques, and joints that stand still.

    The largest values of the recent past count; they decay with the time constant of `Bands`,
    as an error of the model does in the slow part of a residual.

    Parameters
    ----------
    separation : float
        Cutoff frequency of the bands, Hz.
    """

    def __init__(self, separation: float):
        self._speed = 2 * np.pi * separation
        self.reset()

    def reset(self) -> None:
        """Forget the past."""
        self._last: tuple[float, Array] | None = None

    def update(self, t: float, qd: Array, rate: Array | None) -> Array:
        """Return the conditions at a time, shape (2, n).

        Parameters
        ----------
        t : float
            Time, s.
        qd : ndarray, shape (n,)
            Velocities.
        rate : ndarray, shape (n,), optional
            Inertial torques, `MomentumObserver.rate`; default: zero.
        """
        held = np.array([np.zeros_like(qd) if rate is None else np.abs(rate), standing_part(qd)])
        if self._last is not None and t > self._last[0]:
            held = np.maximum(held, self._last[1] / (1 + self._speed * (t - self._last[0])))
        self._last = t, held
        return held


def standing_part(qd: Array) -> Array:
    """Return the fraction of Coulomb friction that the smooth sign leaves out, 1 at rest."""
    return np.asarray(1 - np.abs(qd) / np.hypot(qd, SMOOTH))
