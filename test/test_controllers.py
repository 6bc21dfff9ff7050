"""The core of robodyn_controllers, compiled and run, against the control laws in Python."""

import filecmp
import subprocess
from pathlib import Path

import numpy as np
import pytest
from exports import ROOT, STRICT, case_of, compilers
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control import Reference, laws
from robodyn_ros.control.laws import Gains
from robodyn_ros.export.plugin import HEADER
from robodyn_ros.export.values import values_text

GCC, GXX = compilers()
pytestmark = pytest.mark.skipif(GCC is None or GXX is None, reason='gcc and g++ are not there')
CORE = ROOT / 'robodyn_controllers'
NAME = 'articulated_3r_dynamics'
GOOD, SATURATED, HOLDING, LOST = range(4)
N = 3
KP, KD, DAMPING, NO_LIMIT = [80.0, 60.0, 20.0], [8.0, 6.0, 2.0], [1.0, 2.0, 0.5], [np.inf] * N


@pytest.fixture(scope='module')
def dynamics():
    return case_of('parametric').dynamics()


@pytest.fixture(scope='module')
def prefix(folders, tmp_path_factory):
    """A prefix of ament with the plugins of two robots, and the program that uses them."""
    path = tmp_path_factory.mktemp('prefix')
    (path / 'lib').mkdir()
    for name, file in (('parametric', NAME), ('friction with a width', 'built_in_dynamics')):
        sources = [folders(name) / 'arm.c', folders(name) / 'arm_plugin.c']
        subprocess.run([GCC, '-std=c99', *STRICT, '-O1', '-shared', '-fPIC', *sources, '-lm',
                        '-o', path / f'lib/lib{file}_plugin.so'], check=True)
    sources = [CORE / 'src' / name for name in ('control_law.cpp', 'dynamics_library.cpp',
                                                'trajectory.cpp')]
    subprocess.run([GXX, '-std=c++17', *STRICT, '-Wshadow', '-Wconversion', '-O1',
                    '-fsanitize=address,undefined', '-fno-sanitize-recover=all',
                    f'-I{CORE}/include', CORE / 'test/runner.cpp', *sources, '-ldl',
                    '-o', path / 'runner'], check=True)
    return path


