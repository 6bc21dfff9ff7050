"""The node `simulator`: the embedded engine as a robot on topics, in real time or in lock-step."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from robodyn_interfaces.srv import SetPayload
from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.base import DynamicsNode, run
from robodyn_ros.nodes.fast_path import DEPTH, Pace
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.simulation import Sensors, Simulation, SimulationError

MOST_CYCLES = 10_000  # without a state, in lock-step
BRAKES_OPEN = 0.05  # s after the start: torques for the motion before may be under way
NEVER = -math.inf  # s


class Simulator(DynamicsNode):
    """Torques in, measured joint states out; ~/set_payload loads the true robot.

    In real time the physics keeps up with the wall clock, ``rate`` cycles a second; torques count
    for ``command_timeout`` simulated seconds, then they are zero. In lock-step each vector of
    torques advances one cycle: the same commands give the same motion, at most
    ``real_time_factor`` times as fast as the wall clock. A pause holds the world, and its end
    goes on with the answer that came meanwhile; ``~/step`` advances one cycle, in a pause as
    well. A stamped ``~/torque`` is the answer to the state with this stamp: one that comes too
    late, after a reset or a second answer, is left alone.

    ~/links tells the truth: where the links are, without noise or delay.
    """

    hot_swap = False  # the true robot stays what it is

    def __init__(self, **options: Any):
        self._lock = threading.Lock()
        self._simulation: Simulation | None = None
        self._command = np.zeros(0)
        self._commanded = NEVER  # the last command, simulated s: a world on hold ages nothing
        self._fresh = False  # a command came since the last cycle
        self._held = self._diverged = False
        self._waiting = False  # a command that has not moved the robot yet, in lock-step
        self._pace = Pace()  # of cycles, in lock-step
        self._last_stamp = -1  # of the states, ns
        self._viewer: Any = None
        super().__init__('simulator', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        fixed: dict[str, Any] = {'read_only': True}
        declare(self, 'rate', 1000.0, 'cycles a second: joint states out, torques in, Hz',
                range_=(1.0, 5000.0), **fixed)
        declare(self, 'timestep', 0.001, 'of the physics, s; at most one cycle',
                range_=(1e-5, 0.1), **fixed)
        declare(self, 'lock_step', False, 'advance only with commands and ~/step', **fixed)
        declare(self, 'real_time_factor', 0.0, 'simulated seconds in a second, at most, in '
                'lock-step; 0: as many as commands allow', range_=(0.0, 1000.0))
        declare(self, 'truth_file', '', 'YAML that says where the true robot differs', **fixed)
        declare(self, 'viewer', False, "show the robot in the engine's window", **fixed)
        declare(self, 'start_position', [0.0], 'joint positions at start and ~/reset, rad or m; '
                'one number: all of them')
        declare(self, 'brakes', False, 'hold the robot at the start until a command comes, '
                f'{BRAKES_OPEN} s at least (real time)')
        declare(self, 'command_timeout', 0.1, 'simulated s, after which torques count as zero '
                '(real time)', range_=(0.001, 10.0))
        for name, description in (
                ('position_noise', 'standard deviation of positions, rad or m'),
                ('velocity_noise', 'of velocities, rad/s or m/s'),
                ('position_step', 'resolution of the encoders, rad or m'),
                ('delay', 's until a state is published'),
                ('dropped', 'probability that a state is lost')):
            declare(self, name, 0.0, description, range_=(0.0, 1000.0), **fixed)
        declare(self, 'effort_noise', [0.0], 'standard deviation of efforts, N m or N; one '
                'number, or one for each joint', **fixed)
        declare(self, 'motor_encoders', False, 'joint_states are of the motors of elastic joints, '
                'behind their gears, not of the links', **fixed)
        declare(self, 'seed', 0, 'of all that is random', **fixed)

    def take_parameters(self, changes: dict[str, Any]) -> str | None:
        """Take a start position that fits the robot."""
        simulation = self._simulation
        if 'start_position' in changes and simulation is not None and len(
                changes['start_position']) not in (1, simulation.n):
            return f'start_position has {len(changes["start_position"])} numbers; valid: 1, or ' \
                   f'{simulation.n}: {", ".join(simulation.joint_names)}'
        return None

    def set_up(self) -> None:
        """Create publishers, subscriptions and services; begin to pace."""
        make = self.create_publisher, self.destroy_publisher
        self._states = self.keep(*make, JointState, 'joint_states', DEPTH)
        self._links = self.keep(*make, JointState, '~/links', DEPTH)
        self._clock_topic = self.keep(*make, Clock, '/clock', 10)
        serve = self.create_service, self.destroy_service
        self.keep(*serve, SetBool, '~/pause', self._on_pause)
        self.keep(*serve, Trigger, '~/reset', self._on_reset)
        self.keep(*serve, Trigger, '~/step', self._on_step)
        self.listen((Float64MultiArray, '~/commands', self._on_commands, DEPTH),
                    (JointState, '~/torque', self._on_torque, DEPTH))
        if not self.get_parameter('lock_step').value:
            self.pace(self._tick, self.get_parameter('rate').value)

    def on_model(self, running: Running) -> None:
        """Put the robot into the engine; each of its joints gets a topic of its own."""
        value = {name: self.get_parameter(name).value for name in (
            'position_noise', 'velocity_noise', 'effort_noise', 'position_step', 'delay',
            'dropped', 'seed')}
        if len(value['effort_noise']) == 1:
            value['effort_noise'] = value['effort_noise'][0]
        try:
            value['motors'] = self.get_parameter('motor_encoders').value
            simulation = Simulation(
                running.text, truth=self.get_parameter('truth_file').value or None,
                motors=self.get_parameter('motors_file').value or None,
                loops=self.get_parameter('loops_file').value or None,
                timestep=self.get_parameter('timestep').value, gravity=running.model.gravity,
                sensors=Sensors(**value))
            simulation.reset(self._start(simulation))
        except (RobodynError, ValueError) as error:
            self.report('error', f'the robot is not simulated: {error}')
            return
        with self._lock:
            known = self._simulation
            self._simulation = simulation
            self._command, self._commanded = np.zeros(simulation.n), NEVER
        if known is None or known.joint_names != simulation.joint_names:
            for place, joint in enumerate(simulation.joint_names):
                topic = f'/model/{running.model.name}/joint/{joint}/cmd_force'
                self.keep(self.create_subscription, self.destroy_subscription, Float64, topic,
                          lambda message, place=place: self._on_force(place, message), 10)

        if self.get_parameter('viewer').value:
            self._show(simulation)

    def _show(self, simulation: Simulation) -> None:
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        try:
            self._viewer = simulation.show()
        except Exception as error:  # no display, no OpenGL: the robot moves all the same
            self.report('error', f'there is no window: {error}')
            return
        self.keep(self.create_timer, self.destroy_timer, 1 / 30, self._draw)

    def _draw(self) -> None:
        if self._viewer is not None and self._viewer.is_running():
            with self._lock:
                self._viewer.sync()

    def _start(self, simulation: Simulation) -> Any:
        start = self.get_parameter('start_position').value
        joints = simulation.joints
        if len(start) == 1:
            return np.clip(np.full(simulation.n, start[0]), joints.lower, joints.upper)
        return start

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin; torques from before do not count."""
        self._commanded = NEVER
        return super().on_activate(state)

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self._simulation is None:
            return super().level()
        return DiagnosticStatus.OK, f'{"paused" if self._held else "running"} at ' \
                                    f'{self._simulation.time:.3f} s'

    # commands -------------------------------------------------------------------------------

    def _on_commands(self, message: Float64MultiArray) -> None:
        simulation = self._simulation
        if simulation is None:
            return
        self._take(np.array(message.data, np.float64), simulation, 'commands')

    def _on_torque(self, message: JointState) -> None:
        simulation = self._simulation
        if simulation is None:
            return
        given = dict(zip(message.name, message.effort, strict=False))
        if any(joint not in given for joint in simulation.joint_names):
            missing = next(j for j in simulation.joint_names if j not in given)
            self.warn('command_refused', f'torque of {missing!r} is missing')
            return
        self._take(np.array([given[joint] for joint in simulation.joint_names]), simulation,
                   'torque', stamp=nanoseconds(message.header.stamp))

    def _on_force(self, place: int, message: Float64) -> None:
        simulation = self._simulation
        if simulation is None or place >= simulation.n:
            return
        torque = self._command.copy()
        torque[place] = message.data
        self._take(torque, simulation, simulation.joint_names[place], cycle=False)

    def _take(self, torque: Any, simulation: Simulation, what: str, cycle: bool = True,
              stamp: int = 0) -> None:
        if torque.shape != (simulation.n,) or not np.isfinite(torque).all():
            self.warn('command_refused', f'{what} refused: {torque.tolist()}; valid: '
                      f'{simulation.n} finite numbers')
            return
        answer = cycle and self.active and self.get_parameter('lock_step').value
        with self._lock:
            if simulation is not self._simulation:
                return  # meant for the robot before
            last = self._last_stamp
            late = answer and stamp and stamp != last
            if not late:
                self._command, self._commanded, self._fresh = torque, simulation.time, True
                self.counts['commands'] += 1
                self._waiting = self._waiting or answer
        if late:
            self.warn('not_an_answer', f'torque with the stamp {stamp * 1e-9:.6f} s left alone: '
                      f'the last state has {last * 1e-9:.6f} s')
        elif answer:
            self._keep_pace()
            self._go_on()

    # time -----------------------------------------------------------------------------------

    def _tick(self) -> None:
        if not self.active or self._held or self._simulation is None:
            return
        with self._lock:
            if not self._fresh:
                self.counts['cycles_without_command'] += 1
            self._fresh = False
            age = self._simulation.time - self._commanded
            if self._commanded < BRAKES_OPEN and self.get_parameter('brakes').value:
                self._cycle(None)
            elif age > self.get_parameter('command_timeout').value:
                self._cycle(np.zeros_like(self._command))
            else:
                self._cycle(self._command)

    def _keep_pace(self) -> None:
        """Wait until the next cycle may come, in lock-step."""
        factor = self.get_parameter('real_time_factor').value
        if factor:
            self._pace.wait(1 / (factor * self.get_parameter('rate').value))

    def _go_on(self) -> None:
        """Advance with the command that waits, if one does and nothing holds the world."""
        with self._lock:
            if self._held or not self._waiting:
                return
            self._advance()

    def _advance(self) -> None:
        """Advance until a state arrives: what is lost nobody answers; with the lock held."""
        torque, self._waiting = self._command, False
        for _ in range(MOST_CYCLES):
            if self._cycle(torque):
                return

    def _cycle(self, torque: Any) -> bool:
        """Advance one cycle and publish what is measured; return whether there is something.

        With the lock held. No torque, None: the brakes are on.
        """
        simulation = self._simulation
        if simulation is None or (torque is not None and len(torque) != simulation.n):
            return True
        steps = max(1, round(1 / (self.get_parameter('rate').value * simulation.timestep)))
        try:
            if torque is None:
                simulation.rest(steps)
            else:
                simulation.step(torque, steps)
        except SimulationError as error:
            self._held = self._diverged = True
            self.report('error', f'{error}; paused: ~/reset begins again')
            return True
        return self._publish(simulation)

    def _publish(self, simulation: Simulation) -> bool:
        """Publish the time and what is measured, if anything; with the lock held."""
        measured, now = simulation.measure(), simulation.time
        self.counts['cycles'] += 1
        clock = Clock()
        set_nanoseconds(clock.clock, round(now * 1e9))
        self._clock_topic.publish(clock)
        if measured is None:
            return False
        message = JointState(name=list(simulation.joint_names),
                             position=measured.position.tolist(),
                             velocity=measured.velocity.tolist(),
                             effort=measured.effort.tolist())
        self._last_stamp = round(measured.time * 1e9)
        set_nanoseconds(message.header.stamp, self._last_stamp)
        self._states.publish(message)
        if self._links.get_subscription_count():
            message.position, message.velocity = (
                simulation.position.tolist(), simulation.velocity.tolist())
            set_nanoseconds(message.header.stamp, round(now * 1e9))
            self._links.publish(message)
        return True

    async def _on_set_payload(self, request: SetPayload.Request,
                              response: SetPayload.Response) -> SetPayload.Response:
        """Fix a body to a link of the true robot, while it moves."""
        simulation = self._simulation
        if simulation is None:
            response.message = 'there is no robot yet'
            return response
        xx, xy, xz, yy, yz, zz = request.inertia
        com = [request.com.x, request.com.y, request.com.z]
        try:
            with self._lock:
                simulation.attach(request.link, request.mass, com,
                                  [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        except RobodynError as error:
            response.message = str(error)
            return response
        response.success = True
        response.message = f'{request.mass} kg on {request.link} of the true robot'
        response.model_version = self.keeper.running.version if self.keeper.running else 0
        return response

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if not request.data and self._diverged:
            response.message = 'the motion has diverged; valid: ~/reset'
            return response
        self._held = request.data
        if self.active:
            self._go_on()
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        simulation = self._simulation
        if simulation is None:
            response.message = 'there is no robot yet'
            return response
        with self._lock:
            simulation.reset(self._start(simulation))
            self._command, self._commanded = np.zeros(simulation.n), NEVER
            if self._diverged:
                self._held = self._diverged = False
            # or nobody answers; nor to a stamp that was said before
            heard = self._cycle(None) if self._last_stamp == 0 else self._publish(simulation)
            self._waiting = self.get_parameter('lock_step').value and not heard
        self._go_on()
        response.success, response.message = True, 'at the start'
        return response

    def _on_step(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        simulation = self._simulation
        if simulation is None or not self.active:
            response.message = 'there is no robot yet' if simulation is None else 'not active'
            return response
        if self._diverged:
            response.message = 'the motion has diverged; valid: ~/reset'
            return response
        with self._lock:
            self._advance()
        response.success, response.message = True, f'{simulation.time:.6f} s'
        return response


def main(arguments: list[str] | None = None) -> None:
    """Run the node."""
    run(Simulator, arguments)


if __name__ == '__main__':
    main()
