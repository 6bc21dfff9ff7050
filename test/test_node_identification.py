"""The node `identification` with a simulated arm: phases, faults, refusals and model swaps.

One long file, since all tests share a simulated arm and its server, which take seconds to start.
"""

import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from browser import PROGRAM, Browser  # noqa: E402
from identification_world import (  # noqa: E402
    ABORTED,
    CANCELED,
    EXCITATION,
    PACE,
    PLANAR,
    SUCCEEDED,
    Client,
    PayloadClient,
    Planar,
)
from ros_world import World, payload, seconds  # noqa: E402

from robodyn_interfaces.action import IdentifyDynamics  # noqa: E402
from robodyn_interfaces.srv import SetPayload  # noqa: E402
from robodyn_ros.experiment.script import STOPS  # noqa: E402
from robodyn_ros.model.kinds import FRICTION_NAMES, KINDS  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

FORGOTTEN = 15.0  # s; after 20 s of silence, the middleware forgets a process
pytestmark = pytest.mark.nodes
CALIBRATE = (sys.executable, '-m', 'robodyn_ros.commands.main', 'calibrate')


@pytest.fixture(scope='module')
def planar(tmp_path_factory):
    world = World()
    robot = Planar(world, tmp_path_factory.mktemp('planar') / 'runs')
    yield robot
    robot.close()
    world.close()


