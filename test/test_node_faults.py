"""Faults on running nodes: requests, parameters, models and signals that must not stop control."""

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from lifecycle_msgs.msg import Transition  # noqa: E402
from rcl_interfaces.srv import SetParametersAtomically  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from robots import planar_2r  # noqa: E402
from ros_world import World, children, payload, trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_interfaces.srv import SetModel, SetPayload  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

pytestmark = pytest.mark.nodes

TEXT = planar_2r()
Q = (0.3, -0.4)
USUAL = ('-p', 'mode:=gravity_compensation', '-p', 'gravity:=[0.0, -9.81, 0.0]',
         # this machine may be busy, and these tests do not concern late states
         '-p', 'state_timeout:=60.0', '-p', 'zero_after:=60.0', '-p', 'watchdog:=false')
# each level refers ten times to the one before: 10^8 numbers once it is read
ALIASES = 'a0: &a0 [1, 1]\n' + ''.join(
    f'a{k}: &a{k} [{", ".join([f"*a{k - 1}"] * 10)}]\n' for k in range(1, 9)) + 'joints: *a8\n'


class Nodes:
    """The nodes `feedforward` and, without fast subscriptions, `dynamics` for one robot."""

    def __init__(self, folder):
        self.world, self.folder = World(), folder
        self.feedforward = NodeProcess('feedforward', '--ros-args', *USUAL)
        os.environ['ROBODYN_FAST_SUBSCRIPTIONS'] = '0'
        try:
            self.dynamics = NodeProcess('dynamics', '--ros-args', '-p',
                                        f'model_folders:=["{folder}"]')
        finally:
            del os.environ['ROBODYN_FAST_SUBSCRIPTIONS']
        self.describe()
        self.torques = self.world.collect(JointState, 'feedforward/torque')
        self.terms = self.world.collect(DynamicsTerms, 'dynamics/terms')

    def describe(self):
        for name in ('feedforward', 'dynamics'):
            self.world.wait(lambda name=name: name in self.world.diagnostics, name)
        self.world.describe(TEXT)
        for name in ('feedforward', 'dynamics'):
            self.world.wait_for_model(name)

    def torque(self, q=Q):
        """The torque that answers a state."""
        for _ in range(10):
            self.torques.clear()
            self.world.state(('j1', 'j2'), q, (0.0, 0.0))
            try:
                self.world.wait(lambda: self.torques, 'a torque', 2.0)
            except AssertionError:
                continue
            assert any(self.torques[-1].effort)
            return np.array(self.torques[-1].effort)
        raise AssertionError(self.feedforward.log())

    def atomically(self, node, **values):
        request = SetParametersAtomically.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
        return self.world.call(SetParametersAtomically, f'{node}/set_parameters_atomically',
                               request).result

    def value(self, node, name):
        values, _ = self.world.parameters(node, [name])
        return rclpy.parameter.parameter_value_to_python(values[0])

    def close(self):
        for node in (self.feedforward, self.dynamics):
            node.__exit__()
        self.world.close()


@pytest.fixture(scope='module')
def nodes(tmp_path_factory):
    nodes = Nodes(tmp_path_factory.mktemp('models'))
    yield nodes
    codes = nodes.feedforward.exit_code, nodes.dynamics.exit_code
    nodes.close()
    assert codes == (None, None)


def test_nodes_say_what_they_wait_for(nodes):
    for node in (nodes.feedforward, nodes.dynamics):
        assert 'waiting for a robot_description on the topic /robot_description' in node.log()
    nodes.world.wait(lambda: 'waiting for joint_states on the topic /joint_states'
                     in nodes.feedforward.log(), 'what feedforward waits for', 5.0)


def test_ordinary_subscriptions_are_used_if_fast_ones_are_switched_off(nodes):
    nodes.terms.clear()
    def heard():
        nodes.world.state(('j2', 'j1'), Q[::-1], (0.0, 0.0))
        nodes.world.spin(0.05)
        return nodes.terms
    nodes.world.wait(heard, 'terms')
    expected = rd.Dynamics(rd.load_model(TEXT)).gravity(np.array(Q))
    np.testing.assert_allclose(nodes.terms[-1].gravity, expected, atol=1e-9)


