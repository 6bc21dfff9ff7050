"""Lagrange-Euler as a second formulation: against the recursions, and against its own definition.

The recursions are run on floats (`Catalogue`), so that no kernel is compiled.
"""

import json

import numpy as np
import pytest
from robots import PANDA_URDF, joint, link, planar_2r, random_robot, robot

import robodyn_ros as rd
from robodyn_ros.check import compare_formulations
from robodyn_ros.check.formulations import LIMIT
from robodyn_ros.commands.main import main
from robodyn_ros.dynamics.catalogue import Catalogue

SPINNING = {'joints': {
    'j1': {'gear_ratio': 50, 'rotor_inertia': 0.01, 'spin_axis': [0, 0, 1]},
    'j2': {'gear_ratio': 30, 'rotor_inertia': 0.02, 'spin_axis': [0.6, 0, 0.8]}}}


def robots():
    yield from (rd.load_model(random_robot(seed), gravity=(1.0, -2.0, -9.0))
                for seed in range(6))
    yield rd.load_model(planar_2r(), motors=SPINNING)
    yield rd.load_model(robot(  # the second rotor spins on a link that turns
        link('base'), link('a', 1.0, (0.1, 0, 0.2)), link('b', 2.0, (0, 0.3, 0.1)),
        joint('j1', 'revolute', 'base', 'a'), joint('j2', 'revolute', 'a', 'b', (0.4, 0, 0),
                                                    axis=(0, 1, 0))), motors=SPINNING)
    yield rd.load_model(PANDA_URDF)


@pytest.mark.parametrize('model', list(robots()), ids=lambda model: model.name)
def test_it_agrees_with_the_recursions_to_round_off(model, rng):
    lagrange, recursion = rd.LagrangeEuler(model, friction_width=0.01), Catalogue(model, 0.01)
    q, qd, last = rng.uniform(-1.5, 1.5, (3, model.n))

    def same(actual, expected):
        expected = np.asarray(expected, float)
        np.testing.assert_allclose(actual, expected, rtol=0,
                                   atol=1e-13 * max(1.0, np.abs(expected).max()))

    same(lagrange.mass_matrix(q), recursion.mass_matrix(q))
    same(lagrange.coriolis_matrix(q, qd), recursion.coriolis_matrix(q, qd))
    same(lagrange.coriolis(q, qd), recursion.coriolis(q, qd))
    same(lagrange.gravity(q), recursion.gravity(q))
    same(lagrange.momentum(q, qd), recursion.momentum(q, qd))
    same(lagrange.energy(q, qd), recursion.energy(q, qd))
    same(lagrange.friction(qd, q), recursion.friction(qd, q))
    same(lagrange.inverse_dynamics(q, qd, last), recursion.inverse_dynamics(q, qd, last))
    tau = lagrange.inverse_dynamics(q, qd, last)
    np.testing.assert_allclose(lagrange.forward_dynamics(q, qd, tau), last, atol=1e-11)


def test_the_symbols_satisfy_their_definition(rng):
    model = rd.load_model(random_robot(3))
    lagrange = rd.LagrangeEuler(model)
    q, qd = rng.uniform(-1, 1, (2, model.n))
    step = 1e-6
    derivatives = np.array([
        (lagrange.mass_matrix(q + step * e) - lagrange.mass_matrix(q - step * e)) / (2 * step)
        for e in np.eye(model.n)])
    np.testing.assert_allclose(lagrange.mass_matrix_derivatives(q), derivatives, atol=1e-8)
    c, h = lagrange.christoffel_symbols(q), lagrange.velocity_coefficients(q)
    i, j, k = 0, 1, 2
    assert c[i, j, k] == pytest.approx(0.5 * (
        derivatives[i][k, j] + derivatives[j][k, i] - derivatives[k][i, j]), abs=1e-8)
    assert h[i, j, k] == pytest.approx(derivatives[k][i, j] - 0.5 * derivatives[i][j, k], abs=1e-8)
    assert np.abs(h - h.swapaxes(1, 2)).max() > 1e-3  # h is not symmetric, c is
    np.testing.assert_allclose(c, c.swapaxes(0, 1), atol=1e-14)
    # dM/dt - 2 C is skew-symmetric
    skewed = np.einsum('kij,k->ij', derivatives, qd) - 2 * lagrange.coriolis_matrix(q, qd)
    np.testing.assert_allclose(skewed, -skewed.T, atol=1e-7)
    parts = lagrange.velocity_terms(q, qd)
    np.testing.assert_allclose(parts.centrifugal + parts.coriolis, lagrange.coriolis(q, qd),
                               atol=1e-13)


