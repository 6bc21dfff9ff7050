"""Tells from a log what its efforts mean: their scale, gravity, inertia and friction.

Each joint's effort is fitted by ``a g + b m + c sign(s) + d s + e + f ds/dt`` with gravity g and
inertial torque m of the nominal robot and the joint's speed s; f stands for a rotor that the
description does not have. Efforts that are torques with gravity have
a = b = 1; where gravity was removed, a = 0; on the motors' side or as currents, a and b have the
factor of the gear or the drive; external torques have a = b = 0. The probability of each of these
follows from the estimates of a and b, their covariance, and the fact that descriptions are seldom
exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.robot import EffortMeaning
from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.log import Log, logs_of
from robodyn_ros.identification.pieces import pieces_of
from robodyn_ros.identification.settings import ORDER
from robodyn_ros.identification.signals import (
    Filtering,
    Segment,
    automatic_cutoff,
    motion_spectrum,
    segments_of,
)
from robodyn_ros.model import Model
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

# standard deviations of a and b where they should be 1: descriptions are inexact, and many have no
# rotor inertia
NOMINAL = np.array([0.2, 1.0])
NEAR = np.geomspace(0.5, 2.5, 9)  # factors by which a load or a wrong mass changes a and b
ELSEWHERE = 0.03  # error of a joint's predicted torque, as a fraction of the largest of all joints
ABSENT = 0.05  # standard deviation of a and b where they should be 0
WORST = 12.0  # by this much a single joint changes the logarithm of a probability at most
# units per N m, of an unknown scale; reversed signs are among them
SCALES = np.concatenate([np.geomspace(1e-3, 0.4, 31), np.geomspace(3.0, 1e3, 31)])
SCALES = np.concatenate([SCALES, -SCALES, -NEAR])
CERTAIN = 0.99  # probability from which on data contradict a setting
MOST = 4000  # samples of a segment that are used
RUBS = 0.1  # friction where there is some, as a fraction of the range of a joint's effort
KINDS = ('torque on the link side, gravity included', 'torque on the link side, gravity removed',
         'torque on the motor side, gravity included', 'torque on the motor side, gravity removed',
         'other scale such as current, gravity included',
         'other scale such as current, gravity removed', 'external torque only')


@dataclass(frozen=True, eq=False)
class EffortFinding:
    """What the efforts of a log seem to be.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    slopes : ndarray, shape (n, 2)
        Measured effort per unit of the nominal gravity and inertial torque.
    deviation : ndarray, shape (n, 2)
        Their standard deviations; inf where the log does not determine them.
    probability : dict of str to float
        Probability of each of `KINDS`.
    friction : float
        Probability that the efforts contain friction; nan if no joint moves.
    scale : ndarray, shape (n,)
        Torque per unit of effort by the nominal model, N m per unit; nan where unknown.
    """

    joint_names: tuple[str, ...]
    slopes: Array
    deviation: Array
    probability: dict[str, float]
    friction: float
    scale: Array

    @property
    def best(self) -> str:
        """The most probable of `KINDS`."""
        return max(self.probability, key=lambda name: self.probability[name])

    @property
    def gravity(self) -> float:
        """Probability that the efforts contain gravity."""
        return sum(p for name, p in self.probability.items() if 'included' in name)

    def to_text(self) -> str:
        """Return slopes and probabilities as tables."""
        width = max(map(len, self.joint_names))
        lines = [f'  {"":{width}}     gravity (std)     inertia (std)']
        for name, slope, deviation in zip(self.joint_names, self.slopes, self.deviation,
                                          strict=True):
            cells = [f'{s:8.3f} ({d:6.2g})' if np.isfinite(d) else f'{"not seen":>17}'
                     for s, d in zip(slope, deviation, strict=True)]
            lines.append(f'  {name:{width}} ' + ' '.join(cells))
        lines.append('  effort per unit of the torque that the description predicts')
        lines += [f'  {p:7.2%}  {name}' for name, p in sorted(
            self.probability.items(), key=lambda entry: -entry[1]) if p >= 5e-5]
        if np.isfinite(self.friction):
            lines.append(f'  {self.friction:7.2%}  friction is included')
        else:
            lines.append('  no joint moves: the log does not tell whether friction is included')
        return '\n'.join(lines)


def find_effort_meaning(model: Model | RobotDynamics, logs: Log | Sequence[Log]) -> EffortFinding:
    """Tell from logs what their efforts mean, whatever the description says.

    Parameters
    ----------
    model : Model or RobotDynamics
        The nominal robot.
    logs : Log or sequence of Log
        The robot at rest in several poses, or in motion; efforts as they were recorded.

    Raises
    ------
    LogError
        A log cannot be used.
    """
    dynamics = dynamics_of(model)
    dynamics.model.require_fixed_base('the test of efforts')
    pieces = [piece for log in logs_of(logs) for piece in pieces_of(log.for_model(
        dynamics.model, joints=dynamics.joints.joint_names), [])]
    spectrum = motion_spectrum(pieces)
    cutoff = automatic_cutoff(pieces, spectrum)
    segments = segments_of(pieces, Filtering(spectrum.band, cutoff, ORDER, 0.0, cutoff), [])
    return judge_efforts(dynamics, segments)


def judge_efforts(dynamics: RobotDynamics, segments: Sequence[Segment]) -> EffortFinding:
    """Tell what the efforts of filtered motions mean, see `find_effort_meaning`."""
    n, names = dynamics.joints.n, dynamics.joints.joint_names
    linear = LinearModel(dynamics, 'lumped', friction=FrictionShape('none', speed=np.ones(
        dynamics.model.n)))
    parts = [_terms(linear, segment) for segment in segments]
    gravity, inertial, speed, faster, effort = (
        np.concatenate(x) for x in zip(*parts, strict=True))
    fits = [_fit(gravity[:, k], inertial[:, k], speed[:, k], faster[:, k], effort[:, k])
            for k in range(n)]
    slopes = np.array([fit[0][:2] for fit in fits])
    covariances = [fit[1] for fit in fits]
    ratios = _ratios(dynamics.model, names)
    friction = _friction(fits, np.ptp(effort, axis=0))
    errors = np.column_stack([safe_divide(ELSEWHERE * x.std(axis=0).max(), x.std(axis=0))
                              for x in (gravity, inertial)])
    found = _probabilities(slopes, [c[:2, :2] for c in covariances], errors, ratios, friction)
    sure = np.array([np.sqrt(np.diag(c)[:2]) for c in covariances])
    best = np.argmin(sure, axis=1)
    steep = slopes[np.arange(n), best]
    clear = np.abs(steep) > 3 * sure[np.arange(n), best]
    return EffortFinding(names, slopes, np.where(sure < 1e6, sure, np.inf), found, friction,
                         np.where(clear, safe_divide(np.ones(n), steep), np.nan))


def effort_notes(dynamics: RobotDynamics, segments: Sequence[Segment]) -> list[str]:
    """Return a remark if efforts contradict what the description says of them.

    Parameters
    ----------
    dynamics : RobotDynamics
        The nominal robot with gravity.
    segments : list of Segment
        Motions, with efforts that the setting has turned into torques on the link's side.
    """
    meaning, found = dynamics.model.effort, judge_efforts(dynamics, segments)
    text = contradiction(meaning, found)
    return [f'efforts were used as {meaning}; {text}'] if text else []


def contradiction(meaning: EffortMeaning, found: EffortFinding) -> str:
    """Return how torques on the link's side contradict the setting; empty if they do not."""
    held = 'included' if found.gravity > 0.5 else 'removed'
    if held != meaning.gravity and max(found.gravity, 1 - found.gravity) > CERTAIN:
        return (f'the log contradicts this: gravity is {held} '
                f'({max(found.gravity, 1 - found.gravity):.1%} sure)')
    scaled = sum(p for name, p in found.probability.items() if 'link side' not in name)
    if scaled > CERTAIN:
        return (f'the log contradicts this: it looks like {found.best} ({scaled:.1%} sure); '
                'robodyn effort shows the scale of each joint')
    return ''


