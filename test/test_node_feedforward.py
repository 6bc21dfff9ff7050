"""The node `feedforward`, a real process, on real topics."""

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from robots import PANDA_URDF, planar_2r  # noqa: E402
from ros_world import payload, trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
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


@pytest.fixture
def node(world):
    with NodeProcess('feedforward', '--ros-args', '-p', 'rate:=200.0') as process:
        yield process
        assert process.exit_code is None, process.log()


@pytest.fixture
def model(world, node):
    world.describe(TEXT)
    world.wait_for_model('feedforward')
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


@pytest.mark.real_time
def test_trajectory_is_played(world, model):
    torques = world.collect(JointState, '/feedforward/torque')
    commands = world.collect(Float64MultiArray, '/feedforward/commands')
    filled = world.collect(JointTrajectory, '/feedforward/trajectory_with_effort')
    points = motion_points(model)
    order = list(reversed(range(model.n)))  # any order of joints
    start = world.now() + 10**9
    message = trajectory([model.joint_names[i] for i in order],
                         [(t, q[order], qd[order], qdd[order]) for t, q, qd, qdd in points],
                         start)
    world.publish(JointTrajectory, TOPIC, message)
    world.spin(2.6)
    assert len(torques) > 100 and len(commands) > 100
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


@pytest.mark.real_time
def test_a_single_point_is_commanded_until_the_setpoint_timeout(world, model):
    torques = world.collect(JointState, '/feedforward/torque')
    q, zero = np.full(model.n, 0.3), np.zeros(model.n)
    assert world.set_parameter('feedforward', 'setpoint_timeout', 0.3).successful
    send_until_played(world, trajectory(model.joint_names, [(0.0, q, zero, zero)]), torques)
    world.spin(1.0)
    np.testing.assert_allclose(torques[-1].effort, rd.Dynamics(model).inverse_dynamics(
        q, zero, zero), atol=1e-9)
    first, last = nanoseconds(torques[0].header.stamp), nanoseconds(torques[-1].header.stamp)
    assert last - first < 0.4e9
    count = len(torques)
    world.spin(0.5)
    assert len(torques) == count  # stale: nothing is published


def test_bad_references_are_refused(world, node, model):
    torques = world.collect(JointState, '/feedforward/torque')
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
    assert "unknown joint in the reference 'knee'" in node.log()


def test_torque_never_exceeds_the_effort_limit(world, model):
    torques = world.collect(JointState, '/feedforward/torque')
    filled = world.collect(JointTrajectory, '/feedforward/trajectory_with_effort')
    zero, wild = np.zeros(model.n), np.full(model.n, 300.0)
    send_until_played(world, trajectory(model.joint_names, [(0.0, zero, zero, wild)]), torques)
    for message in torques:
        assert np.all(np.abs(message.effort) <= model.effort_limit)
    assert np.any(np.abs(torques[0].effort) == model.effort_limit)
    assert np.all(np.abs(filled[0].points[0].effort) <= model.effort_limit)
    world.wait(lambda: world.count('feedforward', 'saturated') > 0, 'saturated')


@pytest.mark.real_time
def test_command_joints_and_rate(world, model):
    torques = world.collect(JointState, '/feedforward/torque')
    commands = world.collect(Float64MultiArray, '/feedforward/commands')
    wanted = ['panda_joint7', 'panda_joint2']
    assert world.set_parameter('feedforward', 'command_joints', wanted).successful
    refused = world.set_parameter('feedforward', 'command_joints', ['elbow'])
    assert not refused.successful and 'panda_joint1' in refused.reason
    assert not world.set_parameter('feedforward', 'rate', 0.0).successful
    assert world.set_parameter('feedforward', 'rate', 50.0).successful
    q, zero = np.linspace(0.1, 0.5, model.n), np.zeros(model.n)
    send_until_played(world, trajectory(model.joint_names, [
        (0.0, q, zero, zero), (1.0, q, zero, zero)]), torques)
    world.spin(1.0)
    expected = rd.Dynamics(model).gravity(q)
    np.testing.assert_allclose(commands[-1].data, [expected[6], expected[1]], atol=1e-9)
    gaps = np.diff([nanoseconds(m.header.stamp) for m in torques]) * 1e-9
    assert 0.015 < np.median(gaps) < 0.03


def test_payload_and_model_change_while_playing(world, model):
    torques = world.collect(JointState, '/feedforward/torque')
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
    world.describe(planar_2r())
    world.wait_for_model('feedforward', 3)

    def silent():
        count = len(torques)
        world.spin(0.5)
        return len(torques) == count
    world.wait(silent, 'the end of the reference, which was for another robot', 10.0)


@pytest.mark.real_time
def test_another_robot_ends_the_commands_with_hold_then_zero(world, model):
    assert world.set_parameter('feedforward', 'mode', 'gravity_compensation').successful
    torques = world.collect(JointState, '/feedforward/torque')
    q = np.clip(np.linspace(0.1, 0.5, model.n), model.lower, model.upper)

    def answered(condition, what):
        def go_on():
            world.state(model.joint_names, q, np.zeros(model.n))
            return condition()
        world.wait(go_on, what)

    answered(lambda: len(torques) > 20, 'torques')
    world.describe(planar_2r())
    answered(lambda: world.count('feedforward', 'model_version') == 2, 'the other robot')
    world.wait(lambda: torques[-1].name == list(model.joint_names)
               and not any(torques[-1].effort), 'zero')
    stamps = np.array([nanoseconds(m.header.stamp) for m in torques]) * 1e-9
    efforts, gravity = np.array([m.effort for m in torques]), rd.Dynamics(model).gravity(q)
    held = np.abs(efforts - gravity).max(axis=1) < 0.01 * np.abs(gravity).max()
    assert held[-1] == 0 and held.sum() > 20
    slope = np.abs(np.diff(efforts[held.argmax():], axis=0)).max(axis=1) / np.maximum(
        np.diff(stamps[held.argmax():]), 0.004)
    assert slope.max() < 20 * np.abs(gravity).max(), 'it fades within 0.2 s, without a jump'


def test_an_excitation_is_played(world, model):
    """Found by the optimiser, sent with any sampling, and played with its torques."""
    from robodyn_ros.nodes.trajectories import joint_trajectory

    planar = rd.load_model(planar_2r())
    world.describe(planar_2r())
    world.wait_for_model('feedforward', 2)
    found = rd.optimise_excitation(planar, rd.Limits(position=[[-2, 2]] * 2), period=3.0,
                                   harmonics=3, budget=60.0, starts=1)
    message = joint_trajectory(found, 50.0)
    assert len(message.points) == 151
    filled = world.collect(JointTrajectory, '/feedforward/trajectory_with_effort')
    torques = world.collect(JointState, '/feedforward/torque')
    send_until_played(world, message, torques)
    world.wait(lambda: filled, 'the trajectory with its efforts')
    t, motion = found.samples(50.0)
    want = rd.Dynamics(planar).inverse_dynamics(*motion[:3])
    limited = np.clip(want, -planar.effort_limit, planar.effort_limit)
    np.testing.assert_allclose([point.effort for point in filled[-1].points], limited, atol=1e-9)
