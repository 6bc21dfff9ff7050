"""`play`: sends a script to the controller piece by piece while the robot follows it.

The controller never has more than a short part of the motion, the lease. Each piece overlaps the
previous one and ends with a stop. If this process dies or hangs, the lease expires, and the
controller brakes the robot along the path.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from robodyn_ros.control import Reference
from robodyn_ros.errors import ExperimentError
from robodyn_ros.experiment.recorder import Recorder
from robodyn_ros.experiment.script import Script
from robodyn_ros.experiment.state_monitor import Sample, StateMonitor

TICK = 0.02  # s between two checks of the robot
RENEWAL = 0.75  # remaining fraction of the lease below which the next piece is sent
REPEATED = 0.4  # s, wall time after which a piece is sent again if the motion has not begun
CATCHING_UP = 0.2  # s, enough to receive all states that were queued while this process hung

Send = Callable[[Reference, int], None]
Tick = Callable[[str, float], None]


class _Lease:
    """The part of a script, which starts at a stamp (ns), that the controller has received."""

    def __init__(self, script: Script, start: int, seconds: float, send: Send):
        self._script, self._start, self._seconds, self._send = script, start, seconds, send
        self._leaves = -np.inf  # time at which the stop of the last piece begins, s from the start
        self._piece: Reference | None = None  # the last one
        self._sent = 0.0  # when it was sent, s of the monotonic clock

    def expired(self, now: float) -> bool:
        """Return whether the controller has begun to brake at a time (s)."""
        return now > self._leaves > -np.inf

    def renew(self, now: float) -> None:
        """Send the next piece if it is due at a time (s).

        Before the start, the last piece is repeated: a controller that this process has found may
        not have found this process yet, and then it receives nothing.
        """
        if self._leaves - now < RENEWAL * self._seconds:
            self._piece, self._leaves = self._script.piece(now, now + self._seconds)
        elif now >= 0 or time.monotonic() - self._sent < REPEATED:
            return
        if self._piece is not None:
            self._send(self._piece, self._start)
            self._sent = time.monotonic()

    def stop(self, seen: float, now: float) -> None:
        """Brake from a time on (s), unless the controller is already braking.

        The piece begins at the time of the last received state, in case the robot's clock has
        stopped.
        """
        if self._leaves > -np.inf and not self.expired(now):
            piece, self._leaves = self._script.piece(seen, now)
            self._send(piece, self._start)


def play(monitor: StateMonitor, script: Script, send: Send, recorder: Callable[[str], Recorder],
         tick: Tick, *, delay: float, lease: float) -> int:
    """Play a script and record its windows; brake the robot if anything is wrong.

    Parameters
    ----------
    monitor : StateMonitor
        The monitor of the robot's states.
    script : Script
        The motion.
    send : callable
        ``send(piece, start)`` sends a part of the motion to the controller. Times are relative to
        the stamp ``start``, ns, on the clock of the joint states. A part that overlaps an earlier
        one is identical to it until the stop of the earlier part begins.
    recorder : callable
        Returns a new recorder for the window with a given name.
    tick : callable
        ``tick(name, fraction)`` is called many times per second with the name of the current part
        and its completed fraction. An exception that it raises stops the robot.
    delay : float
        Time until the motion starts, s on the clock of the joint states.
    lease : float
        Duration of the motion that the controller has in advance, s.

    Returns
    -------
    int
        Stamp at which the script began, ns.

    Raises
    ------
    ExperimentError
        There is a problem with the robot, its states or the disk, or this process was too slow.
        Exceptions of ``tick`` are passed on.
    """
    monitor.begin()
    recorders = [recorder(window.name) for window in script.windows]  # this may take seconds
    try:
        start = max(monitor.check().stamp + int(delay * 1e9), 1)  # a stamp of 0 means "at once"
    except BaseException:
        for one in recorders:
            one.close()
        monitor.end()
        raise
    try:
        for window, one in zip(script.windows, recorders, strict=True):
            monitor.add_recorder(one, start + int(window.start * 1e9),
                                 start + int(window.end * 1e9))
        _follow(monitor, script, _Lease(script, start, lease, send), start, tick, lease)
        monitor.check()
    finally:
        monitor.end()
    return start


def _follow(monitor: StateMonitor, script: Script, held: _Lease, start: int, tick: Tick,
            lease: float) -> None:
    latest = monitor.check()
    looked = time.monotonic()
    try:
        while True:
            latest = _current(monitor, looked, lease)
            looked = time.monotonic()
            seen = (latest.stamp - start) * 1e-9
            if seen > script.reference.duration:
                return
            if held.expired(seen):
                raise ExperimentError(f'the server was suspended for more than {lease:g} s, and '
                                      'the controller has braked the robot')
            # newer states may have arrived meanwhile; this one is compared with its own reference
            monitor.check_motion(latest, script.reference.sample(seen)[0])
            held.renew(seen)
            tick(*script.place(seen))
            time.sleep(TICK)
    except BaseException:
        seen = (latest.stamp - start) * 1e-9
        held.stop(seen, seen + time.monotonic() - latest.arrived)
        raise


def _current(monitor: StateMonitor, looked: float, lease: float) -> Sample:
    """Return the latest state; if this process was suspended, first receive all queued states."""
    if time.monotonic() - looked > lease / 2:
        time.sleep(CATCHING_UP)
    return monitor.check()
