"""Exported C of robots with a floating base against rd.Dynamics and Pinocchio's free-flyer."""

import ctypes
import subprocess

import numpy as np
import pinocchio as pin
import pytest
from exports import Case, Library, compile_files, compilers
from oracle import FreeFlyer
from robots import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.export.functions import TERMS

GCC, GXX = compilers()
pytestmark = pytest.mark.skipif(GCC is None or GXX is None, reason='gcc and g++ are not there')
TEXT = robot(
    link('base', 4.0, (0.02, 0.01, -0.03), (0.05, 0.01, 0, 0.06, 0, 0.07)),
    link('upper', 1.0, (0.2, 0, 0.05), (0.01, 0, 0, 0.02, 0, 0.02)),
    link('lower', 0.7, (0.15, 0.02, 0), (0.01, 0, 0, 0.01, 0, 0.01)),
    joint('j1', 'revolute', 'base', 'upper', (0.1, 0, 0.1), (0.3, 0.2, 0.1)),
    joint('j2', 'prismatic', 'upper', 'lower', (0.4, 0, 0), axis=(1, 0, 0)))
EVERY = (*(term for term in TERMS if not term.startswith('moving_')), 'pose:lower',
         'jacobian:base')
PARAMETRIC = ('mass_matrix', 'inverse_dynamics', 'forward_dynamics')


