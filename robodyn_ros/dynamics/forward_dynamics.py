"""Forward dynamics: ``M qdd = tau - bias`` by L' D L elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.errors import RobodynError
from robodyn_ros.kernels.expression import Scalar


class SingularMassMatrixError(RobodynError):
    """A coordinate moves no inertia, so M is singular; ``coordinate`` is its index."""

    def __init__(self, coordinate: int, joint: str = ''):
        self.coordinate = coordinate
        super().__init__(f'joint {joint or coordinate!r} moves no inertia: its acceleration is '
                         'undefined; valid: mass beyond the joint, or an armature')


def solve_symmetric(matrix: Any, right: Any, order: Sequence[int]) -> Any:
    """Solve a symmetric positive definite system, shape (n, n) and (n,).

    Parameters
    ----------
    order : sequence of int
        Elimination order. If it goes from the tips to the base, entries between separate branches
        stay zero (Featherstone's branch-induced sparsity).

    Raises
    ------
    SingularMassMatrixError
        A coordinate has no inertia in any pose.
    """
    return solve_with_pivots(matrix, right, order)[0]


def solve_with_pivots(matrix: Any, right: Any, order: Sequence[int]) -> tuple[Any, Any]:
    """Return the solution of `solve_symmetric` and the pivots, shape (n,) each."""
    a = {(i, j): matrix[i, j] for i in order for j in order}
    x = {i: right[i] for i in order}
    inverse: dict[int, Any] = {}
    for position, k in enumerate(order):
        if is_zero(a[k, k]):
            raise SingularMassMatrixError(k)
        inverse[k] = 1.0 / a[k, k]
        linked = [i for i in order[position + 1:] if not is_zero(a[i, k])]
        for count, i in enumerate(linked, 1):
            factor = a[i, k] * inverse[k]
            x[i] = x[i] - factor * x[k]
            for j in linked[:count]:
                a[i, j] = a[j, i] = a[i, j] - factor * a[j, k]
    for position in reversed(range(len(order))):
        k = order[position]
        total = x[k]
        for i in order[position + 1:]:
            total = total - a[i, k] * x[i]
        x[k] = total * inverse[k]
    places = range(len(order))
    return np.array([x[i] for i in places]), np.array([a[i, i] for i in places])


def is_zero(value: Any) -> bool:
    """Whether a float, or the constant of a symbol, is zero."""
    return (value.value if isinstance(value, Scalar) else value) == 0.0
