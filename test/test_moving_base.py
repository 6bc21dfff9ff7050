"""A base that is moved, and wrenches on links, in every method that computes forces."""

import re

import numpy as np
import pinocchio as pin
import pytest
from oracle import FreeFlyer
from robots import joint, link, planar_2r, random_robot, robot
from synthetic import LWR4
from test_flexible import elastic, states

import robodyn_ros as rd

ROOT = LWR4.parent.parent


def rotation(rng):
    turn = pin.Quaternion(rng.normal(size=4))
    turn.normalize()
    return turn


def moving(rng, turn=None):
    """Motion of a base, and the same as position, twist and its derivative of a free-flyer."""
    turn = turn or rotation(rng)
    w, dw, a, v = rng.normal(size=(4, 3))
    motion = rd.BaseMotion(w, dw, a, turn.matrix())
    return motion, np.array([*rng.normal(size=3), *turn.coeffs()]), np.array([*v, *w]), np.array(
        [*(a - np.cross(w, v)), *dw])


@pytest.fixture(scope='module', params=[2, 'rotor'])
def machine(request):
    """(model, URDF): a random tree with mimic and prismatic joints, and one with a rotor."""
    if request.param == 'rotor':
        text = planar_2r()
        return rd.load_model(text, motors={'joints': {
            'j2': {'gear_ratio': 30.0, 'rotor_inertia': 2e-3, 'spin_axis': [0, 0.6, 0.8]}}}), text
    text = random_robot(request.param, 6)
    return rd.load_model(text).without_friction(), text


def test_forces_are_those_of_a_floating_robot_whose_base_moves_so(machine, rng):
    """Torques and base wrench, also with a wrench at the tip, and accelerations."""
    model, text = machine
    floating = rd.load_model(text, base='floating', motors={'joints': {
        'j2': {'gear_ratio': 30.0, 'rotor_inertia': 2e-3, 'spin_axis': [0, 0.6, 0.8]}}}
        if model.armature.any() else None).without_friction()
    dynamics, free = rd.Dynamics(model), rd.Dynamics(floating)
    tip, n = model.description.links[-1].name, model.n
    q, qd, qdd = rng.uniform(-1, 1, (3, n))
    base, pose, twist, rate = moving(rng)
    wrench = rng.normal(size=6)
    push = {tip: wrench}
    # the root frame of the robot on a moving base turns with it
    turn = pin.Quaternion(pose[3:]).matrix()
    world = {tip: np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])}
    full = [np.concatenate(both) for both in ((pose, q), (twist, qd), (rate, qdd))]
    for own, theirs in ((None, None), (push, world)):
        want = free.inverse_dynamics(*full, theirs)
        tau = dynamics.inverse_dynamics(q, qd, qdd, own, base_motion=base)
        np.testing.assert_allclose(tau, want[6:], atol=1e-10)
        np.testing.assert_allclose(dynamics.base_wrench(q, qd, qdd, f_ext=own, base_motion=base),
                                   -want[:6], atol=1e-10)
        np.testing.assert_allclose(dynamics.forward_dynamics(q, qd, tau, own, base_motion=base),
                                   qdd, atol=1e-8)
    if not model.armature.any():  # Pinocchio has no rotors
        oracle = FreeFlyer(floating, text)
        np.testing.assert_allclose(free.inverse_dynamics(*full),
                                   oracle.inverse_dynamics(*full), atol=1e-9)
    chi = model.standard_parameters
    np.testing.assert_allclose(dynamics.regressor(q, qd, qdd, base_motion=base) @ chi,
                               dynamics.inverse_dynamics(q, qd, qdd, base_motion=base), atol=1e-10)
    # a batch, with one state beside many base motions
    many = rd.BaseMotion(*rng.normal(size=(3, 5, 3)))
    batch = dynamics.inverse_dynamics(q, qd, qdd, push, base_motion=many)
    for k in range(5):
        one = rd.BaseMotion(many.angular_velocity[k], many.angular_acceleration[k],
                            many.acceleration[k])
        np.testing.assert_allclose(batch[k], dynamics.inverse_dynamics(
            q, qd, qdd, push, base_motion=one), atol=1e-11)


