"""The node `simulator`, a real process, on real topics."""

import time

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from lifecycle_msgs.msg import Transition  # noqa: E402
from robots import PANDA_URDF, planar_2r  # noqa: E402
from ros_world import seconds, since_reset  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
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


@pytest.mark.real_time
def test_in_real_time_the_robot_falls_without_commands(world):
    with simulator('rate:=200.0') as process:
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        clocks = world.collect(Clock, '/clock')
        begin = len(states)
        world.spin(2.0)
        assert 300 < len(states) - begin < 460 and len(clocks) > 300
        assert states[-1].name == ['joint1', 'joint2'] and not any(states[-1].effort)
        steps = np.diff([seconds(m) for m in states])
        np.testing.assert_allclose(steps, 0.005, atol=1e-9)
        assert min(m.position[0] for m in states) < -0.2  # it falls from the stretched pose
        assert process.exit_code is None


def test_lock_step_repeats_and_equals_the_engine(world):
    torques = np.random.default_rng(0).normal(size=(40, 2)) * 5
    with simulator('rate:=500.0', 'lock_step:=true', 'start_position:=[0.2, -0.3]'):
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        ends = []
        for _ in range(2):
            states.clear()
            assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
            for k, torque in enumerate(torques):
                world.wait(lambda k=k: len(states) > k, f'state {k}')
                world.publish(Float64MultiArray, 'simulator/commands',
                              Float64MultiArray(data=torque.tolist()))
            world.wait(lambda: len(since_reset(states)) > len(torques), 'the last state')
            ends.append([m.position for m in since_reset(states)])
        np.testing.assert_array_equal(*ends)
        engine = Simulation(PLANAR)
        engine.reset([0.2, -0.3])
        for torque in torques:
            engine.step(torque, 2)
        np.testing.assert_allclose(ends[0][-1], engine.position, atol=1e-12)
        before = len(states)
        assert world.call(Trigger, 'simulator/step', Trigger.Request()).success
        world.wait(lambda: len(states) == before + 1, 'one step more')


def test_lock_step_goes_on_after_a_lost_answer_and_with_another_controller(world):
    """The first answer is lost where the simulator has not yet matched the controller."""
    with simulator('rate:=500.0', 'lock_step:=true'):
        started(world, PLANAR)
        answers = world.node.create_publisher(JointState, 'simulator/torque', 10)
        states, lost = world.collect(JointState, 'joint_states'), []

        def relay(message):
            if lost and message.header.stamp != lost[0].header.stamp:
                answers.publish(message)
            lost.append(message)

        world.node.create_subscription(JointState, 'feedforward/torque', relay, 1000)
        for until in (0.1, 0.2):  # the second controller knows no state when it begins
            with NodeProcess('feedforward', '--ros-args', '-p', 'mode:=pd', '-p',
                             'watchdog:=false'):
                world.wait(lambda until=until: states and seconds(states[-1]) > until,
                           'a running loop')
        assert np.abs(states[-1].position).max() < 1e-2


def test_a_pause_holds_the_world_and_a_step_advances_it(world):
    def command(*torque):
        world.publish(Float64MultiArray, 'simulator/commands', Float64MultiArray(data=torque))
        world.spin(0.5)

    with simulator('rate:=100.0', 'lock_step:=true'):
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        world.pause(True)
        command(1.0, 2.0)
        assert not states
        assert world.call(Trigger, 'simulator/step', Trigger.Request()).success
        world.wait(lambda: states, 'a step')
        assert list(states[-1].effort) == [1.0, 2.0]
        world.pause(False)  # this command has been used for its cycle
        world.spin(0.5)
        assert len(states) == 1
        world.pause(True)
        command(3.0, 4.0)
        assert len(states) == 1
        world.pause(False)  # this one has not
        world.wait(lambda: len(states) == 2, 'what waited')
        assert list(states[-1].effort) == [3.0, 4.0]


