"""`rd.simulate`: our own forward dynamics integrated, against energy, closed forms and MuJoCo."""

import re

import numpy as np
import pytest
import scipy.special
from robots import joint, link, planar_2r, robot
from synthetic import LWR4
from test_flexible import elastic

import robodyn_ros as rd
from robodyn_ros.simulation import Simulation, SimulationError

ROOT = LWR4.parent.parent
GRAVITY = (0.0, -9.81, 0.0)
DAMPED = planar_2r().replace('<axis', '<dynamics damping="0.3" friction="0.4"/><axis')


def energy(dynamics, motion):
    return sum(dynamics.energy(motion.q, motion.qd))


def test_free_motion_keeps_its_energy():
    dynamics = rd.Dynamics(rd.load_model(planar_2r(), gravity=GRAVITY))
    motion = rd.simulate(dynamics, q=[0.4, -0.9], qd=[1.0, 2.0], duration=3.0)
    total = energy(dynamics, motion)
    assert motion.t[0] == 0 and motion.t[-1] == pytest.approx(3.0) and len(motion.t) == 301
    assert np.ptp(dynamics.energy(motion.q, motion.qd).kinetic) > 10
    np.testing.assert_allclose(total, total[0], atol=1e-6)


def test_energy_changes_by_the_work_of_torques_and_friction():
    """A control law, friction, and a force at the tip that changes with time."""
    model = rd.load_model(DAMPED, gravity=GRAVITY)
    dynamics = rd.Dynamics(model, friction_width=0.05)

    def push(t):
        return {'lower': [5 * np.sin(3 * t), 0, 0, 0, 0, 1.0]}

    motion = rd.simulate(dynamics, lambda t, q, qd: 8 * np.sin(2 * t) - 3 * q, q=[0.3, 0.1],
                         duration=1.5, f_ext=push, times=np.linspace(0, 1.5, 1501))
    outside = np.array([dynamics.jacobian(q, 'lower').T @ push(t)['lower']
                        for t, q in zip(motion.t, motion.q, strict=True)])
    power = (motion.qd * (motion.tau + outside - dynamics.friction(motion.qd))).sum(axis=1)
    total = energy(dynamics, motion)
    assert np.ptp(total) > 1
    work = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(motion.t))])
    np.testing.assert_allclose(total - total[0], work, atol=1e-4)


def test_a_swing_is_that_of_mujoco():
    """The engine's steps are 0.1 ms long; the error of its positions is proportional to them."""
    model = rd.load_model(DAMPED, gravity=GRAVITY)
    torque = np.array([3.0, 1.0])
    own = rd.simulate(model, torque, q=[0.2, 0.5], duration=0.6, times=[0.0, 0.6])
    errors = []
    for step in (4e-4, 2e-4):
        engine = Simulation(DAMPED, timestep=step, gravity=GRAVITY)
        engine.reset([0.2, 0.5])
        engine.step(torque, round(0.6 / step))
        errors.append(np.abs(engine.position - own.q[-1]).max())
    assert np.abs(own.q[-1] - own.q[0]).min() > 0.1
    assert errors[1] < 2e-3 and errors[0] / errors[1] == pytest.approx(2, rel=0.2)


def test_the_period_of_a_pendulum_by_an_event():
    """An event that happens, its direction, and one that ends the simulation."""
    model = rd.load_model(robot(link('base'), link('bob', 1.0, (0.5, 0, 0)),
                                joint('j1', 'revolute', 'base', 'bob')), gravity=(9.81, 0, 0))
    start = 1.2

    def lowest(t, q, qd):
        return q[0]

    def turned(t, q, qd):
        return qd[0]

    turned.direction, turned.terminal = 1, True
    motion = rd.simulate(model, q=[start], duration=9.0, events=[lowest, turned], rtol=1e-10)
    period = 4 * np.sqrt(0.5 / 9.81) * scipy.special.ellipk(np.sin(start / 2)**2)
    assert motion.events[0] == pytest.approx([period / 4], abs=1e-6)
    assert motion.events[1] == pytest.approx([period / 2], abs=1e-6)
    assert period / 2 - 0.01 <= motion.t[-1] <= period / 2


