"""A motion to follow: points in time, and the smooth motion between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description import Array
from robodyn_ros.errors import ShapeError, ValueRangeError


class Reference:
    """Points with position, velocity and acceleration, joined by quintic polynomials.

    Parameters
    ----------
    times : array-like, shape (k,)
        s from the start, strictly increasing, the first >= 0.
    q, qd, qdd : array-like, shape (k, n)
        rad or m and their derivatives.

    Raises
    ------
    ShapeError, ValueRangeError
        Shapes that do not fit, numbers that are not finite, times that do not increase.
    """

    def __init__(self, times: ArrayLike, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike):
        self.times = np.array(times, np.float64)
        self.q, self.qd, self.qdd = (np.array(x, np.float64) for x in (q, qd, qdd))
        if self.times.ndim != 1 or not len(self.times):
            raise ShapeError('times', f'shape {self.times.shape}', '(k,) with k >= 1')
        for name, values in (('positions', self.q), ('velocities', self.qd),
                             ('accelerations', self.qdd)):
            if values.ndim != 2 or values.shape != (len(self.times), self.q.shape[-1]):
                raise ShapeError(name, f'shape {values.shape}', '(points, joints)')
            if not np.isfinite(values).all():
                raise ValueRangeError(name, 'not finite', 'finite numbers')
        if not np.isfinite(self.times).all() or self.times[0] < 0 or np.any(
                np.diff(self.times) <= 0):
            raise ValueRangeError('time_from_start', self.times.tolist()[:10],
                                  'strictly increasing from 0 or later')

        h = np.diff(self.times)[:, None]
        self._coefficients = _quintic(self.q[:-1], self.qd[:-1] * h, self.qdd[:-1] * h * h,
                                      self.q[1:], self.qd[1:] * h, self.qdd[1:] * h * h)

    @property
    def duration(self) -> float:
        """Time of the last point, s."""
        return float(self.times[-1])

    @property
    def ends_at_rest(self) -> bool:
        """Whether the last point can be held."""
        return not (np.any(self.qd[-1]) or np.any(self.qdd[-1]))

    def sample(self, time: float) -> tuple[Array, Array, Array]:
        """Return q, qd, qdd at a time, shape (n,) each.

        Before the first point it is the first, after the last the last (s from the start).
        """
        if time <= self.times[0]:
            return self.q[0], self.qd[0], self.qdd[0]
        if time >= self.times[-1]:
            return self.q[-1], self.qd[-1], self.qdd[-1]
        q, qd, qdd = self._powers(time, 2)
        return q, qd, qdd

    def derivatives(self, time: float) -> tuple[Array, Array, Array, Array, Array]:
        """Return q and its first four derivatives at a time, shape (n,) each.

        Those of the polynomials: the last two are zero beyond the ends, and jump at the points.
        """
        if not self.times[0] < time < self.times[-1]:
            zero = np.zeros_like(self.q[0])
            return *self.sample(time), zero, zero
        q, qd, qdd, jerk, snap = self._powers(time, 4)
        return q, qd, qdd, jerk, snap

    def _powers(self, time: float, order: int) -> Array:
        """Return q and its derivatives up to an order, shape (order + 1, n)."""
        i = int(np.searchsorted(self.times, time, side='right')) - 1
        h = self.times[i + 1] - self.times[i]
        s = (time - self.times[i]) / h
        s2, s3, s4 = s * s, s**3, s**4
        powers = [
            [1.0, s, s2, s3, s4, s4 * s],
            [0.0, 1 / h, 2 * s / h, 3 * s2 / h, 4 * s3 / h, 5 * s4 / h],
            [0.0, 0.0, 2 / h**2, 6 * s / h**2, 12 * s2 / h**2, 20 * s3 / h**2],
            [0.0, 0.0, 0.0, 6 / h**3, 24 * s / h**3, 60 * s2 / h**3],
            [0.0, 0.0, 0.0, 0.0, 24 / h**4, 120 * s / h**4]]
        return np.asarray(np.array(powers[:order + 1]) @ self._coefficients[:, i])


def _quintic(p0: Array, v0: Array, a0: Array, p1: Array, v1: Array, a1: Array) -> Array:
    """Coefficients, shape (6, segments, n), of the quintics on [0, 1] with these ends."""
    c0, c1, c2 = p0, v0, a0 / 2
    position, velocity, acceleration = p1 - c0 - c1 - c2, v1 - c1 - 2 * c2, a1 - 2 * c2
    return np.array([c0, c1, c2,
                     10 * position - 4 * velocity + acceleration / 2,
                     -15 * position + 7 * velocity - acceleration,
                     6 * position - 3 * velocity + acceleration / 2])


def saturate(tau: Array, limit: Array) -> tuple[Array, Array]:
    """Limit generalised forces.

    Parameters
    ----------
    tau, limit : ndarray, shape (..., n), (n,)
        N m or N; an infinite limit limits nothing.

    Returns
    -------
    limited : ndarray, shape (..., n)
    saturated : ndarray of bool, shape (n,)
        Which joints were limited anywhere.
    """
    over = np.abs(tau) > limit
    return np.clip(tau, -limit, limit), np.any(over.reshape(-1, over.shape[-1]), axis=0)
