"""Weighted least squares on Gram matrices of ``[W, tau]``, from all data or without one part."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

SWEEPS = 3  # iterations for the weights of the rows
RIDGE = 1e-9  # regularisation relative to each column's square; unexcited parameters stay zero
LEAST_SIGMA = 1e-6  # relative to the largest residual of a row, so that all weights are finite


def estimates_without(grams: Array, counts: Array) -> Array:
    """Return weighted least squares without each fold in turn, shape (F, b).

    Parameters
    ----------
    grams : ndarray, shape (F, rows, b + 1, b + 1)
        Gram matrices of ``[W, tau]``.
    counts : ndarray, shape (F, rows)
        Numbers of samples.
    """
    sigma = residual_deviations(grams.sum(axis=0), counts.sum(axis=0))
    weighted = np.tensordot(grams, 1 / sigma**2, (1, 0))
    without = weighted.sum(axis=0) - weighted
    return np.array([solve_scaled(gram[:-1, :-1], gram[:-1, -1]) for gram in without])


def grams_of(w: Array, tau: Array, used: NDArray[np.bool_], edges: NDArray[np.int_],
             ) -> tuple[Array, Array]:
    """Return Gram matrices of ``[W, tau]``, and numbers of samples, between the edges."""
    rows, p = w.shape[1:]
    grams = np.zeros((len(edges) - 1, rows, p + 1, p + 1))
    counts = np.zeros((len(edges) - 1, rows))
    for row in range(rows):
        nonzero = np.flatnonzero((w[:, row] != 0).any(axis=0))
        data = np.column_stack([w[:, row].take(nonzero, axis=1), tau[:, row]])
        if not used[:, row].all():
            data *= used[:, row, None]
        nonzero = np.append(nonzero, p)
        for fold, (a, b) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            grams[fold, row, nonzero[:, None], nonzero] = data[a:b].T @ data[a:b]
            counts[fold, row] = used[a:b, row].sum()
    return grams, counts


def picked(grams: Array, columns: list[int]) -> Array:
    """Return Gram matrices of some columns and of the torque, which is the last one."""
    size = grams.shape[-1] - 1
    if columns == list(range(size)):
        return grams
    places = [*columns, size]
    return np.asarray(grams.take(places, axis=-2).take(places, axis=-1))


def residual_deviations(grams: Array, count: Array) -> Array:
    """Return the standard deviation of each row's residual after a fit."""
    rows, b = len(grams), grams.shape[-1] - 1
    sigma = np.ones(rows)
    for _ in range(SWEEPS):
        theta = weighted_solution(grams, sigma)
        squares = np.maximum(np.einsum('i,rij,j->r', theta, grams, theta), 0.0)
        sigma = np.sqrt(safe_divide(squares, np.maximum(count - b / rows, 1.0)))
        sigma = np.maximum(sigma, LEAST_SIGMA * (float(sigma.max()) or 1.0))
    return sigma


def weighted_solution(grams: Array, sigma: Array) -> Any:
    """Return weighted least squares of Gram matrices, with -1 for the torque appended."""
    whole = np.tensordot(1 / sigma**2, grams, 1)
    return np.append(solve_scaled(whole[:-1, :-1], whole[:-1, -1]), -1.0)


def solve_scaled(matrix: Array, right: Array) -> Array:
    """Solve normal equations with columns of equal length."""
    scaled, scale = equal_columns(matrix)
    factor = scipy.linalg.cho_factor(scaled, overwrite_a=True, check_finite=False)
    down = scale if right.ndim == 1 else scale[:, None]
    return np.asarray(scipy.linalg.cho_solve(factor, right / down, check_finite=False) / down)


def equal_columns(matrix: Array) -> tuple[Array, Array]:
    """Return normal equations with columns of equal length, regularised, and these lengths."""
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = matrix / np.outer(scale, scale)
    scaled[np.diag_indices(len(scale))] += RIDGE
    return scaled, scale
