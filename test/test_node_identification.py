"""The node `identification` with a simulated arm: phases, faults and refusals."""

import os
import resource
import signal
import sqlite3
import time
from contextlib import closing, suppress

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from identification_world import (  # noqa: E402
    ABORTED,
    CANCELED,
    EXCITATION,
    PLANAR,
    STATE_TIMEOUT,
    SUCCEEDED,
    Client,
)

from robodyn_interfaces.action import IdentifyDynamics  # noqa: E402
from robodyn_ros.model.kinds import FRICTION_NAMES, KINDS  # noqa: E402

pytestmark = pytest.mark.nodes


@pytest.fixture(scope='module')
def cut(planar_world):
    """A run that was cancelled while the arm was excited; its bag is used by other tests."""
    client = planar_world.excite('cut')
    client.until('excite', 0.5)
    client.cancel()
    return client.result(), client.status


def test_the_interface_names_what_the_core_knows():
    goal = IdentifyDynamics.Goal

    def named(prefix):
        return {getattr(goal, name) for name in dir(goal) if name.startswith(prefix)}

    assert named('KIND_') == set(KINDS) and named('FRICTION_') == set(FRICTION_NAMES)


# cancelled in every phase ---------------------------------------------------------------------


@pytest.mark.parametrize('phase, goal', [
    ('search', {'search_time': 60.0}), ('approach', {'excitation': EXCITATION}),
    ('record', {'source': 1, 'duration': 600.0})])
def test_a_goal_can_be_cancelled_in_every_phase(planar, phase, goal):
    planar.let_pass(0.1)
    client = Client(planar.world, name=f'cancel_{phase}', **goal)
    planar.hold(phase == 'search')
    client.until(phase)
    client.cancel()
    assert not client.result().success and client.status == CANCELED


def test_a_cancelled_excitation_leaves_the_arm_at_rest(planar, cut):
    result, status = cut
    assert status == CANCELED and not result.success
    planar.at_rest()


def test_what_was_recorded_before_a_cancel_can_be_used(planar, cut):
    assert any('cut/log' in reason for reason in cut[0].reasons)
    planar.use('after_cancel', 'cut')


def test_an_identification_can_be_cancelled(planar, cut):
    with planar.paused():
        client = Client(planar.world, name='cancel_identify', source=2, logs=['cut'])
        client.until('identify')
        client.cancel()
        client.result()
    assert client.status in (CANCELED, SUCCEEDED)  # it may have finished before


# one goal at a time ---------------------------------------------------------------------------


def test_a_new_goal_pre_empts_the_old(planar):
    old = planar.excite('old')
    old.until('excite')
    new = planar.record(name='new', duration=2.0)
    assert 'pre-empted' in old.result().reasons[0] and old.status == ABORTED
    assert new.result().folder.endswith('/new')
    planar.at_rest()


def test_of_two_simultaneous_goals_the_second_pre_empts_the_first(planar, cut):
    goal = {'source': 2, 'logs': ['cut'], 'friction': 'coulomb'}
    with planar.paused():
        clients = [Client(planar.world, name=name, **goal) for name in 'xy']
        results = [client.result() for client in clients]
    assert ['pre-empted' in ' '.join(result.reasons) for result in results] == [True, False]
    assert results[1].success, results[1].reasons


# faults ---------------------------------------------------------------------------------------


