"""`Script`: the whole motion of an experiment, and the pieces in which it is sent.

A script leads the robot from its present pose through one or more excitations, with slow
point-to-point motions and short rests between them. It is sent to the controller in short pieces,
each of which ends with a stop along the planned path. A controller that receives no further piece
therefore brakes the robot on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.control import Reference
from robodyn_ros.control.reference import PEAK_SPEED
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.excitation import Excitation, Trapezoid
from robodyn_ros.spatial import Array

DWELL = 0.5  # s at rest before and after each excitation, until vibrations have decayed
APPROACH_FRACTION = 0.25  # fraction of the velocity limit for motions between excitations
FASTEST_APPROACH = 1.0  # rad/s or m/s, largest velocity of these motions
LONGEST_APPROACH = 60.0  # s; slower motions do not reduce the torque noticeably
TORQUE_FRACTION = 0.9  # fraction of the effort limit for motions between excitations
STOPS = (0.3, 0.5, 0.8, 1.3, 2.0, 3.0)  # s, candidate durations of a stop

APPROACH = 'approach'  # name of every part of a script that is not recorded


@dataclass(frozen=True)
class Window:
    """A part of the script that is recorded.

    Attributes
    ----------
    name : str
        Name of the recording.
    start, end : float
        Times from the start of the script, s.
    """

    name: str
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class Script:
    """The whole motion of an experiment.

    Attributes
    ----------
    reference : Reference
        The motion, from rest to rest.
    windows : tuple of Window
        The parts of it that are recorded.
    dynamics : RobotDynamics
        Dynamics of the nominal robot, whose effort limits a stop must respect.
    """

    reference: Reference
    windows: tuple[Window, ...]
    dynamics: RobotDynamics

    def place(self, time: float) -> tuple[str, float]:
        """Return the name of the part at a time (s), and its completed fraction."""
        if time < 0:
            return APPROACH, 0.0
        edges = [0.0]
        for window in self.windows:
            if window.start <= time <= window.end:
                return window.name, (time - window.start) / (window.end - window.start)
            edges += [window.start, window.end]
        edges.append(self.reference.duration)
        before = max((e for e in edges if e <= time), default=0.0)
        after = min((e for e in edges if e > time), default=before + 1.0)
        return APPROACH, min(max((time - before) / (after - before), 0.0), 1.0)

    def piece(self, start: float, end: float) -> tuple[Reference, float]:
        """Return a part of the motion that is followed by a stop along the path.

        Parameters
        ----------
        start, end : float
            Times between which the part extends, s from the start of the script.

        Returns
        -------
        piece : Reference
            A motion with the points and times of the whole motion until the stop begins.
        leaves : float
            Time at which the stop begins, s; infinity if the piece contains the end of the motion.
        """
        whole = self.reference
        first = max(int(np.searchsorted(whole.times, start, side='right')) - 1, 0)
        last = int(np.searchsorted(whole.times, end))
        if last >= len(whole.times) - 1:
            return Reference(*(part[first:] for part in _points(whole))), np.inf
        kept = (part[first:last + 1] for part in _points(whole))
        stop = self._stop(last)
        return (Reference(*(np.concatenate(pair) for pair in zip(kept, stop, strict=True))),
                float(whole.times[last]))

    def _stop(self, point: int) -> tuple[Array, Array, Array, Array]:
        """Return the points of a stop after a point.

        It is the shortest stop within the effort limits or, if there is none, the one that exceeds
        them least.
        """
        whole = self.reference
        start = float(whole.times[point])
        spacing = float(whole.times[point + 1] - start)
        stops, loads = [], []
        for seconds in STOPS:
            stops.append(_stop_along(whole, start, seconds, spacing))
            tau = self.dynamics.inverse_dynamics(*stops[-1][1:])
            loads.append(float((np.abs(tau) / self.dynamics.joints.effort_limit).max()))
            if loads[-1] <= 1:
                break
        return stops[int(np.argmin(loads))]


def plan_script(dynamics: RobotDynamics, here: Array,
                motions: Sequence[tuple[str, Excitation | Trapezoid]], rate: float) -> Script:
    """Plan the motion from the present pose through excitations.

    An excitation of several periods, which are averaged, is preceded by one more period, which is
    not recorded: the transient from rest decays in it.

    Parameters
    ----------
    dynamics : RobotDynamics
        Dynamics of the nominal robot.
    here : ndarray, shape (n,)
        Present pose, rad or m.
    motions : sequence of (str, Excitation or Trapezoid)
        The motions, from rest to rest, and the names under which they are recorded.
    rate : float
        Points per second, Hz.
    """
    parts: list[tuple[Array, Array, Array, Array]] = []
    windows, end, at = [], 0.0, here

    def add(t: Array, q: Array, qd: Array, qdd: Array) -> None:
        nonlocal end
        skip = 1 if parts else 0
        parts.append((end + t[skip:], q[skip:], qd[skip:], qdd[skip:]))
        end += float(t[-1])

    def rest(q: Array) -> None:
        t = np.linspace(0.0, DWELL, max(round(DWELL * rate), 1) + 1)
        zero = np.zeros((len(t), len(q)))
        add(t, zero + q, zero, zero)

    for name, motion in motions:
        add(*approach(dynamics, at, motion.at(0.0).q, rate))
        rest(motion.at(0.0).q)
        played, first = motion, 0.0
        if isinstance(motion, Excitation) and motion.periods > 1:
            played, first = replace(motion, periods=motion.periods + 1), motion.period
        t, (q, qd, qdd, _) = played.samples(rate)
        qd, qdd = qd.copy(), qdd.copy()
        qd[[0, -1]] = qdd[[0, -1]] = 0.0  # removes round-off: it begins and ends at rest
        windows.append(Window(name, end + first, end + played.duration))
        add(t, q, qd, qdd)
        rest(q[-1])
        at = q[-1]
    return Script(Reference(*(np.concatenate(part) for part in zip(*parts, strict=True))),
                  tuple(windows), dynamics)


def approach(dynamics: RobotDynamics, start: Array, goal: Array, rate: float,
             ) -> tuple[Array, Array, Array, Array]:
    """Return a slow point-to-point motion.

    Parameters
    ----------
    dynamics : RobotDynamics
        Dynamics of the nominal robot. The motion respects its effort limits, except where gravity
        alone exceeds them.
    start, goal : ndarray, shape (n,)
        Poses, rad or m.
    rate : float
        Points per second, Hz.

    Returns
    -------
    times : ndarray, shape (N,)
        Times, s.
    q, qd, qdd : ndarray, shape (N, n)
        Positions, velocities and accelerations; rad or m, and per s and s^2.
    """
    joints = dynamics.joints
    speed = np.minimum(APPROACH_FRACTION * joints.velocity_limit, FASTEST_APPROACH)
    seconds = max(1.0, float((PEAK_SPEED * np.abs(goal - start) / speed).max()))
    rest = np.zeros((2, len(start)))
    while True:
        times = np.linspace(0.0, seconds, max(int(seconds * rate), 2) + 1)
        line = Reference([0.0, seconds], np.array([start, goal]), rest, rest)
        q, qd, qdd = _sampled(line, times)
        tau = np.abs(dynamics.inverse_dynamics(q, qd, qdd))
        limit = TORQUE_FRACTION * joints.effort_limit
        heavy = np.abs(dynamics.gravity(q)) > limit
        if (heavy | (tau <= limit)).all() or seconds > LONGEST_APPROACH:
            return times, q, qd, qdd
        seconds *= 1.3


def _stop_along(whole: Reference, start: float, seconds: float, spacing: float,
                ) -> tuple[Array, Array, Array, Array]:
    """Return a stop on the path of a motion, by time scaling.

    With u = (t - start) / seconds the motion is evaluated at the time s(u), whose rate
    ds/dt = 1 - u^2 (3 - 2 u) falls from 1 to 0. The joints stay on the planned path, and position,
    velocity and acceleration are continuous.
    """
    u = np.arange(1, max(int(np.ceil(seconds / spacing)), 1) + 1)
    u = u / u[-1]
    s = start + seconds * (u - u**3 + u**4 / 2)
    rate = (1 - u * u * (3 - 2 * u))[:, None]
    slowing = (-6 * u * (1 - u) / seconds)[:, None]
    q, qd, qdd = _sampled(whole, s)
    return start + seconds * u, q, qd * rate, qdd * rate**2 + qd * slowing


def _points(reference: Reference) -> tuple[Array, Array, Array, Array]:
    return reference.times, reference.q, reference.qd, reference.qdd


def _sampled(reference: Reference, times: Array) -> tuple[Array, Array, Array]:
    states = [reference.sample(float(time)) for time in times]
    q, qd, qdd = (np.array(part) for part in zip(*states, strict=True))
    return q, qd, qdd
