"""The fit of a recording while it is being recorded."""

import numpy as np
import pytest
from test_closed_loops import linkage

import robodyn_ros as rd
from robodyn_ros.experiment.live_fit import LiveFit


def test_a_recording_can_be_fitted_while_it_is_recorded(tmp_path):
    """For a robot whose loops are not closed where all joints are at zero."""
    dynamics, _ = linkage(tmp_path, link3={'length': 0.5})
    with pytest.raises(rd.ValueRangeError, match=r'gap between link3 and link4 at .* 0\.\d+ m'):
        dynamics.positions(np.zeros(2))
    live = LiveFit(dynamics, 'model1')
    assert np.isinf(live.state()[0])
    t = np.arange(0.0, 6.0, 0.005)
    middle, phase = np.array([0.3, 1.6]), np.array([0.0, 1.3])
    w = np.array([2.1, 2.9])
    q = middle + 0.3 * np.sin(w * t[:, None] + phase)
    qd = 0.3 * w * np.cos(w * t[:, None] + phase)
    qdd = -w**2 * (q - middle)
    live.add(t, q, qd, dynamics.inverse_dynamics(q, qd, qdd))
    condition, unexplained = live.state()
    assert live.samples == len(t) and 1 < condition < 1e4
    assert (unexplained < 0.02).all()