def test_a_full_disk_stops_the_robot_and_keeps_what_is_written(planar):
    client = planar.excite('full')
    client.until('excite', 0.8)
    with planar.paused():  # so that what is written suffices for an identification
        planar.world.wait(lambda: committed(planar.root / 'full/log') > 300, 'a commit')
        size = (planar.root / 'full/log/log.db3').stat().st_size
        resource.prlimit(planar.server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    result = client.result()
    resource.prlimit(planar.server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert client.status == ABORTED and 'recorded' in result.reasons[0], result.reasons
    assert planar.server.exit_code is None
    planar.at_rest()
    planar.use('kept', 'full', validation_fraction=0.4)


@pytest.mark.parametrize('harm, why', [
    ('frozen', 'frozen'), ('silent', 'no new joint_states'), ('jump', 'jumped by 1000'),
    ('back', 'jumped')])
def test_untrustworthy_states_stop_the_robot(planar, harm, why):
    client = planar.excite(harm)
    client.until('excite', 0.2)
    if harm == 'silent':
        assert planar.world.set_parameter('identification', 'state_timeout', 1.0).successful
    planar.relay.harm = harm
    result = client.result()
    planar.relay.harm = ''
    assert planar.world.set_parameter('identification', 'state_timeout', STATE_TIMEOUT).successful
    assert client.status == ABORTED and why in result.reasons[0], result.reasons
    assert f'{harm}/log' in result.reasons[1]
    planar.at_rest()


def test_dropped_states_are_noticed_and_survived(planar):
    planar.relay.harm = 'dropped'
    result = planar.excite('dropped').result()
    planar.relay.harm = ''
    assert result.success and result.verdict == 'good', result.reasons


def test_parameters_of_the_monitor_act_at_once(planar):
    client = planar.record(name='at_once', duration=600.0)
    client.until('record')
    assert planar.world.set_parameter('identification', 'state_timeout', 0.05).successful
    planar.relay.harm = 'silent'
    began = time.monotonic()
    result = client.result()
    planar.relay.harm = ''
    assert planar.world.set_parameter('identification', 'state_timeout', STATE_TIMEOUT).successful
    assert time.monotonic() - began < STATE_TIMEOUT / 2, result.reasons


def committed(folder):
    """The number of messages in a bag that is being written."""
    for database in folder.glob('*.db3'):
        with suppress(sqlite3.OperationalError), closing(
                sqlite3.connect(f'file:{database}?mode=ro', uri=True)) as connection:
            return connection.execute('select count(*) from messages').fetchone()[0]
    return 0


def test_a_server_that_is_killed_during_a_motion_can_be_started_again(planar):
    """The arm brakes on its own, and the bag of the dead server can be used."""
    client = planar.excite('killed')
    client.until('excite', 0.6)
    with planar.paused():  # a busy machine may not have written anything yet
        planar.world.wait(lambda: committed(planar.root / 'killed/log') > 250, 'a commit')
    os.kill(planar.server.pid, signal.SIGKILL)
    assert planar.speed(0.3) > 0.3
    planar.at_rest()
    assert not (planar.root / 'killed/log/metadata.yaml').exists()
    planar.restart()
    planar.world.wait(lambda: 'cut off after' in planar.server.log(), 'what was cut off')
    assert (planar.root / 'killed/log/metadata.yaml').exists()
    planar.use('again', 'killed')


def test_two_interrupts_in_a_row_end_the_node_cleanly(planar):
    for _ in range(2):
        os.kill(planar.server.pid, signal.SIGINT)
    planar.world.wait(lambda: planar.server.exit_code is not None, 'its end', 15.0)
    assert planar.server.exit_code == 0 and 'Traceback' not in planar.server.log()
    planar.restart()


# the start ------------------------------------------------------------------------------------


def test_a_goal_before_the_first_joint_state_waits_for_it(planar):
    planar.relay.harm = 'silent'
    planar.restart()
    client = planar.ask('early')
    client.until('waiting for joint_states')
    planar.relay.harm = ''
    planar.hold(False)
    assert client.until('approach').phase == 'approach'
    client.cancel()
    client.result()
    planar.at_rest()


@pytest.mark.parametrize('goal, why', [
    ({'source': 2, 'logs': ['../secret.npz']}, 'not a valid name'),
    ({'source': 2, 'logs': ['/etc/passwd']}, 'not a valid name'),
    ({'source': 2, 'logs': ['link/secret.npz']}, 'leads out'),
    ({'source': 2, 'logs': ['nothing']}, 'does not exist'),
    ({'source': 2}, 'no log'), ({'source': 9}, 'source is 9'),
    ({'source': 2, 'logs': [EXCITATION]}, 'suffix'),
    ({'name': '../up', 'source': 1, 'duration': 1.0}, 'not a valid name'),
    ({'source': 1, 'duration': 0.0}, 'duration'),
    ({'source': 1, 'duration': 1.0, 'serial': 'x' * 2000}, 'serial has 2000 characters'),
    ({'source': 1, 'duration': 1.0, 'kind': 'magic'}, 'magic'),
    ({'excitation': '../' + EXCITATION}, 'not a valid name')])
def test_invalid_goals_are_refused_with_the_reason(planar, goal, why):
    (planar.root.parent / 'secret.npz').write_text('')
    if not (planar.root / 'link').exists():
        (planar.root / 'link').symlink_to(planar.root.parent)
    client = Client(planar.world, **goal)
    result = client.result()
    assert client.status == ABORTED and not result.success
    assert why in ' '.join(result.reasons)
    assert planar.server.exit_code is None


# memory ---------------------------------------------------------------------------------------


def resident(pid):
    """Resident memory of a process, bytes."""
    with open(f'/proc/{pid}/statm') as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_the_memory_of_an_idle_server_does_not_grow(planar):
    """20,000 states arrive while nothing is recorded; each of them used to be kept."""
    from sensor_msgs.msg import JointState

    planar.relay.harm = 'silent'
    publisher = planar.world.node.create_publisher(JointState, 'relayed', 1000)
    planar.world.wait(lambda: publisher.get_subscription_count() > 0, 'the server')
    message = JointState(name=list(PLANAR.joint_names), position=[0.1, 0.2],
                         velocity=[0.0, 0.0], effort=[0.0, 0.0])
    sizes = []
    for k in range(20):
        for n in range(1000):
            message.header.stamp.sec, message.header.stamp.nanosec = 10_000 + k, n * 10**6
            publisher.publish(message)
            if n % 100 == 0:
                time.sleep(0.004)
        sizes.append(resident(planar.server.pid))
    planar.relay.harm = ''
    planar.world.node.destroy_publisher(publisher)
    assert sizes[-1] - sizes[4] < 3e6, [size // 1024 for size in sizes[::5]]
