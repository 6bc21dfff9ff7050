"""Springs and counterbalances at joints: equations of motion, files, engine, identification."""

import numpy as np
import pytest
from robots import planar_2r
from synthetic import LWR4, coloured_noise, fourier_motion, log_of

import robodyn_ros as rd
from robodyn_ros.export.symbolic import equations
from robodyn_ros.identification.choice_errors import Folds
from robodyn_ros.identification.writing import motors_of
from robodyn_ros.report.tables import parameter_table
from robodyn_ros.simulation import Simulation

SPRINGS = {'j1': {'linear': 40.0}, 'j2': {'linear': -3.0, 'sine': 5.0, 'cosine': 2.0}}


@pytest.fixture(scope='module')
def arm():
    """A planar arm with a spring at the first joint, and a crank at the second."""
    return rd.load_model(planar_2r(), motors={'joints': {
        name: {'spring': spring} for name, spring in SPRINGS.items()}})


def by_hand(q):
    return np.column_stack([40.0 * q[:, 0],
                            -3.0 * q[:, 1] + 5.0 * np.sin(q[:, 1]) + 2.0 * np.cos(q[:, 1])])


def test_springs_are_part_of_gravity_and_energy(arm, rng):
    dynamics, bare = rd.Dynamics(arm), rd.Dynamics(rd.load_model(planar_2r()))
    q, qd, qdd = rng.normal(size=(3, 20, 2))
    for name, arguments in (('gravity', (q,)), ('inverse_dynamics', (q, qd, qdd))):
        np.testing.assert_allclose(getattr(dynamics, name)(*arguments)
                                   - getattr(bare, name)(*arguments), by_hand(q), atol=1e-12)
    np.testing.assert_allclose(dynamics.coriolis(q, qd), bare.coriolis(q, qd), atol=1e-12)
    np.testing.assert_allclose(dynamics.forward_dynamics(
        q, qd, dynamics.inverse_dynamics(q, qd, qdd)), qdd, atol=1e-9)
    other, step = rd.LagrangeEuler(arm), 1e-6 * np.eye(2)
    np.testing.assert_allclose(other.gravity(q), dynamics.gravity(q), atol=1e-12)
    for j in range(2):
        high, low = (dynamics.energy(q + sign * step[j], qd * 0).potential for sign in (1, -1))
        np.testing.assert_allclose((high - low) / 2e-6, dynamics.gravity(q)[:, j], atol=1e-6)
    np.testing.assert_allclose(other.energy(q, qd).potential, dynamics.energy(q, qd).potential)


def test_springs_survive_files(arm, tmp_path):
    again = rd.load_model(planar_2r(), motors=motors_of(arm))
    np.testing.assert_array_equal(again.spring, arm.spring)
    rd.write_mjcf(arm, tmp_path / 'arm.xml')
    read = rd.load_model(tmp_path / 'arm.xml')
    np.testing.assert_array_equal(read.spring[:, 0], arm.spring[:, 0])
    with pytest.raises(rd.UnknownNameError, match='stiff'):
        rd.load_model(planar_2r(), motors={'joints': {'j1': {'spring': {'stiff': 1.0}}}})
    with pytest.raises(rd.ValueRangeError, match='spring'):
        equations(arm)


def test_the_engine_has_the_springs_of_the_description(arm):
    """Gravity torque holds the arm still: that of the springs is part of it."""
    simulation = Simulation(planar_2r(), motors=motors_of(arm), limit_efforts=False)
    q = np.array([0.4, -0.7])
    simulation.reset(q)
    simulation.step(rd.Dynamics(arm).gravity(q), 50)
    np.testing.assert_allclose(simulation.position, q, atol=1e-6)


def test_springs_are_found_where_they_are():
    """A stiffness unknown to the description; and nothing where there is none."""
    nominal = rd.load_model(LWR4.parent / 'planar_2r.urdf.xacro')
    true = rd.load_model(LWR4.parent / 'planar_2r.urdf.xacro', motors={'joints': {
        'joint2': {'spring': {'linear': 4.0}, 'link_friction': {'viscous': 0.2, 'coulomb': 0.1}}}})
    results = []
    for model in (true, nominal):
        motion = fourier_motion(model, np.random.default_rng(3), 20, 100)
        tau = rd.Dynamics(model).inverse_dynamics(*motion[1:])
        noise = coloured_noise(np.random.default_rng(4), len(tau), 0.01 * np.ptp(tau, axis=0), 0.5)
        results.append(rd.identify(nominal, log_of(model, motion, noise=noise)))
    found, plain = results
    assert found.model.spring[1, 0] == pytest.approx(4.0, rel=0.05)
    assert not found.model.spring[0].any() and not plain.model.spring.any()
    assert 'spring of joint2' in found.friction_choice_.to_text()
    row = next(row for row in parameter_table(found).rows if row[0] == 'Kl:joint2')
    assert row[1] == 'N m/rad'


def test_a_term_must_hold_for_whole_logs():
    """A column that explains parts of either log, with opposite signs, is not predicted by it."""
    rng = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], 10)
    grams = []
    for sign in signs:
        x, y = rng.normal(size=(2, 50))
        data = np.column_stack([x, y, x + sign * y])
        grams.append(data.T @ data)
    grams = np.array(grams)
    folds = Folds(grams[:, None], np.full((20, 1), 50.0), grams, 1.0,
                  np.repeat([0, 1], 10))
    before, after = folds.whole_logs().additions([0], [1])
    assert len(before) == 2 and after.mean() > 1.5 * before.mean()


def test_a_spring_must_hold_at_positions_that_the_fit_has_not_seen():
    """A torque that rises in the middle of the range alone, where a line explains much of it."""
    model = rd.load_model(LWR4.parent / 'planar_2r.urdf.xacro')
    motion = fourier_motion(model, np.random.default_rng(3), 20, 100)
    log = log_of(model, motion, noise=np.random.default_rng(4).normal(
        scale=0.1, size=motion[1].shape))
    x = motion[1][:, 0] - motion[1][:, 0].mean()
    x /= 0.25 * np.abs(x).max()
    log.tau[:, 0] += 1.2 * x * np.exp(-x**2)
    assert not rd.identify(model, log).model.spring.any()
