"""Friction of real gears: Stribeck friction and friction by load, from logs to kernels."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robots import planar_2r
from synthetic import coloured_noise, fourier_motion, log_of, lwr4_with_drives

import robodyn_ros as rd
from robodyn_ros.identification.writing import motors_of

ROOT = Path(__file__).parent.parent
CURVES = {'j1': {'viscous': 0.4, 'coulomb': 1.1, 'offset': 0.2, 'asymmetric': 0.05,
                 'stribeck': 0.7, 'stribeck_velocity': 0.3},
          'j2': {'viscous': 0.2, 'coulomb': 0.3, 'load': 0.08}}


@pytest.fixture(scope='module')
def arm():
    """A planar arm with a friction curve at each joint, in place of plain friction."""
    return rd.load_model(planar_2r(), motors={'joints': {
        name: {'friction_curve': curve, 'link_friction': {'coulomb': 50.0}, 'armature': 0.3}
        for name, curve in CURVES.items()}})


def by_hand(curve, speed, load):
    """Friction of one joint, with the exponential that the kernels approximate."""
    size = abs(speed)
    dry = curve.get('coulomb', 0.0) + curve.get('load', 0.0) * abs(load)
    dry += curve.get('stribeck', 0.0) * np.exp(-size / curve.get('stribeck_velocity', 1.0))
    return (curve.get('viscous', 0.0) * speed + curve.get('offset', 0.0)
            + curve.get('asymmetric', 0.0) * size + dry * np.sign(speed))


def test_curves_are_part_of_the_equations(arm, rng):
    dynamics = rd.Dynamics(arm)
    bare = rd.Dynamics(arm.without_friction())
    links = rd.Dynamics(arm.without_friction().without_motors())
    for q, qd, qdd in rng.uniform(-2, 2, (20, 3, 2)):
        rigid, still = links.inverse_dynamics(q, qd, qdd), links.inverse_dynamics(q, qd, 0 * q)
        friction = [by_hand(c, s, t) for c, s, t in zip(CURVES.values(), qd, rigid, strict=True)]
        tau = dynamics.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(tau - bare.inverse_dynamics(q, qd, qdd), friction, atol=4e-3)
        static = [by_hand(c, s, t) for c, s, t in zip(CURVES.values(), qd, still, strict=True)]
        np.testing.assert_allclose(dynamics.friction(qd, q), static, atol=4e-3)
        np.testing.assert_allclose(dynamics.terms(q, qd).friction, dynamics.friction(qd, q))
        np.testing.assert_allclose(dynamics.forward_dynamics(q, qd, tau), qdd, atol=1e-6)
    with pytest.raises(rd.ShapeError, match='torques that its gears transmit'):
        dynamics.friction(qd)


def test_curves_survive_writing_and_reading_a_motor_file(arm):
    again = rd.load_model(planar_2r(), motors=motors_of(arm))
    np.testing.assert_array_equal(again.friction_curve, arm.friction_curve)
    with pytest.raises(rd.DescriptionError, match='load'):
        rd.load_model(planar_2r(), motors={'joints': {'j1': {'friction_curve': {'load': -1}}}})


def test_terms_join_only_the_joints_that_have_them():
    """One gear with friction by load and one with Stribeck friction, with realistic noise."""
    true = lwr4_with_drives()
    curve = np.full((7, 9), np.nan)
    for body, (viscous, coulomb, offset) in enumerate(true.link_friction):
        curve[body] = viscous, coulomb, offset, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0
    motion = fourier_motion(true, np.random.default_rng(5), 30, 200)
    fast = np.quantile(np.abs(motion[2]), 0.95, axis=0)
    curve[1, 6] = 0.08
    curve[0, 4:6] = 4.0, 0.1 * fast[0]
    true = replace(true, friction_curve=curve)
    tau = rd.Dynamics(true).inverse_dynamics(*motion[1:])
    noise = coloured_noise(np.random.default_rng(6), len(tau), 0.01 * np.abs(tau).max(axis=0), 0.9)
    log = log_of(true, motion, noise=noise)
    first, last = log.split(0.6)
    result = rd.identify(lwr4_with_drives(np.random.default_rng(1), 0.2), first)
    found = {key: terms for key, terms in result.linear.friction.terms.items() if terms}
    assert found[1, 'l'] == ('Ft',) and found[0, 'l'] == ('Fs',)
    place = result.linear.names.index('Ftl:joint2')
    assert result.theta_[place] == pytest.approx(0.08, abs=0.01)
    assert rd.validate(result, last).total < rd.validate(
        rd.identify(result.linear.model, first, friction='coulomb'), last).total - 0.005
    # the nodes use what was identified
    assert result.model.friction_curve[1, 6] == pytest.approx(0.08, abs=0.01)
    _, q, qd, qdd = (x[::50] for x in motion)
    mine = rd.Dynamics(result.model).inverse_dynamics(q, qd, qdd)
    want = result.predict(q, qd, qdd, consistent=True)
    assert np.linalg.norm(mine - want) < 0.005 * np.linalg.norm(want)


def test_robots_with_loops_refuse_friction_by_load():
    five_bar = rd.load_model(ROOT / 'urdf/five_bar.urdf.xacro')
    model = replace(five_bar, friction_curve=np.where(
        np.arange(9) == 6, 0.1, np.zeros((len(five_bar.body_joints), 9))))
    with pytest.raises(rd.ValueRangeError, match='closed loops'):
        rd.ClosedLoopDynamics(model, ROOT / 'config/robots/five_bar_loops.yaml')


def test_plain_coulomb_friction_stays_plain_in_short_noisy_logs():
    # with this noise, Stribeck friction that the robot does not have seems to gain 2.8 %
    true = lwr4_with_drives()
    t, q, *rest = fourier_motion(true, np.random.default_rng(2), 10, 200)
    tau = rd.Dynamics(true).inverse_dynamics(q, *rest)
    noise = coloured_noise(np.random.default_rng(102), len(t), 0.02 * np.abs(tau).max(axis=0), 0.9)
    result = rd.identify(true, rd.Log(t, q, tau + noise, joint_names=true.joint_names))
    assert not result.friction_choice_.steps
