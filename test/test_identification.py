"""Identification of robots whose true parameters are known."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from synthetic import coloured_noise, fourier_motion, log_of, lwr4_with_drives, own_robot

import robodyn_ros as rd
from robodyn_ros.identification.consistency import (
    consistent_bodies,
    inertial_parameters_of,
    pseudo_inertia,
)
from robodyn_ros.identification.friction import is_friction
from robodyn_ros.identification.statistics import significant

EXACT = {'filter': rd.FilterSettings(cutoff=90.0), 'decimation': 0.0, 'friction': 'coulomb'}


@pytest.fixture(scope='module')
def true():
    return lwr4_with_drives()


@pytest.fixture(scope='module')
def motion(true):
    return fourier_motion(true, np.random.default_rng(21), 30, 250)


@pytest.fixture(scope='module')
def result(true, motion):
    """An identification with realistic noise, from a wrong description."""
    tau = rd.Dynamics(true).inverse_dynamics(*motion[1:])
    noise = coloured_noise(np.random.default_rng(22), len(tau),
                           0.01 * np.abs(tau).max(axis=0), 0.9)
    nominal = lwr4_with_drives(np.random.default_rng(1), 0.2)
    return rd.identify(nominal, log_of(true, motion, noise=noise), friction='coulomb')


def exact_log(model, rng, seconds=25, **options):
    """A periodic log whose frequency-domain derivatives are exact."""
    return log_of(model, fourier_motion(model, rng, seconds, 200, frequency=0.2), period=5.0,
                  **options)


def test_without_noise_the_true_parameters_are_recovered(true, rng):
    log = exact_log(true, rng)
    result = rd.identify(true.with_standard_parameters(true.standard_parameters * 0.7), log,
                         decimation=0.0, friction='coulomb')
    want = result.base_.matrix @ np.array(
        [true.standard_parameters[c.standard] for c in result.linear.columns])
    np.testing.assert_allclose(result.estimate_.values, want,
                               atol=1e-8 * np.abs(want).max(), rtol=1e-8)
    assert result.training_.total < 1e-8


@pytest.mark.parametrize('decimation', [0.0, 5.0])
def test_a_delay_is_found_whatever_the_noise(true, motion, decimation):
    """Without a parallel filter, most of the slope of the measured torque would be noise."""
    delay = 0.002  # s, half a sample
    t, *states = motion
    tau = rd.Dynamics(true.without_friction()).inverse_dynamics(*states)
    late = scipy.interpolate.CubicSpline(t, tau)(t - delay)
    noise = np.random.default_rng(4).normal(size=tau.shape) * 0.03 * np.abs(tau).max(axis=0)
    log = rd.Log(t, states[0], late + noise, joint_names=true.joint_names)
    result = rd.identify(true, log, friction='coulomb', decimation=decimation)
    u = result.uncertainty_
    assert abs(u.delay - delay) < 3 * u.delay_deviation < 0.001
    want = result.base_.matrix @ [0.0 if is_friction(column.term) else value for column, value in
                                  zip(result.linear.columns, result.linear.nominal(), strict=True)]
    inside = (u.interval[:, 0] <= want) & (want <= u.interval[:, 1])
    assert inside.mean() > 0.9, inside.mean()


def test_left_out_slow_samples_show_no_width(true, motion):
    """A joint that sticks at reversals would seem to change its friction slowly."""
    tau = rd.Dynamics(true, friction_width=0.05).inverse_dynamics(*motion[1:])
    log = log_of(true, motion)
    log = rd.Log(log.t, log.q, tau, joint_names=true.joint_names)
    assert rd.identify(true, log).linear.friction.width > 0
    assert rd.identify(true, log, slow=0.1).linear.friction.width == 0
    assert rd.identify(true, log, slow=0.1, friction_width=0.03).linear.friction.width == 0.03


@pytest.mark.slow
def test_intervals_cover_the_truth(true, motion):
    """95 % intervals contain the truth in 92 to 98 % of cases with realistic coloured noise.

    Durbin-Watson is 0.3 to 0.5 here. Plain standard deviations cover far less.
    """
    rng = np.random.default_rng(3)
    tau = rd.Dynamics(true).inverse_dynamics(*motion[1:])
    inside, plain = [], []
    for _ in range(25):
        noise = coloured_noise(rng, len(tau), 0.02 * np.abs(tau).max(axis=0), 0.95)
        result = rd.identify(true, log_of(true, motion, noise=noise), friction='coulomb',
                             filter=rd.FilterSettings(cutoff=3.36), decimation=4.0)
        want = result.base_.matrix @ result.linear.nominal()
        wrong = np.abs(result.estimate_.values - want)
        inside.append(wrong < 1.96 * result.uncertainty_.deviation)
        plain.append(wrong < 1.96 * result.uncertainty_.plain_deviation)
        assert (result.uncertainty_.durbin_watson < 1).all()
    assert 0.92 <= np.mean(inside) <= 0.98
    assert np.mean(plain) < 0.85


def test_result_predicts_unseen_motion(true, result):
    other = fourier_motion(true, np.random.default_rng(8), 20, 250)
    validation = rd.validate(result, log_of(true, other))
    assert validation.verdict == 'good' and validation.total < 0.01
    assert validation.nominal_total > 5 * validation.total
    np.testing.assert_allclose(result.predict(*(x[:50] for x in other[1:])),
                               rd.Dynamics(true).inverse_dynamics(*(x[:50] for x in other[1:])),
                               atol=0.02 * np.abs(validation.measured[0]).max())
    one = result.predict(other[1][0], other[2][0], other[3][0])
    assert one.shape == (7,)
    size = np.sqrt((validation.measured[0]**2).mean(axis=0))
    assert (validation.rms_filtered < 0.1 * size).all()
    assert 'verdict: good' in validation.to_text() and '~' in result.to_text()


def test_the_model_is_physical_and_predicts_as_well(true, result, rng):
    assert consistent_bodies(result.model.inertial_parameters).all()
    assert (result.model.armature >= 0).all()
    other = log_of(true, fourier_motion(true, np.random.default_rng(9), 20, 250))
    free, physical = rd.validate(result, other), rd.validate(result, other, consistent=True)
    assert physical.total < free.total + 0.003
    q, qd, qdd = rng.normal(size=(3, 20, 7)) * 0.5
    np.testing.assert_allclose(rd.Dynamics(result.model).inverse_dynamics(q, qd, qdd),
                               result.predict(q, qd, qdd, consistent=True), rtol=1e-6, atol=1e-6)


def test_validation_refuses_the_data_of_the_fit(true, motion):
    log = log_of(true, motion)
    first, second = log.split(0.6)
    result = rd.identify(true, first, friction='coulomb')
    with pytest.raises(rd.IdentificationError, match='was used for the fit'):
        rd.validate(result, first)
    assert rd.validate(result, second).total < 0.01


def test_links_and_drives_are_identified_from_two_torques(rng):
    true = lwr4_with_drives()
    chi = true.standard_parameters.reshape(-1, 17).copy()
    chi[:, 14:17] = chi[:, 10:13] * 0.5
    true = true.with_standard_parameters(chi.ravel())
    log = exact_log(true, rng)
    links = rd.Dynamics(true.without_motors().with_standard_parameters(
        np.where(np.arange(17 * 7) % 17 < 13, chi.ravel(), 0)))
    motors = rd.Dynamics(true)
    period = log.period
    t, q, qd, qdd = fourier_motion(true, np.random.default_rng(2), 25, 200, frequency=0.2)
    log = rd.Log(t, q, links.inverse_dynamics(q, qd, qdd), period=period,
                 tau_motor=motors.inverse_dynamics(q, qd, qdd), joint_names=true.joint_names)
    for kind, count in (('model2', 92), ('model3', 28), ('model1', 64)):
        result = rd.identify(true, log, kind=kind, decimation=0.0, friction='coulomb')
        want = result.base_.matrix @ result.linear.nominal()
        assert result.base_.count == count
        np.testing.assert_allclose(result.estimate_.values, want, atol=1e-7 * np.abs(want).max())
    with pytest.raises(rd.LogError, match='tau_motor'):
        rd.identify(true, rd.Log(t, q, log.tau, joint_names=true.joint_names), kind='model2')


@pytest.mark.parametrize('known', [None, 3.28])
def test_payload_from_experiments_with_and_without(rng, known):
    true = lwr4_with_drives()
    payload = rd.Inertial(3.28, np.array([0.05, 0.02, 0.06]), np.diag([0.01, 0.012, 0.008]))
    loaded = true.with_payload('tip', payload.mass, payload.com, payload.inertia)
    logs = [exact_log(true, rng), exact_log(loaded, rng, loaded=True)]
    logs[1].loaded = True
    result = rd.identify(true, logs, payload='tip', payload_mass=known, decimation=0.0,
                         friction='coulomb')
    found = {c.name: v for c, v in zip(result.linear.columns, result.theta_, strict=True)}
    assert found['m:payload'] == pytest.approx(3.28, rel=1e-6)
    tip = true.link_frames['tip'].translation  # the payload's parameters are in link 7's frame
    np.testing.assert_allclose([found[f'm{axis}:payload'] for axis in 'xyz'],
                               3.28 * (payload.com + tip), rtol=1e-5, atol=1e-6)
    assert result.base_.count == (79 if known is None else 78)


def test_drive_gains_with_a_known_payload(rng):
    true = lwr4_with_drives()
    payload = rd.Inertial(5.0, np.array([0.08, 0.0, 0.1]), np.diag([0.02, 0.02, 0.02]))
    loaded = true.with_payload('tip', payload.mass, payload.com, payload.inertia)
    gains = np.array([30.0, 30.0, 25.0, 25.0, 20.0, 15.0, 15.0])
    logs = [exact_log(true, rng), exact_log(loaded, rng, loaded=True)]
    for log in logs:
        log.tau = log.tau / gains
    found = rd.identify_drive_gains(true, logs, payload, 'tip')
    np.testing.assert_allclose(found.values, gains, rtol=1e-5)
    with pytest.raises(rd.IdentificationError, match='with and without'):
        rd.identify_drive_gains(true, logs[:1], payload, 'tip')


def test_a_part_of_the_robot(rng):
    true = lwr4_with_drives()
    chi = true.standard_parameters.reshape(-1, 17).copy()
    chi[6, :10] *= 2.0
    heavier = true.with_standard_parameters(chi.ravel())
    result = rd.identify(true, exact_log(heavier, rng), joints=['joint7'], decimation=0.0,
                         friction='coulomb')
    assert all(name.endswith(':joint7') for name in result.base_.names)
    np.testing.assert_array_equal(result.model.inertial_parameters[:6],
                                  true.inertial_parameters[:6])
    assert rd.validate(result, exact_log(heavier, rng)).total < 1e-6


def test_known_extra_torque_and_one_joint_of_torques(rng):
    true = lwr4_with_drives()
    log = exact_log(true, rng)
    spring = 20 * np.sin(np.asarray(log.q))
    log.tau, log.extra = log.tau + spring, spring
    result = rd.identify(true, log, decimation=0.0, friction='coulomb')
    want = result.base_.matrix @ result.linear.nominal()
    np.testing.assert_allclose(result.estimate_.values, want, atol=1e-3 * np.abs(want).max())
    one = rd.identify(true, log, decimation=0.0, friction='coulomb', torques_of=['joint4'])
    assert 'not excited at all' in ' '.join(one.notes)


def test_friction_is_chosen_by_the_error_on_data_left_out(true, motion, rng):
    t, q, qd, qdd = motion
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    fast = np.quantile(np.abs(qd), 0.95, axis=0)
    stick = 6.0 * np.sign(qd) * np.exp(-np.abs(qd) / (0.1 * fast))
    log = rd.Log(t, q, tau + stick, joint_names=true.joint_names)
    result = rd.identify(true, log)
    terms = result.linear.friction.terms
    assert [terms.get((body, 'l')) for body in range(7)] == [('Fs',)] * 7
    plain = rd.identify(true, rd.Log(t, q, tau, joint_names=true.joint_names))
    noise = coloured_noise(rng, len(tau), 0.01 * np.abs(tau).max(axis=0), 0.9)
    noisy = rd.identify(true, rd.Log(t, q, tau + noise, joint_names=true.joint_names))
    assert noisy.linear.friction.model == 'coulomb'
    assert plain.friction_choice_.errors['coulomb', 0.0] < 0.01


def test_huber_withstands_outliers(true, motion, rng):
    t, q, qd, qdd = motion
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    dirty = tau + rng.normal(size=tau.shape) * 0.05
    hit = rng.random(len(t)) < 0.05
    dirty[hit] += 80.0
    options = {'friction': 'coulomb', 'decimation': 0.0}
    wrong = {}
    for method in ('weighted', 'huber'):
        result = rd.identify(true, rd.Log(t, q, dirty, joint_names=true.joint_names),
                             method=method, **options)
        want = result.base_.matrix @ result.linear.nominal()
        wrong[method] = np.linalg.norm(result.estimate_.values - want)
    assert wrong['huber'] < 0.1 * wrong['weighted']


def test_instrumental_variables_reveal_noise_in_the_motion(true, motion):
    t, q, qd, qdd = motion
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    rng = np.random.default_rng(0)
    noisy = q + rng.normal(size=q.shape) * 2e-3
    options = {'friction': 'coulomb', 'filter': rd.FilterSettings(cutoff=20.0), 'decimation': 0.0}
    clean = rd.identify(true, rd.Log(t, q, tau, joint_names=true.joint_names), **options)
    dirty = rd.identify(true, rd.Log(t, noisy, tau, joint_names=true.joint_names, reference=q),
                        **options)
    want = dirty.base_.matrix @ dirty.linear.nominal()
    size = np.maximum(np.abs(want), 0.05)
    assert np.abs((dirty.instrumental_ - want) / size).mean() < 0.5 * np.abs(
        (dirty.estimate_.values - want) / size).mean()
    assert 'noise in the motion has biased' in ' '.join(dirty.notes)
    assert 'noise in the motion has biased' not in ' '.join(clean.notes)


def test_wrong_robot_and_short_logs(true, motion):
    t, q, qd, qdd = motion
    log = rd.Log(t, q, np.random.default_rng(0).normal(size=q.shape) * 50,
                 joint_names=true.joint_names)
    first, second = log.split(0.5)
    validation = rd.validate(rd.identify(true, first, friction='coulomb'), second)
    assert validation.verdict == 'bad' and 'is this the robot' in ' '.join(validation.reasons)
    with pytest.raises(rd.RobodynError, match='too short|equations|50 samples'):
        rd.identify(true, log.part(0, 0.007))
    with pytest.raises(rd.UnknownNameError, match='weighted, ordinary, huber'):
        rd.identify(true, log, method='magic')


def test_reduced_to_the_significant_parameters(true, result):
    fewer = rd.reduce(result)
    assert fewer.base_.names == result.significant_
    assert fewer.base_.count < result.base_.count and fewer.model is result.model
    other = log_of(true, fourier_motion(true, np.random.default_rng(8), 20, 250))
    assert rd.validate(fewer, other).total < 1.3 * rd.validate(result, other).total
    sure = rd.reduce(result, relative=0.05)
    relative = sure.uncertainty_.deviation / np.abs(sure.estimate_.values)
    assert sure.base_.count < fewer.base_.count and np.median(relative) < 0.05
    assert 'reduced from 69' in fewer.notes[-1]
    with pytest.raises(rd.IdentificationError, match='relative'):
        rd.reduce(result, relative=-1.0)


def test_significance_is_backward_elimination():
    # each alone looks insignificant, but not both: without one, the other is significant
    assert significant(np.array([1.5, 1.5]), np.array([[1.0, -0.99], [-0.99, 1.0]])) == (1,)
    assert significant(np.array([10.0, 0.1]), np.eye(2)) == (0,)
    assert significant(np.array([10.0, 5.0]), np.eye(2), relative=0.1) == (0,)


def test_the_pseudo_inertia_is_that_of_a_body(rng):
    points, masses = rng.normal(size=(30, 3)), rng.uniform(0.1, 1, 30)
    p = sum(m * np.outer([*x, 1], [*x, 1]) for x, m in zip(points, masses, strict=True))
    rigid = inertial_parameters_of(p)
    inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x))
                  for x, m in zip(points, masses, strict=True))
    np.testing.assert_allclose(rigid[:6], inertia[np.triu_indices(3)])
    np.testing.assert_allclose(pseudo_inertia(rigid), p)


def test_planar_arm_with_gravity_known_by_hand(rng):
    model = rd.load_model(own_robot('planar_2r'))
    result = rd.identify(model, exact_log(model, rng), kind='rigid', decimation=0.0)
    # the text's a1 to a5 with the centres of mass free to leave the links' lines
    assert result.base_.names == ('Iyy:joint1', 'mx:joint1', 'mz:joint1', 'Iyy:joint2',
                                  'mx:joint2', 'mz:joint2')
    a2 = 1.5 * 0.7 * 0.25
    assert 0.7 * result.estimate_.values[4] == pytest.approx(a2, rel=1e-8)


def test_a_delay_of_the_torques_is_found(true, motion, rng):
    """Torques are 1.5 ms older than positions, sampled at 4 ms; the delay biases no value."""
    t, q, qd, qdd = motion
    dynamics = rd.Dynamics(true)
    delay = 0.0015
    back = [np.column_stack([np.interp(t - delay, t, c) for c in x.T]) for x in (q, qd, qdd)]
    tau = dynamics.inverse_dynamics(*back)
    tau = tau + rng.normal(size=tau.shape) * 0.01 * np.abs(tau).max(axis=0)
    result = rd.identify(true, rd.Log(t, q, tau, joint_names=true.joint_names),
                         friction='coulomb')
    u = result.uncertainty_
    assert abs(u.delay - delay) < 4 * u.delay_deviation + 1e-4 and u.delay_deviation < 5e-4
    want = result.base_.matrix @ result.linear.nominal()
    with_it = np.linalg.norm((result.estimate_.values - want) / u.deviation)
    without = np.linalg.norm((result.estimate_.values - u.shift - want) / u.deviation)
    assert with_it < 0.7 * without
    assert 'older than the positions' in ' '.join(result.notes)


def test_kinematics_alone_suffice(rng):
    """A Denavit-Hartenberg table without inertials is identified and validated."""
    rows = [(0.0, np.pi / 2, 0.4, 0.0), (0.5, 0.0, 0.0, 0.0)]
    bodies = [rd.Inertial(8.0, np.array([0, -0.1, 0.02]), np.diag([0.1, 0.05, 0.1])),
              rd.Inertial(6.0, np.array([-0.2, 0.01, 0.03]), np.diag([0.03, 0.2, 0.2]))]
    arm = rd.model_from_dh(rows, bodies, lower=[-2, -2], upper=[2, 2])
    arm = replace(arm, velocity_limit=np.full(2, 3.0))
    first, second = (exact_log(arm, rng) for _ in range(2))
    bare = rd.model_from_dh(rows)
    assert not bare.inertial_parameters.any()
    result = rd.identify(bare, first, friction='coulomb')
    validation = rd.validate(result, second, consistent=True)
    assert validation.total < 1e-3 and validation.nominal_total == 1.0
    assert (result.model.inertial_parameters[:, 6] > 0.5).all()


def test_a_guard_by_default_leaves_half_of_the_fast_samples(true, motion):
    """Samples near slow ones are left out as far as the filter reaches, but at most half."""
    t, q, qd, qdd = motion
    log = rd.Log(t, q, rd.Dynamics(true).inverse_dynamics(q, qd, qdd),
                 joint_names=true.joint_names)
    used = {}
    for guard in (0.0, 0.05, None):
        result = rd.identify(true, log, friction='coulomb', slow=0.1, guard=guard,
                             filter=rd.FilterSettings(cutoff=5.0), decimation=2.0)
        used[guard] = sum(block.used.sum(axis=0) for block in result.observations.blocks())
    assert (used[0.05] < used[0.0]).all() and (used[None] < used[0.05]).any()
    assert (used[None] > 0.45 * used[0.0]).all()
    with pytest.raises(rd.IdentificationError):
        rd.identify(true, log, friction='coulomb', slow=0.1, guard=20.0)
