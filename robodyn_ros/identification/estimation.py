"""Estimates of base parameters: weighted, robust, or instrumental (Kolyubin 5.21-5.23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.observations import (
    Block,
    Observations,
    factors_of,
    merge,
    triangular,
)
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

HUBER = 1.345  # standard deviations at which Huber's function has an efficiency of 95 %
NORMAL = 1.4826  # standard deviation over median absolute deviation of normal noise
SWEEPS = 20  # maximum number of iterations
UNDETERMINED = 1e-8  # singular value over the largest, below which its square is round-off
LEAST_SIGMA = 1e-9  # relative to the largest, so that a row without noise has a finite weight


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of base parameters.

    Attributes
    ----------
    values : ndarray, shape (b,)
        Base parameters, SI units.
    sigma : ndarray, shape (rows,)
        Standard deviation of each row's residual, N m or N.
    factor : ndarray, shape (b, b)
        R of the weighted observation matrix; the plain covariance is ``(R'R)^-1``.
    count : ndarray, shape (rows,)
        Number of samples of each row.
    """

    values: Array
    sigma: Array
    factor: Array
    count: Array

    @property
    def plain_covariance(self) -> Array:
        """The covariance that independent noise would give, shape (b, b).

        It leaves out what the data do not determine, see `undetermined_covariance`.
        """
        directions, singular = self._directions()
        known = directions[:, singular > UNDETERMINED * singular[0]]
        return (known / singular[:known.shape[1]]**2) @ known.T

    @property
    def undetermined_covariance(self) -> Array:
        """A lower bound of the covariance of what the data do not determine, shape (b, b).

        Combinations of parameters whose singular value is below a limit, relative to the largest
        one, have the covariance of a singular value at this limit.
        """
        directions, singular = self._directions()
        unknown = directions[:, singular <= UNDETERMINED * singular[0]]
        return (unknown / (UNDETERMINED * singular[0])**2) @ unknown.T

    def _directions(self) -> tuple[Array, Array]:
        """Return combinations of parameters, one in each column, and their singular values."""
        scale = np.linalg.norm(self.factor, axis=0)
        _, singular, rows = np.linalg.svd(safe_divide(self.factor, scale))
        return safe_divide(rows.T, scale[:, None]), singular


def least_squares(factors: Array, kept: tuple[int, ...], count: Array, *,
                  weighted: bool = True, sweeps: int = SWEEPS,
                  names: Sequence[str] = ()) -> Estimate:
    """Estimate base parameters from factors of ``[W, tau]``, one for each row of the robot.

    Parameters
    ----------
    factors : ndarray, shape (rows, p + 1, p + 1)
        See `factors_of`.
    kept : tuple of int
        The b columns of the base parameters.
    count : ndarray, shape (rows,)
        Samples of each row.
    weighted : bool
        Whether each row is weighted by the standard deviation of its residual, which is found
        by iteration (Kolyubin 5.22-5.23).
    sweeps : int
        Largest number of iterations.
    names : sequence of str
        Names of the base parameters for messages; default: their numbers.

    Raises
    ------
    IdentificationError
        There are too few samples, or the motion does not excite a base parameter.
    """
    columns = [*kept, -1]
    small = factors[:, :, columns]
    rows, b = len(small), len(kept)
    if count.sum() < 2 * b:
        raise IdentificationError(f'there are {int(count.sum())} equations for {b} parameters; '
                                  'valid: a longer log or a higher cutoff')
    sigma = np.ones(rows)
    present = count > 0
    values = np.zeros(b)
    for _ in range(sweeps if weighted else 2):
        stacked = (small[present] / sigma[present, None, None]).reshape(-1, b + 1)
        triangle = triangular(stacked)[:b + 1]
        factor, right = triangle[:b, :b], triangle[:b, b]
        scale = np.linalg.norm(factor, axis=0)
        if (scale == 0).any():
            bad = [names[k] if names else f'number {k}'
                   for k in map(int, np.flatnonzero(scale == 0))]
            raise IdentificationError(
                'the motion does not excite these base parameters at all: '
                f'{", ".join(bad[:5])}; valid: a motion of every joint, or a kind and a friction '
                'model without them')
        inverse, values = _solve(factor / scale, right)
        inverse, values = inverse / scale[:, None], values / scale
        residuals = small[:, :, :b] @ values - small[:, :, b]
        squares = (residuals**2).sum(axis=1)
        leverage = ((small[:, :, :b] @ inverse) ** 2).sum(axis=(1, 2)) / sigma**2
        freedom = np.maximum(count - leverage, 0.1 * count)
        new = np.sqrt(squares / np.maximum(freedom, 1.0))
        new = np.maximum(new, LEAST_SIGMA * (float(new.max()) or 1.0))
        settled = np.allclose(new[present], sigma[present], rtol=1e-6)
        if weighted:
            sigma = new
        else:
            sigma = np.full(rows, np.sqrt((new[present]**2).mean()))
        if settled:
            break
    signs = np.where(np.diag(factor) < 0, -1.0, 1.0)
    return Estimate(values, new, factor * signs[:, None], count)


