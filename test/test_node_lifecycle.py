"""The node `dynamics` in processes of their own: lifecycle, first description, end."""

import signal

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from dynamics_answers import BAD_DESCRIPTIONS, answer  # noqa: E402
from lifecycle_msgs.msg import Transition  # noqa: E402
from robots import planar_2r  # noqa: E402

from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

pytestmark = pytest.mark.nodes


def test_a_bad_first_description_is_refused(world):
    with NodeProcess('dynamics'):
        world.describe(BAD_DESCRIPTIONS['no inertial'])
        world.wait(lambda: world.count('dynamics', 'models_refused') == 1, 'refusal')
        world.state(['j'], [0.0], [0.0])
        world.wait(lambda: world.count('dynamics', 'no_model') == 1, 'no_model')
        world.describe(planar_2r())
        world.wait_for_model('dynamics')


def test_lifecycle(world):
    with NodeProcess('dynamics', '--ros-args', '-p', 'autostart:=false') as process:
        assert world.lifecycle('dynamics') == 'unconfigured'
        assert world.transition('dynamics', Transition.TRANSITION_CONFIGURE)
        world.describe(planar_2r())
        world.wait_for_model('dynamics')
        terms = world.collect(DynamicsTerms, '/dynamics/terms')
        for _ in range(5):
            world.state(['j1', 'j2'], [0, 0], [0, 0])
            world.spin(0.1)
        assert not terms  # inactive: nothing is computed or published
        assert world.transition('dynamics', Transition.TRANSITION_ACTIVATE)
        answer(world, terms, ['j1', 'j2'], [0, 0], [0, 0])
        assert world.transition('dynamics', Transition.TRANSITION_DEACTIVATE)
        assert world.lifecycle('dynamics') == 'inactive'
        assert world.transition('dynamics', Transition.TRANSITION_CLEANUP)
        world.wait(lambda: world.node.count_publishers('/dynamics/terms') == 0, 'cleanup')
        assert world.transition('dynamics', Transition.TRANSITION_CONFIGURE)
        assert world.transition('dynamics', Transition.TRANSITION_ACTIVATE)
        terms.clear()
        answer(world, terms, ['j1', 'j2'], [0, 0], [0, 0])
        assert process.stop() == 0, process.log()


def test_an_interrupt_ends_a_node_that_a_shell_started_in_the_background(world):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells do for background jobs
    try:
        process = NodeProcess('dynamics')
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        world.describe(planar_2r())
        world.wait_for_model('dynamics')
        assert process.stop() == 0, process.log()


def test_description_as_a_parameter_that_is_bad(world, tmp_path):
    config = tmp_path / 'p.yaml'
    config.write_text('dynamics:\n  ros__parameters:\n    robot_description: "<robot/>"\n')
    with NodeProcess('dynamics', '--ros-args', '--params-file', str(config)) as process:
        assert world.lifecycle('dynamics') == 'unconfigured'
        assert process.exit_code is None and 'has no link' in process.log()
