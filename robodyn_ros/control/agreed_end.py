"""`AgreedEnd`: how commands end, from the last torque to a holding torque and then to zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.spatial import Array

STEEPEST = 1.5  # slope of `smooth_step` in its middle


def smooth_step(s: float) -> float:
    """Return ``s^2 (3 - 2 s)`` with s limited to 0 to 1: a step with zero slope at its ends."""
    s = min(max(s, 0.0), 1.0)
    return s * s * (3 - 2 * s)


@dataclass(frozen=True, eq=False)
class AgreedEnd:
    """The torque that is commanded after regular commands end: first hold, then zero.

    Attributes
    ----------
    last : ndarray, shape (n,)
        Last commanded torque, N m or N.
    hold : ndarray, shape (n,)
        Torque that holds the robot against gravity in its last pose, N m or N; zero in the open
        loop.
    zero_after : float
        Time after the last command at which the torque begins to fall to zero, s.
    ramp : float
        Duration of each of the two transitions, s; longer if ``rate_limit`` requires it.
    rate_limit : ndarray, shape (n,)
        Largest change of torque, N m/s or N/s; inf: none.
    """

    last: Array
    hold: Array
    zero_after: float
    ramp: float
    rate_limit: Array

    @classmethod
    def of_open_loop(cls, last: Array, ramp: float) -> AgreedEnd:
        """Return the end of commands without measured states: a fade to zero."""
        return cls(last, np.zeros_like(last), 0.0, ramp, np.full(len(last), np.inf))

    def torque(self, elapsed: float) -> Array:
        """Return the torque at a time (s) after the last command, shape (n,)."""
        first, _, second = self._times()
        to_hold = smooth_step(elapsed / first) if first else 1.0
        torque = self.last + to_hold * (self.hold - self.last)
        late = elapsed - max(self.zero_after, first)
        to_zero = (smooth_step(late / second) if second else 1.0) if late >= 0 else 0.0
        return np.asarray((1 - to_zero) * torque)

    def finished(self, elapsed: float) -> bool:
        """Return whether the torque is zero and stays zero at a time (s)."""
        return elapsed >= sum(self._times()[1:])

    def _times(self) -> tuple[float, float, float]:
        """Return duration of the first transition, start of the second, and its duration, s."""
        first = max(self.ramp, self._shortest(self.hold - self.last))
        return first, max(self.zero_after, first), max(self.ramp, self._shortest(self.hold))

    def _shortest(self, change: Array) -> float:
        return float(np.max(STEEPEST * np.abs(change) / self.rate_limit, initial=0.0))
