"""`robodyn demo`: a simulated arm follows a motion under PD, PD + gravity, PD + whole model."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from rich.console import Console, Group
from rich.live import Live
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.msg import DynamicsTerms
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import ExperimentError
from robodyn_ros.excitation import Excitation, sample_motion
from robodyn_ros.experiment.recorder import Recorder
from robodyn_ros.model import Model
from robodyn_ros.nodes.base import LATCHED
from robodyn_ros.nodes.demo_display import (
    HEARD,
    LAWS,
    TOLERANCE,
    WIDE,
    Received,
    Track,
    overall,
    summary,
    table,
)
from robodyn_ros.nodes.demo_picture import moving_picture
from robodyn_ros.nodes.fast_path import DEPTH, FastSubscriptions
from robodyn_ros.nodes.processes import NodeProcess
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.trajectories import joint_trajectory

RATE = 500.0  # Hz, rate of the simulator and of the control loop
TIMEOUT = 600.0  # s, timeouts of the controller: in lock-step, a late state does no harm
ATTEMPTS = 5  # attempts to start a motion
TERMS = ('gravity', 'coriolis', 'friction', 'mass_matrix')
RECORDED = {'/joint_states': 'sensor_msgs/msg/JointState',
            '/simulator/torque': 'sensor_msgs/msg/JointState'}


class DemoNode(Node):
    """The node of the demo: receives all topics, selects the control laws, sends the motion."""

    def __init__(self, text: str, joint: str, recorder: Recorder | None):
        super().__init__('demo')
        self.heard = Received()
        self._joint = joint.encode()  # of the robot; states without it come from another one
        self._stranger = False
        self.models: dict[str, int] = {}
        self._recorder = recorder
        self._description = self.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=text))
        self._reference = self.create_publisher(JointTrajectory, 'feedforward/reference', 1)
        self.taken = False  # whether the controller has taken the motion
        self.create_subscription(JointTrajectory, 'feedforward/trajectory_with_effort',
                                 self._on_taken, 1)
        # messages are stored serialised, and deserialised later
        self._fast = FastSubscriptions(self, lambda topic, error: None)
        for topic, kind in HEARD.items():
            self._fast.add(kind, topic, partial(self._on, topic), DEPTH, raw=True)
        self._fast.start()
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self._mode = self.create_client(SetParameters, 'feedforward/set_parameters')
        self._reset = self.create_client(Trigger, 'simulator/reset')

    def _on(self, topic: str, raw: bytes) -> None:
        if topic == '/joint_states' and self._joint not in raw:
            self._stranger = True
            return
        self.heard.messages[topic].append(raw)
        if self._recorder is not None and topic in RECORDED:
            self._recorder.write(topic, time.time_ns(), raw)

    def _on_taken(self, message: JointTrajectory) -> None:
        self.taken = True

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {entry.key: entry.value for entry in status.values}
            self.models[status.name.lstrip('/')] = int(values.get('model_version', 0))

    def check_alone(self) -> None:
        """Raise an ExperimentError if another robot is in the same ROS domain."""
        if self._stranger or self.count_publishers('/joint_states') > 1:
            domain = os.environ.get('ROS_DOMAIN_ID', '0')
            raise ExperimentError(f'another robot publishes /joint_states in the ROS domain '
                                  f'{domain}; valid: a domain of its own, for example '
                                  f'ROS_DOMAIN_ID={(int(domain) + 42) % 100} make demo')

    def ready(self) -> bool:
        """Whether all nodes have a model."""
        self.check_alone()
        known = all(self.models.get(name) for name in ('simulator', 'dynamics', 'feedforward'))
        return known and self._mode.service_is_ready() and self._reset.service_is_ready()

    def begin(self, law: str) -> list[Any]:
        """Select a control law and put the arm at the start; return the futures of both."""
        request = SetParameters.Request(
            parameters=[Parameter('mode', value=law).to_parameter_msg()])
        return [self._mode.call_async(request), self._reset.call_async(Trigger.Request())]

    def now(self) -> int:
        """Return the stamp of the latest state, ns of the simulator's clock."""
        return nanoseconds(self.heard.latest('/joint_states').header.stamp)

    def send(self, motion: Excitation, delay: int) -> int:
        """Send the motion, which starts after a delay in s; return the stamp of its start, ns."""
        message = joint_trajectory(motion, 50.0)
        start = self.now() + delay * 1_000_000_000
        set_nanoseconds(message.header.stamp, start)
        self.taken = False
        self._reference.publish(message)
        return start

    def close(self) -> None:
        """Stop the thread."""
        self._fast.stop()