@pytest.fixture(scope='module')
def cut(planar):
    """A run that was cancelled while the arm was excited; its bag is used by other tests."""
    client = planar.excite('cut')
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
    client = Client(planar.world, name=f'cancel_{phase}', **goal)
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
    new = Client(planar.world, name='new', source=1, duration=2.0)
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
    client.until('excite', 0.7)
    with planar.paused():  # so that what is written suffices for an identification
        planar.world.wait(lambda: committed(planar.root / 'full/log') > 250, 'a commit')
        size = (planar.root / 'full/log/log.db3').stat().st_size
        resource.prlimit(planar.server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    result = client.result()
    resource.prlimit(planar.server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert client.status == ABORTED and 'recorded' in result.reasons[0], result.reasons
    assert planar.server.exit_code is None
    planar.at_rest()
    planar.use('kept', 'full')


@pytest.mark.parametrize('harm, why', [
    ('frozen', 'frozen'), ('silent', 'no new joint_states'), ('jump', 'jumped by 1000'),
    ('back', 'jumped')])
def test_untrustworthy_states_stop_the_robot(planar, harm, why):
    client = planar.excite(harm)
    client.until('excite', 0.2)
    planar.relay.harm = harm
    result = client.result()
    planar.relay.harm = ''
    assert client.status == ABORTED and why in result.reasons[0], result.reasons
    assert f'{harm}/log' in result.reasons[1]
    planar.at_rest()


def test_dropped_states_are_noticed_and_survived(planar):
    planar.relay.harm = 'dropped'
    result = planar.excite('dropped').result()
    planar.relay.harm = ''
    assert result.success and result.verdict == 'good', result.reasons


def test_parameters_of_the_monitor_act_at_once(planar):
    client = Client(planar.world, name='at_once', source=1, duration=600.0)
    client.until('record')
    assert planar.world.set_parameter('identification', 'state_timeout', 0.05).successful
    planar.relay.harm = 'silent'
    began = time.monotonic()
    result = client.result()
    planar.relay.harm = ''
    assert planar.world.set_parameter('identification', 'state_timeout', 5.0).successful
    assert time.monotonic() - began < 4.0, result.reasons  # not only after the 5 s of the start


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


@pytest.fixture
def at_real_pace(planar):
    """The world in real time, with the default lease."""
    planar.world.set_parameter('simulator', 'real_time_factor', 1.0)
    planar.world.set_parameter('identification', 'lease', 0.4)
    planar.world.set_parameter('identification', 'start_delay', 1.0)
    yield planar
    planar.world.set_parameter('simulator', 'real_time_factor', PACE)
    planar.restart()


def excited(planar, name):
    """Send a goal and wait until the arm moves; where the machine stalls, the lease ends early."""
    for attempt in range(5):
        client = planar.excite(f'{name}{attempt}')
        try:
            client.until('excite', 0.1)
            return client
        except AssertionError:
            if attempt == 4:
                raise


@pytest.mark.real_time
@pytest.mark.parametrize('end', [signal.SIGKILL, signal.SIGSTOP])
def test_without_its_server_the_arm_brakes_within_half_a_second(at_real_pace, end):
    planar = at_real_pace
    excited(planar, f'half_a_second_{end}')
    ended = seconds(planar.loop.states[-1])
    os.kill(planar.server.pid, end)
    planar.at_rest()
    last = planar.sent[-1].points[-1].time_from_start
    stop = seconds(planar.sent[-1]) + last.sec + 1e-9 * last.nanosec - STOPS[0]
    assert stop < ended + 0.5  # that is when it begins, at the latest


@pytest.mark.real_time
def test_a_suspended_server_does_not_resume_the_motion(at_real_pace):
    planar = at_real_pace
    client = excited(planar, 'stopped')
    os.kill(planar.server.pid, signal.SIGSTOP)
    planar.at_rest()
    pieces = len(planar.sent)
    os.kill(planar.server.pid, signal.SIGCONT)
    result = client.result()
    assert client.status == ABORTED and 'was suspended' in result.reasons[0], result.reasons
    assert len(planar.sent) == pieces and planar.speed() < 0.05


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
    client = planar.excite('early')
    client.until('waiting for joint_states')
    planar.relay.harm = ''
    assert client.until('approach').phase == 'approach'
    client.cancel()
    client.result()
    planar.at_rest()


# answers --------------------------------------------------------------------------------------


def test_the_command_shows_phases_residuals_and_the_result(planar):
    done = subprocess.run(
        [*CALIBRATE, '--name', 'command', '--friction', 'coulomb', '--excitation', EXCITATION,
         '--validation-fraction', '0.3', '--order', '3', '--reduce', '--serial', 'No. <42>',
         '--operator', 'A. Smith'],
        capture_output=True, text=True, timeout=300, env={**os.environ, 'COLUMNS': '80'})
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ('approach', 'excite', 'farthest off its reference: joint',
                  'unexplained torque: joint1', 'condition number', 'good', 'report.html',
                  'significant parameters alone', 'significant.yaml'):
        assert words in done.stdout, words
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80  # the last one names the files
    report = (planar.root / 'command/report.html').read_text()
    assert 'No. &lt;42&gt;' in report and 'A. Smith' in report


def test_thresholds_of_the_verdict_are_parameters_of_the_server(planar, cut):
    """The node decides what it accepts, not the client of the action."""
    def set_to(name, value):
        return planar.world.set_parameter('identification', name, value)

    refused = set_to('accept_total', 0.9)
    assert not refused.successful and 'at most bad_total, which is 0.5' in refused.reason
    assert set_to('accept_total', 1e-6).successful
    result = planar.use('strict', 'cut')
    assert set_to('accept_total', 0.08).successful
    assert result.verdict == 'doubtful' and 'more than 0.0001%' in result.reasons[0]
    assert 'accept total:=1e-06' in (planar.root / 'strict/report.html').read_text()


@pytest.mark.slow
def test_the_command_shows_the_experiment_in_a_browser(planar, tmp_path):
    pytest.importorskip('viser')
    pytest.importorskip('websockets')
    if PROGRAM is None:
        pytest.skip('there is no Chromium on this machine')
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    command = [*CALIBRATE, '--name', 'viewed', '--friction', 'coulomb', '--excitation', EXCITATION,
               '--validation-fraction', '0.3', '--view', '--port', str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            assert any(f'http://127.0.0.1:{port}' in line for line in process.stdout)
            with Browser(f'http://127.0.0.1:{port}', tmp_path, size=(700, 500)) as page:
                text = page.wait_for('Experiment\n\ngood')  # the page stays when it is over
        finally:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60.0)
    assert process.returncode == 0 and 'Traceback' not in output, output
    measured = dict(re.findall(r'(joint\d)\s+[+-]0\.\d{4} rad\s+([\d.]+)%', text))
    assert set(measured) == {'joint1', 'joint2'}
    assert all(0 < float(part) < 20 for part in measured.values()), text


def test_two_interrupts_end_the_command_although_the_server_does_not_answer(planar):
    with subprocess.Popen([*CALIBRATE, '--name', 'interrupted', '--record', '600'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        planar.world.wait(lambda: (planar.root / 'interrupted/log').exists(), 'the recording')
        os.kill(planar.server.pid, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=20.0)
        finally:
            process.kill()
            os.kill(planar.server.pid, signal.SIGCONT)
    assert process.returncode == 130 and 'Traceback' not in output, output


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


# the swap -------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def dynamics(planar):
    """The other node that takes the model."""
    with NodeProcess('dynamics') as node:
        planar.world.wait_for_model('dynamics')
        yield node


def versions(planar):
    planar.world.diagnostics.clear()
    for name in ('dynamics', 'feedforward'):
        planar.world.wait_for_model(name)
    return {name: (planar.world.diagnostics[name]['model_origin'],
                   planar.world.count(name, 'model_version'))
            for name in ('dynamics', 'feedforward')}


@pytest.fixture(scope='module')
def whole(planar):
    """A run from which a good model is identified."""
    assert planar.excite('whole').result().success
    return 'whole'


def test_a_good_model_is_given_to_all_nodes(planar, dynamics, whole):
    result = planar.use('swapped', whole, apply=True)
    assert result.applied and len(result.model_version) == 2, result.reasons
    assert {origin for origin, _ in versions(planar).values()} == {'swapped'}


@pytest.mark.parametrize('frozen', ['dynamics', 'feedforward'])
def test_if_a_node_does_not_answer_all_nodes_keep_their_model(planar, dynamics, whole, frozen):
    assert planar.world.set_parameter('identification', 'apply_timeout', 6.0).successful
    before = versions(planar)
    node = {'dynamics': dynamics, 'feedforward': planar.loop.controller}[frozen]
    with planar.paused():
        client = Client(planar.world, name=f'frozen_{frozen}', source=2, logs=[whole],
                        friction='coulomb', apply=True)
        client.until('identify: writing')
        os.kill(node.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        result = client.result(60.0)
        os.kill(node.pid, signal.SIGCONT)
    assert result.success and not result.applied
    assert f'{frozen} did not answer within 6 s' in ' '.join(result.reasons)
    if time.monotonic() - stopped < FORGOTTEN:  # otherwise the request does not reach it
        planar.world.wait(lambda: 'the request expired' in node.log(), 'a refusal')
    assert {name: origin for name, (origin, _) in versions(planar).items()} == {
        name: origin for name, (origin, _) in before.items()}


def test_the_swap_can_be_cancelled_while_a_node_does_not_answer(planar, dynamics, whole):
    assert planar.world.set_parameter('identification', 'apply_timeout', 60.0).successful
    with planar.paused():
        client = Client(planar.world, name='cancel_swap', source=2, logs=[whole],
                        friction='coulomb', apply=True)
        client.until('identify')
        os.kill(dynamics.pid, signal.SIGSTOP)
        client.until('swap')
        client.cancel()
        result = client.result(20.0)
        os.kill(dynamics.pid, signal.SIGCONT)
    assert client.status == CANCELED and not result.applied, result.reasons


# what the arm holds ---------------------------------------------------------------------------


def hold(planar, held):
    """Put the arm where it may move, with a body that its controller knows, lest it sag."""
    planar.loop.begin([0.3, -0.8], held=True)
    for node in ('simulator', 'feedforward'):
        assert planar.world.call(SetPayload, f'{node}/set_payload', held).success
    planar.loop.pause(False)
    planar.loop.until(0.2)


@pytest.fixture(scope='module')
def loaded(planar):
    """The simulated arm holds 1 kg."""
    held = payload('tip', 1.0, (0.05, 0.0, 0.0))
    hold(planar, held)
    yield held.inertia
    hold(planar, payload('tip'))


def test_an_empty_hand_is_told(planar, whole):
    hold(planar, payload('tip'))
    client = PayloadClient(planar.world, name='nothing', link='tip', model=whole, still=True,
                           amplitude=0.2, duration=15.0, apply=True)
    result = client.result()
    assert result.success and result.state == 'empty', result.reasons
    assert 'not applied: Nothing is on tip' in result.reasons[0] and not result.applied
    assert result.interval_lower[0] < 0 < result.interval_upper[0] < 0.2


def test_a_payload_is_weighed_and_set_in_all_nodes(planar, dynamics, whole, loaded):
    goal = {'link': 'tip', 'model': whole, 'apply': True}
    result = PayloadClient(planar.world, name='held', duration=5.0, **goal).result()
    assert result.success and result.state == 'found', result.reasons
    assert result.inertia.m == pytest.approx(loaded.m, rel=0.05)
    assert {'log/log.db3', 'payload.yaml'} <= set(result.files)
    names = dict(zip(result.parameter, result.determined, strict=True))
    assert names['mass'] and not names['com y']  # nothing in the plane of the arm depends on it
    assert result.applied and len(result.model_version) == 2, result.reasons
    versions(planar)
    for name in ('dynamics', 'feedforward'):
        assert float(planar.world.diagnostics[name]['payload_mass']) == result.inertia.m
    for words in ('/feedforward/set_payload', 'set_target_payload', 'setLoad'):
        assert words in result.requests
    with planar.paused():  # from the recordings alone
        again = PayloadClient(planar.world, logs=['held'], without=[whole], **goal).result()
    assert again.inertia.m == pytest.approx(loaded.m, rel=0.05)


def test_a_cancelled_weighing_leaves_the_arm_at_rest_and_its_recording(planar, whole, loaded):
    client = PayloadClient(planar.world, name='half', link='tip', model=whole, duration=10.0)
    client.until('excite', 0.6)
    client.cancel()
    result = client.result()
    assert client.status == CANCELED and not result.success
    assert any('half/log' in reason for reason in result.reasons)
    planar.at_rest()


@pytest.mark.parametrize('goal, why', [
    ({}, 'no link is named'), ({'link': 'hand'}, "'hand'"), ({'model': 'bare'}, 'identified'),
    ({'model': 'missing'}, 'does not exist'), ({'amplitude': 9.0, 'speed': 1.0,
      'duration': 60.0}, 'another pose'),
    ({'joints': ['wrist']}, 'wrist'), ({'logs': ['../secret']}, 'not a valid name'),
    ({'still': True, 'duration': 4.0}, 'for these poses')])
def test_impossible_weighings_are_refused_with_the_reason(planar, goal, why):
    (planar.root / 'bare').mkdir(exist_ok=True)
    client = PayloadClient(planar.world, **({'link': 'tip', **goal} if goal else goal))
    result = client.result()
    assert client.status == ABORTED and not result.success
    assert why in ' '.join(result.reasons)


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
