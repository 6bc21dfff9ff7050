"""The node `feedforward`: a reference motion in, the torques that it needs out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import Reference, saturate
from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.base import DynamicsNode, run
from robodyn_ros.nodes.dynamics import view
from robodyn_ros.nodes.fast_path import Pacer
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.references import read_reference, with_effort

RELIABLE = QoSProfile(depth=10)


@dataclass(frozen=True, eq=False)
class Playing:
    """A reference that is played: its motion and when it began, ns of the node's clock."""

    reference: Reference
    start: int
    joints: tuple[str, ...]


class FeedforwardPublisher(DynamicsNode):
    """Plays ~/reference against the clock and publishes its inverse-dynamics torques.

    A reference ends with its last point. One that ends at rest is held for ``hold`` seconds more;
    a single point (a stream of setpoints) counts for ``setpoint_timeout`` seconds. Nothing is
    published without a reference that counts.
    """

    kernels = ('inverse_dynamics',)

    def __init__(self, **options: Any):
        self._playing: Playing | None = None
        self._command_order: list[int] = []
        self._messages: tuple[JointState, Any, Float64MultiArray, Any] | None = None
        self._pacer: Pacer | None = None
        self._last_tick = 0
        super().__init__('feedforward', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'rate', 500.0, 'rate of ~/torque and ~/commands, Hz of the wall clock',
                range_=(1.0, 5000.0))
        declare(self, 'hold', 1.0, 'how long the end of a reference at rest is held, s',
                range_=(0.0, 3600.0))
        declare(self, 'setpoint_timeout', 0.1,
                'how long a reference of a single point counts, s', range_=(0.001, 10.0))
        declare(self, 'command_joints', [''],
                'joints and order of ~/commands; empty: all, in the order of the URDF')

    def take_parameters(self, changes: dict[str, Any]) -> str | None:
        """Take changed parameters."""
        running = self.keeper.running
        if 'command_joints' in changes and running is not None:
            try:
                order = self._order(running, changes['command_joints'])
            except ValueError as error:
                return str(error)
            self._make_messages(running, order)
        if 'rate' in changes and self._pacer is not None:
            self._pacer.period = 1.0 / changes['rate']
        return None

    @staticmethod
    def _order(running: Running, joints: list[str]) -> list[int]:
        names = running.model.joint_names
        wanted = [name for name in joints if name]
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ValueError(f'command_joints: unknown joint {unknown[0]!r}; valid: '
                             f'{", ".join(names)}')
        return [names.index(name) for name in wanted] or list(range(len(names)))

    def set_up(self) -> None:
        """Create publishers, the subscription and the timer."""
        make = self.create_publisher, self.destroy_publisher
        self._torque = self.keep(*make, JointState, '~/torque', 10)
        self._commands = self.keep(*make, Float64MultiArray, '~/commands', 10)
        self._with_effort = self.keep(*make, JointTrajectory, '~/trajectory_with_effort', 10)
        self.keep(self.create_subscription, self.destroy_subscription, JointTrajectory,
                  '~/reference', self._on_reference, RELIABLE)
        self._pacer = self.pace(self._tick, self.get_parameter('rate').value)

    def on_model(self, running: Running) -> None:
        """Make messages for the new model; a reference for other joints is dropped."""
        playing = self._playing
        if playing is not None and playing.joints != running.model.joint_names:
            self._playing = None
            self.report('warning', 'the reference is dropped: the new model has other joints')
        try:
            order = self._order(running, self.get_parameter('command_joints').value)
        except ValueError as error:
            self.report('error', f'{error}; all joints are commanded')
            order = list(range(running.model.n))
        self._make_messages(running, order)

    def _make_messages(self, running: Running, order: list[int]) -> None:
        names = list(running.model.joint_names)
        torque = JointState(name=names, effort=[0.0] * len(names))
        commands = Float64MultiArray(data=[0.0] * len(order))
        self._command_order = order
        self._messages = torque, view(torque.effort), commands, view(commands.data)

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self.keeper.running is not None:
            return DiagnosticStatus.OK, 'playing' if self._playing else 'waiting for a reference'
        return super().level()

    def _on_reference(self, message: JointTrajectory) -> None:
        running = self.keeper.running
        if not self.active:
            return
        if running is None:
            self.warn('no_model', 'a reference arrived, but no robot_description')
            return
        try:
            reference = read_reference(message, running.model)
            filled, over = with_effort(message, reference, running.dynamics)
        except RobodynError as error:
            self.warn('reference_refused', f'reference refused: {error}')
            return
        now = self.get_clock().now().nanoseconds
        stamp = message.header.stamp
        start = stamp.sec * 1_000_000_000 + stamp.nanosec or now
        playing = Playing(reference, start, running.model.joint_names)
        if now > start + self._lifetime(reference):
            self.warn('reference_stale', 'reference refused: it ended '
                      f'{(now - start) * 1e-9 - reference.duration:.3f} s ago; valid: a stamp of '
                      '0 (now) or one that is not over')
            return
        if over.any():
            self._warn_saturated(running, over)
        self.counts['references'] += 1
        self._playing = playing
        self._with_effort.publish(filled)

    def _lifetime(self, reference: Reference) -> int:
        """How long a reference counts, ns from its start."""
        extra = 0.0
        if len(reference.times) == 1:
            extra = self.get_parameter('setpoint_timeout').value
        elif reference.ends_at_rest:
            extra = self.get_parameter('hold').value
        return int((reference.duration + extra) * 1e9)

    def _warn_saturated(self, running: Running, over: Any) -> None:
        names = [name for name, hit in zip(running.model.joint_names, over, strict=True) if hit]
        self.warn('saturated', f'torque limited to the effort limit: {", ".join(names)}')

    def _tick(self) -> None:
        now = self.get_clock().now().nanoseconds
        back, self._last_tick = now < self._last_tick, now
        playing, running, messages = self._playing, self.keeper.running, self._messages
        if playing is None or running is None or messages is None or not self.active:
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
        tau = running.dynamics.inverse_dynamics(q, qd, qdd)
        if not np.isfinite(tau).all():
            self._playing = None
            self.warn('not_finite', 'the torque is not finite: the reference is dropped')
            return
        tau, over = saturate(tau, running.model.effort_limit)
        if over.any():
            self._warn_saturated(running, over)
        torque, torque_view, commands, commands_view = messages
        if self._torque.get_subscription_count():
            torque_view[:] = tau
            torque.header.stamp.sec, torque.header.stamp.nanosec = divmod(now, 1_000_000_000)
            self._torque.publish(torque)
        if self._commands.get_subscription_count():
            commands_view[:] = tau[self._command_order]
            self._commands.publish(commands)


def main(arguments: list[str] | None = None) -> None:
    """Run the node."""
    run(FeedforwardPublisher, arguments)


if __name__ == '__main__':
    main()