def run_demo(model: Model, text: str, *, seconds: float, picture: Path | None = None,
             plot: Path | None = None, record: Path | None = None,
             console: Console | None = None) -> int:
    """Run the demo and return the exit code.

    It is 0 if all nodes ran, all terms were correct, and the model reduced the tracking error.
    """
    console = console or Console()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    motion = sample_motion(model, period=max(seconds / 2, 3.0), harmonics=4, speed=0.6)
    recorder = Recorder(record, RECORDED) if record is not None else None
    with ExitStack() as stack:
        if recorder is not None:
            stack.callback(recorder.close)
        nodes = _start(stack, model, motion)
        rclpy.init()
        stack.callback(rclpy.try_shutdown)
        demo = DemoNode(text, model.joint_names[0], recorder)
        stack.callback(demo.close)
        executor = SingleThreadedExecutor()
        executor.add_node(demo)
        console.print(f'robot [bold]{model.name}[/], {model.n} joints, '
                      f'ROS_DOMAIN_ID {os.environ.get("ROS_DOMAIN_ID", "0")} on this machine')
        console.print('nodes and their processes: '
                      + ', '.join(f'{node.name} {node.pid}' for node in nodes))
        if not _spin(executor, 60.0, nodes, until=demo.ready):
            console.print('[red]the nodes have not started in time')
            return _fail(console, nodes)
        tracks, wrong = [], 0.0
        for law in LAWS:
            track = _run(law, motion, demo, executor, nodes, console, model)
            if track is None:
                return _fail(console, nodes)
            tracks.append(track)
            wrong = max(wrong, _terms_error(demo.heard, model))
        console.print(summary(model, tracks, wrong))
        helped = overall(model, tracks[-1])[0] < overall(model, tracks[0])[0]
        good = wrong <= TOLERANCE and helped
        if not good:
            _fail(console, nodes)
        if recorder is not None:
            console.print(f'{recorder.count} messages in {record}')
        if plot is not None:
            _plot(model, tracks, plot)
            console.print(f'{plot} written')
        if picture is not None:
            picture.write_text(moving_picture([
                *(track.frame for track in tracks),
                Group(tracks[-1].frame, summary(model, tracks, wrong))], WIDE), encoding='utf-8')
        return 0 if good else 1


def _plot(model: Model, tracks: list[Track], path: Path) -> None:
    """Draw the tracking errors under all control laws."""
    from robodyn_ros.report.tracking_plot import save_tracking_plot

    titles = ['{}: root mean square {:.3g} rad ({})'.format(
        LAWS[track.law], *overall(model, track)) for track in tracks]
    save_tracking_plot(model.joint_names, [
        (title, track.t, track.q - track.wanted)
        for title, track in zip(titles, tracks, strict=True)], path)


