"""Counter-masses and springs against closed forms (Kolyubin 1.3, 2.2.3 and 2.3.2)."""

import re

import numpy as np
import pytest
import yaml
from robots import joint, link, planar_2r, robot
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.balancing import (
    CounterMass,
    JointSpring,
    Spring,
    balance_base,
    balance_gravity,
)

ROOT = LWR4.parent.parent
G = 9.81


@pytest.fixture(scope='module')
def planar():
    """Links of 2.0 and 1.5 kg, with centres of mass at 0.3 and 0.25 m; link 1 is 0.7 m long."""
    return rd.load_model(planar_2r(), gravity=(0, -G, 0))


def pendulum(m=2.0, d=0.4):
    return rd.load_model(robot(link('base'), link('arm', m, (d, 0, 0)), joint(
        'j1', 'revolute', 'base', 'arm')), gravity=(0, -G, 0))


def test_counter_masses_cancel_a4_and_a5_of_the_planar_arm(planar, rng):
    """a5 = g m2 d2 vanishes first; link 1 then carries link 2 with its counter-mass."""
    found = balance_gravity(planar, counter_masses=[CounterMass('upper', (-0.5, 0, 0)),
                                                    CounterMass('lower', (-0.2, 0, 0))])
    lower = 1.5 * 0.25 / 0.2
    upper = (2.0 * 0.3 + (1.5 + lower) * 0.7) / 0.5
    np.testing.assert_allclose(found.masses, [upper, lower], rtol=1e-9)
    assert found.before.min() > 1 and found.after.max() < 1e-9
    np.testing.assert_allclose(found.dynamics.gravity(rng.normal(size=(9, 2))), 0, atol=1e-10)
    assert found.model.inertial_parameters[:, 6].sum() == pytest.approx(3.5 + upper + lower)
    limited = balance_gravity(planar, counter_masses=[CounterMass('upper', (-0.5, 0, 0), 1.0),
                                                      CounterMass('lower', (-0.2, 0, 0))])
    assert limited.masses[0] == pytest.approx(1.0) and limited.masses[1] < lower
    assert (limited.after > 0.1).any() and (limited.after <= limited.before).all()


def test_a_spring_of_rest_length_zero_balances_a_pendulum(rng):
    """The stiffness is m g d / (a b), for points a above the axis and b along the arm."""
    found = balance_gravity(pendulum(), springs=[
        Spring(('base', 'arm'), [(0, 0.6, 0), (0.3, 0, 0)])])
    assert found.stiffnesses[0] == pytest.approx(2.0 * G * 0.4 / (0.6 * 0.3))
    assert found.after[0] < 1e-9
    q = rng.normal(size=(7, 1))
    np.testing.assert_allclose(found.spring_torque(q), found.dynamics.gravity(q), atol=1e-10)
    np.testing.assert_allclose(found.spring_torque(q[0]), found.dynamics.gravity(q[0]))


