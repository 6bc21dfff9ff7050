"""Closed forms of the course texts' worked examples, symbol by symbol; and against the kernels."""

import numpy as np
import pytest
import yaml
from robots import joint, link, planar_2r, robot
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.export.recursive import recursion, recursion_text
from robodyn_ros.export.symbolic import equations
from robodyn_ros.export.symbolic_text import text_of

sympy = pytest.importorskip('sympy')

G0 = (0, -9.80665, 0)


def same(matrix, rows):
    """Assert that a matrix equals expressions, given as text in its own symbols."""
    known = {symbol.name: symbol for symbol in matrix.free_symbols}
    for i, row in enumerate(rows):
        for j, text in enumerate(row if isinstance(row, (tuple, list)) else [row]):
            expected = sympy.sympify(text, locals=known)
            missing = {s.name for s in expected.free_symbols} - set(known)
            assert sympy.simplify(matrix[i, j] - expected.expand(trig=False)) == 0, (
                i, j, matrix[i, j], text, missing)


def arm(*parts, **options):
    return equations(rd.load_model(robot(*parts), gravity=options.pop('gravity', G0),
                                   motors=options.pop('motors', None)), **options)


def test_planar_2r_kolyubin_2_2_3():
    """With Kolyubin's names: l1 for the length of link 1, d1 and d2 for the centres of mass."""
    found = equations(rd.load_model(planar_2r(), gravity=G0),
                      names={'l1': 'd1', 'l2': 'd2', 'a1': 'l1', 'g': 'g0'}).lumped('a')
    same(found.M, [['a1 + 2*a2*cos(q2)', 'a3 + a2*cos(q2)'], ['a3 + a2*cos(q2)', 'a3']])
    same(found.c, ['-a2*sin(q2)*(qd2**2 + 2*qd1*qd2)', 'a2*sin(q2)*qd1**2'])
    same(found.g, ['a4*cos(q1) + a5*cos(q1 + q2)', 'a5*cos(q1 + q2)'])
    definitions = sympy.Matrix([found.definitions[s] for s in sorted(
        found.definitions, key=str)])
    same(definitions, ['I1 + m1*d1**2 + I2 + m2*l1**2 + m2*d2**2', 'm2*l1*d2', 'I2 + m2*d2**2',
                       'g0*(m1*d1 + m2*l1)', 'g0*m2*d2'])


def test_planar_2r_with_motors_velagic_4_1():
    motors = {'joints': {
        'j1': {'gear_ratio': 50, 'rotor_inertia': 1e-3, 'spin_axis': [0, 0, 1],
               'rotor_in_link': False},
        'j2': {'gear_ratio': 30, 'rotor_inertia': 2e-3, 'spin_axis': [0, 0, 1], 'rotor_mass': 0.5,
               'rotor_position': [0.7, 0, 0], 'rotor_in_link': False}}}
    found = equations(rd.load_model(planar_2r(), gravity=G0, motors=motors))
    m12 = 'I2 + m2*(l2**2 + a1*l2*cos(q2)) + k2*Im2'
    same(found.M, [[
        'I1 + m1*l1**2 + k1**2*Im1 + I2 + m2*(a1**2 + l2**2 + 2*a1*l2*cos(q2)) + Im2 + mm2*a1**2',
        m12], [m12, 'I2 + m2*l2**2 + k2**2*Im2']])
    h = '(-m2*a1*l2*sin(q2))'
    same(found.C, [[f'{h}*qd2', f'{h}*(qd1 + qd2)'], [f'-{h}*qd1', '0']])
    rate = sum((found.M.diff(q) * qd for q, qd in zip(found.q, found.qd, strict=True)),
               sympy.zeros(2, 2))
    n12 = f'-2*{h}*qd1 - {h}*qd2'
    same((rate - 2 * found.C).applyfunc(sympy.simplify), [['0', n12], [f'-({n12})', '0']])  # 4.66
    same(found.g, ['(m1*l1 + mm2*a1 + m2*a1)*g*cos(q1) + m2*l2*g*cos(q1 + q2)',
                   'm2*l2*g*cos(q1 + q2)'])