def test_joint_wrenches_with_a_wrench_at_the_tip_are_those_of_pinocchio(rng):
    """The whole backward pass of the texts: f_(n+1), mu_(n+1), omega_0 and its derivative."""
    text = random_robot(7, 5)
    model = rd.load_model(text).without_friction()
    dynamics = rd.Dynamics(model)
    oracle = FreeFlyer(rd.load_model(text, base='floating'), text)
    q, qd, qdd = rng.uniform(-1, 1, (3, model.n))
    base, pose, twist, rate = moving(rng)
    tip = model.description.links[-1].name
    push = rng.normal(size=6)
    robot_, data = oracle.pin, oracle.data
    full = oracle.q(np.concatenate([pose, q]))
    pin.framesForwardKinematics(robot_, data, full)
    frame = robot_.frames[robot_.getFrameId(tip, pin.FrameType.BODY)]
    turn = data.oMf[robot_.getFrameId(tip)].rotation.T @ pin.Quaternion(pose[3:]).matrix()
    forces = [pin.Force.Zero() for _ in range(robot_.njoints)]
    forces[frame.parentJoint] = frame.placement.act(pin.Force(turn @ push[:3], turn @ push[3:]))
    pin.rnea(robot_, data, full, oracle.constraint @ np.concatenate([twist, qd]),
             oracle.constraint @ np.concatenate([rate, qdd]), forces)
    own = dynamics.joint_wrenches(q, qd, qdd, f_ext={tip: push}, base_motion=base)
    for name, row in zip(dynamics.wrench_joints, own, strict=True):
        np.testing.assert_allclose(row, data.f[robot_.getJointId(name)].vector, atol=1e-9)
    np.testing.assert_allclose(
        dynamics.base_wrench(q, qd, qdd, f_ext={tip: push}, base_motion=base),
        -data.f[1].vector, atol=1e-9)


def test_the_energy_changes_by_the_power_of_motors_and_mounting(rng):
    """Forward dynamics on a moving base, seen from the ground: d(K + P)/dt = all power."""
    text = random_robot(2, 4)
    model = rd.load_model(text).without_friction()
    floating = rd.load_model(text, base='floating').without_friction()
    dynamics, free = rd.Dynamics(model), rd.Dynamics(floating)
    q, qd, tau = rng.uniform(-1, 1, (3, model.n))
    base, pose, twist, rate = moving(rng)
    qdd = dynamics.forward_dynamics(q, qd, tau, base_motion=base)
    mounting = -dynamics.base_wrench(q, qd, qdd, base_motion=base)
    full, speed = np.concatenate([pose, q]), np.concatenate([twist, qd])
    power = tau @ qd + mounting @ twist
    step = 1e-5
    change = [sum(free.energy(full + h * free.position_rates(full, speed),
                              speed + h * np.concatenate([rate, qdd]))) for h in (-step, step)]
    assert abs(power) > 0.1
    assert (change[1] - change[0]) / (2 * step) == pytest.approx(power, rel=1e-6)


def test_a_pendulum_on_a_ship(rng):
    """Closed form: I qdd + m d ((g + a_y) cos q - a_x sin q) for a base that accelerates."""
    m, d, i = 1.5, 0.25, 0.03
    model = rd.load_model(robot(link('base'), link('bob', m, (d, 0, 0), (0.01, 0, 0, i, 0, i)),
                                joint('j1', 'revolute', 'base', 'bob')), gravity=(0, -9.81, 0))
    q, qd, qdd, ax, ay = rng.normal(size=5)
    tau = (i + m * d**2) * qdd + m * d * ((9.81 + ay) * np.cos(q) - ax * np.sin(q))
    dynamics = rd.Dynamics(model)
    for base in (rd.BaseMotion(acceleration=(ax, ay, 0)),
                 rd.BaseMotion(specific_force=(ax, 9.81 + ay, 0))):
        assert dynamics.inverse_dynamics([q], [qd], [qdd], base_motion=base)[0] == \
            pytest.approx(tau)
    # the base turns about the joint's axis: the joint feels it as its own acceleration
    spin = rd.BaseMotion((0, 0, 2.0), (0, 0, 3.0), specific_force=(0, 0, 0))
    assert dynamics.inverse_dynamics([q], [qd], [qdd], base_motion=spin)[0] == \
        pytest.approx((i + m * d**2) * (qdd + 3.0))


@pytest.mark.parametrize('wrong, message', [
    ({'acceleration': [1, 2]}, 'acceleration has shape'),
    ({'rotation': np.diag([1, 1, -1])}, 'rotation is .* valid: rotation matrices'),
    ({'specific_force': (0, 0, 9.8), 'acceleration': (1, 0, 0)}, 'valid: specific_force alone')])
def test_impossible_base_motions_are_refused(wrong, message):
    dynamics = rd.Dynamics(rd.load_model(planar_2r()))
    with pytest.raises(rd.RobodynError, match=message):
        dynamics.inverse_dynamics(*np.zeros((3, 2)), base_motion=rd.BaseMotion(**wrong))


def test_a_floating_base_has_its_motion_in_its_state():
    floating = rd.Dynamics(rd.load_model(planar_2r(), base='floating'))
    with pytest.raises(rd.ValueRangeError, match='part of q, qd and qdd'):
        floating.base_wrench(np.zeros(9), np.zeros(8), np.zeros(8), base_motion=rd.BaseMotion())


@pytest.fixture(scope='module')
def five_bar():
    return rd.ClosedLoopDynamics(rd.load_model(ROOT / 'urdf/five_bar.urdf.xacro'),
                                 ROOT / 'config/robots/five_bar_loops.yaml')


