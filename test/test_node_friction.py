"""Friction in running nodes: it is the friction that was identified and validated."""

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from dynamics_answers import answer  # noqa: E402
from ros_world import World, trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from test_friction_width import WIDTHS, arm, result  # noqa: E402, F401
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_interfaces.srv import SetModel  # noqa: E402
from robodyn_ros.control import SmoothMotion  # noqa: E402
from robodyn_ros.identification.writing import motors_of  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

pytestmark = pytest.mark.nodes

GRAVITY = 'gravity:=[0.0, -9.81, 0.0]'


@pytest.fixture(scope='module')
def files(result, tmp_path_factory):  # noqa: F811
    """The files of the identified robot."""
    folder = tmp_path_factory.mktemp('identified')
    rd.write_urdf(result.model, folder / 'identified.urdf')
    rd.save_motors(result.model, folder / 'motors.yaml')
    return folder


def friction(result, qd):  # noqa: F811
    """Friction that the fit predicts for a velocity, N m."""
    still = np.zeros(2)
    return result.predict(still, qd, still, consistent=True) - rd.Dynamics(
        result.model.without_friction()).inverse_dynamics(still, qd, still)


SPEEDS = [np.array(speeds) for speeds in ((0.02, -0.05), (0.1, 0.01), (-0.3, 0.8))]


def test_dynamics_publishes_the_friction_of_the_fit(result, files):  # noqa: F811
    text = (files / 'identified.urdf').read_text()
    world = World()
    with NodeProcess('dynamics', '--ros-args', '-p', GRAVITY, '-p',
                     f'motors_file:={files / "motors.yaml"}') as process:
        world.describe(text)
        terms = world.collect(DynamicsTerms, '/dynamics/terms')

        def heard(qd):
            return answer(world, terms, ('j1', 'j2'), [0.0, 0.0], list(qd)).friction

        for qd in SPEEDS:
            np.testing.assert_allclose(heard(qd), friction(result, qd), atol=1e-9)
        # the user's own width has precedence, until it is taken back
        for width in (0.0, 0.02):
            assert world.set_parameter('dynamics', 'friction_width', width).successful
            np.testing.assert_allclose(heard(SPEEDS[0]), rd.Dynamics(
                result.model, friction_width=width).friction(SPEEDS[0]), atol=1e-9)
            assert np.abs(heard(SPEEDS[0]) - friction(result, SPEEDS[0])).max() > 0.3
        assert world.set_parameter('dynamics', 'friction_width', -1.0).successful
        # the service set_model brings the widths of its own motor data
        for motors, model in ((motors_of(arm(WIDTHS)), arm(WIDTHS)), ({}, None),
                              (motors_of(result.model), result.model)):
            done = world.call(SetModel, 'dynamics/set_model', SetModel.Request(
                robot_description=text, motors=yaml.safe_dump(motors)))
            assert done.success, done.message
            want = rd.Dynamics(model or rd.load_model(text)).friction(SPEEDS[0])
            np.testing.assert_allclose(heard(SPEEDS[0]), want, atol=1e-9)
        assert process.exit_code is None, process.log()
    world.close()


def test_feedforward_commands_the_friction_of_the_fit(result, files):  # noqa: F811
    world = World()
    motion = SmoothMotion(result.model)
    points = [(t, *motion.sample(t)) for t in np.arange(0.0, 1.001, 0.05)]
    with NodeProcess('feedforward', '--ros-args', '-p', GRAVITY, '-p', 'rate:=200.0', '-p',
                     f'motors_file:={files / "motors.yaml"}') as process:
        world.describe((files / 'identified.urdf').read_text())
        filled = world.collect(JointTrajectory, '/feedforward/trajectory_with_effort')
        world.collect(JointState, '/feedforward/torque')
        world.wait(lambda: world.count('feedforward', 'model_version') > 0, 'the model')
        for width in (-1.0, 0.0):
            assert world.set_parameter('feedforward', 'friction_width', width).successful
            filled.clear()
            world.publish(JointTrajectory, '/feedforward/reference',
                          trajectory(('j1', 'j2'), points, world.now() + 10**9))
            world.wait(lambda: filled, 'the trajectory with its efforts')
            efforts = np.array([point.effort for point in filled[-1].points])
            wanted = result.predict(*np.moveaxis([p[1:] for p in points], 1, 0), consistent=True)
            near = np.abs(efforts - wanted).max() < 1e-6
            assert near == (width < 0), np.abs(efforts - wanted).max()
        assert process.exit_code is None, process.log()
    world.close()