class Runner:
    """A running program with the core; commands are described in runner.cpp."""

    def __init__(self, prefix):
        self.process = subprocess.Popen(
            [prefix / 'runner'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={'AMENT_PREFIX_PATH': f'/nowhere:{prefix}'})

    def __call__(self, *words):
        flat = [x for word in words for x in (
            [word] if isinstance(word, str) else map(repr, np.ravel(word).tolist()))]
        self.process.stdin.write(' '.join(flat) + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def law(self, mode='feedforward_pd', limit=NO_LIMIT, ramp=0.0, hold=0.1):
        return self('law', mode, [ramp, hold], KP, KD, DAMPING, limit)

    def update(self, q, qd, reference, period=0.001):
        """Return status and torques; the cycle must not touch the heap."""
        status, *torque, allocations = map(float, self('update', [period], q, qd,
                                                       reference).split())
        assert allocations == 0
        return int(status), np.array(torque)

    def sample(self, time, q=(0, 0, 0), qd=(0, 0, 0)):
        """Return whether a trajectory is being played, and q, qd, qdd."""
        playing, *motion, allocations = map(float, self('sample', [time], q, qd).split())
        assert allocations == 0
        return bool(playing), np.reshape(motion, (3, N))


@pytest.fixture
def runner(prefix):
    runner = Runner(prefix)
    assert runner('library', NAME) == 'waist shoulder elbow ; link1 link2 link3 tip ;'
    yield runner
    runner.process.stdin.close()
    assert runner.process.wait(20) == 0  # the sanitizers found nothing


def expected(dynamics, mode, q, qd, reference):
    gains, (q_r, qd_r, qdd_r) = Gains.of(N, KP, KD), reference
    if mode == 'gravity_compensation':
        return laws.gravity_compensation(dynamics, q, qd, np.array(DAMPING))
    if mode == 'pd_gravity':
        return laws.pd_gravity(dynamics, q, qd, q_r, qd_r, gains)
    return getattr(laws, mode)(dynamics, q, qd, q_r, qd_r, qdd_r, gains)


@pytest.mark.parametrize('mode', ['gravity_compensation', 'pd_gravity', 'feedforward_pd',
                                  'feedforward_gravity', 'computed_torque'])
def test_the_laws_are_those_of_the_nodes(mode, runner, dynamics, rng):
    assert runner.law(mode) == ''
    for _ in range(5):
        q, qd = rng.uniform(-2, 2, (2, N))
        reference = rng.uniform(-2, 2, (3, N))
        status, torque = runner.update(q, qd, reference)
        wanted = expected(dynamics, mode, q, qd, reference)
        assert status == GOOD
        np.testing.assert_allclose(torque, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize('mode', ['pd_gravity', 'feedforward_pd', 'computed_torque'])
def test_without_a_reference_gravity_is_compensated(mode, runner, dynamics):
    runner.law(mode)
    q, qd = np.array([0.3, 0.4, -0.5]), np.zeros(N)
    status, torque = runner.update(q, qd, np.full((3, N), np.nan))
    assert status == GOOD
    np.testing.assert_allclose(torque, dynamics.gravity(q), atol=1e-11)
    # only some joints have one; missing velocities and accelerations are zero
    reference = np.array([[np.nan, 0.5, np.nan], [np.nan] * N, [1.0, np.nan, 1.0]])
    _, torque = runner.update(q, qd, reference)
    filled = np.array([[0.3, 0.5, -0.5], np.zeros(N), np.zeros(N)])
    if mode != 'computed_torque':
        np.testing.assert_allclose(torque, expected(dynamics, mode, q, qd, filled), atol=1e-11)
    else:
        acceleration = np.array([0.0, KP[1] * 0.1, 0.0])
        np.testing.assert_allclose(torque, dynamics.inverse_dynamics(q, qd, acceleration),
                                   atol=1e-11)


def test_limits(runner):
    runner.law('pd_gravity', limit=[5.0, 6.0, np.inf])
    status, torque = runner.update(np.zeros(N), np.zeros(N), [[9, -9, 9], [0] * N, [0] * N])
    assert status == SATURATED and (torque[:2] == [5.0, -6.0]).all() and torque[2] > 100
    runner.law('pd_gravity', limit=[500.0] * N)
    status, _ = runner.update(np.zeros(N), np.zeros(N), np.zeros((3, N)))
    assert status == GOOD


def test_a_state_that_is_not_a_number(runner, dynamics):
    runner.law('gravity_compensation', hold=0.1)
    nothing, q, none = np.full(N, np.nan), np.array([0.2, 0.7, 0.1]), np.zeros((3, N))
    assert runner.update(nothing, nothing, none)[0] == LOST  # nothing is known
    runner.update(q, np.ones(N), none)
    for _ in range(9):  # 90 ms
        status, torque = runner.update(q, nothing, none, 0.01)
        assert status == HOLDING
        np.testing.assert_allclose(torque, dynamics.gravity(q), atol=1e-11)
    for _ in range(2):
        status, torque = runner.update(nothing, q, none, 0.01)
    assert status == LOST and (torque == 0).all()
    assert runner.update(q, np.ones(N), none)[0] == GOOD
    # a reference that overflows is no number either, once the law has used it
    runner.law('feedforward_pd')
    runner.update(q, 0 * q, none)
    status, torque = runner.update(q, 0 * q, np.full((3, N), 1e300))
    assert status == HOLDING
    np.testing.assert_allclose(torque, dynamics.gravity(q), atol=1e-11)


def test_payload_and_values_while_running(runner, dynamics, tmp_path):
    """The torque fades from the old parameters to the new ones."""
    runner.law('gravity_compensation', ramp=0.01)
    q, still, none = np.array([0.2, 0.7, 0.1]), np.zeros(N), np.zeros((3, N))
    before, tensor = dynamics.gravity(q), np.diag([0.02, 0.02, 0.01])
    runner.update(q, still, none)
    assert runner('payload', 'tip', [2.0, 0.1, 0, 0.05, 0.02, 0, 0, 0.02, 0, 0.01]) == ''
    loaded = dynamics.model.with_payload('tip', 2.0, (0.1, 0, 0.05), tensor)
    after = dynamics.with_model(loaded).gravity(q)
    assert np.abs(after - before).max() > 5
    torques = np.array([runner.update(q, still, none)[1] for _ in range(12)])
    fraction = np.clip(1 - np.arange(12) / 10, 0, 1)[:, None]
    np.testing.assert_allclose(torques, after + fraction * (before - after), atol=1e-9)

    model = dynamics.model.with_standard_parameters(1.1 * dynamics.model.standard_parameters)
    (tmp_path / 'values.yaml').write_text(values_text(model))
    assert runner('values', str(tmp_path / 'values.yaml')) == ''
    for _ in range(12):
        _, torque = runner.update(q, still, none)
    other = model.with_payload('tip', 2.0, (0.1, 0, 0.05), tensor)
    np.testing.assert_allclose(torque, dynamics.with_model(other).gravity(q), atol=1e-11)
    runner('payload', 'tip', np.zeros(10))
    for _ in range(12):
        _, torque = runner.update(q, still, none)
    np.testing.assert_allclose(torque, 1.1 * before, atol=1e-11)


def test_what_is_refused(runner, prefix, tmp_path):
    """Errors name the culprit and what would be valid; nothing is changed."""
    assert 'computed_torque' in runner.law('computed torque')
    assert 'limit' in runner.law(limit=[-1.0] * N) and '3 values >= 0' in runner.law(limit=[1, 2])
    runner.law('gravity_compensation')
    _, torque = runner.update(np.ones(N), np.zeros(N), np.zeros((3, N)))
    body = [1.0, 0, 0, 0, 0.01, 0, 0, 0.01, 0, 0.01]
    assert "no moving link 'tool'; valid: link1, link2, link3, tip" in runner('payload', 'tool',
                                                                              body)
    assert 'negative mass' in runner('payload', 'tip', [-1.0, *body[1:]])
    assert 'not a finite number' in runner('payload', 'tip', [1.0, np.nan, *body[2:]])
    for inertia in ([1, 0, 0, 0.1, 0, 0.1], [1, 0.9, 0.9, 1, -0.9, 1], [-1, 0, 0, -1, 0, -1]):
        assert 'No rigid body has the inertia' in runner('payload', 'tip', [*body[:4], *inertia])
    (tmp_path / 'values.yaml').write_text('robodyn_values: 1\nstructure: other\n')
    assert 'other joints' in runner('values', str(tmp_path / 'values.yaml'))
    _, after = runner.update(np.ones(N), np.zeros(N), np.zeros((3, N)))
    assert (after == torque).all()
    assert 'robodyn export' in runner('library', 'no_such_dynamics')
    runner('library', str(prefix / 'lib/libbuilt_in_dynamics_plugin.so'))
    runner('law', 'pd_gravity', [0.0, 0.1], np.ones(16))
    assert '--parametric' in runner('payload', 'tip', body)
    assert '--parametric' in runner('values', str(tmp_path / 'values.yaml'))


def test_quintic_trajectory_is_the_reference_of_the_nodes(runner, rng):
    times = np.array([0.0, 0.7, 1.5, 2.0])
    q, qd, qdd = rng.uniform(-1, 1, (3, 4, N))
    qd[-1] = qdd[-1] = 0
    points = [[t, *a, *b, *c] for t, a, b, c in zip(times, q, qd, qdd, strict=True)]
    assert runner.sample(9.9, [1, 2, 3])[0] is False
    assert runner('trajectory', [4, 1, 1], *points) == ''
    reference = Reference(times, q, qd, qdd)
    for t in (0.0, 0.3, 0.7, 1.1, 1.9, 2.0, 5.0):
        playing, motion = runner.sample(10 + t)
        assert playing
        np.testing.assert_allclose(motion, reference.sample(t), atol=1e-12)
    runner('stop')
    assert runner.sample(20.0, [1, 2, 3])[0] is False


@pytest.mark.parametrize('derivatives', [0, 1, 2])
def test_a_trajectory_starts_where_the_robot_is(derivatives, runner):
    """A line, a cubic or a quintic leads to the first point; later ones start from the last."""
    zeros = [0.0] * (derivatives * N)
    assert runner('trajectory', [1, derivatives > 0, derivatives > 1], [2.0, 1, 2, 3],
                  zeros) == ''
    start = np.array([0.5, 0.5, -1.0])
    _, motion = runner.sample(5.0, start)
    np.testing.assert_allclose(motion[0], start)
    _, motion = runner.sample(6.0)
    np.testing.assert_allclose(motion[0], (start + [1, 2, 3]) / 2, atol=1e-12)
    speed = (np.array([1, 2, 3]) - start) / 2 * (1, 1.5, 1.875)[derivatives]
    np.testing.assert_allclose(motion[1], speed, atol=1e-12)
    runner('trajectory', [1, 1, 1], [1.0, 0, 0, 0], np.zeros(2 * N))
    _, again = runner.sample(6.001)  # continues from the motion of the last cycle
    np.testing.assert_allclose(again, motion, atol=1e-12)
    _, motion = runner.sample(9.0)
    assert (motion == 0).all()


@pytest.mark.parametrize('points, reason', [
    (([1, 0, 0], [0.0, np.nan, 0, 0]), 'Point 0 of the trajectory has a value that is not'),
    (([2, 0, 0], [1.0, 0, 0, 0], [1.0, 1, 1, 1]), 'Point 1 of the trajectory is at'),
    (([1, 0, 0], [-1.0, 0, 0, 0]), 'increase from 0'),
    (([1, 1, 0], [1.0, 0, 0, 0, 1, 0, 0]), 'does not end at rest'),
    (([1, 0, 0], [1.0, 0, 0]), 'has 2 positions'),
    (([0, 0, 0],), 'no points')])
def test_trajectories_that_are_refused(points, reason, runner):
    assert reason in runner('trajectory', *points)
    assert runner.sample(0.0)[0] is False


def test_values_pass_between_threads(tmp_path):
    subprocess.run([GXX, '-std=c++17', *STRICT, '-O1', '-fsanitize=thread', f'-I{CORE}/include',
                    CORE / 'test/latest_value.cpp', '-pthread', '-o', tmp_path / 'test'],
                   check=True)
    # some kernels randomise addresses more than the sanitizer supports
    ran = subprocess.run(['setarch', '-R', tmp_path / 'test'], capture_output=True, text=True,
                         timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_exporter_and_controller_have_the_same_table():
    assert filecmp.cmp(ROOT / 'robodyn_ros/export' / HEADER,
                       CORE / 'include/robodyn_controllers' / HEADER, shallow=False)


def test_the_simulated_robot_moves_as_the_equations_say(tmp_path, rng):
    """From the URDF alone, although the files of its meshes do not exist."""
    mujoco = Path(pytest.importorskip('mujoco').__file__).parent
    library = next(mujoco.glob('libmujoco.so*'))
    program = tmp_path / 'runner'
    subprocess.run([GXX, '-std=c++17', *STRICT, '-O1', f'-I{CORE}/include', '-isystem',
                    mujoco / 'include', CORE / 'test/mujoco_runner.cpp',
                    CORE / 'src/mujoco_robot.cpp', library, f'-Wl,-rpath,{mujoco}',
                    '-o', program], check=True)
    text = planar_2r().replace('<inertial>', '<collision><geometry><mesh filename='
                               '"package://nowhere/a.stl"/></geometry></collision><inertial>')
    (tmp_path / 'robot.urdf').write_text(text)
    model = rd.load_model(text, gravity=(0, 0, -9.81))
    q, tau = rng.uniform(-2, 2, (2, 2))

    def run(*names):
        return subprocess.run(
            [program, tmp_path / 'robot.urdf', '1e-7', str(len(names)), *names,
             *map(repr, q.tolist()), *map(repr, tau.tolist())],
            check=True, capture_output=True, text=True).stdout

    np.testing.assert_allclose(np.array(run(*model.joint_names).split(), float),
                               rd.Dynamics(model).forward_dynamics(q, 0 * q, tau), rtol=1e-5)
    assert "no revolute or prismatic joint 'j9'; its joints: j1, j2" in run('j1', 'j9')
