"""How long the machine itself delays a real-time process; real-time tests allow for it."""

import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

STEP = 0.005  # s that the control process sleeps at a time

CONTROL = f"""
import sys, time
step, last = {STEP}, time.monotonic()
while True:
    time.sleep(step)
    now = time.monotonic()
    if now - last > 2 * step:
        print(repr(now), repr(now - last - step), flush=True)
    last = now
"""


class StallRecorder:
    """A control process that does nothing but sleep, and reports each time that it woke too late.

    ``time.monotonic`` is the system's clock, which all processes share. A test in real time adds
    ``worst(since)`` to the time that it allows: what delayed the control process may have delayed
    the processes under test as well.
    """

    def __init__(self):
        self._process = subprocess.Popen([sys.executable, '-u', '-c', CONTROL],
                                         stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self._stalls, self._rest = [], ''

    def worst(self, since):
        """Return the longest stall (s) that ended after a time of ``time.monotonic``."""
        self._read()
        return max((length for end, length in self._stalls if end >= since), default=0.0)

    def total(self, since):
        """Return the sum of all stalls (s) that ended after a time of ``time.monotonic``."""
        self._read()
        return sum(length for end, length in self._stalls if end >= since)

    def close(self):
        """End the control process."""
        self._process.kill()
        self._process.communicate()

    def _read(self):
        pipe = self._process.stdout.fileno()
        while select.select([pipe], [], [], 0)[0]:
            text = os.read(pipe, 1 << 16).decode()
            if not text:
                break
            self._rest += text
        *lines, self._rest = self._rest.split('\n')
        self._stalls += [tuple(map(float, line.split())) for line in lines if line]



class Starvation:
    """Tells whether a process has waited longer for a core than it has had one.

    `StallRecorder` does not show this: its process sleeps most of the time and is therefore given
    a core at once, whereas a process that computes may have to wait.

    Parameters
    ----------
    pid : int
        The process, from now on.
    """

    def __init__(self, pid):
        self._threads = Path(f'/proc/{pid}/task')
        self._before = self._times()

    def __bool__(self):
        now = self._times()
        had, waited = (sum(times[k] - self._before.get(thread, (0, 0))[k]
                           for thread, times in now.items()) for k in (0, 1))
        return waited > had

    def _times(self):
        """Return by thread how long it had and how long it waited for a core, ns."""
        found = {}
        with suppress(OSError):  # it has ended, or the kernel does not tell
            for thread in self._threads.iterdir():
                had, waited, _ = map(int, (thread / 'schedstat').read_text().split())
                found[thread.name] = had, waited
        return found
