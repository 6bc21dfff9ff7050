"""The verdict on an identification: good, doubtful or bad, with documented thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.spatial import Array

BAD_ERROR = 0.5  # relative error of the filtered torque that indicates a log of another robot
DOUBTFUL_ERROR = 0.08  # published identifications of industrial arms reach 5 to 8 %
BAD_JOINT = 0.5  # relative error of a joint's filtered torque that is bad
BAD_JOINTS = 0.5  # fraction of joints with bad errors above which the verdict is bad
BAD_CONDITION = 1e8  # half of the digits of double precision are lost in the estimate
LEAST_COVERAGE = 0.5  # fraction of positions and velocities that must be in the range of the fit
MARGIN = 0.1  # extension of the range of the fit, relative to the range
NOTED_COVERAGE = 0.9  # coverage below which a remark is made
WORSE = 1.02  # ratio to the error of the description above which the description is better
NOISY = 2.0  # ratio of raw to filtered error above which a remark explains the difference


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
    """Relative errors as fractions: filtered errors by joint, and totals over all joints."""

    joints: dict[str, float]
    filtered: float
    raw: float
    nominal: float
    gravity: float


def judge(errors: Errors, evidence: Evidence | None, coverage: float,
          ) -> tuple[str, tuple[str, ...]]:
    """Return the verdict, and the reasons for it.

    Parameters
    ----------
    errors : Errors
        Errors on data that were not used for the fit.
    evidence : Evidence, optional
        Further facts about the fit.
    coverage : float
        Fraction of the positions and velocities within the range of the fit.
    """
    bad, doubtful, notes = _of_errors(errors)
    if evidence is not None:
        if not evidence.condition <= BAD_CONDITION:
            bad.append(f'the condition number is {evidence.condition:.3g}, above '
                       f'{BAD_CONDITION:.0e}: {evidence.cause or "the motion excites too little"}')
        doubtful += [f'implausible: {reason}' for reason in evidence.implausible]
    if coverage < LEAST_COVERAGE:
        doubtful.append(f'only {coverage:.0%} of the positions and velocities lie in the range '
                        'of the fit')
    elif coverage < NOTED_COVERAGE:
        notes.append(f'{coverage:.0%} of the positions and velocities lie in the range of the fit')
    verdict = 'bad' if bad else 'doubtful' if doubtful else 'good'
    return verdict, (*bad, *doubtful, *notes)


def _of_errors(errors: Errors) -> tuple[list[str], list[str], list[str]]:
    """Return reasons for bad, reasons for doubtful, and remarks."""
    bad: list[str] = []
    doubtful: list[str] = []
    notes: list[str] = []
    if errors.filtered > BAD_ERROR:
        bad.append(f'{errors.filtered:.0%} of the torque is not explained: is this the robot of '
                   'the description, with these signs, units and gravity?')
    elif errors.filtered > DOUBTFUL_ERROR:
        doubtful.append(f'{errors.filtered:.1%} of the torque is not explained, more than '
                        f'{DOUBTFUL_ERROR:.0%}')
    weak = [joint for joint, error in errors.joints.items() if error > BAD_JOINT]
    if weak:
        (bad if len(weak) > BAD_JOINTS * len(errors.joints) else doubtful).append(
            f'more than half of the torque is unexplained at {_listed(weak)}')
    best = min(errors.nominal, errors.gravity)
    if errors.raw > WORSE * best:
        better = 'the unchanged description' if errors.nominal <= errors.gravity else \
            'its gravity torque'
        bad.append(f'{better} predicts better (error of {best:.2%})')
    else:
        notes.append(f'the unchanged description has an error of {errors.nominal:.2%}, its '
                     f'gravity torque alone one of {errors.gravity:.2%}')
    if errors.raw > NOISY * errors.filtered:
        notes.append(f'most of the raw error of {errors.raw:.2%} is noise, or belongs to slow '
                     f'samples that are left out: {errors.filtered:.2%} remain after filtering')
    return bad, doubtful, notes


def _listed(names: Sequence[str]) -> str:
    return ', '.join(names)
