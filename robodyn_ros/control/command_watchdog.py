"""`CommandWatchdog`: ends the commands of a controller that froze or died; runs as a process.

The controller sends signs of life through shared memory (`Pulse`). If they stop for some time, the
watchdog commands the agreed end in its place: hold, then zero. It stops when the controller is
alive again, and the controller then continues from the last commanded torque.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.agreed_end import AgreedEnd
from robodyn_ros.control.player import ControlLaw
from robodyn_ros.spatial import Array

MOST_JOINTS = 4096
# places of the fields, of eight bytes each, before the three vectors
_BEATS, _LAST_BEAT, _ARMED, _TAKEOVERS, _LAST_STAMP, _LAST_CHECK = range(6)
_FIELDS = 6
SIZE = 8 * (_FIELDS + 3 * MOST_JOINTS)


class Pulse:
    """Memory that a controller and its watchdog share.

    Each field is written by only one of the two, in one copy of eight bytes or of one vector. A
    vector that is read while it is written mixes the torques of two successive cycles.

    Parameters
    ----------
    descriptor : int
        File descriptor of at least `SIZE` bytes of memory.
    """

    def __init__(self, descriptor: int):
        self._memory = mmap.mmap(descriptor, SIZE)
        view = np.frombuffer(self._memory, np.float64)
        self._words = np.frombuffer(self._memory, np.uint64, _FIELDS)
        self._times = view[:_FIELDS]
        self._last, self._hold, self._taken = view[_FIELDS:].reshape(3, MOST_JOINTS)

    def beat(self, now: float, armed: bool) -> None:
        """Signal that the controller is alive, and whether the watchdog must act if it fails."""
        self._words[_BEATS] += np.uint64(1)
        self._times[_LAST_BEAT] = now
        self._words[_ARMED] = armed

    def command(self, torque: Array, stamp: int) -> None:
        """Store the last command, N m or N, and its stamp, ns."""
        self._last[:len(torque)] = torque
        self._words[_LAST_STAMP] = max(stamp, 0)

    def holds(self, torque: Array) -> None:
        """Store the torque that would hold the robot, N m or N."""
        self._hold[:len(torque)] = torque

    def take_over(self, torque: Array) -> None:
        """Store what the watchdog commands, N m or N."""
        self._taken[:len(torque)] = torque
        self._words[_TAKEOVERS] += np.uint64(1)

    def record_check(self, now: float) -> None:
        """Write the time of a check by the watchdog, s of the monotonic clock."""
        self._times[_LAST_CHECK] = now

    @property
    def last_check(self) -> float:
        """Time of the watchdog's last check, s of the monotonic clock; 0: no check yet."""
        return float(self._times[_LAST_CHECK])

    @property
    def beats(self) -> int:
        """Number of signs of life of the controller."""
        return int(self._words[_BEATS])

    @property
    def armed(self) -> bool:
        """Whether the watchdog must act if the controller fails."""
        return bool(self._words[_ARMED])

    @property
    def last_beat(self) -> float:
        """Time of the last sign of life, s of the monotonic clock."""
        return float(self._times[_LAST_BEAT])

    @property
    def last_stamp(self) -> int:
        """Stamp of the last command, ns."""
        return int(self._words[_LAST_STAMP])

    @property
    def takeovers(self) -> int:
        """Number of torques that the watchdog has commanded."""
        return int(self._words[_TAKEOVERS])

    def vectors(self, n: int) -> tuple[Array, Array, Array]:
        """Return the last command, the holding torque, and the last torque of the watchdog."""
        return self._last[:n].copy(), self._hold[:n].copy(), self._taken[:n].copy()


@dataclass(frozen=True)
class Terms:
    """When and how the watchdog acts.

    Attributes
    ----------
    names : tuple of str
        Joints that are commanded.
    order : tuple of int
        Indices of the joints in the order of the plain list of commands.
    timeout : float
        Time without a sign of life after which the watchdog acts, s.
    zero_after : float
        Time after which the torque goes to zero, s.
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
    def of(cls, law: ControlLaw, order: Sequence[int], values: Mapping[str, Any],
           period: float) -> Terms:
        """Return the terms for a law.

        Parameters
        ----------
        law : ControlLaw
            Dynamics, tuning and tolerances of the controller.
        order : sequence of int
            Indices of the joints in the order of the plain list of commands.
        values : mapping
            Parameters with ``state_timeout`` and ``ramp``, s.
        period : float
            Time between two signs of life, s.
        """
        joints, tuning = law.dynamics.joints, law.tuning
        limit = np.full(joints.n, np.inf) if tuning is None else tuning.rate_limit
        return cls(tuple(joints.joint_names), tuple(order),
                   max(values['state_timeout'], 3 * period),
                   0.0 if tuning is None else tuning.zero_after, values['ramp'],
                   tuple(limit.tolist()))


class CommandWatchdog:
    """Watches the signs of life of a controller, and commands torques in its place if they stop.

    Parameters
    ----------
    pulse : Pulse
        Memory shared with the controller.
    """

    def __init__(self, pulse: Pulse):
        self._pulse = pulse
        self._beats, self._seen = -1, 0.0
        self._end: AgreedEnd | None = None
        self._since = 0.0
        self._zero = False

    @property
    def acting(self) -> bool:
        """Whether the watchdog commands in place of the controller."""
        return self._end is not None

    @property
    def done(self) -> bool:
        """Whether the watchdog acts and its torque has reached zero."""
        return self._zero

    def tick(self, terms: Terms | None, dead: bool, now: float) -> tuple[Array, int] | None:
        """Return the torque to command and its stamp (ns), or None.

        It must be called some hundred times per second.

        Parameters
        ----------
        terms : Terms, optional
            How to act; None if there is nothing to command yet.
        dead : bool
            Whether the controller's process is known to be gone.
        now : float
            Monotonic time, s.
        """
        self._pulse.record_check(now)
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
