"""Fixtures shared by the tests."""

import gc
import signal
import time

import numpy as np
import pytest
from gazebo_server import why_no_gazebo

# A shell that starts a command in the background makes it ignore interrupts, and its children as
# well; tests interrupt processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# tests of nodes keep many messages; to look through them again and again for cycles takes time
gc.set_threshold(50_000, 20, 20)

# the files whose tests take longest; they begin first, so that none of them is left for the end
LONGEST = (
    'test_identification_runs.py', 'test_closed_loop.py', 'test_dynamics_oracle.py',
    'test_node_identification.py', 'test_node_identification_results.py', 'test_commands.py',
    'test_check.py', 'test_fleet.py', 'test_node_simulator.py', 'test_identification.py',
    'test_docs.py', 'test_excitation.py', 'test_export.py', 'test_dynamics_reference.py',
    'test_report.py', 'test_node_health.py', 'test_node_faults.py', 'test_node_observer.py',
    'test_node_feedforward.py', 'test_node_dynamics.py', 'test_measured_logs.py')


def pytest_collection_modifyitems(items):
    """Sort the files by their time; the tests of a file keep their order."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


@pytest.fixture(scope='session')
def planar_arm():
    """A planar arm with two joints."""
    from robots import planar_2r

    import robodyn_ros as rd
    return rd.load_model(planar_2r())


@pytest.fixture
def planar_motion(planar_arm, rng):
    """Times, positions, velocities, accelerations and torques of a motion of the planar arm."""
    from synthetic import dynamic_motion

    return dynamic_motion(planar_arm, rng)


@pytest.fixture
def world():
    """The test's view of the ROS graph; for tests that have ROS."""
    from ros_world import World

    world = World()
    yield world
    world.close()


@pytest.fixture(scope='module')
def planar_world(tmp_path_factory):
    """A simulated arm and the node `identification`."""
    from identification_world import Planar
    from ros_world import World

    world = World()
    robot = Planar(world, tmp_path_factory.mktemp('planar') / 'runs')
    yield robot
    robot.close()
    world.close()


@pytest.fixture
def planar(planar_world):
    """The simulated arm, which is held between the tests."""
    yield planar_world
    planar_world.hold()


@pytest.fixture(scope='session')
def folders(tmp_path_factory):
    """Return a function that exports a robot of `exports.CASES` once, and returns its folder."""
    from exports import case_of

    done = {}

    def folder(name):
        if name not in done:
            done[name] = tmp_path_factory.mktemp('export')
            case_of(name).export(done[name])
        return done[name]
    return folder


@pytest.fixture(params=['simulator', pytest.param('gazebo_bridge', marks=pytest.mark.skipif(
    why_no_gazebo() is not None, reason=str(why_no_gazebo())))])
def robot_node(request):
    """The node with the simulated robot: the embedded engine, and Gazebo where it is installed."""
    return request.param


@pytest.fixture(scope='session')
def stalls():
    """How long the machine itself delays a process; for tests in real time."""
    from stalls import StallRecorder

    recorder = StallRecorder()
    yield recorder
    recorder.close()


@pytest.fixture(autouse=True)
def _stalls_beside_tests_in_real_time(request):
    if request.node.get_closest_marker('real_time'):
        request.node.stalls = request.getfixturevalue('stalls'), time.monotonic()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Report with a failure of a real-time test how long the machine itself stalled meanwhile."""
    report = (yield).get_result()
    if report.failed and hasattr(item, 'stalls'):
        recorder, began = item.stalls
        report.sections.append(('stalls of the machine', (
            f'longest {recorder.worst(began):.3f} s, in all {recorder.total(began):.3f} s of '
            f'{time.monotonic() - began:.1f} s')))


@pytest.fixture
def assert_warmed_up(monkeypatch):
    """A check that a method needs no further code once it has been warmed up."""
    from robodyn_ros.kernels.compiler import COMPILER

    needed = []
    address = COMPILER.address

    def noted(key, write_ir):
        needed.append(key)
        return address(key, write_ir)

    monkeypatch.setattr(COMPILER, 'address', noted)

    def check(dynamics, name, *arguments):
        needed.clear()
        dynamics.warm_up(name)
        assert needed, name
        needed.clear()
        getattr(dynamics, name)(*arguments)
        assert not needed, name

    return check