def test_centrifugal_and_coriolis_terms_of_the_planar_2r():
    m2, a1, l2 = 1.5, 0.7, 0.25
    lagrange = rd.LagrangeEuler(rd.load_model(planar_2r(m2=m2, a1=a1, l2=l2)))
    q, qd = np.array([0.3, 0.9]), np.array([2.0, -3.0])
    b = m2 * a1 * l2 * np.sin(q[1])
    parts = lagrange.velocity_terms(q, qd)
    np.testing.assert_allclose(parts.centrifugal, [-b * qd[1]**2, b * qd[0]**2], atol=1e-14)
    np.testing.assert_allclose(parts.coriolis, [-2 * b * qd[0] * qd[1], 0.0], atol=1e-14)


def test_batches_wrenches_and_links(rng):
    model = rd.load_model(planar_2r(), gravity=(0, -9.8, 0))
    lagrange = rd.LagrangeEuler(model)
    q, qd, qdd = rng.normal(size=(3, 4, 2))
    force = {'lower': [1.0, 2.0, 0.0, 0.0, 0.0, 3.0]}
    tau = lagrange.inverse_dynamics(q, qd, qdd, force)
    for k in range(4):
        np.testing.assert_allclose(tau[k], lagrange.inverse_dynamics(q[k], qd[k], qdd[k], force))
    np.testing.assert_allclose(lagrange.forward_dynamics(q, qd, tau, force), qdd, atol=1e-12)
    # the lower link's frame is at the end of the upper one
    x, y = 0.7 * np.cos(q[0, 0]), 0.7 * np.sin(q[0, 0])
    np.testing.assert_allclose(lagrange.jacobian(q[0], 'lower')[[0, 1, 5]],
                               [[-y, 0], [x, 0], [1, 1]], atol=1e-14)
    assert lagrange.mass_matrix(np.zeros((0, 2))).shape == (0, 2, 2)
    assert lagrange.christoffel_symbols(q).shape == (4, 2, 2, 2)
    with pytest.raises(rd.ShapeError, match=r'\(2,\) or \(N, 2\)'):
        lagrange.mass_matrix(np.zeros(3))
    with pytest.raises(rd.ValueRangeError, match='fixed'):
        rd.LagrangeEuler(rd.load_model(planar_2r(), base='floating'))


def test_the_command_compares_three_formulations(tmp_path, capsys):
    path = tmp_path / 'arm.urdf'
    path.write_text(planar_2r())
    assert main(['check', '--formulations', '--json', str(path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed['agree'] is True
    assert set(printed['newton_euler']) == {'mass_matrix', 'coriolis_matrix', 'coriolis',
                                            'gravity', 'torque'}
    assert all(value < 1e-12 for table in ('newton_euler', 'linear_form')
               for value in printed[table].values())
    assert main(['check', '--formulations', str(path)]) == 0
    assert 'three formulations agree' in capsys.readouterr().out


def test_a_formulation_that_differs_is_found():
    model = rd.load_model(planar_2r())
    other = rd.Dynamics(model.with_payload('lower', 1e-5, (0.1, 0, 0)))
    found = compare_formulations(model, dynamics=other)
    assert not found.agree and found.exit_code == 1
    assert found.newton_euler['mass_matrix'] > LIMIT
    assert 'differ by more than 1e-09' in found.to_text()
