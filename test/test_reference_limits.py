"""References: what lies between their points, and the limits that hold there."""

import numpy as np
import pytest
from controller_bench import Bench, Q, law, moving
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control import Reference, ReferenceRefused


def samples(reference, order):
    """A derivative of a reference on a fine grid, shape (N, n)."""
    grid = np.concatenate([np.linspace(a, b, 1001) for a, b in zip(
        reference.times, reference.times[1:], strict=False)])
    return np.array([reference.sample(t)[order] for t in grid])


def test_limits_hold_between_the_points_too():
    """Two points at rest, both within the range, 1 rad and 50 ms apart: 37 rad/s between them."""
    bench = Bench()
    bench.state()
    with pytest.raises(ReferenceRefused, match='velocity of joint .* at 0.0'):
        bench.play(moving(Q + [1.0, 0.0], 0.05))
    overshooting = Reference([0.0, 1.0], [Q, Q], [[8.0, 0.0], [8.0, 0.0]], np.zeros((2, 2)))
    span = samples(overshooting, 0)[:, 0]
    bounds = np.array([span.max() - 0.01, 9.0])
    found = overshooting.excess(0, -bounds, bounds)
    assert found is not None and found.joint == 0
    assert found.value == pytest.approx(span.max(), abs=1e-4)
    assert overshooting.excess(0, -bounds - 0.02, bounds + 0.02) is None
    assert bench.controller.player.playing is None
    weak = rd.Dynamics(rd.load_model(planar_2r().replace('effort="100"', 'effort="40"'),
                                     gravity=(0, -9.81, 0)))
    bench.controller.use(law(weak), bench.now)
    with pytest.raises(ReferenceRefused, match='torque of joint .* at 0.* 40'):
        bench.play(moving(Q + [0.0, 0.3], 0.15))  # 19 N m at the points, 47 between them


def test_extrema_equal_dense_samples(rng):
    for _ in range(10):
        times = np.cumsum(rng.uniform(0.05, 2.0, 4))
        reference = Reference(times, *rng.normal(size=(3, 4, 2)) * [[[1]], [[3]], [[9]]])
        for order in range(3):
            values = samples(reference, order)
            upper = np.full(2, np.inf)
            upper[0] = values[:, 0].max()
            slack, lower = 1e-4 * (1 + np.ptp(values[:, 0])), np.full(2, -np.inf)
            assert reference.excess(order, lower, upper + slack) is None
            found = reference.excess(order, lower, upper - slack)
            assert found.joint == 0 and found.value > upper[0] - slack
            assert reference.sample(found.time)[order][0] == pytest.approx(found.value)


def test_dense_samples_are_those_of_the_reference(rng):
    reference = Reference([0.5, 1.0, 3.0], *rng.normal(size=(3, 3, 2)))
    times, *parts = reference.dense(20)
    assert len(times) == 21 and times[0] == 0.5 and times[-1] == 3.0
    for k, instant in enumerate(times):
        for part, expected in zip(parts, reference.sample(instant), strict=True):
            np.testing.assert_allclose(part[k], expected, atol=1e-9)