def test_rp_robot_technion_exercise_8():
    found = arm(link('base'), link('turn'), link('slide', 1.0, (-0.2, 0, 0), (0, 0, 0, 0, 0, 0.1)),
                link('tip', 0.5), joint('j1', 'revolute', 'base', 'turn'),
                joint('j2', 'prismatic', 'turn', 'slide', axis=(1, 0, 0)),
                joint('f', 'fixed', 'slide', 'tip'),
                names={'q1': 'th1', 'q2': 'd2', 'qd1': 'w1', 'qd2': 'v2', 'l2': 'l'})
    same(found.M, [['m3*d2**2 + m2*(d2 - l)**2 + I2', '0'], ['0', 'm2 + m3']])
    b = '(m3*d2 + m2*(d2 - l))'
    same(found.C, [[f'{b}*v2', f'{b}*w1'], [f'-{b}*w1', '0']])
    same(found.g, ['(m2*(d2 - l) + m3*d2)*g*cos(th1)', '(m2 + m3)*g*sin(th1)'])


def test_pendulum_with_motor_and_gear_kolyubin_2_35():
    found = arm(link('base'), link('bob', 1.0, (0.4, 0, 0), (0, 0, 0, 0, 0, 0.1)),
                joint('j', 'revolute', 'base', 'bob'), gravity=(9.8, 0, 0),
                motors={'joints': {'j': {'gear_ratio': 50, 'rotor_inertia': 1e-3}}},
                names={'k1': 'n', 'l1': 'd', 'm1': 'm'})
    same(found.M, ['I1 + m*d**2 + n**2*Im1'])
    same(found.g, ['m*g*d*sin(q1)'])
    assert found.c[0] == 0


def test_elementary_arms():
    cartesian = arm(link('base'), link('x', 1.0), link('y', 2.0),
                    joint('j1', 'prismatic', 'base', 'x', axis=(1, 0, 0)),
                    joint('j2', 'prismatic', 'x', 'y', axis=(0, 1, 0)))
    same(cartesian.M, [['m1 + m2', '0'], ['0', 'm2']])
    pr = arm(link('base'), link('p', 1.0), link('r', 2.0, (0.3, 0, 0), (0, 0, 0, 0, 0, 0.1)),
             joint('j1', 'prismatic', 'base', 'p', axis=(1, 0, 0)),
             joint('j2', 'revolute', 'p', 'r'))
    same(pr.M, [['m1 + m2', '-m2*l2*sin(q2)'], ['-m2*l2*sin(q2)', 'I2 + m2*l2**2']])
    same(pr.c, ['-m2*l2*cos(q2)*qd2**2', '0'])


def test_the_values_are_those_of_the_recursions(rng):
    """A branch, a joint that mimics, a rounded right angle and a centre of mass off all axes."""
    model = rd.load_model(robot(
        link('base'), link('a', 1.0, (0.1, 0, 0.2), (0.02, 0, 0, 0.03, 0, 0.04)),
        link('b', 2.0, (0, -0.3, 0), (0.02, 0, 0, 0.03, 0, 0.04)), link('c', 1.5, (0.1, 0, 0)),
        joint('j1', 'revolute', 'base', 'a'),
        joint('j2', 'revolute', 'a', 'b', (0.4, 0, 0), (1.5708, 0, 0)),
        joint('j3', 'prismatic', 'a', 'c', (0, 0, 0.1), axis=(1, 0, 0),
              extra='<mimic joint="j2" multiplier="0.5" offset="0.1"/>')),
        gravity=(0, -2.0, -9.0))
    found, recursion = equations(model), Catalogue(model.without_friction())
    q, qd = rng.uniform(-1, 1, (2, model.n))
    state = dict(found.values) | dict(zip([*found.q, *found.qd], [*q, *qd], strict=True))
    for part, expected in (('M', recursion.mass_matrix(q)),
                           ('C', recursion.coriolis_matrix(q, qd)),
                           ('c', recursion.coriolis(q, qd)), ('g', recursion.gravity(q))):
        expected = np.asarray(expected, float)
        actual = np.array(getattr(found, part).subs(state).evalf(), float)
        np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


