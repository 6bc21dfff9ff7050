"""`Reference`: a motion to follow, given by points that are joined by quintic polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.spatial import Array

PEAK_SPEED = 1.875  # peak velocity of a quintic from rest to rest, relative to its mean velocity
# Coefficients of a quintic on [0, 1] -> its Bernstein coefficients, whose smallest and largest
# values bound the polynomial: b_i = sum_j binomial(i, j) / binomial(5, j) c_j
_BERNSTEIN = np.array([
    [1, 0, 0, 0, 0, 0], [1, 1 / 5, 0, 0, 0, 0], [1, 2 / 5, 1 / 10, 0, 0, 0],
    [1, 3 / 5, 3 / 10, 1 / 10, 0, 0], [1, 4 / 5, 6 / 10, 4 / 10, 1 / 5, 0], [1, 1, 1, 1, 1, 1]])

# Bernstein coefficients of a quintic -> those of its first and second half (de Casteljau)
_FIRST_HALF = np.array([[comb(i, j) / 2**i for j in range(6)] for i in range(6)])
_SECOND_HALF = _FIRST_HALF[::-1, ::-1]
_HALVINGS = 16  # each reduces the distance between hull and polynomial to about a quarter


@dataclass(frozen=True)
class Excess:
    """The place at which a motion leaves its bounds.

    Attributes
    ----------
    time : float
        s from the start of the motion.
    joint : int
        Index of the joint.
    value : float
        Position, velocity or acceleration of the joint at that time; rad or m, and per s and s^2.
    """

    time: float
    joint: int
    value: float


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
        The shapes do not match, a number is not finite, or the times do not increase.
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

        The time is in s from the start. Before the first point, the first point is returned, and
        after the last one, the last.
        """
        if time <= self.times[0]:
            return self.q[0], self.qd[0], self.qdd[0]
        if time >= self.times[-1]:
            return self.q[-1], self.qd[-1], self.qdd[-1]
        q, qd, qdd = self._powers(time, 2)
        return q, qd, qdd

    def derivatives(self, time: float) -> tuple[Array, Array, Array, Array, Array]:
        """Return q and its first four derivatives at a time, shape (n,) each.

        They are those of the polynomials: the last two are zero beyond the ends and discontinuous
        at the points.
        """
        if not self.times[0] < time < self.times[-1]:
            zero = np.zeros_like(self.q[0])
            return *self.sample(time), zero, zero
        q, qd, qdd, jerk, snap = self._powers(time, 4)
        return q, qd, qdd, jerk, snap

    def excess(self, order: int, lower: Array, upper: Array) -> Excess | None:
        """Return where a derivative first leaves its bounds, between the points as well.

        Parameters
        ----------
        order : int
            0 for positions, 1 for velocities, 2 for accelerations.
        lower, upper : ndarray, shape (n,)
            Bounds in rad or m and their derivatives; infinite where there are none.

        Returns
        -------
        Excess or None
            The extremum outside the bounds in the first such segment; None if there is none.
        """
        points = (self.q, self.qd, self.qdd)[order]
        outside = (points < lower) | (points > upper)
        if outside.any():
            point, joint = np.argwhere(outside)[0]
            return Excess(float(self.times[point]), int(joint), float(points[point, joint]))
        h = np.diff(self.times)[:, None]
        c = self._coefficients
        for _ in range(order):  # of the derivative, in powers of s in [0, 1]
            c = c[1:] * np.arange(1, len(c))[:, None, None] / h
        padded = np.concatenate([c, np.zeros((6 - len(c), *c.shape[1:]))])
        place = _first_outside(np.tensordot(_BERNSTEIN, padded, axes=1), lower, upper)
        if place is None:
            return None
        segment, joint = place
        column = c[:, segment, joint]
        roots = polynomial.polyroots(np.trim_zeros(polynomial.polyder(column), 'b'))
        at = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)]
        values = np.atleast_1d(polynomial.polyval(at, column))
        worst = int(np.argmax(np.maximum(values - upper[joint], lower[joint] - values)))
        return Excess(float(self.times[segment] + at[worst] * h[segment, 0]), joint,
                      float(values[worst]))

    def dense(self, most: int) -> tuple[Array, Array, Array, Array]:
        """Return times, q, qd and qdd at the points and at equal steps between them.

        Parameters
        ----------
        most : int
            Approximate number of samples; the points are always returned.

        Returns
        -------
        times : ndarray, shape (N,)
        q, qd, qdd : ndarray, shape (N, n)
        """
        segments = len(self.times) - 1
        each = min(max(most // segments, 1), 16) if segments else 1
        if each == 1:
            return self.times, self.q, self.qd, self.qdd
        s = np.arange(each) / each
        h = np.diff(self.times)
        times = (self.times[:-1, None] + h[:, None] * s).ravel()
        parts = []
        c = self._coefficients
        for order, last in enumerate((self.q, self.qd, self.qdd)):
            if order:
                c = c[1:] * np.arange(1, len(c))[:, None, None] / h[:, None]
            values = np.tensordot(s[:, None] ** np.arange(len(c)), c, axes=1)
            parts.append(np.concatenate([
                values.transpose(1, 0, 2).reshape(len(times), -1), last[-1:]]))
        q, qd, qdd = parts
        return np.append(times, self.times[-1]), q, qd, qdd

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


def _first_outside(hull: Array, lower: Array, upper: Array) -> tuple[int, int] | None:
    """Return the segment and joint of the first polynomial that leaves its bounds, or None.

    A polynomial whose Bernstein coefficients are within the bounds is inside. Its first and last
    coefficients are values of the polynomial; if one is outside, the polynomial is. Otherwise the
    polynomial is halved.

    Parameters
    ----------
    hull : ndarray, shape (6, segments, n)
        Bernstein coefficients on [0, 1].
    lower, upper : ndarray, shape (n,)
        Bounds; the polynomials are within them at 0 and 1.
    """
    where = np.argwhere(((hull < lower) | (hull > upper)).any(axis=0))
    pieces = hull[:, where[:, 0], where[:, 1]]
    for _ in range(_HALVINGS):
        if not len(where):
            return None
        pieces = np.concatenate([_FIRST_HALF @ pieces, _SECOND_HALF @ pieces], axis=1)
        where = np.concatenate([where, where])
        low, high = lower[where[:, 1]], upper[where[:, 1]]
        hit = (pieces[0] < low) | (pieces[0] > high) | (pieces[-1] < low) | (pieces[-1] > high)
        if hit.any():
            segment, joint = min(map(tuple, where[hit].tolist()))
            return segment, joint
        maybe = ((pieces < low) | (pieces > high)).any(axis=0)
        pieces, where = pieces[:, maybe], where[maybe]
    return None


def _quintic(p0: Array, v0: Array, a0: Array, p1: Array, v1: Array, a1: Array) -> Array:
    """Return coefficients, shape (6, segments, n), of quintics on [0, 1] with these ends."""
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
        Forces and their limits, N m or N; a limit may be infinite.

    Returns
    -------
    limited : ndarray, shape (..., n)
    saturated : ndarray of bool, shape (n,)
        Which joints were limited anywhere.
    """
    over = np.abs(tau) > limit
    return np.clip(tau, -limit, limit), np.any(over.reshape(-1, over.shape[-1]), axis=0)
