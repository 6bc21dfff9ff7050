"""Proof on data that the fit has not seen (Kolyubin 5.26)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robodyn_ros.description import Array
from robodyn_ros.identification.observations import Observations


@dataclass(frozen=True, eq=False)
class Validation:
    """Torque errors on some logs; fractions, not percent.

    Attributes
    ----------
    relative_error : ndarray, shape (n,)
        ``||tau - tau_hat|| / ||tau||`` of each joint, against the raw measured torque (known extra
        torques included in its size).
    total : float
        The same over all joints.
    rms, largest : ndarray, shape (n,)
        Root mean square and largest error against the raw torque, N m or N.
    relative_error_filtered, total_filtered, rms_filtered
        Against torques through the parallel filter, on the samples that the fit would use.
    nominal, nominal_total
        Raw error of the description's own model.
    gravity_only : float
        Raw total error of the description's gravity alone.
    verdict : str
        ``good``, ``doubtful`` or ``bad``.
    reasons : tuple of str
        Why.
    t, measured, predicted : list of ndarray
        Raw torque and prediction of each uninterrupted piece, for plots.
    """

    joint_names: tuple[str, ...]
    relative_error: Array
    total: float
    rms: Array
    largest: Array
    relative_error_filtered: Array
    total_filtered: float
    rms_filtered: Array
    nominal: Array
    nominal_total: float
    gravity_only: float
    verdict: str
    reasons: tuple[str, ...]
    t: list[Array] = field(repr=False)
    measured: list[Array] = field(repr=False)
    predicted: list[Array] = field(repr=False)

    def to_text(self) -> str:
        """A table for people."""
        width = max(len('in total'), *map(len, self.joint_names))
        lines = [f'  {"":{width}}  relative  filtered   nominal       rms   largest']
        for k, joint in enumerate(self.joint_names):
            lines.append(f'  {joint:{width}} {self.relative_error[k]:9.2%} '
                         f'{self.relative_error_filtered[k]:9.2%} {self.nominal[k]:9.2%} '
                         f'{self.rms[k]:9.4g} {self.largest[k]:9.4g}')
        lines.append(f'  {"in total":{width}} {self.total:9.2%} {self.total_filtered:9.2%} '
                     f'{self.nominal_total:9.2%}')
        return '\n'.join([*lines, f'  verdict: {self.verdict}',
                          *(f'  - {reason}' for reason in self.reasons)])


def validate_on(observations: Observations, theta: Array) -> Validation:
    """Compare predicted torques with measured ones.

    Parameters
    ----------
    observations : Observations
        Of the logs.
    theta : ndarray, shape (p,)
        Parameters of the linear model.
    """
    linear = observations.linear
    n = linear.joints.n
    names = linear.joints.joint_names * (linear.rows // n)
    pieces = range(len(observations))
    measured = [observations.torque(k) for k in pieces]
    predicted = [observations.prediction(k, theta) for k in pieces]
    explained = np.concatenate(measured)
    wrong = explained - np.concatenate(predicted)
    total = np.concatenate([observations.measured(k) for k in pieces])
    nominal, gravity = _nominal(observations)
    blocks = list(observations.blocks())
    filtered_wrong = np.concatenate([(b.tau - b.w @ theta) * b.used for b in blocks])
    filtered = np.concatenate([b.measured * b.used for b in blocks])
    used = np.tile(observations.torques_of, linear.rows // n)
    relative = _share(wrong, total)
    overall = _overall(wrong[:, used], total[:, used])
    nominal_overall = _overall((explained - nominal)[:, used], total[:, used])
    gravity_overall = _overall((explained - gravity)[:, used], total[:, used])
    filtered_overall = _overall(filtered_wrong[:, used], filtered[:, used])
    verdict, reasons = _judge(_share(filtered_wrong, filtered), filtered_overall, overall,
                              nominal_overall, gravity_overall, names, used)
    return Validation(
        tuple(names), relative, overall, np.sqrt((wrong**2).mean(axis=0)),
        np.abs(wrong).max(axis=0), _share(filtered_wrong, filtered),
        filtered_overall, np.sqrt((filtered_wrong**2).sum(axis=0) / np.maximum(
            np.concatenate([b.used for b in blocks]).sum(axis=0), 1)),
        _share(explained - nominal, total), nominal_overall, gravity_overall, verdict, reasons,
        [segment.t for segment in observations.segments], measured, predicted)


def _share(wrong: Array, total: Array) -> Array:
    size = np.linalg.norm(total, axis=0)
    return np.linalg.norm(wrong, axis=0) / np.where(size > 0, size, np.nan)


def _overall(wrong: Array, total: Array) -> float:
    return float(np.linalg.norm(wrong) / max(float(np.linalg.norm(total)), 1e-300))


def _nominal(observations: Observations) -> tuple[Array, Array]:
    """Torques of the description as it is, and of its gravity alone; shape (M, rows) both."""
    linear = observations.linear
    nominal = linear.nominal()
    theta = np.array([value if column.term in ('m', 'mx', 'my', 'mz') else 0.0
                      for value, column in zip(nominal, linear.columns, strict=True)])
    predicted, gravity = [], []
    for k, segment in enumerate(observations.segments):
        predicted.append(observations.prediction(k, nominal))
        still = np.zeros_like(segment.q)
        gravity.append(np.concatenate([linear.regressor(
            segment.q[a:a + 4096], still[a:a + 4096], still[a:a + 4096],
            loaded=segment.loaded) @ theta for a in range(0, len(still), 4096)]))
    return np.concatenate(predicted), np.concatenate(gravity)


def _judge(relative: Array, filtered: float, overall: float, nominal: float, gravity: float,
           names: tuple[str, ...], used: Array) -> tuple[str, tuple[str, ...]]:
    """Verdict by the errors without measurement noise, reasons in words."""
    verdict, reasons = 'good', []
    if filtered > 0.5:
        verdict = 'bad'
        reasons.append(f'{filtered:.0%} of the torque is not explained: is this the robot of the '
                       'description, with these signs, units and gravity?')
    elif filtered > 0.15:
        verdict = 'doubtful'
        reasons.append(f'{filtered:.0%} of the torque is not explained')
    if overall > min(nominal, gravity):
        verdict = 'bad'
        better = 'the description as it is' if nominal <= gravity else 'its gravity alone'
        reasons.append(f'{better} predicts better ({min(nominal, gravity):.2%})')
    else:
        reasons.append(f'the description as it is has an error of {nominal:.2%}, its gravity '
                       f'alone of {gravity:.2%}')
    if overall > 2 * filtered:
        reasons.append(f'of the raw error of {overall:.2%} most is noise, or slow samples that do '
                       f'not count: {filtered:.2%} remain through the filter')
    weak = [name for name, error, use in zip(names, relative, used, strict=True)
            if use and error > 0.5]
    if weak:
        verdict = 'doubtful' if verdict == 'good' else verdict
        reasons.append(f'more than half of the torque unexplained at {", ".join(weak)}')
    return verdict, tuple(reasons)
