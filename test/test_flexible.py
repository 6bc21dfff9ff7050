"""Elastic gears: compared with the rigid robot, with MuJoCo, and for consistency."""

import numpy as np
import pytest
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.simulation import Simulation

GRAVITY = (0.0, -9.81, 0.0)


def elastic(k=4000.0, damping=0.0, friction=0.0):
    """Two elastic joints on the planar arm."""
    return {'joints': {
        'j1': {'armature': 0.8, 'stiffness': k, 'stiffness_damping': damping,
               'motor_friction': {'viscous': friction}},
        'j2': {'armature': 0.3, 'stiffness': k / 2, 'stiffness_damping': damping,
               'motor_friction': {'viscous': friction}}}}


def arm(**options):
    return rd.load_model(planar_2r(), motors=elastic(**options), gravity=GRAVITY)


def motion(t, order):
    """Derivative of a smooth motion in time, shape (2,)."""
    w, a = np.array([2.0, 3.0]), np.array([0.7, 0.5])
    return a * w**order * np.sin(w * t + order * np.pi / 2 + np.array([0.3, 1.0]))


def states(t):
    return [motion(t, order) for order in range(5)]


def test_stiff_joints_approach_rigid_joints_at_the_expected_rate():
    rigid = rd.Dynamics(rd.load_model(planar_2r(), gravity=GRAVITY, motors={'joints': {
        'j1': {'armature': 0.8, 'motor_friction': {'viscous': 0.5}},
        'j2': {'armature': 0.3, 'motor_friction': {'viscous': 0.5}}}}))
    q = states(0.4)
    want = rigid.inverse_dynamics(*q[:3])
    wrong = [np.abs(rd.FlexibleDynamics(arm(k=k, friction=0.5)).inverse_dynamics(*q).torque
                    - want).max() for k in (1e4, 1e5, 1e6)]
    assert wrong[0] > 1e-3
    np.testing.assert_allclose(np.array(wrong[:-1]) / wrong[1:], 10.0, rtol=0.05)


def test_velocity_and_acceleration_of_motors_are_derivatives_of_their_position():
    flexible = rd.FlexibleDynamics(arm())
    h = 1e-4
    before, here, after = (flexible.inverse_dynamics(*states(0.7 + k * h)) for k in (-1, 0, 1))
    np.testing.assert_allclose((after.theta - before.theta) / (2 * h), here.theta_d, atol=1e-6)
    np.testing.assert_allclose((after.theta_d - before.theta_d) / (2 * h), here.theta_dd,
                               atol=1e-5)


def test_forward_dynamics_invert_inverse_dynamics_of_elastic_joints():
    flexible = rd.FlexibleDynamics(arm(friction=0.4))
    q = states(1.1)
    need = flexible.inverse_dynamics(*q)
    qdd, theta_dd = flexible.forward_dynamics(q[0], q[1], need.theta, need.theta_d, need.torque)
    np.testing.assert_allclose(qdd, q[2], atol=1e-8)
    np.testing.assert_allclose(theta_dd, need.theta_dd, atol=1e-7)


def test_deflection_holds_the_links():
    flexible = rd.FlexibleDynamics(arm())
    q = np.array([0.4, -0.3])
    lead = flexible.deflection(q)
    gravity = flexible.links.gravity(q)
    np.testing.assert_allclose(lead, gravity / [4000.0, 2000.0])
    qdd, theta_dd = flexible.forward_dynamics(q, np.zeros(2), q + lead, np.zeros(2), gravity)
    np.testing.assert_allclose([*qdd, *theta_dd], 0.0, atol=1e-9)


@pytest.mark.parametrize('theta', [(-1.4, 0.2), (1.5, 0.1), (0.3, -0.8)])
def test_links_come_to_rest_on_soft_springs(theta):
    """Gravity changes the torque by more per radian than the springs, 3 and 2 N m/rad."""
    model = rd.load_model(planar_2r(), gravity=GRAVITY, motors={'joints': {
        'j1': {'armature': 0.1, 'stiffness': 3.0}, 'j2': {'armature': 0.1, 'stiffness': 2.0}}})
    flexible = rd.FlexibleDynamics(model)
    q = flexible.links_at_rest(theta)
    np.testing.assert_allclose(q + flexible.deflection(q), theta, atol=1e-9)
    assert flexible.natural_frequencies(q, motors_locked=True).min() > 0.05  # Hz: a stable pose


def linearised(simulation):
    """Continuous eigenvalues of the engine's own finite differences about its state."""
    import mujoco

    engine, state = simulation._engine, simulation._state
    size = 2 * engine.nv
    a = np.zeros((size, size))
    mujoco.mjd_transitionFD(engine, state, 1e-6, True, a, None, None, None)
    return np.log(np.linalg.eigvals(a).astype(complex)) / engine.opt.timestep