@pytest.mark.parametrize('node', ['feedforward', 'dynamics'])
def test_an_invalid_transition_ends_no_node(nodes, node):
    for transition in (Transition.TRANSITION_CLEANUP, Transition.TRANSITION_CONFIGURE,
                       Transition.TRANSITION_CREATE, 200):
        assert not nodes.world.transition(node, transition)
    assert nodes.world.lifecycle(node) == 'active'


@pytest.mark.parametrize('motors', [
    'a: 2020-13-45', 'a: ' + '9' * 5000, '[' * 20000, '{a: ' * 3000, ALIASES,
    'joints: {j1: {armature: .nan}}', 'joints: {j1: {armature: 2020-01-01}}'],
    ids=['date', 'long number', 'deep list', 'deep mapping', 'aliases', 'nan', 'type'])
def test_hostile_motor_data_are_refused_and_states_are_answered_meanwhile(nodes, motors):
    before = nodes.torque()
    for node in ('feedforward', 'dynamics'):
        answer = nodes.world.call(SetModel, f'{node}/set_model', SetModel.Request(
            robot_description=TEXT, motors=motors))
        assert not answer.success and answer.message and len(answer.message) < 5000
    np.testing.assert_array_equal(nodes.torque(), before)  # states are answered
    assert nodes.world.set_parameter('feedforward', 'ramp', 0.1).successful  # so are services


def test_a_refused_set_of_parameters_changes_nothing(nodes):
    before = nodes.torque()
    refused = nodes.atomically('feedforward', mode='pd', gravity=[0.0, float('nan'), 0.0])
    assert not refused.successful and 'gravity' in refused.reason
    refused = nodes.atomically('feedforward', mode='pd', gravity=[0.0, -9810.0, 0.0])  # mm/s^2
    assert not refused.successful and 'at most 100' in refused.reason
    refused = nodes.atomically('feedforward', mode='pd', rotor_model='magic')
    assert not refused.successful and 'rotor_model' in refused.reason
    refused = nodes.atomically('feedforward', damping=[3.0], zero_after=0.01)
    assert not refused.successful and 'zero_after' in refused.reason
    np.testing.assert_array_equal(nodes.torque(), before)
    nodes.world.wait(lambda: nodes.world.diagnostics['feedforward']['message'].startswith(
        'gravity_compensation'), 'the mode')
    assert nodes.value('feedforward', 'mode') == 'gravity_compensation'


def test_files_are_read_from_the_configured_folders_alone(nodes):
    def answer(node, path):
        return nodes.world.set_parameter(node, 'motors_file', str(path))
    motors, link = nodes.folder / 'motors.yaml', nodes.folder / 'link.yaml'
    motors.write_text('joints: {j1: {armature: 0.1}}')
    link.symlink_to('/etc/passwd')
    assert answer('dynamics', motors).successful and answer('dynamics', '').successful
    for node, path in (('feedforward', motors), ('dynamics', link), ('dynamics', '/etc/passwd'),
                       ('dynamics', nodes.folder / '../../../etc/passwd'), ('dynamics', '/')):
        refused = answer(node, path)
        assert not refused.successful and 'model_folders' in refused.reason


def test_a_rollback_restores_the_parameters_of_its_model(nodes):
    before = nodes.torque()
    assert nodes.world.set_parameter('feedforward', 'gravity', [0.0, 0.0, 0.0]).successful
    assert nodes.world.call(Trigger, 'feedforward/rollback', Trigger.Request()).success
    assert list(nodes.value('feedforward', 'gravity')) == [0.0, -9.81, 0.0]
    # the next change must not bring the other gravity back
    assert nodes.world.set_parameter('feedforward', 'friction_width', 0.02).successful
    nodes.world.spin(0.2)
    np.testing.assert_allclose(nodes.torque(), before, atol=1e-9)


def test_impossible_payloads_are_refused(nodes):
    before = nodes.torque()
    for bad in (payload('upper', -1.0), payload('upper', 1e9), payload('knee', 1.0),
                payload('upper', float('inf')), payload('upper', 1.0, (float('nan'), 0.0, 0.0))):
        answer = nodes.world.call(SetPayload, 'feedforward/set_payload', bad)
        assert not answer.success and answer.message
    np.testing.assert_allclose(nodes.torque(), before, atol=1e-9)


