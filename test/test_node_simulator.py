"""The node `simulator`, a real process, on real topics."""

import time

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from lifecycle_msgs.msg import Transition  # noqa: E402
from robots import PANDA_URDF, planar_2r  # noqa: E402
from ros_world import World, seconds, since_reset  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from stalls import Starvation  # noqa: E402
from std_msgs.msg import Float64, Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from synthetic import own_robot  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.control import Gains, computed_torque  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.simulation import Simulation  # noqa: E402

pytestmark = pytest.mark.nodes

PLANAR = own_robot('planar_2r')


def simulator(*parameters):
    arguments = [word for entry in parameters for word in ('-p', entry)]
    return NodeProcess('simulator', '--ros-args', *arguments)


def started(world, text):
    world.describe(text)
    world.wait(lambda: ' s' in world.diagnostics.get('simulator', {}).get('message', ''),
               'a simulated robot')


class Arm:
    """The node `simulator` with an arm, and its states."""

    def __init__(self, *parameters):
        self.world = World()
        self.process = simulator('rate:=500.0', *parameters)
        started(self.world, PLANAR)
        self.states = self.world.collect(JointState, 'joint_states')

    def reset(self, *position, **parameters):
        """Return to the start, which may be a position; it is not paused any more."""
        parameters['start_position'] = list(position) or [0.0]
        for name, value in parameters.items():
            assert self.world.set_parameter('simulator', name, value).successful
        self.world.pause(True)
        self.world.spin(0.1)  # messages of the test before may still be under way
        self.states.clear()
        self.call('reset')
        self.world.pause(False)

    def call(self, service):
        assert self.world.call(Trigger, f'simulator/{service}', Trigger.Request()).success

    def command(self, *torque):
        self.world.publish(Float64MultiArray, 'simulator/commands', Float64MultiArray(data=torque))

    def until(self, time):
        """Wait until the simulated time."""
        self.world.wait(lambda: self.states and seconds(self.states[-1]) >= time, f'{time} s')

    def close(self):
        self.process.__exit__()
        self.world.close()


@pytest.fixture(scope='module')
def stepped():
    arm = Arm('lock_step:=true')
    yield arm
    arm.close()


@pytest.fixture(scope='module')
def running():
    """The arm with the time of the wall clock."""
    arm = Arm()
    yield arm
    arm.close()


@pytest.mark.real_time
def test_in_real_time_the_robot_falls_without_commands(running, stalls):
    world, states = running.world, running.states
    clocks = world.collect(Clock, '/clock')
    running.reset()
    world.wait(lambda: clocks, 'the clock')
    begin, began, starved = len(states), time.monotonic(), Starvation(running.process.pid)
    world.spin(1.0)
    took, count = time.monotonic() - began, len(states) - begin
    assert count < 575 * took
    assert min(count, len(clocks)) > 375 - 500 * stalls.total(began) or starved
    assert states[-1].name == ['joint1', 'joint2'] and not any(states[-1].effort)
    steps = np.diff([seconds(m) for m in since_reset(states)])
    np.testing.assert_allclose(steps, 0.002, atol=1e-9)
    assert min(m.position[0] for m in states) < -0.2  # it falls from the stretched pose
    assert running.process.exit_code is None


def test_lock_step_goes_on_after_a_lost_answer_and_with_another_controller(stepped):
    """The first answer is lost where the simulator has not yet matched the controller."""
    world, states, lost = stepped.world, stepped.states, []
    answers = world.node.create_publisher(JointState, 'simulator/torque', 10)

    def relay(message):
        if lost and message.header.stamp != lost[0].header.stamp:
            answers.publish(message)
        lost.append(message)

    heard = world.node.create_subscription(JointState, 'feedforward/torque', relay, 1000)
    for until in (0.1, 0.2):  # the second controller knows no state when it begins
        with NodeProcess('feedforward', '--ros-args', '-p', 'mode:=pd', '-p', 'watchdog:=false'):
            stepped.until(until)
    assert np.abs(states[-1].position).max() < 1e-2
    world.node.destroy_subscription(heard)
    world.node.destroy_publisher(answers)


