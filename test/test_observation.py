"""External torques, wrenches and contacts of a simulated robot whose push is known."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from synthetic import fourier_motion

import robodyn_ros as rd
from robodyn_ros.observation import (
    ContactDetector,
    ContactThresholds,
    KalmanObserver,
    MomentumObserver,
    constant_thresholds,
    direct_torque,
    external_wrench,
)
from robodyn_ros.observation.fitting import thresholds_of
from robodyn_ros.observation.rest_check import RestCheck
from robodyn_ros.observation.tails import rare_level
from robodyn_ros.simulation import Simulation

ARM = 'urdf/articulated_3r.urdf.xacro'
LINK = 'tip'
STEP = 0.001
NOISE = np.array([0.05, 0.05, 0.03])  # N m
FORCE = np.array([0.0, 20.0, -10.0, 0.0, 0.0, 0.0])


@pytest.fixture(scope='module')
def dynamics():
    return rd.Dynamics(rd.load_model(ARM))


@pytest.fixture(scope='module')
def recorded(dynamics):
    """A fast motion by computed torque with a push from 1 s to 1.5 s; t, q, qd, tau, torque."""
    world = Simulation(dynamics.model.description.urdf, limit_efforts=False)
    rng = np.random.default_rng(4)
    _, q_r, qd_r, qdd_r = fourier_motion(dynamics.model, rng, 4.0, 1000, frequency=0.5,
                                         harmonics=2)
    world.reset(q_r[0], qd_r[0])
    rows = []
    for k in range(4000):
        q, qd = world.position, world.velocity
        tau = dynamics.inverse_dynamics(
            q, qd, qdd_r[k] + 400 * (q_r[k] - q) + 40 * (qd_r[k] - qd))
        pushed = 1000 <= k < 1500
        if k in (1000, 1500):
            world.push(LINK, FORCE * pushed)
        external = dynamics.jacobian(q, LINK).T @ FORCE * pushed
        world.step(tau)
        rows.append((k * STEP, q, qd, tau + NOISE * rng.normal(size=3), external))
    return tuple(np.array(x) for x in zip(*rows, strict=True))


def test_the_rate_of_the_momentum_is_that_of_the_coriolis_matrix(dynamics, rng):
    q, qd = rng.normal(size=(2, 3))
    p, rate = dynamics.momentum_terms(q, qd)
    assert np.allclose(p, dynamics.mass_matrix(q) @ qd)
    assert np.allclose(rate, dynamics.coriolis_matrix(q, qd).T @ qd - dynamics.gravity(q))


@pytest.mark.parametrize('order', [1, 2])
def test_the_residual_is_the_torque_of_the_push(dynamics, recorded, order):
    t, q, qd, tau, external = recorded
    found = MomentumObserver(dynamics, 20.0, order).run(t, q, qd, tau)
    for part in (slice(100, 1000), slice(1100, 1500), slice(1600, 2000)):
        assert np.abs(found - external)[part].max() < 0.06 * np.abs(external).max()
    # one time constant after the step: 1 - 1/e, and (1 - 2/e) of two equal poles
    joint = int(np.argmax(np.abs(external[1010])))
    rise = found[1000 + round(1 / (2 * np.pi * 20) / STEP), joint] / external[1008, joint]
    assert rise == pytest.approx({1: 0.63, 2: 0.26}[order], abs=0.12)


def test_the_observers_agree_with_accelerations(dynamics, recorded):
    t, q, qd, tau, external = recorded
    qdd = np.gradient(qd, t, axis=0)
    direct = direct_torque(dynamics, q, qd, qdd, tau)
    kalman = KalmanObserver(dynamics, STEP, NOISE, [1e-4] * 3, [30.0] * 3)
    found = np.array([kalman.update(*row) for row in zip(t, q, qd, tau, strict=True)])
    inside = slice(1100, 1480)
    assert np.abs(direct.mean(axis=0) - found.mean(axis=0)).max() < 0.05
    wrong = (found - external)[inside]
    assert np.abs(wrong.mean(axis=0)).max() < 0.2
    assert (wrong.std(axis=0) < 4 * kalman.deviation).all()


def test_a_wrench_is_found_with_its_covariance(dynamics, recorded):
    _, q, _, _, external = recorded
    jacobian = dynamics.jacobian(q[1200], LINK)
    deviation = np.full(3, 0.2)
    found = external_wrench(jacobian, external[1200], deviation)
    assert np.allclose(jacobian.T @ found.values, external[1200], atol=0.05)
    away = found.values - FORCE  # three joints do not determine six components
    assert away @ np.linalg.solve(found.covariance, away) < 12.6  # 95 %, 6 degrees
    turned = found.turned(dynamics.pose(q[1200], LINK)[:3, :3].T)
    assert np.linalg.norm(turned.values[:3]) == pytest.approx(np.linalg.norm(found.values[:3]))


def test_thresholds_of_free_motion_find_the_push_and_nothing_else(dynamics, recorded, tmp_path):
    t, q, qd, tau, _ = recorded
    thresholds = thresholds_of(dynamics, [(t[free], q[free], qd[free], tau[free]) for free in (
        slice(0, 900), slice(1700, 3000))], separation=2.0)
    path = tmp_path / 'motors.yaml'
    path.write_text(yaml.safe_dump({'contact': thresholds.to_dict()}))
    again = ContactThresholds.read(path, dynamics.joints.joint_names)
    assert np.array_equal(again.at(qd[5]), thresholds.at(qd[5]))
    found = contacts(dynamics, again, t, q, qd, tau)
    states = [one.state for one in found]
    assert set(states[:1000]) == set(states[2500:]) == {'none'}
    first = states.index('accidental')
    assert 1000 < first < 1020
    assert found[first].magnitude > found[first].threshold
    assert found[first + 20].link in ('link2', 'link3')


def contacts(dynamics, thresholds, t, q, qd, tau):
    """Return the decisions along a motion."""
    observer = MomentumObserver(dynamics, thresholds.bandwidth)
    detector = ContactDetector(dynamics.model, thresholds)
    return [detector.update(row[0], row[2], observer.update(*row), observer.rate)
            for row in zip(t, q, qd, tau, strict=True)]


def test_thresholds_grow_with_inertial_torques_and_where_a_joint_stands_still(dynamics, recorded):
    """Links are heavier than the model says; at rest a joint holds friction."""
    t, q, qd, tau, _ = (x[1700:] for x in recorded)
    heavy = dynamics.with_model(replace(
        dynamics.model, inertial_parameters=0.8 * dynamics.model.inertial_parameters))
    good, poor = (thresholds_of(one, [(t, q, qd, tau)], separation=2.0)
                  for one in (dynamics, heavy))
    assert (poor.inertial[:, 0] > good.inertial[:, 0]).any()
    still, moving = np.zeros((2, 3)), np.array([[10.0] * 3, [0.0] * 3])
    assert (poor.at(qd[0], moving)[0] >= poor.at(qd[0], still)[0]).all()
    assert {one.state for one in contacts(heavy, poor, t, q, qd, tau)} == {'none'}
    rubbing = ContactThresholds.read({'contact': {**good.to_dict(), 'joints': {
        name: {**joint, 'standing': 3.0} for name, joint in good.to_dict()['joints'].items()}}},
        good.joint_names)
    for speed, added in ((0.0, 3.0), (1.0, 0.0)):
        there = np.full(3, speed)
        for one, other in zip(rubbing.at(there), good.at(there), strict=True):
            np.testing.assert_allclose(one - other, added, atol=1e-3)


def test_the_tail_of_noise_is_extrapolated_without_being_too_low(rng):
    maxima = np.abs(rng.normal(size=(200, 40, 20))).max(axis=2)  # 200 logs of 40 blocks
    levels = np.array([rare_level(row, 1e-6) for row in maxima])
    true = 5.45  # standard deviations, which one of 20 values exceeds with a probability of 1e-6
    assert (levels > true).mean() > 0.95 and np.median(levels) < 2.5 * true
    with pytest.raises(rd.ValueRangeError, match='at least 5'):
        rare_level(maxima[0, :4], 1e-6)


def test_a_slow_push_is_intended_and_zero_forgets_it(dynamics):
    names = dynamics.joints.joint_names
    detector = ContactDetector(dynamics.model, constant_thresholds(names, 1.0))
    times = np.arange(4000) * STEP
    for t in times:
        contact = detector.update(t, np.zeros(3), np.array([0.0, 0.0, min(t, 2.0)]))
    assert (contact.state, contact.joint, contact.direction) == ('intended', names[2], 1)
    detector.zero(np.array([0.0, 0.0, 2.0]))
    assert detector.update(5.0, np.zeros(3), np.array([0.0, 0.0, 2.0])).state == 'none'


def test_a_gap_in_time_starts_the_residual_anew(dynamics):
    observer = MomentumObserver(dynamics)
    q = np.zeros(3)
    for t in (0.0, 0.001, 0.002):
        observer.update(t, q, q, dynamics.gravity(q) + 100.0)
    assert np.abs(observer.residual).max() > 1
    assert not observer.update(1.0, q, q, dynamics.gravity(q)).any()


def test_an_observer_names_what_it_cannot_observe(dynamics):
    with pytest.raises(rd.ValueRangeError, match='bandwidth'):
        MomentumObserver(dynamics, 0.0)
    with pytest.raises(rd.ValueRangeError, match='> 0'):
        constant_thresholds(('a',), 0.0)
    with pytest.raises(rd.UnknownNameError, match='elbow'):
        ContactThresholds.read({'contact': {'bandwidth': 20, 'separation': 1, 'joints': {}}},
                               ('elbow',))


@pytest.mark.parametrize(('factor', 'wrong'), [(1.0, False), (0.0, True), (2.0, True)])
def test_torques_at_rest_contradict_a_wrong_setting(dynamics, rng, factor, wrong):
    check, still = RestCheck(3), np.zeros(3)
    for q in rng.uniform(-1, 1, (5, 3)):
        for _ in range(100):
            check.add(q, still, factor * dynamics.gravity(q), dynamics.gravity)
        check.add(q, still + 1, still, dynamics.gravity)
    assert bool(check.contradiction()) == wrong
