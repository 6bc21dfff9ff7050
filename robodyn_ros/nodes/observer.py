"""The node `observer`: external torques, the external wrench and contacts from joint states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robodyn_interfaces.msg import Contact as ContactMessage
from robodyn_ros.dynamics import RobotDynamics, efforts
from robodyn_ros.dynamics.protocol import smoothed
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Model
from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.effort_check import known_factors
from robodyn_ros.nodes.fast_path import DEPTH
from robodyn_ros.nodes.health_keeper import HealthKeeper
from robodyn_ros.nodes.joint_states import StateError, StateReader
from robodyn_ros.nodes.model_building import read_motors
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.real_time import declare_real_time
from robodyn_ros.nodes.running import run
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.observation import (
    ContactDetector,
    ContactThresholds,
    MomentumObserver,
    constant_thresholds,
    external_wrench,
)
from robodyn_ros.observation.bands import SMOOTH
from robodyn_ros.observation.contacts import ACCIDENTAL, INTENDED
from robodyn_ros.observation.rest_check import RestCheck

SENSOR_DATA = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
STATES = {INTENDED: ContactMessage.INTENDED, ACCIDENTAL: ContactMessage.ACCIDENTAL}
COARSE = 0.1  # thresholds without better knowledge, as a fraction of the effort limits
WEAKEST = 1.0  # N m or N, the same for joints without a limit
FROZEN = 50  # number of states that move without a change of position before they count as frozen
MOVES = 1e-3  # rad/s or m/s, speed at which positions must change


@dataclass(eq=False)
class Observation:
    """The observer of one model, and what it has found so far."""

    running: Running
    dynamics: RobotDynamics  # of the robot, with a smooth sign of Coulomb friction
    reader: StateReader
    factors: Any
    observer: MomentumObserver
    detector: ContactDetector
    rest: RestCheck
    link: str
    source: str  # where the thresholds come from
    frozen: int = 0
    last: Any = None  # last positions
    residual: Any = None


class Observer(DynamicsNode):
    """Publishes what acts on the robot from outside, for every joint state.

    The external torque is the residual of a generalised-momentum observer, minus the residual at
    the last call of ~/zero.
    """

    kernels = ('momentum_terms', 'gravity', 'friction')

    def __init__(self, **options: Any):
        self._now: Observation | None = None
        self._command: Any = None
        self._health = HealthKeeper(self)
        super().__init__('observer', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'bandwidth', 0.0, 'cutoff frequency of the residual, Hz; 0: that of the '
                'thresholds in motors_file, or 20', range_=(0.0, 500.0))
        declare(self, 'order', 1, 'order of the observer', range_=(1, 2))
        declare(self, 'wrench_link', '', 'link on which the external wrench acts; empty: the link '
                'behind the last joint')
        declare(self, 'wrench_axes', 'root', "axes of the external wrench: 'root' or 'link'")
        declare(self, 'contact_thresholds', [0.0], 'thresholds of contact, N m or N; one number, '
                'or one for each joint; 0: those of motors_file, or a tenth of the effort limits')
        declare(self, 'torque_topic', '', 'topic of commanded torques (sensor_msgs/JointState), '
                'used in place of measured efforts; empty: measured efforts', read_only=True)
        HealthKeeper.declare(self)
        declare_real_time(self)

    def check_parameters(self, changes: dict[str, Any]) -> str | None:
        """Check changed parameters."""
        axes = changes.get('wrench_axes', 'root')
        if axes not in ('root', 'link'):
            return f"wrench_axes is {axes!r}; valid: 'root', 'link'"
        running = self.keeper.running
        if running is not None:
            try:
                self._link_of(running, changes.get('wrench_link'))
                self._thresholds(running, changes.get('contact_thresholds'))
            except RobodynError as error:
                return str(error)
        return None

    def apply_parameters(self, changes: dict[str, Any]) -> None:
        """Adopt changed parameters."""
        if self.keeper.running is not None and changes.keys() - {'wrench_axes'}:
            self.on_model(self.keeper.running)

    def set_up(self) -> None:
        """Create publishers, the subscriptions and the service."""
        make = self.create_publisher, self.destroy_publisher
        self._torque = self.keep(*make, JointState, '~/external_torque', DEPTH)
        self._wrench = self.keep(*make, WrenchStamped, '~/external_wrench', DEPTH)
        self._contact = self.keep(*make, ContactMessage, '~/contact', DEPTH)
        self._residual = self.keep(*make, JointState, '~/residual', DEPTH)
        self.keep(self.create_service, self.destroy_service, Trigger, '~/zero', self._on_zero)
        topics: list[tuple[Any, ...]] = [(JointState, 'joint_states', self._on_state, SENSOR_DATA)]
        commands = self.get_parameter('torque_topic').value
        self._commanded = bool(commands)  # the parameter is read-only
        self._made.append(self._health.save)
        if commands:
            topics.insert(0, (JointState, commands, self._on_command, SENSOR_DATA))
        self.listen(*topics)

    def check_model(self, model: Model) -> None:
        """Refuse currents without the gains of their drives."""
        if model.effort.measured != 'external_torque':
            efforts.effort_factors(model, model.joint_names)

    def on_model(self, running: Running) -> None:
        """Begin to observe with a new model; a contact continues if the joints are the same."""
        model, before = running.model, self._now
        thresholds, source = self._thresholds(running)
        wanted = self.get_parameter('bandwidth').value
        detector = ContactDetector(model, thresholds)
        if before is not None and before.running.joints.joint_names == \
                running.joints.joint_names:
            detector.state = before.detector.state
        self._command = None
        dynamics = smoothed(running.dynamics, SMOOTH)
        dynamics.tree.warm_up('gravity', 'friction')
        self._now = Observation(
            running, dynamics, StateReader(running.joints),
            known_factors(model, running.joints.joint_names),
            MomentumObserver(dynamics.with_model(efforts.sensed_model(model)),
                             wanted or thresholds.bandwidth,
                             self.get_parameter('order').value),
            detector, RestCheck(running.joints.n), self._link_of(running), source)
        self._health.on_model(running)
        if source != 'motors_file':
            self.report('info', f'thresholds of contact: {source}')

    def _link_of(self, running: Running, name: str | None = None) -> str:
        """Return the link of the wrench; one that does not exist raises an error."""
        name = self.get_parameter('wrench_link').value if name is None else name
        if name:
            running.model.link_frame(name)
            return str(name)
        last = running.joints.joint_names[-1]
        return next(joint.child for joint in running.model.description.joints
                    if joint.name == last)

    def _thresholds(self, running: Running, values: Any = None) -> tuple[ContactThresholds, str]:
        """Return the thresholds of contact and where they come from."""
        names = running.joints.joint_names
        given = np.array(self.get_parameter('contact_thresholds').value if values is None
                         else values)
        if given.any():
            if len(given) not in (1, len(names)):
                raise RobodynError(f'contact_thresholds has {len(given)} numbers; valid: 1, or '
                                   f'{len(names)}')
            return constant_thresholds(names, given), 'parameter contact_thresholds'
        request = running.request
        motors: Any = request.motors if request.motors_text is None else read_motors(
            request.motors_text)
        found = None if motors is None else ContactThresholds.read(motors, names)
        if found is not None:
            return found, 'motors_file'
        limit = running.joints.effort_limit
        return constant_thresholds(names, np.maximum(
            np.where(np.isfinite(limit), COARSE * limit, WEAKEST), 1e-6)), (
            'a tenth of the effort limits, since motors_file has none')

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        now = self._now
        if now is None:
            return super().level()
        text = now.rest.contradiction() or (now.residual is not None and self._health.text())
        if text:
            return DiagnosticStatus.WARN, text
        if now.residual is None:
            return DiagnosticStatus.WARN, 'waiting for joint_states with efforts'
        return DiagnosticStatus.OK, f'contact: {now.detector.state}'

    def publish_diagnostics(self) -> None:
        """Judge the health of the model as well."""
        self._health.check()
        super().publish_diagnostics()

    def more_diagnostics(self) -> dict[str, Any]:
        """Return where the thresholds come from, and how well gravity fits at rest."""
        now = self._now
        if now is None:
            return {}
        return {'thresholds': now.source, 'gravity_in_efforts': now.rest.to_text(),
                **self._health.values()}

    def _on_zero(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        now = self._now
        if now is None or now.residual is None:
            response.message = 'there is no residual yet'
            return response
        now.detector.zero(now.residual)
        response.success = True
        response.message = 'the present residual counts as no contact'
        return response

    def _on_command(self, message: JointState) -> None:
        now = self._now
        if now is None:
            return
        given = dict(zip(message.name, message.effort, strict=False))
        names = now.running.joints.joint_names
        if all(name in given for name in names):
            command = np.array([given[name] for name in names])
            if np.isfinite(command).all():
                self._command = command
                return
        self.warn('command_refused', 'commanded torques lack a joint or are not finite')

    def _on_state(self, message: JointState) -> None:
        now = self._now
        if not self.active:
            return
        if now is None:
            self.warn('no_model', 'joint_states arrive, but no robot_description')
            return
        try:
            q, qd, effort = now.reader.read_on(message, lambda error: self._on_jump(now, error))
        except StateError as error:
            self.warn(error.kind, f'joint_states: {error}')
            return
        if qd is None:
            self.warn('no_velocity', 'joint_states have no velocities, which an observer needs')
            return
        torque = self._torque_of(now, q, qd, effort)
        if torque is None or self._is_frozen(now, q, qd):
            return
        self.counts['states'] += 1
        self._observe(now, message.header, q, qd, torque)

    def _on_jump(self, now: Observation, error: StateError) -> None:
        now.observer.reset()
        self.warn(error.kind, f'joint_states: {error}')

    def _torque_of(self, now: Observation, q: Any, qd: Any, effort: Any) -> Any:
        """Return complete torques on the link's side; None if there are none."""
        dynamics = now.dynamics
        if self._commanded:
            if self._command is None:
                self.warn('no_effort', 'there are no commanded torques yet')
                return None
            return efforts.applied_torque(dynamics, q, qd, self._command)
        if effort is None:
            self.warn('no_effort', 'joint_states have no efforts, which an observer needs; '
                                   'publish them, or set torque_topic')
            return None
        if not np.isfinite(effort).all():
            self.warn('not_finite', 'an effort of joint_states is not finite')
            return None
        if now.factors is None:
            return effort
        return efforts.complete_torque(dynamics, q, qd, effort @ now.factors)

    def _is_frozen(self, now: Observation, q: Any, qd: Any) -> bool:
        """Return whether positions have stayed the same too long for the measured velocities."""
        same = now.last is not None and np.array_equal(q, now.last) and \
            np.abs(qd).max() > MOVES
        now.last, now.frozen = q, now.frozen + 1 if same else 0
        if now.frozen < FROZEN:
            return False
        self.warn('frozen', 'positions stay the same while velocities do not vanish: the joint '
                            'states are frozen')
        now.observer.reset()
        return True

    def _observe(self, now: Observation, header: Any, q: Any, qd: Any, torque: Any) -> None:
        t = nanoseconds(header.stamp) * 1e-9
        if now.factors is None:  # the robot has estimated it already
            residual, rate = torque, None
        else:
            residual = now.observer.update(t, q, qd, torque)
            rate = now.observer.rate
            now.rest.add(q, qd, torque, now.running.dynamics.gravity)
        if not np.isfinite(residual).all():
            now.observer.reset()
            self.warn('not_finite', 'the residual of this state is not finite: nothing is '
                                    'published')
            return
        now.residual = residual
        contact = now.detector.update(t, qd, residual, rate)
        self._health.update(t, q, qd, residual, contact.state)
        external = residual - now.detector.offset
        names = list(now.running.joints.joint_names)
        for publisher, values in ((self._torque, external), (self._residual, residual)):
            if publisher.get_subscription_count():
                publisher.publish(JointState(header=header, name=names, effort=values.tolist()))
        self._contact.publish(ContactMessage(
            header=header, state=STATES.get(contact.state, ContactMessage.NONE),
            joint=contact.joint, link=contact.link, direction=contact.direction,
            magnitude=contact.magnitude, threshold=contact.threshold))
        if self._wrench.get_subscription_count():
            self._publish_wrench(now, header, q, external)

    def _publish_wrench(self, now: Observation, header: Any, q: Any, external: Any) -> None:
        dynamics = now.running.dynamics.tree
        wrench = external_wrench(dynamics.jacobian(q, now.link), external,
                                 now.detector.deviation)
        message = WrenchStamped()
        message.header.stamp = header.stamp
        message.header.frame_id = now.running.model.description.root
        if self.get_parameter('wrench_axes').value == 'link':
            wrench = wrench.turned(dynamics.pose(q, now.link)[:3, :3].T)
            message.header.frame_id = now.link
        if not np.isfinite(wrench.values).all():
            self.warn('not_finite', 'the wrench of this state is not finite')
            return
        force, torque = message.wrench.force, message.wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench.values.tolist()
        self._wrench.publish(message)


def main(arguments: list[str] | None = None) -> int:
    """Run the node."""
    return run(Observer, arguments)


if __name__ == '__main__':
    raise SystemExit(main())
