"""`Windows`: means of states and residuals over short times of free motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.observation.contacts import ACCIDENTAL, NONE
from robodyn_ros.spatial import Array

WINDOW = 0.1  # s
LONGEST_GAP = 0.05  # s between two states, after which a window begins anew
SLOWEST = 0.02  # rad/s or m/s; slower joints may stick
SAME_WAY = 1 - 1e-9  # smallest ratio of |mean velocity| to mean speed in motion without a reversal


@dataclass(frozen=True, eq=False)
class Window:
    """Means over one window.

    Attributes
    ----------
    q, qd, residual : ndarray, shape (n,)
        Positions, velocities and residuals.
    moving : ndarray of bool, shape (n,)
        Joints that moved without a reversal or a rest.
    touched : bool
        Whether there was an intended contact.
    """

    q: Array
    qd: Array
    residual: Array
    moving: Array
    touched: bool


class Windows:
    """Averages states without an accidental contact over windows.

    Parameters
    ----------
    n : int
        Number of joints.
    """

    def __init__(self, n: int):
        self._sums = np.zeros((4, n))
        self.reset()

    def reset(self) -> None:
        """Begin a new window with the next state."""
        self._start = self._last = -np.inf
        self._count, self._touched = 0, False

    def add(self, t: float, q: Array, qd: Array, residual: Array, contact: str) -> Window | None:
        """Add a state at a time, s; return the window that it completes, if it does."""
        if contact == ACCIDENTAL:
            self.reset()
            return None
        if not 0 < t - self._last <= LONGEST_GAP:
            self.reset()
            self._start = t
            self._sums[:] = 0.0
        self._last = t
        sums = self._sums
        sums[0] += q
        sums[1] += qd
        sums[2] += residual
        sums[3] += np.abs(qd)
        self._count += 1
        self._touched |= contact != NONE
        if t - self._start < WINDOW - 1e-9:
            return None
        q, qd, residual, speed = sums / self._count
        window = Window(q, qd, residual, (speed > SLOWEST) & (np.abs(qd) >= SAME_WAY * speed),
                        self._touched)
        self._start, self._count, self._touched = t, 0, False
        sums[:] = 0.0
        return window
