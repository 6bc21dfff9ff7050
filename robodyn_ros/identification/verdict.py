"""The verdict on an identification: good, doubtful or bad, with documented thresholds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.keywords import checked_fields
from robodyn_ros.spatial import Array

MARGIN = 0.1  # extension of the range of the fit, relative to that range
NOTED_COVERAGE = 0.9  # a lower coverage is mentioned
NOISY = 2.0  # ratio of raw to filtered error above which the difference is explained
PASSED, DOUBTFUL, FAILED = 'passed', 'doubtful', 'failed'
MEANINGS = {
    'total': 'largest unexplained fraction of the filtered torque over all joints',
    'joint': 'largest unexplained fraction of the filtered torque of each joint',
    'bad_total': 'unexplained fraction over all joints above which the result is bad',
    'bad_joint': 'unexplained fraction that makes the result bad if more than half of the joints '
                 'exceed it',
    'condition': 'largest condition number of the fit',
    'bad_condition': 'condition number above which the result is bad',
    'coverage': "smallest fraction of the validation's positions and velocities within the range "
                'of the fit',
    'worse': 'largest ratio of the raw error to that of the unchanged description',
    'rollout': 'largest position error of a joint after 0.1 s of simulation, over the distance '
               'that it travelled',
}


@checked_fields
@dataclass(frozen=True)
class Thresholds:
    """Thresholds of a verdict. docs/explanation/verdict.md gives the reason for each default.

    Attributes
    ----------
    total : float
        Largest unexplained fraction of the filtered torque over all joints.
    joint : float
        The same for each joint.
    bad_total, bad_joint : float
        Fractions above which the result is bad instead of doubtful. `bad_joint` applies if more
        than half of the joints exceed it.
    condition, bad_condition : float
        Largest condition number of the weighted observation matrix with columns of equal norm,
        and the one above which the result is bad.
    coverage : float
        Smallest fraction of the validation's positions and velocities within the range of the fit.
    worse : float
        Largest ratio of the raw error to that of the unchanged description or of its gravity
        torque.
    rollout : float
        Largest position error of each joint that moves, simulated for 0.1 s under the measured
        torque, as a fraction of the distance that it travelled.
    """

    total: float = 0.08
    joint: float = 0.25
    bad_total: float = 0.5
    bad_joint: float = 0.5
    condition: float = 1e3
    bad_condition: float = 1e8
    coverage: float = 0.8
    worse: float = 1.02
    rollout: float = 0.5

    def __post_init__(self) -> None:
        """Check the thresholds.

        Raises
        ------
        ValueRangeError
            A threshold is not a number above 0, or a threshold exceeds that for a bad result.
        """
        for name, value in asdict(self).items():
            if not (isinstance(value, Real) and float(value) > 0):
                raise ValueRangeError(f'threshold {name}', value, 'a number above 0')
        for good, bad in (('total', 'bad_total'), ('joint', 'bad_joint'),
                          ('condition', 'bad_condition')):
            if getattr(self, good) > getattr(self, bad):
                raise ValueRangeError(f'threshold {good}', getattr(self, good),
                                      f'at most {bad}, which is {getattr(self, bad)}')

    def changed(self) -> dict[str, float]:
        """Return the thresholds that differ from their defaults."""
        usual = asdict(Thresholds())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


@dataclass(frozen=True)
class Criterion:
    """One criterion of a verdict.

    Attributes
    ----------
    name : str
        Name of the criterion.
    value, limit : str
        The value found, and the threshold.
    result : str
        ``passed``, ``doubtful`` or ``failed``.
    reason : str
        A sentence with the reason if it is not passed.
    """

    name: str
    value: str
    limit: str
    result: str
    reason: str = ''


class Judgement(NamedTuple):
    """A verdict, the reasons for it, and its criteria."""

    verdict: str
    reasons: tuple[str, ...]
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True)
class Evidence:
    """Facts about a fit on which a verdict is based besides the errors.

    Attributes
    ----------
    condition : float
        Condition number of the weighted observation matrix of the fit.
    cause : str
        The combination of parameters that is determined worst, as a sentence.
    implausible : tuple of str
        See `robodyn_ros.identification.plausibility`.
    lower, upper : ndarray, shape (2, n)
        Range of the positions and of the velocities in the fit.
    """

    condition: float
    cause: str
    implausible: tuple[str, ...]
    lower: Array
    upper: Array

    def coverage(self, q: Array, qd: Array) -> float:
        """Return the fraction of positions and velocities within the range of the fit."""
        fractions = []
        for values, low, high in zip((q, qd), self.lower, self.upper, strict=True):
            margin = MARGIN * (high - low)
            fractions.append(((values >= low - margin) & (values <= high + margin)).mean())
        return float(np.mean(fractions))


@dataclass(frozen=True)
class Errors:
    """Relative errors as fractions: filtered errors by joint, and totals over all joints.

    ``filtered`` and ``raw`` are errors of the identified model, ``nominal`` is the raw error of
    the description and ``gravity`` that of its gravity torque alone.
    """

    joints: dict[str, float]
    filtered: float
    raw: float
    nominal: float
    gravity: float


def judge(errors: Errors, evidence: Evidence | None, coverage: float,
          thresholds: Thresholds | None = None,
          drift: tuple[str, float, float] | None = None) -> Judgement:
    """Return the verdict, the reasons for it, and the table of criteria.

    Parameters
    ----------
    errors : Errors
        Errors on data that were not used for the fit.
    evidence : Evidence, optional
        Further facts about the fit.
    coverage : float
        Fraction of the positions and velocities within the range of the fit.
    thresholds : Thresholds, optional
        Thresholds other than the defaults.
    drift : tuple of (str, float, float), optional
        See `Rollout.worst`.
    """
    asked = thresholds or Thresholds()
    criteria = [_total(errors, asked), *_joints(errors, asked), _improvement(errors, asked),
                *_evidence(evidence, asked), _coverage(coverage, asked), *_drift(drift, asked)]
    results = [criterion.result for criterion in criteria]
    verdict = 'bad' if FAILED in results else 'doubtful' if DOUBTFUL in results else 'good'
    reasons = [criterion.reason for result in (FAILED, DOUBTFUL) for criterion in criteria
               if criterion.result == result]
    return Judgement(verdict, (*reasons, *_remarks(errors, coverage, asked)), tuple(criteria))


def _total(errors: Errors, asked: Thresholds) -> Criterion:
    result, reason = PASSED, ''
    if not errors.filtered <= asked.bad_total:
        result, reason = FAILED, (
            f'{errors.filtered:.0%} of the torque is not explained: is this the robot of the '
            'description, with these signs, units and gravity?')
    elif errors.filtered > asked.total:
        result, reason = DOUBTFUL, (f'{errors.filtered:.1%} of the torque is not explained, more '
                                    f'than {_percent(asked.total)}')
    return Criterion('unexplained torque in total, filtered', f'{errors.filtered:.2%}',
                     f'at most {_percent(asked.total)}', result, reason)


def _joints(errors: Errors, asked: Thresholds) -> list[Criterion]:
    if not errors.joints:
        return []
    worst = max(errors.joints, key=lambda joint: errors.joints[joint])
    bad = [joint for joint, error in errors.joints.items() if error > asked.bad_joint]
    weak = [joint for joint, error in errors.joints.items() if error > asked.joint]
    result, reason = PASSED, ''
    if 2 * len(bad) > len(errors.joints):
        result, reason = FAILED, (f'more than {_percent(asked.bad_joint)} of the torque is '
                                  f'unexplained at {", ".join(bad)}')
    elif weak:
        result, reason = DOUBTFUL, (f'more than {_percent(asked.joint)} of the torque is '
                                    f'unexplained at {", ".join(weak)}')
    return [Criterion('unexplained torque of each joint, filtered',
                      f'{errors.joints[worst]:.2%} at {worst}',
                      f'at most {_percent(asked.joint)}', result, reason)]


def _improvement(errors: Errors, asked: Thresholds) -> Criterion:
    best, name = min((errors.nominal, 'the unchanged description'),
                     (errors.gravity, 'its gravity torque alone'))
    worse = errors.raw > asked.worse * best
    return Criterion('raw error over that of the description', f'{errors.raw:.2%} : {best:.2%}',
                     f'at most {asked.worse:g}', FAILED if worse else PASSED,
                     f'{name} predicts better (error of {best:.2%})' if worse else '')


def _evidence(evidence: Evidence | None, asked: Thresholds) -> list[Criterion]:
    if evidence is None:
        return []
    result, limit = PASSED, asked.condition
    if not evidence.condition <= asked.bad_condition:
        result, limit = FAILED, asked.bad_condition
    elif evidence.condition > asked.condition:
        result = DOUBTFUL
    strange = '; '.join(evidence.implausible)
    return [
        Criterion('condition number of the fit', f'{evidence.condition:.3g}',
                  f'at most {asked.condition:g}', result,
                  '' if result == PASSED else
                  f'the condition number is {evidence.condition:.3g}, above {limit:.3g}: '
                  f'{evidence.cause or "the motion excites too little"}'),
        Criterion('gravity and friction can be those of the described robot',
                  f'{len(evidence.implausible)} are implausible', 'all are plausible',
                  DOUBTFUL if strange else PASSED, f'implausible: {strange}' if strange else '')]


def _coverage(coverage: float, asked: Thresholds) -> Criterion:
    low = coverage < asked.coverage
    return Criterion('validation within the range of the fit', f'{coverage:.0%}',
                     f'at least {_percent(asked.coverage)}', DOUBTFUL if low else PASSED,
                     f'only {coverage:.0%} of the positions and velocities lie in the range of '
                     'the fit' if low else '')


def _drift(drift: tuple[str, float, float] | None, asked: Thresholds) -> list[Criterion]:
    if drift is None:
        return []
    joint, ratio, horizon = drift
    far = not ratio <= asked.rollout
    return [Criterion(f'position error after {horizon:g} s of simulation over the distance '
                      'travelled', f'{ratio:.0%} at {joint}', f'at most {_percent(asked.rollout)}',
                      DOUBTFUL if far else PASSED,
                      f'simulated under the measured torque, {joint} is off by {ratio:.0%} of the '
                      f'distance that it travelled in {horizon:g} s' if far else '')]


def _remarks(errors: Errors, coverage: float, asked: Thresholds) -> list[str]:
    """Return remarks that do not change the verdict."""
    notes = []
    if errors.raw <= asked.worse * min(errors.nominal, errors.gravity):
        notes.append(f'the unchanged description has an error of {errors.nominal:.2%}, its '
                     f'gravity torque alone one of {errors.gravity:.2%}')
    if errors.raw > NOISY * errors.filtered:
        notes.append(f'most of the raw error of {errors.raw:.2%} is noise, or belongs to slow '
                     f'samples that are left out: {errors.filtered:.2%} remain after filtering')
    if asked.coverage <= coverage < NOTED_COVERAGE:
        notes.append(f'{coverage:.0%} of the positions and velocities lie in the range of the fit')
    return notes


def _percent(fraction: float) -> str:
    return f'{100 * fraction:.3g}%'
