"""Synthetic logs of robots whose parameters are known."""

from functools import cache
from pathlib import Path

import numpy as np

import robodyn_ros as rd

LWR4 = Path(__file__).parent.parent / 'urdf/kuka_lwr4.urdf.xacro'


@cache
def own_robot(name):
    """The URDF of one of this package's robots, which is expanded once in this process."""
    return rd.load_model(LWR4.parent / f'{name}.urdf.xacro').description.urdf


def lwr4_with_drives(rng=None, spread=0.0, **options):
    """The LWR 4+ with friction and rotors; parameters vary by the fraction ``spread``."""
    nominal = rd.load_model(LWR4, **options)
    chi = nominal.standard_parameters.reshape(-1, 17).copy()
    size = np.array([3.0, 3.0, 2.0, 2.0, 1.0, 0.6, 0.6])
    chi[:, 10:13] = size[:, None] * [1.0, 1.5, 0.1]
    chi[:, 13] = 0.3 * size
    if spread:
        chi[:, :10] *= 1 + spread * rng.uniform(-1, 1, (7, 1))  # a heavier or lighter body
        chi[:, 10:14] *= 1 + spread * rng.uniform(-1, 1, (7, 4))
    return nominal.with_standard_parameters(chi.ravel())


def fourier_motion(model, rng, seconds, rate, *, frequency=0.1, harmonics=6):
    """(t, q, qd, qdd) of a random Fourier series within the joint range, periodic in 1/f."""
    t = np.arange(round(seconds * rate)) / rate
    middle = (model.lower + model.upper) / 2
    reach = 0.35 * (model.upper - model.lower)
    q, qd, qdd = (np.zeros((len(t), model.n)) for _ in range(3))
    weights = rng.normal(size=(2, harmonics, model.n)) / np.arange(1, harmonics + 1)[:, None]
    for k in range(harmonics):
        w = 2 * np.pi * frequency * (k + 1)
        c, s = np.cos(w * t)[:, None], np.sin(w * t)[:, None]
        a, b = weights[:, k]
        q += a * c + b * s
        qd += w * (b * c - a * s)
        qdd -= w**2 * (a * c + b * s)
    scale = np.minimum(reach / np.abs(q).max(axis=0), 0.9 * model.velocity_limit
                       / np.abs(qd).max(axis=0))
    return t, middle + q * scale, qd * scale, qdd * scale


def dynamic_motion(model, rng):
    """(t, q, qd, qdd, tau) of a random Fourier series of 20 s at 200 Hz, without noise."""
    t, q, qd, qdd = fourier_motion(model, rng, 20, 200)
    return t, q, qd, qdd, rd.Dynamics(model).inverse_dynamics(q, qd, qdd)


def coloured_noise(rng, count, sigma, memory):
    """Autoregressive noise of standard deviation sigma, shape (count, len(sigma))."""
    import scipy.signal

    white = rng.normal(size=(count + 200, len(sigma)))
    noise = scipy.signal.lfilter([np.sqrt(1 - memory**2)], [1, -memory], white, axis=0)[200:]
    return noise * sigma


def log_of(model, motion, *, noise=None, **options):
    """A log of the motion with the model's torques."""
    t, q, qd, qdd = motion
    tau = rd.Dynamics(model).inverse_dynamics(q, qd, qdd)
    return rd.Log(t, q, tau if noise is None else tau + noise, joint_names=model.joint_names,
                  source='synthetic', **options)
