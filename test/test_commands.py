"""The command `robodyn`, as a user runs it."""

import os
import signal
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from importlib import import_module

import numpy as np
import pytest
from domains import new_domain, release_domain
from robots import PANDA_URDF, planar_2r

import robodyn_ros as rd
from robodyn_ros._version import __version__
from robodyn_ros.commands.main import COMMANDS, main
from robodyn_ros.commands.run import NODE_NAMES
from robodyn_ros.files import whole_file


def robodyn(*arguments, timeout=300):
    domain = new_domain()
    try:
        return subprocess.run([sys.executable, '-m', 'robodyn_ros.commands.main', *arguments],
                              env={**os.environ, 'ROS_DOMAIN_ID': domain},
                              capture_output=True, text=True, timeout=timeout)
    finally:
        release_domain(domain)


def test_help_and_version(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit, match='0'):
            main([command, '--help'])
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(f'usage: robodyn {command}')
        assert max(map(len, lines)) <= 80
    assert all(command in robodyn('--help').stdout for command in COMMANDS)
    assert robodyn('--version').stdout.strip() == __version__
    assert robodyn().returncode == 2 and robodyn('dance').returncode == 2


@pytest.mark.parametrize('words, meant', [
    (('chek',), "there is no 'chek'; did you mean 'check'?"),
    (('check', 'arm.urdf', '--jsn'), "unknown argument '--jsn'; did you mean '--json'?"),
    (('identify', 'log.db3', '--urdf', 'arm.urdf', '--friction', 'colomb'),
     "did you mean 'coulomb'?"),
    (('inertia', 'bx'), "did you mean 'box'?"),
])
def test_the_error_for_a_misspelt_word_suggests_the_nearest_one(words, meant, capsys):
    with pytest.raises(SystemExit, match='2'):
        main(words)
    assert meant in capsys.readouterr().err


