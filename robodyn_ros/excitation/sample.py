"""A random motion within the limits that starts and ends at rest, without optimisation."""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.excitation.fourier import Basis, Excitation
from robodyn_ros.model import Model

FRICTION_WIDTH = 0.01  # rad/s or m/s, width of the smooth sign of Coulomb friction


def sample_motion(model: Model, *, seed: int = 4, period: float = 3.0, harmonics: int = 3,
                  speed: float = 0.8, torque: float = 0.7) -> Excitation:
    """Return a random motion near the limits of a robot.

    Parameters
    ----------
    model : Model
        The robot.
    seed : int
        Seed of the random coefficients.
    period : float
        Period, s.
    harmonics : int
        Number of harmonics, at least 2.
    speed, torque : float
        Fractions of the velocity limits (at most 3 rad/s) and of the effort limits that the motion
        may use.
    """
    basis = Basis(period, harmonics, 100 * harmonics)
    x = np.zeros((1 + basis.free, model.n))
    lower, upper = np.maximum(model.lower, -2.0), np.minimum(model.upper, 2.0)
    x[0] = (lower + upper) / 2
    x[1:] = np.random.default_rng(seed).normal(size=(basis.free, model.n))
    motion = basis.motion(x)
    reach = 0.35 * (upper - lower) / np.abs(motion.q - x[0]).max(axis=0)
    fast = speed * np.minimum(model.velocity_limit, 3.0) / np.abs(motion.qd).max(axis=0)
    x[1:] *= np.minimum(reach, fast)
    dynamics = Dynamics(model, friction_width=FRICTION_WIDTH)
    for _ in range(60):
        tau = np.abs(dynamics.inverse_dynamics(*basis.motion(x)[:3]))
        if (tau < torque * model.effort_limit).all():
            break
        x[1:] *= 0.9
    return basis.excitation(x, model.joint_names, 1, {})