def test_a_node_warns_if_nothing_subscribes_to_its_commands(nodes):
    """The test's own subscription is the only one; another robot's node has none."""
    with NodeProcess('feedforward', '--ros-args', '-r', '__node:=unheard', *USUAL,
                     '-p', 'watchdog:=true', '-p', 'realtime_priority:=10',
                     '-p', 'lock_memory:=true') as process:
        nodes.world.wait_for_model('unheard')
        check_real_time_scheduling_or_warning(nodes.world, process)

        def warned():
            nodes.world.state(('j1', 'j2'), Q, (0.0, 0.0))
            nodes.world.spin(0.1)
            return 'nothing subscribes to the commands: /unheard/torque, /unheard/commands' \
                in process.log()
        nodes.world.wait(warned, 'the warning', 20.0)
        assert 'nothing subscribes' not in nodes.feedforward.log()
        check_that_a_suspended_watchdog_is_replaced(nodes.world, process)
        assert 'has other publishers' not in process.log()  # this is not another commander
        for _ in range(2):  # two interrupts in a row end it cleanly
            os.kill(process.pid, signal.SIGINT)
        nodes.world.wait(lambda: process.exit_code is not None, 'the end', 10.0)
        assert process.exit_code == 0 and 'Traceback' not in process.log()


def watchdogs(process):
    return [pid for helper in children(process.pid) for pid in children(helper)]


def check_real_time_scheduling_or_warning(world, process):
    def policies(pid):
        return {(os.sched_getscheduler(int(thread)), os.sched_getparam(int(thread)).sched_priority)
                for thread in os.listdir(f'/proc/{pid}/task')}
    helper, = children(process.pid)
    # one that did not answer in time on a busy machine may just be replaced by another
    world.wait(lambda: len(watchdogs(process)) == 1, 'a single watchdog')
    watchdog, = watchdogs(process)
    if 'realtime_priority is 10' in process.log():
        assert policies(process.pid) == {(os.SCHED_OTHER, 0)}
    else:
        assert policies(process.pid) == {(os.SCHED_FIFO, 10)}
        assert policies(watchdog) == {(os.SCHED_FIFO, 11)}
    assert policies(helper) == {(os.SCHED_OTHER, 0)}
    status = Path(f'/proc/{process.pid}/status').read_text()
    locked = int(re.search(r'VmLck:\s*(\d+)', status)[1])
    assert ('the memory is not locked' in process.log()) == (locked == 0)


def check_that_a_suspended_watchdog_is_replaced(world, process):
    world.wait(lambda: len(watchdogs(process)) == 1, 'a single watchdog')
    before = watchdogs(process)
    os.kill(before[0], signal.SIGSTOP)
    world.wait(lambda: 'the watchdog has died or is suspended' in process.log(), 'a warning', 20.0)
    world.wait(lambda: len(watchdogs(process)) == 1 and watchdogs(process) != before,
               'another watchdog', 20.0)


def test_a_warning_names_another_commander(nodes):
    nodes.world.publish(JointState, 'feedforward/torque', JointState())
    nodes.world.wait(lambda: '/feedforward/torque has other publishers: /test '
                     in nodes.feedforward.log(), 'the warning', 10.0)


class Flood:
    """Counts what `feedforward` skips, and checks that its threads do not accumulate."""

    def __init__(self, nodes):
        self._nodes, self._status = nodes, Path(f'/proc/{nodes.feedforward.pid}/status')
        self._usual = self._threads()
        self._before = nodes.world.count('feedforward', 'superseded')

    def _threads(self):
        return int(re.search(r'Threads:\s*(\d+)', self._status.read_text())[1])

    def go_on(self):
        self._nodes.world.spin(0.01)
        assert self._threads() <= self._usual + 4

    def skipped(self, count):
        self._nodes.world.wait(lambda: self._nodes.world.count(
            'feedforward', 'superseded') > self._before + count, 'skipped messages')


