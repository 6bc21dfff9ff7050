"""Cross-validation errors of the raw torque, by which filters and friction models are chosen.

Candidates are compared on normal equations at a reduced rate. Means over blocks replace the
parallel filter; a block that is twice as long has half the cutoff. All errors are computed on the
shortest blocks, which contain the highest frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import LogError
from robodyn_ros.identification.decimation import block_means
from robodyn_ros.identification.gram_matrices import (
    RIDGE,
    estimates_without,
    grams_of,
    picked,
    residual_deviations,
    solve_scaled,
    weighted_solution,
)
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

FOLDS = 20  # contiguous parts of the data; any 19 of them excite what all of them excite
QUARTERS = 4  # parts of the data by the values of a term, with equal numbers of blocks
LEAST_BLOCKS = 4  # smallest number of blocks in a fold
BLOCK = 0.6  # length of a block times the cutoff; a mean over it halves amplitudes at the cutoff
PER_BLOCK = 4  # largest number of samples of W in the shortest block
MOST_SAMPLES = 8000  # samples of W; of longer logs, the middle part of every piece is used


class Raw(NamedTuple):
    """Gram matrices of the shortest blocks, (F, p + 1, p + 1), and the size of the torque."""

    grams: Array
    size: float


@dataclass(eq=False)
class Folds:
    """Gram matrices of the folds.

    Attributes
    ----------
    fitted : ndarray, shape (F, rows, p + 1, p + 1)
        Gram matrices of ``[W, tau]``, averaged over blocks.
    counts : ndarray, shape (F, rows)
        Numbers of blocks.
    raw : ndarray, shape (F, p + 1, p + 1)
        Gram matrices of the shortest blocks, summed over all rows.
    size : float
        Sum of the squares of the measured torque, known torques included.
    logs : ndarray of int, shape (F,)
        Index of the log to which each fold belongs.
    """

    fitted: Array
    counts: Array
    raw: Array
    size: float
    logs: NDArray[np.int_]

    def whole_logs(self) -> Folds:
        """Return other folds, one for each log."""
        member = (np.unique(self.logs)[:, None] == self.logs).astype(float)
        fitted, counts, raw = (np.tensordot(member, x, 1) for x in (
            self.fitted, self.counts, self.raw))
        return Folds(fitted, counts, raw, self.size, np.arange(len(member)))

    def errors(self, columns: list[int]) -> Array:
        """Return the squared relative error of the raw torque of each fold, shape (F,).

        Parameters
        ----------
        columns : list of int
            Columns of W that are fitted on the other folds.
        """
        raw = picked(self.raw, columns)
        theta = np.column_stack([estimates_without(picked(self.fitted, columns), self.counts),
                                 np.full(len(raw), -1.0)])
        errors = np.einsum('fi,fij,fj->f', theta, raw, theta)
        return np.asarray(safe_divide(errors, self.size / len(raw), at_zero=np.inf))

    def additions(self, columns: list[int], candidates: list[int],
                  positive: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """Return the errors of some columns, and those with each candidate added to them.

        Parameters
        ----------
        columns : list of int
            Columns of W that are fitted on the other folds.
        candidates : list of int
            Columns of which each is added alone.
        positive : ndarray of bool, shape (C,), optional
            Candidates whose parameter cannot be negative.

        Returns
        -------
        tuple of ndarray
            Squared relative errors of the raw torque of each fold: shapes (F,) and (F, C).
        """
        b, places = len(columns), [*columns, *candidates]
        fitted = picked(self.fitted, places)
        inner = [*range(b), -1]
        sigma = residual_deviations(fitted.sum(axis=0)[:, inner][:, :, inner],
                                    self.counts.sum(axis=0))
        weighted = np.tensordot(fitted, 1 / sigma**2, (1, 0))
        whole = weighted.sum(axis=0)
        raw = picked(self.raw, places)
        before, after = np.zeros(len(raw)), np.zeros((len(raw), len(candidates)))
        for out in range(len(raw)):
            gram = whole - weighted[out]
            solved = solve_scaled(gram[:b, :b], gram[:b, b:])  # of the candidates, then theta
            rest = gram[b:, b:] - gram[b:, :b] @ solved
            gain = safe_divide(rest[:-1, -1], np.diag(rest)[:-1])
            gain = np.where(np.diag(rest)[:-1] > RIDGE * np.diag(gram)[b:-1], gain, 0.0)
            if positive is not None:
                gain = np.where(positive, np.maximum(gain, 0.0), gain)
            theta = np.concatenate([solved[:, -1], np.zeros(len(candidates)), [-1.0]])
            change = np.vstack([-solved[:, :-1], np.eye(len(candidates)),
                                np.zeros((1, len(candidates)))])
            effect = raw[out] @ change
            before[out] = theta @ raw[out] @ theta
            after[out] = before[out] + 2 * gain * (theta @ effect) \
                + gain**2 * np.einsum('ij,ij->j', change, effect)
        size = self.size / len(raw)
        return (np.asarray(safe_divide(before, size, at_zero=np.inf)),
                np.asarray(safe_divide(after, size, at_zero=np.inf)))

    def estimate(self, columns: list[int]) -> Array:
        """Return weighted least squares of some columns on all folds, shape (columns,)."""
        whole = picked(self.fitted.sum(axis=0), columns)
        sigma = residual_deviations(whole, self.counts.sum(axis=0))
        return np.asarray(weighted_solution(whole, sigma)[:-1])


class Coarse:
    """The equations of some segments at a reduced rate.

    Parameters
    ----------
    observations : Observations
        The segments with their torques and their linear model.
    highest : float
        Highest cutoff frequency of a parallel filter that is to be compared, Hz; 0: none.

    Attributes
    ----------
    matrices : list of ndarray, shape (M, rows, p)
        W of every segment at every ``stride``-th sample.
    means : list of ndarray, shape (B, rows, p)
        Their means over the shortest blocks.
    strides : list of int
        The stride of every segment.
    """

    def __init__(self, observations: Observations, highest: float):
        self.observations, self.highest = observations, highest
        segments = observations.segments
        lengths = [BLOCK / highest * s.rate if highest else 1.0 for s in segments]
        self._per_block = max(1, min(PER_BLOCK, round(min(lengths))))
        self.strides = [max(1, round(length / self._per_block)) for length in lengths]
        total = sum(len(s.t) / k for s, k in zip(segments, self.strides, strict=True))
        part = min(1.0, MOST_SAMPLES / total)
        self._parts = []
        for segment, stride in zip(segments, self.strides, strict=True):
            size = int(part * len(segment.t)) // (stride * self._per_block) \
                * stride * self._per_block
            first = (len(segment.t) - size) // 2
            self._parts.append(slice(first, first + size))
        self.matrices = [observations.linear.regressor(
            *self._states(k), segments[k].qdd[self._places(k)], loaded=segments[k].loaded,
            friction=observations.friction(k)[self._places(k)])
            for k in range(len(segments))]
        self.means = self._short(self.matrices)
        self._torques = [[self.short_means(k, x) for x in (
            observations.torque(k), observations.measured(k))] for k in range(len(segments))]

    def _short(self, matrices: list[Array]) -> list[Array]:
        """Return means over the shortest blocks."""
        return [block_means(w, self._per_block) for w in matrices]

    def friction(self, linear: LinearModel, terms: Sequence[int] | None = None) -> list[Array]:
        """Return friction columns of another linear model for every segment, as `means`.

        Parameters
        ----------
        linear : LinearModel
            The model.
        terms : sequence of int, optional
            Indices in ``linear.gears.terms``; default: all.
        """
        found = []
        for k in range(len(self._parts)):
            segment = self.observations.segments[k]
            q, qd = self._states(k)
            rate = segment.rate / self.strides[k]
            extra, temperature = (None if x is None else x[self._places(k)] for x in (
                segment.extra, segment.temperature))
            columns = linear.friction_regressor(
                q, qd, linear.friction_states(q, qd, rate, temperature),
                linear.loads(self.matrices[k], extra))
            found.append(columns if terms is None else columns[:, :, list(terms)])
        return self._short(found)

    def springs(self, linear: LinearModel) -> list[Array]:
        """Return the columns of springs of another linear model for every segment, as `means`."""
        return self._short([linear.spring_regressor(*self._states(k))
                            for k in range(len(self._parts))])

    def short_means(self, k: int, values: Array) -> Array:
        """Return means of values at every sample of segment k over the shortest blocks."""
        return block_means(values[self._parts[k]], self.strides[k] * self._per_block)

    def folds(self, means: list[Array], cutoff: float, raw: Raw | None = None) -> Folds:
        """Return the Gram matrices of contiguous folds.

        Parameters
        ----------
        means : list of ndarray, shape (B, rows, p)
            W of every segment, as `means`.
        cutoff : float
            Cutoff frequency of the parallel filter, Hz: ``highest`` over a power of two.
        raw : Raw, optional
            The result of `raw` for the same means; by default with slow blocks.

        Raises
        ------
        LogError
            The log is too short to leave parts of it out.
        """
        length = round(self.highest / cutoff) if cutoff else 1
        each = max(1, -(-FOLDS // len(means)))
        fitted, counts = [], []
        for k, w in enumerate(means):
            if len(w) // length < LEAST_BLOCKS * each:
                raise LogError('is too short to leave parts of it out',
                               source=self.observations.segments[k].source)
            edges = np.linspace(0, len(w) // length, each + 1).astype(int)
            grams, count = grams_of(block_means(w[:len(w) // length * length], length),
                                    *self._explained(k, length)[::2], edges)
            fitted.append(grams)
            counts.append(count)
        sources = [segment.source for segment in self.observations.segments]
        logs = np.repeat([sources.index(source) for source in sources], each)
        return Folds(np.concatenate(fitted), np.concatenate(counts),
                     *(self.raw(means) if raw is None else raw), logs)

    def quarters(self, means: list[Array], cutoff: float, column: int) -> Folds:
        """Return folds that are quarters of the data, ordered by a column and not by time.

        Errors of these folds show whether a term also holds at values that the fit has not seen.

        Parameters
        ----------
        means : list of ndarray, shape (B, rows, p)
            W of every segment, as `means`.
        cutoff : float
            Cutoff frequency of the parallel filter, Hz: ``highest`` over a power of two.
        column : int
            The column of W by whose values the data are ordered.
        """
        length = round(self.highest / cutoff) if cutoff else 1
        row = int(sum(np.abs(w[:, :, column]).sum(axis=0) for w in means).argmax())
        long: list[tuple[Any, ...]] = []
        short: list[tuple[Any, ...]] = []
        for k, w in enumerate(means):
            size = len(w) // length
            whole = w[:size * length]
            long.append((block_means(whole, length), *self._explained(k, length)))
            short.append(tuple(x[:size * length].reshape(size, length, *x.shape[1:])
                               for x in (whole, *self._explained(k, 1, far=False))))
        fitted, raw = ([np.concatenate(x) for x in zip(*parts, strict=True)]
                       for parts in (long, short))
        order = np.argsort(fitted[0][:, row, column], kind='stable')
        edges = np.linspace(0, len(order), QUARTERS + 1).astype(int)
        w, tau, _, used = (x[order] for x in fitted)
        grams, counts = grams_of(w, tau, used, edges)
        w, tau, measured, used = (x[order].reshape(-1, *x.shape[2:]) for x in raw)
        return Folds(grams, counts, grams_of(w, tau, used, edges * length)[0].sum(axis=1),
                     float(np.square(measured[used]).sum()), np.arange(QUARTERS))

    def raw(self, means: list[Array], *, slow: bool = True) -> Raw:
        """Return the Gram matrices of the shortest blocks, and the size of the torque.

        Parameters
        ----------
        means : list of ndarray, shape (B, rows, p)
            W of every segment, as `means`.
        slow : bool
            Whether blocks that are too slow for the fit are included.
        """
        each = max(1, -(-FOLDS // len(means)))
        found, size = [], 0.0
        for k, w in enumerate(means):
            tau, measured, used = self._explained(k, 1, far=not slow)
            edges = np.linspace(0, len(w), each + 1).astype(int)
            found.append(grams_of(w, tau, used, edges)[0].sum(axis=1))
            size += float(np.square(measured[used]).sum())
        return Raw(np.concatenate(found), size)

    def _places(self, k: int) -> slice:
        part = self._parts[k]
        stride = self.strides[k]  # from the middle, as the block means of the torques
        return slice(part.start + (stride - 1) // 2, part.stop, stride)

    def _states(self, k: int) -> tuple[Array, Array]:
        segment, places = self.observations.segments[k], self._places(k)
        return segment.q[places], segment.qd[places]

    def _explained(self, k: int, length: int, *, far: bool = True,
                   ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return means of the torque to explain and of the measured one, and which are used.

        Parameters
        ----------
        k : int
            Index of the segment.
        length : int
            Number of the shortest blocks in a mean.
        far : bool
            Whether to leave out slow samples.
        """
        observations, stride = self.observations, self.strides[k] * self._per_block * length
        segment, rows = observations.segments[k], observations.linear.rows
        tau, measured = (block_means(x[:len(x) // length * length], length)
                         for x in self._torques[k])
        start = self._parts[k].start
        inside = slice(start, start + len(tau) * stride)
        used = observations.torques_of & segment.measured[inside, None]
        if far and observations.slow.any():
            reach = stride / segment.rate / 2
            used = used & observations.far_from_slow(k, reach)[inside] \
                & (np.abs(segment.qd[inside]) > observations.slow)
        middle = used[stride // 2::stride]
        return tau, measured, np.tile(middle, (1, rows // middle.shape[1]))