def _terms(linear: LinearModel, segment: Segment) -> tuple[Array, Array, Array, Array, Array]:
    """Return gravity, inertial torque, speed, acceleration and effort, shape (N, n) each."""
    few = slice(None, None, max(1, -(-len(segment.t) // MOST)))
    q, qd, qdd = segment.q[few], segment.qd[few], segment.qdd[few]
    theta, still = linear.nominal(), np.zeros_like(q)
    gravity = linear.regressor(q, still, still, loaded=segment.loaded) @ theta
    whole = linear.regressor(q, qd, qdd, loaded=segment.loaded) @ theta
    effort = segment.tau if segment.extra is None else segment.tau - segment.extra
    return gravity, whole - gravity, qd, qdd, effort[few]


def _fit(gravity: Array, inertial: Array, speed: Array, faster: Array,
         effort: Array) -> tuple[Array, Array]:
    """Return a, b, c, d, e, f and their covariance; terms that do not vary get a huge variance."""
    fast = float(np.abs(speed).max(initial=0.0))
    terms = np.column_stack([gravity, inertial, np.tanh(20 * safe_divide(speed, fast)), speed,
                             np.ones(len(speed)), faster])
    size = terms.std(axis=0)
    size[4] = 1.0
    torque = max(float(np.abs(gravity).max(initial=0.0) + np.abs(inertial).max(initial=0.0)),
                 1e-12)
    floor = np.array([1e-3 * torque, 1e-3 * torque, 1e-3, 1e-6, 0.0, 1e-3])
    seen = size > floor
    values, covariance = np.zeros(6), np.diag(np.full(6, 1e18))
    used = np.flatnonzero(seen)
    scaled = terms[:, used] / size[used]
    normal = scaled.T @ scaled + 1e-9 * len(scaled) * np.eye(len(used))
    found = np.linalg.solve(normal, scaled.T @ effort)
    wrong = effort - scaled @ found
    variance = float(wrong @ wrong) / max(len(wrong) - len(used), 1)
    rho = float(np.clip(safe_divide(wrong[1:] @ wrong[:-1], wrong @ wrong), 0.0, 0.999))
    inside = np.linalg.inv(normal) * variance * (1 + rho) / (1 - rho)
    values[used] = found / size[used]
    covariance[np.ix_(used, used)] = inside / np.outer(size[used], size[used])
    return values, covariance


def _ratios(model: Model, names: Sequence[str]) -> Array:
    """Return the ratio of each joint's gear; 1 where it is unknown."""
    return np.abs(model.gear_ratio[[model.body_joints.index(name) for name in names]])


def _probabilities(slopes: Array, covariances: Sequence[Array], errors: Array, ratios: Array,
                   friction: float) -> dict[str, float]:
    """Return the probability of each of `KINDS` by the estimates of all joints."""
    scores = np.zeros((len(slopes), len(KINDS)))
    for k, (slope, covariance) in enumerate(zip(slopes, covariances, strict=True)):
        scores[k] = [_score(slope, covariance, factors, errors[k], place in (1, 3, 5))
                     for place, factors in enumerate((
                         NEAR, NEAR, NEAR / ratios[k], NEAR / ratios[k],
                         SCALES, SCALES, np.zeros(1)))]
    scores = np.maximum(scores, scores.max(axis=1, keepdims=True) - WORST)
    geared = bool((ratios > 2).any())
    total = scores.sum(axis=0)
    if not geared:  # no gear is known: the motor's side looks like an unknown scale
        total[2:4] = -np.inf
    if np.isfinite(friction):  # in external torques there is none, on motors' sides there is
        total[6] += np.log(max(1 - friction, 1e-9))
        total[2:6] += np.log(max(friction, 1e-9))
    weights = np.exp(total - total.max())
    return dict(zip(KINDS, (weights / weights.sum()).tolist(), strict=True))


def _score(slope: Array, covariance: Array, factors: Array, errors: Array,
           weightless: bool) -> float:
    """Return the logarithm of the likelihood of one joint's slopes, mean over the factors."""
    found = []
    for factor in factors:
        mean = np.array([0.0 if weightless else factor, factor])
        own = np.hypot(np.where(mean != 0, NOMINAL, ABSENT), errors) * abs(factor) \
            if factor else np.full(2, ABSENT)
        spread = covariance + np.diag(own**2)
        wrong = slope - mean
        found.append(-0.5 * (wrong @ np.linalg.solve(spread, wrong)
                             + np.linalg.slogdet(spread)[1]))
    values = np.array(found)
    top = values.max()
    return float(top + np.log(np.exp(values - top).mean()))


def _friction(fits: Sequence[tuple[Array, Array]], ranges: Array) -> float:
    """Return the probability that efforts contain friction; nan if no joint moves."""
    evidence, moves = 0.0, False
    for (values, covariance), size in zip(fits, ranges, strict=True):
        variance = float(covariance[2, 2])
        if variance > 1e6 or not size > 0:
            continue
        moves = True
        ratio, noise = values[2] / size, variance / size**2
        with_friction = noise + RUBS**2
        without = noise + (0.1 * RUBS)**2
        evidence += float(np.clip(
            -0.5 * (ratio**2 / with_friction + np.log(with_friction))
            + 0.5 * (ratio**2 / without + np.log(without)), -WORST, WORST))
    return float(1 / (1 + np.exp(-np.clip(evidence, -500, 500)))) if moves else np.nan
