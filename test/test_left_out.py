"""Errors on data that are left out, by which filters and friction models are chosen."""

import numpy as np
from synthetic import fourier_motion, lwr4_with_drives

import robodyn_ros as rd


def test_reduced_samples_lie_in_the_middle_of_the_torques_that_they_explain():
    """At 1 kHz, W is taken at some samples of each block over which the torque is averaged."""
    true = lwr4_with_drives()
    t, q, qd, qdd = fourier_motion(true, np.random.default_rng(21), 12, 1000)
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    result = rd.identify(true, rd.Log(t, q, tau, joint_names=true.joint_names))
    assert result.friction_choice_.errors['coulomb', 0.0] < 0.006
