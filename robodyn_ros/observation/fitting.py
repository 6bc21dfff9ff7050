"""Thresholds of contacts from motions without contact.

The magnitude of a joint's residual is taken as ``scale(speed, inertial torque)`` times a random
number. The scale is linear in the inertial torque, since wrong inertial parameters cause errors
proportional to it, and linear between some speeds, for friction and noise. The tail of the random
number, `rare_level`, gives the factor of the thresholds. Friction that a joint at rest may hold is
not random: it is known, and bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.observation.bands import SMOOTH, Bands, Conditions
from robodyn_ros.observation.momentum import MomentumObserver
from robodyn_ros.observation.tails import FEWEST, block_maxima, rare_level
from robodyn_ros.observation.thresholds import ContactThresholds
from robodyn_ros.spatial import Array

SPEEDS = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0])  # speeds of the tables, of the largest speed
SEEN = 50  # smallest number of samples near a speed for an estimate of the scale there
SETTLES = 3.0  # time constants of the slower filter after which residuals are used
BLOCK = 3.0  # time constants of the slower filter in a block of the tail's statistics
FALSE_ALARMS = 0.01  # false alarms per hour, of all joints and both bands together
MOVES = 0.1  # `Conditions` of standing below which a joint counts as moving
SELDOM = 0.2  # a joint that moves in a smaller fraction of a log is judged at rest as well
STICTION = 1.2  # factor on the largest friction that was seen in a joint at rest


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of an observer in a motion without contact, after its filters have settled.

    Attributes
    ----------
    period : float
        Mean time between two samples, s.
    speed : ndarray, shape (N, n)
        Magnitudes of the velocities, rad/s or m/s.
    inertial, standing : ndarray, shape (N, n)
        The two `Conditions`.
    fast, slow : ndarray, shape (N, n)
        Magnitudes of both parts of the residual, N m or N.
    friction : ndarray, shape (n,)
        Coulomb friction, N m or N.
    deviation : ndarray, shape (n,)
        Standard deviation of the whole residual, N m or N.
    """

    period: float
    speed: Array
    inertial: Array
    standing: Array
    fast: Array
    slow: Array
    friction: Array
    deviation: Array


def residuals_of(dynamics: RobotDynamics, t: Array, q: Array, qd: Array, tau: Array, *,
                 bandwidth: float = 20.0, separation: float = 1.0) -> Residuals:
    """Return the residuals of a motion without contact.

    Parameters
    ----------
    dynamics : Dynamics
        The identified robot.
    t : ndarray, shape (N,)
        Times, s.
    q, qd, tau : ndarray, shape (N, n)
        Positions, velocities and torques that the identification has not seen.
    bandwidth, separation : float
        Bandwidth of the observer, and frequency between fast and slow residuals, Hz.
    """
    observer = MomentumObserver(dynamics, bandwidth)
    bands, conditions = Bands(separation), Conditions(separation)
    low, residual, inertial, standing = np.empty((4, *qd.shape))
    for k, row in enumerate(zip(t, q, qd, tau, strict=True)):
        residual[k] = observer.update(*row)
        low[k] = bands.update(row[0], residual[k])
        inertial[k], standing[k] = conditions.update(row[0], row[2], observer.rate)
    settled = t - t[0] > SETTLES / (2 * np.pi * min(bandwidth, separation))
    return Residuals(
        period=float(np.diff(t).mean()), speed=np.abs(qd[settled]), inertial=inertial[settled],
        standing=standing[settled], fast=np.abs(residual - low)[settled],
        slow=np.abs(low)[settled], friction=coulomb_friction(dynamics, q[0]),
        deviation=np.sqrt((residual[settled]**2).mean(axis=0)))


def coulomb_friction(dynamics: RobotDynamics, q: Array) -> Array:
    """Return the friction of joints that have just begun to move, shape (n,), N m or N."""
    slow = np.full(len(q), 10 * SMOOTH)
    return np.asarray(np.abs([dynamics.friction(sign * slow, q) for sign in (1, -1)]).max(axis=0))


def thresholds_of(dynamics: RobotDynamics, motions: Iterable[tuple[Array, Array, Array, Array]], *,
                  bandwidth: float = 20.0, separation: float = 1.0,
                  false_alarms: float = FALSE_ALARMS) -> ContactThresholds:
    """Return thresholds from motions without contact, see `residuals_of` and `fit_thresholds`."""
    return fit_thresholds(dynamics.joints.joint_names, [residuals_of(
        dynamics, *motion, bandwidth=bandwidth, separation=separation) for motion in motions],
        bandwidth=bandwidth, separation=separation, false_alarms=false_alarms)


