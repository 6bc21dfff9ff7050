"""Every line of the documentation that begins with `ros2` runs as it is written.

Where a page names a file of the reader (my_arm.urdf), a robot of this repository stands in for it.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from gazebo_server import why_no_gazebo  # noqa: E402
from ros2_control_world import description, has  # noqa: E402
from ros2_tools import Ros2, need_ros2, stop_daemon  # noqa: E402
from test_docs import ROOT, blocks, work  # noqa: E402, F401

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

pytestmark = pytest.mark.nodes

PAGES = sorted({ROOT / 'README.md', *(ROOT / 'docs').rglob('*.md')} - {
    *(ROOT / 'docs/reference/generated').glob('*')})
SIMULATION = ROOT / 'docs/tutorials/ros2_in_simulation.md'
STAYS = ('launch', 'run')  # commands that run until they are interrupted
SPAWNER = 'ros2 run controller_manager spawner'
EXAMPLES = ('robot_state_publisher', 'controller_manager', 'joint_state_broadcaster',
            'forward_command_controller', 'joint_trajectory_controller')
UR10 = ROOT / 'test/data/ur10/ur10_nomesh.urdf'
NODES = ('simulator', 'dynamics', 'feedforward', 'identification')
UNPUBLISHED = 'does not appear to be published yet'
# Errors of other programs while they end: Gazebo's server takes longer than launch allows; the
# controller manager publishes statistics after its context is gone, or is ended by the second
# SIGINT, which launch passes on.
AT_THE_END = re.compile(r'\[ERROR\] \[gz-\d+\]: process.* failed to terminate|'
                        r'\[ERROR\] .*pal_statistics\]: Exception in publisher thread|'
                        r'\[ERROR\] \[ros2_control_node-\d+\]: process has died.* exit code -2,')


def groups():
    """(page, lines of one block of code), where a line of it begins with `ros2`."""
    for page in PAGES:
        for _, text in blocks(page):
            lines = text.replace('\\\n', ' ').splitlines()
            if any(SPAWNER in line for line in lines):
                continue  # test_node_controllers.py runs it where its controllers are
            if page != SIMULATION and any(line.startswith('ros2 ') for line in lines):
                yield pytest.param(lines, id=f'{page.stem}: {lines[0][:60]}')


@pytest.fixture
def place(work):  # noqa: F811
    """A folder with the files that the pages name; ros2_control's hardware is a mock."""
    model = rd.load_model(UR10.read_text())
    text = description(model, [0.0] * model.n, 'mock_components/GenericSystem')
    for name in ('my_arm.urdf', 'my_arm.urdf.xacro'):
        (work / name).write_text(text)
    return work


def wait_until_started(process, line):
    """Wait until a node runs, or all nodes of a launch file have their model."""
    if line.startswith('ros2 run '):
        return process.wait_for(f'[{line.split()[3]}]', 60.0)
    process.wait_for('process started', 60.0)
    names = set(re.findall(r'\[INFO\] \[(\w+)-\d+\]: process started', process.log()))
    if 'spawner' in names:  # an example with ros2_control
        process.wait_for('[feedforward]: model 1', 120.0)
        process.wait_for('[INFO] [spawner-3]: process has finished cleanly', 120.0)
        return
    for name in names - {'gz'}:
        process.wait_for(f'[{name}]: model 1' if 'urdf:=' in line else f'[{name}]', 120.0)
    return None


@pytest.mark.parametrize('lines', list(groups()))
def test_a_block_of_a_page_runs(lines, place, world):
    need_ros2()
    if why_no_gazebo() and any('gazebo' in line for line in lines):
        pytest.skip(why_no_gazebo())
    running = []
    model = rd.load_model(UR10)
    try:
        with contextlib.ExitStack() as nodes:
            for name in addressed_nodes(lines):
                nodes.enter_context(NodeProcess(name))
                world.describe(UR10.read_text())
                if name == 'simulator':
                    world.wait(lambda: 'running at' in world.diagnostics['simulator'].get(
                        'message', ''), 'a simulated robot')
                else:
                    world.wait_for_model(name)
            for line in lines:
                words = shlex.split(line, comments=True)
                if words[:1] != ['ros2']:
                    continue
                if words[1] in STAYS:
                    running.append(Ros2(*words[1:], cwd=place))
                    missing = package_that_is_missing(running[-1], line)
                    if missing:
                        pytest.skip(f'the package {missing} is not installed')
                    wait_until_started(running[-1], line)
                elif words[1:3] == ['topic', 'echo']:
                    listen(words, model, world, place)
                else:
                    run_to_its_end(words, place)
    finally:
        ends = [process.stop() for process in running]
        stop_daemon()
    for process, end in zip(running, ends, strict=True):
        assert end == 0, process.log()[-3000:]
        log = AT_THE_END.sub('', process.log())
        assert not re.search('Traceback|\\[ERROR\\]', log), log[-3000:]


