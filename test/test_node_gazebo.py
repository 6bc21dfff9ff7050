"""The node `gazebo_bridge` with a real, headless Gazebo: lock-step, real time, faults."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from gazebo_server import GazeboServer, why_no_gazebo

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
if why_no_gazebo():
    pytest.skip(why_no_gazebo(), allow_module_level=True)
from ros_world import seconds, since_reset  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from synthetic import own_robot  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.simulation import Simulation  # noqa: E402
from robodyn_ros.simulation.gazebo_bindings import load_bindings  # noqa: E402
from robodyn_ros.simulation.gazebo_writer import GazeboWriter  # noqa: E402

pytestmark = [pytest.mark.nodes, pytest.mark.real_time]

PLANAR = own_robot('planar_2r')
START = [0.2, -0.3]
STATES = '/world/robodyn/model/planar_2r/joint_state'
FLOOD = f"""
import time
from robodyn_ros.simulation.gazebo_bindings import load_bindings
gazebo = load_bindings()
node = gazebo.Node()
publisher = node.advertise({STATES!r}, gazebo.messages['Model'])
while not publisher.has_connections():
    time.sleep(0.01)
end = time.monotonic() + 3.0
count = 0
while time.monotonic() < end:
    publisher.publish(gazebo.messages['Model']())
    count += 1
