"""An experiment on a robot: a motion as a trajectory, and an eye on what the robot makes of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import Reference
from robodyn_ros.description import Array
from robodyn_ros.dynamics import AnyDynamics
from robodyn_ros.excitation import Excitation
from robodyn_ros.model import Joints
from robodyn_ros.nodes.joint_states import StateError, StateReader
from robodyn_ros.nodes.recorder import Recorder
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.trajectories import trajectory_of

JUMP = 1.0  # s that stamps may go ahead of the clock on the wall
DWELL = 0.5  # s of rest before and after each motion
APPROACH_SPEED, FASTEST_APPROACH = 0.25, 1.0  # of the velocity limit; rad/s or m/s
TORQUE_SHARE = 0.9  # of the effort limit, on the way to a start
SLACK = 0.02  # beyond the joint range, of its width
FAST = 1.3  # times the velocity limit
SUSPICIOUS = 0.1  # s of unchanged positions, off the reference
STILL = 0.02  # rad or m that the reference moves while the positions stay the same


class Fault(Exception):
    """The robot, its states or its disk do what they must not."""


class Silent(Fault):
    """The states stay out."""


@dataclass(frozen=True)
class Window:
    """A part of the experiment that is recorded; s from its start."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class Script:
    """A whole experiment: one motion with rests, and which parts of it are recorded."""

    reference: Reference
    windows: tuple[Window, ...]

    def place(self, time: float) -> tuple[str, float]:
        """Return the window at a time (s), or ``approach``, and the share of it that is over."""
        if time < 0:
            return 'approach', 0.0
        edges = [0.0]
        for window in self.windows:
            if window.start <= time <= window.end:
                return window.name, (time - window.start) / (window.end - window.start)
            edges += [window.start, window.end]
        edges.append(self.reference.duration)
        before = max((e for e in edges if e <= time), default=0.0)
        after = min((e for e in edges if e > time), default=before + 1.0)
        return 'approach', min(max((time - before) / (after - before), 0.0), 1.0)

    def message(self, joint_names: tuple[str, ...]) -> JointTrajectory:
        """Return it as a trajectory that starts when it arrives."""
        reference = self.reference
        return trajectory_of(joint_names, reference.times, reference.q, reference.qd,
                             reference.qdd)


def script_of(dynamics: AnyDynamics, here: Array,
              motions: list[tuple[str, Excitation]], rate: float) -> Script:
    """Lead the robot from where it is through some motions, with gentle ways between them.

    Parameters
    ----------
    dynamics : Dynamics
        Of the nominal robot: no way between motions needs more than its torque.
    here : ndarray, shape (n,)
        Where it is.
    motions : list of (str, Excitation)
        What is recorded, under these names.
    rate : float
        Points a second, Hz.
    """
    pieces: list[tuple[Array, Array, Array, Array]] = []
    windows, end, at = [], 0.0, here

    def add(t: Array, q: Array, qd: Array, qdd: Array) -> None:
        nonlocal end
        skip = 1 if pieces else 0
        pieces.append((end + t[skip:], q[skip:], qd[skip:], qdd[skip:]))
        end += float(t[-1])

    def rest(q: Array) -> None:
        zero = np.zeros((2, len(q)))
        add(np.array([0.0, DWELL]), np.array([q, q]), zero, zero)

    for name, motion in motions:
        add(*approach(dynamics, at, motion.at(0.0).q, rate))
        rest(motion.at(0.0).q)
        t, (q, qd, qdd, _) = motion.samples(rate)
        qd, qdd = qd.copy(), qdd.copy()
        qd[[0, -1]] = qdd[[0, -1]] = 0.0  # at rest but for rounding
        windows.append(Window(name, end, end + motion.duration))
        add(t, q, qd, qdd)
        rest(q[-1])
        at = q[-1]
    return Script(Reference(*(np.concatenate(part) for part in zip(*pieces, strict=True))),
                  tuple(windows))