def _solve(factor: Array, right: Array) -> tuple[Array, Array]:
    """Return the inverse of a triangular factor, or its pseudo-inverse, and the solution."""
    diagonal = np.abs(np.diag(factor))
    if diagonal.min() > 1e-7 * diagonal.max():
        inverse = scipy.linalg.lapack.dtrtri(factor)[0]
    else:
        inverse = np.linalg.pinv(factor, rcond=UNDETERMINED)
    return inverse, inverse @ right


def counts_of(blocks: list[Block]) -> Array:
    """Return the number of samples that are used, shape (rows,)."""
    return np.sum([block.used.sum(axis=0) for block in blocks], axis=0).astype(float)


def huber(observations: Observations, kept: tuple[int, ...], start: Estimate) -> Estimate:
    """Estimate robustly: samples with large residuals get less weight (Huber's function)."""
    estimate = start
    for _ in range(SWEEPS):
        factors = []
        sigma = np.zeros(len(start.sigma))
        for k in range(len(sigma)):
            residual = np.concatenate([
                (b.tau[:, k] - b.w[:, k][:, kept] @ estimate.values)[b.used[:, k]]
                for b in observations.blocks()])
            sigma[k] = NORMAL * np.median(np.abs(residual)) if len(residual) else 1.0
        sigma = np.maximum(sigma, 1e-12)
        for block in observations.blocks():
            residual = (block.tau - block.w[:, :, kept] @ estimate.values) / sigma
            weight = np.sqrt(np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-12)))
            factors.append(factors_of(replace(
                block, w=block.w * weight[:, :, None], tau=block.tau * weight)))
        new = least_squares(merge(factors), kept, start.count)
        done = np.allclose(new.values, estimate.values, rtol=1e-6, atol=1e-9)
        estimate = new
        if done:
            break
    return estimate


def instrumental_variables(observations: Observations, kept: tuple[int, ...],
                           estimate: Estimate) -> Array:
    """Estimate by instrumental variables, given by the regressor of a motion with little noise.

    This is the commanded motion if it was logged, the average of a periodic motion, or the
    positions filtered to the band of the motion. If this estimate differs from least squares by
    more than their standard deviations, noise in W has biased the least squares.

    Returns
    -------
    ndarray, shape (b,)
        ``(Z' W)^-1 Z' tau``, rows weighted as in the estimate.
    """
    calm = [replace(segment, q=segment.smooth[0], qd=segment.smooth[1], qdd=segment.smooth[2])
            for segment in observations.segments]
    return instrumented(observations, observations.changed(calm), kept, estimate)


def instrumented(observations: Observations, instruments: Observations, kept: tuple[int, ...],
                 estimate: Estimate) -> Array:
    """Estimate by instrumental variables, given by the observations of another motion.

    Parameters
    ----------
    observations, instruments : Observations
        The measured motion, and one of the same times whose noise is independent of it.
    kept : tuple of int
        The b columns of the base parameters.
    estimate : Estimate
        An estimate with the standard deviation of each row.

    Returns
    -------
    ndarray, shape (b,)
        ``(Z' W)^-1 Z' tau``, rows weighted as in the estimate.
    """
    b = len(kept)
    left, right = np.zeros((b, b)), np.zeros(b)
    for block, other in zip(observations.blocks(), instruments.blocks(), strict=True):
        for row in range(block.w.shape[1]):
            use = block.used[:, row]
            z = other.w[use, row][:, kept] / estimate.sigma[row] ** 2
            left += z.T @ block.w[use, row][:, kept]
            right += z.T @ block.tau[use, row]
    scale = np.sqrt(np.abs(np.diag(left)))
    scaled = safe_divide(left, np.outer(scale, scale))
    solution = np.linalg.lstsq(scaled, safe_divide(right, scale), rcond=None)[0]
    return np.asarray(safe_divide(solution, scale))
