"""Whether a measured state can be believed: how old it is, and whether it is plausible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.model import Joints
from robodyn_ros.spatial import Array

# s for which late states are watched before their delay is taken for that of the clocks
SETTLED = 0.01
# A queue that is worked off makes its states younger at several times the pace of the clock
DRAINING = 0.5  # s of age lost in a second, at least
# What makes a state implausible; generous, since a robot that is a little beyond its limits needs
# its controller most
FURTHER = 0.1  # of the joint range, and rad or m, beyond the range
LARGEST = 1e5  # rad or m, of joints without limits
FASTER = 3.0  # times the velocity limit
SLACK = 0.05  # rad or m between positions, or between them and integrated velocities
MEMORY = 0.2  # s, over which velocities are integrated
PART = 0.5  # of the way within that time, by which positions and velocities may differ
GAP = 0.1  # s between states, beyond which velocities are not integrated


@dataclass(frozen=True)
class Implausible:
    """Why a state is not used.

    Attributes
    ----------
    kind : str
        ``implausible_position``, ``implausible_jump`` or ``implausible_velocity``.
    text : str
        What is wrong, with the joint's name.
    """

    kind: str
    text: str


class StampAge:
    """How old states are, from their stamps and arrivals; the clock of the stamps is any.

    The smallest delay seen is that of a fresh state. Where delays become larger and stay so, the
    clock of the stamps stood still for a while (a simulation was paused) or runs slowly: then the
    new delay is that of a fresh state. Where they become smaller again quickly, a queue is being
    worked off, and its states are old.
    """

    def __init__(self) -> None:
        self._fresh: float | None = None
        self._late: tuple[float, float] | None = None  # arrival and delay of a late state, s

    def age(self, stamp: int, arrived: float, limit: float) -> float:
        """Return the age of a state when it arrived, s.

        Parameters
        ----------
        stamp : int
            Its stamp, ns.
        arrived : float
            When it arrived, s of the monotonic clock.
        limit : float
            Age that is late, s.
        """
        delay = arrived - stamp * 1e-9
        if self._fresh is None or delay < self._fresh:
            self._fresh = delay
        age = delay - self._fresh
        if age <= limit:
            self._late = None
        elif self._late is None:
            self._late = arrived, delay
        else:
            since, before = self._late
            if arrived - since >= SETTLED:
                if before - delay < DRAINING * (arrived - since):
                    self._fresh, self._late, age = delay, None, 0.0
                else:
                    self._late = arrived, delay
        return age

    def restart(self) -> None:
        """Forget what was seen: the stamps jumped."""
        self._fresh = self._late = None


class StateGuard:
    """Refuses states that the robot cannot be in.

    Positions far outside the joint range, jumps that would need several times the velocity limit,
    and velocities that do not agree with the positions. The longer no state was believed, the
    further the next may be away: what persists is believed in the end, unless it is out of range.

    Parameters
    ----------
    joints : Joints
        Their limits and names.
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
        self._apart = self._way = np.zeros(len(self._names))

    def check(self, q: Array, qd: Array, stamp: int) -> Implausible | None:
        """Return why a state is not believed; None where it is, and the next is compared to it.

        Parameters
        ----------
        q, qd : ndarray, shape (n,)
            Positions and velocities, finite.
        stamp : int
            Its stamp, ns.
        """
        outside = (q < self._lower) | (q > self._upper)
        if outside.any():
            return self._refuse('position', outside, q, 'rad or m is far outside the joint range')
        fast = np.abs(qd) > self._fastest
        if fast.any():
            return self._refuse('velocity', fast, qd,
                                f'rad/s or m/s is more than {FASTER:g} times the velocity limit')
        apart = way = np.zeros_like(q)
        if self._last is not None:
            before, speed, then = self._last
            elapsed = (stamp - then) * 1e-9
            moved = q - before
            jumped = np.abs(moved) > self._fastest * max(elapsed, 0.0) + SLACK
            if jumped.any():
                return self._refuse('jump', jumped, moved, 'rad or m is further than the joint '
                                    f'can have moved in {elapsed:.4f} s')
            if 0 < elapsed < GAP:
                kept = max(1 - elapsed / MEMORY, 0.0)
                integrated = 0.5 * elapsed * (speed + qd)
                apart = kept * self._apart + moved - integrated
                way = kept * self._way + np.maximum(np.abs(moved), np.abs(integrated))
                contrary = np.abs(apart) > SLACK + PART * way
                if contrary.any():
                    self._apart, self._way = kept * self._apart, kept * self._way
                    return self._refuse('velocity', contrary, qd,
                                        'rad/s or m/s contradicts the positions')
        self._last, self._apart, self._way = (q, qd, stamp), apart, way
        return None

    def _refuse(self, kind: str, where: Any, values: Array, why: str) -> Implausible:
        joint = int(np.argmax(where))
        return Implausible(f'implausible_{kind}', f'{kind} of joint {self._names[joint]!r}: '
                                                  f'{values[joint]:.4g} {why}')
