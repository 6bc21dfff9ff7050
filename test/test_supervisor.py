"""The supervisor of the control laws: phases, fades, limits; no ROS, no clock."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import PANDA_URDF, planar_2r
from synthetic import LWR4

import robodyn_ros as rd
from robodyn_ros.control import LAWS, Gains, Supervisor, Tuning, automatic_gains
from robodyn_ros.control.tuning import tuning_of

PALLETISER = LWR4.parent / 'palletiser.urdf.xacro'
LOOPS = LWR4.parent.parent / 'config/robots/palletiser_loops.yaml'
MODEL = rd.load_model(planar_2r(), gravity=(0, -9.81, 0))
DYNAMICS = rd.Dynamics(MODEL)
STEP = 0.001


def tuning(law='feedforward_pd', **options):
    usual = {'gains': Gains.of(2, 50.0, 10.0), 'acceleration_gains': Gains.of(2, 100.0, 20.0),
             'damping': np.full(2, 1.0), 'friction': 0.0, 'state_timeout': 0.05,
             'zero_after': 0.2, 'ramp': 0.1, 'rate_limit': np.full(2, np.inf)}
    return Tuning(law, **(usual | options))


def still(q):
    return np.array(q), np.zeros(2)


REFERENCE = (np.array([0.5, 0.2]), np.zeros(2), np.zeros(2))


def test_phases_follow_state_and_reference():
    seen = []
    supervisor = Supervisor(lambda before, after: seen.append(after))
    state, options = still([0.3, 0.1]), tuning()
    command = supervisor.command(0.0, DYNAMICS, options, state, 0.0, None)
    np.testing.assert_allclose(command.torque, DYNAMICS.gravity(state[0]))
    supervisor.command(0.1, DYNAMICS, options, state, 0.0, REFERENCE)
    assert supervisor.phase == 'following'
    supervisor.command(0.2, DYNAMICS, options, state, 0.06, REFERENCE)
    held = supervisor.command(0.34, DYNAMICS, options, state, 0.19, REFERENCE)
    np.testing.assert_allclose(held.torque, DYNAMICS.gravity(state[0]), atol=1e-12)
    supervisor.command(0.36, DYNAMICS, options, state, 0.21, REFERENCE)
    zero = supervisor.command(0.5, DYNAMICS, options, state, 0.4, REFERENCE)
    np.testing.assert_array_equal(zero.torque, 0.0)
    late = supervisor.command(0.5, DYNAMICS, options, state, 0.06, None)
    assert late.phase == 'zero'  # a state that is still late does not bring torque back
    back = supervisor.command(0.6, DYNAMICS, options, state, 0.0, None)
    np.testing.assert_allclose(back.torque, DYNAMICS.gravity(state[0]))  # at once
    assert seen == ['gravity compensation', 'following', 'holding', 'zero',
                    'gravity compensation']


@pytest.mark.parametrize('before', LAWS)
@pytest.mark.parametrize('after', LAWS)
def test_every_change_of_mode_is_bumpless(before, after):
    supervisor, state = Supervisor(), still([0.1, -0.2])
    torques = []
    for k in range(400):
        law = before if k < 200 else after
        torques.append(supervisor.command(k * STEP, DYNAMICS, tuning(law), state, 0.0,
                                          REFERENCE).torque)
    span = np.abs(torques[-1] - torques[199]).max()
    assert np.abs(np.diff(torques[198:], axis=0)).max() <= 0.02 * span + 1e-9
    fresh = Supervisor().command(0.0, DYNAMICS, tuning(after), state, 0.0, REFERENCE)
    np.testing.assert_allclose(torques[-1], fresh.torque, atol=1e-9)


def test_another_model_or_reference_fades_as_well():
    supervisor, state = Supervisor(), still([0.1, -0.2])
    heavy = rd.Dynamics(rd.load_model(planar_2r(m1=6.0), gravity=(0, -9.81, 0)))
    far = (np.array([-0.5, 0.7]), np.zeros(2), np.zeros(2))
    first = supervisor.command(0.0, DYNAMICS, tuning(), state, 0.0, REFERENCE, 'a').torque
    for dynamics, reference, token in ((heavy, REFERENCE, 'a'), (heavy, far, 'b')):
        again = supervisor.command(STEP, dynamics, tuning(), state, 0.0, reference, token).torque
        np.testing.assert_allclose(again, first, atol=1e-9)
    plain = supervisor.command(1.0, heavy, tuning(), state, 0.0, far, 'b').torque
    assert np.abs(plain - first).max() > 1.0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), rate=st.floats(1.0, 1e4))
def test_whatever_happens_torques_are_finite_limited_and_no_faster_than_allowed(seed, rate):
    rng = np.random.default_rng(seed)
    supervisor, last, now = Supervisor(), None, 0.0
    for _ in range(60):
        now += float(rng.choice([0.001, 0.01, 0.3]))
        options = tuning(str(rng.choice(LAWS)), rate_limit=np.full(2, rate))
        state = rng.normal(size=2) * 3, rng.normal(size=2) * 10 ** rng.uniform(-2, 3)
        reference = None if rng.random() < 0.3 else tuple(rng.normal(size=(3, 2)) * 100)
        age = float(rng.choice([0.0, 0.06, 0.5]))
        command = supervisor.command(now, DYNAMICS, options, state, age, reference)
        assert np.isfinite(command.torque).all()
        assert (np.abs(command.torque) <= MODEL.effort_limit).all()
        if last is not None:
            assert (np.abs(command.torque - last[1]) <= rate * min(now - last[0], 0.1)
                    * (1 + 1e-9) + 1e-9).all()
        last = now, command.torque


def test_a_torque_that_is_not_finite_is_refused_and_nothing_changes():
    supervisor, state = Supervisor(), still([0.1, -0.2])
    supervisor.command(0.0, DYNAMICS, tuning(), state, 0.0, REFERENCE)
    wild = (state[0], np.full(2, 1e300))
    with pytest.raises(FloatingPointError), np.errstate(all='ignore'):
        supervisor.command(STEP, DYNAMICS, tuning('computed_torque'), wild, 0.0, REFERENCE)
    assert supervisor.phase == 'following'


def test_the_chosen_fraction_of_friction_is_compensated_with_a_smooth_sign():
    sticky = rd.Dynamics(rd.load_model(planar_2r(), motors={'joints': {
        'j1': {'link_friction': {'coulomb': 2.0}}}}), friction_width=0.05)
    state = np.zeros(2), np.array([0.5, 0.0])
    torque = [Supervisor().command(0.0, sticky, tuning('gravity_compensation', friction=part),
                                   state, 0.0, None).torque[0] for part in (0.0, 0.8)]
    assert torque[1] - torque[0] == pytest.approx(0.8 * sticky.friction(state[1])[0])


def test_automatic_gains_follow_from_least_inertia_and_gravity():
    q = np.random.default_rng(5).uniform(-3, 3, (500, 2))
    least = np.diagonal(DYNAMICS.mass_matrix(q), axis1=1, axis2=2).min(axis=0)
    fast = automatic_gains(DYNAMICS, frequency=30.0)
    assert (fast.kp <= 900 * least * 1.05).all() and (fast.kp > 450 * least).all()
    np.testing.assert_allclose(fast.kd, fast.kp / 15)
    soft = automatic_gains(DYNAMICS, frequency=0.1)
    needed = -np.diagonal(_slopes_of_gravity(DYNAMICS, q), axis1=1, axis2=2).min(axis=0)
    assert (soft.kp > needed).all() and (soft.kp < 4 * needed).all()
    np.testing.assert_allclose(automatic_gains(DYNAMICS).kd / 2, 10 * fast.kp / 900, rtol=1e-12)


def test_the_frequency_of_automatic_gains_is_a_parameter():
    automatic = dict.fromkeys(('kp', 'kd', 'damping'), [-1.0])
    zeros = dict.fromkeys(('torque_rate_limit', 'computed_torque_kp', 'computed_torque_kd'), [0.0])
    values = automatic | zeros | {
        'mode': 'feedforward_pd', 'gain_frequency': 25.0, 'friction_compensation': 0.0,
        'state_timeout': 0.1, 'zero_after': 0.5, 'ramp': 0.2}
    found = tuning_of(values, DYNAMICS)
    wanted = automatic_gains(DYNAMICS, 25.0)
    np.testing.assert_array_equal(found.gains.kp, wanted.kp)
    np.testing.assert_array_equal(found.gains.kd, wanted.kd)


@pytest.mark.parametrize('load', [
    lambda: rd.Dynamics(rd.load_model(PANDA_URDF)),
    lambda: rd.ClosedLoopDynamics(rd.load_model(PALLETISER), LOOPS)], ids=['panda', 'palletiser'])
def test_automatic_gains_hold_an_arm_upright(load, rng):
    """Feed-forward and PD at any pose: the gains exceed the destabilising effect of gravity."""
    dynamics = load()
    joints = dynamics.joints
    q = rng.uniform(np.maximum(joints.lower, -3), np.minimum(joints.upper, 3), (400, joints.n))
    if isinstance(dynamics, rd.ClosedLoopDynamics):
        q = q[dynamics.reachable(1.01 * q) & dynamics.reachable(q) & dynamics.reachable(0.99 * q)]
    kp = np.diag(automatic_gains(dynamics).kp)
    assert np.linalg.eigvalsh(kp + _slopes_of_gravity(dynamics, q)).min() > 0


def _slopes_of_gravity(dynamics, q, step=1e-6):
    """dg/dq, shape (N, n, n)."""
    return np.stack([(dynamics.gravity(q + way) - dynamics.gravity(q - way)) / (2 * step)
                     for way in step * np.eye(q.shape[1])], axis=-1)
