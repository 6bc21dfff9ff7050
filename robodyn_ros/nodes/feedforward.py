"""The node `feedforward`: a reference motion in, the torques that it needs out."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import Reference, Supervisor, Tuning, saturate
from robodyn_ros.control.supervisor import HOLDING, ZERO
from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.base import DynamicsNode, run
from robodyn_ros.nodes.dynamics import SENSOR_DATA, view
from robodyn_ros.nodes.fast_path import DEPTH, Pacer
from robodyn_ros.nodes.joint_states import StateError, StateReader
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.references import check_limits, check_start, read_reference, with_effort
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.tuning import (
    NAMES,
    OPEN_LOOP,
    check_mode,
    declare_tuning,
    tuning_of,
    tuning_values,
)

RELIABLE = QoSProfile(depth=10)


@dataclass(frozen=True, eq=False)
class Playing:
    """A reference that is played: its motion and when it began; start 0: with the next state."""

    reference: Reference
    start: int
    joints: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Loop:
    """What one model needs: made as a whole, replaced as a whole."""

    running: Running
    tuning: Tuning | None  # None: open loop
    reader: StateReader
    order: list[int]
    torque: JointState
    torque_view: Any
    commands: Float64MultiArray
    commands_view: Any


@dataclass(frozen=True, eq=False)
class State:
    """A measured state, its stamp (ns), and when it arrived (s, monotonic)."""

    q: Any
    qd: Any
    stamp: int
    arrived: float


class Feedforward(DynamicsNode):
    """Plays ~/reference and publishes the torques that it needs.

    In the mode ``feedforward`` the loop is open: inverse dynamics of the reference against the
    clock, nothing without a reference that counts. In all other modes every joint state is
    answered by a torque of the `Supervisor`; references run against the stamps of the states.

    A reference ends with its last point. One that ends at rest is held for ``hold`` seconds more;
    a single point (a stream of setpoints) counts for ``setpoint_timeout`` seconds.
    """

    kernels = ('inverse_dynamics', 'gravity', 'mass_matrix')

    def __init__(self, **options: Any):
        self._playing: Playing | None = None
        self._loop: Loop | None = None
        self._state: State | None = None
        self._supervisor = Supervisor(self._on_phase)
        self._lock = threading.RLock()  # of the supervisor and what it is told
        self._pacer: Pacer | None = None
        self._last_tick = 0
        super().__init__('feedforward', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'rate', 500.0, 'of ~/torque and ~/commands in the mode feedforward, and '
                'where joint_states stay out, Hz of the wall clock', range_=(1.0, 5000.0))
        declare(self, 'hold', 1.0, 'how long the end of a reference at rest is held, s',
                range_=(0.0, 3600.0))
        declare(self, 'setpoint_timeout', 0.1,
                'how long a reference of a single point counts, s', range_=(0.001, 10.0))
        declare(self, 'start_tolerance', 0.5, 'how far from the measured position a reference '
                'may start, rad or m; not in the mode feedforward', range_=(0.0, 100.0))
        declare(self, 'command_joints', [''],
                'joints and order of ~/commands; empty: all, in the order of the URDF')
        declare_tuning(self)

    def take_parameters(self, changes: dict[str, Any]) -> str | None:
        """Take changed parameters."""
        try:
            if 'mode' in changes:
                check_mode(changes['mode'])
            loop = self._loop
            if loop is not None and ('command_joints' in changes or changes.keys() & set(NAMES)):
                joints = changes.get('command_joints', self.get_parameter('command_joints').value)
                made = self._make_loop(loop.running, joints, tuning_values(self, changes))
                with self._lock:
                    if (made.tuning is None) != (loop.tuning is None):
                        self._stop_playing('the mode changes')
                    self._loop = made
        except (RobodynError, ValueError) as error:
            return str(error)
        if 'rate' in changes and self._pacer is not None:
            self._pacer.period = 1.0 / changes['rate']
        return None

    @staticmethod
    def _order(running: Running, joints: list[str]) -> list[int]:
        names = running.joints.joint_names
        wanted = [name for name in joints if name]
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ValueError(f'command_joints: unknown joint {unknown[0]!r}; valid: '
                             f'{", ".join(names)}')
        return [names.index(name) for name in wanted] or list(range(len(names)))

    def set_up(self) -> None:
        """Create publishers, subscriptions and the timer."""
        make = self.create_publisher, self.destroy_publisher
        self._torque = self.keep(*make, JointState, '~/torque', DEPTH)
        self._commands = self.keep(*make, Float64MultiArray, '~/commands', DEPTH)
        self._with_effort = self.keep(*make, JointTrajectory, '~/trajectory_with_effort', 10)
        self.keep(self.create_subscription, self.destroy_subscription, JointTrajectory,
                  '~/reference', self._on_reference, RELIABLE)
        self.listen((JointState, 'joint_states', self._on_state, SENSOR_DATA))
        self._pacer = self.pace(self._tick, self.get_parameter('rate').value)

    def on_model(self, running: Running) -> None:
        """Make messages for the new model; a reference for other joints is dropped."""
        values = tuning_values(self)
        try:
            loop = self._make_loop(running, self.get_parameter('command_joints').value, values)
        except (RobodynError, ValueError) as error:
            self.report('error', f'{error}; the mode is {OPEN_LOOP}, and all joints are commanded')
            usual = {name: [-1.0] for name in ('kp', 'kd', 'damping')} | {
                'computed_torque_kp': [0.0], 'computed_torque_kd': [0.0],
                'torque_rate_limit': [0.0], 'mode': OPEN_LOOP}
            loop = self._make_loop(running, [], values | usual)
        with self._lock:
            playing, known = self._playing, self._loop
            if playing is not None and playing.joints != running.joints.joint_names:
                self._stop_playing('the new model has other joints')
            if known is not None and known.reader is not loop.reader:  # other joints
                self._state = None
                self._supervisor.forget()
            self._loop = loop

    def _make_loop(self, running: Running, joints: list[str], values: dict[str, Any]) -> Loop:
        order = self._order(running, joints)
        names = list(running.joints.joint_names)
        torque = JointState(name=names, effort=[0.0] * len(names))
        commands = Float64MultiArray(data=[0.0] * len(order))
        return Loop(running, tuning_of(values, running.dynamics), self._reader(running), order,
                    torque, view(torque.effort), commands, view(commands.data))

    def _reader(self, running: Running) -> StateReader:
        """Keep the reader of the same joints: it knows the last stamp, and misses no jump."""
        known = self._loop
        if known is not None and known.running.joints.joint_names == running.joints.joint_names:
            return known.reader
        return StateReader(running.joints)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing, after a torque of zero where the loop was closed."""
        self.farewell()
        return super().on_deactivate(state)

    def farewell(self) -> None:
        """Command zero before nothing more is commanded; the open loop commands nothing."""
        with self._lock:
            loop, closed = self._loop, self._supervisor.phase != 'waiting' and self.active
            self._playing, self._state, self.active = None, None, False  # nothing comes after
            if loop is not None and loop.tuning is not None and closed:
                self._publish(loop, self.get_clock().now().nanoseconds, np.zeros(
                    loop.running.joints.n))
                for publisher in (self._torque, self._commands):
                    publisher.wait_for_all_acked(Duration(seconds=0.2))
            self._supervisor.forget()

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        loop = self._loop
        if loop is None:
            return super().level()
        if loop.tuning is None:
            return DiagnosticStatus.OK, 'playing' if self._playing else 'waiting for a reference'
        phase = self._supervisor.phase
        level = DiagnosticStatus.WARN if phase in (HOLDING, ZERO) else DiagnosticStatus.OK
        return level, f'{loop.tuning.law}: {phase}'

    def _on_phase(self, before: str, after: str) -> None:
        self.counts['transitions'] += 1
        late = after in (HOLDING, ZERO)
        self.report('warning' if late else 'info', f'{before} -> {after}' + (
            ': no new joint_states' if late else ''))
        self.publish_diagnostics()

    # references -----------------------------------------------------------------------------

    def _on_reference(self, message: JointTrajectory) -> None:
        loop, state = self._loop, self._state
        if not self.active:
            return
        if loop is None:
            self.warn('no_model', 'a reference arrived, but no robot_description')
            return
        running, closed = loop.running, loop.tuning is not None
        if closed and (state is None or self._age(state) > loop.tuning.state_timeout):
            self.warn('reference_refused', 'reference refused: there are no joint_states'
                      if state is None else 'reference refused: joint_states are stale')
            return
        try:
            reference = read_reference(message, running.joints)
            filled, over = with_effort(message, reference, running.dynamics)
            if closed:
                check_limits(reference, running.joints)
        except RobodynError as error:
            self.warn('reference_refused', f'reference refused: {error}')
            return
        now = self._now(state) if closed else self.get_clock().now().nanoseconds
        start = nanoseconds(message.header.stamp) or (0 if closed else now)
        if start and now > start + self._lifetime(reference):
            self.warn('reference_stale', 'reference refused: it ended '
                      f'{(now - start) * 1e-9 - reference.duration:.3f} s ago; valid: a stamp of '
                      '0 (now) or one that is not over')
            return
        if closed:
            try:
                check_start(reference, max(now - (start or now), 0) * 1e-9, state.q,
                            self.get_parameter('start_tolerance').value, running.joints)
            except RobodynError as error:
                self.warn('reference_refused', f'reference refused: {error}')
                return
        if over.any() and closed:
            weak = ', '.join(np.array(running.joints.joint_names)[over])
            self.warn('reference_refused', 'reference refused: it needs more than the effort '
                      f'limit of {weak}; valid: a slower motion')
            return
        if over.any():
            self._warn_saturated(running, over)
        self.counts['references'] += 1
        with self._lock:
            self._playing = Playing(reference, start, running.joints.joint_names)
        self._with_effort.publish(filled)

    def _stop_playing(self, why: str) -> None:
        if self._playing is not None:
            self._playing = None
            self.report('warning', f'the reference is dropped: {why}')

    def _lifetime(self, reference: Reference) -> int:
        """How long a reference counts, ns from its start."""
        extra = 0.0
        if len(reference.times) == 1:
            extra = self.get_parameter('setpoint_timeout').value
        elif reference.ends_at_rest:
            extra = self.get_parameter('hold').value
        return int((reference.duration + extra) * 1e9)

    def _warn_saturated(self, running: Running, over: Any) -> None:
        names = [name for name, hit in zip(running.joints.joint_names, over, strict=True) if hit]
        self.warn('saturated', f'torque limited to the effort limit: {", ".join(names)}')

    # open loop ------------------------------------------------------------------------------

    def _tick(self) -> None:
        loop = self._loop
        if loop is not None and loop.tuning is not None:
            self._watch(loop.tuning)
            return
        now = self.get_clock().now().nanoseconds
        back, self._last_tick = now < self._last_tick, now
        playing = self._playing
        if playing is None or loop is None or not self.active:
            return
        if back:
            self._playing = None
            self.warn('time_jump', 'the clock jumped back: the reference is dropped')
            return
        if now < playing.start:
            return
        if now > playing.start + self._lifetime(playing.reference):
            self._playing = None
            return
        q, qd, qdd = playing.reference.sample((now - playing.start) * 1e-9)
        running = loop.running
        tau = running.dynamics.inverse_dynamics(q, qd, qdd)
        if not np.isfinite(tau).all():
            self._playing = None
            self.warn('not_finite', 'the torque is not finite: the reference is dropped')
            return
        tau, over = saturate(tau, running.joints.effort_limit)
        if over.any():
            self._warn_saturated(running, over)
        self._publish(loop, now, tau)

    def _publish(self, loop: Loop, now: int, tau: Any) -> None:
        if self._torque.get_subscription_count():
            loop.torque_view[:] = tau
            set_nanoseconds(loop.torque.header.stamp, now)
            self._torque.publish(loop.torque)
        if self._commands.get_subscription_count():
            loop.commands_view[:] = tau[loop.order]
            self._commands.publish(loop.commands)

    # closed loop ----------------------------------------------------------------------------

    def _on_state(self, message: JointState) -> None:
        loop = self._loop
        if loop is None or loop.tuning is None or not self.active:
            return
        try:
            q, qd, _ = loop.reader.read_on(message, self._on_jump)
        except StateError as error:
            self.warn(error.kind, f'joint_states: {error}')
            return
        if qd is None:
            self.warn('no_velocity', f'joint_states have no velocities, {loop.tuning.law} needs '
                                     'them')
            return
        stamp = nanoseconds(message.header.stamp)
        with self._lock:
            last = self._state
            if not self.active:
                return
            if last is not None and stamp == last.stamp:
                self.warn('frozen', 'joint_states repeat a stamp: they do not count as new')
                return
            self._state = State(q, qd, stamp, time.monotonic())
            self._control(loop, self._state, 0.0)

    def _on_jump(self, error: StateError) -> None:
        with self._lock:
            self._stop_playing('the stamps of joint_states jumped back')
            self._supervisor.restart()
        self.warn(error.kind, f'joint_states: {error}')

    def _watch(self, tuning: Tuning) -> None:
        """Answer in place of the states that stay out."""
        if not self.active or self._state is None:
            return
        with self._lock:
            loop, state = self._loop, self._state
            if self.active and loop is not None and loop.tuning is not None and \
                    state is not None:
                age = self._age(state)
                if age > tuning.state_timeout:
                    self._control(loop, state, age)

    def _control(self, loop: Loop, state: State, age: float) -> None:
        """Publish the torque for a state; with the lock held."""
        running = loop.running
        now = state.stamp + int(age * 1e9)
        sample = self._sample(now, loop.tuning.flexible is not None)
        try:
            command = self._supervisor.command(
                now * 1e-9, running.dynamics, loop.tuning, (state.q, state.qd), age, sample,
                self._playing.reference if self._playing is not None
                and len(self._playing.reference.times) > 1 else None)
        except (FloatingPointError, RobodynError) as error:
            self._state = None  # what comes next is judged anew; the robot's own timeout holds
            kind = 'not_finite' if isinstance(error, FloatingPointError) else 'pose_refused'
            self.warn(kind, f'{error}: this state is not answered')
            return
        if command.phase in (HOLDING, ZERO):
            self._stop_playing('joint_states stay out')
        if command.saturated.any():
            self._warn_saturated(running, command.saturated)
        self._publish(loop, now, command.torque)

    def _sample(self, now: int, elastic: bool) -> Any:
        playing = self._playing
        if playing is None:
            return None
        if not playing.start:
            playing = self._playing = replace(playing, start=now)
        if now > playing.start + self._lifetime(playing.reference):
            self._playing = None
            return None
        if now < playing.start:
            return None
        time = (now - playing.start) * 1e-9
        return playing.reference.derivatives(time) if elastic else playing.reference.sample(time)

    @staticmethod
    def _age(state: State) -> float:
        return time.monotonic() - state.arrived

    def _now(self, state: State) -> int:
        """Time on the clock of the states, ns."""
        return state.stamp + int(self._age(state) * 1e9)


def main(arguments: list[str] | None = None) -> None:
    """Run the node."""
    run(Feedforward, arguments)


if __name__ == '__main__':
    main()
