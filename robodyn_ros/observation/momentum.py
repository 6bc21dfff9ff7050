"""`MomentumObserver`: external torques from the generalised momentum, without accelerations.

The momentum p = M qd changes by ``dp/dt = u + tau_ext`` with ``u = tau + C' qd - g - friction``.
The residual r follows tau_ext like a low-pass filter of order 1 (De Luca and Mattone, ICRA 2003)
or 2 (Garofalo, Mansfeld, Jankowski and Ott, ICRA 2019): with ``s = p - p(0) - integral of (u +
r)``, the order 1 is ``r = k s``, the order 2 ``dr/dt = k2 (k1 s - r)``. From the bandwidth f
follow ``k = 2 pi f``, and ``k1 = k / 2`` and ``k2 = 2 k`` for critical damping.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics import Dynamics, RobotDynamics
from robodyn_ros.dynamics.protocol import smoothed
from robodyn_ros.errors import ValueRangeError, check_type
from robodyn_ros.observation.bands import SMOOTH
from robodyn_ros.spatial import Array

LONGEST_GAP = 0.1  # s between two states, after which the integral begins again


class Momentum:
    """Momentum and its known rate along a motion, the common part of the observers.

    Parameters
    ----------
    dynamics : Dynamics
        The robot: a fixed base without closed loops.

    Raises
    ------
    WrongTypeError, ValueRangeError
        The robot has closed loops, or its base floats.
    """

    def __init__(self, dynamics: RobotDynamics):
        check_type('dynamics', dynamics, Dynamics,
                   'Dynamics of a robot without closed loops')
        dynamics.model.require_fixed_base('an observer')
        self.dynamics = dynamics = smoothed(dynamics, SMOOTH)
        self._terms = dynamics.tree.momentum_terms
        self._friction = bool(dynamics.model.link_friction.any()
                              or dynamics.model.motor_friction.any())
        dynamics.tree.warm_up('momentum_terms', 'friction')
        self.forget()

    def forget(self) -> None:
        """Begin again with the next state."""
        self._last: tuple[float, Array, Array] | None = None

    def step(self, t: float, q: Array, qd: Array, tau: Array) -> tuple[Array, Array, float]:
        """Return p and the mean of u since the last state, shape (n,), and the time since then.

        The time is 0 s at a start.
        """
        p, rate = self._terms(q, qd)
        u = rate + tau
        if self._friction:
            u = u - self.dynamics.friction(qd, q)
        last, self._last = self._last, (t, p, u)
        if last is None or not 0 < t - last[0] <= LONGEST_GAP:
            return p, u, 0.0
        return p, 0.5 * (u + last[2]), t - last[0]


class MomentumObserver:
    """Estimates external joint torques from positions, velocities and torques.

    Parameters
    ----------
    dynamics : Dynamics
        The robot: a fixed base without closed loops. A `friction_width` of 0 becomes 0.01 rad/s.
    bandwidth : float
        Cutoff frequency of the estimate, Hz.
    order : int
        1 or 2.

    Attributes
    ----------
    residual : ndarray, shape (n,)
        The estimate r of the external torques, N m or N.
    rate : ndarray, shape (n,)
        The known rate u of the momentum, low-pass filtered with the same bandwidth, N m or N:
        the inertial torques, on which thresholds of contacts depend.

    Raises
    ------
    ValueRangeError
        The bandwidth is not positive, the order is not 1 or 2, or the base floats.
    WrongTypeError
        The robot has closed loops.
    """

    def __init__(self, dynamics: RobotDynamics, bandwidth: float = 20.0, order: int = 1):
        if not (np.isfinite(bandwidth) and bandwidth > 0):
            raise ValueRangeError('bandwidth', bandwidth, 'a frequency > 0 Hz')
        if order not in (1, 2):
            raise ValueRangeError('order', order, '1 or 2')
        self._momentum, self.order = Momentum(dynamics), order
        self._speed = 2 * np.pi * bandwidth
        self.reset()

    def reset(self) -> None:
        """Begin again with the next state, with a residual of zero."""
        self._momentum.forget()
        self.residual: Array = np.zeros(self._momentum.dynamics.joints.n)
        self.rate = self._sum = self._start = np.zeros_like(self.residual)

    def update(self, t: float, q: Array, qd: Array, tau: Array) -> Array:
        """Return the residual after another state.

        Parameters
        ----------
        t : float
            Time, s. After a gap of more than 0.1 s or a step back, the integral begins again.
        q, qd, tau : ndarray, shape (n,)
            Positions, velocities, and complete torques on the link's side.
        """
        p, u, step = self._momentum.step(t, q, qd, tau)
        if step == 0:
            self.residual = self.rate = self._sum = np.zeros_like(p)
            self._start = p
            return self.residual
        k = self._speed
        self.rate = (self.rate + k * step * u) / (1 + k * step)
        s = p - self._start - self._sum - step * u
        if self.order == 1:  # r at the end of the step, implicit in r
            self.residual = k * s / (1 + k * step)
        else:
            k1, k2 = k / 2, 2 * k
            self.residual = (self.residual + step * k2 * k1 * s) / (
                1 + step * k2 * (1 + step * k1))
        self._sum = self._sum + step * (u + self.residual)
        return self.residual

    def run(self, t: Array, q: Array, qd: Array, tau: Array) -> Array:
        """Return the residuals along a motion, shape (N, n), from a new start."""
        self.reset()
        return np.array([self.update(*row) for row in zip(t, q, qd, tau, strict=True)])
