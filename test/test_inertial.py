"""The motion of a floating base from inertial measurements and poses that come less often."""

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros.model import LinkFrame
from robodyn_ros.observation.inertial import InertialMotion, rotation_of
from robodyn_ros.spatial import axis_rotation, quaternion_of, rotation_from_quaternion

GRAVITY = np.array([0, 0, -9.80665])
UNIT = LinkFrame(-1, axis_rotation(np.array([0.6, 0, 0.8]), 0.7), np.array([0.1, -0.05, 0.2]))
RATE = 200.0


def place(t):
    return np.array([np.sin(2 * t), 0.5 * np.cos(1.5 * t), 0.1 * np.sin(5 * t)])


def turn(t):
    """A rotation whose angular velocity changes."""
    return rotation_of(np.array([0.3 * np.sin(2 * t), 0.2, 0.0])) @ rotation_of(
        np.array([0.0, 0.2 * np.cos(3 * t), 0.8 * t]))


def measured(t, h=1e-4):
    """Angular velocity and specific force of the unit, by finite differences; the true twist."""
    s = turn(t).T @ (turn(t + h) - turn(t - h)) / (2 * h)
    rates = np.array([s[2, 1] - s[1, 2], s[0, 2] - s[2, 0], s[1, 0] - s[0, 1]]) / 2
    a, b, c = (place(x) + turn(x) @ UNIT.translation for x in (t - h, t, t + h))
    force = (a - 2 * b + c) / h**2 - GRAVITY
    linear = turn(t).T @ (place(t + h) - place(t - h)) / (2 * h)
    return (UNIT.rotation.T @ rates, (turn(t) @ UNIT.rotation).T @ force,
            np.concatenate([linear, rates]))


def run(motion, rng, late=0.03, noise=0.0, bias=0.0, seconds=4.0, start=0.0):
    """Errors of pose and twist over the last seconds; poses at 25 Hz arrive late."""
    errors, waiting = [], []
    for k in range(round(seconds * RATE)):
        t = start + k / RATE
        rates, force, twist = measured(t)
        assert motion.measure(t, rates, force + bias)
        if k % 8 == 0:
            waiting.append(t)
        if waiting and t >= waiting[0] + late:
            then = waiting.pop(0)
            assert motion.correct(then, turn(then), place(then) + noise * rng.normal(size=3))
        if t - start > 2:
            pose, found = motion.state()
            errors.append([*np.abs(pose[:3] - place(t)), *np.abs(found - twist)])
            np.testing.assert_allclose(rotation_from_quaternion(pose[3:]), turn(t), atol=2e-4)
    return np.max(errors, axis=0)


def test_the_twist_is_that_of_the_base_although_the_unit_is_elsewhere(rng):
    motion = InertialMotion(GRAVITY, UNIT, 2.0)
    assert not motion.ready and not motion.correct(0.0, np.eye(3), np.zeros(3))
    errors = run(motion, rng)
    assert errors[:3].max() < 1e-3 and errors[3:6].max() < 5e-3 and errors[6:].max() < 1e-6
    assert not motion.measure(3.9, np.zeros(3), np.zeros(3)) and motion.ready


def test_a_bias_decays_and_noise_is_filtered(rng):
    """Without accelerometers, differences of such poses are wrong by 0.002 m * 25 Hz * sqrt 2."""
    errors = run(InertialMotion(GRAVITY, UNIT, 1.0), rng, noise=0.002, bias=0.05, seconds=5.0)
    assert errors[3:6].max() < 0.05


def test_a_gap_or_a_clock_that_jumps_begins_the_estimate_again(rng):
    motion = InertialMotion(GRAVITY, UNIT, 2.0)
    run(motion, rng, seconds=2.5)
    for start in (10.0, 3.0):
        rates, force, _ = measured(start - 1 / RATE)
        assert motion.measure(start - 1 / RATE, rates, force) and not motion.ready
        assert run(motion, rng, start=start, seconds=3.0)[3:6].max() < 5e-3
    with pytest.raises(rd.ValueRangeError, match='above 0 Hz'):
        InertialMotion(GRAVITY, UNIT, 0.0)


def test_an_orientation_alone_leaves_position_and_velocity_zero():
    motion = InertialMotion(GRAVITY, UNIT, 2.0)
    rates, force, twist = measured(0.7)
    motion.measure(0.7, rates, force)
    motion.orient(turn(0.7) @ UNIT.rotation)
    pose, found = motion.state()
    np.testing.assert_allclose(pose[:3], 0, atol=1e-12)
    np.testing.assert_allclose(found, [0, 0, 0, *twist[3:]], atol=1e-12)
    np.testing.assert_allclose(pose[3:], quaternion_of(turn(0.7)), atol=1e-12)


def test_without_poses_the_estimate_ends(rng):
    motion = InertialMotion(GRAVITY, UNIT, 2.0)
    run(motion, rng, seconds=2.5)
    ready = []
    for k in range(150):
        motion.measure(2.5 + k / RATE, *measured(2.5 + k / RATE)[:2])
        ready.append(motion.ready)
    assert ready[0] and not ready[-1]
    with pytest.raises(rd.ValueRangeError, match='two of them'):
        motion.state()
