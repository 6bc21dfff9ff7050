"""`LoopDelay`: how long a control loop takes from a joint state to the torque that answers it."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

REMEMBERED = 100  # states whose answer may still come


class LoopDelay:
    """Measures delays between published states and the torques that answer them.

    A torque with the stamp of a state answers this one; one without a stamp answers the last.
    """

    def __init__(self) -> None:
        self._published: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._delays: list[float] = []
        self._cycles = 0  # states published since, largest

    def state(self, stamp: int) -> None:
        """Take note of a state that is published now; its stamp in ns."""
        self._published.append((stamp, time.monotonic()))

    def answer(self, stamp: int) -> None:
        """Take note of a torque that arrives now; its stamp in ns, 0: it has none."""
        now = time.monotonic()
        for since, (when, published) in enumerate(reversed(self._published)):
            if stamp in (0, when):
                self._delays.append(now - published)
                self._cycles = max(self._cycles, since)
                return

    def report(self) -> dict[str, Any]:
        """Return what was measured since the last report, for diagnostics."""
        delays, self._delays = self._delays, []
        cycles, self._cycles = self._cycles, 0
        if not delays:
            return {'loop_delay_mean_ms': '', 'loop_delay_max_ms': '', 'loop_delay_cycles': ''}
        return {'loop_delay_mean_ms': f'{1e3 * sum(delays) / len(delays):.3f}',
                'loop_delay_max_ms': f'{1e3 * max(delays):.3f}', 'loop_delay_cycles': cycles}
