"""The width over which dry friction changes its sign: from the fit to whatever uses the model."""

import numpy as np
import pytest
from robots import planar_2r
from synthetic import coloured_noise, fourier_motion

import robodyn_ros as rd
from robodyn_ros.control.resting_direction import RestingDirection
from robodyn_ros.dynamics.protocol import smoothed
from robodyn_ros.identification.writing import motors_of
from robodyn_ros.kernels import smooth_sign

WIDTHS = np.array([0.08, 0.2])  # rad/s


def arm(widths=None):
    """A planar arm with dry friction, and the widths of its joints."""
    more = [{} if widths is None else {'friction_width': width}
            for width in (WIDTHS if widths is None else widths)]
    return rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors={'joints': {
        'j1': {'armature': 0.3, 'link_friction': {'viscous': 0.5, 'coulomb': 3.0}, **more[0]},
        'j2': {'armature': 0.1, 'friction_curve': {
            'viscous': 0.2, 'coulomb': 1.0, 'stribeck': 0.5, 'stribeck_velocity': 0.3},
               **more[1]}}})


@pytest.fixture(scope='module')
def result():
    """A fit to a log of the arm with smooth friction."""
    true = arm(WIDTHS)
    t, q, qd, qdd = fourier_motion(true, np.random.default_rng(5), 30, 200)
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    noise = coloured_noise(np.random.default_rng(6), len(t), 0.005 * np.ptp(tau, axis=0), 0.9)
    return rd.identify(arm(), rd.Log(t, q, tau + noise, joint_names=true.joint_names))


def test_the_smooth_sign_is_close_to_a_hyperbolic_tangent():
    x = np.linspace(-30, 30, 60001)
    assert np.abs(smooth_sign(x, 1.0) - np.tanh(x)).max() < 0.023
    np.testing.assert_allclose(smooth_sign(0.3 * x, 0.3), smooth_sign(x, 1.0), rtol=1e-12)
    assert (np.diff(smooth_sign(x, 1.0)) > 0).all()
    np.testing.assert_array_equal(smooth_sign(x, 0.0), np.sign(x))
    assert smooth_sign(1e-9, 1.0) == pytest.approx(1e-9)


def test_an_array_of_widths_has_one_for_each_joint(rng):
    speeds = np.vstack([np.zeros(3), np.full(3, 1e-200), rng.normal(size=(20, 3))])
    for widths in ([0.1, 0.0, 2.0], [0.0, 0.0, 0.0], [0.1, 0.2, 0.3]):
        each = np.column_stack([smooth_sign(speeds[:, k], width)
                                for k, width in enumerate(widths)])
        np.testing.assert_array_equal(smooth_sign(speeds, np.array(widths)), each)
        np.testing.assert_array_equal(smooth_sign(speeds[3], np.array(widths)), each[3])


def test_each_joint_has_the_width_of_the_motor_file(rng):
    model, qd = arm(WIDTHS), rng.normal(size=(50, 2)) * 0.2
    np.testing.assert_array_equal(model.friction_width, WIDTHS)
    own = rd.Dynamics(model)
    for joint, width in enumerate(WIDTHS):
        np.testing.assert_allclose(own.friction(qd)[:, joint], rd.Dynamics(
            model, friction_width=width).friction(qd)[:, joint], rtol=1e-12)
    q, qdd = rng.normal(size=(2, 50, 2))
    want = own.inverse_dynamics(q, qd, qdd)
    for other in (rd.Dynamics(model, shared_code=True), rd.LagrangeEuler(model),
                  own.with_model(model), rd.dynamics_of(model)):
        np.testing.assert_allclose(other.inverse_dynamics(q, qd, qdd), want, rtol=1e-9)
    plain = model.with_plain_friction()
    np.testing.assert_allclose(rd.Dynamics(plain).regressor(q, qd, qdd) @ (
        plain.standard_parameters), rd.Dynamics(plain).inverse_dynamics(q, qd, qdd), rtol=1e-9)


def test_a_width_for_all_joints_replaces_those_of_the_model(rng):
    qd = rng.normal(size=(50, 2)) * 0.2
    for width in (0.0, 0.03):
        np.testing.assert_array_equal(
            rd.Dynamics(arm(WIDTHS), friction_width=width).friction(qd),
            rd.Dynamics(arm(), friction_width=width).friction(qd))
    sharp = rd.Dynamics(arm(), friction_width=0.0)
    assert sharp.with_model(arm(WIDTHS)).friction_width == 0.0


def test_wrong_widths_are_refused():
    for wrong in (-0.1, 'wide', float('nan')):
        with pytest.raises(rd.RobodynError, match='friction_width'):
            arm([wrong, 0.1])
    with pytest.raises(rd.RobodynError, match='friction_width'):
        rd.Dynamics(arm(), friction_width=-1.0)