def test_the_command_writes_python_that_runs(tmp_path, capsys, rng):
    path = tmp_path / 'arm.urdf'
    path.write_text(planar_2r())
    assert main(['equations', str(path), '--format', 'python', '--terms', 'M,C,c,g',
                 '--lumped']) == 0
    module = {}
    exec(capsys.readouterr().out, module)
    model = rd.load_model(path)
    q, qd = rng.normal(size=(2, 2))
    recursion = Catalogue(model)
    np.testing.assert_allclose(module['mass_matrix'](q), recursion.mass_matrix(q), rtol=1e-9)
    np.testing.assert_allclose(module['coriolis_matrix'](q, qd), recursion.coriolis_matrix(q, qd),
                               rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(module['coriolis'](q, qd), recursion.coriolis(q, qd), rtol=1e-9)
    np.testing.assert_allclose(module['gravity'](q), np.asarray(recursion.gravity(q), float),
                               atol=1e-12)


def test_latex_markdown_and_refusals(capsys):
    found = equations(rd.load_model(planar_2r(), gravity=G0))
    latex = text_of(found, ('M', 'c'), 'latex')
    assert latex.startswith(r'\begin{align*}') and r'M_{12} &= I_{2}' in latex
    assert r'\dot{q_{1}}' in latex and 'M_{21}' not in latex
    assert 'M22 = I2 + l2**2*m2' in text_of(found)
    assert '| m1 | 2 |' in text_of(found)
    with pytest.raises(rd.UnknownNameError, match='M, C, c, g'):
        text_of(found, ('h',))
    with pytest.raises(rd.UnknownNameError, match="'l3'"):
        equations(rd.load_model(planar_2r()), names={'l3': 'x'})
    with pytest.raises(rd.ValueRangeError, match='1 to 4.*recursion'):
        equations(rd.load_model(LWR4))


# closed loops -----------------------------------------------------------------------------------

FIVE_BAR = LWR4.parent / 'five_bar.urdf.xacro'
LOOPS = LWR4.parent.parent / 'config/robots/five_bar_loops.yaml'
# the links are numbered depth first (1, 4, tip, 2, 3); the text has lc for centres, l for lengths
TEXT = {'l1': 'lc1', 'a1': 'l1', 'm2': 'm4', 'l2': 'lc4', 'I2': 'I4', 'm4': 'm2', 'l4': 'lc2',
        'I4': 'I2', 'a4': 'l2', 'm5': 'm3', 'l5': 'lc3', 'I5': 'I3'}


def test_parallelogram_kolyubin_2_3_2():
    found = equations(rd.load_model(FIVE_BAR), loops=LOOPS, names=TEXT)
    assert found.constraints is None and found.joint_names == ('joint1', 'joint2')
    m12 = '(m3*l2*lc3 - m4*l1*lc4)*cos(q2 - q1)'
    same(found.M, [['m1*lc1**2 + m3*lc3**2 + m4*l1**2 + I1 + I3', m12],
                   [m12, 'm2*lc2**2 + m3*l2**2 + m4*lc4**2 + I2 + I4']])
    slope = '(m3*l2*lc3 - m4*l1*lc4)*sin(q2 - q1)'
    same(found.c, [f'-{slope}*qd2**2', f'{slope}*qd1**2'])
    same(found.g, ['(m1*lc1 + m3*lc3 + m4*l1)*g*cos(q1)', '(m2*lc2 + m3*l2 - m4*lc4)*g*cos(q2)'])


def test_a_five_bar_that_is_no_parallelogram_kolyubin_2_3_2(tmp_path, rng):
    """The text's reduction of the tree's terms with N, J and dJ/dt is that of the kernels."""
    numbers = yaml.safe_load((LOOPS.parent / 'five_bar.yaml').read_text())
    numbers['link1']['length'], numbers['link3']['length'] = 0.35, 0.5
    (tmp_path / 'numbers.yaml').write_text(yaml.safe_dump(numbers))
    loops = yaml.safe_load(LOOPS.read_text())
    loops['cuts'][0]['points'][0] = [0.5, 0, 0]
    model = rd.load_model(FIVE_BAR, xacro_arguments={'parameters': str(tmp_path / 'numbers.yaml')})
    found = equations(model, loops=loops)
    rules = found.constraints
    assert rules.N.shape == (2, 1) and rules.J.shape == (2, 4) and rules.independent == (0, 1)
    text = text_of(found)
    assert 'qd_c = -J_c^-1 J_r qd_r' in text and 'r = (q1, q2), dependent: c = (q3, q4)' in text
    module = {}
    exec(text_of(found, ('M', 'c', 'g'), 'python'), module)
    arm = rd.ClosedLoopDynamics(model, loops)
    q, qd, qdd = np.array([0.2, 1.7]), *rng.normal(size=(2, 2))
    pose = arm.positions(q)
    j = module['constraint_jacobian'](pose)
    np.testing.assert_allclose(module['constraints'](pose), 0, atol=1e-9)
    speed = np.append(qd, -np.linalg.solve(j[:, 2:], j[:, :2] @ qd))
    rate = module['constraint_jacobian_rate'](pose, speed)
    change = np.append(qdd, -np.linalg.solve(j[:, 2:], j[:, :2] @ qdd + rate @ speed))
    whole = module['mass_matrix'](pose) @ change + module['coriolis'](pose, speed) \
        + module['gravity'](pose)
    force = np.linalg.solve(j[:, 2:].T, whole[2:])
    np.testing.assert_allclose(speed, arm.velocities(q, qd), atol=1e-8)
    np.testing.assert_allclose(whole[:2] - j[:, :2].T @ force, arm.inverse_dynamics(q, qd, qdd),
                               atol=1e-7)


# the recursion ----------------------------------------------------------------------------------


def branched():
    """A branch, a follower, a fixed link, a prismatic joint and rotors of every sort."""
    return rd.load_model(robot(
        link('base'), link('a', 1.0, (0.1, 0, 0.2), (0.02, 0.001, 0, 0.03, 0, 0.04)),
        link('b', 2.0, (0, -0.3, 0.1), (0.02, 0, 0, 0.03, 0.002, 0.04)),
        link('c', 1.5, (0.1, 0, 0)), link('tool', 0.4, (0, 0.1, 0)),
        joint('j1', 'revolute', 'base', 'a'),
        joint('j2', 'revolute', 'a', 'b', (0.4, 0, 0.1), (0.3, 0, 0.2), axis=(0, 1, 0)),
        joint('j3', 'prismatic', 'a', 'c', (0, 0, 0.1), axis=(1, 0, 0),
              extra='<mimic joint="j2" multiplier="0.5" offset="0.1"/>'),
        joint('j4', 'prismatic', 'b', 'd', (0, 0.2, 0)), link('d', 0.7, (0.05, 0, 0)),
        joint('f', 'fixed', 'd', 'tool', (0, 0, 0.3), (0.1, 0.2, 0))),
        gravity=(0, -2.0, -9.0), motors={'joints': {
            'j1': {'armature': 0.3}, 'j4': {'gear_ratio': 20, 'rotor_inertia': 1e-3},
            'j2': {'gear_ratio': 30, 'rotor_inertia': 2e-3, 'spin_axis': [0.6, 0, 0.8],
                   'rotor_mass': 0.5, 'rotor_position': [0.1, 0.2, 0], 'rotor_in_link': False}}})


@pytest.mark.parametrize('model', [lambda: rd.load_model(LWR4), branched])
def test_the_recursion_gives_the_torques_of_the_kernels(model, rng):
    model = model().without_friction()
    found, module = recursion(model), {}
    exec(recursion_text(found, 'python'), module)
    for q, qd, qdd in rng.uniform(-2, 2, (3, 3, model.n)):
        np.testing.assert_allclose(module['inverse_dynamics'](q, qd, qdd),
                                   Catalogue(model).inverse_dynamics(q, qd, qdd), atol=1e-9)


def test_the_recursion_of_the_planar_2r_is_velagic_4_2():
    """Forward and backward passes of the example, whose components the text prints."""
    found = recursion(rd.load_model(planar_2r(), gravity=G0))
    steps = {str(step.symbol): step.value for step in found.steps}
    whole = {}
    for name, value in steps.items():
        whole[name] = value.subs({s: whole[str(s)] for s in value.free_symbols if str(s) in whole})
    w2, dw2 = '(qd1 + qd2)', '(qdd1 + qdd2)'
    names = {symbol.name: symbol for value in whole.values() for symbol in value.free_symbols}
    for name, text in (
            ('w2z', w2), ('dw2z', dw2),
            ('F2x', f'm2*(a1*sin(q2)*qdd1 - a1*cos(q2)*qd1**2 - l2*{w2}**2 + g*sin(q1 + q2))'),
            ('F2y', f'm2*(a1*cos(q2)*qdd1 + l2*{dw2} + a1*sin(q2)*qd1**2 + g*cos(q1 + q2))'),
            ('tau2', f'I2zz*{dw2} + m2*l2**2*{dw2} + m2*a1*l2*cos(q2)*qdd1'
             ' + m2*a1*l2*sin(q2)*qd1**2 + m2*l2*g*cos(q1 + q2)')):
        wanted = sympy.sympify(text, locals=names)
        assert sympy.simplify(sympy.expand_trig(whole[name] - wanted)) == 0, name


def test_the_command_writes_the_recursion_of_a_large_arm(capsys):
    assert main(['equations', str(LWR4), '--format', 'latex']) == 0
    out, err = capsys.readouterr()
    assert '7 joints' in err and r'\dot{\omega}_{7z} &=' in out and r'\ddot{q}_{7}' in out
    assert main(['equations', str(LWR4)]) == 0
    out, _ = capsys.readouterr()
    assert 'backward, link 7' in out and out.count('=') > 100 and ' multiplications' in out
    assert main(['equations', str(LWR4), '--lumped']) != 0
