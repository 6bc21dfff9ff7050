"""`KalmanObserver`: external torques by a Kalman filter with known noise, and their covariance.

For each joint, the state is the momentum p and the external torque d: ``dp/dt = u + d + noise of
the torque``, and d is a random walk. The measurement is p with the noise of the velocity
(Wahrburg, Bös, Listmann, Dai, Matthias and Ding, T-ASE 2018). The gains are those of the steady
state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.numerics import real_array
from robodyn_ros.observation.momentum import Momentum
from robodyn_ros.spatial import Array

SWEEPS = 5000  # largest number of steps of the Riccati recursion
CONVERGED = 1e-10  # relative change of the gain at which the recursion ends


class KalmanObserver:
    """Estimates external joint torques with their standard deviation.

    Parameters
    ----------
    dynamics : Dynamics
        The robot: a fixed base without closed loops.
    period : float
        Time between two states, s.
    torque_noise : array-like, shape (n,)
        Standard deviation of the measured torques, N m or N.
    velocity_noise : array-like, shape (n,)
        Standard deviation of the measured velocities, rad/s or m/s.
    rate : array-like, shape (n,)
        How fast external torques change: standard deviation of their change in a second, N m or N.

    Attributes
    ----------
    residual : ndarray, shape (n,)
        The estimate of the external torques, N m or N.
    deviation : ndarray, shape (n,)
        Its standard deviation in the steady state, N m or N.
    """

    def __init__(self, dynamics: RobotDynamics, period: float, torque_noise: ArrayLike,
                 velocity_noise: ArrayLike, rate: ArrayLike):
        self._momentum = Momentum(dynamics)
        n = dynamics.joints.n
        torque, velocity, walk = (real_array(name, values, (n,)) for name, values in (
            ('torque_noise', torque_noise), ('velocity_noise', velocity_noise), ('rate', rate)))
        middle = np.where(np.isfinite(dynamics.joints.lower + dynamics.joints.upper),
                          (dynamics.joints.lower + dynamics.joints.upper) / 2, 0.0)
        inertia = np.diag(dynamics.mass_matrix(middle))
        found = [_steady(period, *values) for values in zip(
            torque, inertia * velocity, walk, strict=True)]
        self._gains = np.array([gain for gain, _ in found])
        self.deviation = np.array([deviation for _, deviation in found])
        self.reset()

    def reset(self) -> None:
        """Begin again with the next state, with a residual of zero."""
        self._momentum.forget()
        self.residual: Array = np.zeros(self._momentum.dynamics.joints.n)
        self._p = self.residual

    def update(self, t: float, q: Array, qd: Array, tau: Array) -> Array:
        """Return the residual after another state, see `MomentumObserver.update`."""
        p, u, step = self._momentum.step(t, q, qd, tau)
        if step == 0:
            self.residual, self._p = np.zeros_like(p), p
            return self.residual
        expected = self._p + step * (u + self.residual)
        innovation = p - expected
        self._p = expected + self._gains[:, 0] * innovation
        self.residual = self.residual + self._gains[:, 1] * innovation
        return self.residual


def _steady(period: float, torque: float, momentum: float, walk: float) -> tuple[Array, float]:
    """Return the gains of the steady state, and the standard deviation of the torque."""
    f = np.array([[1.0, period], [0.0, 1.0]])
    noise = np.diag([(torque * period)**2, walk**2 * period])
    r = max(momentum, 1e-9)**2
    p, gain = np.diag([r, walk**2]) + noise, np.zeros(2)
    for _ in range(SWEEPS):
        new = p[:, 0] / (p[0, 0] + r)
        after = p - np.outer(new, p[0])
        p = f @ after @ f.T + noise
        done = np.abs(new - gain).max() <= CONVERGED * np.abs(new).max()
        gain = new
        if done:
            break
    return gain, float(np.sqrt(max(after[1, 1], 0.0)))
