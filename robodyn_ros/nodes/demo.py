"""`robodyn demo`: a moving arm, the nodes beside it, and a check of every value they publish."""

from __future__ import annotations

import os
import struct
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import DynamicsTerms
from robodyn_ros.control import Reference, SmoothMotion, saturate
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.model import Model
from robodyn_ros.nodes.base import LATCHED
from robodyn_ros.nodes.fast_path import FastSubscriptions, Pacer
from robodyn_ros.nodes.processes import NodeProcess

TOLERANCE = 1e-9  # largest error of a value, relative to the largest of its topic
_STAMP = struct.Struct('<iI')  # behind a serialised message's 4 bytes of encapsulation
FEED_FORWARD = 'rate:=200.0'  # Hz; leaves a machine of two cores room for listeners
TERMS = ('gravity', 'coriolis', 'friction', 'mass_matrix')


def stamp_of(message: bytes) -> int:
    """Return the stamp of a serialised message that begins with a header, ns."""
    seconds, nanoseconds = _STAMP.unpack_from(message, 4)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def to_stamp(ns: int) -> Time:
    """Return ns as a stamp."""
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


class Arm(Node):
    """The robot of the demo: publishes its description and states, and hears what comes back."""

    def __init__(self, model: Model, text: str, rate: float):
        super().__init__('demo_arm')
        self.model, self.motion = model, SmoothMotion(model)
        self.start: int | None = None
        self.sent: dict[int, tuple[Any, Any, int]] = {}  # stamp: q, qd, when
        self.terms: dict[int, bytes] = {}
        self.torques: dict[int, bytes] = {}
        self.latest_terms = self.latest_torque = b''  # read by the thread that draws
        self.state: tuple[Any, Any] | None = None
        self.latencies: list[float] = []
        self.models: dict[str, int] = {}
        self._description = self.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=text))
        self._states = self.create_publisher(JointState, 'joint_states', 10)
        self._reference = self.create_publisher(JointTrajectory, 'feedforward/reference', 1)
        # messages are kept as they come, serialised, and read when there is time
        self._fast = FastSubscriptions(self, self._on_error)
        self._fast.add(DynamicsTerms, 'dynamics/terms', self._on_terms, 50, raw=True)
        self._fast.add(JointState, 'feedforward/torque', self._on_torque, 50, raw=True)
        self._fast.start()
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self._pacer = Pacer(self._tick, 1.0 / rate, self._on_error)

    def _on_error(self, where: str, error: Exception) -> None:
        if rclpy.ok():
            self.get_logger().error(f'{where}: {type(error).__name__}: {error}')

    def stop_moving(self) -> None:
        """Publish no more states."""
        self._pacer.stop()

    def close(self) -> None:
        """Stop all threads."""
        self.stop_moving()
        self._fast.stop()

    def _on_terms(self, message: bytes) -> None:
        now, stamp = time.perf_counter_ns(), stamp_of(message)
        self.terms[stamp] = self.latest_terms = message
        if stamp in self.sent:
            self.latencies.append((now - self.sent[stamp][2]) * 1e-9)

    def _on_torque(self, message: bytes) -> None:
        self.torques[stamp_of(message)] = self.latest_torque = message

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {entry.key: entry.value for entry in status.values}
            if 'model_version' in values:
                self.models[status.name.lstrip('/')] = int(values['model_version'])

    def ready(self) -> bool:
        """Whether both nodes have a model and answer."""
        return (bool(self.terms) and self._reference.get_subscription_count() > 0
                and min(self.models.get(name, 0) for name in ('dynamics', 'feedforward')) > 0)

    def begin(self, seconds: float) -> Reference:
        """Send the motion as a trajectory and start to move along it."""
        times = np.arange(1, int(seconds * 50) + 2) / 50
        states = [self.motion.sample(t) for t in times]
        reference = Reference(times, *(np.array(part) for part in zip(*states, strict=True)))
        self.start = self.get_clock().now().nanoseconds
        message = JointTrajectory(joint_names=list(self.model.joint_names))
        message.header.stamp = to_stamp(self.start)
        message.points = [JointTrajectoryPoint(
            positions=q.tolist(), velocities=qd.tolist(), accelerations=qdd.tolist(),
            time_from_start=Duration(sec=int(t), nanosec=int(round(t % 1 * 1e9))))
            for t, (q, qd, qdd) in zip(times, states, strict=True)]
        for record in (self.terms, self.torques, self.latencies, self.sent):
            record.clear()
        self._reference.publish(message)
        return reference

    def _tick(self) -> None:
        now = self.get_clock().now().nanoseconds
        q, qd, _ = self.motion.sample((now - self.start) * 1e-9 if self.start else 0.0)
        model = self.model  # as a real arm's driver does, name the joints that mimic as well
        message = JointState(name=list(model.body_joints),
                             position=(model.row @ q + model.offset).tolist(),
                             velocity=(model.row @ qd).tolist())
        message.header.stamp = to_stamp(now)
        self.state = q, qd
        self.sent[now] = q, qd, time.perf_counter_ns()
        self._states.publish(message)

    def table(self, elapsed: float) -> Group:
        """Show what is on the topics now."""
        model = self.model
        table = Table(title=f'{model.name}: what its topics say', expand=True)
        for column in ('joint', 'position', 'velocity', 'gravity', 'Coriolis', 'friction',
                       'feed-forward', 'diag M'):
            table.add_column(column, justify='left' if column == 'joint' else 'right')
        terms = deserialize_message(self.latest_terms, DynamicsTerms) if self.terms else None
        torque = deserialize_message(self.latest_torque, JointState) if self.torques else None
        columns = [*(self.state or (None, None))]
        columns += [terms and getattr(terms, name) for name in ('gravity', 'coriolis', 'friction')]
        columns += [torque and torque.effort, terms and terms.mass_matrix[::model.n + 1]]
        for i, joint in enumerate(model.joint_names):
            table.add_row(joint, *('' if values is None else f'{values[i]:+9.4f}'
                                   for values in columns))
        rates = '   '.join(f'{label} {len(kept) / max(elapsed, 1e-3):6.0f} Hz' for label, kept in (
            ('/joint_states', self.sent), ('/dynamics/terms', self.terms),
            ('/feedforward/torque', self.torques)))
        recent = self.latencies[-1000:] or [float('nan')]
        delay = (f'state to terms: median {np.median(recent) * 1e6:.0f} us, '
                 f'99 % {np.percentile(recent, 99) * 1e6:.0f} us')
        units = 'rad, rad/s, N m, kg m^2 (m, m/s, N, kg for sliding joints)'
        return Group(table, Panel(f'{elapsed:4.1f} s   {rates}\n{delay}   {units}'))


