"""Robots with many joints: their terms come from smaller kernels."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from robots import joint, link, random_robot, robot

import robodyn_ros as rd
from robodyn_ros.dynamics.articulated_body import is_articulated, solve_articulated
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.dynamics.compiled_model import CompiledModel
from robodyn_ros.dynamics.joint_terms import armature_matrix
from robodyn_ros.dynamics.large_regressor import LargeRegressor
from robodyn_ros.dynamics.large_robots import LARGE, LargeRobot
from robodyn_ros.dynamics.mass_solver import uses_articulated
from robodyn_ros.dynamics.tree import joint_transforms

ROTORS = {'joints': {'j1': {'gear_ratio': 80, 'rotor_inertia': 2e-4, 'spin_axis': [0, 0.6, 0.8]}}}


def chain(count):
    """A chain of joints with skew axes, such as a snake or a cable."""
    parts = [link('l0')]
    for i in range(count):
        parts += [link(f'l{i + 1}', 1.0, (0.05, 0.01, 0.02),
                       (0.01, 1e-3, 2e-3, 0.02, 1e-3, 0.015)),
                  joint(f'j{i + 1}', 'revolute', f'l{i}', f'l{i + 1}', (0.1, 0, 0),
                        (0.3, 0.2, 0.1))]
    return robot(*parts)


def close(value, expected, relative=1e-9):
    assert value.shape == expected.shape
    assert np.abs(value - expected).max() <= relative * np.abs(expected).max()


@pytest.mark.parametrize(('seed', 'base'), [(1, 'fixed'), (4, 'fixed'), (4, 'floating')])
def test_products_of_factors_are_the_mass_matrix(seed, base, rng):
    """Branches, mimic joints, rotors: as from the kernels of small robots."""
    model = rd.load_model(random_robot(seed, 6), base=base, motors=ROTORS)
    large, dynamics = LargeRobot(CompiledModel(model)), rd.Dynamics(model)
    assert not uses_articulated(model, dynamics.catalogue.light)  # it has rotors
    for name in large.names:
        spec = dynamics.kernel(name).spec
        arguments = [np.abs(values) if argument in ('damping', 'step') else values
                     for argument, size in zip(spec.arguments, spec.sizes, strict=True)
                     for values in [rng.normal(size=(3, size))]]
        expected = dynamics.kernel(name).general(*arguments)
        close(large.function(name)(*arguments), expected)
        close(large.function(name)(*(array[0] for array in arguments)), expected[0])


@pytest.mark.slow
def test_a_long_chain(rng):
    """The length of its kernels is proportional to the number of joints."""
    text = chain(75)
    model = rd.load_model(text)
    dynamics, functions = rd.Dynamics(model), Catalogue(model)
    assert model.n > LARGE
    q, qd = rng.normal(size=(2, model.n))
    qdd = rng.normal(size=model.n)
    close(dynamics.mass_matrix(q), functions.mass_matrix(q))
    tau = functions.inverse_dynamics(q, qd, qdd)
    # forward dynamics amplify round-off: compare the torques
    close(functions.inverse_dynamics(q, qd, dynamics.forward_dynamics(q, qd, tau)), tau)
    terms = dynamics.terms(q, qd)
    close(terms.mass_matrix @ qdd + terms.coriolis + terms.gravity + terms.friction, tau)
    dynamics.warm_up('terms', 'forward_dynamics')
    half = rd.Dynamics(rd.load_model(chain(65)))
    for name in ('mass_factors', 'inverse_dynamics'):
        per_joint = [one.kernel(name).operations() / one.n for one in (half, dynamics)]
        assert per_joint[1] < 1.1 * per_joint[0]


@pytest.mark.parametrize(('seed', 'base'), [(1, 'fixed'), (4, 'floating')])
def test_products_of_factors_are_the_regressor(seed, base, rng):
    """Any columns in any order, branches, mimic joints, rotors, friction; the base may move."""
    model = rd.load_model(random_robot(seed, 6), base=base, motors=ROTORS)
    dynamics, count = rd.Dynamics(model), len(model.parameter_names)
    columns = [int(c) for c in rng.permutation(count)[:count * 2 // 3]]
    for moving in (False, True)[:1 if model.floating else 2]:
        large = LargeRegressor(dynamics, columns, moving)
        code = dynamics.regressor_code(columns, moving)
        arguments = [rng.normal(size=(3, size)) for size in code.spec.sizes]
        expected = code.general(*arguments)
        close(large.general(*arguments, out=np.full_like(expected, 7.0)), expected)
        close(large.single(*(array[0] for array in arguments)), expected[0])
        assert (large.nonzero | ~code.nonzero).all() and not large.nonzero.all()


@pytest.mark.slow
def test_a_long_chains_regressor_compiles_in_proportion_to_its_joints(rng, assert_warmed_up):
    model = rd.load_model(chain(75))
    dynamics = rd.Dynamics(model)
    q, qd, qdd = rng.normal(size=(3, 2, model.n))
    assert_warmed_up(dynamics, 'regressor', q[0], qd[0], qdd[0])
    tau, chi = dynamics.inverse_dynamics(q, qd, qdd), model.standard_parameters
    regressor = dynamics.regressor(q, qd, qdd)
    assert regressor.shape == (2, model.n, len(chi))
    close(regressor @ chi, tau)
    equations = dynamics.normal_equations(q, qd, qdd, tau)
    close(equations.matrix @ chi, equations.vector)
    half = rd.Dynamics(rd.load_model(chain(65)))
    per_joint = [one.kernel('regressor_factors').operations() / one.n for one in (half, dynamics)]
    assert per_joint[1] < 1.1 * per_joint[0]


def test_gradients_through_factors_are_those_of_the_regressor(rng):
    """Any columns in any order, branches, mimic joints, rotors, friction; one state and many."""
    model = rd.load_model(random_robot(1, 6), motors=ROTORS)
    dynamics, count = rd.Dynamics(model), len(model.parameter_names)
    columns = [int(c) for c in rng.permutation(count)[:count // 2]] + [0, 0]
    large = LargeRegressor(dynamics, columns)
    motion, g = rng.normal(size=(3, 5, model.n)), rng.normal(size=(5, model.n, len(columns)))
    expected = dynamics.regressor_pullback(*motion, g, columns)
    close(large.pullback(*motion, g), expected)
    close(large.pullback(*motion[:, 0], g[0]), expected[0])
    g[1, 2, 3] = np.inf
    found = large.pullback(*motion, g)
    assert np.isnan(found[1]).all()
    close(found[2:], expected[2:])


@pytest.mark.slow
def test_a_long_chains_gradients_compile_in_proportion_to_its_joints(rng):
    model = rd.load_model(chain(50))
    dynamics, step = rd.Dynamics(model), 1e-6
    columns = [17 * body + k for body in range(model.n) for k in (0, 4, 6, 8, 10)]
    motion, g = rng.normal(size=(3, model.n)), rng.normal(size=(model.n, len(columns)))
    found = dynamics.regressor_pullback(*motion, g, columns)
    for row in range(3):
        change = np.zeros_like(motion)
        change[row] = rng.normal(size=model.n)
        above, below = (np.sum(g * dynamics.regressor(*(motion + sign * change), columns))
                        for sign in (step, -step))
        assert abs((above - below) / (2 * step) - found[row] @ change[row]) < 1e-6 * np.abs(
            found[row] * change[row]).sum()
    with pytest.raises(rd.ShapeError, match=r'cotangent.*\(50, 250\)'):
        dynamics.regressor_pullback(*motion, g.T, columns)


@pytest.mark.slow
def test_two_hundred_joints_agree_with_pinocchio(rng):
    text = chain(200)
    model = rd.load_model(text)
    dynamics, other = rd.Dynamics(model), pin.buildModelFromXML(text)
    other.gravity.linear = np.array(model.gravity)
    data, q = other.createData(), rng.uniform(-3, 3, model.n)
    qd, tau = rng.normal(size=(2, model.n))
    upper = np.triu(pin.crba(other, data, q))
    close(dynamics.mass_matrix(q), upper + np.triu(upper, 1).T)
    close(pin.rnea(other, data, q, qd, dynamics.forward_dynamics(q, qd, tau)), tau)


def test_a_massless_joint_of_a_large_robot_is_named():
    text = chain(65).replace('</robot>', '') + link('tip') + joint(
        'loose', 'revolute', 'l65', 'tip') + '</robot>'
    dynamics = rd.Dynamics(rd.load_model(text))
    still = np.zeros(dynamics.n)
    with pytest.raises(rd.RobodynError, match='loose.*moves no inertia'):
        dynamics.forward_dynamics(still, still, still)


@pytest.mark.parametrize('base', ['fixed', 'floating'])
@pytest.mark.parametrize('seed', range(4))
def test_the_articulated_body_algorithm_solves_the_equations_of_motion(seed, base, rng):
    """Branches, prismatic joints, axes in any direction, with armature and a diagonal."""
    model = rd.load_model(re.sub('<mimic.*?/>', '', random_robot(seed, 7)), base=base)
    model = replace(model, armature=rng.uniform(0, 0.1, len(model.armature)))
    catalogue, armature = Catalogue(model), armature_matrix(model)
    assert is_articulated(catalogue.tree, armature)
    q, force = rng.normal(size=model.nq), rng.normal(size=model.n)
    matrix = catalogue.mass_matrix(q)
    for added in (0.0, rng.uniform(0, 1, model.n)):
        diagonal = np.diagonal(armature) + added
        for tree in (catalogue.tree, catalogue.light):
            x = solve_articulated(tree, joint_transforms(tree, q), diagonal, force)
            close((matrix + np.diag(np.zeros(model.n) + added)) @ x.astype(float), force)


def test_accelerations_are_exact_in_nearly_singular_poses():
    """The first and third axis of each ball joint are nearly parallel: M is nearly singular."""
    text, wide = ball_joints(4), np.longdouble
    model = rd.load_model(text)
    dynamics = rd.Dynamics(model)
    q, qd, tau = np.random.default_rng(3).normal(size=(3, model.n))
    q[1::3] = np.pi / 2 + 1e-4
    mass = dynamics.mass_matrix(q)
    assert np.linalg.cond(mass) > 1e8
    exact = dynamics.catalogue.forward_dynamics(*(x.astype(wide) for x in (q, qd, tau)))
    close(dynamics.forward_dynamics(q, qd, tau), exact.astype(float), 1e-10)
    bias = dynamics.inverse_dynamics(q, qd, 0 * qd)
    solved = np.linalg.solve(mass, tau - bias)
    assert np.abs(solved - exact).max() > 1e-9 * np.abs(exact).max()  # those from M are not


def ball_joints(count):
    """A chain of links whose joints have three axes each, without mass between them."""
    parts, parent = [link('l0')], 'l0'
    for i in range(count):
        for k, axis in enumerate(((1, 0, 0), (0, 1, 0), (0, 0, 1))):
            child = f'l{i + 1}' if k == 2 else f'b{i}{k}'
            body = (1.0, (0.05, 0.01, -0.3), (0.03, 1e-3, 2e-3, 0.02, 1e-3, 0.015))
            parts += [link(child, *(body if k == 2 else ())),
                      joint(f'j{i}{k}', 'revolute', parent, child,
                            (0, 0, -0.4 * (i > 0 and k == 0)), axis=axis)]
            parent = child
    return robot(*parts)
