"""Motions between points with trapezoidal velocity: the usual motion of an industrial robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import IdentificationError, ValueRangeError
from robodyn_ros.excitation.constraints import Constraints, Limits
from robodyn_ros.excitation.fourier import Motion
from robodyn_ros.excitation.plan import FRICTION_WIDTH
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Array

CHECK_RATE = 100.0  # Hz, at which the limits are checked
TRIES = 200  # random points for each point that is kept
LEAST_TRAVEL = 0.3  # smallest distance of the joint that moves farthest, relative to its range


@dataclass(frozen=True, eq=False)
class Trapezoid:
    """A motion through points, at rest in each; all joints start and stop together.

    Between two points every joint accelerates evenly, moves at constant velocity and decelerates
    evenly (`point_to_point` chooses the times).

    Attributes
    ----------
    joint_names : tuple of str
        Names of the n joints.
    points : ndarray, shape (P, n)
        The points, rad or m.
    ramps, cruises : ndarray, shape (P - 1,)
        Time of acceleration, which is also that of deceleration, and time at constant velocity
        between consecutive points, s.
    """

    joint_names: tuple[str, ...]
    points: Array
    ramps: Array
    cruises: Array

    @property
    def duration(self) -> float:
        """Duration of the whole motion, s."""
        return float((2 * self.ramps + self.cruises).sum())

    def at(self, t: ArrayLike) -> Motion:
        """Return the motion at times t, shape () or (N,), s; at rest before and after it."""
        time = np.clip(np.asarray(t, np.float64), 0.0, self.duration)
        edges = np.concatenate([[0.0], np.cumsum(2 * self.ramps + self.cruises)])
        k = np.clip(np.searchsorted(edges, time, side='right') - 1, 0, len(self.ramps) - 1)
        ramp, cruise, since = self.ramps[k], self.cruises[k], time - edges[k]
        left = 2 * ramp + cruise - since
        top = 1 / (ramp + cruise)  # largest rate of the completed fraction
        starting, stopping = since < ramp, left < ramp
        part = np.where(starting, 0.5 * top * since**2 / ramp, np.where(
            stopping, 1 - 0.5 * top * left**2 / ramp, top * (since - 0.5 * ramp)))
        rate = top * np.where(starting, since / ramp, np.where(stopping, left / ramp, 1.0))
        change = top / ramp * (starting.astype(float) - stopping)
        travel = self.points[k + 1] - self.points[k]
        return Motion(self.points[k] + part[..., None] * travel, rate[..., None] * travel,
                      change[..., None] * travel, np.zeros_like(travel))

    def samples(self, rate: float) -> tuple[Array, Motion]:
        """Return times (N,) and the motion at a rate (Hz), both ends included."""
        t = np.linspace(0, self.duration, int(np.ceil(self.duration * rate)) + 1)
        return t, self.at(t)


def point_to_point(model: Model, limits: Limits | None = None, *, duration: float = 60.0,
                   acceleration: ArrayLike = 2.0, speed: float = 0.5, seed: int = 0) -> Trapezoid:
    """Return a motion between random points within every limit.

    Such motions are not optimised; they serve for comparison with an optimised excitation.

    Parameters
    ----------
    model : Model
        The nominal robot.
    limits : Limits, optional
        Limits besides those of the model.
    duration : float
        The motion is the shortest that takes at least this time, s.
    acceleration : array-like, shape () or (n,)
        Largest acceleration of each joint, rad/s^2 or m/s^2.
    speed : float
        Fraction of the velocity limits that is used, above 0 and at most 1.
    seed : int
        Seed of the random points.

    Raises
    ------
    ValueRangeError
        A number is out of its range.
    IdentificationError
        No point was found that can be reached within every limit.
    """
    limits = limits or Limits()
    constraints = Constraints(Dynamics(model, friction_width=FRICTION_WIDTH), limits)
    low, high = constraints.position.T
    if not np.isfinite(constraints.position).all():
        raise ValueRangeError('position limits', constraints.position.tolist(), 'finite numbers')
    if not 0 < speed <= 1:
        raise ValueRangeError('speed', speed, 'above 0, at most 1')
    if not 0 < duration <= 1e4:
        raise ValueRangeError('duration', duration, 'above 0, at most 10000 s')
    fastest = np.where(np.isfinite(constraints.velocity), constraints.velocity, 1.0) * speed
    strongest = real_array('acceleration', np.broadcast_to(acceleration, (model.n,)), (model.n,))
    if not (strongest > 0).all():
        raise ValueRangeError('acceleration', strongest.tolist(), 'numbers above 0')
    rng = np.random.default_rng(seed)
    points = [_first(constraints, rng)]
    times = np.zeros((0, 2))
    while (2 * times[:, 0] + times[:, 1]).sum() < duration:
        for _ in range(TRIES):
            point = rng.uniform(low, high)
            travel = np.abs(point - points[-1])
            if (travel / (high - low)).max() < LEAST_TRAVEL:
                continue
            ramp, cruise = _times(travel, fastest, strongest)
            leg = Trapezoid(model.joint_names, np.array([points[-1], point]), np.array([ramp]),
                            np.array([cruise]))
            if _kept(constraints, leg):
                points.append(point)
                times = np.vstack([times, [ramp, cruise]])
                break
        else:
            raise IdentificationError(
                f'no point out of {TRIES} can be reached within every limit from '
                f'{np.round(points[-1], 3).tolist()}; valid: wider limits or a lower speed')
    return Trapezoid(model.joint_names, np.array(points), times[:, 0], times[:, 1])


def _times(travel: Array, fastest: Array, strongest: Array) -> tuple[float, float]:
    """Return the times of acceleration and of constant velocity of the slowest joint.

    The other joints take the same times, with lower velocity and acceleration.
    """
    velocity = float((fastest / np.maximum(travel, 1e-12)).min())  # rate of the completed fraction
    acceleration = float((strongest / np.maximum(travel, 1e-12)).min())
    if velocity**2 >= acceleration:  # the velocity limit is not reached
        return float(1 / np.sqrt(acceleration)), 0.0
    return velocity / acceleration, 1 / velocity - velocity / acceleration


def _first(constraints: Constraints, rng: np.random.Generator) -> Array:
    """Return a random point within every limit."""
    low, high = constraints.position.T
    for _ in range(TRIES):
        point = rng.uniform(low, high)
        still = np.zeros((1, len(point)))
        if max(constraints.worst(Motion(point[None], still, still, still)).values()) <= 0:
            return np.asarray(point)
    raise IdentificationError(f'no point out of {TRIES} is within every limit; valid: wider '
                              'limits')


def _kept(constraints: Constraints, leg: Trapezoid) -> bool:
    samples = leg.at(np.linspace(0, leg.duration, max(2, int(leg.duration * CHECK_RATE))))
    return max(constraints.worst(samples).values()) <= 0
