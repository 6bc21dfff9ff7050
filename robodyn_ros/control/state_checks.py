"""Checks measured states: their age, and whether they are plausible."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.model import Joints
from robodyn_ros.spatial import Array

SETTLED = 0.01  # s, time for which states must be late before the new delay counts as normal
# While a queue of states is processed, their age decreases at several times the rate of the clock.
DRAINING = 0.5  # s of age per second, the slowest decrease that indicates a queue
# A time without a sign of life of this process is a stall if it is longer than both of these:
STALL = 0.05  # s
STALLS = 10  # times the usual time between two signs of life
SAME_CLOCK = 0.1  # s, largest difference of a stamp from the clock of the system that set it
READINGS = 10  # largest number of attempts to read two clocks at the same time
APART = 0.001  # s between the readings, above which the attempt is repeated
DISTRUST = 2.0  # s after a stall or a jump, in which late states count as having waited in queues
QUEUED = 60.0  # s, longest time for which a state may have waited in a queue after a jump
# Bounds of plausible states. They are generous, since a robot that is slightly beyond its limits
# needs its controller most.
FURTHER = 0.1  # fraction of the joint range, plus rad or m, by which a position may be outside
LARGEST = 1e5  # rad or m, bound of positions of joints without limits
FASTER = 3.0  # factor of the velocity limit
SLACK = 0.05  # rad or m, tolerance of jumps and of positions against integrated velocities
MEMORY = 0.2  # s, time over which velocities are integrated
PART = 0.5  # fraction of the travel in that time by which positions and velocities may differ
GAP = 0.1  # s between states, above which velocities are not integrated


@dataclass(frozen=True)
class Implausible:
    """The reason why a state is not used.

    Attributes
    ----------
    kind : str
        ``implausible_position``, ``implausible_jump`` or ``implausible_velocity``.
    text : str
        What is wrong, with the name of the joint.
    """

    kind: str
    text: str


class StampAge:
    """Determines the age of states from their stamps and times of arrival, on any clock.

    The smallest delay so far is taken as that of a fresh state. If delays become larger and stay
    large, the clock of the stamps was stopped (a paused simulation) or is slow, and the new delay
    is taken as that of a fresh state. If they then decrease quickly, a queue is being processed,
    and its states are old. Late states are old as well if this process itself was stalled, or if
    the stamps are from the system's clock, which is neither paused nor slow. For a moment this
    holds after a jump of the stamps as well, since one damaged stamp is enough for a jump.
    """

    def __init__(self) -> None:
        self._fresh: float | None = None
        self._system = False  # whether the stamps are from the system's clock
        self._jumped: float | None = None  # arrival of the first state after a jump, s
        self._late: tuple[float, float] | None = None  # arrival and delay of a late state, s
        self._seen, self._usual = -np.inf, np.inf  # last sign of life, usual time between two, s
        self._stalled = -np.inf  # end of the last stall of this process, s

    def live(self, now: float) -> None:
        """Record that this process runs at this time, s of the monotonic clock."""
        gap, self._seen = now - self._seen, now
        if gap > max(STALL, STALLS * self._usual):
            self._stalled = now
        else:
            self._usual = min(gap, 1.1 * self._usual)

    def age(self, stamp: int, arrived: float, limit: float) -> float:
        """Return the age of a state on arrival, s.

        Parameters
        ----------
        stamp : int
            Stamp of the state, ns.
        arrived : float
            Time of its arrival, s of the monotonic clock.
        limit : float
            Age above which a state is late, s.
        """
        delay = arrived - stamp * 1e-9
        if self._fresh is None and self._system:
            if self._jumped is None:
                self._jumped = arrived
            behind = _behind_the_system(delay)
            if limit < behind < QUEUED and arrived - self._jumped < DISTRUST:
                return behind
        fresh = self._fresh
        if fresh is None or delay < fresh:
            fresh = self._take_as_fresh(delay)
        age = delay - fresh
        if age <= limit or self._system or arrived - self._stalled < DISTRUST:
            self._late = None
        elif self._late is None:
            self._late = arrived, delay
        else:
            since, before = self._late
            if arrived - since >= SETTLED:
                if before - delay < DRAINING * (arrived - since):
                    self._take_as_fresh(delay)
                    self._late, age = None, 0.0
                else:
                    self._late = arrived, delay
        return age

    def restart(self) -> None:
        """Forget all delays, because the stamps jumped."""
        self._fresh = self._late = self._jumped = None

    def _take_as_fresh(self, delay: float) -> float:
        """Take a delay as that of a fresh state, and return it."""
        self._fresh = delay
        self._system = abs(_behind_the_system(delay)) < SAME_CLOCK
        return delay


def _behind_the_system(delay: float) -> float:
    """Return by how much a stamp is behind the system's clock on arrival, s."""
    for _ in range(READINGS):
        before, system, after = time.monotonic(), time.time(), time.monotonic()
        if after - before < APART:
            break
    return delay + system - after