def test_natural_frequencies_are_those_of_mujoco():
    flexible = rd.FlexibleDynamics(arm())
    simulation = Simulation(planar_2r(), motors=elastic(), timestep=1e-4, gravity=GRAVITY)
    q = np.array([-1.2, 0.5])
    simulation.reset(q)
    simulation._state.qpos[simulation._motor_q] = q + flexible.deflection(q)
    simulation._state.qfrc_applied[simulation._motor_v] = flexible.links.gravity(q)
    found = np.abs(linearised(simulation).imag) / (2 * np.pi)
    want = flexible.natural_frequencies(q)
    assert want.shape == (4,) and want[-1] > 10
    found = np.sort(found)[1::2]  # each mode is a pair
    np.testing.assert_allclose(found[-2:], want[-2:], rtol=2e-3)
    locked = flexible.natural_frequencies(q, motors_locked=True)
    assert locked.shape == (2,) and locked[0] < want[-2]


def test_feedforward_with_elasticity_moves_the_tip_three_times_better():
    motors = elastic(k=600.0, damping=0.5)
    model = rd.load_model(planar_2r(), motors=motors, gravity=GRAVITY)
    flexible, rigid = rd.FlexibleDynamics(model), rd.Dynamics(model)
    wrong, step = {}, 0.001
    for law in ('rigid', 'elastic'):
        simulation = Simulation(planar_2r(), motors=motors, gravity=GRAVITY, timestep=step)
        start = flexible.inverse_dynamics(*states(0.0))
        simulation.reset(motion(0.0, 0), motion(0.0, 1))
        simulation._state.qpos[simulation._motor_q] = start.theta
        simulation._state.qvel[simulation._motor_v] = start.theta_d
        tips = []
        for k in range(4000):
            q = states(k * step)
            if law == 'rigid':
                wanted, speed, torque = q[0], q[1], rigid.inverse_dynamics(*q[:3])
            else:
                need = flexible.inverse_dynamics(*q)
                wanted, speed, torque = need.theta, need.theta_d, need.torque
            torque = torque + 200 * (wanted - simulation.motor_position) + 30 * (
                speed - simulation.motor_velocity)
            if k % 20 == 0:
                tips.append(np.linalg.norm(_tip(simulation.position) - _tip(q[0])))
            simulation.step(torque)
        wrong[law] = np.sqrt(np.mean(np.square(tips)))
    print(wrong)
    assert wrong['elastic'] < wrong['rigid'] / 3


def _tip(q, lengths=(0.7, 0.5)):
    angles = np.cumsum(q)
    return np.array([np.dot(lengths, np.cos(angles)), np.dot(lengths, np.sin(angles))])


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_states_that_are_not_finite_are_refused(value):
    flexible = rd.FlexibleDynamics(arm())
    names = ('q', 'qd', 'theta', 'theta_d', 'torque')
    for bad, name in enumerate(names):
        inputs = np.zeros((5, 2))
        inputs[bad, 1] = value
        with pytest.raises(rd.ValueRangeError, match=f'^{name} is .*finite'):
            flexible.forward_dynamics(*inputs)
    with pytest.raises(rd.ValueRangeError, match='qdddd'):
        flexible.inverse_dynamics(*np.zeros((4, 2)), [0.0, value])


def test_an_excitation_stays_below_half_the_lowest_resonance():
    from robodyn_ros.excitation import Limits, Plan, propose
    from robodyn_ros.excitation.plan import lowest_resonance

    soft = arm(k=60.0)
    resonance = lowest_resonance(soft)
    poses = np.random.default_rng(1).uniform(-3, 3, (50, 2))
    flexible = rd.FlexibleDynamics(soft)
    assert 0.2 < resonance <= 1.05 * min(
        flexible.natural_frequencies(q, motors_locked=True)[0] for q in poses)
    period, harmonics = propose(soft, Limits(), Plan(harmonics=6))
    assert harmonics / period <= resonance / 2 + 1e-9
    with pytest.raises(rd.RobodynError, match='resonance'):
        propose(soft, Limits(), Plan(harmonics=6, period=6 / resonance))


def test_errors_name_missing_data():
    with pytest.raises(rd.RobodynError, match='stiffness'):
        rd.FlexibleDynamics(rd.load_model(planar_2r()))
    with pytest.raises(rd.RobodynError, match='rotor inertia of j1'):
        rd.FlexibleDynamics(rd.load_model(planar_2r(), motors={'joints': {
            'j1': {'stiffness': 100.0}}}))
    for bad in (0, -1, 'soft'):
        with pytest.raises(rd.RobodynError, match='stiffness'):
            rd.load_model(planar_2r(), motors={'joints': {'j1': {'stiffness': bad}}})
    with pytest.raises(rd.RobodynError, match='qdddd'):
        rd.FlexibleDynamics(arm()).inverse_dynamics(*[np.zeros(2)] * 4, np.zeros(3))