def state(rng):
    base = [*rng.normal(size=3), *rng.normal(size=4)]
    base[3:] /= np.linalg.norm(base[3:])
    return np.array([*base, *rng.uniform(-1, 1, 2)]), *rng.normal(size=(2, 8))


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    """Everything without rotors and friction, as Pinocchio computes it."""
    folder = tmp_path_factory.mktemp('flyer')
    case = Case(rd.load_model(TEXT, base='floating'), EVERY)
    case.export(folder / 'code')
    compile_files(GXX, 'c++17', folder / 'code', folder / 'self_test', '-O0')
    done = subprocess.run([folder / 'self_test'], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    compile_files(GCC, 'c99', folder / 'code', folder / 'arm.so', '-O0', '-shared', '-fPIC')
    return Library(folder / 'arm.so', case), (folder / 'code/arm.h').read_text()


def test_exported_c_agrees_with_the_free_flyer_of_pinocchio(library, rng):
    (code, _), model = library, library[0].case.model
    oracle, dynamics = FreeFlyer(model, TEXT), rd.Dynamics(model)
    for _ in range(5):
        q, qd, qdd = state(rng)
        tau = oracle.inverse_dynamics(q, qd, qdd)
        scale = np.abs(tau).max()
        for found, expected in (
                (code.call('inverse_dynamics', q, qd, qdd), tau),
                (code.call('mass_matrix', q), oracle.mass_matrix(q)),
                (code.call('gravity', q), oracle.inverse_dynamics(q, 0 * qd, 0 * qd)),
                (code.call('pose_lower', q), oracle.pose(q, 'lower')),
                (code.call('jacobian_base', q), oracle.jacobian(q, 'base')),
                (code.call('coriolis_matrix', q, qd) @ qd, dynamics.coriolis(q, qd)),
                (code.call('regressor', q, qd, qdd) @ model.standard_parameters, tau)):
            np.testing.assert_allclose(found, expected, atol=1e-12 * scale)
        np.testing.assert_allclose(code.call('forward_dynamics', q, qd, tau), qdd, atol=1e-10)
        pin.computeCentroidalMomentum(oracle.pin, oracle.data, oracle.q(q), qd)
        np.testing.assert_allclose(code.call('centroidal_momentum', q, qd),
                                   oracle.data.hg.vector, atol=1e-12)
        np.testing.assert_allclose(code.call('center_of_mass', q), oracle.data.com[0], atol=1e-12)


def test_the_observer_finds_forces_on_base_and_joints(library, rng):
    """Constant external forces while the robot falls; momentum is that of turning axes."""
    code, dynamics = library[0], rd.Dynamics(library[0].case.model)
    pushed, push = np.array([3.0, -2, 5, 0.4, -0.3, 0.2, 1.0, -1.5]), rng.normal(size=8)
    q, qd, _ = state(rng)
    motion = rd.simulate(dynamics, push + pushed, q=q, qd=0.3 * qd, duration=0.3,
                         times=np.linspace(0, 0.3, 301))
    observed = np.zeros(24)
    for k in range(301):
        timing = [1e-3, 40.0] if k else [0.0, 0.0]
        observed = code.call('observer', motion.q[k], motion.qd[k], push, timing, observed)
    np.testing.assert_allclose(observed[:8], pushed, atol=0.01)
    p, rate = dynamics.momentum_terms(motion.q, motion.qd)
    slope = np.gradient(p, motion.t, axis=0)[1:-1]
    np.testing.assert_allclose(slope, (rate + motion.tau)[1:-1], atol=0.02)


def test_parameters_and_payloads_of_a_floating_base_are_replaced(tmp_path, rng):
    """A motor on the base spins about its joint's axis; its rotor is subtracted from the base."""
    motors = {'joints': {'j1': {'gear_ratio': 50, 'rotor_inertia': 1e-4, 'spin_axis': 'joint'}}}
    model = rd.load_model(TEXT, base='floating', motors=motors)
    case = Case(model, PARAMETRIC, options={'parametric': True, 'own_sincos': True})
    case.export(tmp_path / 'code')
    compile_files(GCC, 'c99', tmp_path / 'code', tmp_path / 'self_test', '-O0')
    assert subprocess.run([tmp_path / 'self_test'], capture_output=True).returncode == 0
    compile_files(GCC, 'c99', tmp_path / 'code', tmp_path / 'arm.so', '-O0', '-shared', '-fPIC')
    code, links = Library(tmp_path / 'arm.so', case), list(model.link_frames)
    payload = (ctypes.c_double * 10)(2.0, 0.1, -0.2, 0.3, 0.3, 0, 0, 0.4, 0, 0.5)
    for number, name in enumerate(links):
        chi, loaded = model.standard_parameters.copy(), np.empty(len(model.standard_parameters))
        assert code.library.arm_add_payload(
            ctypes.c_void_p(chi.ctypes.data), number, payload,
            ctypes.c_void_p(loaded.ctypes.data)) == 1
        heavier = model.with_payload(name, 2.0, (0.1, -0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
        np.testing.assert_allclose(loaded, heavier.standard_parameters, atol=1e-14)
        q, qd, qdd = state(rng)
        np.testing.assert_allclose(code.call('inverse_dynamics', loaded, q, qd, qdd),
                                   rd.Dynamics(heavier).inverse_dynamics(q, qd, qdd), atol=1e-10)


def test_the_header_and_the_command_say_what_the_arrays_hold(library, tmp_path, capsys):
    text = ' '.join(library[1].replace('*', ' ').split())
    for words in ('#define ARM_JOINTS 2', '#define ARM_POSITIONS 9', '#define ARM_VELOCITIES 8',
                  'arm_velocity_names[8]', '0 base.vx base: m/s, N', '3 base.wx base: rad/s, N m',
                  '6 j1 revolute', 'quaternion x y z w', 'those of the description'):
        assert words in text, words
    path = tmp_path / 'flyer.urdf'
    path.write_text(TEXT)
    assert main(['export', str(path), '--base', 'floating', '--terms', 'gravity', '-o',
                 str(tmp_path / 'code')]) == 0
    files = sorted(file.name for file in (tmp_path / 'code').iterdir())
    assert 'test.h' in files and not any('plugin' in name for name in files)
    assert 'positions = 9, velocities = 8' in (tmp_path / 'code/test.hpp').read_text()
    with pytest.raises(rd.UnknownNameError, match='moving_inverse_dynamics.*valid: gravity'):
        rd.export_c(library[0].case.model, tmp_path / 'no', terms=['moving_inverse_dynamics'])
    capsys.readouterr()
