"""The model of correlated noise, from which the intervals of parameters follow."""

import numpy as np
import pytest
import scipy.linalg
from synthetic import coloured_noise

from robodyn_ros.identification.noise import Row, _spread


def test_the_noise_is_known_as_well_as_its_memory_allows():
    """The variance of a mean under autoregressive noise, and how well it is known."""
    count, memory = 4000, 0.9
    noise = coloured_noise(np.random.default_rng(7), count, np.ones(1), memory)[:, 0]
    ones = np.column_stack([np.ones(count), np.zeros(count)])  # zeros: no delay
    row = Row(0, 1.0, [(ones, noise - noise.mean(), np.ones(count, bool))], 4)
    plain = np.array([[1 / count]])
    row.fit_noise(plain, plain, first=True)
    _, relative = row.variances(plain)
    # relative variances of the estimated memory and size of the noise
    assert relative[0] == pytest.approx(4 * (1 + memory) / (1 - memory) / count + 2 / count,
                                        rel=0.4)


def test_the_covariance_of_autoregressive_coefficients_is_the_inverse_autocovariance():
    model = np.array([0.9, -0.4, 0.2])
    poles = np.eye(3, k=-1)
    poles[0] = model
    state = scipy.linalg.solve_discrete_lyapunov(poles, np.diag([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(_spread(model), np.linalg.inv(state), atol=1e-12)
