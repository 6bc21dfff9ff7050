"""The results of the node `identification`: the command, model swaps, payloads."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from browser import PROGRAM, Browser  # noqa: E402
from identification_world import (  # noqa: E402
    ABORTED,
    CANCELED,
    EXCITATION,
    Client,
    PayloadClient,
)
from ros_world import payload  # noqa: E402

from robodyn_interfaces.srv import SetPayload  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

FORGOTTEN = 15.0  # s; after 20 s of silence, the middleware forgets a process
pytestmark = pytest.mark.nodes
CALIBRATE = (sys.executable, '-m', 'robodyn_ros.commands.main', 'calibrate')


@pytest.fixture(scope='module')
def whole(planar_world):
    """A run from which a good model is identified."""
    assert planar_world.excite('whole').result().success
    planar_world.hold()
    return 'whole'


# answers --------------------------------------------------------------------------------------


def test_the_command_shows_phases_residuals_and_the_result(planar):
    with planar.motion():
        process = subprocess.Popen(
            [*CALIBRATE, '--name', 'command', '--friction', 'coulomb', '--excitation', EXCITATION,
             '--validation-fraction', '0.3', '--order', '3', '--reduce', '--serial', 'No. <42>',
             '--operator', 'A. Smith'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, 'COLUMNS': '80'})
    with process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    for words in ('approach', 'excite', 'farthest off its reference: joint',
                  'unexplained torque: joint1', 'condition number', 'good', 'report.html',
                  'significant parameters alone', 'significant.yaml'):
        assert words in output, words
    assert max(map(len, output.splitlines()[:-1])) <= 80  # the last one names the files
    report = (planar.root / 'command/report.html').read_text()
    assert 'No. &lt;42&gt;' in report and 'A. Smith' in report


def test_thresholds_of_the_verdict_are_parameters_of_the_server(planar, whole):
    """The node decides what it accepts, not the client of the action."""
    def set_to(name, value):
        return planar.world.set_parameter('identification', name, value)

    refused = set_to('accept_total', 0.9)
    assert not refused.successful and 'at most bad_total, which is 0.5' in refused.reason
    assert set_to('accept_total', 1e-6).successful
    result = planar.use('strict', whole)
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
    with planar.motion():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
    with process:
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
    planar.hold(False)
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
    # the second one may end Python while it exits: shells report 130 in both cases
    assert process.returncode in (130, -signal.SIGINT) and 'Traceback' not in output, output


# the swap -------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def dynamics(planar_world):
    """The other node that takes the model."""
    with NodeProcess('dynamics') as node:
        planar_world.world.wait_for_model('dynamics')
        yield node


def versions(planar):
    planar.world.diagnostics.clear()
    for name in ('dynamics', 'feedforward'):
        planar.world.wait_for_model(name)
    return {name: (planar.world.diagnostics[name]['model_origin'],
                   planar.world.count(name, 'model_version'))
            for name in ('dynamics', 'feedforward')}


def test_a_good_model_is_given_to_all_nodes(planar, dynamics, whole):
    result = planar.use('swapped', whole, apply=True)
    assert result.applied and len(result.model_version) == 2, result.reasons
    assert {origin for origin, _ in versions(planar).values()} == {'swapped'}


@pytest.mark.parametrize('frozen', ['dynamics', 'feedforward'])
def test_if_a_node_does_not_answer_all_nodes_keep_their_model(planar, dynamics, whole, frozen):
    assert planar.world.set_parameter('identification', 'apply_timeout', 4.0).successful
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
    assert f'{frozen} did not answer within 4 s' in ' '.join(result.reasons)
    if time.monotonic() - stopped < FORGOTTEN:  # otherwise the request does not reach it
        planar.world.wait(lambda: 'the request expired' in node.log(), 'a refusal')
    assert {name: origin for name, (origin, _) in versions(planar).items()} == {
        name: origin for name, (origin, _) in before.items()}


def test_the_swap_can_be_cancelled_while_a_node_does_not_answer(planar, dynamics, whole):
    assert planar.world.set_parameter('identification', 'apply_timeout', 60.0).successful
    with planar.paused():
        client = Client(planar.world, name='cancel_swap', source=2, logs=[whole],
                        friction='coulomb', apply=True)
        client.until('identify: writing')  # the middleware forgets it after 20 s of silence
        os.kill(dynamics.pid, signal.SIGSTOP)
        client.until('swap')
        client.cancel()
        result = client.result(20.0)
        os.kill(dynamics.pid, signal.SIGCONT)
    assert client.status == CANCELED and not result.applied, result.reasons


# what the arm holds ---------------------------------------------------------------------------


def attach(planar, held):
    """Put the arm where it may move, with a body that its controller knows, lest it sag."""
    planar.begin([0.3, -0.8])
    for node in ('simulator', 'feedforward'):
        assert planar.world.call(SetPayload, f'{node}/set_payload', held).success
    planar.let_pass(0.2)


@pytest.fixture(scope='module')
def loaded(planar_world):
    """The simulated arm holds 1 kg."""
    held = payload('tip', 1.0, (0.05, 0.0, 0.0))
    attach(planar_world, held)
    return held.inertia


def test_an_empty_hand_is_reported(planar, whole):
    attach(planar, payload('tip'))
    client = planar.identify_payload(name='nothing', link='tip', model=whole, still=True,
                                     amplitude=0.2, duration=15.0, apply=True)
    result = client.result()
    assert result.success and result.state == 'empty', result.reasons
    assert 'not applied: Nothing is on tip' in result.reasons[0] and not result.applied
    assert result.interval_lower[0] < 0 < result.interval_upper[0] < 0.2


def test_a_payload_is_identified_and_set_in_all_nodes(planar, dynamics, whole, loaded):
    goal = {'link': 'tip', 'model': whole, 'apply': True}
    result = planar.identify_payload(name='held', duration=5.0, **goal).result()
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


def test_a_cancelled_payload_goal_leaves_the_arm_at_rest_and_its_recording(planar, whole, loaded):
    client = planar.identify_payload(name='half', link='tip', model=whole, duration=10.0)
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
def test_impossible_payload_goals_are_refused_with_the_reason(planar, goal, why):
    (planar.root / 'bare').mkdir(exist_ok=True)
    client = PayloadClient(planar.world, **({'link': 'tip', **goal} if goal else goal))
    result = client.result()
    assert client.status == ABORTED and not result.success
    assert why in ' '.join(result.reasons)
