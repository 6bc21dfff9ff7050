"""Base parameters for predictions: drawn towards the description, friction not negative."""

from dataclasses import replace

import numpy as np
import pytest
from robots import planar_2r
from synthetic import coloured_noise, dynamic_motion, fourier_motion, lwr4_with_drives

import robodyn_ros as rd
from robodyn_ros.identification.shrinkage import quadrants


def narrow_log(true, rng):
    """A log of a small part of the joint range, and another motion in the whole range."""
    t, q, qd, qdd = fourier_motion(true, rng, 20, 200)
    other = fourier_motion(true, rng, 20, 200)
    middle = q.mean(axis=0)
    q, qd, qdd = middle + 0.3 * (q - middle), 0.3 * qd, 0.3 * qdd
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    tau = tau + coloured_noise(rng, len(t), 0.03 * tau.std(axis=0), 0.95)
    return rd.Log(t, q, tau, joint_names=true.joint_names), other[1:]


def errors(result, true, motion):
    """Errors on another motion: of weighted least squares alone, and of the predictions."""
    theta = np.zeros_like(result.theta_)
    theta[list(result.base_.kept)] = result.estimate_.values
    exact = rd.Dynamics(true).inverse_dynamics(*motion)
    return [np.linalg.norm(x.predict(*motion) - exact) / np.linalg.norm(exact)
            for x in (replace(result, theta_=theta), result)]


def with_inertia(model, factor):
    """The model with other inertial parameters."""
    chi = model.standard_parameters.reshape(-1, 17).copy()
    chi[:, :10] *= factor
    return model.with_standard_parameters(chi.ravel())


@pytest.mark.parametrize('factor', [1.0, 0.2, 5.0])
def test_another_motion_is_predicted_better_after_a_narrow_one(factor):
    """How far bodies are from the description follows from the log, also if all are wrong."""
    true = lwr4_with_drives(np.random.default_rng(1), 0.15)
    nominal = with_inertia(lwr4_with_drives(), factor)
    log, other = narrow_log(true, np.random.default_rng(4))
    result = rd.identify(nominal, log)
    alone, drawn = errors(result, true, other)
    assert drawn < 0.6 * alone
    assert any('left out of the fit' in note and 'predictions use it' in note
               for note in result.notes)
    plain = rd.identify(nominal, log, method='ordinary')
    assert not any('prior around' in note for note in plain.notes)


def test_a_prior_without_a_certain_gain_is_not_used():
    true = lwr4_with_drives(np.random.default_rng(1), 0.15)
    log, other = narrow_log(true, np.random.default_rng(1))
    result = rd.identify(lwr4_with_drives(), log)
    alone, drawn = errors(result, true, other)
    assert drawn == alone
    assert any('no certain improvement' in note for note in result.notes)


def test_friction_of_predictions_is_not_negative():
    """The torque of joint 1 is late, as if its friction were negative where the arm hangs."""
    arm = rd.load_model(planar_2r(), gravity=(0, -9.81, 0))
    rng, t = np.random.default_rng(1), np.arange(4000) / 200

    def around(pose):
        w = 2 * np.pi * np.array([0.2, 0.4, 0.7])[:, None, None]
        size, phase = 0.4 * rng.normal(size=(3, 2, 1)), rng.uniform(0, 6, (3, 2, 1))
        parts = (np.sin(w * t + phase), w * np.cos(w * t + phase), -w**2 * np.sin(w * t + phase))
        q, qd, qdd = ((size * part).sum(axis=0).T for part in parts)
        return q + pose, qd, qdd

    q, qd, qdd = around([-np.pi / 2, 0.0])
    tau = rd.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau[:, 0] = np.interp(t - 0.02, t, tau[:, 0])
    tau += 0.01 * tau.std(axis=0) * rng.normal(size=tau.shape)
    result = rd.identify(arm, rd.Log(t, q, tau, joint_names=arm.joint_names), torque_delay=0.0)
    kept = list(result.base_.kept)
    friction = [name.startswith(('Fv', 'Fc')) for name in result.base_.names]
    assert result.estimate_.values[friction].min() < 0 <= result.theta_[kept][friction].min()
    assert any('Fvl:j1 would be negative: predictions use 0' in note for note in result.notes)
    alone, drawn = errors(result, arm, around([np.pi / 2, 0.0]))
    assert drawn < 0.95 * alone


def test_exact_data_are_left_as_they_are():
    """Where the log determines everything, a wrong description does not matter."""
    arm = rd.load_model(planar_2r())
    t, q, _, _, tau = dynamic_motion(arm, np.random.default_rng(3))
    result = rd.identify(with_inertia(arm, 3.0), rd.Log(t, q, tau, joint_names=arm.joint_names))
    values = result.theta_[list(result.base_.kept)]
    np.testing.assert_allclose(values, result.estimate_.values, rtol=1e-3, atol=1e-4)


def test_the_four_regions_are_quarters_that_lie_apart():
    rng = np.random.default_rng(2)
    q = rng.normal(size=(400, 3)) * [3.0, 2.0, 0.0] + [1.0, 0.0, 5.0]
    label = quadrants(q)
    assert np.bincount(label).tolist() == [100] * 4
    centres = np.array([q[label == k].mean(axis=0) for k in range(4)])
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(4, 1)]
    assert distance.min() > 2.0
    one = quadrants(q[:, :1])  # a single joint: quarters of its positions
    assert np.bincount(one).tolist() == [100] * 4
    assert not (np.diff(one[np.argsort(q[:, 0])]) != 0).sum() > 3
