"""How well each parameter is known: residuals are correlated in time, and are taken as such."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats

from robodyn_ros.description import Array
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.observations import Block, Observations

MAX_ORDER = 12  # of the autoregressive model of a residual
CONFIDENCE = 0.95
APART = 30.0  # condition above which the worst combinations are named
NAMED = 0.3  # share of a singular vector from which a parameter is named


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Uncertainty of an estimate.

    Attributes
    ----------
    covariance : ndarray, shape (b, b)
        Corrected for the residuals' correlation in time.
    deviation, plain_deviation : ndarray, shape (b,)
        Standard deviations: corrected, and what independent residuals would give.
    interval : ndarray, shape (b, 2)
        95 % confidence intervals.
    durbin_watson : ndarray, shape (rows,)
        2 without correlation; nan where a row has no samples.
    condition : float
        Of the weighted observation matrix with columns of equal length.
    poorly_told_apart : tuple of str
        What the motion hardly distinguishes, in words.
    """

    covariance: Array
    deviation: Array
    plain_deviation: Array
    interval: Array
    durbin_watson: Array
    condition: float
    poorly_told_apart: tuple[str, ...]


def uncertainty_of(observations: Observations, kept: tuple[int, ...], names: tuple[str, ...],
                   estimate: Estimate) -> Uncertainty:
    """Return the uncertainty of a weighted least-squares estimate.

    Each row's residual is modelled as autoregressive; its autocovariance G goes into
    ``B W'L G L W B`` with L the weights and B the plain covariance. G is scaled up by what the fit
    has taken out of the residual. Torque and position of one sample may be up to a sample apart in
    time: what such a delay would change is added.
    """
    rows, b = len(estimate.sigma), len(kept)
    plain = estimate.plain_covariance
    middle, watson = np.zeros((b, b)), np.full(rows, np.nan)
    blocks = list(observations.blocks())
    for row in range(rows):
        if estimate.count[row] < 10:
            continue
        parts = []
        for block in blocks:
            w = block.w[:, row][:, kept]
            parts.append((w, (block.tau[:, row] - w @ estimate.values) * block.used[:, row],
                          block.used[:, row]))
        used = np.concatenate([u for _, _, u in parts])
        residual = np.concatenate([e for _, e, _ in parts])
        squares = float(residual @ residual)
        both = used[1:] & used[:-1]
        watson[row] = float((np.diff(residual)[both] ** 2).sum()) / max(squares, 1e-300)
        count = estimate.count[row]
        correlation = _autocorrelation([e for _, e, _ in parts], count)
        kernel = np.concatenate([correlation[:0:-1], correlation])[:, None]
        own = np.zeros((b, b))
        for w, _, use in parts:
            x = w * use[:, None] / estimate.sigma[row]
            own += x.T @ scipy.signal.oaconvolve(x, kernel, mode='same', axes=0) \
                if len(kernel) <= len(x) else x.T @ _convolve(x, correlation)
        # the fit has taken part of the noise out of the residual, more of it where it is slow
        taken = float(np.sum(plain * own))
        variance = squares / max(count - taken, 0.2 * count)
        middle += own * variance / estimate.sigma[row] ** 2
    delay = plain @ _delay_effect(observations, blocks, kept, estimate)
    covariance = plain @ middle @ plain + np.outer(delay, delay)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    half = scipy.stats.norm.ppf(0.5 + CONFIDENCE / 2) * deviation
    condition, words = _in_words(estimate.factor, names)
    return Uncertainty(covariance, deviation, np.sqrt(np.diag(plain)),
                       np.column_stack([estimate.values - half, estimate.values + half]),
                       watson, condition, words)


def _delay_effect(observations: Observations, blocks: list[Block], kept: tuple[int, ...],
                  estimate: Estimate) -> Array:
    """``W'L dtau/dt`` times the standard deviation of a delay that is uniform within a sample."""
    effect = np.zeros(len(kept))
    for block, segment in zip(blocks, observations.segments, strict=True):
        if len(block.t) < 3:
            continue
        slope = np.gradient(block.measured, block.t, axis=0) / (np.sqrt(3) * segment.rate)
        for row in range(block.tau.shape[1]):
            if estimate.count[row] >= 10:
                weight = block.used[:, row] / estimate.sigma[row] ** 2
                effect += block.w[:, row][:, kept].T @ (slope[:, row] * weight)
    return effect


