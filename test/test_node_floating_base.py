"""The node `dynamics` with a floating base: odometry, or TF and an IMU; terms out."""

import re
from contextlib import ExitStack

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
for name in ('nav_msgs', 'tf2_msgs'):
    pytest.importorskip(name, reason=f'{name} are not installed')
from geometry_msgs.msg import TransformStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from robots import joint, link, robot  # noqa: E402
from ros_world import LATCHED, World, message_at  # noqa: E402
from sensor_msgs.msg import Imu  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from tf2_msgs.msg import TFMessage  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_interfaces.srv import SetModel  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds  # noqa: E402
from robodyn_ros.observation.inertial import rotation_of  # noqa: E402
from robodyn_ros.spatial import quaternion_of, rotation_from_quaternion  # noqa: E402

pytestmark = pytest.mark.nodes

TEXT = robot(
    link('base', 4.0, (0.02, 0.01, -0.03), (0.05, 0.01, 0, 0.06, 0, 0.07)),
    link('leg', 1.0, (0, 0.1, -0.2), (0.01, 0, 0, 0.01, 0, 0.01)),
    joint('hip', 'revolute', 'base', 'leg', (0.3, 0.1, 0), axis=(0, 1, 0)))


def odometry(ns, pose, twist, link='base'):
    message = Odometry(child_frame_id=link)
    message.header.frame_id = 'odom'
    set_nanoseconds(message.header.stamp, ns)
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = pose
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = twist
    return message


def test_terms_of_a_floating_base_follow_odometry_and_joint_states(rng):
    world = World()
    dynamics = rd.Dynamics(rd.load_model(TEXT, base='floating'))
    mounted = TEXT.replace('</robot>', link('sensor') + joint(
        'mount', 'fixed', 'base', 'sensor', (0.1, 0.05, 0.2), (0.4, -0.3, 1.1)) + '</robot>')
    with NodeProcess('dynamics', '--ros-args', '-p', 'odometry_topic:=odom') as process:
        world.describe(mounted)
        world.wait_for_model('dynamics')
        terms = world.collect(DynamicsTerms, '/dynamics/terms')
        world.state(['hip'], [0.1], [0.2])
        world.wait(lambda: world.count('dynamics', 'no_odometry') > 0, 'a count of no_odometry')
        quaternion = rng.normal(size=4)
        pose = [1.0, 2.0, 0.5, *quaternion / np.linalg.norm(quaternion)]
        twist = rng.normal(size=6)
        for _ in range(20):  # best effort: a message may be lost
            ns = world.now()
            world.publish(Odometry, 'odom', odometry(ns, pose, twist))
            world.spin(0.1)
            world.state(['hip'], [0.7], [-0.4], ns=ns)
            try:
                world.wait(lambda ns=ns: message_at(terms, ns) is not None, 'terms', 1.0)
                break
            except AssertionError:
                continue
        message = message_at(terms, ns)
        q, qd = np.array([*pose, 0.7]), np.array([*twist, -0.4])
        expected = dynamics.terms(q, qd)
        assert message.name == list(dynamics.model.velocity_names)
        np.testing.assert_allclose(message.position, q)
        np.testing.assert_allclose(message.velocity, qd)
        np.testing.assert_allclose(message.gravity, expected.gravity, atol=1e-12)
        np.testing.assert_allclose(message.coriolis, expected.coriolis, atol=1e-12)
        np.testing.assert_allclose(message.mass_matrix, expected.mass_matrix.ravel(), atol=1e-12)
        at = dynamics.model.link_frames['base'], rd.load_model(
            mounted, base='floating').link_frames['sensor']
        assert at[0].body == at[1].body == -1
        rotation = rotation_from_quaternion(q[3:7])  # the odometry of a link on the base
        speed = twist[:3] + np.cross(twist[3:], at[1].translation)
        ns = world.now()
        world.publish(Odometry, 'odom', odometry(
            ns, [*q[:3] + rotation @ at[1].translation, *quaternion_of(rotation @ at[1].rotation)],
            [*speed @ at[1].rotation, *twist[3:] @ at[1].rotation], 'sensor'))
        world.spin(0.2)
        for _ in range(20):
            world.state(['hip'], [0.7], [-0.4], ns=ns)
            world.spin(0.2)
            message = message_at(terms, ns)
            if message is not None:
                break
        np.testing.assert_allclose(message.position[:3], q[:3], atol=1e-12)
        np.testing.assert_allclose(message.velocity, qd, atol=1e-12)
        np.testing.assert_allclose(message.gravity, expected.gravity, atol=1e-9)
        for kind, wrong in (('wrong_frame', odometry(ns, pose, twist, 'camera')),
                            ('not_a_rotation', odometry(ns, [0.0] * 7, twist)),
                            ('not_finite', odometry(ns, pose, [np.nan] * 6))):
            world.publish(Odometry, 'odom', wrong)
            world.wait(lambda kind=kind: world.count('dynamics', kind) > 0, kind)
        before = world.count('dynamics', 'no_odometry')
        world.state(['hip'], [0.7], [-0.4], ns=ns + 10**9)
        world.wait(lambda: world.count('dynamics', 'no_odometry') > before, 'stale odometry')
        assert process.exit_code is None, process.log()
    world.close()


