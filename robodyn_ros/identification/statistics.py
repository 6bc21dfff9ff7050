"""Uncertainty of the parameters, with the correlation of the residuals in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.noise import Row, rows_of
from robodyn_ros.identification.observations import Block, Observations
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

SWEEPS = 4  # maximum number of iterations between the noise and the part that the fit absorbed
SETTLED = 0.02  # relative change of the variances below which they end
CONFIDENCE = 0.95
APART = 30.0  # condition number above which poorly determined combinations are named
NAMED = 0.3  # component of a singular vector above which a parameter is named
FREEDOMS = 3.0, 1e6  # limits of the degrees of freedom; below three, few samples tell nothing
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
    freedom : ndarray, shape (b,)
        Degrees of freedom of the corrected variances: how well the noise itself is known.
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
    freedom: Array
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
        half = scipy.stats.t.ppf(1 - risk / 2, self.freedom[chosen]) * self.deviation[chosen]
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
    the variance of a uniform distribution over one sample. Combinations of parameters that the
    data do not determine have very large variances. Intervals are those of Student's distribution,
    because the noise is known only from the residuals, see `Row.variances`.

    Parameters
    ----------
    blocks : sequence of Block
        The data of the fit.
    rate : float
        Lowest sampling rate of the logs, Hz.
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
    rows = list(rows_of(blocks, kept, estimate, band))
    durbin_watson = np.full(len(estimate.sigma), np.nan)
    for row in rows:
        durbin_watson[row.place] = row.durbin_watson()
    known = np.zeros((b + 1, b + 1))
    if further is not None:
        known[:b, :b] = further
    middle = correlated_information(rows, known, plain)
    delay, delay_variance, change = _delay(rows, known, plain, middle, 1 / (3 * rate**2))
    covariance = plain @ middle[:b, :b] @ plain + np.outer(change, change) * delay_variance \
        + estimate.undetermined_covariance
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    freedom = freedom_of(rows, plain)
    half = scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, freedom) * deviation
    centre = estimate.values + change * delay
    condition, words = _in_words(estimate.factor, names)
    return Uncertainty(covariance, deviation, np.sqrt(np.diag(plain)), freedom,
                       np.column_stack([centre - half, centre + half]), durbin_watson, condition,
                       words, delay, float(np.sqrt(delay_variance)), change * delay)


def correlated_information(rows: Sequence[Row], known: Array, plain: Array) -> Array:
    """Return ``W'L G L W``, shape (b + 1, b + 1), with the column of the delay as the last.

    Parameters
    ----------
    rows : sequence of Row
        The rows, whose noise is fitted.
    known : ndarray, shape (b + 1, b + 1)
        Information of further, independent equations.
    plain : ndarray, shape (b, b)
        Covariance of the estimate for independent residuals.
    """
    b, middle = len(plain), np.zeros_like(known)
    for sweep in range(SWEEPS):  # the absorbed part depends on the noise, which depends on it
        spread = plain @ middle[:b, :b] @ plain
        for row in rows:
            row.fit_noise(plain, spread, first=sweep == 0)
        before, middle = np.diag(middle), known.copy()
        for row in rows:
            middle[np.ix_(row.columns, row.columns)] += row.x.T @ row.correlated / row.sigma**2
        if np.allclose(np.diag(middle), before, rtol=SETTLED, atol=0.0):
            break
    return middle


def freedom_of(rows: Sequence[Row], plain: Array) -> Array:
    """Return the degrees of freedom of each parameter's variance (Satterthwaite 1946)."""
    total, scatter = np.zeros(len(plain)), np.zeros(len(plain))
    for row in rows:
        variance, relative = row.variances(plain)
        total += variance
        scatter += variance**2 * relative
    return np.clip(safe_divide(2 * total**2, scatter, at_zero=np.inf), *FREEDOMS)


def _delay(rows: Sequence[Row], known: Array, plain: Array, middle: Array, prior: float
           ) -> tuple[float, float, Array]:
    """Return the delay, its variance, and the change of the parameters by a delay of 1 s.

    The delay is determined by the part of its column that the other parameters cannot explain.
    ``prior`` is its variance before the data.
    """
    b = len(plain)
    information, projection = known.copy(), 0.0
    for row in rows:
        information[np.ix_(row.columns, row.columns)] += row.x.T @ row.x
        projection += float(row.x[:, -1] @ row.residual) / row.sigma
    direction = np.append(-plain @ information[:b, b], 1.0)
    strength = float(direction @ information @ direction)
    variance = safe_divide(max(float(direction @ middle @ direction), 0.0), strength**2)
    weight = prior / (prior + variance)
    return float(safe_divide(projection, strength)) * weight, variance * weight, direction[:b]


def _in_words(factor: Array, names: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
    """Return the condition number, and sentences about poorly determined combinations."""
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
            words.append(f'{names[named[0]]} is hardly excited (singular values 1 : {ratio:.3g})')
        else:
            words.append(f'{" and ".join(names[k] for k in named)} can hardly be distinguished '
                         f'by this motion (singular values 1 : {ratio:.3g})')
    return float(safe_divide(singular[0], singular[-1], at_zero=np.inf)), tuple(words)


def significant(values: Array, covariance: Array, *, limit: float = F_LIMIT,
                relative: float | None = None) -> tuple[int, ...]:
    """Return the parameters that remain after insignificant ones are dropped one by one.

    This is the backward elimination of Kolyubin 5.6.1.

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
