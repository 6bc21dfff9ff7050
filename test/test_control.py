"""References, limits and the demo's motion."""

import numpy as np
import pytest
from robots import PANDA_URDF

import robodyn_ros as rd
from robodyn_ros.control import Reference, SmoothMotion, saturate


def test_reference_passes_its_points_and_is_smooth(rng):
    times = np.array([0.1, 0.5, 1.2])
    q, qd, qdd = rng.normal(size=(3, 3, 2))
    reference = Reference(times, q, qd, qdd)
    for i, t in enumerate(times):
        for got, expected in zip(reference.sample(t), (q[i], qd[i], qdd[i]), strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-12)
    step = 1e-5
    for t in np.linspace(0.15, 1.15, 9):
        before, here, after = (reference.sample(t + k * step) for k in (-1, 0, 1))
        np.testing.assert_allclose((after[0] - before[0]) / (2 * step), here[1], atol=1e-6)
        np.testing.assert_allclose((after[1] - before[1]) / (2 * step), here[2], atol=1e-5)
    assert reference.duration == 1.2 and not reference.ends_at_rest
    np.testing.assert_array_equal(reference.sample(99.0)[0], q[-1])


@pytest.mark.parametrize('bad', [
    ([], np.zeros((0, 2))), ([0.0, 0.0], np.zeros((2, 2))), ([-1.0], np.zeros((1, 2))),
    ([np.nan], np.zeros((1, 2))), ([0.0], np.zeros((2, 2))), ([0.0], np.full((1, 2), np.inf))])
def test_bad_references_are_refused(bad):
    with pytest.raises(rd.RobodynError, match='valid'):
        Reference(bad[0], bad[1], bad[1], bad[1])


def test_saturation():
    limited, over = saturate(np.array([[1.0, -9.0, 5.0], [2.0, 0.0, 5.0]]),
                             np.array([np.inf, 3.0, 5.0]))
    np.testing.assert_array_equal(limited, [[1, -3, 5], [2, 0, 5]])
    assert over.tolist() == [False, True, False]


def test_smooth_motion_stays_within_limits():
    model = rd.load_model(PANDA_URDF)
    motion = SmoothMotion(model)
    samples = [motion.sample(t) for t in np.arange(-0.5, 30, 0.01)]
    q, qd, qdd = (np.array(part) for part in zip(*samples, strict=True))
    assert (q >= model.lower).all() and (q <= model.upper).all()
    assert (np.abs(qd) <= model.velocity_limit).all()
    np.testing.assert_allclose(np.gradient(q, 0.01, axis=0)[2:-2], qd[2:-2], atol=2e-3)
    np.testing.assert_allclose(np.gradient(qd, 0.01, axis=0)[2:-2], qdd[2:-2], atol=3e-2)
    assert not qd[0].any() and not qdd[0].any()
