"""The balance of energy of a running robot (Kolyubin 4.5-4.7)."""

import numpy as np
import pytest
from robots import planar_2r
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.observation import EnergyMonitor

ROOT = LWR4.parent.parent
RATE = 500
DAMPED = planar_2r().replace('<axis', '<dynamics damping="0.3" friction="0.4"/><axis')


@pytest.fixture(scope='module')
def dynamics():
    return rd.Dynamics(rd.load_model(DAMPED, gravity=(0, -9.81, 0)), friction_width=0.02)


def law(t, q, qd):
    return 6 * np.sin(2 * t) - 3 * q


def push(t):
    return {'lower': [4.0, 3.0 * np.cos(t), 0, 0, 0, 0.5]}


def run(dynamics, **options):
    return rd.simulate(dynamics, options.pop('tau', law), q=[0.3, 0.1], duration=1.6,
                       times=np.arange(0, 1.6, 1 / RATE), rtol=1e-7, **options)


def balances(dynamics, motion, window=0.5, factor=1.0):
    monitor = EnergyMonitor(dynamics, window)
    return [monitor.update(t, q, qd, factor * tau) for t, q, qd, tau in zip(
        motion.t, motion.q, motion.qd, motion.tau, strict=True)]


def test_motors_and_friction_explain_the_energy(dynamics):
    motion = run(dynamics)
    found = balances(dynamics, motion)
    last, (kinetic, potential) = found[-1], dynamics.energy(motion.q, motion.qd)
    assert (last.kinetic, last.potential) == pytest.approx((kinetic[-1], potential[-1]))
    assert np.ptp(kinetic + potential) > 1
    assert last.supplied == pytest.approx(motion.qd[-1] @ motion.tau[-1])
    assert last.dissipated == pytest.approx(motion.qd[-1] @ dynamics.friction(motion.qd[-1]))
    started = [one.unexplained for one in found[:RATE // 4]]
    assert np.isnan(started).all()
    unexplained = np.array([one.unexplained for one in found[RATE // 4 + 2:]])
    assert np.abs(unexplained).max() < 0.02 and all(one.passive for one in found)


def test_a_force_from_outside_is_what_remains(dynamics):
    motion = run(dynamics, f_ext=push)
    power = [qd @ dynamics.jacobian(q, 'lower').T @ push(t)['lower'] for t, q, qd in zip(
        motion.t, motion.q, motion.qd, strict=True)]
    found, means = balances(dynamics, motion), []
    for k in range(400, len(found), 100):  # the mean over the window of half a second
        mean = np.trapezoid(power[k - RATE // 2:k + 1], dx=1 / RATE) * 2
        means.append(mean)
        assert found[k].unexplained == pytest.approx(mean, abs=0.02)
    assert max(map(abs, means)) > 0.5


def test_torques_of_the_wrong_sign_are_not_passive(dynamics):
    """A motor that drives the arm seems to brake it."""
    motion = run(dynamics, tau=lambda t, q, qd: dynamics.gravity(q) + 2.0)
    assert all(one.passive for one in balances(dynamics, motion))
    wrong = balances(dynamics, motion, factor=-1.0)
    assert not wrong[-1].passive and wrong[-1].unexplained > 5


def test_the_energy_of_closed_loops_is_balanced():
    arm = rd.ClosedLoopDynamics(rd.load_model(ROOT / 'urdf/five_bar.urdf.xacro'),
                                ROOT / 'config/robots/five_bar_loops.yaml')
    motion = rd.simulate(arm, [3.0, 1.0], q=[0.3, 1.5], duration=0.3,
                         times=np.linspace(0, 0.3, 151))
    monitor, pose = EnergyMonitor(arm, 0.2), None
    for t, q, qd, tau in zip(motion.t, motion.q, motion.qd, motion.tau, strict=True):
        pose = arm.positions(q, near=pose)
        balance = monitor.update(t, q, qd, tau, near=pose)
    assert abs(balance.supplied) > 0.1 and abs(balance.unexplained) < 0.01 * abs(balance.supplied)


def test_a_gap_begins_a_new_window(dynamics):
    motion = run(dynamics)
    monitor = EnergyMonitor(dynamics, 0.5)
    states = list(zip(motion.t, motion.q, motion.qd, motion.tau, strict=True))
    for state in states[:300]:
        before = monitor.update(*state)
    assert not np.isnan(before.unexplained)
    after = [monitor.update(*state) for state in states[400:]]
    assert np.isnan(after[0].unexplained) and after[0].passive
    assert abs(after[-1].unexplained) < 0.02
    monitor.update(*states[0])  # the time jumps back
    assert np.isnan(monitor.update(*states[1]).unexplained)
    with pytest.raises(rd.ValueRangeError, match='window'):
        EnergyMonitor(dynamics, 0.0)
