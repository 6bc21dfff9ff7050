"""The node `dynamics` with a floating base: odometry and joint states in, terms out."""

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
pytest.importorskip('nav_msgs', reason='nav_msgs are not installed')
from nav_msgs.msg import Odometry  # noqa: E402
from robots import joint, link, robot  # noqa: E402
from ros_world import World, of  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import set_nanoseconds  # noqa: E402

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
    with NodeProcess('dynamics', '--ros-args', '-p', 'odometry_topic:=odom') as process:
        world.describe(TEXT)
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
                world.wait(lambda ns=ns: of(terms, ns) is not None, 'terms', 1.0)
                break
            except AssertionError:
                continue
        message = of(terms, ns)
        q, qd = np.array([*pose, 0.7]), np.array([*twist, -0.4])
        expected = dynamics.terms(q, qd)
        assert message.name == list(dynamics.model.velocity_names)
        np.testing.assert_allclose(message.position, q)
        np.testing.assert_allclose(message.velocity, qd)
        np.testing.assert_allclose(message.gravity, expected.gravity, atol=1e-12)
        np.testing.assert_allclose(message.coriolis, expected.coriolis, atol=1e-12)
        np.testing.assert_allclose(message.mass_matrix, expected.mass_matrix.ravel(), atol=1e-12)
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
