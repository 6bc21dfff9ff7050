"""Robots with many joints: their terms come from smaller kernels."""

import numpy as np
import pinocchio as pin
import pytest
from robots import joint, link, random_robot, robot

import robodyn_ros as rd
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.dynamics.compiled_model import CompiledModel
from robodyn_ros.dynamics.large_robots import LARGE, LargeRobot

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
    for name in LargeRobot.names:
        spec = dynamics.kernel(name).spec
        arguments = [np.abs(values) if argument in ('damping', 'step') else values
                     for argument, size in zip(spec.arguments, spec.sizes, strict=True)
                     for values in [rng.normal(size=(3, size))]]
        expected = dynamics.kernel(name).general(*arguments)
        close(large.function(name)(*arguments), expected)
        close(large.function(name)(*(array[0] for array in arguments)), expected[0])


def test_a_long_chain(rng):
    """The length of its kernels is in proportion to the number of joints."""
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
