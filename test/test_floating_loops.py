"""Closed loops on a floating base: a four-bar linkage and a leg of Cassie in free flight."""

import pickle

import numpy as np
import pinocchio as pin
import pytest
from oracle import FreeFlyer
from robots import joint, link, robot
from test_passive_joints import FOLDER, MECHANISMS, loops_of

import robodyn_ros as rd

TEXT = robot(
    link('base', 3.0, (0.1, 0.02, 0), (0.05, 0, 0, 0.06, 0, 0.08)),
    *(link(name, 1.0, (0.1, 0.01, 0.02), (0.01, 0, 0, 0.02, 0, 0.02))
      for name in ('crank', 'rod', 'rocker')), link('end_of_rod'), link('end_of_rocker'),
    joint('a', 'continuous', 'base', 'crank', (0, 0, 0.1)),
    joint('b', 'continuous', 'crank', 'rod', (0.3, 0, 0)),
    joint('c', 'continuous', 'base', 'rocker', (0.5, 0, 0.1)),
    joint('d', 'fixed', 'rod', 'end_of_rod', (0.5, 0, 0)),
    joint('e', 'fixed', 'rocker', 'end_of_rocker', (0.4, 0, 0)))
PAIR = 'end_of_rod', 'end_of_rocker'
LOOPS = {'driven': ['a'], 'cuts': [{'links': list(PAIR)}],
         'start': {'a': 1.0, 'b': -0.6, 'c': 1.9}}


@pytest.fixture(scope='module')
def linkage():
    return rd.FloatingLoopDynamics(rd.load_model(TEXT, base='floating'), LOOPS)


def state(dynamics, rng, speed=1.0):
    turn = rng.normal(size=4)
    free = [dynamics.model.joint_names.index(one) for one in dynamics.joint_names]
    q = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn),
                        dynamics.fixed.home[free]])
    return q, speed * rng.normal(size=dynamics.n), rng.normal(size=dynamics.n)


def check_forward_dynamics(dynamics, text, pairs, rows, rng):
    """Gauss' principle with Pinocchio's mass matrix, bias and Jacobians of the cuts."""
    oracle = FreeFlyer(dynamics.model, text)
    q, qd, tau = state(dynamics, rng)
    free = [6 + dynamics.model.joint_names.index(one) for one in dynamics.joint_names]
    motion, torque = dynamics.motion(q, qd), np.zeros(dynamics.model.n)
    torque[:6], torque[free] = tau[:6], tau[6:]
    full, speed = motion.q, motion.qd
    jacobian, drift = oracle.constraints(full, speed, [(*pair, rows) for pair in pairs])
    assert np.abs(jacobian @ speed).max() < 1e-9
    expected = oracle.constrained(full, speed, torque, jacobian, drift)
    found = dynamics.forward_dynamics(q, qd, tau)
    assert np.abs(motion.qdd(found) - expected).max() < 1e-9 * np.abs(expected).max()
    return oracle, motion, q, qd, found, tau


def test_a_linkage_agrees_with_the_free_flyer_of_pinocchio(linkage, rng):
    oracle, motion, q, qd, qdd, tau = check_forward_dynamics(linkage, TEXT, [PAIR], 3, rng)
    np.testing.assert_allclose(linkage.inverse_dynamics(q, qd, qdd), tau, atol=1e-9)
    terms = linkage.terms(q, qd)
    np.testing.assert_allclose(terms.mass_matrix @ qdd + terms.coriolis + terms.gravity
                               + terms.friction, tau, atol=1e-9)
    np.testing.assert_allclose(linkage.coriolis_matrix(q, qd) @ qd, linkage.coriolis(q, qd),
                               atol=1e-9)
    np.testing.assert_allclose(linkage.regressor(q, qd, qdd) @ linkage.model.standard_parameters,
                               tau, atol=1e-9)
    np.testing.assert_allclose(linkage.base_wrench(q, qd, qdd), -tau[:6], atol=1e-9)
    pin.computeCentroidalMomentum(oracle.pin, oracle.data, oracle.q(motion.q),
                                  oracle.v(motion.qd))
    np.testing.assert_allclose(linkage.centroidal_momentum(q, qd), oracle.data.hg.vector,
                               atol=1e-10)
    np.testing.assert_allclose(linkage.center_of_mass(q), oracle.data.com[0], atol=1e-12)


@pytest.mark.slow
def test_a_leg_of_cassie_agrees_with_the_free_flyer_of_pinocchio(rng):
    text, name = (FOLDER / 'cassie_like.urdf').read_text(), 'cassie_like'
    model = rd.load_model(text, base='floating').without_friction()
    leg = rd.dynamics_of(model, loops_of(name))
    assert leg.n == 13 and len(leg.passive_names) == 2
    check_forward_dynamics(leg, text, MECHANISMS[name][1], 6, rng)


