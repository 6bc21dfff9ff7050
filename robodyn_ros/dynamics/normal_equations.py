"""Normal equations W'W and W'tau of a log, computed without storing its observation matrix W."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robodyn_ros.dynamics.large_regressor import LargeRegressor
from robodyn_ros.errors import ShapeError
from robodyn_ros.kernels import Kernel
from robodyn_ros.spatial import Array

BLOCK_BYTES = 1 << 24  # size of the part of the regressor that is in memory at a time


class NormalEquations(NamedTuple):
    """``matrix @ parameters = vector``, and the sum of squared (weighted) torques."""

    matrix: Array
    vector: Array
    square: float


def accumulate(kernel: Kernel | LargeRegressor, q: Array, qd: Array, qdd: Array, tau: Array,
               weights: Array, positions: int = 0) -> NormalEquations:
    """Return W'W, shape (p, p), and W'tau, shape (p,), of a batch.

    Parameters
    ----------
    kernel : Kernel or LargeRegressor
        Computes the regressor, with a result of shape (n, p).
    q, qd, qdd, tau : ndarray, shape (N, n)
        Motion and torque.
    weights : ndarray, shape (n,)
        Factor of each joint's rows, 1 / standard deviation of its noise.
    positions : int
        Number of columns of q; default: n.

    Raises
    ------
    ShapeError
        An array has another shape.
    """
    n, p = kernel.nonzero.shape
    for name, values, size in (('q', q, positions or n), ('qd', qd, n), ('qdd', qdd, n),
                               ('tau', tau, n)):
        if values.ndim != 2 or values.shape != (len(q), size):
            raise ShapeError(name, f'shape {values.shape}', f'(N, {size}), the same N for all')
    if weights.shape != (n,):
        raise ShapeError('weights', f'shape {weights.shape}', f'({n},)')
    nothing = NormalEquations(np.full((p, p), np.nan), np.full(p, np.nan), np.nan)
    if not all(np.isfinite(values).all() for values in (q, qd, qdd, tau, weights)):
        return nothing
    block = max(8, BLOCK_BYTES // (8 * n * p) // 8 * 8)
    buffer = np.empty((min(block, len(q)), n, p))
    matrix, vector = np.zeros((p, p)), np.zeros(p)
    weighted = tau * weights
    # a joint's torque depends only on the bodies that it carries: skip the zeros, most of W
    nonzero = [np.flatnonzero(row) for row in kernel.nonzero]
    for start in range(0, len(q), block):
        part = slice(start, min(start + block, len(q)))
        rows = kernel.general(q[part], qd[part], qdd[part], out=buffer[:part.stop - start])
        for joint, columns in enumerate(nonzero):
            w = rows[:, joint, columns] * weights[joint]
            matrix[np.ix_(columns, columns)] += w.T @ w
            vector[columns] += w.T @ weighted[part, joint]
    if np.isnan(np.diagonal(matrix)).any():  # a quaternion without direction
        return nothing
    return NormalEquations(matrix, vector, float(np.einsum('ij,ij', weighted, weighted)))
