"""Exported C against rd.Dynamics: compiled strictly, run, sanitised, built as packages."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from exports import CASES, CONSUMER, OWN, Library, case_of, compile_files, compilers
from robots import PANDA_URDF, ROBOTS, joint, link, planar_2r, robot

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.export.c_functions import SINCOS_ERROR, SINCOS_LIMIT
from robodyn_ros.export.functions import c_name
from robodyn_ros.observation import MomentumObserver

GCC, GXX = compilers()
pytestmark = pytest.mark.skipif(GCC is None or GXX is None, reason='gcc and g++ are not there')


def states(dynamics, count=20):
    rng = np.random.default_rng(2)
    loops = isinstance(dynamics, rd.ClosedLoopDynamics)
    q = rng.uniform(-1, 1, (count, dynamics.n)) * (0.1 if loops else 2)
    if loops:
        q += dynamics.home[[dynamics.model.joint_names.index(x) for x in dynamics.joint_names]]
    return {'q': q, 'qd': rng.uniform(-2, 2, q.shape), 'qdd': rng.uniform(-3, 3, q.shape),
            'tau': rng.uniform(-20, 20, q.shape), 'positions': dynamics.positions(q),
            'timing': np.tile([1e-3, 20.0], (count, 1)),
            'observer': rng.uniform(-2, 2, (count, 3 * dynamics.n)),
            'parameters': np.tile(dynamics.model.standard_parameters, (count, 1)),
            'base': rng.uniform(-2, 2, (count, 9))}


@pytest.mark.parametrize('name', CASES)
def test_c99_agrees_with_dynamics(name, folders, tmp_path):
    """The self-test passes, and other states agree to 1e-12 of the largest element."""
    folder, case = folders(name), case_of(name)
    compile_files(GCC, 'c99', folder, tmp_path / 'self_test', '-O1')
    ran = subprocess.run([tmp_path / 'self_test'], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout
    compile_files(GCC, 'c99', folder, tmp_path / 'arm.so', '-O1', '-shared', '-fPIC')
    library, given = Library(tmp_path / 'arm.so', case), states(case.dynamics())
    tolerance = 2e-4 if case.options.get('single') else 1e-12
    for function in library.functions.values():
        if function.reference is None:
            continue
        for k in range(20):
            arguments = [given[what][k].astype(library.type).astype(float)
                         for what, _ in function.arguments]
            expected = function.reference(*arguments)
            error = np.abs(library.call(function.name, *arguments) - expected).max()
            scale = np.abs(expected).max()
            if function.name == 'coriolis':  # for some mechanisms it is zero except for rounding
                scale = max(scale, 1.0)
            assert error <= tolerance * scale, function.name


@pytest.mark.slow
@pytest.mark.parametrize('name', CASES)
def test_cpp17_with_sanitizers(name, folders, tmp_path):
    """The same sources as C++, with address and undefined-behaviour sanitizers."""
    compile_files(GXX, 'c++17', folders(name), tmp_path / 'self_test', '-O1',
                  '-fsanitize=address,undefined', '-fno-sanitize-recover=all')
    ran = subprocess.run([tmp_path / 'self_test'], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stderr == '', ran.stdout + ran.stderr


@pytest.mark.parametrize('file', ['double_pendulum_description/urdf/double_pendulum.urdf',
                                  'kinova_description/robots/kinova.urdf',
                                  'solo_description/robots/solo12.urdf'])
def test_robots_of_example_robot_data(file, tmp_path):
    """A sample; benchmarks/export_all_robots.py compares all of them."""
    rd.export_c(rd.load_model(ROBOTS / file), tmp_path, prefix='arm')
    compile_files(GCC, 'c99', tmp_path, tmp_path / 'self_test', '-O0')
    ran = subprocess.run([tmp_path / 'self_test'], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout


def test_a_wrong_parameter_fails_the_self_test(folders, tmp_path):
    """The self-test detects a single changed digit."""
    folder = tmp_path / 'wrong'
    shutil.copytree(folders('plane'), folder)
    source = (folder / 'arm.c').read_text()
    number = max(re.findall(r'\d\.\d{5,}', source), key=len)
    (folder / 'arm.c').write_text(source.replace(number, f'{number[:4]}7{number[5:]}9'))
    compile_files(GCC, 'c99', folder, tmp_path / 'self_test', '-O1')
    assert subprocess.run([tmp_path / 'self_test'], capture_output=True).returncode == 1


@pytest.mark.skipif(platform.machine() != 'x86_64' or not shutil.which('objdump'),
                    reason='reads x86 instructions')
@pytest.mark.parametrize('name', ['mimic and branches', 'friction with a width', 'own sine'])
def test_the_code_has_no_branch_no_state_and_few_calls(name, folders, tmp_path):
    """The machine code has no conditional jump, no data that change, and calls only libm."""
    path = tmp_path / 'arm.o'
    subprocess.run([GCC, '-std=c99', '-O3', '-fno-math-errno', '-fno-pic', '-c',
                    folders(name) / 'arm.c', '-o', path], check=True)
    listing = subprocess.run(['objdump', '-d', '--no-show-raw-insn', path], check=True,
                             capture_output=True, text=True).stdout
    jumps = set(re.findall(r'\t(j[a-z]+)', listing)) - {'jmp'}
    assert not jumps
    symbols = subprocess.run(['nm', path], check=True, capture_output=True, text=True).stdout
    kinds = {line.split()[-2] for line in symbols.splitlines()}
    assert kinds <= set('rRTtU'), symbols  # code and constants alone
    needed = {line.split()[-1] for line in symbols.splitlines() if line.split()[-2] == 'U'}
    assert needed <= {'sin', 'cos', 'sincos', 'sqrt'}
    if name == 'own sine':
        assert not needed


@pytest.mark.parametrize('name', ['own sine', 'single'])
def test_own_sine_and_cosine(name, folders, tmp_path):
    single = name == 'single'
    (tmp_path / 'all.c').write_text(
        f'#include "{folders(name)}/arm.c"\n'
        'void all(const REAL *x, REAL *s, REAL *c, int n)\n'
        '{ for (int i = 0; i < n; i++) arm_sincos(x[i], s + i, c + i); }\n')
    subprocess.run([GCC, '-std=c99', '-O2', f'-DREAL={"float" if single else "double"}', '-shared',
                    '-fPIC', tmp_path / 'all.c', '-o', tmp_path / 'all.so', '-lm'], check=True)
    kind, limit = (np.float32 if single else np.float64), SINCOS_LIMIT[single]
    rng = np.random.default_rng(0)
    near = rng.integers(-int(limit / 1.58), int(limit / 1.58), 100_000) * (np.pi / 2)
    x = np.concatenate([rng.uniform(-4, 4, 100_000), rng.uniform(-limit, limit, 100_000), near,
                        [0.0, -0.0, 1e-30]]).astype(kind)
    sine, cosine = np.empty_like(x), np.empty_like(x)
    ctypes.CDLL(str(tmp_path / 'all.so')).all(
        *(ctypes.c_void_p(array.ctypes.data) for array in (x, sine, cosine)), len(x))
    wide = x.astype(np.longdouble)
    assert np.abs(sine - np.sin(wide)).max() < SINCOS_ERROR[single]
    assert np.abs(cosine - np.cos(wide)).max() < SINCOS_ERROR[single]


@pytest.mark.parametrize('name', ['own sine', 'parametric'])
def test_the_exported_observer_agrees_with_python(name, folders, tmp_path):
    compile_files(GCC, 'c99', folders(name), tmp_path / 'arm.so', '-O1', '-shared', '-fPIC')
    library, dynamics = Library(tmp_path / 'arm.so', case_of(name)), case_of(name).dynamics()
    t = np.cumsum(np.random.default_rng(3).uniform(0.5e-3, 2e-3, 300))
    q, qd = (np.column_stack([f(t * w) for w in (3, 5, 7)]) for f in (np.sin, np.cos))
    tau = dynamics.inverse_dynamics(q, qd, -q) + 2.0 * (t > 0.1)[:, None]
    parameters = [dynamics.model.standard_parameters] if name == 'parametric' else []
    state, found = np.zeros(9), []
    for k, row in enumerate(zip(q, qd, tau, strict=True)):
        timing = [t[k] - t[k - 1], 20.0] if k else [0.0, 0.0]
        state = library.call('observer', *parameters, *row, timing, state)
        found.append(state[:3])
    expected = MomentumObserver(dynamics, 20.0).run(t, q, qd, tau)
    assert np.abs(expected).max() > 1
    assert np.abs(np.array(found) - expected).max() < 1e-9 * np.abs(expected).max()


def test_nan_inputs_give_nan(folders, tmp_path):
    compile_files(GCC, 'c99', folders('mimic and branches'), tmp_path / 'arm.so', '-O2', '-shared',
                  '-fPIC')
    library = Library(tmp_path / 'arm.so', case_of('mimic and branches'))
    n = case_of('mimic and branches').model.n
    assert np.isnan(library.call('friction', np.full(n, np.nan))).all()
    assert np.isnan(library.call('inverse_dynamics', np.zeros(n), np.full(n, np.nan),
                                 np.zeros(n))).all()


def test_exported_closed_loops_follow_a_motion(folders, tmp_path):
    """From the pose of the last cycle to the next, as a controller at 1 kHz does."""
    compile_files(GCC, 'c99', folders('five bars'), tmp_path / 'arm.so', '-O1', '-shared', '-fPIC')
    library, dynamics = ctypes.CDLL(str(tmp_path / 'arm.so')), case_of('five bars').dynamics()
    library.arm_close_loops.restype = ctypes.c_double
    free = [dynamics.model.joint_names.index(name) for name in dynamics.joint_names]
    positions = np.array(dynamics.home)
    for k in range(200):
        q = dynamics.home[free] + 0.3 * np.sin(0.01 * k * np.arange(1, len(free) + 1))
        gap = library.arm_close_loops(ctypes.c_void_p(q.ctypes.data),
                                      ctypes.c_void_p(positions.ctypes.data))
        assert gap < 1e-14
        np.testing.assert_allclose(positions, dynamics.positions(q, near=positions), atol=1e-13)
    away = np.full(len(free), np.nan)
    gap = library.arm_close_loops(ctypes.c_void_p(away.ctypes.data),
                                  ctypes.c_void_p(positions.ctypes.data))
    assert not gap < 1e-6


@pytest.fixture(scope='module')
def parametric(folders, tmp_path_factory):
    path = tmp_path_factory.mktemp('library') / 'arm.so'
    compile_files(GCC, 'c99', folders('parametric'), path, '-O1', '-shared', '-fPIC')
    return Library(path, case_of('parametric'))


class Payload(ctypes.Structure):
    _fields_ = [('mass', ctypes.c_double), ('com', ctypes.c_double * 3),
                ('inertia', ctypes.c_double * 6)]


def test_a_payload_is_added_while_the_program_runs(parametric):
    model = case_of('parametric').model
    links = [name for name, frame in model.link_frames.items() if frame.body >= 0]
    com, tensor = (0.1, -0.2, 0.3), np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03],
                                              [0.02, 0.03, 0.5]])
    payload = Payload(2.5, com, tuple(tensor[np.triu_indices(3)]))
    chi = model.standard_parameters.copy()
    for number, name in enumerate(links):
        loaded = np.empty_like(chi)
        add = parametric.library.arm_add_payload
        assert add(ctypes.c_void_p(chi.ctypes.data), number, ctypes.byref(payload),
                   ctypes.c_void_p(loaded.ctypes.data)) == 1
        expected = model.with_payload(name, 2.5, com, tensor).standard_parameters
        np.testing.assert_allclose(loaded, expected, rtol=1e-13, atol=1e-15)
        dynamics = rd.Dynamics(model.with_standard_parameters(loaded), friction_width=0.02)
        q = np.array([0.3, -0.5, 0.9])
        np.testing.assert_allclose(parametric.call('gravity', loaded, q), dynamics.gravity(q),
                                   rtol=1e-12, atol=1e-13)
    assert add(ctypes.c_void_p(chi.ctypes.data), len(links), ctypes.byref(payload),
               ctypes.c_void_p(chi.ctypes.data)) == 0


def test_values_are_read_from_a_file(parametric, tmp_path, capsys):
    path, out = OWN / 'articulated_3r.urdf.xacro', tmp_path / 'values.yaml'
    assert main(['export', str(path), '--values', '-o', str(out)]) == 0
    assert main(['export', str(path), '--values', '-o', str(out)]) == 2
    assert 'it exists already' in capsys.readouterr().err
    text, model = out.read_text(), case_of('parametric').model

    def read(content):
        values = np.zeros_like(model.standard_parameters)
        code = parametric.library.arm_read_values(content.encode(),
                                                  ctypes.c_void_p(values.ctypes.data))
        return code, values

    code, values = read(text)
    assert code == 0
    np.testing.assert_array_equal(values, model.standard_parameters)
    assert read(text.replace('\n', '\r\n'))[0] == 0
    other = rd.export.values_text(rd.load_model(planar_2r()))
    last = text.rindex('- ')
    for wrong, expected in (
            ('', 1), ('robot: x\n', 1),
            (text.replace('robodyn_values: 1', 'robodyn_values: 2'), 1),
            (other, 2), (text[:last], 3), (text + '- 1.0\n', 3),
            (text[:last] + '- nan\n', 4), (text[:last] + '- 1,5\n', 4),
            (text[:last] + '- one\n', 4)):
        code, values = read(wrong)
        assert code == expected and not values.any(), wrong[-60:]
    lighter = model.with_standard_parameters(0.5 * model.standard_parameters)
    np.testing.assert_array_equal(read(rd.export.values_text(lighter))[1],
                                  0.5 * model.standard_parameters)


@pytest.mark.parametrize('standard', ['c++17', 'c++20'])
def test_the_classes_in_cpp(standard, folders, tmp_path):
    folder, case = folders('parametric'), case_of('parametric')
    (tmp_path / 'main.cpp').write_text(CONSUMER)
    eigen = [folder for folder in ('/usr/include/eigen3', *(
        f'{path}/cmeel.prefix/include/eigen3' for path in sys.path)) if os.path.isdir(folder)]
    include = ['-isystem', eigen[0]] if eigen else []
    subprocess.run([GCC, '-std=c99', '-O1', '-c', folder / 'arm.c', '-o', tmp_path / 'arm.o'],
                   check=True)
    done = subprocess.run([GXX, f'-std={standard}', '-Wall', '-Wextra', '-Werror', '-pedantic',
                           '-I', folder, *include, tmp_path / 'main.cpp', tmp_path / 'arm.o',
                           '-lm', '-o', tmp_path / 'main'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tau, loaded, _, same = map(float, subprocess.run(
        [tmp_path / 'main'], check=True, capture_output=True, text=True).stdout.split())
    q = np.array([0.1, 0.2, 0.3])
    assert tau == pytest.approx(rd.Dynamics(case.model).gravity(q)[1], rel=1e-12)
    heavier = rd.Dynamics(case.model.with_payload('link3', 1.0))
    assert loaded == pytest.approx(heavier.inverse_dynamics(q, 0 * q, 0 * q)[1], rel=1e-12)
    assert same < 1e-14


def test_the_header_says_what_is_included(folders, tmp_path):
    text = (folders('parametric') / 'arm.h').read_text()
    model = case_of('parametric').model
    for words in ('robodyn_ros ' + rd.__version__, 'Gravity:      (0, 0, -9.80665) m/s^2',
                  '0  waist  revolute: rad, rad/s, N m', 'w = 0.02', '#define ARM_URDF_SHA256 "',
                  'those of the description'):
        assert words in text
    assert max(map(len, text.splitlines())) <= 99
    text = (folders('payload') / 'arm.h').read_text()
    assert 'changed since the description was read' in text
    text = (folders('spinning rotors') / 'arm.h').read_text()
    assert 'as spinning bodies: j1, j2' in text
    rd.export_c(model.without_friction(), tmp_path / 'a', origin='the run of Tuesday */ ?',
                license='ours & yours')
    assert '<license>ours &amp; yours</license>' in (tmp_path / 'a/package.xml').read_text()
    text = (folders('payload') / 'package.xml').read_text()
    assert '<license>TODO: License declaration</license>' in text
    text = (tmp_path / f'a/{c_name(model.name)}.h').read_text()
    assert 'the model has none' in text and 'the run of Tuesday * / ?' in text


def test_an_identified_robot_names_its_run(tmp_path, capsys):
    """The header names the logs from which the parameters come, and their verdict."""
    folder, code = tmp_path / 'run', tmp_path / 'code'
    folder.mkdir()
    (folder / 'identified.urdf').write_text(
        planar_2r().replace('<link name="upper">', '<link name="upper"><!-- identified by robodyn '
                            '-->'))
    assert main(['export', str(folder / 'identified.urdf'), '-o', str(code)]) == 0
    assert 'parameters.yaml of the run was not found' in (code / 'test.h').read_text()
    (folder / 'parameters.yaml').write_text(
        'provenance: {logs: [{source: monday.mcap, sha256: 0123456789abcdef0123}]}\n'
        'validation: {verdict: good}\n')
    assert main(['export', str(folder / 'identified.urdf'), '-o', str(code), '--force']) == 0
    text = ' '.join((code / 'test.h').read_text().replace('*', '').split())
    assert ('identified by robodyn from monday.mcap (SHA-256 0123456789abcdef...); '
            'verdict of the validation: good') in text
    assert 'Written to' in capsys.readouterr().out


def test_names_that_c_does_not_allow_are_replaced(tmp_path):
    odd = robot(link('base'), link('2-nd link', 1.0, (0.1, 0, 0)), link('2_nd link', 1.0),
                joint('j "1"\\', 'revolute', 'base', '2-nd link'),
                joint('ä */', 'revolute', '2-nd link', '2_nd link', (0.3, 0, 0)))
    model = rd.load_model(odd.replace('name="j "1"\\"', "name='j \"1\"\\'"))
    terms = ('gravity', 'pose:2-nd link', 'pose:2_nd link')
    rd.export_c(model, tmp_path / 'odd', terms=terms, parametric=True)
    text = (tmp_path / 'odd/test.h').read_text()
    assert 'test_pose_r2_nd_link(' in text and 'test_pose_r2_nd_link_2(' in text
    compile_files(GCC, 'c99', tmp_path / 'odd', tmp_path / 'self_test', '-O0')
    subprocess.run([tmp_path / 'self_test'], check=True, capture_output=True)
    with pytest.raises(rd.UnknownNameError, match="prefix '2x'.*valid: r2x"):
        rd.export_c(model, tmp_path / 'no', prefix='2x')
    with pytest.raises(rd.UnknownNameError, match='valid: gravity'):
        rd.export_c(model, tmp_path / 'no', terms=['weight'])
    with pytest.raises(rd.UnknownNameError, match="link 'nose'"):
        rd.export_c(model, tmp_path / 'no', terms=['pose:nose'])
    with pytest.raises(rd.UnknownNameError, match='name for C'):
        c_name('äöü')
    assert not (tmp_path / 'no').exists()


def test_terms_that_closed_loops_do_not_have(tmp_path):
    with pytest.raises(rd.UnknownNameError, match='term of closed loops'):
        rd.export_c(case_of('five bars').dynamics(), tmp_path / 'no', terms=['coriolis_matrix'])


def test_a_whole_arm_by_the_command(tmp_path, capsys):
    out = tmp_path / 'panda'
    assert main(['export', str(PANDA_URDF), '-o', str(out), '--prefix', 'panda', '--terms',
                 'gravity,inverse_dynamics,jacobian:panda_hand', '--own-sincos']) == 0
    assert max(map(len, capsys.readouterr().out.replace(str(tmp_path), '').splitlines())) <= 80
    compile_files(GCC, 'c99', out, out / 'self_test', '-O1')
    ran = subprocess.run([out / 'self_test'], check=True, capture_output=True, text=True)
    assert '0 failures' in ran.stdout
