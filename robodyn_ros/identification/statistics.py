"""Uncertainty of the parameters, with the correlation of the residuals in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats
from numpy.typing import NDArray

from robodyn_ros.identification.decimation import OUTPUT_RATE
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.observations import Block, Observations
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

MAX_ORDER = 4  # order of the autoregressive model of residuals filtered at 3 times the band
LAGS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  # lags between which the absorbed part is interpolated
LONGEST_ORDER = 32  # limit of the order for a wider filter, whose model spans the same time
SPAN = MAX_ORDER / (3 * OUTPUT_RATE)  # time that the model spans, times the band
SWEEPS = 3  # iterations between the noise and the part of it that the fit absorbed
CONFIDENCE = 0.95
APART = 30.0  # condition number above which poorly determined combinations are named
NAMED = 0.3  # component of a singular vector above which a parameter is named
F_LIMIT = 3.842  # 95 % quantile of chi squared with one degree of freedom


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Uncertainty of an estimate.

    Attributes
    ----------
    covariance : ndarray, shape (b, b)
        Covariance, corrected for the correlation of the residuals in time.
    deviation, plain_deviation : ndarray, shape (b,)
        Standard deviations, corrected and for independent residuals.
    interval : ndarray, shape (b, 2)
        95 % confidence intervals, wider for parameters that were selected, see `selected`.
    durbin_watson : ndarray, shape (rows,)
        Durbin-Watson statistics: 2 without correlation in time, nan for rows without samples.
    condition : float
        Condition number of the weighted observation matrix with columns of equal norm.
    poorly_distinguished : tuple of str
        Sentences that name the parameters which the motion hardly distinguishes.
    delay, delay_deviation : float
        Time by which torques are older than positions, at most one sample, and its standard
        deviation, s.
    shift : ndarray, shape (b,)
        Change of the estimate by this delay; the intervals are centred on the changed estimate.
    """

    covariance: Array
    deviation: Array
    plain_deviation: Array
    interval: Array
    durbin_watson: Array
    condition: float
    poorly_distinguished: tuple[str, ...]
    delay: float
    delay_deviation: float
    shift: Array

    def selected(self, kept: Sequence[int]) -> Uncertainty:
        """Widen the intervals of selected parameters so that 95 % of them contain the true value.

        A selection favours parameters whose error makes them look large. The intervals of
        Benjamini and Yekutieli (2005, doi 10.1198/016214504000001907) therefore have a confidence
        of ``1 - 5 % * selected / all`` each.

        Parameters
        ----------
        kept : sequence of int
            Indices of the selected parameters.
        """
        chosen = list(kept)
        risk = (1 - CONFIDENCE) * len(chosen) / len(self.deviation)
        interval = self.interval.copy()
        centre = interval[chosen].mean(axis=1)
        half = scipy.stats.norm.ppf(1 - risk / 2) * self.deviation[chosen]
        interval[chosen] = np.column_stack([centre - half, centre + half])
        return replace(self, interval=interval)


def uncertainty_of(observations: Observations, kept: tuple[int, ...], names: tuple[str, ...],
                   estimate: Estimate, band: float) -> Uncertainty:
    """Return `uncertainty_of_blocks` of observations."""
    rate = min(segment.rate for segment in observations.segments)
    return uncertainty_of_blocks(list(observations.blocks()), rate, kept, names, estimate, band)


def uncertainty_of_blocks(blocks: Sequence[Block], rate: float, kept: Sequence[int],
                          names: tuple[str, ...], estimate: Estimate, band: float, *,
                          further: Array | None = None) -> Uncertainty:
    """Return the uncertainty of a weighted least-squares estimate.

    The residual of each row is modelled as autoregressive. With its autocovariance G, the
    covariance of the estimate is ``B W'L G L W B``, where L are the weights and B is the plain
    covariance. The fit absorbs part of the noise, mostly at the frequencies of the motion; this
    part is added to G. Torque and position of one sample may be up to one sample apart in time.
    This delay is an additional parameter, ``tau(t) - delay dtau/dt``, with a normal prior that has
    the variance of a uniform distribution over one sample.

    Parameters
    ----------
    blocks : sequence of Block
        The data of the fit.
    rate : float
        Samples of the log a second, Hz.
    kept : sequence of int
        The b columns of the base parameters.
    names : tuple of str
        Names of the base parameters.
    estimate : Estimate
        Their estimate.
    band : float
        Highest frequency of the motion, Hz; it determines the time that the noise model spans.
    further : ndarray, shape (b, b), optional
        Information of further, independent equations that the estimate has used.
    """
    b, plain = len(kept), estimate.plain_covariance
    rows = list(_rows(blocks, kept, estimate, SPAN / band))
    watson = np.full(len(estimate.sigma), np.nan)
    known = np.zeros((b + 1, b + 1))
    if further is not None:
        known[:b, :b] = further
    information, pull = known.copy(), 0.0
    for row in rows:
        watson[row.place] = row.durbin_watson()
        information[np.ix_(row.felt, row.felt)] += row.x.T @ row.x
        pull += float(row.x[:, -1] @ row.residual) / row.sigma
    middle = np.zeros((b + 1, b + 1))
    for sweep in range(SWEEPS):  # the absorbed part depends on the noise, which depends on it
        spread = plain @ middle[:b, :b] @ plain
        for row in rows:
            row.fit_noise(plain, spread, first=sweep == 0)
        middle = known.copy()
        for row in rows:
            middle[np.ix_(row.felt, row.felt)] += row.x.T @ row.correlated / row.sigma**2
    # the delay is determined by the part of its column that the other parameters cannot explain
    direction = np.append(-plain @ information[:b, b], 1.0)
    strength = float(direction @ information @ direction)
    variance_of_data = safe_divide(max(float(direction @ middle @ direction), 0.0), strength**2)
    before = 1 / (3 * rate**2)
    delay = float(safe_divide(pull, strength)) * before / (before + variance_of_data)
    delay_variance = before * variance_of_data / (before + variance_of_data)
    shift = direction[:b] * delay
    covariance = plain @ middle[:b, :b] @ plain \
        + np.outer(direction[:b], direction[:b]) * delay_variance
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    half = scipy.stats.norm.ppf(0.5 + CONFIDENCE / 2) * deviation
    centre = estimate.values + shift
    condition, words = _in_words(estimate.factor, names)
    return Uncertainty(covariance, deviation, np.sqrt(np.diag(plain)),
                       np.column_stack([centre - half, centre + half]), watson, condition, words,
                       delay, float(np.sqrt(delay_variance)), shift)