def test_closed_loops_on_a_moving_base(five_bar, rng):
    q, qd, qdd = np.array([0.3, 1.5]), *rng.normal(size=(2, 2))
    base, *_ = moving(rng)
    push = {'link3': rng.normal(size=6)}
    tau = five_bar.inverse_dynamics(q, qd, qdd, f_ext=push, base_motion=base)
    np.testing.assert_allclose(
        five_bar.forward_dynamics(q, qd, tau, f_ext=push, base_motion=base), qdd, atol=1e-8)
    motion = five_bar.motion(q, qd)
    need = five_bar.tree.inverse_dynamics(motion.q, motion.qd, motion.qdd(qdd), push,
                                          base_motion=base)
    np.testing.assert_allclose(tau, motion.reduce(need), atol=1e-10)
    np.testing.assert_allclose(
        five_bar.regressor(q, qd, qdd, base_motion=base) @ five_bar.model.standard_parameters,
        five_bar.inverse_dynamics(q, qd, qdd, base_motion=base), atol=1e-10)
    # an acceleration against gravity is gravity
    lifted = rd.BaseMotion(acceleration=-five_bar.model.gravity)
    np.testing.assert_allclose(
        five_bar.inverse_dynamics(q, 0 * q, 0 * q, base_motion=lifted), 2 * five_bar.gravity(q),
        atol=1e-10)


@pytest.mark.parametrize('loaded', [False, True])
def test_reactions_in_closed_loops(five_bar, rng, loaded):
    """Passive joints transmit no moment about their axes, driven ones the motors' torques."""
    q, qd, qdd = np.array([0.3, 1.5]), *rng.normal(size=(2, 2))
    more = {'f_ext': {'link3': rng.normal(size=6)}, 'base_motion': moving(rng)[0]} if loaded \
        else {}
    if loaded:  # forces and moments across the plane are not determined by the loop
        more['f_ext']['link3'][[1, 3, 5]] = 0
    wrenches = five_bar.joint_wrenches(q, qd, qdd, **more)
    model = five_bar.tree.model
    along = {name: wrenches[k, 3:] @ model.axis[model.body_joints.index(name)]
             for k, name in enumerate(five_bar.tree.wrench_joints)}
    tau = five_bar.inverse_dynamics(q, qd, qdd, **more)
    np.testing.assert_allclose([along[name] for name in five_bar.joint_names], tau, atol=1e-8)
    np.testing.assert_allclose([along[name] for name in five_bar.dependent_names], 0, atol=1e-8)


def test_elastic_joints_follow_a_moving_base_and_a_wrench(rng):
    """With functions of time, the motors' motion is that which the links' motion needs."""
    text = planar_2r()
    model = rd.load_model(text, motors=elastic(), gravity=(0, -9.81, 0))
    arm = rd.FlexibleDynamics(model)

    def base(t):
        return rd.BaseMotion((0, 0, 0.8 * np.sin(3 * t)), (0, 0, 2.4 * np.cos(3 * t)),
                             (0.5 * np.cos(4 * t), 0, 0))

    def push(t):
        return {'lower': np.array([3 * np.sin(5 * t), 1.0, 0, 0, 0, 0])}

    t, h = 0.4, 1e-4
    need = [arm.inverse_dynamics(*states(at), f_ext=lambda s, at=at: push(at + s),
                                 base_motion=lambda s, at=at: base(at + s))
            for at in (t - h, t, t + h)]
    np.testing.assert_allclose((need[2].theta - need[0].theta) / (2 * h), need[1].theta_d,
                               atol=1e-6)
    np.testing.assert_allclose((need[2].theta_d - need[0].theta_d) / (2 * h), need[1].theta_dd,
                               atol=1e-5)
    q, qd, qdd, *_ = states(t)
    found, theta_dd = arm.forward_dynamics(q, qd, need[1].theta, need[1].theta_d, need[1].torque,
                                           f_ext=push(t), base_motion=base(t))
    np.testing.assert_allclose(found, qdd, atol=1e-8)
    np.testing.assert_allclose(theta_dd, need[1].theta_dd, atol=1e-7)
    # at rest under a force at the tip: the springs hold it
    force = {'lower': np.array([0, -20.0, 0, 0, 0, 0])}
    rest = arm.links_at_rest(q, f_ext=force)
    load = arm.links.inverse_dynamics(rest, 0 * q, 0 * q, force)
    np.testing.assert_allclose(q - rest, load / [4000.0, 2000.0], atol=1e-11)
    assert np.abs(arm.links_at_rest(q) - rest).max() > 1e-4


def test_the_page_on_moving_bases_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    *steps, elastic_ = re.findall(r'```python\n(.*?)```', (
        ROOT / 'docs/howto/moving_base.md').read_text(), re.DOTALL)
    names = {}
    for step in steps:
        exec(step, names)
    np.testing.assert_allclose(names['accelerations'], 0, atol=1e-10)
    assert names['in_the_joints'].shape == (3, 6) and 'base_motion' in elastic_
