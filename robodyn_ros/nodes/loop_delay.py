"""`LoopDelay`: measures the time from a joint state to the torque that responds to it."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

REMEMBERED = 100  # number of states for which a response may still arrive


class LoopDelay:
    """Measures delays between published states and the torques that respond to them.

    A torque responds to the state with the same stamp; without a stamp, to the last state.
    """

    def __init__(self) -> None:
        self._published: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._delays: list[float] = []
        self._cycles = 0  # largest number of states published before a response arrived

    def state(self, stamp: int) -> None:
        """Register a state that is published now, with its stamp, ns."""
        self._published.append((stamp, time.monotonic()))

    def answer(self, stamp: int) -> None:
        """Register a torque that arrives now, with its stamp, ns; 0: without a stamp."""
        now = time.monotonic()
        for since, (when, published) in enumerate(reversed(self._published)):
            if stamp in (0, when):
                self._delays.append(now - published)
                self._cycles = max(self._cycles, since)
                return

    def report(self) -> dict[str, Any]:
        """Return the delays since the last report, for diagnostics."""
        delays, self._delays = self._delays, []
        cycles, self._cycles = self._cycles, 0
        if not delays:
            return {'loop_delay_mean_ms': '', 'loop_delay_max_ms': '', 'loop_delay_cycles': ''}
        return {'loop_delay_mean_ms': f'{1e3 * sum(delays) / len(delays):.3f}',
                'loop_delay_max_ms': f'{1e3 * max(delays):.3f}', 'loop_delay_cycles': cycles}
