"""Linear equations in the least-squares sense, by refined normal equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.dynamics.forward_dynamics import Elimination, is_zero


class LeastSquares:
    """Solves ``matrix @ x = right`` and ``matrix.T @ y = right`` for several right-hand sides.

    The normal equations square the condition number; a step of refinement corrects this.

    Parameters
    ----------
    matrix : array, shape (m, n)
        Floats or symbols; the columns are linearly independent.

    Attributes
    ----------
    sines : array, shape (n,)
        Square of the sine between each column and those that are eliminated before it; it
        vanishes where the columns depend on each other.

    Raises
    ------
    SingularMassMatrixError
        A column is zero in any pose.
    """

    def __init__(self, matrix: Any):
        self._matrix, square = matrix, matrix.T @ matrix
        self._normal = Elimination(square, elimination_order(square))
        self.sines = self._normal.pivots / np.diag(square)

    def approximate(self, right: Any) -> Any:
        """Return x, shape (n,), with the smallest residual; not refined."""
        return self._normal.solve(self._matrix.T @ right)

    def solve(self, right: Any) -> Any:
        """Return x, shape (n,), with the smallest residual."""
        first = self.approximate(right)
        return first + self.approximate(right - self._matrix @ first)

    def solve_transposed(self, right: Any) -> Any:
        """Return the smallest y, shape (m,), that solves ``matrix.T @ y = right``."""
        first = self._matrix @ self._normal.solve(right)
        return first + self._matrix @ self._normal.solve(right - self._matrix.T @ first)


def elimination_order(matrix: Any) -> list[int]:
    """Return an order of elimination with little fill-in for a symmetric matrix.

    Unknowns with the fewest neighbours come first. Unknowns that are not neighbours follow one
    another, since the processor can eliminate them at the same time.
    """
    linked = np.array([[not is_zero(entry) for entry in row] for row in matrix])
    order: list[int] = []
    left = list(range(len(linked)))
    while left:
        counts = {k: int(linked[k, left].sum()) for k in left}
        together: list[int] = []
        for k in left:
            if counts[k] == min(counts.values()) and not linked[k, together].any():
                together.append(k)
        for k in together:
            linked |= np.outer(linked[:, k], linked[k])
        order += together
        left = [k for k in left if k not in together]
    return order
