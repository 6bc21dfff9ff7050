"""Bounds of C and g over the joint range against those of the planar arm (Kolyubin 2.2.3, 4.2)."""

from dataclasses import replace

import numpy as np
import pytest
from robots import joint, link, planar_2r, robot

import robodyn_ros as rd

G = 9.81


def test_bounds_of_the_planar_arm(rng):
    """|g| is largest for the stretched horizontal arm, |C| where sin q2 is 1."""
    model = rd.load_model(planar_2r(), gravity=(0, -G, 0))
    bounds, dynamics = rd.term_bounds(model, samples=256), rd.Dynamics(model)
    a4, a5 = G * (2.0 * 0.3 + 1.5 * 0.7), G * 1.5 * 0.25
    assert bounds.gravity == pytest.approx(np.hypot(a4 + a5, a5), rel=1e-4)
    np.testing.assert_allclose(np.linalg.norm(dynamics.gravity(bounds.q_gravity)), bounds.gravity)
    angle = np.linspace(0, np.pi, 2001)
    x, y, zero = np.cos(angle), np.sin(angle), np.zeros(2001)
    shape = np.array([[y, x + y], [-x, zero]]).transpose(2, 0, 1)
    largest = 1.5 * 0.7 * 0.25 * np.linalg.norm(shape, 2, axis=(1, 2)).max()
    assert bounds.coriolis == pytest.approx(largest, rel=1e-4)
    assert np.linalg.norm(bounds.qd_coriolis) == pytest.approx(1)
    found = dynamics.coriolis_matrix(bounds.q_coriolis, bounds.qd_coriolis)
    assert np.linalg.norm(found, 2) == pytest.approx(bounds.coriolis, rel=1e-6)
    q, qd = rng.uniform(-3, 3, (2, 200, 2))
    assert (np.linalg.norm(dynamics.coriolis_matrix(q, qd), 2, axis=(1, 2))
            <= bounds.coriolis * np.linalg.norm(qd, axis=1) * (1 + 1e-4)).all()
    assert bounds.unlimited == () and bounds.evaluations > 256


def test_a_prismatic_joint_without_limits_has_no_bound():
    """The search moves it up to 1 m from zero."""
    text = robot(link('base'), link('turn', 1.0), link('mass', 2.0),
                 joint('j1', 'revolute', 'base', 'turn', axis=(0, 1, 0)),
                 joint('j2', 'prismatic', 'turn', 'mass', axis=(1, 0, 0)))
    limited = rd.term_bounds(rd.load_model(text), samples=64)
    assert limited.unlimited == ()
    free = replace(rd.load_model(text), lower=np.array([-3, -np.inf]),
                   upper=np.array([3, np.inf]))
    bounds = rd.term_bounds(free, samples=256)
    assert bounds.unlimited == ('j2',)
    # g = (m d g cos q, m g sin q): largest at d = 1 m, then everywhere m g
    assert bounds.gravity == pytest.approx(2.0 * 9.80665, rel=1e-3)
    assert limited.gravity == pytest.approx(3 * 2.0 * 9.80665, rel=1e-2)