def test_coupled_motors_have_the_widths_of_the_joints_that_they_move():
    model = rd.load_model(planar_2r(), motors={
        'joints': {name: {'motor_friction': {'coulomb': 0.1}, 'friction_width': width}
                   for name, width in zip(('j1', 'j2'), WIDTHS, strict=True)},
        'gear_matrix': {'joints': ['j1', 'j2'], 'matrix': [[10, 0], [10, 20]]}})
    qd = np.array([0.05, 0.03])
    motors = smooth_sign(qd[0], WIDTHS[0]), smooth_sign(
        0.5 * qd[0] + qd[1], 0.5 * WIDTHS[0] + WIDTHS[1])
    np.testing.assert_allclose(rd.Dynamics(model).friction(qd),
                               [1.0 * motors[0] + 0.5 * 2.0 * motors[1], 2.0 * motors[1]])


def test_the_friction_of_the_model_is_that_of_the_fit(result):
    shape = result.linear.friction
    assert shape.width > 0
    np.testing.assert_allclose(result.model.friction_width, np.maximum(
        shape.width * shape.speed, shape.floor))
    segment = result.observations.segments[0]
    motion = segment.q, segment.qd, segment.qdd
    want = result.predict(*motion, consistent=True)
    again = rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors=motors_of(result.model))
    again = again.with_standard_parameters(result.model.standard_parameters)
    for model in (result.model, again):
        np.testing.assert_allclose(rd.Dynamics(model).inverse_dynamics(*motion), want, atol=1e-9)
    # as it was before the width was kept
    sharp = rd.Dynamics(result.model, friction_width=0.0).inverse_dynamics(*motion)
    assert np.abs(sharp - want).max() > 0.5


def test_the_width_that_the_user_sets_is_kept(result):
    log = result.observations.segments[0]
    log = rd.Log(log.t, log.q, log.tau, joint_names=result.model.joint_names)
    for width in (0.0, 0.07):
        found = rd.identify(arm(WIDTHS), log, friction='coulomb', friction_width=width)
        np.testing.assert_allclose(found.model.friction_width, np.maximum(
            width * found.linear.friction.speed, found.linear.friction.floor * (width > 0)))
    none = rd.identify(arm(WIDTHS), log, kind='rigid', friction='none')
    np.testing.assert_array_equal(none.model.friction_width, WIDTHS)
    first = rd.identify(arm(WIDTHS), log, joints=['j2'], friction_width=0.07)
    assert first.model.friction_width[0] == WIDTHS[0] != first.model.friction_width[1]


def test_a_smooth_sign_for_observers_and_simulations_keeps_known_widths(rng):
    qd = rng.normal(size=(50, 2)) * 0.1
    for widths, want in ((None, (0.01, 0.01)), ((0.0, 0.2), (0.01, 0.2)), (WIDTHS, WIDTHS)):
        found = smoothed(rd.Dynamics(arm(widths)), 0.01)
        np.testing.assert_allclose(found.friction(qd), rd.Dynamics(arm(want)).friction(qd))
    for width, want in ((0.0, 0.01), (0.05, 0.05)):
        found = smoothed(rd.Dynamics(arm(WIDTHS), friction_width=width), 0.01)
        assert found.friction_width == want
    start = {'q': [0.3, 0.2], 'qd': [0.2, -0.1], 'duration': 0.5}
    np.testing.assert_allclose(rd.simulate(arm(WIDTHS), **start).q,
                               rd.simulate(rd.Dynamics(arm(WIDTHS)), **start).q)
    with pytest.raises(rd.RobodynError, match='j1 has Coulomb friction'):
        rd.simulate(rd.Dynamics(arm((0.0, 0.2))), **start)


def test_only_joints_with_a_sharp_sign_remember_their_direction():
    dynamics, keep = rd.Dynamics(arm((0.0, 0.2))), RestingDirection()
    keep(dynamics, np.array([0.3, 0.3]))
    resting = keep(dynamics, np.zeros(2))
    assert resting[0] > 0 and resting[1] == 0
    assert keep(rd.Dynamics(arm(WIDTHS)), np.zeros(2)).tolist() == [0, 0]
    # with one width for all joints, none remembers
    assert RestingDirection()(rd.Dynamics(arm(), friction_width=0.1),
                              np.zeros(2)).tolist() == [0, 0]


def test_exported_c_names_the_widths(tmp_path):
    rd.export_c(arm(WIDTHS), tmp_path, terms=['friction'], prefix='arm')
    text = next(tmp_path.rglob('arm.h')).read_text('utf-8').replace(' *', ' ')
    assert 'w = 0.08 (j1), 0.2 (j2) rad/s' in ' '.join(text.split())