def transforms(ns, *entries):
    """A message of TF; entries are (parent, child, rotation, position)."""
    message = TFMessage()
    for parent, child, rotation, position in entries:
        one = TransformStamped(child_frame_id=child)
        one.header.frame_id = parent
        set_nanoseconds(one.header.stamp, ns)
        place, turn = one.transform.translation, one.transform.rotation
        place.x, place.y, place.z = map(float, position)
        turn.x, turn.y, turn.z, turn.w = map(float, quaternion_of(rotation))
        message.transforms.append(one)
    return message


def imu(ns, rates, force, frame='imu'):
    message = Imu()
    message.header.frame_id = frame
    set_nanoseconds(message.header.stamp, ns)
    turn, push = message.angular_velocity, message.linear_acceleration
    turn.x, turn.y, turn.z = map(float, rates)
    push.x, push.y, push.z = map(float, force)
    return message


def test_terms_of_a_floating_base_follow_tf_and_an_imu():
    """The base turns at a constant rate and moves at a constant velocity; map -> odom stands."""
    text = TEXT.replace('</robot>', link('imu') + joint(
        'mount', 'fixed', 'base', 'imu', (0.1, 0.05, 0.2), (0.4, -0.3, 1.1)) + '</robot>')
    model = rd.load_model(text, base='floating')
    dynamics, unit = rd.Dynamics(model), model.link_frames['imu']
    speed, rates = np.array([0.8, -0.3, 0.1]), np.array([0.3, -0.2, 1.0])
    drift = 'map', 'odom', rotation_of(np.array([0, 0, 0.5])), (3.0, 1.0, 0.0)

    def pose(t):
        return rotation_of(np.array([0.2, 0.1, 0.0])) @ rotation_of(rates * t), speed * t

    def force(t):
        inside = np.cross(rates, np.cross(rates, unit.translation))
        return unit.rotation.T @ (inside - (drift[2] @ pose(t)[0]).T @ model.gravity)

    world = World()
    with NodeProcess('dynamics', '--ros-args', '-p', 'imu_topic:=imu/data', '-p',
                     'world_frame:=map', '-p', 'odometry_timeout:=0.5') as process:
        world.describe(text)
        world.wait_for_model('dynamics')
        terms = world.collect(DynamicsTerms, '/dynamics/terms')
        world.state(['hip'], [0.1], [0.2])
        world.wait(lambda: world.count('dynamics', 'no_odometry') > 0, 'a count of no_odometry')
        world.publish(Imu, 'imu/data', imu(1, rates, force(0), 'leg'))
        world.wait(lambda: world.count('dynamics', 'wrong_frame') > 0, 'wrong_frame')
        world.publish(TFMessage, '/tf_static', transforms(0, drift), LATCHED)
        start, message = world.now(), None
        for k in range(150):
            t, ns = k / 50, start + k * 2 * 10**7
            world.publish(Imu, 'imu/data', imu(ns, unit.rotation.T @ rates, force(t)))
            if k % 3 == 0:
                world.publish(TFMessage, '/tf', transforms(
                    ns, ('odom', 'base', *pose(t)), ('base', 'leg', np.eye(3), (0.3, 0.1, 0))))
            world.spin(0.001)
            if k > 100 and k % 15 == 0:  # best effort: a message may be lost
                world.state(['hip'], [0.7], [-0.4], ns=ns)
                world.spin(0.1)
                message = message_at(terms, ns) or message
        rotation, place = pose((nanoseconds(message.header.stamp) - start) * 1e-9)
        q = np.array([*drift[2] @ place + drift[3], *quaternion_of(drift[2] @ rotation), 0.7])
        qd = np.array([*rotation.T @ speed, *rates, -0.4])
        np.testing.assert_allclose(message.velocity, qd, atol=0.02)
        np.testing.assert_allclose(message.velocity[3:], qd[3:], atol=1e-12)
        np.testing.assert_allclose(message.position[:3], q[:3], atol=0.02)
        np.testing.assert_allclose(message.gravity, dynamics.gravity(q), atol=0.3)
        assert np.abs(message.gravity[:2]).min() > 1  # the base is inclined
        exact = dynamics.terms(np.array(message.position), np.array(message.velocity))
        np.testing.assert_allclose(message.coriolis, exact.coriolis, atol=1e-12)
        assert process.exit_code is None, process.log()
    world.close()


def test_nodes_without_measurements_of_the_base_refuse_a_floating_one():
    """They name the joint and what is supported, stay alive, and take the robot on a stand."""
    names = 'feedforward', 'observer', 'identification', 'simulator'
    floating = TEXT.replace('</robot>', link('world') + joint(
        'free', 'floating', 'world', 'base') + '</robot>')
    held = floating.replace('"floating"', '"fixed"')
    refused = re.compile("base 'base' floats .joint 'free' of type 'floating'.; only the node "
                         "dynamics supports this, with odometry_topic or imu_topic .*'fixed'")
    world = World()
    with ExitStack() as stack:
        nodes = [stack.enter_context(NodeProcess(name, '--ros-args')) for name in names]
        world.describe(floating)
        for node in nodes:
            world.wait(lambda node=node: refused.search(node.log()), 'a refusal')
        world.publish(String, 'robot_description', String(data=held), LATCHED)
        world.wait_for_model('feedforward')
        answer = world.call(SetModel, 'feedforward/set_model',
                            SetModel.Request(robot_description=floating))
        assert not answer.success and refused.search(answer.message), answer.message
        assert [node.exit_code for node in nodes] == [None] * len(nodes)
    world.close()