def _errors(arm: Arm, reference: Reference) -> dict[str, tuple[int, float]]:
    """For each quantity: messages checked, and the largest error relative to its largest value."""
    dynamics = Dynamics(arm.model)
    found: dict[str, tuple[int, float]] = {}
    stamps = [stamp for stamp in arm.terms if stamp in arm.sent]
    messages = [deserialize_message(arm.terms[stamp], DynamicsTerms) for stamp in stamps]
    n = arm.model.n
    states = np.array([arm.sent[stamp][:2] for stamp in stamps]).reshape(-1, 2, n)
    expected = dynamics.terms(states[:, 0], states[:, 1])
    for name in TERMS:
        value = np.array([getattr(message, name) for message in messages])
        wanted = getattr(expected, name)
        found[f'/dynamics/terms: {name}'] = len(stamps), _relative(
            value.reshape(wanted.shape), wanted)
    motion = [reference.sample((stamp - (arm.start or 0)) * 1e-9) for stamp in arm.torques]
    q, qd, qdd = np.array(motion).reshape(-1, 3, n).transpose(1, 0, 2)
    tau = saturate(dynamics.inverse_dynamics(q, qd, qdd), arm.model.effort_limit)[0]
    torques = [deserialize_message(one, JointState).effort for one in arm.torques.values()]
    found['/feedforward/torque'] = len(torques), _relative(
        np.array(torques).reshape(-1, n), tau)
    return found


