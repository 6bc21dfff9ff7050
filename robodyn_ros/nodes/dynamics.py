"""The node `dynamics`: publishes the terms of the equations of motion for each joint state."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from robodyn_interfaces.msg import DynamicsTerms
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.efforts import complete_torque
from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.base_state import BaseSource, base_problem, base_source, declare_base
from robodyn_ros.nodes.effort_check import EffortCheck, known_factors
from robodyn_ros.nodes.energy import EnergyOutput
from robodyn_ros.nodes.fast_path import DEPTH
from robodyn_ros.nodes.joint_states import StateError, StateReader
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.real_time import declare_real_time
from robodyn_ros.nodes.running import run
from robodyn_ros.nodes.stamps import nanoseconds

SENSOR_DATA = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)


def matrix_message(n: int, labels: tuple[str, str]) -> Float64MultiArray:
    """Return a message for a square row-major matrix with labelled dimensions."""
    message = Float64MultiArray()
    message.layout.dim = [MultiArrayDimension(label=labels[0], size=n, stride=n * n),
                          MultiArrayDimension(label=labels[1], size=n, stride=n)]
    message.data = [0.0] * (n * n)
    return message


def cut_names(dynamics: RobotDynamics) -> list[str]:
    """Return the topics of the forces at the cuts of closed loops, named after their links."""
    return ['constraint_forces/' + re.sub(r'\W', '_', '_'.join(cut.links))
            for cut in dynamics.cuts]


def view(array: Any) -> np.ndarray:
    """Return a NumPy view of a message's array of doubles; writing to it fills the message."""
    return np.frombuffer(array, dtype=np.float64)


class Outputs:
    """The messages for one model, created once and filled for every state."""

    def __init__(self, running: Running, frame: str):
        model, n = running.model, running.dynamics.n
        self.running, self.reader = running, StateReader(running.joints)
        self.efforts = EffortCheck(running)
        joints = list(running.joints.joint_names)
        names = [*model.velocity_names[:model.first_joint], *joints]
        self.factors = known_factors(model, joints)
        self.position: Any = None  # last measured positions
        self.pose: Any = None  # pose of all joints at the last state in which closed loops close
        self.cuts = cut_names(running.dynamics)
        self.vectors, self.views = {}, {}
        for term in ('gravity', 'coriolis', 'friction'):
            message = JointState(name=names, effort=[0.0] * n)
            self.vectors[term], self.views[term] = message, view(message.effort)
        self.mass_matrix = matrix_message(n, ('row', 'column'))
        self.coriolis_matrix = matrix_message(n, ('row', 'column'))
        self.views['mass_matrix'] = view(self.mass_matrix.data)
        self.views['coriolis_matrix'] = view(self.coriolis_matrix.data)
        self.energy = EnergyOutput(running.dynamics)
        self.wrench = WrenchStamped()
        self.wrench.header.frame_id = frame
        zeros = [0.0] * n
        rotors = [float(model.armature[model.body_joints.index(name)]) for name in joints]
        self.terms = DynamicsTerms(
            name=names, position=[0.0] * (n + model.floating), velocity=zeros, gravity=zeros,
            coriolis=zeros, friction=zeros, mass_matrix=[0.0] * (n * n),
            rotor_inertia=[*zeros[:model.first_joint], *rotors],
            rotor_model=running.rotor_model,
            friction_modelled=bool(model.link_friction.any() or model.motor_friction.any()),
            payload_mass=float(running.payload.mass) if running.payload else 0.0,
            model_version=running.version)
        self.term_views = {field: view(getattr(self.terms, field)) for field in (
            'position', 'velocity', 'gravity', 'coriolis', 'friction', 'mass_matrix')}

    def torque(self, q: Any, qd: Any, effort: Any) -> np.ndarray:
        """Return the complete torques for measured efforts, which must not be external torques."""
        first = self.running.model.first_joint  # a floating base has no effort
        torque = np.concatenate([effort[:first], effort[first:] @ self.factors])
        return complete_torque(self.running.dynamics, q, qd, torque, near=self.pose)


