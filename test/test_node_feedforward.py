"""The node `feedforward`, a real process, on real topics."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from robots import PANDA_URDF, planar_2r  # noqa: E402
from ros_world import World, payload, trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from stalls import Starvation  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.srv import SetPayload  # noqa: E402
from robodyn_ros.control import Reference, SmoothMotion  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import nanoseconds  # noqa: E402

pytestmark = pytest.mark.nodes

TEXT = PANDA_URDF.read_text()
TOPIC = '/feedforward/reference'
USUAL = {'rate': 200.0, 'mode': 'feedforward', 'command_joints': [''], 'setpoint_timeout': 0.1}


class Controller:
    """The node `feedforward`, and what it publishes."""

    def __init__(self):
        self.world = World()
        self.process = NodeProcess('feedforward', '--ros-args', '-p', 'rate:=200.0')
        self._text, self.changed = '', set()
        self.use(TEXT)
        self.torques = self.world.collect(JointState, '/feedforward/torque')
        self.commands = self.world.collect(Float64MultiArray, '/feedforward/commands')
        self.filled = self.world.collect(JointTrajectory, '/feedforward/trajectory_with_effort')

    def use(self, text, meanwhile=lambda: None):
        """Give the node a robot; meanwhile, call a function again and again."""
        if text == self._text:
            return
        version, self._text = self.world.count('feedforward', 'model_version'), text
        self.world.describe(text)

        def used():
            meanwhile()
            return self.world.count('feedforward', 'model_version') > version
        self.world.wait(used, 'the model')

    def set(self, **parameters):
        self.changed |= parameters.keys()
        for name, value in parameters.items():
            assert self.world.set_parameter('feedforward', name, value).successful

    def set_usual(self):
        """Set what a test has changed to its usual value."""
        self.set(**{name: USUAL[name] for name in self.changed})
        self.changed.clear()

    def until_silent(self):
        """Wait until the node commands nothing any more."""
        def silent():
            count = len(self.torques)
            self.world.spin(0.3)
            return len(self.torques) == count
        self.world.wait(silent, 'the end of the reference', 10.0)

    def close(self):
        self.process.__exit__()
        self.world.close()


@pytest.fixture(scope='module')
def running():
    found = Controller()
    yield found
    found.close()


@pytest.fixture
def node(running):
    """The node in the open loop, with a robot and without a reference."""
    running.use(TEXT)
    running.until_silent()
    for messages in (running.torques, running.commands, running.filled):
        messages.clear()
    yield running
    assert running.process.exit_code is None, running.process.log()
    running.set_usual()


@pytest.fixture
def world(node):
    return node.world


@pytest.fixture(scope='module')
def model():
    return rd.load_model(TEXT)


def motion_points(model, seconds=1.0):
    motion = SmoothMotion(model)
    return [(t, *motion.sample(t)) for t in np.arange(0.0, seconds + 1e-9, 0.05)]


def send_until_played(world, message, messages):
    for _ in range(10):
        world.publish(JointTrajectory, TOPIC, message)
        try:
            world.wait(lambda: messages, 'torques', 2.0)
            return
        except AssertionError:
            continue
    raise AssertionError('no torques arrived for the reference')


def test_a_single_point_is_commanded_until_the_setpoint_timeout(node, world, model):
    torques, q, zero = node.torques, np.full(model.n, 0.3), np.zeros(model.n)
    node.set(setpoint_timeout=0.3)
    send_until_played(world, trajectory(model.joint_names, [(0.0, q, zero, zero)]), torques)
    world.spin(0.5)
    np.testing.assert_allclose(torques[-1].effort, rd.Dynamics(model).inverse_dynamics(
        q, zero, zero), atol=1e-9)
    first, last = nanoseconds(torques[0].header.stamp), nanoseconds(torques[-1].header.stamp)
    assert last - first < 0.4e9
    count = len(torques)
    world.spin(0.3)
    assert len(torques) == count  # stale: nothing is published


def test_bad_references_are_refused(node, world, model):
    torques = node.torques
    names, zero = list(model.joint_names), np.zeros(model.n)
    nan = np.array([np.nan, *zero[1:]])
    bad = [
        trajectory([*names[:-1], 'knee'], [(0.0, zero, zero, zero)]),
        trajectory(names[:-1], [(0.0, zero[:-1], zero[:-1], zero[:-1])]),
        trajectory(names, [(0.0, zero, zero, None)]),
        trajectory(names, [(0.0, zero, None, zero)]),
        trajectory(names, [(0.0, nan, zero, zero)]),
        trajectory(names, []),
        trajectory(names, [(0.5, zero, zero, zero), (0.5, zero, zero, zero)]),
        trajectory(names, [(0.0, zero, zero, np.full(model.n, 1e308))]),
    ]
    for message in bad:
        world.publish(JointTrajectory, TOPIC, message)
    world.wait(lambda: world.count('feedforward', 'reference_refused') == len(bad), 'refusals')
    over = trajectory(names, [(0.0, zero, zero, zero)], world.now() - 10**10)
    world.publish(JointTrajectory, TOPIC, over)
    world.wait(lambda: world.count('feedforward', 'reference_stale') == 1, 'stale')
    assert not torques
    assert "unknown joint in the reference 'knee'" in node.process.log()


def test_torque_never_exceeds_the_effort_limit(node, world, model):
    torques, filled = node.torques, node.filled
    zero, wild = np.zeros(model.n), np.full(model.n, 300.0)
    send_until_played(world, trajectory(model.joint_names, [(0.0, zero, zero, wild)]), torques)
    for message in torques:
        assert np.all(np.abs(message.effort) <= model.effort_limit)
    assert np.any(np.abs(torques[0].effort) == model.effort_limit)
    assert np.all(np.abs(filled[0].points[0].effort) <= model.effort_limit)
    world.wait(lambda: world.count('feedforward', 'saturated') > 0, 'saturated')


@pytest.mark.real_time
def test_command_joints_and_rate(node, world, model):
    torques, commands, starved = node.torques, node.commands, Starvation(node.process.pid)
    node.set(command_joints=['panda_joint7', 'panda_joint2'])
    refused = world.set_parameter('feedforward', 'command_joints', ['elbow'])
    assert not refused.successful and 'panda_joint1' in refused.reason
    assert not world.set_parameter('feedforward', 'rate', 0.0).successful
    node.set(rate=50.0)
    q, zero = np.linspace(0.1, 0.5, model.n), np.zeros(model.n)
    send_until_played(world, trajectory(model.joint_names, [
        (0.0, q, zero, zero), (0.1, q, zero, zero)]), torques)
    world.spin(0.6)  # it is held
    expected = rd.Dynamics(model).gravity(q)
    np.testing.assert_allclose(commands[-1].data, [expected[6], expected[1]], atol=1e-9)
    gaps = np.diff([nanoseconds(m.header.stamp) for m in torques]) * 1e-9
    assert 0.015 < np.median(gaps) and (np.median(gaps) < 0.03 or starved)


def test_payload_and_model_change_while_playing(node, world, model):
    torques = node.torques
    q, zero = np.linspace(0.1, 0.5, model.n), np.zeros(model.n)
    still = trajectory(model.joint_names, [(0.0, q, zero, zero), (30.0, q, zero, zero)])
    send_until_played(world, still, torques)
    request = payload('panda_hand', 2.0)
    assert world.call(SetPayload, '/feedforward/set_payload', request).success
    count = len(torques)
    world.wait(lambda: len(torques) > count + 5, 'torques with the payload')
    loaded = rd.Dynamics(model.with_payload('panda_hand', 2.0))
    np.testing.assert_allclose(torques[-1].effort, loaded.inverse_dynamics(q, zero, zero),
                               atol=1e-9)
    plain = rd.Dynamics(model).inverse_dynamics(q, zero, zero)
    for message in torques:  # the model changes between two messages, never within one
        assert np.allclose(message.effort, plain) or np.allclose(
            message.effort, loaded.inverse_dynamics(q, zero, zero))
    node.use(planar_2r())
    node.until_silent()  # the reference was for another robot


@pytest.mark.real_time
def test_another_robot_ends_the_commands_with_hold_then_zero(node, world, model):
    node.set(mode='gravity_compensation')
    torques, q = node.torques, np.clip(np.linspace(0.1, 0.5, model.n), model.lower, model.upper)

    def state():
        world.state(model.joint_names, q, np.zeros(model.n))
        return len(torques) > 20

    world.wait(state, 'torques')
    node.use(planar_2r(), meanwhile=state)
    world.wait(lambda: torques[-1].name == list(model.joint_names)
               and not any(torques[-1].effort), 'zero')
    stamps = np.array([nanoseconds(m.header.stamp) for m in torques]) * 1e-9
    efforts, gravity = np.array([m.effort for m in torques]), rd.Dynamics(model).gravity(q)
    held = np.abs(efforts - gravity).max(axis=1) < 0.01 * np.abs(gravity).max()
    assert held[-1] == 0 and held.sum() > 20
    slope = np.abs(np.diff(efforts[held.argmax():], axis=0)).max(axis=1) / np.maximum(
        np.diff(stamps[held.argmax():]), 0.004)
    assert slope.max() < 20 * np.abs(gravity).max(), 'it fades within 0.2 s, without a jump'


def test_trajectory_is_played(node, world, model, stalls):
    """Tests with joints at rest come before: their friction keeps the direction of a motion."""
    torques, commands, filled = node.torques, node.commands, node.filled
    points = motion_points(model)
    order = list(reversed(range(model.n)))  # any order of joints
    start, began = world.now() + 5 * 10**8, time.monotonic()
    message = trajectory([model.joint_names[i] for i in order],
                         [(t, q[order], qd[order], qdd[order]) for t, q, qd, qdd in points],
                         start)
    world.publish(JointTrajectory, TOPIC, message)
    world.wait(lambda: world.now() > start + 11 * 10**8, 'the end')
    enough = 100 - 200 * stalls.total(began)
    assert torques and len(torques) > enough and len(commands) > enough
    reference = Reference([p[0] for p in points], *(
        np.array([p[k] for p in points]) for k in (1, 2, 3)))
    dynamics = rd.Dynamics(model)
    for heard in torques:
        t = (nanoseconds(heard.header.stamp) - start) * 1e-9
        assert -1e-9 <= t <= 1.05  # the motion does not end at rest: it is not held
        np.testing.assert_allclose(heard.effort, dynamics.inverse_dynamics(*reference.sample(t)),
                                   atol=1e-9)
        assert heard.name == list(model.joint_names)
    assert any(np.allclose(c.data, torques[-1].effort) for c in commands[-5:])
    assert len(filled) == 1 and filled[0].joint_names == message.joint_names
    for point, (_, q, qd, qdd) in zip(filled[0].points, points, strict=True):
        np.testing.assert_allclose(point.effort, dynamics.inverse_dynamics(q, qd, qdd)[order],
                                   atol=1e-9)


def test_an_excitation_is_played(node, world):
    """Found by the optimiser, sent with any sampling, and played with its torques."""
    from robodyn_ros.nodes.trajectories import joint_trajectory

    planar = rd.load_model(planar_2r())
    node.use(planar_2r())
    found = rd.optimise_excitation(planar, rd.Limits(position=[[-2, 2]] * 2), period=3.0,
                                   harmonics=3, budget=60.0, starts=1)
    message = joint_trajectory(found, 50.0)
    assert len(message.points) == 151
    filled = node.filled
    send_until_played(world, message, node.torques)
    world.wait(lambda: filled, 'the trajectory with its efforts')
    t, motion = found.samples(50.0)
    want = rd.Dynamics(planar).inverse_dynamics(*motion[:3])
    limited = np.clip(want, -planar.effort_limit, planar.effort_limit)
    np.testing.assert_allclose([point.effort for point in filled[-1].points], limited, atol=1e-9)