def _start(stack: ExitStack, model: Model, motion: Excitation) -> list[NodeProcess]:
    def numbers(values: Any) -> str:
        return '[' + ', '.join(repr(float(x)) for x in values) + ']'

    common = ('-p', f'gravity:={numbers(model.gravity)}')
    return [stack.enter_context(NodeProcess(name, '--ros-args', *common, *options))
            for name, options in (
                ('simulator', ('-p', f'rate:={RATE}', '-p', 'lock_step:=true', '-p',
                               'real_time_factor:=1.0', '-p',
                               f'start_position:={numbers(motion.at(0.0).q)}')),
                ('dynamics', ()),
                ('feedforward', ('-p', 'friction_width:=0.01', '-p',
                                 f'state_timeout:={TIMEOUT}', '-p', f'zero_after:={TIMEOUT}',
                                 '-r', '~/torque:=/simulator/torque')))]


def _run(law: str, motion: Excitation, demo: DemoNode, executor: Any,
         nodes: list[NodeProcess], console: Console, model: Model) -> Track | None:
    """Follow the motion under one control law; return None if a node died."""
    # The first state may be published before the nodes are connected, and on a busy machine, the
    # motion may arrive after its start.
    for attempt in range(ATTEMPTS):
        answers = demo.begin(law)
        if not _spin(executor, 30.0, nodes,
                     until=lambda answers=answers: all(one.done() for one in answers)):
            return None
        for messages in demo.heard.messages.values():
            messages.clear()
        if not _spin(executor, 10.0, nodes,
                     until=lambda: len(demo.heard.messages['/joint_states']) > RATE / 5):
            continue
        start = demo.send(motion, delay=2 ** attempt)
        if _spin(executor, 10.0, nodes, until=lambda: demo.taken) and demo.now() < start:
            break
    else:
        return None
    end = start + int(motion.duration * 1e9)
    began = time.monotonic()

    def shown(width: int = console.width) -> Group:
        return table(LAWS[law], demo.heard, motion, start, time.monotonic() - began, model,
                     width)

    frame = None
    with Live(shown(), console=console, auto_refresh=False) as live:
        while (now := demo.now()) < end:
            if frame is None and now > (start + end) // 2:
                frame = shown(WIDE)
            demo.check_alone()
            if not _spin(executor, 0.4, nodes) or time.monotonic() - began > 60 + 20 * (
                    motion.duration):
                return None
            live.update(shown(), refresh=console.is_terminal)
    console.print()
    states = [deserialize_message(raw, JointState)
              for raw in list(demo.heard.messages['/joint_states'])]
    t = np.array([nanoseconds(m.header.stamp) - start for m in states]) * 1e-9
    inside = (t >= 0) & (t <= motion.duration)
    order = [states[0].name.index(name) for name in model.joint_names]
    q, torque = (np.array([getattr(m, name) for m in states])[inside][:, order]
                 for name in ('position', 'effort'))
    return Track(law, t[inside], q, motion.at(t[inside]).q, torque, frame or shown(WIDE))


def _terms_error(heard: Received, model: Model) -> float:
    """Largest error of the published terms against the core, over some of the messages."""
    raw = heard.messages['/dynamics/terms']
    messages = [deserialize_message(one, DynamicsTerms) for one in raw[::max(1, len(raw) // 500)]]
    if not messages:
        return np.inf
    expected = Dynamics(model).terms(*(np.array([getattr(m, name) for m in messages])
                                       for name in ('position', 'velocity')))
    worst = 0.0
    for name in TERMS:
        wanted = getattr(expected, name)
        value = np.array([getattr(m, name) for m in messages]).reshape(wanted.shape)
        worst = max(worst, float(np.abs(value - wanted).max() / max(np.abs(wanted).max(), 1e-6)))
    return worst


def _spin(executor: Any, seconds: float, nodes: list[NodeProcess], until: Any = None) -> bool:
    """Spin; return False if a node died, or ``until`` did not become true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)
        if until is not None and until():
            return True
        if any(node.exit_code is not None for node in nodes):
            return False
    return until is None


def _fail(console: Console, nodes: list[NodeProcess]) -> int:
    for node in nodes:
        console.print(f'node {node.name}: exit code {node.exit_code}; its log:')
        console.print(node.log()[-3000:], markup=False)
    return 1
