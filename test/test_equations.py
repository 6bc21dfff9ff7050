"""Closed forms of the course texts' worked examples, symbol by symbol; and against the kernels."""

import numpy as np
import pytest
from robots import joint, link, planar_2r, robot
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.dynamics.catalogue import Catalogue
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
    with pytest.raises(rd.ValueRangeError, match='1 to 4.*robodyn export'):
        equations(rd.load_model(LWR4))