def approach(dynamics: AnyDynamics, start: Array, goal: Array, rate: float,
             ) -> tuple[Array, Array, Array, Array]:
    """Return times and states of a straight way from rest to rest, slow enough for the torques."""
    joints = dynamics.joints
    speed = np.minimum(APPROACH_SPEED * joints.velocity_limit, FASTEST_APPROACH)
    seconds = max(1.0, float((1.875 * np.abs(goal - start) / speed).max()))
    while True:
        t = np.linspace(0.0, seconds, max(int(seconds * rate), 2) + 1)
        s = (t / seconds)[:, None]
        way = goal - start
        q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
        qd = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / seconds
        qdd = way * (60 * s - 180 * s**2 + 120 * s**3) / seconds**2
        tau = np.abs(dynamics.inverse_dynamics(q, qd, qdd))
        still = np.abs(dynamics.gravity(q)) > TORQUE_SHARE * joints.effort_limit
        if (still | (tau <= TORQUE_SHARE * joints.effort_limit)).all() or seconds > 60:
            return t, q, qd, qdd
        seconds *= 1.3


def braking(joints: Joints, q: Array, qd: Array, rate: float = 50.0) -> JointTrajectory:
    """Return the way to rest from a moving state: half a second, less where there is no room."""
    seconds = 0.5
    goal = np.clip(q + qd * seconds / 2, joints.lower, joints.upper)
    zero = np.zeros_like(q)
    way = Reference([0.0, seconds], [q, goal], [qd, zero], [zero, zero])
    times = np.linspace(0.0, seconds, int(seconds * rate) + 1)
    states = [way.sample(float(t)) for t in times]
    return trajectory_of(joints.joint_names, times, *(np.array(part) for part in zip(
        *states, strict=True)))


@dataclass(frozen=True, eq=False)
class Sample:
    """A measured state."""

    stamp: int
    q: Array
    qd: Array
    tau: Array
    arrived: float


class Eye:
    """Hears joint states: records them, judges them, keeps them for whoever asks.

    Parameters
    ----------
    joints : Joints
        Of the robot.
    timeout : float
        s without a new state, after which the robot counts as silent.
    frozen_after : float
        s of unchanged positions under a moving reference.
    tracking : float
        rad or m that a joint may be away from its reference.
    """

    def __init__(self, joints: Joints, timeout: float, frozen_after: float, tracking: float):
        self.joints, self.timeout = joints, timeout
        self.frozen_after, self.tracking = frozen_after, tracking
        self._lock = threading.Lock()
        self._reader = StateReader(joints)
        self._samples: list[Sample] = []
        self._recorders: list[tuple[int, int, Recorder]] = []
        self._moved: tuple[float, Array, Array] | None = None  # when, q, and its reference
        self.latest: Sample | None = None
        self.problem = ''
        self.refused = 0

    # the fast thread ------------------------------------------------------------------------

    def on_state(self, raw: bytes) -> None:
        """Take a serialised joint state."""
        message = deserialize_message(raw, JointState)
        stamp = nanoseconds(message.header.stamp)
        self._record('/joint_states', stamp, raw)
        last = self.latest
        if last is not None:
            if stamp == last.stamp:
                return  # repeated: no news
            ahead, gap = (stamp - last.stamp) * 1e-9, time.monotonic() - last.arrived
            if ahead > JUMP + gap:  # the reader sees what jumps back
                self.problem = self.problem or (
                    f'the stamps of joint_states jumped by {ahead:.3f} s')
        try:
            q, qd, tau = self._reader.read_on(message, self._on_jump)
        except StateError:
            self.refused += 1
            return
        if qd is None or tau is None or not np.isfinite(tau).all():
            self.refused += 1
            return
        with self._lock:
            self.latest = Sample(stamp, q, qd, tau, time.monotonic())
            self._samples.append(self.latest)

    def _on_jump(self, error: StateError) -> None:
        self.problem = self.problem or f'joint_states: {error}'

    def on_motor_state(self, raw: bytes) -> None:
        """Take a serialised state with the motors' torques as its efforts."""
        last = self.latest
        if last is not None:
            self._record('/motor_states', last.stamp, raw)

    def _record(self, topic: str, stamp: int, raw: bytes) -> None:
        for start, end, recorder in self._recorders:
            if start <= stamp <= end:
                recorder.write(topic, time.time_ns(), raw)

    # everybody else -------------------------------------------------------------------------

    def record(self, recorder: Recorder, start: int, end: int) -> None:
        """Record what has a stamp (ns) from start to end."""
        self._recorders = [*self._recorders, (start, end, recorder)]

    def close(self) -> None:
        """Close the bags."""
        recorders, self._recorders = self._recorders, []
        for *_, recorder in recorders:
            recorder.close()

    def take(self) -> list[Sample]:
        """Return the states since the last call."""
        with self._lock:
            samples, self._samples = self._samples, []
        return samples

    def begin(self) -> None:
        """Forget what was wrong before."""
        self.problem, self._moved = '', None
        self.take()

    def check(self, reference: tuple[Array, Array] | None = None) -> None:
        """Raise Fault where the robot is frozen, out of its limits or off its reference.

        Parameters
        ----------
        reference : tuple of ndarray, shape (n,), optional
            q, qd that it should have.

        Raises
        ------
        Silent
            No new state has come for ``timeout``.
        Fault
            What is wrong; before silence come problems of the disk and of the stamps.
        """
        joints, latest = self.joints, self.latest
        for *_, recorder in self._recorders:
            if recorder.error:
                raise Fault(f'nothing more can be recorded: {recorder.error}')
        if self.problem:
            raise Fault(self.problem)
        if latest is None:
            raise Fault('there are no joint_states with positions, velocities and efforts of '
                        f'{", ".join(joints.joint_names)}')
        age = time.monotonic() - latest.arrived
        if age > self.timeout:
            raise Silent(f'joint_states stay out: the last new one is {age:.2f} s old')
        slack = SLACK * np.where(np.isfinite(joints.upper - joints.lower),
                                 joints.upper - joints.lower, 1.0)
        outside = (latest.q < joints.lower - slack) | (latest.q > joints.upper + slack)
        self._blame('is out of its range', outside, latest.q)
        self._blame('is faster than its limit', np.abs(latest.qd) > FAST * joints.velocity_limit,
                    latest.qd)
        if reference is None:
            return
        now, away = time.monotonic(), latest.q - reference[0]
        if self._moved is None or np.any(latest.q != self._moved[1]):
            self._moved = now, latest.q, reference[0]
        same, moved = now - self._moved[0], np.abs(reference[0] - self._moved[2]).max() > STILL
        lost = np.abs(away) > self.tracking
        if moved and (same > self.frozen_after or (lost.any() and same > SUSPICIOUS)):
            raise Fault(f'joint_states are frozen: no position has changed for {same:.2f} s, '
                        'though the robot was told to move')
        self._blame('is off its reference by more than tracking_tolerance', lost, away)

    def _blame(self, what: str, bad: Any, values: Array) -> None:
        if bad.any():
            joint = int(np.argmax(bad))
            raise Fault(f'{self.joints.joint_names[joint]} {what}: {values[joint]:.4g}')