def test_forces_at_the_cuts_complete_those_of_the_tree(linkage, rng):
    """With them, the tree needs no torque at the dependent joints."""
    q, qd, qdd = state(linkage, rng)
    motion, force = linkage.motion(q, qd), linkage.constraint_forces(q, qd, qdd)[0]
    torque = linkage.tree.inverse_dynamics(motion.q, motion.qd, motion.qdd(qdd), {
        PAIR[1]: force, PAIR[0]: -force})
    tau = linkage.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(torque, [*tau, 0, 0], atol=1e-9)


def test_torques_of_the_motors_alone(linkage, rng):
    """The motor moves as wanted, and nothing but the wrench on the rod acts on the base."""
    q, qd, _ = state(linkage, rng)
    push, wanted = {'rod': rng.normal(size=6)}, rng.normal(size=(2, 1))
    torques, qdd = linkage.driven_torques(q, qd, wanted, f_ext=push)
    np.testing.assert_allclose(qdd[:, 6:], wanted)
    for k in range(2):
        back = linkage.forward_dynamics(q, qd, np.append(np.zeros(6), torques[k]), f_ext=push)
        np.testing.assert_allclose(back, qdd[k], atol=1e-9 * np.abs(qdd).max())
    with pytest.raises(rd.ShapeError, match='the same N for all'):
        linkage.driven_torques(np.array([q, q]), qd, np.zeros((3, 1)))


def test_a_base_that_can_turn_without_inertia_is_refused(rng):
    """A massless base carries the linkage by a single joint."""
    light = TEXT.replace('</robot>', link('root') + joint('j', 'revolute', 'root', 'base', axis=(
        0.6, 0, 0.8)) + '</robot>')
    dynamics = rd.FloatingLoopDynamics(rd.load_model(light, base='floating'),
                                       LOOPS | {'driven': ['a', 'j']})
    q, qd, tau = state(dynamics, rng)
    with pytest.raises(rd.ValueRangeError, match='mass matrix is singular'):
        dynamics.forward_dynamics(q, qd, tau)
    assert np.isfinite(dynamics.driven_torques(q, qd, [1.0, 1.0])[0]).all()  # a motor holds it


def test_wrenches_batches_and_copies(linkage, rng):
    q, qd, qdd = (np.array(part) for part in zip(
        *(state(linkage, rng) for _ in range(3)), strict=True))
    push = {'rod': rng.normal(size=6)}
    tau = linkage.inverse_dynamics(q, qd, qdd, f_ext=push)
    for k in range(3):
        np.testing.assert_allclose(tau[k], linkage.inverse_dynamics(q[k], qd[k], qdd[k])
                                   - linkage.jacobian(q[k], 'rod').T @ push['rod'], atol=1e-9)
    np.testing.assert_allclose(linkage.forward_dynamics(q, qd, tau, f_ext=push), qdd, atol=1e-8)
    again = pickle.loads(pickle.dumps(linkage))
    np.testing.assert_allclose(again.mass_matrix(q[0]), linkage.mass_matrix(q)[0])
    assert linkage.reachable(q).all() and 0 < linkage.singularity(q[0]) < 1


def test_free_flight_conserves_energy_and_momentum(linkage, rng):
    q, qd, _ = state(linkage, rng, 0.7)
    motion = rd.simulate(linkage, q=q, qd=qd, duration=0.3, times=[0.0, 0.15, 0.3])
    energy = sum(linkage.energy(motion.q, motion.qd))
    momentum = linkage.centroidal_momentum(motion.q, motion.qd)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    np.testing.assert_allclose(momentum[:, 3:], momentum[:1, 3:].repeat(3, 0), atol=1e-6)
    assert abs(motion.q[-1, 7] - motion.q[0, 7]) > 0.05


def test_what_does_not_fit_is_refused(linkage, tmp_path):
    with pytest.raises(rd.ValueRangeError, match='FloatingLoopDynamics'):
        rd.ClosedLoopDynamics(linkage.model, LOOPS)
    with pytest.raises(rd.ValueRangeError, match='ClosedLoopDynamics is for'):
        rd.FloatingLoopDynamics(rd.load_model(TEXT), LOOPS)
    with pytest.raises(rd.ValueRangeError, match='export of closed loops'):
        rd.export_c(linkage, tmp_path)
    with pytest.raises(rd.ValueRangeError, match='base parameters of closed loops'):
        rd.base_parameters(linkage)