def test_a_free_body_keeps_its_momentum():
    text = planar_2r().replace(link('base'), link('base', 2.0, (0, 0, 0), (.1, 0, 0, .1, 0, .1)))
    dynamics = rd.Dynamics(rd.load_model(text, base='floating'))
    q = np.concatenate([dynamics.home[:7], [0.3, -0.4]])
    qd = np.array([0.2, -0.1, 0.3, 0.5, -0.4, 0.6, 2.0, -3.0])
    motion = rd.simulate(dynamics, q=q, qd=qd, duration=0.5, times=[0.0, 0.5])
    before, after = dynamics.centroidal_momentum(motion.q, motion.qd)
    weight = 5.5 * 0.5 * np.array([0, 0, -9.80665])  # m g t
    np.testing.assert_allclose(after - before, [*weight, 0, 0, 0], atol=1e-7)


def test_closed_loops_and_a_base_that_accelerates():
    """Free fall on an accelerating base is weightless: the linkage keeps its kinetic energy."""
    arm = rd.ClosedLoopDynamics(rd.load_model(ROOT / 'urdf/five_bar.urdf.xacro'),
                                ROOT / 'config/robots/five_bar_loops.yaml')
    falling = rd.BaseMotion(acceleration=arm.model.gravity)
    motion = rd.simulate(arm, q=[0.3, 1.5], qd=[0.6, -0.4], duration=0.5, times=[0, 0.25, 0.5],
                         base_motion=falling)
    kinetic = [arm.energy(q, qd).kinetic for q, qd in zip(motion.q, motion.qd, strict=True)]
    np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-7)
    still = rd.simulate(arm, q=[0.3, 1.5], qd=[0.6, -0.4], duration=0.5, times=[0.5])
    assert np.abs(still.q - motion.q[-1]).max() > 0.05


def test_elastic_joints_as_mujoco_swings_them():
    motors = elastic(k=800.0, damping=0.5, friction=0.2)
    arm = rd.FlexibleDynamics(rd.load_model(planar_2r(), motors=motors, gravity=GRAVITY))
    seen = []

    def law(t, q, qd, theta, theta_d):
        seen.append(theta)
        return [2.0, 1.0]

    own = rd.simulate(arm, law, q=[0.2, 0.5], duration=0.4, times=[0.0, 0.4])
    engine = Simulation(planar_2r(), motors=motors, timestep=1e-4, gravity=GRAVITY)
    engine.reset([0.2, 0.5])
    engine.step([2.0, 1.0], 4000)
    np.testing.assert_allclose(own.q[-1], engine.position, atol=2e-3)
    np.testing.assert_allclose(own.theta[-1], engine.motor_position, atol=2e-3)
    np.testing.assert_allclose(seen[0] - own.q[0], arm.deflection([0.2, 0.5]))
    assert np.abs(own.theta - own.q).max() > 0.01


def test_what_cannot_be_simulated_is_named():
    model = rd.load_model(DAMPED, gravity=GRAVITY)
    with pytest.raises(rd.ValueRangeError, match='j1 has Coulomb friction'):
        rd.simulate(rd.Dynamics(model), q=[0, 0], duration=1)
    with pytest.raises(rd.ValueRangeError, match=r'tau at 0 s is \[nan'):
        rd.simulate(model, [np.nan, 0], q=[0, 0], duration=1)
    with pytest.raises(rd.ShapeError, match='q has shape'):
        rd.simulate(model, q=[0], duration=1)
    with pytest.raises(rd.ValueRangeError, match='increasing numbers from 0 to 1 s'):
        rd.simulate(model, q=[0, 0], duration=1, times=[0.0, 1.1])
    with pytest.raises(rd.ValueRangeError, match='duration'):
        rd.simulate(model, q=[0, 0], duration=-1)
    with pytest.raises(SimulationError, match='cannot continue after|has diverged at'):
        rd.simulate(model, lambda t, q, qd: 10 * qd**3, q=[0, 0], qd=[5, 5], duration=1)
    with pytest.raises(SimulationError, match='accelerations at 0 s are not finite'):
        rd.simulate(model, [1e308, 0], q=[0, 0], duration=1)
    massless = rd.Dynamics(rd.load_model(planar_2r(), base='floating'))
    with pytest.raises(rd.RobodynError, match="the base 'base' and the joint 'j1' can move"):
        rd.simulate(massless, q=massless.home, qd=np.ones(8), duration=1)


def test_the_page_on_simulation_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    exec(re.search(r'```python\n(.*?)```', (ROOT / 'docs/howto/simulate.md').read_text(),
                   re.DOTALL)[1], names)
    motion = names['motion']
    assert 0.1 < motion.events[0][0] < 5
    assert np.abs(motion.q[-1] - names['goal']).max() < 0.02
