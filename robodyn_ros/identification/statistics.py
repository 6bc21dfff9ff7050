"""How well each parameter is known: residuals are correlated in time, and are taken as such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats
from numpy.typing import NDArray

from robodyn_ros.description import Array
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.observations import Observations

MAX_ORDER = 4  # of the autoregressive model of a residual; more follows what is chance
SWEEPS = 3  # of the noise and what the fit took out of it
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
        95 % confidence intervals; wider where a parameter was selected, see `selected`.
    durbin_watson : ndarray, shape (rows,)
        2 without correlation; nan where a row has no samples.
    condition : float
        Of the weighted observation matrix with columns of equal length.
    poorly_told_apart : tuple of str
        What the motion hardly distinguishes, in words.
    delay, delay_deviation : float
        s by which torques are older than positions, within one sample, and how well it is known.
    shift : ndarray, shape (b,)
        By which this delay has moved the estimate; intervals are about the one without it.
    """

    covariance: Array
    deviation: Array
    plain_deviation: Array
    interval: Array
    durbin_watson: Array
    condition: float
    poorly_told_apart: tuple[str, ...]
    delay: float
    delay_deviation: float
    shift: Array

    def selected(self, kept: Sequence[int]) -> Uncertainty:
        """Widen the intervals of selected parameters so that 95 % of those hold the truth.

        Chance selects: of many parameters that are zero, those that look otherwise. Benjamini and
        Yekutieli's intervals have ``1 - 5 % * selected / all`` each.
        """
        chosen = list(kept)
        share = (1 - CONFIDENCE) * len(chosen) / len(self.deviation)
        interval = self.interval.copy()
        centre = interval[chosen].mean(axis=1)
        half = scipy.stats.norm.ppf(1 - share / 2) * self.deviation[chosen]
        interval[chosen] = np.column_stack([centre - half, centre + half])
        return replace(self, interval=interval)


def uncertainty_of(observations: Observations, kept: tuple[int, ...], names: tuple[str, ...],
                   estimate: Estimate) -> Uncertainty:
    """Return the uncertainty of a weighted least-squares estimate.

    Each row's residual is modelled as autoregressive; its autocovariance G goes into
    ``B W'L G L W B`` with L the weights and B the plain covariance. What the fit has taken out of
    the residual, most where the motion is, is added to G. Torque and position of one sample may be
    up to a sample apart in time, which is one parameter more: ``tau(t) - delay dtau/dt``. It is
    normal before the data speaks, with the deviation of a uniform one.
    """
    b, plain = len(kept), estimate.plain_covariance
    rows = list(_rows(observations, kept, estimate))
    watson = np.full(len(estimate.sigma), np.nan)
    information, pull = np.zeros((b + 1, b + 1)), 0.0
    for row in rows:
        watson[row.place] = row.durbin_watson()
        information += row.x.T @ row.x
        pull += float(row.x[:, -1] @ row.residual) / row.sigma
    middle = np.zeros((b + 1, b + 1))
    for sweep in range(SWEEPS):  # what the fit took out is known as well as the noise is
        spread = plain @ middle[:b, :b] @ plain
        for row in rows:
            row.fit_noise(plain, spread, first=sweep == 0)
        middle = np.asarray(sum(row.x.T @ row.correlated / row.sigma**2 for row in rows))
    # the delay, by what of its column the other parameters cannot explain
    share = np.append(-plain @ information[:b, b], 1.0)
    strength = float(share @ information @ share)
    doubt = max(float(share @ middle @ share), 0.0) / max(strength, 1e-300) ** 2
    before = 1 / (3 * min(segment.rate for segment in observations.segments) ** 2)
    delay = pull / max(strength, 1e-300) * before / (before + doubt)
    delay_variance = before * doubt / (before + doubt)
    shift = share[:b] * delay
    covariance = plain @ middle[:b, :b] @ plain + np.outer(share[:b], share[:b]) * delay_variance
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    half = scipy.stats.norm.ppf(0.5 + CONFIDENCE / 2) * deviation
    centre = estimate.values + shift
    condition, words = _in_words(estimate.factor, names)
    return Uncertainty(covariance, deviation, np.sqrt(np.diag(plain)),
                       np.column_stack([centre - half, centre + half]), watson, condition, words,
                       delay, float(np.sqrt(delay_variance)), shift)


