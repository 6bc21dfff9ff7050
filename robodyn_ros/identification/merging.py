"""One estimate from many logs whose samples are not kept: their triangular factors are merged.

All that least squares needs of a log is the triangular factor of ``[W, tau]``. The factors of
many logs are merged one after the other, in memory that does not grow with their number. The
standard deviations are those of the jackknife (Efron and Stein 1981,
doi 10.1214/aos/1176345462), from estimates that leave out one log each. They include the
differences between logs, which the residuals within one log do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.estimation import least_squares
from robodyn_ros.identification.noise import torque_slope
from robodyn_ros.identification.observations import factors_of, merge, triangular
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.statistics import CONFIDENCE
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

LEAST_LOGS = 3  # smallest number of logs for the jackknife
# Without one of the logs, a direction is undetermined if its eigenvalue of W'W, relative to the
# largest one, is below the first bound; a parameter, if its part in such a direction exceeds the
# second.
UNDETERMINED, NOTICED = 1e-13, 1e-6


@dataclass(frozen=True, eq=False)
class LogFactors:
    """What least squares needs of one log.

    Attributes
    ----------
    names, expressions : tuple of str
        The b base parameters that the log excites, and what they consist of.
    factors : ndarray, shape (rows, b + 1, b + 1)
        Triangular factors of ``[W, tau]`` of each row of the robot, see `factors_of`.
    count : ndarray, shape (rows,)
        Number of samples of each row.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    factors: Array
    count: Array


@dataclass(frozen=True, eq=False)
class Merged:
    """An estimate from many logs.

    Attributes
    ----------
    names, expressions : tuple of str
        The b base parameters, and what they consist of.
    values : ndarray, shape (b,)
        The estimate, SI units.
    deviation : ndarray, shape (b,)
        Standard deviations by the jackknife over the logs; infinite for a parameter that only
        one log determines.
    interval : ndarray, shape (b, 2)
        95 % confidence intervals.
    errors : ndarray, shape (logs,)
        Relative error of the estimate in the filtered torque of each log, with the weights of
        the fit.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    values: Array
    deviation: Array
    interval: Array
    errors: Array


def log_factors(result: Result) -> LogFactors:
    """Return what merging needs of an identification; the delay of its torques is compensated."""
    delay = result.uncertainty_.delay
    blocks = [replace(block, tau=block.tau + delay * torque_slope(
        block.t, block.measured - block.tau + block.w @ result.theta_))
        for block in result.observations.blocks()]
    chosen = [*result.base_.kept, -1]
    factors = merge([factors_of(block) for block in blocks])[:, :, chosen]
    return LogFactors(result.base_.names, result.base_.expressions, triangular(factors),
                      result.estimate_.count)


def merge_logs(logs: Callable[[], Iterable[LogFactors]]) -> Merged:
    """Estimate base parameters from all logs together.

    Parameters
    ----------
    logs : callable
        Returns an iterator over the logs; it is called twice, so that the factors of only one
        log are in memory at a time.

    Raises
    ------
    IdentificationError
        There are fewer than three logs, or they are of different robots or kinds of
        identification.
    """
    whole, samples, count, expressions = _merged(logs())
    if count < LEAST_LOGS:
        raise IdentificationError(f'there are {count} logs; valid: at least {LEAST_LOGS}')
    names = tuple(expressions)
    estimate = least_squares(whole, tuple(range(len(names))), samples)
    information = estimate.factor.T @ estimate.factor
    scale = np.linalg.norm(estimate.factor, axis=0)
    changes, errors = [], []
    for log in logs():
        own = _placed(log, names)[samples > 0] / estimate.sigma[samples > 0, None, None]
        own = own.reshape(-1, own.shape[2])
        w, tau = own[:, :-1], own[:, -1]
        residual = w @ estimate.values - tau
        changes.append(_solved(information - w.T @ w, w.T @ residual, scale))
        errors.append(safe_divide(np.linalg.norm(residual), np.linalg.norm(tau)))
    deviation = _jackknife(np.array(changes))
    half = scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1) * deviation
    return Merged(names, tuple(expressions.values()), estimate.values, deviation,
                  np.column_stack([estimate.values - half, estimate.values + half]),
                  np.array(errors))


def _merged(logs: Iterable[LogFactors]) -> tuple[Array, Array, int, dict[str, str]]:
    """Return merged factors, samples of each row, number of logs, and expressions by name."""
    expressions: dict[str, str] = {}
    whole, samples, count = np.zeros((0, 1, 1)), np.zeros(0), 0
    for log in logs:
        for name, expression in zip(log.names, log.expressions, strict=True):
            if expressions.setdefault(name, expression) != expression:
                raise IdentificationError(
                    f'the base parameter {name} is {expression} in one log and '
                    f'{expressions[name]} in another; valid: logs of one robot and one friction '
                    'model')
        if count and len(log.factors) != len(whole):
            raise IdentificationError(f'one log has {len(log.factors)} rows, another one '
                                      f'{len(whole)}; valid: logs of one robot')
        own = _placed(log, tuple(expressions))
        if count:
            wide = np.zeros((len(whole), whole.shape[1], own.shape[2]))
            wide[:, :, [*range(whole.shape[2] - 1), -1]] = whole
            whole, samples = merge([wide, own]), samples + log.count
        else:
            whole, samples = own, log.count
        count += 1
    return whole, samples, count, expressions


def _jackknife(changes: Array) -> Array:
    """Return standard deviations from the changes of the estimate without each log, (logs, b)."""
    count = len(changes)
    with np.errstate(invalid='ignore'):  # infinite changes
        spread = changes - changes.mean(axis=0)
    deviation = np.sqrt((count - 1) / count * (spread**2).sum(axis=0))
    deviation[np.isnan(deviation)] = np.inf
    return np.asarray(deviation)


def _placed(log: LogFactors, names: tuple[str, ...]) -> Array:
    """Return the factors of a log with a column for each name, shape (rows, k, b + 1)."""
    rows, height, _ = log.factors.shape
    found = np.zeros((rows, height, len(names) + 1))
    found[:, :, [*(names.index(name) for name in log.names), -1]] = log.factors
    return found


def _solved(matrix: Array, right: Array, scale: Array) -> Array:
    """Solve a symmetric system; unknowns that it does not determine are infinite."""
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    good = values > UNDETERMINED * values[-1]
    solution = vectors[:, good] @ (vectors[:, good].T @ (right / scale) / values[good]) / scale
    lost = (np.abs(vectors[:, ~good]) > NOTICED).any(axis=1)
    return np.where(lost, np.inf, solution)
