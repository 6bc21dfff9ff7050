"""`WorldTime`: a simulated robot whose time passes in control cycles; its states on topics."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock as WallClock
from rclpy.clock import ClockType
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.fast_path import DEPTH, Pace
from robodyn_ros.nodes.loop_delay import LoopDelay
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.stamps import set_nanoseconds
from robodyn_ros.simulation import Sensors, SimulatedRobot, SimulationError
from robodyn_ros.simulation.drives import Drives
from robodyn_ros.simulation.watchdog import TorqueWatchdog

MOST_CYCLES = 10_000  # without a state, in lock-step
REPEATED = 1.0  # s of the wall clock after which a state that nobody answers is repeated
SENSORS = (
    ('position_noise', 'standard deviation of positions, rad or m', 1000.0),
    ('velocity_noise', 'standard deviation of velocities, rad/s or m/s', 1000.0),
    ('position_step', 'resolution of the encoders, rad or m', 1000.0),
    ('delay', 'time between measuring a state and publishing it, s', 1000.0),
    ('dropped', 'probability that a state is lost, below 1', 1.0))


class WorldTime(DynamicsNode):
    """A simulated robot in its world: its time, its published states, the torque on it.

    Subclasses make the robot in ``on_model`` and hand it to ``put_robot``.
    """

    hot_swap = False  # models that others identify do not change the simulated robot

    def __init__(self, name: str, **options: Any):
        self.lock = threading.RLock()
        self.robot: SimulatedRobot | None = None
        self.drives: Drives | None = None  # where commands or efforts are not plain torques
        self.watchdog = TorqueWatchdog()
        self.held = self.diverged = False
        self.waiting = False  # in lock-step: a command has not moved the robot yet
        self.answered = False  # a command has come since the robot was put into the world
        self._answers = False  # commands are answers: they have the stamp of their state
        self._counted = 0  # cycles at the last look for a state that nobody answers
        self.last_stamp = -1  # of the states, ns
        self.fresh = False  # a command has come since the last cycle
        self._last_state: JointState | None = None
        self.pacing = Pace()  # of cycles in lock-step
        self.delay = LoopDelay()
        super().__init__(name, **options)

    def set_up(self) -> None:
        """Create publishers."""
        make = self.create_publisher, self.destroy_publisher
        self._states = self.keep(*make, JointState, 'joint_states', DEPTH)
        self._links = self.keep(*make, JointState, '~/links', DEPTH)
        self._clock_topic = self.keep(*make, Clock, '/clock', 10) if self.value(
            'publish_clock') else None
        self._torque_topics = [self.resolve_topic_name(name)
                               for name in ('~/torque', '~/commands')]
        if self.waits_for_commands():
            self.report('info', 'the world waits for torques on '
                                f'{" or ".join(self._torque_topics)}, or for ~/step')
            self.keep(self.create_timer, self.destroy_timer, REPEATED, self._repeat_state,
                      clock=WallClock(clock_type=ClockType.STEADY_TIME))

    def waits_for_commands(self) -> bool:
        """Return whether nothing moves in the world before the first command."""
        return bool(self.value('lock_step'))

    def value(self, name: str) -> Any:
        """Return the value of a parameter."""
        return self.get_parameter(name).value

    def sensors(self, **more: Any) -> Sensors:
        """Return the sensors that the parameters describe."""
        noise = self.value('effort_noise')
        return Sensors(**{name: self.value(name) for name, *_ in SENSORS}, **more,
                       effort_noise=noise[0] if len(noise) == 1 else noise,
                       seed=self.value('seed'))

    def put_robot(self, robot: SimulatedRobot) -> None:
        """Begin with a robot, which stands in its world already."""
        with self.lock:
            self.robot = robot
            self.watchdog.restart(robot.n)
            self._last_state, self.answered = None, False

    def put_drives(self, running: Running) -> None:
        """Let the robot treat commands and efforts as its description says.

        Raises
        ------
        RobodynError
            This cannot be simulated.
        """
        drives = Drives(running.dynamics)
        self.drives = None if drives.plain else drives

    def start_position(self, robot: SimulatedRobot) -> Any:
        """Return the joint positions at the start, shape (n,)."""
        start = self.value('start_position')
        if len(start) == 1:
            return np.clip(np.full(robot.n, start[0]), robot.joints.lower, robot.joints.upper)
        return start

    def steps_of_cycle(self, timestep: float) -> int:
        """Return the number of physics steps in a control cycle."""
        return max(1, round(1 / (self.value('rate') * timestep)))

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin; torques from before do not count."""
        self.watchdog.restart(self.robot.n if self.robot is not None else 0)
        return super().on_activate(state)

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self.robot is None:
            return super().level()
        waits = self.waits_for_commands() and not self.answered
        return DiagnosticStatus.OK, (
            f'{"paused" if self.held else "running"} at {self.robot.time:.3f} s'
            + (f', waiting for torques on {" or ".join(self._torque_topics)}' if waits else ''))

    def more_diagnostics(self) -> dict[str, Any]:
        """Return the delay of the control loop."""
        return self.delay.report()

    def torque_now(self, robot: SimulatedRobot) -> Any:
        """Return the torque that acts in the next cycle, in real time; None: the brakes hold."""
        if not self.fresh:
            self.counts['cycles_without_command'] += 1
        self.fresh = False
        return self.watchdog.torque(robot.time, self.value('command_timeout'),
                                    self.value('brakes'))

    def _repeat_state(self) -> None:
        """Publish again where a controller has not answered the last state.

        Nothing moves the world before it does. Before the first answer, the state gets a new stamp
        under brakes: the controller may have missed the state, or its answer may have been lost,
        and no controller answers a stamp twice. Later on, in lock-step, the state itself is
        repeated: a controller that refused it as too old takes it now, and so does one that has
        been started anew.
        """
        idle, self._counted = self._counted == self.counts['cycles'], self.counts['cycles']
        if self.robot is None or self.held or not self.active or not (
                idle or self._last_state is None):
            return
        if not any(map(self.count_publishers, self._torque_topics)):
            return
        with self.lock:
            if not self.answered:
                self.advance(None)
            elif self._answers and self._last_state is not None and self.value('lock_step'):
                self._states.publish(self._last_state)

    def go_on(self) -> None:
        """Advance with the command that waits, if one does and nothing holds the world."""
        with self.lock:
            if not self.held and self.waiting:
                self.advance(self.watchdog.command)

    def advance(self, torque: Any) -> None:
        """Advance until a state is published, since nobody can answer one that is lost."""
        self.waiting = False
        for _ in range(MOST_CYCLES):
            if self.cycle(torque):
                return

    def cycle(self, torque: Any) -> bool:
        """Advance one cycle and publish what is measured; return whether there is something.

        Called with the lock held. Without a torque, None, brakes hold the robot.
        """
        robot = self.robot
        if robot is None or (torque is not None and len(torque) != robot.n):
            return True
        steps = self.steps_of_cycle(robot.timestep)
        try:
            if torque is None:
                robot.hold(steps)
            else:
                robot.step(torque if self.drives is None else self.drives.applied(
                    torque, robot.position, robot.velocity), steps)
            return self.publish(robot)
        except SimulationError as error:
            self.on_simulation_error(error)
            return True

    def on_simulation_error(self, error: SimulationError) -> None:
        """Pause a world whose simulation failed."""
        self.held = self.diverged = True
        self.report('error', f'{error}; paused: ~/reset begins again')

    def publish(self, robot: SimulatedRobot) -> bool:
        """Publish the time and what is measured, if anything; with the lock held."""
        measured, now = robot.measure(), robot.time
        self.counts['cycles'] += 1
        if self._clock_topic is not None:
            clock = Clock()
            set_nanoseconds(clock.clock, round(now * 1e9))
            self._clock_topic.publish(clock)
        if measured is None:
            return False
        effort = measured.effort if self.drives is None else self.drives.reported(
            measured.effort, measured.position, measured.velocity)
        message = JointState(name=list(robot.joint_names),
                             position=measured.position.tolist(),
                             velocity=measured.velocity.tolist(),
                             effort=effort.tolist())
        self.last_stamp = round(measured.time * 1e9)
        set_nanoseconds(message.header.stamp, self.last_stamp)
        self._states.publish(message)
        self._last_state = message
        self.delay.state(self.last_stamp)
        if self._links.get_subscription_count():
            links = JointState(name=message.name, position=robot.position.tolist(),
                               velocity=robot.velocity.tolist(), effort=message.effort)
            set_nanoseconds(links.header.stamp, round(now * 1e9))
            self._links.publish(links)
        return True