def _convolve(x: Array, covariance: Array) -> Array:
    gamma = scipy.linalg.toeplitz(np.pad(covariance, (0, max(0, len(x) - len(covariance))))[
        :len(x)])
    return gamma @ x


def _autocorrelation(residuals: list[Array], count: float) -> Array:
    """Autocorrelation of an autoregressive model fitted to a residual, until it has died out."""
    lags = int(min(MAX_ORDER, count // 20))
    measured = np.array([sum(float(e[:len(e) - k] @ e[k:]) for e in residuals if len(e) > k)
                         for k in range(lags + 1)]) / count
    if lags < 1 or measured[0] <= 0:
        return np.ones(1)
    best, chosen, variance = np.inf, np.zeros(0), measured[0]
    for order in range(lags + 1):
        if order:
            model = scipy.linalg.solve_toeplitz(measured[:order], measured[1:order + 1])
            variance = float(measured[0] - model @ measured[1:order + 1])
        else:
            model = np.zeros(0)
        if variance <= 0:
            break
        criterion = count * np.log(variance) + 2 * order
        if criterion < best:
            best, chosen = criterion, model
    longest = int(min(max(50, 10 * lags), count // 4))
    extended = list(measured[:len(chosen) + 1])
    while len(extended) <= longest:
        extended.append(float(chosen @ extended[:-len(chosen) - 1:-1]) if len(chosen) else 0.0)
    gamma = np.array(extended)
    significant = np.flatnonzero(np.abs(gamma) > 1e-3 * gamma[0])
    return np.asarray(gamma[:significant[-1] + 1] / gamma[0])


def _in_words(factor: Array, names: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
    scaled = factor / np.maximum(np.linalg.norm(factor, axis=0), 1e-300)
    _, singular, vectors = np.linalg.svd(scaled)
    words: list[str] = []
    for value, vector in zip(singular[::-1], vectors[::-1], strict=True):
        if singular[0] < APART * value or len(words) >= 10:
            break
        order = np.argsort(-np.abs(vector))
        named = [k for k in order[:6] if abs(vector[k]) > NAMED] or [int(order[0])]
        ratio = singular[0] / max(value, 1e-300)
        if len(named) == 1:
            words.append(f'{names[named[0]]} is hardly excited (1 : {ratio:.3g})')
        else:
            words.append(f'{" and ".join(names[k] for k in named)} can hardly be told apart by '
                         f'this motion (1 : {ratio:.3g})')
    return float(singular[0] / max(singular[-1], 1e-300)), tuple(words)


def significant(values: Array, covariance: Array, *, limit: float = 3.842,
                relative: float | None = None) -> tuple[int, ...]:
    """Parameters that stay when insignificant ones are set to zero one by one (5.6.1).

    Parameters
    ----------
    values, covariance : ndarray, shape (b,), (b, b)
        An estimate and its corrected covariance.
    limit : float
        A parameter goes while its F value (squared over its variance) is below; 3.842 is 5 %.
    relative : float, optional
        Instead: while its standard deviation is above this share of its value.
    """
    bound = limit if relative is None else 1 / relative**2
    kept = list(range(len(values)))
    values, covariance = values.copy(), covariance.copy()
    while len(kept) > 1:
        variance = np.maximum(np.diag(covariance), 1e-300)
        f = values**2 / variance
        worst = int(np.argmin(f))
        if f[worst] >= bound:
            break
        gain = covariance[:, worst] / variance[worst]  # condition the others on zero
        values = np.delete(values - gain * values[worst], worst)
        covariance = covariance - np.outer(gain, covariance[worst])
        covariance = np.delete(np.delete(covariance, worst, 0), worst, 1)
        del kept[worst]
    return tuple(kept)