def addressed_nodes(lines):
    """Return the nodes that the lines of a block talk to, where it starts none itself."""
    lines = [line for line in lines if line.startswith('ros2 ')]
    if any(line.split()[1] in STAYS for line in lines):
        return []
    return [name for name in NODES if any(re.search(rf' /{name}\b', line) for line in lines)]


def run_to_its_end(words, place):
    """Run a command that ends by itself; a node may refuse a run that does not exist here."""
    for _ in range(5):  # a graph daemon that has just started misses nodes
        with Ros2(*words[1:], cwd=place) as process:
            process.wait()
            code, log = process.exit_code, process.log()
        if 'Node not found' not in log:
            break
        time.sleep(2.0)
    if f'invalid choice: {words[1]!r}' in log:
        pytest.skip(f'the command ros2 {words[1]} is not installed')
    assert code == 0, log


def listen(words, model, world, place):
    """Feed the nodes with states until `ros2 topic echo` has printed a message."""
    for _ in range(5):  # a graph daemon that has just started misses topics
        with Ros2(*words[1:], cwd=place) as process:
            for _ in range(200):
                world.state(model.joint_names, [0.1] * model.n, [0.0] * model.n,
                            [0.0] * model.n)
                world.spin(0.1)
                if process.exit_code is not None or '---' in process.log():
                    break
            code, log = process.exit_code, process.log()
        if UNPUBLISHED not in log:
            break
        world.spin(2.0)
    assert code in (None, 0) and '---' in log, log


def package_that_is_missing(process, line):
    """Return the package without which a program or a launch file ends at once, or None."""
    if line.startswith('ros2 run ') and 'robodyn_ros' not in line:
        process.wait(60.0)
        found = re.search(r"Package '(\w+)' not found", process.log())
        assert found, process.log()
        return found[1]
    if '.launch.py' in line and not (ROOT / 'launch' / line.split()[3]).exists():
        if all(map(has, EXAMPLES)):
            return None
        process.wait(60.0)  # an example, which needs ros2_control
        found = re.search(r"package '(\w+)' not found", process.log())
        assert found, process.log()
        return found[1]
    return None


@pytest.mark.slow
def test_the_tutorial_runs_from_its_first_line_to_its_last(place, world, tmp_path, monkeypatch):
    """In order; tracking improves as much as the page says, within a factor of two."""
    need_ros2()
    monkeypatch.setenv('HOME', str(tmp_path))  # the folder of the runs is in it
    monkeypatch.setenv('PATH', f'{Path(sys.executable).parent}:{os.environ["PATH"]}')
    page = blocks(SIMULATION)
    promised = [float(one) for language, text in page if language == 'text'
                for one in re.findall(r'^all: ([\d.]+) mrad', text, re.MULTILINE)]
    measured, process = [], None
    try:
        for line in [line for language, text in page if language == 'bash'
                     for line in text.splitlines()]:
            words = shlex.split(line)
            if words[:2] == ['ros2', 'launch']:
                process = Ros2(*words[1:], cwd=place)
                wait_until_started(process, line)
                continue
            for _ in range(5):  # a graph daemon that has just started misses topics and services
                done = subprocess.run(words, cwd=place, capture_output=True, text=True,
                                      timeout=500)
                if UNPUBLISHED not in done.stdout:
                    break
                world.spin(2.0)
            assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr[-2000:],
                                          process.log()[-3000:])
            measured += [float(one) for one in re.findall(r'^all: ([\d.]+) mrad', done.stdout,
                                                          re.MULTILINE)]
    finally:
        end = process.stop()
        stop_daemon()
    assert end == 0, process.log()[-3000:]
    assert len(measured) == len(promised) == 2
    for got, want in zip(measured, promised, strict=True):
        assert want / 2 < got < want * 2