@pytest.mark.real_time
def test_a_closed_loop_holds_the_robot_and_a_dead_controller_means_zero_torque(world):
    model = rd.load_model(PLANAR)
    dynamics = rd.Dynamics(model)
    target = np.array([0.4, -0.7])
    with simulator('rate:=500.0', 'command_timeout:=0.2', 'start_position:=[0.3, -0.5]'):
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        gains = Gains.of(2, 100.0, 20.0)
        world.publish(Float64MultiArray, 'simulator/commands',
                      Float64MultiArray(data=dynamics.gravity([0.3, -0.5]).tolist()))
        assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
        end, publisher = time.monotonic() + 3.0, world._publishers['simulator/commands']
        while time.monotonic() < end:
            world.executor.spin_once(timeout_sec=0.0)
            if states:
                q, qd = np.array(states[-1].position), np.array(states[-1].velocity)
                publisher.publish(Float64MultiArray(data=computed_torque(
                    dynamics, q, qd, target, np.zeros(2), np.zeros(2), gains).tolist()))
            time.sleep(0.001)
        np.testing.assert_allclose(states[-1].position, target, atol=2e-2)
        assert any(states[-1].effort)
        world.spin(0.8)  # the controller has ended
        assert not any(states[-1].effort)


@pytest.mark.real_time
def test_a_command_does_not_age_while_the_world_is_on_hold(world):
    with simulator('rate:=500.0', 'command_timeout:=0.3'):
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        world.pause(True)
        world.publish(Float64MultiArray, 'simulator/commands',
                      Float64MultiArray(data=[1.0, 2.0]))
        world.spin(1.0)
        states.clear()
        world.pause(False)
        world.wait(lambda: states and not any(states[-1].effort), 'the command to be too old')
        count = sum(list(m.effort) == [1.0, 2.0] for m in states)
        assert 145 <= count <= 155  # 0.3 s


@pytest.mark.real_time
def test_brakes_hold_an_arm_until_torques_of_the_new_motion_arrive(world):
    def stays():
        assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
        world.publish(Float64MultiArray, 'simulator/commands', late)  # under way at the reset
        states.clear()
        world.spin(0.3)
        return states and not np.any([m.velocity for m in states])

    late = Float64MultiArray(data=[50.0, -50.0])
    with simulator('rate:=500.0', 'brakes:=true'):
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        world.publish(Float64MultiArray, 'simulator/commands', late)
        world.wait(lambda: states and any(states[-1].velocity), 'the brakes to open')
        assert any(stays() for _ in range(5))  # where the machine stalls, it comes too late
        world.publish(Float64MultiArray, 'simulator/commands', late)
        world.wait(lambda: any(states[-1].velocity), 'the brakes to open')


def test_bad_commands_are_refused_and_named_joints_may_be_shuffled(world):
    with simulator('rate:=100.0', 'lock_step:=true') as process:
        started(world, PLANAR)
        states = world.collect(JointState, 'joint_states')
        for data in ([np.nan, 0.0], [1.0], [1.0, np.inf]):
            world.publish(Float64MultiArray, 'simulator/commands', Float64MultiArray(data=data))
        world.publish(JointState, 'simulator/torque', JointState(name=['joint1'], effort=[1.0]))
        world.wait(lambda: world.count('simulator', 'command_refused') == 4, 'refusals')
        assert not any(any(m.effort) for m in states) and process.exit_code is None
        world.publish(JointState, 'simulator/torque',
                      JointState(name=['led', 'joint2', 'joint1'], effort=[9.0, 2.0, 1.0]))
        world.wait(lambda: states and list(states[-1].effort) == [1.0, 2.0], 'its effort')
        count = len(states)
        world.publish(Float64, '/model/planar_2r/joint/joint2/cmd_force', Float64(data=3.0))
        world.spin(0.3)
        assert world.call(Trigger, 'simulator/step', Trigger.Request()).success
        world.wait(lambda: len(states) == count + 1, 'a step')
        assert list(states[-1].effort) == [1.0, 3.0]


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
        world.spin(0.6)
        assert np.abs(states[-1].position).max() < 1e-2  # its friction holds it
        world.pause(True)
        world.spin(0.3)
        paused = len(states)
        world.spin(0.5)
        assert len(states) == paused
        lines = world.logged()
        world.describe(planar_2r())  # it has no joint1: the truth does not fit
        world.wait(lambda: any('is not simulated' in line.msg for line in list(lines)), 'why not')
        assert process.exit_code is None


def test_the_panda_with_its_mimic_finger(world):
    with simulator('rate:=200.0', 'lock_step:=true'):
        started(world, PANDA_URDF.read_text())
        states = world.collect(JointState, 'joint_states')
        assert world.call(Trigger, 'simulator/step', Trigger.Request()).success
        world.wait(lambda: states, 'a state')
        assert len(states[0].name) == 8 and states[0].name[-1] == 'panda_finger_joint1'