def test_lock_step_repeats_and_equals_the_engine(stepped):
    torques = np.random.default_rng(0).normal(size=(40, 2)) * 5
    world, states, ends = stepped.world, stepped.states, []
    for _ in range(2):
        stepped.reset(0.2, -0.3)
        for k, torque in enumerate(torques):
            world.wait(lambda k=k: len(states) > k, f'state {k}')
            stepped.command(*torque.tolist())
        world.wait(lambda: len(since_reset(states)) > len(torques), 'the last state')
        ends.append([m.position for m in since_reset(states)])
    np.testing.assert_array_equal(*ends)
    engine = Simulation(PLANAR)
    engine.reset([0.2, -0.3])
    for torque in torques:
        engine.step(torque, 2)
    np.testing.assert_allclose(ends[0][-1], engine.position, atol=1e-12)
    before = len(states)
    stepped.call('step')
    world.wait(lambda: len(states) == before + 1, 'one step more')


def test_a_pause_holds_the_world_and_a_step_advances_it(stepped):
    world, states = stepped.world, stepped.states
    stepped.reset()
    world.wait(lambda: states, 'the start')
    states.clear()
    world.pause(True)
    stepped.command(1.0, 2.0)
    world.spin(0.3)
    assert not states
    stepped.call('step')
    world.wait(lambda: states, 'a step')
    assert list(states[-1].effort) == [1.0, 2.0]
    world.pause(False)  # this command has been used for its cycle
    world.spin(0.3)
    assert len(states) == 1
    world.pause(True)
    stepped.command(3.0, 4.0)
    world.spin(0.3)
    assert len(states) == 1
    world.pause(False)  # this one has not
    world.wait(lambda: len(states) == 2, 'what waited')
    assert list(states[-1].effort) == [3.0, 4.0]


def test_a_closed_loop_holds_the_robot_and_a_dead_controller_means_zero_torque(running):
    """Commands age in simulated time: a machine that stalls stalls the robot as well."""
    dynamics, gains = rd.Dynamics(rd.load_model(PLANAR)), Gains.of(2, 100.0, 20.0)
    target, states = np.array([0.4, -0.7]), running.states
    running.reset(0.3, -0.5, command_timeout=0.2)

    def arrived():
        """Answer the last state; return whether torques have held the target for 0.2 s."""
        if states:
            q, qd = np.array(states[-1].position), np.array(states[-1].velocity)
            running.command(*computed_torque(dynamics, q, qd, target, np.zeros(2), np.zeros(2),
                                             gains).tolist())
        last = states[-100:]
        return len(last) == 100 and all(any(m.effort) for m in last) and np.abs(
            [m.position - target for m in last]).max() < 2e-2

    end = time.monotonic() + 60.0
    while not arrived():
        assert time.monotonic() < end, states[-1]
        running.world.executor.spin_once(timeout_sec=0.0)
        time.sleep(0.001)
    running.world.wait(lambda: not any(states[-1].effort), 'zero torque')
    last = max(k for k, m in enumerate(states) if any(m.effort))
    command = next(k for k, m in enumerate(states) if m.effort == states[last].effort)
    assert 0.19 <= seconds(states[last]) - seconds(states[command]) <= 0.21


def test_a_command_does_not_age_while_the_world_is_on_hold(running):
    world, states = running.world, running.states
    running.reset(command_timeout=0.3)
    world.pause(True)
    running.command(1.0, 2.0)
    world.spin(0.5)
    states.clear()
    world.pause(False)
    world.wait(lambda: states and not any(states[-1].effort), 'the command to be too old')
    count = sum(list(m.effort) == [1.0, 2.0] for m in states)
    assert 145 <= count <= 155  # 0.3 s


def test_brakes_hold_an_arm_until_torques_of_the_new_motion_arrive(running):
    world, states = running.world, running.states
    running.reset(brakes=True)
    running.until(0.3)
    assert not np.any([m.velocity for m in states])
    running.command(50.0, -50.0)
    world.wait(lambda: any(states[-1].velocity), 'the brakes to open')
    world.pause(True)
    running.call('reset')
    before = world.count('simulator', 'commands')
    running.command(50.0, -50.0)  # under way at the reset
    world.wait(lambda: world.count('simulator', 'commands') > before, 'the command')
    states.clear()
    world.pause(False)
    running.until(0.3)
    assert not np.any([m.velocity for m in since_reset(states)])
    running.command(50.0, -50.0)
    world.wait(lambda: any(states[-1].velocity), 'the brakes to open')
    running.reset(brakes=False)