class _Row:
    """The observations and the residual of one joint's torque.

    Attributes
    ----------
    felt : ndarray of int, shape (f,)
        Which of the b columns, and of the delay after them, are not zero.
    x : ndarray, shape (N, f)
        Weighted observations, and the column of the delay; zero for samples that are not used.
    residual : ndarray, shape (N,)
        Residual, N m or N; zero for samples that are not used.
    correlated : ndarray, shape (N, f)
        The covariance matrix of the noise times ``x``.
    """

    def __init__(self, place: int, sigma: float,
                 pieces: list[tuple[Array, Array, NDArray[np.bool_]]], order: int):
        self.place, self.sigma = place, sigma
        last = pieces[0][0].shape[1] - 1
        self.felt = np.append(np.flatnonzero(np.any([x[:, :-1].any(axis=0) for x, _, _ in pieces],
                                                    axis=0)), last)
        self.x = np.concatenate([x[:, self.felt] for x, _, _ in pieces])
        self.residual = np.concatenate([e for _, e, _ in pieces])
        self.correlated = np.zeros_like(self.x)
        self._used = np.concatenate([use for _, _, use in pieces])
        edges = np.cumsum([0, *(len(x) for x, _, _ in pieces)])
        self._pieces = [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        self._lags = int(min(order, self._used.sum() // 20))

    def durbin_watson(self) -> float:
        """Return the Durbin-Watson statistic; 2 without correlation."""
        both = self._used[1:] & self._used[:-1]
        squares = float(self.residual @ self.residual)
        return safe_divide(float((np.diff(self.residual)[both] ** 2).sum()), squares,
                           at_zero=np.nan)

    def fit_noise(self, plain: Array, spread: Array, first: bool) -> None:
        """Estimate the autocovariance of the noise, except the first time with absorbed part."""
        lost = np.zeros(self._lags + 1)
        if not first:
            x, y = self.x[:, :-1], self.correlated[:, :-1]
            own = np.ix_(self.felt[:-1], self.felt[:-1])
            away = x @ plain[own], self.sigma**2 * (x @ spread[own])
            some = np.unique([k for k in LAGS if k < self._lags] + [self._lags])
            for k in some:
                for piece in self._pieces:
                    a, b = piece.start, piece.stop
                    early, late = slice(a, max(b - k, a)), slice(a + k, b)
                    lost[k] += float(np.vdot(away[0][early], y[late])
                                     + np.vdot(away[0][late], y[early])
                                     - np.vdot(away[1][early], x[late]))
            lost = np.interp(np.arange(self._lags + 1), some, lost[some])
        sums, pairs = np.zeros(self._lags + 1), np.zeros(self._lags + 1)
        for piece in self._pieces:
            e, use = self.residual[piece], self._used[piece]
            for k in range(min(self._lags + 1, len(e))):
                sums[k] += float(e[:len(e) - k] @ e[k:])
                pairs[k] += int((use[:len(e) - k] & use[k:]).sum())
        gamma = _autocovariance((sums + lost) / pairs[0], int(pairs[0]))
        kernel = np.concatenate([gamma[:0:-1], gamma])[:, None]
        for piece in self._pieces:
            x = self.x[piece]
            self.correlated[piece] = self._used[piece, None] * (
                scipy.signal.oaconvolve(x, kernel, mode='same', axes=0)
                if len(kernel) <= len(x) else _convolve(x, gamma))


def _rows(blocks: Sequence[Block], kept: Sequence[int], estimate: Estimate,
          span: float) -> Iterator[_Row]:
    step = min(float(block.t[1] - block.t[0]) for block in blocks)
    order = int(np.clip(np.ceil(span / step), MAX_ORDER, LONGEST_ORDER))
    slopes = [torque_slope(block) for block in blocks]
    for row, sigma in enumerate(estimate.sigma):
        if estimate.count[row] < 10:
            continue
        pieces = []
        for block, slope in zip(blocks, slopes, strict=True):
            w, use = block.w[:, row][:, list(kept)], block.used[:, row]
            pieces.append((np.column_stack([w, -slope[:, row]]) * use[:, None] / sigma,
                           (block.tau[:, row] - w @ estimate.values) * use, use))
        yield _Row(row, float(sigma), pieces, order)


def torque_slope(block: Block) -> Array:
    """Return the derivative of the measured torques with respect to time, shape (M, rows)."""
    if len(block.t) < 2:
        return np.zeros_like(block.measured)
    return np.asarray(np.gradient(block.measured, block.t, axis=0))


def long_run_factor(residual: Array) -> float:
    """Return the factor by which correlation in time raises the variance of a mean.

    Parameters
    ----------
    residual : ndarray, shape (N,)
        Residuals in temporal order.
    """
    lags = int(min(MAX_ORDER, len(residual) // 20))
    sums = np.array([residual[:len(residual) - k] @ residual[k:] for k in range(lags + 1)])
    gamma = _autocovariance(sums / max(len(residual), 1), len(residual))
    return max(1.0, safe_divide(float(gamma[0] + 2 * gamma[1:].sum()), float(gamma[0]),
                                at_zero=1.0))


def _convolve(x: Array, covariance: Array) -> Array:
    gamma = scipy.linalg.toeplitz(np.pad(covariance, (0, max(0, len(x) - len(covariance))))[
        :len(x)])
    return gamma @ x


def _autocovariance(measured: Array, count: int) -> Array:
    """Return the autocovariance of an autoregressive model until it has decayed."""
    lags = len(measured) - 1
    if lags < 1 or measured[0] <= 0:
        return np.abs(measured[:1])
    best, chosen = np.inf, np.zeros(0)
    model, variance = np.zeros(0), float(measured[0])
    for order in range(lags + 1):  # Levinson-Durbin recursion, with Akaike's criterion
        if order:
            last = (measured[order] - model @ measured[order - 1:0:-1]) / variance
            model = np.append(model - last * model[::-1], last)
            variance *= 1 - last**2
        if variance <= 0:
            break
        criterion = count * np.log(variance) + 2 * order
        if criterion < best:
            best, chosen = criterion, model
    gamma = measured[:len(chosen) + 1]
    if len(chosen):
        filter_ = np.append(1.0, -chosen)
        start = scipy.signal.lfiltic([1.0], filter_, gamma[::-1])
        missing = np.zeros(max(count - len(gamma), 0))
        rest, _ = scipy.signal.lfilter([1.0], filter_, missing, zi=start)
        gamma = np.concatenate([gamma, rest])
    significant = np.flatnonzero(np.abs(gamma) > 1e-3 * gamma[0])
    return np.asarray(gamma[:significant[-1] + 1])


def _in_words(factor: Array, names: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
    scaled = safe_divide(factor, np.linalg.norm(factor, axis=0))
    _, singular, vectors = np.linalg.svd(scaled)
    words: list[str] = []
    for value, vector in zip(singular[::-1], vectors[::-1], strict=True):
        if singular[0] < APART * value or len(words) >= 10:
            break
        order = np.argsort(-np.abs(vector))
        named = [k for k in order[:6] if abs(vector[k]) > NAMED] or [int(order[0])]
        ratio = safe_divide(singular[0], value, at_zero=np.inf)
        if len(named) == 1:
            words.append(f'{names[named[0]]} is hardly excited (1 : {ratio:.3g})')
        else:
            words.append(f'{" and ".join(names[k] for k in named)} can hardly be distinguished '
                         f'by this motion (1 : {ratio:.3g})')
    return float(safe_divide(singular[0], singular[-1], at_zero=np.inf)), tuple(words)


def significant(values: Array, covariance: Array, *, limit: float = F_LIMIT,
                relative: float | None = None) -> tuple[int, ...]:
    """Return the parameters that remain after insignificant ones are dropped one by one (5.6.1).

    Parameters
    ----------
    values, covariance : ndarray, shape (b,), (b, b)
        An estimate and its corrected covariance.
    limit : float
        A parameter is dropped if its F value (its square over its variance) is below this limit.
    relative : float, optional
        If given, a parameter is instead dropped if its standard deviation is above this fraction
        of its value.
    """
    bound = limit if relative is None else 1 / relative**2
    kept = list(range(len(values)))
    values, covariance = values.copy(), covariance.copy()
    while len(kept) > 1:
        variance = np.diag(covariance)
        f = safe_divide(values**2, variance, at_zero=np.inf)
        worst = int(np.argmin(f))
        if f[worst] >= bound:
            break
        gain = covariance[:, worst] / variance[worst]  # conditions the others on zero for this one
        values = np.delete(values - gain * values[worst], worst)
        covariance = covariance - np.outer(gain, covariance[worst])
        covariance = np.delete(np.delete(covariance, worst, 0), worst, 1)
        del kept[worst]
    return tuple(kept)
