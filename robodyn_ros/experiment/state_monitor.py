"""`StateMonitor`: records and checks joint states, and provides them to the live fit."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import ExperimentError, StatesMissingError
from robodyn_ros.experiment.recorder import JOINT_STATES, MOTOR_STATES, Recorder
from robodyn_ros.model import Joints
from robodyn_ros.spatial import Array

JUMP = 1.0  # s by which stamps may advance more than the wall clock
RANGE_SLACK = 0.02  # fraction of its range by which a position may leave the range
VELOCITY_SLACK = 1.3  # largest velocity over the velocity limit
STANDSTILL = 0.1  # s of unchanged positions after which a joint off its reference is stuck
REFERENCE_MOVED = 0.02  # rad or m of reference motion during which states must have changed
UNCHANGED_SAMPLES = 10  # consecutive equal states that are frozen if a joint is off its reference
MOST_SAMPLES = 20_000  # most samples that are queued for the live fit; the oldest are dropped


@dataclass(frozen=True, eq=False)
class Sample:
    """A measured state.

    Attributes
    ----------
    stamp : int
        Stamp, ns, on the clock of the joint states.
    q, qd, tau : ndarray, shape (n,)
        Positions, velocities and torques; rad or m, rad/s or m/s, N m or N.
    arrived : float
        Time of its arrival, s of the monotonic clock.
    """

    stamp: int
    q: Array
    qd: Array
    tau: Array
    arrived: float


@dataclass(eq=False)
class _LastChange:
    """The times at which measured values last changed by even one bit."""

    sample: Sample
    anything: float  # time at which any position, velocity or effort changed, s, monotonic clock
    position: Array  # time at which the position of each joint changed
    reference: Array  # the reference at the time of ``anything``


def _differs(one: Sample, other: Sample) -> bool:
    return any(np.any(getattr(one, name) != getattr(other, name)) for name in ('q', 'qd', 'tau'))


class StateMonitor:
    """Receives joint states on one thread, and checks them on the thread of the experiment.

    Parameters
    ----------
    joints : Joints
        The joints of the robot.
    timeout : float
        Time without a new state after which states count as missing, s.
    frozen_after : float
        Time of unchanged states under a moving reference after which they count as frozen, s.
    tracking_tolerance : float
        Largest deviation of a joint from its reference, rad or m.

    Attributes
    ----------
    latest : Sample or None
        The last valid state.
    refused : int
        Number of states that could not be used.
    tracking : ndarray, shape (n,) or (0,)
        Position minus reference at the last check of a motion, rad or m; empty before the first.
    """

    def __init__(self, joints: Joints, timeout: float, frozen_after: float,
                 tracking_tolerance: float):
        self.joints, self.timeout = joints, timeout
        self.frozen_after, self.tracking_tolerance = frozen_after, tracking_tolerance
        self.latest: Sample | None = None
        self.refused = 0
        self.tracking = np.zeros(0)
        self._lock = threading.Lock()
        self._samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)
        self._collecting = False
        self._recorders: list[tuple[int, int, Recorder]] = []
        self._problem = ''
        self._changed: _LastChange | None = None
        self._unchanged = 0  # number of consecutive samples that equal the previous one

    # called by the thread that receives the states ------------------------------------------

    def add_state(self, stamp: int, q: Array, qd: Array | None, tau: Array | None) -> None:
        """Store a state; one without velocities or finite efforts is counted as refused.

        Parameters
        ----------
        stamp : int
            Stamp, ns. A state with the same stamp as the previous one is ignored.
        q, qd, tau : ndarray, shape (n,), or None
            Positions, velocities and torques; rad or m, rad/s or m/s, N m or N.
        """
        last, now = self.latest, time.monotonic()
        if last is not None:
            if stamp == last.stamp:
                return
            ahead, waited = (stamp - last.stamp) * 1e-9, now - last.arrived
            if ahead < 0 or ahead > JUMP + waited:
                self._problem = self._problem or (
                    f'the stamps of joint_states jumped by {ahead:.3f} s')
        if qd is None or tau is None or not np.isfinite(tau).all():
            self.refuse_state()
            return
        sample = Sample(stamp, q, qd, tau, now)
        self._unchanged = self._unchanged + 1 if last and not _differs(sample, last) else 0
        with self._lock:
            self.latest = sample
            if self._collecting:
                self._samples.append(sample)

    def refuse_state(self) -> None:
        """Count a state that cannot be used."""
        self.refused += 1

    def record(self, stamp: int, message: bytes) -> None:
        """Record a serialised joint state with its stamp, ns, whether it is valid or not."""
        self._write(JOINT_STATES, stamp, message)

    def record_motors(self, message: bytes) -> None:
        """Record a serialised motor state, in the same window as the last joint state."""
        last = self.latest
        if last is not None:
            self._write(MOTOR_STATES, last.stamp, message)

    def _write(self, topic: str, stamp: int, message: bytes) -> None:
        for start, end, recorder in self._recorders:
            if start <= stamp <= end:
                recorder.write(topic, time.time_ns(), message)

    # called by the thread of the experiment -------------------------------------------------

    def forget(self) -> None:
        """Forget problems of earlier experiments."""
        self._problem, self._changed, self._unchanged = '', None, 0
        self.tracking = np.zeros(0)

    def use(self, *, timeout: float | None = None, frozen_after: float | None = None,
            tracking_tolerance: float | None = None) -> None:
        """Use other limits from now on; see the parameters of the class."""
        self.timeout = self.timeout if timeout is None else timeout
        self.frozen_after = self.frozen_after if frozen_after is None else frozen_after
        if tracking_tolerance is not None:
            self.tracking_tolerance = tracking_tolerance

    def forget_state(self) -> None:
        """Forget the latest state, so that the next one counts as the first."""
        self.latest = None

    def begin(self) -> None:
        """Forget earlier problems and begin to collect samples."""
        self.forget()
        with self._lock:
            self._samples.clear()
            self._collecting = True

    def add_recorder(self, recorder: Recorder, start: int, end: int) -> None:
        """Record the states with stamps, ns, between start and end."""
        self._recorders = [*self._recorders, (start, end, recorder)]

    def end(self) -> None:
        """Stop collecting samples and close the recorders."""
        recorders, self._recorders = self._recorders, []
        for *_, recorder in recorders:
            recorder.close()
        with self._lock:
            self._collecting = False
            self._samples.clear()

    def take(self) -> list[Sample]:
        """Return the samples since the last call."""
        with self._lock:
            samples = list(self._samples)
            self._samples.clear()
        return samples

    def check(self) -> Sample:
        """Return the latest state if the experiment may continue.

        Raises
        ------
        StatesMissingError
            No new state has arrived for `timeout`.
        ExperimentError
            Recording failed, stamps jumped, no state has arrived at all, or a joint leaves its
            range or exceeds its velocity limit.
        """
        joints, latest = self.joints, self.latest
        for *_, recorder in self._recorders:
            if recorder.error:
                raise ExperimentError(f'nothing more can be recorded: {recorder.error}')
        if self._problem:
            raise ExperimentError(self._problem)
        if latest is None:
            raise StatesMissingError('there are no joint_states with positions, velocities and '
                                     f'efforts of {", ".join(joints.joint_names)}')
        age = time.monotonic() - latest.arrived
        if age > self.timeout:
            raise StatesMissingError(f'no new joint_states arrive: the last one is {age:.2f} s '
                                     'old')
        width = joints.upper - joints.lower
        slack = RANGE_SLACK * np.where(np.isfinite(width), width, 1.0)
        self._blame('is out of its range',
                    (latest.q < joints.lower - slack) | (latest.q > joints.upper + slack),
                    latest.q)
        self._blame('exceeds its velocity limit',
                    np.abs(latest.qd) > VELOCITY_SLACK * joints.velocity_limit, latest.qd)
        return latest

    def check_motion(self, latest: Sample, reference: Array) -> None:
        """Compare a state with the reference of its time.

        Friction can hold a joint so that its position does not change by a single bit, while
        velocity noise or the growing effort of the controller show that the states are still
        updated. If nothing at all changes, the source of the states is frozen. While states repeat
        themselves, a joint off its reference is reported only after `STANDSTILL`.

        Parameters
        ----------
        latest : Sample
            A state that `check` has returned.
        reference : ndarray, shape (n,)
            Positions that the robot should have had then, rad or m.

        Raises
        ------
        ExperimentError
            The states are frozen, or a joint is stuck or off its reference.
        """
        now, changed = time.monotonic(), self._changed
        if changed is None:
            self._changed = changed = _LastChange(
                latest, now, np.full(len(reference), now), reference)
        before = changed.sample
        if _differs(latest, before):
            changed.position[latest.q != before.q] = now
            changed.sample, changed.anything, changed.reference = latest, now, reference
        away = self.tracking = latest.q - reference
        lost = np.abs(away) > self.tracking_tolerance
        same = now - changed.anything
        moved = np.abs(reference - changed.reference).max() > REFERENCE_MOVED
        # this thread may have been suspended meanwhile, so the number of equal states counts too
        if ((moved and (same > self.frozen_after or (lost.any() and same > STANDSTILL)))
                or (lost.any() and self._unchanged >= UNCHANGED_SAMPLES)):
            raise ExperimentError(
                f'joint_states are frozen: no position, velocity or effort has changed for '
                f'{same:.2f} s and {self._unchanged} states, although the reference moved')
        stuck = lost & (now - changed.position > STANDSTILL)
        if stuck.any():
            joint = int(np.argmax(stuck))
            raise ExperimentError(
                f'{self.joints.joint_names[joint]} sticks: its position has not changed for '
                f'{now - changed.position[joint]:.2f} s, although it is {away[joint]:.4g} off its '
                f'reference and its effort is {latest.tau[joint]:.4g}; valid: a controller whose '
                'gains overcome the friction of the joint')
        if self._unchanged and same <= STANDSTILL:
            return  # the states may be frozen instead: the next ones will show it
        self._blame('is off its reference by more than tracking_tolerance', lost, away)

    def _blame(self, what: str, bad: NDArray[np.bool_], values: Array) -> None:
        if bad.any():
            joint = int(np.argmax(bad))
            raise ExperimentError(f'{self.joints.joint_names[joint]} {what}: '
                                  f'{values[joint]:.4g}')
