"""Finds how much older the torques of a log are than its positions.

Sensors and drives filter torques, and a logger may take them from another message than the
positions. Least squares explains a delay of some samples by friction that drives the joint, by
inertias and by further terms of friction, and predicts other motions with them. The delay is
therefore chosen before the friction, by the raw torque of left-out parts of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robodyn_ros.errors import LogError
from robodyn_ros.identification.choice_errors import Coarse, Folds
from robodyn_ros.identification.gram_matrices import residual_deviations, solve_scaled
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

FIRST = (0.002, 0.01)  # s, delays that are tried first, in both directions
DELAYS = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1)  # s, the others
CERTAIN = 3.0  # smallest gain over its standard error
MOST_AROUND = 13  # delays that are tried between the neighbours of the best one


class Delay(NamedTuple):
    """A delay in s, and a remark on it."""

    seconds: float
    words: str


def torque_delay(coarse: Coarse, columns: Sequence[int], cutoff: float) -> Delay | None:
    """Return the delay of the torques by whole samples, or None if it is not certainly better.

    The parameters are fitted for each delay without one part of the log after the other, and the
    raw torque of this part is predicted.

    Parameters
    ----------
    coarse : Coarse
        The equations.
    columns : sequence of int
        Columns of W that are fitted.
    cutoff : float
        Cutoff frequency of the parallel filter, Hz.
    """
    rate = min(segment.rate for segment in coarse.observations.segments)

    def errors_of(samples: Sequence[int]) -> Array:
        """Return the squared error of each fold without a delay and with each one."""
        delays = np.array([0, *samples]) / rate
        means = [np.concatenate([w[:, :, list(columns)], _late(coarse, k, delays)], axis=2)
                 for k, w in enumerate(coarse.means)]
        folds = coarse.folds(means, cutoff, coarse.raw(means, slow=False))
        return safe_divide(_errors(folds, len(columns)), folds.size / len(folds.raw),
                           at_zero=np.inf)

    try:
        if errors_of(_both_ways(FIRST, rate)).mean(axis=0).argmin() == 0:
            return None
        samples = _both_ways(DELAYS, rate)
        errors = errors_of(samples)
        best = int(errors.mean(axis=0).argmin())
        gain = errors[:, 0] - errors[:, best]
        if not gain.mean() > CERTAIN * gain.std(ddof=1) / np.sqrt(len(gain)):
            return None
        samples = _around([0, *samples][best], [0, *samples])
        errors = errors_of(samples).mean(axis=0)
    except LogError:  # too short to leave parts of it out
        return None
    best = int(errors[1:].argmin())
    seconds = samples[best] / rate
    older = 'older' if seconds > 0 else 'younger'
    return Delay(seconds, f'the torques are {1e3 * abs(seconds):.3g} ms {older} than the '
                 'positions and are compared with those of their time: the error of the raw '
                 f'torque on data left out of the fit is {np.sqrt(errors[1 + best]):.2%} instead '
                 f'of {np.sqrt(errors[0]):.2%}')


def _both_ways(delays: Sequence[float], rate: float) -> list[int]:
    """Return delays in samples, at least one, in both directions."""
    return sorted({sign * max(1, round(delay * rate)) for delay in delays for sign in (-1, 1)})


def _around(best: int, tried: Sequence[int]) -> list[int]:
    """Return the numbers of samples up to the neighbours of the best one, or some of them."""
    order = sorted(tried)
    place = order.index(best)
    low, high = order[max(place - 1, 0)], order[min(place + 1, len(order) - 1)]
    return sorted({best, *np.linspace(low, high, MOST_AROUND).round().astype(int).tolist()} - {0})


def _late(coarse: Coarse, k: int, delays: Array) -> Array:
    """Return means of the torque to explain in segment k for each delay, (B, rows, delays)."""
    segment, torque = coarse.observations.segments[k], coarse.observations.torque(k)
    rest, tau, places = torque - segment.tau, segment.tau, np.arange(len(segment.t))
    if coarse.strides[k] % 2 == 0:  # the middle of such a block is between two samples
        tau = 0.5 * (tau + tau[np.maximum(places - 1, 0)])
    return np.stack([coarse.short_means(k, rest + tau[np.clip(
        places + round(delay * segment.rate), 0, len(places) - 1)]) for delay in delays], axis=2)


def _errors(folds: Folds, count: int) -> Array:
    """Return the squared error of each fold, by delay, shape (F, delays).

    Parameters
    ----------
    folds : Folds
        Its first columns are fitted; the others are the torque for each delay, the first of which
        is zero.
    count : int
        Number of columns that are fitted.
    """
    places = [*range(count), count]
    whole = folds.fitted.sum(axis=0)
    sigma = residual_deviations(whole[:, places][:, :, places], folds.counts.sum(axis=0))
    weighted = np.tensordot(folds.fitted, 1 / sigma**2, (1, 0))
    total, w, tau = weighted.sum(axis=0), slice(0, count), slice(count, -1)
    errors = []
    for fold, raw in zip(weighted, folds.raw, strict=True):
        rest = total - fold
        theta = solve_scaled(rest[w, w], rest[w, tau])
        errors.append(np.diag(raw[tau, tau]) - 2 * (theta * raw[w, tau]).sum(axis=0)
                      + (theta * (raw[w, w] @ theta)).sum(axis=0))
    return np.array(errors)
