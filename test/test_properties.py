"""Properties that always hold, on random robots and states."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robots import PANDA_URDF, UR10_URDF, random_robot

import robodyn_ros as rd

MOTORS = {'joints': {'panda_joint2': {'gear_ratio': 100, 'rotor_inertia': 1e-4,
                                      'spin_axis': 'joint'},
                     'panda_joint4': {'gear_ratio': 50, 'rotor_inertia': 2e-4,
                                      'spin_axis': [0, 0.6, 0.8],
                                      'motor_friction': {'viscous': 1e-4, 'coulomb': 0.01}}}}
DYNAMICS = [rd.Dynamics(rd.load_model(PANDA_URDF, motors=MOTORS)),
            rd.Dynamics(rd.load_model(UR10_URDF)),
            *(rd.Dynamics(rd.load_model(random_robot(seed))) for seed in (2, 3, 7))]
robots = st.sampled_from(DYNAMICS)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def state(dynamics, seed, count=3):
    return np.random.default_rng(seed).uniform(-2, 2, (count, dynamics.model.n))


@few
@given(robots, seeds)
def test_mass_matrix_is_symmetric_positive_definite(dynamics, seed):
    mass = dynamics.mass_matrix(state(dynamics, seed)[0])
    np.testing.assert_array_equal(mass, mass.T)
    assert np.linalg.eigvalsh(mass)[0] > 0


@few
@given(robots, seeds)
def test_mdot_minus_2c_is_skew_symmetric(dynamics, seed):
    q, qd, _ = state(dynamics, seed)
    step = 1e-6
    rate = (dynamics.mass_matrix(q + step * qd) - dynamics.mass_matrix(q - step * qd)) / (2 * step)
    skew = rate - 2 * dynamics.coriolis_matrix(q, qd)
    assert np.abs(skew + skew.T).max() < 1e-6 * max(1, np.abs(skew).max())
    np.testing.assert_allclose(dynamics.coriolis_matrix(q, qd) @ qd, dynamics.coriolis(q, qd),
                               atol=1e-10)


@few
@given(robots, seeds)
def test_torque_is_linear_in_the_parameters(dynamics, seed):
    q, qd, qdd = state(dynamics, seed)
    regressor = dynamics.regressor(q, qd, qdd)
    model = dynamics.model
    tau = dynamics.inverse_dynamics(q, qd, qdd)
    scale = np.abs(tau).max() + 1
    np.testing.assert_allclose(regressor @ model.standard_parameters, tau, atol=1e-11 * scale)
    chosen = list(range(3, regressor.shape[1], 5))
    np.testing.assert_allclose(dynamics.regressor(q, qd, qdd, chosen), regressor[:, chosen],
                               atol=1e-12 * scale)


@few
@given(robots, seeds)
def test_forward_dynamics_invert_inverse_dynamics(dynamics, seed):
    q, qd, qdd = state(dynamics, seed)
    tau = dynamics.inverse_dynamics(q, qd, qdd)
    back = dynamics.forward_dynamics(q, qd, tau)
    condition = np.linalg.cond(dynamics.mass_matrix(q))
    np.testing.assert_allclose(back, qdd, atol=1e-13 * condition * (np.abs(tau).max() + 10))


@few
@given(robots, seeds)
def test_components_add_up(dynamics, seed):
    q, qd, qdd = state(dynamics, seed)
    terms = dynamics.terms(q, qd)
    tau = terms.mass_matrix @ qdd + terms.coriolis + terms.gravity + terms.friction
    np.testing.assert_allclose(dynamics.inverse_dynamics(q, qd, qdd), tau,
                               atol=1e-11 * (np.abs(tau).max() + 1))
    np.testing.assert_allclose(dynamics.momentum(q, qd), terms.mass_matrix @ qd,
                               atol=1e-11 * (np.abs(tau).max() + 1))
    kinetic = qd @ terms.mass_matrix @ qd / 2
    assert dynamics.energy(q, qd).kinetic == pytest.approx(kinetic, rel=1e-10)


@few
@given(robots, seeds)
def test_gravity_is_the_gradient_of_potential_energy(dynamics, seed):
    q, qd, _ = state(dynamics, seed)
    step = 1e-6
    gradient = [(dynamics.energy(q + step * e, qd).potential
                 - dynamics.energy(q - step * e, qd).potential) / (2 * step)
                for e in np.eye(dynamics.model.n)]
    np.testing.assert_allclose(dynamics.gravity(q), gradient, atol=1e-5)


@pytest.mark.parametrize('dynamics', DYNAMICS[:2])
def test_energy_balance_along_a_simulated_motion(dynamics, rng):
    """d/dt (K + P) = qd' (tau - friction): integrated with RK4, passivity in integral form."""
    model = dynamics.model
    x = np.concatenate([rng.uniform(-0.5, 0.5, model.n), rng.uniform(-0.5, 0.5, model.n), [0.0]])
    force = rng.uniform(-1, 1, model.n)
    n, step = model.n, 5e-4

    def rate(x):
        q, qd = x[:n], x[n:2 * n]
        tau = dynamics.gravity(q) + 0.2 * force
        power = qd @ (tau - dynamics.friction(qd))
        return np.concatenate([qd, dynamics.forward_dynamics(q, qd, tau), [power]])

    start = sum(dynamics.energy(x[:n], x[n:2 * n]))
    for _ in range(400):
        k1 = rate(x)
        k2 = rate(x + step / 2 * k1)
        k3 = rate(x + step / 2 * k2)
        k4 = rate(x + step * k3)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    change = sum(dynamics.energy(x[:n], x[n:2 * n])) - start
    assert abs(change) > 1e-3
    assert change == pytest.approx(x[-1], rel=1e-3, abs=1e-5)
