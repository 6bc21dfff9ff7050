"""Noise of the torques as an autoregressive process, from the residuals of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy
import scipy.fft
import scipy.linalg
from numpy.typing import NDArray

from robodyn_ros.identification.decimation import OUTPUT_RATE
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.observations import Block
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

MAX_ORDER = 4  # order of the autoregressive model of residuals filtered at 3 times the band
LAGS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  # lags at which the part that the fit absorbs is computed
LONGEST_ORDER = 32  # limit of the order for a wider filter, whose model spans the same time
SPAN = MAX_ORDER / (3 * OUTPUT_RATE)  # time that the model spans, times the band


class Row:
    """The observations and the residual of one joint's torque.

    Attributes
    ----------
    columns : ndarray of int, shape (f,)
        Indices of the columns that are not zero: of the b parameters, and of the delay, the last.
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
        excited = np.any([x[:, :-1].any(axis=0) for x, _, _ in pieces], axis=0)
        self.columns = np.append(np.flatnonzero(excited), last)
        self.x = np.concatenate([x[:, self.columns] for x, _, _ in pieces])
        self.residual = np.concatenate([e for _, e, _ in pieces])
        self.correlated = np.zeros_like(self.x)
        self._used = np.concatenate([use for _, _, use in pieces])
        edges = np.cumsum([0, *(len(x) for x, _, _ in pieces)])
        self._pieces = [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        self._lags = int(min(order, self._used.sum() // 20))
        self._model, self._innovation = np.zeros(0), 0.0  # the noise's autoregressive model

    def durbin_watson(self) -> float:
        """Return the Durbin-Watson statistic; 2 without correlation."""
        both = self._used[1:] & self._used[:-1]
        squares = float(self.residual @ self.residual)
        return safe_divide(float((np.diff(self.residual)[both] ** 2).sum()), squares,
                           at_zero=np.nan)

    def fit_noise(self, plain: Array, spread: Array, first: bool) -> None:
        """Estimate the autocovariance of the noise, and multiply it by the observations.

        Parameters
        ----------
        plain : ndarray, shape (b, b)
            Covariance of the estimate for independent residuals.
        spread : ndarray, shape (b, b)
            Covariance of the estimate for the noise of the previous call.
        first : bool
            Whether there is no previous call, so that the absorbed part is not known yet.
        """
        sums = np.zeros(self._lags + 1) if first else self._absorbed(plain, spread)
        for piece in self._pieces:
            e = self.residual[piece]
            for k in range(min(self._lags + 1, len(e))):
                sums[k] += float(e[:len(e) - k] @ e[k:])
        count = int(self._used.sum())
        self._model, self._innovation = _autoregressive(sums / count, count)
        gamma = _autocovariance(sums / count, self._model, count)
        kernel = np.concatenate([gamma[:0:-1], gamma])[:, None]
        for piece in self._pieces:
            x = self.x[piece]
            self.correlated[piece] = self._used[piece, None] * (
                scipy.signal.oaconvolve(x, kernel, mode='same', axes=0)
                if len(kernel) <= len(x) else _convolve(x, gamma))

    def variances(self, plain: Array) -> tuple[Array, Array]:
        """Return the variances of the parameters by this noise, and those of these variances.

        The variances are integrals of the noise's spectral density S. The coefficients a of its
        autoregressive model have the covariance ``s C^-1 / N``, with the innovations' variance s
        and the autocovariance C of the noise, and s has the variance ``2 s^2 / N`` (Brockwell and
        Davis 1991, sections 8.1 and 8.10); N is the number of samples less that of the parameters.

        Parameters
        ----------
        plain : ndarray, shape (b, b)
            Covariance of the estimate for independent residuals.

        Returns
        -------
        tuple of ndarray, shape (b,)
            Variances in a unit that all rows share, and variances of their relative errors.
        """
        x, own = self.x[:, :-1], self.columns[:-1]
        weights = x @ plain[own]
        leverage = float(np.vdot(weights[:, own], x))
        size = max(float(self._used.sum()) - leverage, 1.0)
        a, longest = self._model, max(p.stop - p.start for p in self._pieces)
        length = scipy.fft.next_fast_len(longest, real=True)
        power = sum(np.abs(scipy.fft.rfft(weights[piece], length, axis=0))**2
                    for piece in self._pieces)
        turns = np.exp(-2j * np.pi * np.outer(scipy.fft.rfftfreq(length), np.arange(
            1, len(a) + 1)))
        gain = 1 / (1 - turns @ a)
        density = np.abs(gain)**2
        slopes = 2 * density[:, None] * (turns * gain[:, None]).real  # of the density w.r.t. a
        total = density @ power
        relative = safe_divide(slopes.T @ power, total)  # (p, b)
        spread = _spread(a) / size
        scatter = np.einsum('ib,ij,jb->b', relative, spread, relative) + 2 / size
        return total * self._innovation / self.sigma**2, scatter

    def _absorbed(self, plain: Array, spread: Array) -> Array:
        """Return what the fit removed from the sums of lagged products of the residual.

        From noise e the fit leaves the residual ``e - H e``, with ``H = x B x'``. If G is the
        covariance of e, that of the residual is therefore smaller by ``H G + G H - H G H``.
        """
        x, correlated = self.x[:, :-1], self.correlated[:, :-1]
        own = np.ix_(self.columns[:-1], self.columns[:-1])
        once, twice = x @ plain[own], self.sigma**2 * (x @ spread[own])
        lags = np.unique([k for k in LAGS if k < self._lags] + [self._lags])
        lost = np.zeros(len(lags))
        for i, k in enumerate(lags):
            for piece in self._pieces:
                a, b = piece.start, piece.stop
                early, late = slice(a, max(b - k, a)), slice(a + k, b)
                lost[i] += float(np.vdot(once[early], correlated[late])
                                 + np.vdot(once[late], correlated[early])
                                 - np.vdot(twice[early], x[late]))
        return np.interp(np.arange(self._lags + 1), lags, lost)


def rows_of(blocks: Sequence[Block], kept: Sequence[int], estimate: Estimate,
            band: float) -> Iterator[Row]:
    """Return the rows with samples; ``band`` is the highest frequency of the motion, Hz."""
    order = noise_order(blocks, band)
    for row, sigma in enumerate(estimate.sigma):
        if estimate.count[row] < 10:
            continue
        pieces = []
        for block in blocks:
            w, use = block.w[:, row][:, list(kept)], block.used[:, row]
            residual = block.tau[:, row] - w @ estimate.values
            slope = torque_slope(block.t, block.measured[:, row] - residual)
            pieces.append((np.column_stack([w, -slope]) * use[:, None] / sigma, residual * use,
                           use))
        yield Row(row, float(sigma), pieces, order)


def noise_order(blocks: Sequence[Block], band: float) -> int:
    """Return the highest order of the noise's model; ``band`` as in `rows_of`."""
    step = min(float(block.t[1] - block.t[0]) for block in blocks)
    return int(np.clip(np.ceil(SPAN / band / step), MAX_ORDER, LONGEST_ORDER))


def torque_slope(t: Array, torque: Array) -> Array:
    """Return the derivative of predicted torques with respect to time, shape (M, ...).

    That of the measured torque would contain its noise, which without a parallel filter is
    larger: the delay would then be found too small, and too certain.
    """
    if len(t) < 2:
        return np.zeros_like(torque)
    return np.asarray(np.gradient(torque, t, axis=0))


def _convolve(x: Array, covariance: Array) -> Array:
    gamma = scipy.linalg.toeplitz(np.pad(covariance, (0, max(0, len(x) - len(covariance))))[
        :len(x)])
    return gamma @ x


def _autoregressive(measured: Array, count: int) -> tuple[Array, float]:
    """Return the autoregressive model whose order fits best.

    Returns
    -------
    tuple of ndarray, shape (p,), and float
        Its coefficients, and the variance of its innovations.
    """
    lags = len(measured) - 1
    if lags < 1 or measured[0] <= 0:
        return np.zeros(0), abs(float(measured[0]))
    best, chosen = np.inf, (np.zeros(0), float(measured[0]))
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
            best, chosen = criterion, (model, variance)
    return chosen


def _autocovariance(measured: Array, model: Array, count: int) -> Array:
    """Return the autocovariance of an autoregressive model until it has decayed."""
    if len(measured) < 2 or measured[0] <= 0:
        return np.abs(measured[:1])
    gamma = measured[:len(model) + 1]
    if len(model):
        filter_ = np.append(1.0, -model)
        start = scipy.signal.lfiltic([1.0], filter_, gamma[::-1])
        missing = np.zeros(max(count - len(gamma), 0))
        rest, _ = scipy.signal.lfilter([1.0], filter_, missing, zi=start)
        gamma = np.concatenate([gamma, rest])
    significant = np.flatnonzero(np.abs(gamma) > 1e-3 * gamma[0])
    return np.asarray(gamma[:significant[-1] + 1])


def _spread(model: Array) -> Array:
    """Return the covariance of an autoregressive model's coefficients times the samples.

    It is the inverse of the autocovariance over the innovations' variance, by the formula of
    Gohberg and Semencul: ``A A' - B B'`` with triangular Toeplitz matrices of the coefficients.
    """
    p = len(model)
    whole = np.append(1.0, -model)
    first = scipy.linalg.toeplitz(whole[:p], np.zeros(p))
    last = scipy.linalg.toeplitz(whole[:0:-1], np.zeros(p))
    return np.asarray(first @ first.T - last @ last.T)