def test_the_torque_of_a_spring_is_the_slope_of_its_energy(planar, rng):
    """With a rest length, over two joints."""
    spring = Spring(('base', 'lower'), [(0, 1.2, 0), (0.15, -0.05, 0)], rest_length=0.3)
    found = balance_gravity(planar, springs=[spring])
    dynamics, k = rd.Dynamics(planar), found.stiffnesses[0]
    assert k > 0
    points = tuple((name, tuple(place)) for name, place in zip(
        spring.links, np.array(spring.points), strict=True))

    def energy(q):
        ends = dynamics.points(q, points)
        return k / 2 * (np.linalg.norm(ends[1] - ends[0]) - 0.3)**2

    q, h = rng.normal(size=2), 1e-6
    slope = [(energy(q + h * e) - energy(q - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(found.spring_torque(q), -np.array(slope), atol=1e-6)


def test_a_spring_at_a_joint_is_a_line_through_the_gravity_torque():
    q = np.linspace(1.0, 2.5, 31)[:, None]  # there gravity decreases with q
    model = pendulum()
    found = balance_gravity(model, joint_springs=[JointSpring('j1')], poses=q)
    slope, height = np.polyfit(q[:, 0], rd.Dynamics(model).gravity(q)[:, 0], 1)
    assert found.joint_stiffnesses[0] == pytest.approx(-slope)
    assert found.joint_rests[0] == pytest.approx(-height / slope)
    residual = rd.Dynamics(model).gravity(q) - found.spring_torque(q)
    assert found.after[0] == pytest.approx(np.sqrt((residual**2).mean()))
    assert found.after[0] < 0.2 * found.before[0]
    rising = balance_gravity(model, joint_springs=[JointSpring('j1')], poses=-q)
    assert rising.joint_stiffnesses[0] == 0 and np.isnan(rising.joint_rests[0])


def test_the_shaking_force_of_a_parallelogram_vanishes(rng):
    """Its centre of mass stays in place: one counter-mass on each driven link."""
    arm = rd.ClosedLoopDynamics(rd.load_model(ROOT / 'urdf/five_bar.urdf.xacro'),
                                ROOT / 'config/robots/five_bar_loops.yaml')
    p = yaml.safe_load((ROOT / 'config/robots/five_bar.yaml').read_text())
    m, lc, length = ([p[f'link{k}'][name] for k in (1, 2, 3, 4)] for name in (
        'mass', 'com', 'length'))
    q = np.array([0.3, 1.5]) + rng.uniform(-0.3, 0.3, (20, 2))
    motion = q, *rng.normal(size=(2, 20, 2))
    places = [CounterMass('link1', (-0.2, 0, 0)), CounterMass('link2', (-0.25, 0, 0))]
    found = balance_base(arm, *motion, counter_masses=places, moment_arm=np.inf)
    np.testing.assert_allclose(found.masses, [
        (m[0] * lc[0] + m[2] * lc[2] + m[3] * length[0]) / 0.2,
        (m[1] * lc[1] + m[2] * length[1] + m[3] * lc[3]) / 0.25], rtol=1e-7)
    assert found.before[:3].max() > 0.5 and found.after[:3].max() < 1e-8
    # the whole dynamics with these masses: the mounting carries the weight alone
    shaking = found.dynamics.base_wrench(*motion) - found.dynamics.base_wrench(
        q, 0 * q, 0 * q)
    np.testing.assert_allclose(shaking[:, :3], 0, atol=1e-8)
    np.testing.assert_allclose(np.sqrt((shaking**2).mean(axis=0)), found.after, atol=1e-8)
    # with a weight on moments, the forces no longer vanish, but the moments are smaller
    both = balance_base(arm, *motion, counter_masses=places, moment_arm=0.1)
    assert np.linalg.norm(both.after[3:]) < np.linalg.norm(found.after[3:])


def test_places_that_do_not_exist_are_named(planar):
    with pytest.raises(rd.UnknownNameError, match="'uper'.*did you mean 'upper'"):
        balance_gravity(planar, counter_masses=[CounterMass('uper', (0, 0, 0))])
    with pytest.raises(rd.UnknownNameError, match='joint of a spring'):
        balance_gravity(planar, joint_springs=[JointSpring('j3')])
    with pytest.raises(rd.ValueRangeError, match='at least one'):
        balance_gravity(planar)
    with pytest.raises(rd.ShapeError, match='poses has shape'):
        balance_gravity(planar, joint_springs=[JointSpring('j1')], poses=[[1, 2, 3]])
    with pytest.raises(rd.ValueRangeError, match='floating base is not supported by balancing'):
        balance_gravity(rd.load_model(planar_2r(), base='floating'),
                        joint_springs=[JointSpring('j1')])


def test_the_page_on_balancing_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    for step in re.findall(r'```python\n(.*?)```', (
            ROOT / 'docs/howto/balance.md').read_text(), re.DOTALL):
        exec(step, names)
    found = names['found']
    np.testing.assert_allclose([*found.masses, *found.stiffnesses], [2.0, 141.65], rtol=1e-4)
    assert found.before[1:].min() > 1 and found.after.max() < 1e-9
    np.testing.assert_allclose(names['motors'], 0, atol=1e-9)