def _relative(value: Any, expected: Any) -> float:
    if not len(value):
        return np.inf
    return float(np.abs(value - expected).max() / max(float(np.abs(expected).max()), 1e-6))


def run_demo(model: Model, text: str, *, seconds: float, rate: float = 1000.0,
             picture: Path | None = None, console: Console | None = None) -> int:
    """Run the demo; return 0 where every node lived and every value was right."""
    console = console or Console(record=picture is not None)
    if picture is not None or not console.is_terminal:
        console.width = 110
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    gravity = f'gravity:=[{", ".join(map(repr, model.gravity.tolist()))}]'
    with ExitStack() as stack:
        nodes = [stack.enter_context(NodeProcess(name, '--ros-args', '-p', gravity, *options))
                 for name, options in (('dynamics', ()), ('feedforward', ('-p', FEED_FORWARD)))]
        rclpy.init()
        stack.callback(rclpy.try_shutdown)
        sys.setswitchinterval(1e-4)  # drawing the table must not hold up the states
        arm = Arm(model, text, rate)
        stack.callback(arm.close)
        executor = SingleThreadedExecutor()
        executor.add_node(arm)
        console.print(f'robot [bold]{model.name}[/], {model.n} joints; nodes '
                      f'{", ".join(f"{node.name} (process {node.pid})" for node in nodes)}; '
                      f'ROS_DOMAIN_ID {os.environ.get("ROS_DOMAIN_ID", "0")}, this machine alone')
        if not _spin(executor, 60.0, nodes, until=arm.ready):
            console.print('[red]the nodes did not come up')
            return _fail(console, nodes)
        reference = arm.begin(seconds)
        with Live(arm.table(0.0), console=console, auto_refresh=False) as live:
            began = time.monotonic()
            while (elapsed := time.monotonic() - began) < seconds:
                if not _spin(executor, min(0.5, seconds - elapsed), nodes):
                    break
                live.update(arm.table(time.monotonic() - began),
                            refresh=console.is_terminal)
            elapsed = time.monotonic() - began
        console.print()
        arm.stop_moving()
        sent = len(arm.sent)
        _spin(executor, 0.3, nodes)
        code = _summary(console, arm, reference, nodes, sent, elapsed)
        if picture is not None:
            picture.write_text(console.export_svg(title='robodyn demo'))
        return code


def _spin(executor: Any, seconds: float, nodes: list[NodeProcess], until: Any = None) -> bool:
    """Spin; False where a node died, or ``until`` did not come true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)
        if until is not None and until():
            return True
        if any(node.exit_code is not None for node in nodes):
            return False
    return until is None


def _summary(console: Console, arm: Arm, reference: Reference, nodes: list[NodeProcess],
             sent: int, elapsed: float) -> int:
    dead = [node for node in nodes if node.exit_code is not None]
    errors = _errors(arm, reference)
    table = Table(title=f'{elapsed:.1f} s: {sent} states sent at {sent / elapsed:.0f} Hz')
    for column in ('topic', 'messages', 'rate', 'largest relative error against the core'):
        table.add_column(column, justify='left' if column == 'topic' else 'right')
    good = not dead
    for name, (count, error) in errors.items():
        right = error <= TOLERANCE
        good = good and right
        table.add_row(name, str(count), f'{count / elapsed:.0f} Hz',
                      f'[{"green" if right else "red"}]{error:.1e}')
    console.print(table)
    if arm.latencies:
        late = np.array(arm.latencies) * 1e6
        console.print(f'state to terms: median {np.median(late):.0f} us, 99 % '
                      f'{np.percentile(late, 99):.0f} us, largest {late.max():.0f} us')
    lost = len(arm.sent.keys() - arm.terms.keys())
    console.print(f'{lost} of {sent} states without an answer')
    if dead:
        return _fail(console, dead)
    console.print('[green]every value agrees with the core' if good else
                  f'[red]a value is off by more than {TOLERANCE:g}')
    return 0 if good else 1


def _fail(console: Console, nodes: list[NodeProcess]) -> int:
    for node in nodes:
        console.print(f'node {node.name}: exit code {node.exit_code}; its log:')
        console.print(node.log()[-3000:], markup=False)
    return 1