class _Row:
    """One joint's torque: what it is explained by, and what is left of it.

    Attributes
    ----------
    x : ndarray, shape (N, b + 1)
        Weighted observations with the delay's column; 0 where they do not count.
    residual : ndarray, shape (N,)
        N m or N; 0 where it does not count.
    correlated : ndarray, shape (N, b + 1)
        The noise's covariance matrix times ``x``.
    """

    def __init__(self, place: int, sigma: float,
                 pieces: list[tuple[Array, Array, NDArray[np.bool_]]]):
        self.place, self.sigma = place, sigma
        self.x = np.concatenate([x for x, _, _ in pieces])
        self.residual = np.concatenate([e for _, e, _ in pieces])
        self.correlated = np.zeros_like(self.x)
        self._used = np.concatenate([use for _, _, use in pieces])
        edges = np.cumsum([0, *(len(x) for x, _, _ in pieces)])
        self._pieces = [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        self._lags = int(min(MAX_ORDER, self._used.sum() // 20))

    def durbin_watson(self) -> float:
        """2 without correlation."""
        both = self._used[1:] & self._used[:-1]
        squares = float(self.residual @ self.residual)
        return float((np.diff(self.residual)[both] ** 2).sum()) / max(squares, 1e-300)

    def fit_noise(self, plain: Array, spread: Array, first: bool) -> None:
        """Find the noise's autocovariance; after the first time, with what the fit took out."""
        lost = np.zeros(self._lags + 1)
        if not first:
            x, y = self.x[:, :-1], self.correlated[:, :-1]
            away = x @ plain, self.sigma**2 * (x @ spread)
            for k in range(self._lags + 1):
                for piece in self._pieces:
                    a, b = piece.start, piece.stop
                    early, late = slice(a, max(b - k, a)), slice(a + k, b)
                    lost[k] += float(np.sum(away[0][early] * y[late])
                                     + np.sum(away[0][late] * y[early])
                                     - np.sum(away[1][early] * x[late]))
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


def _rows(observations: Observations, kept: tuple[int, ...], estimate: Estimate) -> Iterator[_Row]:
    blocks = list(observations.blocks())
    slopes = [np.gradient(block.measured, block.t, axis=0) if len(block.t) > 1
              else np.zeros_like(block.measured) for block in blocks]
    for row, sigma in enumerate(estimate.sigma):
        if estimate.count[row] < 10:
            continue
        pieces = []
        for block, slope in zip(blocks, slopes, strict=True):
            w, use = block.w[:, row][:, kept], block.used[:, row]
            pieces.append((np.column_stack([w, -slope[:, row]]) * use[:, None] / sigma,
                           (block.tau[:, row] - w @ estimate.values) * use, use))
        yield _Row(row, float(sigma), pieces)


def _convolve(x: Array, covariance: Array) -> Array:
    gamma = scipy.linalg.toeplitz(np.pad(covariance, (0, max(0, len(x) - len(covariance))))[
        :len(x)])
    return gamma @ x


def _autocovariance(measured: Array, count: int) -> Array:
    """Autocovariance of an autoregressive model of what was measured, until it has died out."""
    lags = len(measured) - 1
    if lags < 1 or measured[0] <= 0:
        return np.abs(measured[:1])
    best, chosen = np.inf, np.zeros(0)
    for order in range(lags + 1):
        model = scipy.linalg.solve_toeplitz(measured[:order], measured[1:order + 1]) \
            if order else np.zeros(0)
        variance = float(measured[0] - model @ measured[1:order + 1])
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
    return np.asarray(gamma[:significant[-1] + 1])


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