class StateGuard:
    """Rejects states that are physically implausible.

    These are positions far outside the joint range, jumps that would require several times the
    velocity limit, and velocities that contradict the positions. The longer no state has been
    accepted, the larger the next jump may be, so a state that persists is accepted eventually if
    it is in range.

    Parameters
    ----------
    joints : Joints
        Names and limits of the joints.
    """

    def __init__(self, joints: Joints):
        span = joints.upper - joints.lower
        further = np.where(np.isfinite(span), FURTHER * (1 + span), 0.0)
        self._names = joints.joint_names
        self._lower = np.maximum(joints.lower - further, -LARGEST)
        self._upper = np.minimum(joints.upper + further, LARGEST)
        self._fastest = FASTER * joints.velocity_limit
        self.restart()

    def restart(self) -> None:
        """Forget the last state."""
        self._last: tuple[Array, Array, int] | None = None
        self._apart = self._travelled = np.zeros(len(self._names))

    def check(self, q: Array, qd: Array, stamp: int) -> Implausible | None:
        """Return why a state is rejected; None if it is accepted, and stored for comparison.

        Parameters
        ----------
        q, qd : ndarray, shape (n,)
            Positions and velocities, finite.
        stamp : int
            Stamp of the state, ns.
        """
        outside = (q < self._lower) | (q > self._upper)
        if outside.any():
            return self._refuse('position', outside, q, 'rad or m is far outside the joint range')
        fast = np.abs(qd) > self._fastest
        if fast.any():
            return self._refuse('velocity', fast, qd,
                                f'rad/s or m/s is more than {FASTER:g} times the velocity limit')
        apart = travelled = np.zeros_like(q)
        if self._last is not None:
            before, speed, then = self._last
            elapsed = (stamp - then) * 1e-9
            moved = q - before
            jumped = np.abs(moved) > self._fastest * max(elapsed, 0.0) + SLACK
            if jumped.any():
                return self._refuse('jump', jumped, moved, 'rad or m is farther than the joint '
                                    f'can have moved in {elapsed:.4f} s')
            if 0 < elapsed < GAP:
                kept = max(1 - elapsed / MEMORY, 0.0)
                integrated = 0.5 * elapsed * (speed + qd)
                apart = kept * self._apart + moved - integrated
                travelled = kept * self._travelled + np.maximum(np.abs(moved), np.abs(integrated))
                contrary = np.abs(apart) > SLACK + PART * travelled
                if contrary.any():
                    self._apart, self._travelled = kept * self._apart, kept * self._travelled
                    return self._refuse('velocity', contrary, qd,
                                        'rad/s or m/s contradicts the positions')
        self._last, self._apart, self._travelled = (q, qd, stamp), apart, travelled
        return None

    def _refuse(self, kind: str, where: Any, values: Array, why: str) -> Implausible:
        joint = int(np.argmax(where))
        return Implausible(f'implausible_{kind}', f'{kind} of joint {self._names[joint]!r}: '
                                                  f'{values[joint]:.4g} {why}')
