"""Evaluates the results of a fleet: changes over time, differing robots, outlying logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.optimize

from robodyn_ros.numerics import safe_divide
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

FALSE_ALARMS = 0.01  # fraction of false ones among all reported changes (false discovery rate)
FEWEST = 6  # smallest number of logs of a robot in which changes and outliers are looked for
EDGE = 2  # smallest number of logs before and after a change
OUTLYING = 3.5  # robust standard deviations by which the error of an outlier exceeds the median
WORSE = 1.5  # smallest ratio of this error to the median
NORMAL = 1.4826  # standard deviation over median absolute deviation of a normal distribution
LEAST_ERROR, LEAST_SCATTER = 1e-12, 1e-3  # avoid the logarithm of zero and a scatter of zero


@dataclass(frozen=True)
class Findings:
    """What was found in the results of a fleet, as pandas data frames.

    Attributes
    ----------
    changes : DataFrame
        Parameters that changed over time: robot, joint, parameter, date of the change, mean before
        and after, relative change, and the probability p that chance causes such a change,
        corrected for the number of robots and parameters.
    differences : DataFrame
        Parameters that differ between robots of one type by more than their intervals.
    outliers : DataFrame
        Logs whose error is far above that of the robot's other logs.
    bad : DataFrame
        Logs that could not be used, with the reason.
    ranking : DataFrame
        The robots, those that need attention most come first.
    """

    changes: Any
    differences: Any
    outliers: Any
    bad: Any
    ranking: Any


def find(results: Any, *, false_alarms: float = FALSE_ALARMS) -> Findings:
    """Find changes, differences and outliers in the results of a fleet.

    A change is a step of the mean between two logs. The variance of an estimate is the sum of the
    variance of its identification and the variance from log to log; the latter follows from the
    successive differences of all robots of the type, which a step hardly affects. Results with the
    verdict bad are left out, and so are estimates of a base parameter that stands for another
    combination of standard parameters than usual. The probability that chance causes the largest
    step is corrected for the number of places where the step may be. The probabilities of changes
    and of differences are then corrected for the number of robots and parameters (Benjamini and
    Hochberg 1995, doi 10.1111/j.2517-6161.1995.tb02031.x).

    Parameters
    ----------
    results : DataFrame
        What `read_results` returns.
    false_alarms : float
        Expected fraction of false ones among the reported changes and differences. If nothing
        changed at all, it is the probability that anything is reported.
    """
    pandas = package('pandas')
    good = results[results.status == 'ok']
    comparable = _comparable(good)
    changes = _significant(pandas.DataFrame(_changes(comparable), columns=[
        'robot', 'joint', 'parameter', 'date', 'before', 'after', 'change', 'p']), false_alarms)
    differences = _significant(pandas.DataFrame(_differences(comparable), columns=[
        'type', 'joint', 'parameter', 'robots', 'lowest', 'lowest_value', 'highest',
        'highest_value', 'p']), false_alarms)
    outliers = pandas.DataFrame(_outliers(good), columns=[
        'robot', 'date', 'log', 'error', 'usual'])
    bad = results.loc[results.status != 'ok', ['robot', 'date', 'log', 'reason']]
    ranking = _ranking(results, changes, outliers, bad)
    return Findings(changes, differences, outliers, bad.reset_index(drop=True), ranking)


def _comparable(good: Any) -> Any:
    """Leave out bad results, and estimates for another combination of parameters than usual."""
    good = good[good.verdict != 'bad']
    usual = good.groupby(['type', 'parameter']).expression.agg(
        lambda values: values.mode().iloc[0]).rename('usual')
    joined = good.join(usual, on=['type', 'parameter'])
    return joined[joined.expression == joined.usual].drop(columns='usual')


def _significant(frame: Any, false_alarms: float) -> Any:
    """Correct the probabilities for their number, and return the rows below the threshold."""
    if len(frame):
        frame = frame.assign(p=scipy.stats.false_discovery_control(frame.p))
    return frame[frame.p < false_alarms].sort_values('p', ignore_index=True)


def _changes(good: Any) -> list[tuple[Any, ...]]:
    """Return the largest step of each parameter of each robot, and its probability by chance."""
    rows = []
    for (_, parameter), group in good.groupby(['type', 'parameter'], sort=True):
        series = {robot: logs for robot, logs in group.groupby('robot') if len(logs) >= FEWEST}
        if not series:
            continue
        scatter = _scatter_between_logs(list(series.values()))
        for robot, logs in series.items():
            place, z = _largest_step(logs.estimate.to_numpy(),
                                     np.hypot(_deviations(logs.standard_deviation), scatter))
            places = len(logs) - 2 * EDGE + 1
            p = min(1.0, places * 2 * float(scipy.stats.norm.sf(abs(z))))
            before = float(logs.estimate.iloc[:place].mean())
            after = float(logs.estimate.iloc[place:].mean())
            change = float(safe_divide(after - before, abs(before), at_zero=np.inf))
            rows.append((robot, logs.joint.iloc[0], parameter, logs.date.iloc[place], before,
                         after, change, p))
    return rows


def _deviations(values: Any) -> Array:
    """Return standard deviations; zeros are replaced by the smallest positive one."""
    found = np.asarray(values, float)
    positive = found[found > 0]
    return np.maximum(found, positive.min() if len(positive) else 1.0)


def _scatter_between_logs(series: list[Any]) -> float:
    """Return the standard deviation from log to log that the identifications do not explain.

    It is chosen so that half of the differences of successive logs lie within the quartiles of
    the normal distribution.
    """
    jumps = np.concatenate([np.diff(logs.estimate.to_numpy()) for logs in series])
    deviations = [_deviations(logs.standard_deviation) for logs in series]
    explained = np.concatenate([np.hypot(s[1:], s[:-1]) for s in deviations])

    def excess(scatter: float) -> float:
        ratios = np.abs(jumps) / np.hypot(explained, np.sqrt(2) * scatter)
        return float(np.median(ratios)) - 1 / NORMAL

    most = float(np.abs(jumps).max())
    if excess(0.0) <= 0 or most == 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, NORMAL * most))


def _largest_step(x: Array, s: Array) -> tuple[int, float]:
    """Return the first sample after the most significant step of the mean, and its z value."""
    weight = 1 / s**2
    sums, moments = np.cumsum(weight), np.cumsum(weight * x)
    place = np.arange(EDGE, len(x) - EDGE + 1)
    left, right = sums[place - 1], sums[-1] - sums[place - 1]
    step = (moments[-1] - moments[place - 1]) / right - moments[place - 1] / left
    z = step / np.sqrt(1 / left + 1 / right)
    best = int(np.argmax(np.abs(z)))
    return int(place[best]), float(z[best])


def _differences(good: Any) -> list[tuple[Any, ...]]:
    """Return each parameter of several robots, and the probability by chance that they differ.

    The probability is that of a chi-squared test of the hypothesis that the robots are equal.
    """
    rows = []
    for (kind, parameter), group in good.groupby(['type', 'parameter'], sort=True):
        names, means, errors = [], [], []
        for robot, logs in group.groupby('robot'):
            x, s = logs.estimate.to_numpy(), _deviations(logs.standard_deviation)
            spread = x.std(ddof=1) if len(x) > 1 else 0.0
            names.append(robot)
            means.append(float(np.median(x)))
            errors.append(max(float(np.median(s)), spread) / np.sqrt(len(x)))
        if len(names) < 2:
            continue
        value, error = np.array(means), np.array(errors)
        centre = np.average(value, weights=1 / error**2)
        p = float(scipy.stats.chi2.sf((((value - centre) / error) ** 2).sum(), len(names) - 1))
        low, high = int(np.argmin(value)), int(np.argmax(value))
        rows.append((kind, group.joint.iloc[0], parameter, len(names), names[low],
                     float(value[low]), names[high], float(value[high]), p))
    return rows


def _outliers(good: Any) -> list[tuple[Any, ...]]:
    """Return the logs whose error is far above the usual error of their robot."""
    rows = []
    for robot, group in good.groupby('robot'):
        logs = group.groupby(['date', 'log'], as_index=False).total_error.first()
        if len(logs) < FEWEST:
            continue
        error = np.log(np.maximum(logs.total_error.to_numpy(), LEAST_ERROR))
        usual = float(np.median(error))
        scatter = max(NORMAL * float(np.median(np.abs(error - usual))), LEAST_SCATTER)
        far = (error - usual > OUTLYING * scatter) & (error - usual > np.log(WORSE))
        rows += [(robot, logs.date.iloc[k], logs.log.iloc[k], float(np.exp(error[k])),
                  float(np.exp(usual))) for k in np.flatnonzero(far)]
    return rows


def _ranking(results: Any, changes: Any, outliers: Any, bad: Any) -> Any:
    """Order the robots by their changed joints, then by their outlying and unusable logs."""
    def count(frame: Any) -> Any:
        return frame.groupby('robot').size()

    joints = changes.drop_duplicates(['robot', 'joint'])
    table = package('pandas').DataFrame({
        'logs': results.groupby('robot')['log'].nunique(), 'changed_joints': count(joints),
        'largest_change': changes.groupby('robot').change.agg(
            lambda values: values.abs().replace(np.inf, np.nan).max()),
        'outlying_logs': count(outliers), 'bad_logs': count(bad)})
    counts = ['logs', 'changed_joints', 'outlying_logs', 'bad_logs']
    table[counts] = table[counts].fillna(0).astype(int)
    return table.sort_values(
        ['changed_joints', 'outlying_logs', 'bad_logs', 'largest_change'], ascending=False,
        na_position='last').rename_axis('robot').reset_index()