def test_of_many_descriptions_only_the_newest_is_read(nodes):
    """Otherwise each of them would wait in its own thread, with its text in memory."""
    before, flood = nodes.torque(), Flood(nodes)
    for k in range(30):
        nodes.world.describe(planar_2r(m1=1.0 + 0.01 * k))
        flood.go_on()
    nodes.world.describe(TEXT)
    flood.skipped(5)

    def as_before():
        return np.allclose(nodes.torque(), before, atol=1e-9)
    nodes.world.wait(as_before, 'the model of the newest description')


@pytest.mark.parametrize('name, bad, why', [
    ('wrong_time', 'zero_after:=0.01', 'at least state_timeout'),
    ('wrong_mode', 'mode:=magic', 'unknown mode'),
    ('wrong_gravity', 'gravity:=[0.0, 0.0, .nan]', 'gravity is nan')])
def test_parameter_values_given_at_launch_are_checked(nodes, name, bad, why):
    with NodeProcess('feedforward', '--ros-args', '-r', f'__node:={name}', '-p', bad) as process:
        nodes.world.wait(lambda: 'the node is not configured' in process.log(), 'the refusal')
        assert why in process.log()
        assert process.exit_code is None  # it can be configured again with other values


@pytest.mark.real_time
def test_a_reference_of_30_000_points_does_not_hold_up_the_answers_to_states(nodes, stalls):
    """It is read in a separate process; meanwhile every state is answered soon."""
    times = 0.01 * np.arange(30_000)
    sweep = trajectory(('j1', 'j2'), [(t, Q, (0, 0), (0, 0)) for t in times])
    raw = serialize_message(sweep)
    filled = nodes.world.collect(JointTrajectory, 'feedforward/trajectory_with_effort', raw=True)
    nodes.torque()
    taken = nodes.world.count('feedforward', 'references')

    def delays(go_on):
        found = []
        while go_on():
            asked = time.monotonic()
            nodes.torque()
            found.append(time.monotonic() - asked)
            nodes.world.spin(0.01)
        return found

    began = time.monotonic()
    usual = delays(lambda: time.monotonic() < began + 1.0)
    began = time.monotonic()
    nodes.world.publish(JointTrajectory, 'feedforward/reference', raw)
    found = delays(lambda: not filled and time.monotonic() < began + 60.0)
    print(f'{len(raw)} bytes taken in {time.monotonic() - began:.2f} s; states answered within '
          f'{max(found):.3f} s, at the median {np.median(found):.4f} s; without a reference '
          f'{max(usual):.3f} s and {np.median(usual):.4f} s')
    nodes.world.wait(lambda: nodes.world.count('feedforward', 'references') == taken + 1,
                     'the reference')
    # the test itself receives 3 MB meanwhile
    assert max(found) < 0.1 + 2 * max(usual) + 2 * stalls.worst(began)
    assert np.median(found) < 0.02 + 3 * np.median(usual)
    assert len(filled[0]) > len(raw)


def test_of_many_long_references_only_the_newest_is_read(nodes):
    """Otherwise as many processes would read them at once."""
    raw = serialize_message(trajectory(('j1', 'j2'), [
        (0.01 * k, Q, (0, 0), (0, 0)) for k in range(3000)]))
    nodes.torque()
    flood, taken = Flood(nodes), nodes.world.count('feedforward', 'references')
    for _ in range(12):
        nodes.world.publish(JointTrajectory, 'feedforward/reference', raw)
        flood.go_on()
    flood.skipped(2)
    nodes.world.wait(lambda: nodes.world.count('feedforward', 'references') > taken, 'the newest')


def test_references_are_still_refused_and_played(nodes):
    """The faults before have left no trace."""
    filled = nodes.world.collect(JointTrajectory, 'feedforward/trajectory_with_effort')
    nodes.torque()
    nodes.world.publish(JointTrajectory, 'feedforward/reference', trajectory(
        ('j1', 'j2'), [(0.0, Q, (0, 0), (0, 0)), (1.0, Q, (0, 0), (0, 0))]))
    nodes.world.wait(lambda: filled, 'the trajectory with its efforts')
