"""The methods of estimation beside each other, on one log whose positions are noisy."""

from dataclasses import replace

import numpy as np
import pytest
from robots import planar_2r
from synthetic import fourier_motion

import robodyn_ros as rd
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.model.kinds import METHODS

TRUE = rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors={'joints': {
    name: {'link_friction': {'viscous': 0.4, 'coulomb': 0.8}, 'armature': 0.1}
    for name in ('j1', 'j2')}})
MODEL = replace(TRUE, lower=np.full(2, -2.0), upper=np.full(2, 2.0),
                velocity_limit=np.full(2, 6.0))


@pytest.fixture(scope='module')
def results():
    """Results of all methods; the noise of the positions partly passes the filter."""
    rng = np.random.default_rng(3)
    t, q, qd, qdd = fourier_motion(MODEL, rng, 20, 200)
    tau = rd.Dynamics(TRUE).inverse_dynamics(q, qd, qdd)
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    log = rd.Log(t, q + 3e-4 * rng.normal(size=q.shape), tau, joint_names=TRUE.joint_names)
    options = {'friction': 'coulomb', 'friction_width': 0.01, 'decimation': 20.0,
               'filter': rd.FilterSettings(cutoff=12.0)}
    return {method: rd.identify(TRUE, log, method=method, **options) for method in METHODS}


def error_of(values, result):
    """The relative error of base parameters."""
    linear = LinearModel(rd.Dynamics(TRUE), 'lumped', friction=result.linear.friction)
    true = result.base_.matrix @ linear.nominal()
    return np.linalg.norm(values - true) / np.linalg.norm(true)


def test_all_methods_find_the_robot(results):
    errors = {method: error_of(one.estimate_.values, one) for method, one in results.items()}
    assert max(errors.values()) < 0.2, errors
    assert len({round(error, 9) for error in errors.values()}) == len(METHODS), errors


@pytest.mark.parametrize('method', ['total', 'instrumental', 'didim', 'likelihood'])
def test_noise_of_positions_biases_weighted_least_squares_more(method, results):
    plain, better = results['weighted'], results[method]
    assert error_of(better.estimate_.values, better) < 0.5 * error_of(
        plain.estimate_.values, plain)


def test_the_physically_consistent_parameters_follow_the_method(results):
    one = results['instrumental']
    near = one.base_.matrix @ one.consistent_
    assert np.linalg.norm(near - one.estimate_.values) < 0.5 * np.linalg.norm(
        near - results['weighted'].estimate_.values)
