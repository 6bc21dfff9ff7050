"""Finds out from a log what its efforts mean: their scale, gravity, inertia and friction.

Each joint's effort is fitted by ``a g + b m + c sign(s) + d s + e + f ds/dt`` with the gravity
torque g and the inertial torque m of the nominal robot, and the velocity s of the joint; f is the
inertia of a rotor that the description lacks. Torques on the link side that include gravity have
a = b = 1. Where gravity was removed, a = 0. On the motor side, a and b are divided by the gear
ratio, and currents have the factor of the drive. External torques have a = b = 0. The probability
of each of these meanings follows from the estimates of a and b, from their covariance, and from
the usual errors of descriptions.
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
PRESENT = np.array([0.2, 1.0])
ABSENT = 0.05  # standard deviation of a and b where they should be 0
NEAR = np.geomspace(0.5, 2.5, 9)  # factors by which a load or a wrong mass changes a and b
MODEL_ERROR = 0.03  # error of a joint's predicted torque over the largest torque of all joints
MOST_EVIDENCE = 12.0  # largest change of the logarithm of a probability by a single joint
# units per N m of an unknown scale, with both signs
SCALES = np.concatenate([np.geomspace(1e-3, 0.4, 31), np.geomspace(3.0, 1e3, 31)])
SCALES = np.concatenate([SCALES, -SCALES, -NEAR])
SIGN_CERTAIN = 5.0  # standard deviations of a slope whose sign is certain
MOST_CERTAIN = 6.0  # standard deviations of one slope that count for all joints together
CERTAIN = 0.99  # probability above which data contradict a setting
MOST = 4000  # largest number of samples of a segment that are used
FRICTION = 0.1  # usual Coulomb friction, as a fraction of the range of a joint's effort
HARDLY_ANY = 0.01  # the same for efforts without friction
UNDETERMINED = 1e18  # variance of a parameter that the log does not determine
KINDS = ('torque on the link side, gravity included', 'torque on the link side, gravity removed',
         'torque on the motor side, gravity included', 'torque on the motor side, gravity removed',
         'other scale such as current, gravity included',
         'other scale such as current, gravity removed', 'external torque only')
# places in KINDS
WITHOUT_GRAVITY, ON_MOTOR_SIDE, NOT_ON_LINK_SIDE, EXTERNAL = (1, 3, 5), slice(2, 4), slice(2, 6), 6


@dataclass(frozen=True, eq=False)
class EffortFinding:
    """What the efforts of a log probably mean.

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
    opposite : tuple of str
        Joints whose efforts have the opposite sign to their positions, see `_opposite`.
    """

    joint_names: tuple[str, ...]
    slopes: Array
    deviation: Array
    probability: dict[str, float]
    friction: float
    scale: Array
    opposite: tuple[str, ...] = ()

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
        if self.opposite:
            lines.append(f'  opposite sign: {", ".join(self.opposite)}')
        return '\n'.join(lines)


def find_effort_meaning(model: Model | RobotDynamics, logs: Log | Sequence[Log]) -> EffortFinding:
    """Find out from logs what their efforts mean; the setting of the description is ignored.

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
    """Find out what the efforts of filtered motions mean, see `find_effort_meaning`."""
    n, names = dynamics.joints.n, dynamics.joints.joint_names
    linear = LinearModel(dynamics, 'lumped', friction=FrictionShape('none', speed=np.ones(
        dynamics.model.n)))
    parts = [_terms(linear, segment) for segment in segments]
    gravity, inertial, velocity, acceleration, effort = (
        np.concatenate(x) for x in zip(*parts, strict=True))
    fits = [_fit(gravity[:, k], inertial[:, k], velocity[:, k], acceleration[:, k], effort[:, k])
            for k in range(n)]
    slopes = np.array([fit[0][:2] for fit in fits])
    covariances = [fit[1] for fit in fits]
    ratios = _ratios(dynamics.model, names)
    friction = _friction(fits, np.ptp(effort, axis=0))
    errors = np.column_stack([safe_divide(MODEL_ERROR * x.std(axis=0).max(), x.std(axis=0))
                              for x in (gravity, inertial)])
    found = _probabilities(slopes, [c[:2, :2] for c in covariances], errors, ratios, friction)
    deviation = np.array([np.sqrt(np.diag(c)[:2]) for c in covariances])
    best = np.arange(n), np.argmin(deviation, axis=1)  # gravity or inertia, the more certain one
    significant = np.abs(slopes[best]) > 3 * deviation[best]
    scale = np.where(significant, safe_divide(np.ones(n), slopes[best]), np.nan)
    return EffortFinding(names, slopes, np.where(deviation < 1e6, deviation, np.inf), found,
                         friction, scale, _opposite(names, fits))


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
    if found.opposite:
        return (f'the log contradicts this: the efforts of {", ".join(found.opposite)} have the '
                'opposite sign to the positions; valid: torque_scale -1 in the format of the log, '
                'or an axis that points the other way')
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
    """Return gravity, inertial torque, velocity, acceleration and effort, shape (N, n) each."""
    few = slice(None, None, max(1, -(-len(segment.t) // MOST)))
    q, qd, qdd = segment.q[few], segment.qd[few], segment.qdd[few]
    theta, still = linear.nominal(), np.zeros_like(q)
    gravity = linear.regressor(q, still, still, loaded=segment.loaded) @ theta
    whole = linear.regressor(q, qd, qdd, loaded=segment.loaded) @ theta
    effort = segment.tau if segment.extra is None else segment.tau - segment.extra
    return gravity, whole - gravity, qd, qdd, effort[few]


def _fit(gravity: Array, inertial: Array, velocity: Array, acceleration: Array,
         effort: Array) -> tuple[Array, Array]:
    """Return a, b, c, d, e, f and their covariance; terms that do not vary get a huge variance."""
    fastest = float(np.abs(velocity).max(initial=0.0))
    terms = np.column_stack([gravity, inertial, np.tanh(20 * safe_divide(velocity, fastest)),
                             velocity, np.ones(len(velocity)), acceleration])
    size = terms.std(axis=0)
    size[4] = 1.0
    torque = max(float(np.abs(gravity).max(initial=0.0) + np.abs(inertial).max(initial=0.0)),
                 1e-12)
    least = np.array([1e-3 * torque, 1e-3 * torque, 1e-3, 1e-6, 0.0, 1e-3])
    values, covariance = np.zeros(6), np.diag(np.full(6, UNDETERMINED))
    used = np.flatnonzero(size > least)
    scaled = terms[:, used] / size[used]
    normal = scaled.T @ scaled + 1e-9 * len(scaled) * np.eye(len(used))
    found = np.linalg.solve(normal, scaled.T @ effort)
    rest = effort - scaled @ found
    variance = float(rest @ rest) / max(len(rest) - len(used), 1)
    # successive residuals are correlated, so they count as fewer independent samples
    rho = float(np.clip(safe_divide(rest[1:] @ rest[:-1], rest @ rest), 0.0, 0.999))
    scaled_covariance = np.linalg.inv(normal) * variance * (1 + rho) / (1 - rho)
    values[used] = found / size[used]
    covariance[np.ix_(used, used)] = scaled_covariance / np.outer(size[used], size[used])
    return values, covariance


def _opposite(names: Sequence[str], fits: Sequence[tuple[Array, Array]]) -> tuple[str, ...]:
    """Return the joints whose efforts have the opposite sign to their positions.

    A wrong description, or a wrong direction of gravity, can reverse the torque of gravity. But
    inertia and friction oppose the acceleration and the motion of every joint. All joints are
    reversed if inertia and friction of all joints together say so; a single joint, if its
    friction and its gravity or inertial torque do.
    """
    # gravity, inertia and friction in standard deviations
    signs = np.array([safe_divide(values[:3], np.sqrt(np.diag(covariance)[:3]))
                      for values, covariance in fits])
    together = np.clip(signs[:, 1:], -MOST_CERTAIN, MOST_CERTAIN).sum() / np.sqrt(2 * len(signs))
    certain = np.where(np.abs(signs) > SIGN_CERTAIN, signs, 0.0)
    if together < -SIGN_CERTAIN and not (certain[:, 0] > 0).any():
        return tuple(names)
    alone = (certain[:, 2] < 0) & (certain[:, :2].min(axis=1) < 0) & (
        certain[:, :2].max(axis=1) <= 0)
    return tuple(name for name, one in zip(names, alone, strict=True) if one)


def _ratios(model: Model, names: Sequence[str]) -> Array:
    """Return the gear ratio of each joint; 1 where it is unknown."""
    return np.abs(model.gear_ratio[[model.body_joints.index(name) for name in names]])


def _probabilities(slopes: Array, covariances: Sequence[Array], errors: Array, ratios: Array,
                   friction: float) -> dict[str, float]:
    """Return the probability of each of `KINDS` by the estimates of all joints."""
    scores = np.zeros((len(slopes), len(KINDS)))
    for k, (slope, covariance) in enumerate(zip(slopes, covariances, strict=True)):
        scores[k] = [_score(slope, covariance, factors, errors[k], place in WITHOUT_GRAVITY)
                     for place, factors in enumerate((
                         NEAR, NEAR, NEAR / ratios[k], NEAR / ratios[k],
                         SCALES, SCALES, np.zeros(1)))]
    scores = np.maximum(scores, scores.max(axis=1, keepdims=True) - MOST_EVIDENCE)
    total = scores.sum(axis=0)
    if not (ratios > 2).any():  # without known gears, the motor side looks like an unknown scale
        total[ON_MOTOR_SIDE] = -np.inf
    if np.isfinite(friction):  # motor torques and currents contain it, external torques do not
        total[NOT_ON_LINK_SIDE] += np.log(max(friction, 1e-9))
        total[EXTERNAL] += np.log(max(1 - friction, 1e-9))
    weights = np.exp(total - total.max())
    return dict(zip(KINDS, (weights / weights.sum()).tolist(), strict=True))


def _score(slope: Array, covariance: Array, factors: Array, errors: Array,
           without_gravity: bool) -> float:
    """Return the logarithm of the likelihood of one joint's slopes, mean over the factors."""
    expected = np.column_stack([0.0 * factors if without_gravity else factors, factors])
    deviation = np.hypot(np.where(expected != 0, PRESENT, ABSENT), errors) \
        * np.abs(factors)[:, None]
    deviation[factors == 0] = ABSENT
    total = covariance + deviation[:, :, None] ** 2 * np.eye(2)
    difference = slope - expected
    solved = np.linalg.solve(total, difference[:, :, None])[:, :, 0]
    values = -0.5 * ((difference * solved).sum(axis=1) + np.linalg.slogdet(total)[1])
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
        with_friction = noise + FRICTION**2
        without = noise + HARDLY_ANY**2
        evidence += float(np.clip(
            -0.5 * (ratio**2 / with_friction + np.log(with_friction))
            + 0.5 * (ratio**2 / without + np.log(without)), -MOST_EVIDENCE, MOST_EVIDENCE))
    return float(1 / (1 + np.exp(-np.clip(evidence, -500, 500)))) if moves else np.nan