print(count)
"""


@pytest.fixture
def gazebo():
    with GazeboServer() as server:
        yield server


def bridge(world, *parameters):
    arguments = [word for entry in (*parameters, f'start_position:={START}')
                 for word in ('-p', entry)]
    process = NodeProcess('gazebo_bridge', '--ros-args', '-r', '__node:=simulator', *arguments)
    world.describe(PLANAR)
    try:
        ready(world)
    except AssertionError as error:
        process.stop()
        raise AssertionError(f'{error}\n{process.log()[-3000:]}') from None
    return process


def ready(world):
    world.diagnostics.clear()
    world.wait(lambda: 'running at' in world.diagnostics.get('simulator', {}).get('message', ''),
               'a robot in Gazebo')


def command(world, *torque):
    world.publish(Float64MultiArray, 'simulator/commands', Float64MultiArray(data=torque))


class Observer:
    """Observes the robot in Gazebo directly, without the bridge."""

    def __init__(self):
        self.states = []
        gazebo = load_bindings()
        self._node = gazebo.Node()
        self._node.subscribe(gazebo.messages['Model'], STATES, self._take)
        self._dynamics = rd.Dynamics(rd.load_model(PLANAR))

    def close(self):
        self._node.unsubscribe(STATES)

    def _take(self, message):
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nsec
        axes = [joint.axis1 for joint in message.joint if joint.name.startswith('joint')]
        if len(axes) == 2:
            self.states.append((stamp, [a.position for a in axes], [a.velocity for a in axes],
                                time.monotonic()))

    def torque(self, age=0.05):
        """The torque that acts now, from the motion of the last seconds; None while it rests."""
        now = time.monotonic()
        recent = [s for s in list(self.states) if s[3] > now - age]
        if len(recent) < 2 or recent[-1][0] - recent[0][0] < 0.005:
            return None
        first, *_, last = recent
        q = np.mean([first[1], last[1]], axis=0) + START
        qd = np.mean([first[2], last[2]], axis=0)
        qdd = np.subtract(last[2], first[2]) / (last[0] - first[0])
        return self._dynamics.inverse_dynamics(q, qd, qdd)

    def wait_for_zero(self, since, limit):
        """Wait until no torque acts; return how long it took, s of the wall clock."""
        while time.monotonic() < since + limit:
            torque = self.torque()
            if torque is not None and np.abs(torque).max() < 1.0:
                return time.monotonic() - since
            time.sleep(0.005)
        raise AssertionError(f'after {limit} s a torque acts: {self.torque()}')


@pytest.fixture
def observer(gazebo):
    one = Observer()
    yield one
    one.close()


def test_lock_step_repeats_to_the_bit_and_agrees_with_the_embedded_engine(world, gazebo):
    torques = np.random.default_rng(0).normal(size=(60, 2)) * 5
    with bridge(world, 'rate:=500.0', 'lock_step:=true') as process:
        states = world.collect(JointState, 'joint_states')
        clocks = world.collect(Clock, '/clock')
        runs = []
        for _ in range(2):
            states.clear()
            assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
            for k, torque in enumerate(torques):
                world.wait(lambda k=k: len(states) > k, f'state {k}')
                command(world, *torque)
            world.wait(lambda: len(since_reset(states)) > len(torques), 'the last state')
            runs.append([[*m.position, *m.velocity, *m.effort] for m in since_reset(states)])
        np.testing.assert_array_equal(*runs)
        stamps = [seconds(m) for m in since_reset(states)]
        np.testing.assert_allclose(np.diff(stamps), 0.002, atol=1e-9)
        assert states[-1].name == ['joint1', 'joint2'] and clocks
        np.testing.assert_array_equal(states[-1].effort, torques[-1])
        engine = Simulation(PLANAR)
        engine.reset(START)
        for torque in torques:
            engine.step(torque, 2)
        np.testing.assert_allclose(states[-1].position, engine.position, atol=1e-6)
        world.pause(True)
        count = len(states)
        command(world, 1.0, 2.0)
        world.spin(0.3)
        assert len(states) == count
        assert world.call(Trigger, 'simulator/step', Trigger.Request()).success
        world.wait(lambda: len(states) == count + 1, 'one step more')
        assert process.exit_code is None


def test_in_real_time_commands_act_and_bad_ones_do_not(world, gazebo, observer, stalls):
    with bridge(world, 'rate:=200.0') as process:
        states = world.collect(JointState, 'joint_states')
        for data in ([np.nan, 0.0], [1.0], [1.0, np.inf]):
            command(world, *data)
        world.wait(lambda: world.count('simulator', 'command_refused') == 3, 'refusals')
        world.spin(0.2)
        assert states and not any(states[-1].effort)
        began = time.monotonic()
        while time.monotonic() < began + 0.5:
            command(world, 1e9, -1e9)  # the limits hold
            world.spin(0.02)
        limit = rd.load_model(PLANAR).effort_limit
        np.testing.assert_array_equal(np.abs(states[-1].effort), limit)
        assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
        for _ in range(10):
            command(world, 30.0, 10.0)
            world.spin(0.02)
        took = observer.wait_for_zero(time.monotonic(), 1.0 + stalls.worst(began))
        print('commands stop: zero after', took, 's')
        world.wait(lambda: float(world.diagnostics['simulator']['loop_delay_max_ms'] or 0) > 0,
                   'the delay of the loop')
        flood = subprocess.run([sys.executable, '-c', FLOOD], capture_output=True, text=True,
                               timeout=60, check=True)
        print('a flood of', int(flood.stdout) / 3, 'states/s')
        count = len(states)
        world.wait(lambda: len(states) > count + 10, 'states after the flood')
        assert not any(states[-1].effort) and process.exit_code is None


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_torque_is_left_when_the_bridge_ends(world, gazebo, observer, stalls, number):
    with bridge(world, 'command_timeout:=10.0') as process:
        command(world, 30.0, 10.0)
        world.wait(lambda: observer.torque() is not None
                   and np.abs(observer.torque()).max() > 3.0, 'the torque to act')
        since = time.monotonic()
        os.kill(process.pid, number)
        took = observer.wait_for_zero(since, 1.0 + stalls.worst(since))
        print(number.name, 'zero after', took, 's')


@pytest.mark.parametrize('lock_step', ['true', 'false'])
def test_an_interrupt_of_server_and_bridge_is_no_loss(world, gazebo, lock_step):
    """Ctrl-C of a launch ends all its processes at once."""
    for _ in range(3):
        with bridge(world, 'rate:=500.0', f'lock_step:={lock_step}') as process:
            for k in range(10):
                command(world, 0.1 * k, 0.0)
                world.spin(0.01)
            gazebo.send(signal.SIGINT)
            os.kill(process.pid, signal.SIGINT)
            for k in range(100):  # a controller that still runs
                command(world, 0.1 * k, 0.0)
                world.spin(0.01)
            world.wait(lambda process=process: process.exit_code is not None, 'its end')
            assert process.exit_code == 0 and 'gazebo_lost' not in process.log()
        gazebo.end()
        gazebo.start()


def test_a_server_that_is_killed_and_comes_back(world, gazebo):
    with bridge(world, 'rate:=200.0') as process:
        states = world.collect(JointState, 'joint_states')
        world.wait(lambda: len(states) > 20, 'states')
        gazebo.end(signal.SIGKILL)
        world.wait(lambda: world.diagnostics['simulator']['message'].startswith('waiting'),
                   'the loss to be seen')
        states.clear()
        world.spin(0.5)
        assert not states
        gazebo.start()
        ready(world)
        world.wait(lambda: len(states) > 20, 'states again')
        np.testing.assert_allclose(states[0].position, START, atol=0.05)
        assert process.exit_code is None and int(world.count('simulator', 'gazebo_lost')) >= 1


def test_a_server_that_stands_still_for_seconds_is_not_lost_in_lock_step(world, gazebo):
    """Otherwise, a busy machine would spawn the robot again in the middle of an experiment."""
    with bridge(world, 'lock_step:=true'):
        gazebo.send(signal.SIGSTOP)
        try:
            world.spin(2.5)
        finally:
            gazebo.send(signal.SIGCONT)
        world.spin(1.5)  # longer than the time between diagnostics
        assert world.count('simulator', 'gazebo_lost') == 0


def test_the_world_may_be_paused_and_reset_from_outside(world, gazebo):
    with bridge(world, 'rate:=200.0') as process:
        states = world.collect(JointState, 'joint_states')
        world.wait(lambda: len(states) > 20, 'states')
        other = GazeboWriter('robodyn', 'nobody', ())
        try:
            other.ask('control', pause=True)
            world.spin(0.3)
            count = len(states)
            world.spin(1.5)
            assert len(states) == count
            other.ask('control', pause=False)
            world.wait(lambda: len(states) > count + 20, 'states after the pause')
            other.ask('control', pause=False, rewind=True)  # Gazebo takes the robot away
            ready(world)
            states.clear()
            world.wait(lambda: len(states) > 20, 'states after the reset')
            assert seconds(states[0]) < seconds(states[-1]) and process.exit_code is None
        finally:
            other.close()


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP])
def test_the_process_that_sends_forces_is_replaced(world, gazebo, number):
    with bridge(world, 'rate:=200.0') as process:
        states = world.collect(JointState, 'joint_states')
        world.wait(lambda: len(states) > 20, 'states')
        children = subprocess.run(['pgrep', '-P', str(process.pid), '-f', 'gazebo_writer'],
                                  capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(children[0]), number)
        world.wait(lambda: world.count('simulator', 'gazebo_lost') >= 1, 'the loss to be seen')
        ready(world)
        states.clear()
        world.wait(lambda: len(states) > 20, 'states again')
        assert process.exit_code is None