def test_bad_commands_are_refused_and_named_joints_may_be_shuffled(stepped):
    world, states = stepped.world, stepped.states
    stepped.reset()
    refused = world.count('simulator', 'command_refused')
    for data in ([np.nan, 0.0], [1.0], [1.0, np.inf]):
        stepped.command(*data)
    world.publish(JointState, 'simulator/torque', JointState(name=['joint1'], effort=[1.0]))
    world.wait(lambda: world.count('simulator', 'command_refused') == refused + 4, 'refusals')
    assert not any(any(m.effort) for m in states) and stepped.process.exit_code is None
    world.publish(JointState, 'simulator/torque',
                  JointState(name=['led', 'joint2', 'joint1'], effort=[9.0, 2.0, 1.0]))
    world.wait(lambda: states and list(states[-1].effort) == [1.0, 2.0], 'its effort')
    count = len(states)
    world.publish(Float64, '/model/planar_2r/joint/joint2/cmd_force', Float64(data=3.0))
    world.spin(0.3)
    stepped.call('step')
    world.wait(lambda: len(states) == count + 1, 'a step')
    assert list(states[-1].effort) == [1.0, 3.0]


def test_names_that_topics_do_not_allow(stepped):
    world, states = stepped.world, stepped.states
    version = world.count('simulator', 'model_version')
    world.describe(planar_2r().replace('name="test"', 'name="2 links"')
                   .replace('name="j1"', 'name="1.0"'))
    world.wait_for_model('simulator', version + 1)
    states.clear()
    world.publish(Float64, '/model/model_2_links/joint/joint_1_0/cmd_force', Float64(data=3.0))
    world.spin(0.3)
    stepped.call('step')
    world.wait(lambda: states and states[-1].name == ['1.0', 'j2'], 'a step')
    assert list(states[-1].effort) == [3.0, 0.0]


def test_joints_whose_topics_would_be_the_same_have_different_ones(stepped):
    world, states = stepped.world, stepped.states
    version = world.count('simulator', 'model_version')
    world.describe(planar_2r().replace('name="j1"', 'name="a-b"').replace(
        'name="j2"', 'name="a_b"'))
    world.wait_for_model('simulator', version + 1)
    states.clear()
    for topic, force in (('a_b', 3.0), ('a_b_2', 5.0)):
        world.publish(Float64, f'/model/test/joint/{topic}/cmd_force', Float64(data=force))
        world.spin(0.3)
    stepped.call('step')
    world.wait(lambda: states and states[-1].name == ['a-b', 'a_b'], 'a step')
    assert list(states[-1].effort) == [5.0, 3.0]
    assert "the joints 'a_b' and 'a-b' would have the same topic" in stepped.process.log()


def test_the_panda_with_its_mimic_finger(stepped):
    world, states = stepped.world, stepped.states
    version = world.count('simulator', 'model_version')
    world.describe(PANDA_URDF.read_text())
    world.wait_for_model('simulator', version + 1)
    states.clear()
    stepped.call('step')
    world.wait(lambda: states and len(states[-1].name) == 8, "the Panda's state")
    assert states[-1].name[-1] == 'panda_finger_joint1'


def test_a_description_may_be_a_parameter_and_the_node_may_be_cleaned_up(world, tmp_path):
    """As launch files pass it; each configuration creates the topics of the joints."""
    parameters = tmp_path / 'parameters.yaml'
    parameters.write_text(yaml.safe_dump({'/**': {'ros__parameters': {
        'robot_description': PLANAR, 'rate': 100.0}}}))
    with NodeProcess('simulator', '--ros-args', '--params-file', str(parameters)) as process:
        for _ in range(2):
            world.wait(lambda: 'running at' in world.diagnostics.get('simulator', {}).get(
                'message', ''), 'a simulated robot')
            world.wait(lambda: any(name.endswith('/joint1/cmd_force') for name, _ in
                                   world.node.get_topic_names_and_types()), 'topics of joints')
            for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP):
                assert world.transition('simulator', transition)
            world.wait(lambda: not any(name.endswith('/cmd_force') for name, _ in
                                       world.node.get_topic_names_and_types()), 'their end')
            world.diagnostics.clear()
            for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
                assert world.transition('simulator', transition)
        assert process.exit_code is None and 'refused' not in process.log()


def test_pause_truth_and_an_impossible_robot(world, tmp_path):
    truth = tmp_path / 'truth.yaml'
    truth.write_text('joints: {joint1: {friction: 60.0}, joint2: {friction: 60.0}}')
    with simulator('rate:=100.0', f'truth_file:={truth}') as process:
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        world.wait(lambda: states and seconds(states[-1]) > 0.6, '0.6 s')
        assert np.abs(states[-1].position).max() < 1e-2  # its friction holds it
        world.pause(True)
        world.spin(0.2)
        paused = len(states)
        world.spin(0.3)
        assert len(states) == paused
        world.describe(planar_2r())  # it has no joint1: the truth does not fit
        world.wait(lambda: 'is not simulated' in process.log(), 'why not')
        assert process.exit_code is None
