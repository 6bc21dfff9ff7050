"""Motion of a floating base from an inertial measurement unit and poses that arrive less often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.model import LinkFrame
from robodyn_ros.spatial import Array, axis_rotation, quaternion_of

LONGEST = 0.5  # s without measurements or poses, after which the estimate begins again


class _Measurement(NamedTuple):
    """What the unit measured, in the axes of the base: rad/s, and acceleration minus gravity."""

    time: float
    turn: Array
    force: Array


@dataclass(frozen=True, eq=False)
class _State:
    """Orientation of the base, and motion of the unit's origin in the world, at one instant."""

    last: _Measurement
    time: float
    rotation: Array  # from the axes of the base to those of the world
    place: Array
    speed: Array


class InertialMotion:
    """Pose and twist of a floating base.

    The angular velocity is that of the gyroscopes. They carry the orientation on from the last
    pose, and the accelerometers the velocity; each pose corrects position and velocity with the
    gains of a g-h filter whose two poles coincide (fading memory: Brookner, Tracking and Kalman
    Filtering Made Easy, 1998, section 1.2.6). A pose may arrive late: it corrects the estimate of
    its own time, from which the measurements since then are integrated again.

    Parameters
    ----------
    gravity : ndarray, shape (3,)
        Gravitational acceleration in the world frame, m/s^2.
    unit : LinkFrame
        Frame of the inertial measurement unit in the base.
    bandwidth : float
        Frequency below which the poses determine the velocity, and above which the accelerometers
        do, Hz.

    Raises
    ------
    ValueRangeError
        The bandwidth is not positive.
    """

    def __init__(self, gravity: Array, unit: LinkFrame, bandwidth: float):
        if not bandwidth > 0:
            raise ValueRangeError('bandwidth', bandwidth, 'a frequency above 0 Hz')
        self._gravity, self._rate = np.asarray(gravity), 2 * np.pi * bandwidth
        self._axes, self._lever = unit.rotation, unit.translation
        self._since: list[_Measurement] = []  # those after the last pose
        self._last: _Measurement | None = None
        self._posed: _State | None = None  # at the last pose
        self._now: _State | None = None
        self._poses = 0  # since the estimate began

    @property
    def ready(self) -> bool:
        """Whether measurements and two poses have arrived, so that the velocity is known."""
        return self._now is not None and self._poses > 1

    def measure(self, time: float, angular_velocity: Array, specific_force: Array) -> bool:
        """Take a measurement; return False if it is not newer than the last one.

        Parameters
        ----------
        time : float
            Its stamp, s.
        angular_velocity, specific_force : ndarray, shape (3,)
            In the axes of the unit, rad/s and m/s^2; the specific force is the acceleration minus
            gravity, as accelerometers measure it.
        """
        step = 0.0 if self._last is None else time - self._last.time
        if self._last is not None and -LONGEST < step <= 0:
            return False
        if abs(step) > LONGEST or (self._posed is not None
                                   and time - self._posed.time > LONGEST):
            self._posed = self._now = None
        self._last = _Measurement(time, self._axes @ angular_velocity,
                                  self._axes @ specific_force)
        if self._now is not None:
            self._since.append(self._last)
            self._now = self._integrated(self._now, self._last)
        return True

    def correct(self, time: float, rotation: Array, position: Array) -> bool:
        """Take the pose of the base in the world; return False if it is not newer than the last.

        Parameters
        ----------
        time : float
            Its stamp, s.
        rotation, position : ndarray, shape (3, 3), (3,)
            From the axes of the base to those of the world, and the base's origin, m.
        """
        if self._last is None or abs(self._last.time - time) > LONGEST:
            return False
        before, seen = self._posed, position + rotation @ self._lever
        since = 0.0 if before is None else time - before.time
        if before is not None and -LONGEST < since <= 0:
            return False
        if before is None or abs(since) > LONGEST:
            self._poses, self._since = 0, []
            state = _State(self._last, time, rotation, seen, np.zeros(3))
        else:
            state = self._corrected(before, time, seen, since)
        self._posed, self._poses = replace(state, rotation=rotation), self._poses + 1
        self._now = self._posed
        for one in self._since or [self._last]:
            self._now = self._integrated(self._now, one)
        return True

    def _corrected(self, state: _State, time: float, seen: Array, since: float) -> _State:
        """Return the estimate at the time of a pose, corrected by its position."""
        while self._since and self._since[0].time <= time:
            state = self._integrated(state, self._since.pop(0))
        state = self._integrated(state, state.last._replace(time=time))
        error = seen - state.place
        if self._poses == 1:  # what remains of the displacement is due to the velocity
            return replace(state, place=seen, speed=state.speed + error / since)
        memory = np.exp(-self._rate * since)
        return replace(state, place=state.place + (1 - memory**2) * error,
                       speed=state.speed + (1 - memory) ** 2 / since * error)

    def _integrated(self, state: _State, one: _Measurement) -> _State:
        """Return the state at the time of a measurement."""
        step = one.time - state.time
        rotation = state.rotation @ rotation_of((state.last.turn + one.turn) / 2 * step)
        acceleration = (state.rotation @ state.last.force + rotation @ one.force) / 2 \
            + self._gravity
        return _State(one, one.time, rotation,
                      state.place + step * (state.speed + step / 2 * acceleration),
                      state.speed + step * acceleration)

    def orient(self, rotation: Array) -> None:
        """Take an orientation where no poses are measured; position and velocity are zero.

        Parameters
        ----------
        rotation : ndarray, shape (3, 3)
            From the axes of the unit to those of the world.
        """
        if self._last is None:
            return
        base = rotation @ self._axes.T
        self._posed, self._poses = None, 2
        self._now = _State(self._last, self._last.time, base, base @ self._lever,
                           base @ np.cross(self._last.turn, self._lever))
        self._since = []

    def state(self) -> tuple[Array, Array]:
        """Return pose, shape (7,), and twist, shape (6,), as q and qd of a floating base begin.

        Raises
        ------
        ValueRangeError
            They are not known yet.
        """
        if self._now is None or self._last is None:
            raise ValueRangeError('poses', self._poses, 'two of them')
        rotation, turn = self._now.rotation, self._last.turn
        linear = rotation.T @ self._now.speed - np.cross(turn, self._lever)
        return (np.concatenate([self._now.place - rotation @ self._lever,
                                quaternion_of(rotation)]), np.concatenate([linear, turn]))


def rotation_of(vector: Array) -> Array:
    """Return the rotation matrix of a rotation vector (axis times angle, rad), shape (3, 3)."""
    angle = float(np.linalg.norm(vector))
    return np.eye(3) if angle == 0 else axis_rotation(vector / angle, angle)