def fit_thresholds(joint_names: Iterable[str], residuals: Iterable[Residuals], *,
                   bandwidth: float, separation: float,
                   false_alarms: float = FALSE_ALARMS) -> ContactThresholds:
    """Return thresholds that motions like the observed ones seldom exceed.

    Parameters
    ----------
    joint_names : iterable of str
        The n joints.
    residuals : iterable of Residuals
        Motions without contact.
    bandwidth, separation : float
        Those with which the residuals were computed, Hz.
    false_alarms : float
        False alarms in an hour of such motions, of all joints and both bands together.

    Raises
    ------
    ValueRangeError
        The motions are too short.
    """
    names, parts = tuple(joint_names), list(residuals)
    seconds = BLOCK / (2 * np.pi * separation)
    if sum(int(len(part.speed) * part.period / seconds) for part in parts) < FEWEST:
        raise ValueRangeError('motions', f'{sum(len(x.speed) * x.period for x in parts):.1f} s',
                              f'at least {FEWEST * seconds:.1f} s after the filters have settled')
    rare = false_alarms * seconds / 3600 / (2 * len(names))
    joints = [[_Joint(part, k, seconds) for part in parts] for k in range(len(names))]
    tables = [_table(joint, rare) for joint in joints]
    speed, fast, slow, others = (np.array(x) for x in zip(*tables, strict=True))
    deviation = np.max([part.deviation for part in parts], axis=0)
    return ContactThresholds(names, speed, fast, slow, others[:, :2], others[:, 2],
                             np.maximum(deviation, 1e-9), bandwidth, separation)


class _Joint:
    """The residuals of one joint in one motion, in blocks of some seconds."""

    def __init__(self, part: Residuals, k: int, seconds: float):
        self.speed, self.inertial, self.standing, self.fast, self.slow = (
            x[:, k] for x in (part.speed, part.inertial, part.standing, part.fast, part.slow))
        self.friction = float(part.friction[k])
        self.block = max(round(seconds / part.period), 1)

    def usual(self, grid: Array, scale: Array, slope: float) -> Array:
        """Return the mean size of the residual in these conditions."""
        return np.asarray(np.interp(self.speed, grid, scale) + slope * self.inertial)


def _table(parts: Sequence[_Joint], rare: float) -> tuple[Array, ...]:
    """Return the speeds of a joint, its tables, and what conditions add to these."""
    speed, inertial, standing = (np.concatenate([getattr(part, name) for part in parts])
                                 for name in ('speed', 'inertial', 'standing'))
    grid = SPEEDS * max(float(speed.max()), 1e-6)
    moves = standing < MOVES
    if moves.mean() < SELDOM:
        moves = np.ones(len(speed), bool)
    starts = np.cumsum([0, *(len(part.speed) for part in parts)])
    tables, slopes, friction = [], [], max(part.friction for part in parts)
    for band in ('fast', 'slow'):
        size = np.concatenate([getattr(part, band) for part in parts])
        scale, slope = _scale(grid, speed[moves], inertial[moves], size[moves])
        usual = np.concatenate([part.usual(grid, scale, slope) for part in parts])
        ratio = np.where(moves, size, 0.0) / usual
        factor = rare_level(np.concatenate([
            block_maxima(ratio[start:start + len(part.speed)], part.block)
            for part, start in zip(parts, starts, strict=False)]), rare)
        at_rest = standing > 0.5
        held = (size - factor * usual)[at_rest] / standing[at_rest]
        friction = max(friction, STICTION * float(held.max(initial=0.0)))
        tables.append(factor * scale)
        slopes.append(factor * slope)
    return grid, *tables, np.array([*slopes, friction])


def _scale(grid: Array, speed: Array, inertial: Array, size: Array) -> tuple[Array, float]:
    """Return the mean size of a residual at speeds, and its slope over the inertial torque."""
    near = np.column_stack([np.interp(speed, grid, one) for one in np.eye(len(grid))])
    found, _ = nnls(np.column_stack([near, inertial]), size)
    values, slope = found[:-1], float(found[-1])
    seen = np.flatnonzero(near.sum(axis=0) >= SEEN)
    values = np.interp(np.arange(len(grid)), seen, values[seen])
    # residuals lag behind the speed that causes them: each speed has the largest of its neighbours
    wide = np.maximum(values, np.maximum(np.append(values[1:], 0), np.insert(values[:-1], 0, 0)))
    return np.maximum(wide, max(1e-2 * float(size.mean()), 1e-9)), slope