class DynamicsPublisher(DynamicsNode):
    """Publishes gravity, Coriolis, friction, mass matrix and base wrench for every joint state.

    A term is computed only while its topic has subscribers.
    """

    kernels = ('terms', 'wrenches')

    def __init__(self, **options: Any):
        self._outputs: Outputs | None = None
        self._base: BaseSource | None = None  # what measures a floating base
        super().__init__('dynamics', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'publish_coriolis_matrix', False,
                'whether to publish ~/coriolis_matrix, the Christoffel matrix C(q, qd)')
        declare(self, 'base_wrench_acceleration', 'zero',
                "accelerations for ~/base_wrench and constraint forces: 'zero', or 'effort': "
                'computed from the measured efforts')
        declare(self, 'publish_constraint_forces', False, 'whether to publish '
                '~/constraint_forces/LINK_LINK for each cut of a closed loop', read_only=True)
        declare(self, 'energy_window', 0.0, 'time over which the energy is balanced against the '
                'work of the measured efforts, for ~/energy and /diagnostics, s; 0: not at all',
                range_=(0.0, 600.0))
        declare_base(self)
        declare_real_time(self)

    def check_parameters(self, changes: dict[str, Any]) -> str | None:
        """Check changed parameters."""
        source = changes.get('base_wrench_acceleration', 'zero')
        if source not in ('zero', 'effort'):
            return f"base_wrench_acceleration is {source!r}; valid: 'zero', 'effort'"
        return base_problem(changes)

    def set_up(self) -> None:
        """Create publishers and the subscription."""
        self._publishers_of = {}
        for topic, message in (('gravity', JointState), ('coriolis', JointState),
                               ('friction', JointState), ('mass_matrix', Float64MultiArray),
                               ('coriolis_matrix', Float64MultiArray), ('terms', DynamicsTerms),
                               ('base_wrench', WrenchStamped), ('energy', Float64MultiArray)):
            self._publishers_of[topic] = self.keep(
                self.create_publisher, self.destroy_publisher, message, f'~/{topic}', 10)
        topics: list[tuple[Any, ...]] = [
            (JointState, 'joint_states', self._on_state, SENSOR_DATA)]
        self._base = base_source(self)
        if self._base is not None:
            topics += self._base.topics()
            if self.keeper.running is not None:  # described by a parameter
                self._base.follow(self.keeper.running.model)
        self.listen(*topics)

    def on_model(self, running: Running) -> None:
        """Create messages for the new model, which the next state uses."""
        outputs = Outputs(running, running.model.description.root)
        if self._base is not None:
            self._base.follow(running.model)
        self._offer_constraint_forces(outputs.cuts)
        outputs.energy.watch(self.get_parameter('energy_window').value)
        self._outputs = outputs

    def apply_parameters(self, changes: dict[str, Any]) -> None:
        """Begin a new balance of energy if its window changes."""
        if 'energy_window' in changes and self._outputs is not None:
            self._outputs.energy.watch(changes['energy_window'])

    def publish_diagnostics(self) -> None:
        """Publish the state, and warn if the measured efforts contradict their settings."""
        super().publish_diagnostics()
        if self._outputs is not None and self.active:
            self._outputs.efforts.warn(self)

    def more_diagnostics(self) -> dict[str, Any]:
        """Return the energies, and the distance of closed loops from a singularity, 0 to 1."""
        outputs = self._outputs
        if outputs is None:
            return {}
        return outputs.energy.values() | self._singularity(outputs)

    def _singularity(self, outputs: Outputs) -> dict[str, Any]:
        if outputs.position is None or not outputs.cuts:
            return {}
        try:
            distance = outputs.running.dynamics.singularity(outputs.position,
                                                            near=outputs.pose)
        except RobodynError:
            return {'loop_singularity': 'the loops do not close'}
        return {'loop_singularity': f'{distance:.3g}'}

    def _offer_constraint_forces(self, cuts: list[str]) -> None:
        if not self.get_parameter('publish_constraint_forces').value:
            return
        for name in cuts:
            if name not in self._publishers_of:
                self._publishers_of[name] = self.keep(
                    self.create_publisher, self.destroy_publisher, WrenchStamped, f'~/{name}', 10)

    def _on_state(self, message: JointState) -> None:
        outputs = self._outputs
        if not self.active:
            return
        if outputs is None:
            self.warn('no_model', 'joint_states arrive, but no robot_description')
            return
        wanted = {topic for topic, publisher in self._publishers_of.items()
                  if publisher.get_subscription_count()}
        try:
            q, qd, effort = outputs.reader.read(message)
            if self._base is not None:
                pose, twist = self._base.at(message.header.stamp)
                q = np.concatenate([pose, q])
                qd = None if qd is None else np.concatenate([twist, qd])
                effort = None if effort is None else np.concatenate([np.zeros(6), effort])
        except StateError as error:
            self.warn(error.kind, f'joint_states: {error}')
            return
        self.counts['states'] += 1
        if self._base is None:
            outputs.efforts.state(q, qd, effort)
        outputs.position = q
        try:
            outputs.pose = outputs.running.dynamics.positions(q, near=outputs.pose)
            if outputs.energy.monitor is not None:
                self._balance_energy(outputs, 'energy' in wanted, message.header, q, qd, effort)
            wanted.discard('energy')
            if wanted:
                self._publish(outputs, wanted, message.header, q, qd, effort)
        except RobodynError as error:  # the loops do not close in this state
            self.warn('pose_refused', f'joint_states: {error}')

    def _balance_energy(self, outputs: Outputs, wanted: bool, header: Any, q: Any, qd: Any,
                        effort: Any) -> None:
        if qd is None or effort is None or outputs.factors is None or not np.isfinite(
                effort).all():
            self.warn('no_effort', 'the balance of energy needs velocities and torques')
            return
        outputs.energy.update(nanoseconds(header.stamp) * 1e-9, q, qd,
                              outputs.torque(q, qd, effort), outputs.pose)
        if wanted:
            self._publishers_of['energy'].publish(outputs.energy.message())

    def _publish(self, outputs: Outputs, wanted: set[str], header: Any, q: Any, qd: Any,
                 effort: Any) -> None:
        dynamics, views = outputs.running.dynamics, outputs.views
        if qd is None:
            without = wanted - {'gravity', 'mass_matrix'}
            if without:
                self.warn('no_velocity', 'joint_states have no velocities: '
                                         f'{", ".join(sorted(without))} not published')
            qd, wanted = np.zeros(dynamics.n), wanted & {'gravity', 'mass_matrix'}
        near = outputs.pose
        terms = dynamics.terms(q, qd, near=near)
        if not np.isfinite(terms.coriolis.sum() + terms.mass_matrix.sum()):
            self.warn('not_finite', 'the terms of this state are not finite: nothing is published')
            return
        for topic in ('gravity', 'coriolis', 'friction'):
            if topic in wanted:
                views[topic][:] = getattr(terms, topic)
                outputs.vectors[topic].header = header
                self._publishers_of[topic].publish(outputs.vectors[topic])
        if 'mass_matrix' in wanted:
            views['mass_matrix'][:] = terms.mass_matrix.ravel()
            self._publishers_of['mass_matrix'].publish(outputs.mass_matrix)
        if 'terms' in wanted:
            for field, value in (('position', q), ('velocity', qd), ('gravity', terms.gravity),
                                 ('coriolis', terms.coriolis), ('friction', terms.friction),
                                 ('mass_matrix', terms.mass_matrix.ravel())):
                outputs.term_views[field][:] = value
            outputs.terms.header = header
            self._publishers_of['terms'].publish(outputs.terms)
        if 'coriolis_matrix' in wanted and self.get_parameter('publish_coriolis_matrix').value:
            views['coriolis_matrix'][:] = dynamics.coriolis_matrix(q, qd, near=near).ravel()
            self._publishers_of['coriolis_matrix'].publish(outputs.coriolis_matrix)
        if not wanted.isdisjoint(('base_wrench', *outputs.cuts)):
            self._publish_wrenches(outputs, wanted, header, q, qd, effort)

    def _publish_wrenches(self, outputs: Outputs, wanted: set[str], header: Any, q: Any, qd: Any,
                          effort: Any) -> None:
        dynamics, near = outputs.running.dynamics, outputs.pose
        qdd = np.zeros_like(qd)
        if self.get_parameter('base_wrench_acceleration').value == 'effort':
            if effort is None or not np.isfinite(effort).all():
                self.warn('no_effort', 'wrenches need the efforts of joint_states')
                return
            if outputs.factors is None:
                self.warn('no_effort', 'wrenches need torques; the efforts are external torques, '
                                       'or currents without a drive_gain for each joint')
                return
            qdd = dynamics.forward_dynamics(q, qd, outputs.torque(q, qd, effort), near=near)
        if 'base_wrench' in wanted:
            self._publish_wrench('base_wrench', outputs.wrench, header,
                                 dynamics.base_wrench(q, qd, qdd, near=near))
        if not wanted.isdisjoint(outputs.cuts):
            forces = dynamics.constraint_forces(q, qd, qdd, near=near)
            for topic, force in zip(outputs.cuts, forces, strict=True):
                if topic in wanted:
                    self._publish_wrench(topic, outputs.wrench, header, force)

    def _publish_wrench(self, topic: str, message: WrenchStamped, header: Any,
                        wrench: Any) -> None:
        if not np.isfinite(wrench).all():
            self.warn('not_finite', f'{topic} of this state is not finite')
            return
        message.header.stamp = header.stamp
        force, torque = message.wrench.force, message.wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = map(float, wrench)
        self._publishers_of[topic].publish(message)


def main(arguments: list[str] | None = None) -> int:
    """Run the node."""
    return run(DynamicsPublisher, arguments)


if __name__ == '__main__':
    raise SystemExit(main())
