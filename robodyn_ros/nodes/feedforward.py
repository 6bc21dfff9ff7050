"""The node `feedforward`: an adapter between topics and `robodyn_ros.control.Controller`."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import Answer, ControlLaw, Controller, ReferenceRefused
from robodyn_ros.control.command_watchdog import Terms
from robodyn_ros.control.supervisor import HOLDING, WAITING, ZERO
from robodyn_ros.control.tuning import OPEN_LOOP, check_values
from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes import references
from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.command_messages import CommandMessages
from robodyn_ros.nodes.contact_listener import ContactListener
from robodyn_ros.nodes.dynamics import SENSOR_DATA
from robodyn_ros.nodes.fast_path import DEPTH, Pacer
from robodyn_ros.nodes.joint_states import StateError, StateReader
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.real_time import declare_real_time
from robodyn_ros.nodes.references import ReferenceReader
from robodyn_ros.nodes.running import run
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.tuning import NAMES, USUAL, command_order, declare_tuning, tuning_values
from robodyn_ros.nodes.watchdog import TASK, Place, watch
from robodyn_ros.nodes.watchdog_keeper import WatchdogKeeper

RELIABLE = QoSProfile(depth=10)


class Feedforward(DynamicsNode):
    """Plays ~/reference and publishes the required torques.

    In the mode ``feedforward`` the loop is open: the node publishes the inverse dynamics of the
    reference against the clock, and nothing without a valid reference. In all other modes it
    responds to every joint state with a torque of the `Supervisor`, and references run on the
    stamps of the states.
    """

    tasks = DynamicsNode.tasks | references.TASKS | {TASK: watch}
    kernels = ('inverse_dynamics', 'gravity', 'mass_matrix')
    commands = True

    def __init__(self, **options: Any):
        self._controller: Controller | None = None
        self._reader: StateReader | None = None
        self._outputs: CommandMessages | None = None
        self._before: tuple[Controller, CommandMessages] | None = None  # of the previous robot
        self._unfit = ''  # why the parameters do not fit the robot
        self._lock = threading.RLock()  # guards the controller and its outputs
        self._pacer: Pacer | None = None
        self._watchdog: WatchdogKeeper | None = None
        self._contacts = ContactListener(self, self._lock)
        self._references = self._newest = 0  # number of references, and index of the current one
        super().__init__('feedforward', **options)
        self._reading = ReferenceReader(self.helper)

    # parameters -----------------------------------------------------------------------------

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'rate', 500.0, 'rate of ~/torque and ~/commands in the mode feedforward, '
                'and while joint_states are missing, Hz of the wall clock', range_=(1.0, 5000.0))
        declare(self, 'command_joints', [''], 'joints of ~/commands and their order; empty: all, '
                'in the order of the URDF')
        declare(self, 'watchdog', True, 'whether a separate process commands hold, then zero, '
                'if this one gives no sign of life for state_timeout', read_only=True)
        declare_real_time(self)
        declare_tuning(self)
        ContactListener.declare(self)

    def check_parameters(self, changes: dict[str, Any]) -> str | None:
        """Check changed parameters."""
        values, running = tuning_values(self, changes), self.keeper.running
        try:
            check_values(values)
            if running is not None and ('command_joints' in changes or changes.keys() & set(
                    NAMES)):
                ControlLaw.of(values, running.dynamics)
                command_order(running.joints.joint_names, changes.get(
                    'command_joints', self.get_parameter('command_joints').value))
        except RobodynError as error:
            return str(error)
        return None

    def apply_parameters(self, changes: dict[str, Any]) -> None:
        """Adopt changed parameters."""
        running = self.keeper.running
        if running is not None and ('command_joints' in changes or changes.keys() & set(NAMES)):
            self.on_model(running)
        if 'rate' in changes and self._pacer is not None:
            self._pacer.period = 1.0 / changes['rate']

    # lifecycle and model --------------------------------------------------------------------

    def set_up(self) -> None:
        """Create publishers, subscriptions and the timer."""
        if self.get_parameter('watchdog').value:
            self._made.append(self._stop_watchdog)
            self._start_watchdog()
        make = self.create_publisher, self.destroy_publisher
        self._torque = self.keep(*make, JointState, '~/torque', DEPTH)
        self._commands = self.keep(*make, Float64MultiArray, '~/commands', DEPTH)
        self._with_effort = self.keep(*make, JointTrajectory, '~/trajectory_with_effort', 10)
        self.keep(self.create_subscription, self.destroy_subscription, JointTrajectory,
                  '~/reference', self._on_reference, RELIABLE, raw=True)
        self.listen((JointState, 'joint_states', self._on_state, SENSOR_DATA), newest=True)
        self._pacer = self.pace(self._tick, self.get_parameter('rate').value)
        self._made.append(self._contacts.stop)
        self._contacts.set_up()

    def on_model(self, running: Running) -> None:
        """Adopt a new model; a reference for other joints is dropped."""
        values, joints = tuning_values(self), self.get_parameter('command_joints').value
        names, self._unfit = list(running.joints.joint_names), ''
        try:
            law, order = ControlLaw.of(values, running.dynamics), command_order(names, joints)
        except RobodynError as error:
            self._unfit = str(error)
            self.report('error', f'{error}; the mode is {OPEN_LOOP}, and all joints are commanded '
                        'until the parameters fit the robot')
            law, order = ControlLaw.of(values | USUAL, running.dynamics), command_order(names, [])
        outputs = CommandMessages.of(running, order)
        with self._lock:
            known, former = self._controller, self._outputs
            if known is not None and former is not None and tuple(
                    former.running.joints.joint_names) == tuple(names):
                known.use(law, time.monotonic())
            else:
                if known is not None and former is not None:
                    known.end(time.monotonic(), 'the new model has other joints')
                    self._before = known, former
                self._controller = Controller(law, self.warn, self._on_phase)
                self._reader = StateReader(running.joints)
                if known is not None:  # a contact of the former robot was not acknowledged
                    self._controller.reaction = known.reaction
                    known.reaction.finish()
            self._outputs = outputs
        self._contacts.follow(self._controller)
        self._tell_terms()

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing; if the loop was closed, command zero torque first."""
        self.before_shutdown()
        return super().on_deactivate(state)

    def before_shutdown(self) -> None:
        """Command zero as the last torque, unless the loop is open and nothing is commanded."""
        with self._lock:
            controller, outputs, self._before = self._controller, self._outputs, None
            if self._watchdog is not None:
                self._watchdog.disarm(time.monotonic())
            if controller is None or outputs is None:
                return
            closed = controller.law.tuning is not None and controller.phase != WAITING
            if self.active and (closed or controller.ending):
                self._publish(outputs, Answer(np.zeros(outputs.running.joints.n),
                                              self.get_clock().now().nanoseconds))
                for publisher in (self._torque, self._commands):
                    publisher.wait_for_all_acked(Duration(seconds=0.2))
            self.active = False  # no other command may follow
            controller.forget()

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        controller = self._controller
        if controller is None:
            return super().level()
        if self._unfit:
            return DiagnosticStatus.ERROR, f'the parameters do not fit the robot: {self._unfit}'
        if self._contacts.problem():
            return DiagnosticStatus.WARN, self._contacts.problem()
        if controller.law.tuning is None:
            return DiagnosticStatus.OK, 'playing' if controller.player.playing else \
                'waiting for a reference'
        level = DiagnosticStatus.WARN if controller.phase in (HOLDING, ZERO) else \
            DiagnosticStatus.OK
        return level, f'{controller.law.tuning.law}: {controller.phase}'

    def more_diagnostics(self) -> dict[str, Any]:
        """Return the reaction to contacts."""
        return self._contacts.values()

    def publish_diagnostics(self) -> None:
        """Publish the state, and warn of what is missing or contradicts the settings."""
        super().publish_diagnostics()
        controller = self._controller
        if controller is None or not self.active:
            return
        if controller.law.tuning is not None and controller.state is None:
            self.warn('no_states', 'waiting for joint_states on the topic '
                                   f'{self.resolve_topic_name("joint_states")}')
        elif controller.commanding and not (self._torque.get_subscription_count()
                                            or self._commands.get_subscription_count()):
            self.warn('no_subscriber', 'nothing subscribes to the commands: '
                      f'{self._torque.topic_name}, {self._commands.topic_name}')
        self._contacts.check()
        if self._outputs is not None:
            self._outputs.efforts.warn(self)
        if self._watchdog is not None:
            self._watchdog.check()
        for publisher in (self._torque, self._commands):
            others = self.other_publishers(publisher.topic_name)
            if others:
                self.warn('other_commander', f'{publisher.topic_name} has other publishers: '
                                             f'{", ".join(others)}')

    def _on_phase(self, before: str, after: str) -> None:
        self.counts['transitions'] += 1
        late = after in (HOLDING, ZERO)
        self.report('warning' if late else 'info', f'{before} -> {after}' + (
            ': no new joint_states' if late else ''))
        self.diagnose_soon()

    # messages -------------------------------------------------------------------------------

    def _on_reference(self, raw: bytes) -> None:
        self._references += 1
        number = self._references
        if self._reading.is_short(raw):
            self._take_reference(raw, number)
        else:
            self.newest_in_background('reference', lambda: self._take_reference(raw, number))

    def _take_reference(self, raw: bytes, number: int) -> None:
        controller, outputs = self._controller, self._outputs
        if not self.active:
            return
        if controller is None or outputs is None:
            self.warn('no_model', 'a reference arrived, but no robot_description')
            return
        joints = outputs.running.joints
        try:
            reference, stamp = self._reading.read(raw, joints)
            now, clock = time.monotonic(), self.get_clock().now().nanoseconds
            playing, tau = controller.check(reference, stamp, now, clock)
            with self._lock:
                if controller is not self._controller or number < self._newest or not self.active:
                    return  # replaced meanwhile: the robot, or this reference by a later one
                self._newest = number
                controller.play(playing, now, clock)
            self.counts['references'] += 1
            self._with_effort.publish(self._reading.fill(raw, tau, joints))
        except RobodynError as error:
            kind = error.kind if isinstance(error, ReferenceRefused) else 'reference_refused'
            self.warn(kind, f'reference refused: {error}')

    def _on_state(self, message: JointState) -> None:
        controller, outputs, reader = self._controller, self._outputs, self._reader
        if controller is None or outputs is None or reader is None or not self.active or \
                controller.law.tuning is None:
            return
        arrived = time.monotonic()
        try:
            q, qd, effort = reader.read_on(message, self._on_jump)
        except StateError as error:
            self.warn(error.kind, f'joint_states: {error}')
            return
        if qd is None:
            self.warn('no_velocity', 'joint_states have no velocities, '
                                     f'{controller.law.tuning.law} needs them')
            return
        with self._lock:
            if self.active:
                if self._watchdog is not None:
                    self._watchdog.notice_takeover(controller, arrived)
                answer = controller.on_state(q, qd, nanoseconds(message.header.stamp), arrived)
                self._publish(outputs, answer)
                outputs.efforts.state(q, qd, effort)
                outputs.efforts.command(q, qd, answer)

    def _on_jump(self, error: StateError) -> None:
        with self._lock:
            if self._controller is not None:
                self._controller.on_jump()
        self.warn(error.kind, f'joint_states: {error}')

    def _tick(self) -> None:
        if not self.active:
            return
        now, clock = time.monotonic(), self.get_clock().now().nanoseconds
        with self._lock:
            if self._before is not None:  # end the commands of the previous robot
                former, outputs = self._before
                self._publish(outputs, former.tick(now, clock))
                if not former.ending:
                    self._before = None
            controller = self._controller
            if controller is not None and self._outputs is not None:
                if self._watchdog is not None:
                    self._watchdog.notice_takeover(controller, now)
                self._publish(self._outputs, controller.tick(now, clock))
                if self._watchdog is not None:
                    self._watchdog.follow(controller, now)

    def _publish(self, outputs: CommandMessages, answer: Answer | None) -> None:
        if answer is None:
            return
        if self._watchdog is not None and outputs is self._outputs:
            self._watchdog.command(answer.torque, answer.stamp)
        if self._torque.get_subscription_count():
            outputs.torque_view[:] = answer.torque
            set_nanoseconds(outputs.torque.header.stamp, answer.stamp)
            self._torque.publish(outputs.torque)
        if self._commands.get_subscription_count():
            outputs.commands_view[:] = answer.torque[outputs.order]
            self._commands.publish(outputs.commands)

    # watchdog -------------------------------------------------------------------------------

    def _start_watchdog(self) -> None:
        if self.helper is not None:
            self._watchdog = WatchdogKeeper(self, self.helper, Place(
                self.get_name(), self.get_namespace(), self.resolve_topic_name('~/torque'),
                self.resolve_topic_name('~/commands'),
                self.get_parameter('realtime_priority').value))

    def _stop_watchdog(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.stop()

    def _tell_terms(self) -> None:
        """Send the watchdog its terms for the current model and parameters."""
        controller, outputs = self._controller, self._outputs
        if self._watchdog is None or controller is None or outputs is None:
            return
        self._watchdog.send_terms(Terms.of(controller.law, outputs.order, tuning_values(self),
                                     1.0 / self.get_parameter('rate').value))


def main(arguments: list[str] | None = None) -> int:
    """Run the node."""
    return run(Feedforward, arguments, Feedforward.tasks)


if __name__ == '__main__':
    raise SystemExit(main())