@pytest.mark.nodes
def test_run_starts_a_node_with_a_robot_and_parameters(tmp_path):
    """Without ROS tools; a node says at once what it waits for."""
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    for arguments, said in ((('--urdf', str(path), '-p', 'friction_width:=0.1'), 'model 1: '),
                            ((), 'waiting for a robot_description on the topic')):
        process = subprocess.Popen(
            [sys.executable, '-m', 'robodyn_ros.commands.main', 'run', 'dynamics', *arguments],
            env={**os.environ, 'ROS_DOMAIN_ID': new_domain(), 'PYTHONUNBUFFERED': '1'},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert said in process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            process.stdout.close()


@pytest.mark.nodes
def test_a_remapping_of_run_is_not_taken_for_an_argument_of_the_watchdog(tmp_path):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    process = subprocess.Popen(
        [sys.executable, '-m', 'robodyn_ros.commands.main', 'run', 'feedforward', '--urdf', path,
         '-r', '~/torque:=/elsewhere', '-p', 'mode:=pd'], text=True,
        env={**os.environ, 'ROS_DOMAIN_ID': new_domain(), 'PYTHONUNBUFFERED': '1'},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if 'waiting for joint_states' in line:
                break
    finally:
        process.send_signal(signal.SIGINT)
        lines += process.communicate(timeout=30)[0].splitlines()
    assert 'model 1' in ' '.join(lines) and process.returncode == 0
    assert not [line for line in lines if 'deprecated' in line]


@pytest.mark.nodes
def test_a_misspelt_parameter_of_run_starts_no_node(capsys):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    assert main(['run', 'dynamics', '-p', 'gravty:=[0,0,1]']) == 2
    assert "did you mean 'gravity'?" in capsys.readouterr().err
    assert main(['run', 'dynamics', '-p', 'friction_width:=wide']) == 2
    assert 'friction_width' in capsys.readouterr().err


@pytest.mark.nodes
def test_executables_of_nodes_answer_help(capsys):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    from robodyn_ros.nodes.declarations import NODES, parameters_of

    assert tuple(NODES) == NODE_NAMES
    for node in NODES:
        code = import_module(f'robodyn_ros.nodes.{node}').main([node, '--help'])
        lines = capsys.readouterr().out.splitlines()
        assert code == 0 and lines[0].startswith(f'usage: {node}')
        assert max(map(len, lines)) <= 80
        assert {f'  {name}' for name in parameters_of(node)} <= set(lines)


@pytest.mark.slow
def test_demo_closes_the_loop_and_ends_by_itself(tmp_path):
    """PD alone, with gravity, and with the whole model; table, picture, plot and bag."""
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    picture, plot, bag = tmp_path / 'demo.svg', tmp_path / 'errors.png', tmp_path / 'bag'
    ran = robodyn('demo', '--seconds', '4', '--picture', str(picture), '--plot', str(plot),
                  '--record', str(bag))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for words in ('PD + gravity', 'PD + whole model', 'panda_joint7',
                  'agrees with the Python library'):
        assert words in ran.stdout
    assert_five_times_better(ran, 'revolute joints')  # the fingers slide
    frames = ET.parse(picture).getroot().findall('{http://www.w3.org/2000/svg}g')
    texts = [''.join(frame.itertext()).replace('\xa0', ' ') for frame in frames]
    # the last frame is below the others
    assert ['PD + gravity' in text for text in texts] == [True, False, True, False]
    assert all(text.count('Coriolis') == 1 for text in texts)
    assert 'tracking' in texts[0] and 'tracking' not in texts[1]
    assert len({one.get('viewBox') for one in ET.parse(picture).iter() if one.get('viewBox')}) == 1
    assert plot.stat().st_size > 10_000
    log = rd.read_log(bag, rd.load_model(PANDA_URDF))
    kept = next(line for line in ran.stdout.splitlines() if ' messages in ' in line)
    assert len(log) > 0.4 * int(kept.split()[0]) and log.duration > 3.0  # all control laws
    assert robodyn('demo', '--record', str(bag)).returncode == 2  # nothing is overwritten


def assert_five_times_better(ran, joints='all joints'):
    whole = next(line for line in ran.stdout.splitlines() if line.startswith(f'│ {joints}'))
    plain, gravity, helped = (float(cell) for cell in whole.split('│')[2:5])
    assert helped < gravity / 5 and helped < plain / 5, ran.stdout


@pytest.mark.slow
def test_demo_of_another_robot(tmp_path):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    ran = robodyn('demo', '--seconds', '2', '--urdf', str(path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert_five_times_better(ran)


@pytest.mark.slow
def test_the_demo_refuses_a_domain_with_another_robot(request):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    from sensor_msgs.msg import JointState

    world = request.getfixturevalue('world')  # which sets ROS_DOMAIN_ID
    world.node.create_publisher(JointState, '/joint_states', 10)
    ran = subprocess.run([sys.executable, '-m', 'robodyn_ros.commands.main', 'demo', '--seconds',
                          '2'], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 2 and 'Traceback' not in ran.stderr, ran.stderr
    assert 'another robot publishes /joint_states in the ROS domain' in ran.stderr


def test_bad_arguments_are_answered_in_one_line(tmp_path):
    broken = tmp_path / 'broken.urdf'
    broken.write_text('<robot name="r"><link name="a"/></robot>')
    for arguments, culprit in ((('--urdf', str(tmp_path / 'none.urdf')), 'cannot be read'),
                               (('--urdf', str(broken)), 'no joint that moves'),
                               (('--seconds', '0'), '--seconds')):
        ran = robodyn('demo', *arguments)
        assert ran.returncode == 2 and culprit in ran.stderr and 'Traceback' not in ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1


def test_a_command_imports_only_what_it_needs():
    """`robodyn --help` answers at once: no plotting library, physics engine or ROS, nor numpy.

    What is imported before `main` is not covered by its answer to Ctrl-C, so it has to be little.
    """
    code = ("import sys; from robodyn_ros.commands.main import main\n"
            "try: main(['--help'])\n"
            "except SystemExit: pass\n"
            "print(sorted({'numpy', 'matplotlib', 'plotly', 'rclpy', 'mujoco', 'llvmlite'}"
            " & set(sys.modules)))")
    ran = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == '[]', ran.stderr


def test_a_closed_output_pipe_ends_the_command_quietly(tmp_path):
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, 'wb') as pipe:
        ran = subprocess.run([sys.executable, '-m', 'robodyn_ros.commands.main', 'check', path],
                             stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (141, '')


def write_log(model, path, seconds=20.0, rate=100.0):
    t = np.arange(0, seconds, 1 / rate)
    w = 2 * np.pi * np.arange(1, model.n + 1) * 0.3
    q, qd, qdd = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -w**2 * np.sin(
        t[:, None] * w)
    np.savez(path, t=t, q=q, tau=rd.Dynamics(model).inverse_dynamics(q, qd, qdd),
             joint_names=model.joint_names)


@pytest.mark.parametrize('where', ['estimate', 'writing'])
def test_an_interrupted_identification_leaves_no_file(tmp_path, capsys, monkeypatch, where):
    """Ctrl-C while it computes, and while it writes: one sentence, and nothing in the folder."""
    from robodyn_ros.experiment import results

    path, log, out = tmp_path / 'planar.urdf', tmp_path / 'log.npz', tmp_path / 'out'
    path.write_text(planar_2r())
    write_log(rd.load_model(path), log)
    name = 'identify' if where == 'estimate' else 'save_report'
    ready, function = threading.Event(), getattr(results, name)

    def interrupted(*arguments, **options):
        result = function(*arguments, **options)
        ready.set()
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(results, name, interrupted)
    code = main(['identify', str(log), '--urdf', str(path), '-o', str(out)])
    assert ready.is_set() and code == 130
    assert capsys.readouterr().err == (
        'robodyn: identify was interrupted; no file is left half-written\n')
    assert not out.exists() or not list(out.iterdir())


def test_identify_takes_a_corridor_and_prints_the_reduced_estimate(tmp_path, capsys):
    path, log, out = tmp_path / 'planar.urdf', tmp_path / 'log.npz', tmp_path / 'out'
    path.write_text(planar_2r())
    write_log(rd.load_model(path), log)
    code = main(['identify', str(log), '--urdf', str(path), '-o', str(out), '--friction',
                 'coulomb', '--corridor', '2', '0.1', '20', '40', '--reduce'])
    printed = capsys.readouterr().out
    assert code in (0, 1) and 'filter of order 2 at 6.03 Hz' in printed
    full, reduced = printed.split('Significant parameters alone:')
    assert '  Ia:j2' in full and '  Ia:j2' in reduced and '\n~ ' not in reduced


def test_an_interrupted_search_keeps_its_best_motion(tmp_path, capsys, monkeypatch):
    """Ctrl-C ends the search long before its budget."""
    from robodyn_ros.excitation import optimise

    path, out = tmp_path / 'planar.urdf', tmp_path / 'motion.yaml'
    path.write_text(planar_2r())
    polish = optimise._Search._polish

    def interrupted(*arguments, **options):
        result = polish(*arguments, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(optimise._Search, '_polish', interrupted)
    assert main(['excite', str(path), '-o', str(out), '--budget', '1000']) == 0
    assert rd.Excitation.from_yaml(out).period > 0
    capsys.readouterr()


def test_files_are_overwritten_only_on_request(tmp_path, capsys):
    path, out = tmp_path / 'planar.urdf', tmp_path / 'fixed.urdf'
    path.write_text(planar_2r())
    out.write_text('mine')
    assert main(['check', str(path), '--fix', str(out)]) == 2
    assert 'fixed.urdf: it exists already; valid: another name, or --force' in (
        capsys.readouterr().err)
    assert out.read_text() == 'mine'
    assert main(['check', str(path), '--fix', str(out), '--force']) == 0
    assert out.read_text().startswith('<robot')
    assert main(['check', str(path), '--fix', str(tmp_path / 'none' / 'x.urdf')]) == 2
    assert 'it cannot be written: No such file' in capsys.readouterr().err


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / 'a.txt'
    path.write_text('old')
    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:
        temporary.write_text('half')
        raise KeyboardInterrupt
    assert path.read_text() == 'old' and list(tmp_path.iterdir()) == [path]
