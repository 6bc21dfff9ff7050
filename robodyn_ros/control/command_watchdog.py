"""`CommandWatchdog`: what follows when a controller freezes or dies; runs in a process of its own.

The controller tells in shared memory that it is alive (`Pulse`). When it does not do so for some
time, the watchdog commands the agreed end in its place: hold, then zero. It ends when the
controller is alive again, and the controller then goes on from the torque that was commanded last.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.agreed_end import AgreedEnd
from robodyn_ros.control.player import Law
from robodyn_ros.spatial import Array

MOST_JOINTS = 128
_HEAD = struct.Struct('<QdQQQ')  # beats, time of the last, armed, takeovers, last stamp
_VECTOR = 8 * MOST_JOINTS
SIZE = _HEAD.size + 3 * _VECTOR


class Pulse:
    """Memory that a controller and its watchdog share.

    Both write different fields, each with one copy of eight bytes or one vector; a vector that is
    read while it is written is a mixture of two torques a cycle apart.

    Parameters
    ----------
    descriptor : int
        File descriptor of at least `SIZE` bytes of memory.
    """

    def __init__(self, descriptor: int):
        self._memory = mmap.mmap(descriptor, SIZE)
        view = np.frombuffer(self._memory, np.float64)
        first = _HEAD.size // 8
        self._words = np.frombuffer(self._memory, np.uint64, 5)
        self._times = view[:5]
        self._last, self._hold, self._taken = (
            view[first + k * MOST_JOINTS:first + (k + 1) * MOST_JOINTS] for k in range(3))

    def beat(self, now: float, armed: bool) -> None:
        """Say that the controller is alive, and whether commands must be brought to an end."""
        self._words[0] += np.uint64(1)
        self._times[1] = now
        self._words[2] = armed

    def command(self, torque: Array, stamp: int) -> None:
        """Say what was commanded last, N m or N, and its stamp, ns."""
        self._last[:len(torque)] = torque
        self._words[4] = max(stamp, 0)

    def holds(self, torque: Array) -> None:
        """Say what would hold the robot, N m or N."""
        self._hold[:len(torque)] = torque

    def take_over(self, torque: Array) -> None:
        """Say what the watchdog commands, N m or N."""
        self._taken[:len(torque)] = torque
        self._words[3] += np.uint64(1)

    @property
    def beats(self) -> int:
        """How often the controller said that it is alive."""
        return int(self._words[0])

    @property
    def armed(self) -> bool:
        """Whether commands must be brought to an end."""
        return bool(self._words[2])

    @property
    def last_beat(self) -> float:
        """When the controller was alive last, s of the monotonic clock."""
        return float(self._times[1])

    @property
    def last_stamp(self) -> int:
        """Stamp of the last command, ns."""
        return int(self._words[4])

    @property
    def takeovers(self) -> int:
        """How many torques the watchdog has commanded."""
        return int(self._words[3])

    def vectors(self, n: int) -> tuple[Array, Array, Array]:
        """Return what was commanded last, what holds, and what the watchdog commanded."""
        return self._last[:n].copy(), self._hold[:n].copy(), self._taken[:n].copy()


@dataclass(frozen=True)
class Terms:
    """When and how the watchdog acts.

    Attributes
    ----------
    names : tuple of str
        Joints that are commanded.
    order : tuple of int
        Which of them are commanded as a plain list, in this order.
    timeout : float
        s without a sign of life, after which it acts.
    zero_after : float
        s after which the torque goes to zero.
    ramp : float
        Duration of each transition, s.
    rate_limit : tuple of float
        Largest change of torque, N m/s or N/s; inf: none.
    """

    names: tuple[str, ...]
    order: tuple[int, ...]
    timeout: float
    zero_after: float
    ramp: float
    rate_limit: tuple[float, ...]

    @classmethod
    def of(cls, law: Law, order: Sequence[int], values: Mapping[str, Any], period: float) -> Terms:
        """Return the terms of a law.

        Parameters
        ----------
        law : Law
            What the controller acts by.
        order : sequence of int
            Indices of the joints in a plain list of commands.
        values : mapping
            With ``state_timeout`` and ``ramp``, s.
        period : float
            s between two signs of life.
        """
        joints, tuning = law.dynamics.joints, law.tuning
        limit = np.full(joints.n, np.inf) if tuning is None else tuning.rate_limit
        return cls(tuple(joints.joint_names), tuple(order),
                   max(values['state_timeout'], 3 * period),
                   0.0 if tuning is None else tuning.zero_after, values['ramp'],
                   tuple(limit.tolist()))


class CommandWatchdog:
    """Watches the pulse of a controller and answers with torques while it must act.

    Parameters
    ----------
    pulse : Pulse
        Memory that it shares with the controller.
    """

    def __init__(self, pulse: Pulse):
        self._pulse = pulse
        self._beats, self._seen = -1, 0.0
        self._end: AgreedEnd | None = None
        self._since = 0.0
        self._zero = False

    @property
    def acting(self) -> bool:
        """Whether it commands in place of the controller."""
        return self._end is not None

    @property
    def done(self) -> bool:
        """Whether it acts and its torque is zero for good."""
        return self._zero

    def tick(self, terms: Terms | None, dead: bool, now: float) -> tuple[Array, int] | None:
        """Return the torque to command and its stamp (ns), or None.

        It is called some hundred times a second.

        Parameters
        ----------
        terms : Terms, optional
            How to act; None: there is nothing to command yet.
        dead : bool
            Whether the controller's process is known to be gone.
        now : float
            Monotonic time, s.
        """
        beats = self._pulse.beats
        if beats != self._beats:
            self._beats, self._seen, self._end, self._zero = beats, now, None, False
            if not dead:
                return None
        if terms is None or (self._end is None and not self._pulse.armed):
            return None
        if self._end is None:
            if not dead and now - self._seen <= terms.timeout:
                return None
            n = len(terms.names)
            last, hold, _ = self._pulse.vectors(n)
            late = max(now - self._pulse.last_beat, 0.0)
            self._end = AgreedEnd(last, hold, max(terms.zero_after - late, 0.0), terms.ramp,
                                  np.array(terms.rate_limit))
            self._since = now
        elapsed = now - self._since
        self._zero = self._end.finished(elapsed)
        torque = self._end.torque(elapsed)
        self._pulse.take_over(torque)
        return torque, self._pulse.last_stamp + int((now - self._pulse.last_beat) * 1e9)