def play(eye: Eye, script: Script, send: Callable[[JointTrajectory], None],
         recorder: Callable[[str], Recorder], tick: Callable[[str, float], None],
         delay: float) -> None:
    """Play an experiment and record its windows; stop the robot gently where anything is wrong.

    Parameters
    ----------
    eye : Eye
        On the robot.
    script : Script
        What is played.
    send : callable
        Publishes a trajectory.
    recorder : callable
        Makes the recorder of a window by its name.
    tick : callable
        ``tick(window, share of it)`` many times a second; what it raises stops the motion.
    delay : float
        s after which the motion begins, on the clock of the states; 0: when it arrives.

    Raises
    ------
    Fault
        Something is wrong; or what ``tick`` raises.
    """
    eye.begin()
    eye.check()
    assert eye.latest is not None
    start = eye.latest.stamp + int(delay * 1e9)
    for window in script.windows:
        eye.record(recorder(window.name), start + int(window.start * 1e9),
                   start + int(window.end * 1e9))
    message = script.message(eye.joints.joint_names)
    if delay:
        set_nanoseconds(message.header.stamp, start)
    send(message)
    reference = script.reference
    seen, arrived = -delay, time.monotonic()  # what the robot's clock said, and when
    try:
        while True:
            eye.check()
            latest = eye.latest
            seen, arrived = (latest.stamp - start) * 1e-9, latest.arrived
            if seen > reference.duration:
                break
            eye.check(reference.sample(seen)[:2])
            tick(*script.place(seen))
            time.sleep(0.02)
    except BaseException:
        now = seen + time.monotonic() - arrived  # the controller goes on while states stay out
        send(braking(eye.joints, *reference.sample(now)[:2]))
        raise
    finally:
        eye.close()
    if eye.problem:
        raise Fault(eye.problem)
