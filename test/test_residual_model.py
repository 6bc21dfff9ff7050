"""The residual model: torques that rigid bodies and friction do not explain."""

import numpy as np
import pytest
from controller_bench import VALUES
from robots import planar_2r
from synthetic import fourier_motion, log_of

import robodyn_ros as rd
from robodyn_ros.control import ControlLaw
from robodyn_ros.control.reference_checks import torques
from robodyn_ros.dynamics.residual_torque import ResidualTorque

pytest.importorskip('sklearn')


@pytest.fixture(scope='module')
def arm():
    return rd.load_model(planar_2r(), gravity=(0, -9.81, 0))


def logs_of_an_arm(arm, ripple, reversed_from=1.0):
    """Two logs of an arm whose second joint has a torque ripple that depends on its angle.

    The ripple changes its sign at a fraction of each log.
    """
    rng, logs = np.random.default_rng(3), []
    for seconds in (40, 20):
        motion = fourier_motion(arm, rng, seconds, 100, frequency=1 / seconds, harmonics=14)
        noise = 0.1 * rng.normal(size=motion[1].shape)
        later = np.linspace(0, 1, len(noise)) > reversed_from
        noise[:, 1] += ripple * np.sin(5 * motion[1][:, 1]) * np.where(later, -1, 1)
        logs.append(log_of(arm, motion, noise=noise))
    return logs


@pytest.fixture(scope='module')
def logs(arm):
    return logs_of_an_arm(arm, 1.5)


@pytest.fixture(scope='module')
def result(arm, logs):
    return rd.identify(arm, logs[0], friction='coulomb', residual_model='gaussian_process')


def test_a_ripple_is_found_and_lowers_the_error_of_held_out_motions(arm, logs, result):
    assert tuple(result.residual_.joints) == ('j2',)
    validation = rd.validate(result, logs[1])
    joint = validation.with_residual
    assert joint.relative_error[1] < 0.6 * validation.relative_error[1]
    assert joint.relative_error[0] == validation.relative_error[0]
    assert joint.total < validation.total
    assert 'residual model' in validation.to_text()


def test_it_must_predict_no_third_of_a_log_worse(arm):
    """A ripple that changes its sign in the last quarter of the log is not there in all of it."""
    found = rd.identify(arm, logs_of_an_arm(arm, 1.5, reversed_from=0.75)[0], friction='coulomb',
                        residual_model='gaussian_process')
    assert found.residual_ is None


def test_it_is_off_by_default_and_refused_where_it_explains_nothing(arm):
    log = logs_of_an_arm(arm, 0.0)[0]
    found = rd.identify(arm, log, friction='coulomb', residual_model='gaussian_process')
    assert found.residual_ is None
    assert rd.Settings().residual_model == 'none'
    with pytest.raises(rd.UnknownNameError, match='gaussian_process'):
        rd.Settings(residual_model='magic')


def test_it_is_bounded_and_goes_to_zero_away_from_the_data(result, logs):
    rng = np.random.default_rng(4)
    q, qd = 5 * rng.normal(size=(2, 2000, 2))
    found = result.residual_.torque(q, qd)
    assert (np.abs(found) <= result.residual_.bound).all()
    assert 0 < np.abs(found[:, 1]).max() <= result.residual_.bound[1]
    assert result.residual_.bound[1] < 3.0
    far = np.full((3, 2), 1e3)
    assert not result.residual_.torque(far, far).any()
    assert not result.residual_.torque(np.full(2, np.nan), np.zeros(2)).any()


def test_predictions_contain_it(result):
    state = np.array([0.3, 0.3]), np.zeros(2), np.zeros(2)
    added = result.predict(*state) - result.predict(*state, residual=False)
    np.testing.assert_allclose(added, result.residual_.torque(*state[:2]))
    assert abs(added[1]) > 0.1


def test_it_is_saved_without_pickles_and_read_again(result, tmp_path):
    path = tmp_path / 'residual.npz'
    result.residual_.save(path)
    with np.load(path, allow_pickle=False) as content:
        assert all(content[name].dtype.kind in 'fU' for name in content.files)
    again = ResidualTorque.read(path)
    q, qd = np.random.default_rng(5).normal(size=(2, 20, 2))
    want = result.residual_.torque(q, qd)
    np.testing.assert_array_equal(again.torque(q, qd), want)
    turned = again.for_joints(again.joint_names[::-1]).torque(q[:, ::-1], qd[:, ::-1])
    np.testing.assert_allclose(turned[:, ::-1], want, atol=1e-12)
    with pytest.raises(rd.UnknownNameError, match='residual model'):
        again.for_joints(('j1', 'elbow'))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(rd.DescriptionError, match='residual.npz'):
        ResidualTorque.read(path)


def test_feedforward_torques_contain_it(arm, result, tmp_path):
    path = tmp_path / 'residual.npz'
    result.residual_.save(path)
    dynamics = rd.Dynamics(arm)
    law = ControlLaw.of(VALUES | {'residual_model': str(path)}, dynamics)
    q, qd, qdd = np.random.default_rng(6).normal(size=(3, 5, 2)) * 0.3
    added = torques(dynamics, q, qd, qdd, law.residual) - dynamics.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(added, result.residual_.torque(q, qd), atol=1e-12)
    assert np.abs(added[:, 1]).max() > 0.1
    assert law.tuning.residual is law.residual
