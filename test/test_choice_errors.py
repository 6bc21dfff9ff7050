"""Errors on data that are left out, by which filters and friction models are chosen."""

import numpy as np
import pytest
from robots import planar_2r
from synthetic import coloured_noise, dynamic_motion, fourier_motion, lwr4_with_drives

import robodyn_ros as rd


def test_reduced_samples_lie_in_the_middle_of_the_torques_that_they_explain():
    """At 1 kHz, W is taken at some samples of each block over which the torque is averaged."""
    true = lwr4_with_drives()
    t, q, qd, qdd = fourier_motion(true, np.random.default_rng(21), 12, 1000)
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    result = rd.identify(true, rd.Log(t, q, tau, joint_names=true.joint_names))
    assert result.friction_choice_.errors['coulomb', 0.0] < 0.006


def test_stribeck_velocities_among_the_slow_samples_are_not_tried():
    """A term that acts only in samples that are left out of the fit must not be added."""
    true = lwr4_with_drives()
    t, q, qd, qdd = fourier_motion(true, np.random.default_rng(21), 12, 250)
    stick = 20.0 * np.sign(qd) * np.exp(-np.abs(qd) / 0.05)
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd) + stick
    log = rd.Log(t, q, tau, joint_names=true.joint_names)
    lowest = []
    for slow in (None, 0.1):
        shape = rd.identify(true, log, slow=slow).linear.friction
        lowest.append(min((velocity * shape.speed[body]
                           for (body, _), velocity in shape.stribeck.items()), default=np.inf))
    assert lowest[0] < 0.1 <= lowest[1]


def test_filters_are_chosen_without_the_slow_samples():
    """The torque of a joint that sticks is arbitrary: it must not choose the filters."""
    arm = rd.load_model(planar_2r())
    t, q, qd, _, tau = dynamic_motion(arm, np.random.default_rng(5))
    tau = tau + coloured_noise(np.random.default_rng(6), len(t), 0.01 * np.ptp(tau, axis=0), 0.0)
    sticks = np.abs(qd) < 0.1
    options = {'joint_names': arm.joint_names, 'source': 'sticking'}
    smooth, stuck = (rd.identify(arm, rd.Log(t, q, x, **options), friction='none', slow=0.15)
                     for x in (tau, np.where(sticks, 0.0, tau)))
    assert sticks.sum() > 100 and stuck.filtering == smooth.filtering
    for key, error in smooth.filter_choice_.errors.items():
        assert stuck.filter_choice_.errors[key] == pytest.approx(error, rel=0.01)
