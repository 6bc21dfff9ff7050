"""Forward dynamics: ``M qdd = tau - bias`` by L' D L elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.errors import RobodynError
from robodyn_ros.kernels.expression import Scalar

# what is valid where a mass matrix is singular
REMEDY = 'mass beyond every joint, or an armature, and mass and inertia of a floating base'


class SingularMassMatrixError(RobodynError):
    """M is singular in every pose; ``coordinate`` is the index of a coordinate without inertia.

    Parameters
    ----------
    coordinate : int
        Index of the coordinate.
    joint : str
        Its name.
    together : str
        What moves in a motion of several joints that moves no inertia; default: the joint alone.
    """

    def __init__(self, coordinate: int, joint: str = '', together: str = ''):
        self.coordinate = coordinate
        super().__init__(
            f'{together} can move together without moving any inertia: their accelerations are '
            'undefined; valid: mass and inertia of the links between them, or fewer joints'
            if together else f'joint {joint or coordinate!r} moves no inertia: its acceleration '
            'is undefined; valid: mass beyond the joint, or an armature')


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
    return Elimination(matrix, order).solve(right)


class Elimination:
    """A symmetric positive definite matrix, eliminated for several right-hand sides.

    Parameters and errors are those of `solve_symmetric`.

    Attributes
    ----------
    pivots : array, shape (n,)
        The diagonal elements after the elimination, in the order of the unknowns.
    """

    def __init__(self, matrix: Any, order: Sequence[int]):
        a = {(i, j): matrix[i, j] for i in order for j in order}
        self._order = list(order)
        self._entries, self._inverse = a, {}
        for position, k in enumerate(order):
            if is_zero(a[k, k]):
                raise SingularMassMatrixError(k)
            self._inverse[k] = 1.0 / a[k, k]
            linked = [i for i in order[position + 1:] if not is_zero(a[i, k])]
            for count, i in enumerate(linked, 1):
                factor = a[i, k] * self._inverse[k]
                for j in linked[:count]:
                    a[i, j] = a[j, i] = a[i, j] - factor * a[j, k]
        self.pivots = np.array([a[k, k] for k in range(len(self._order))])

    def solve(self, right: Any) -> Any:
        """Return the solution for one right-hand side, shape (n,)."""
        a, x = self._entries, dict(enumerate(right))
        for position, k in enumerate(self._order):
            for i in self._order[position + 1:]:
                x[i] = x[i] - (a[i, k] * self._inverse[k]) * x[k]
        for position in reversed(range(len(self._order))):
            k = self._order[position]
            # the unknown that was found last is used last, so that the processor waits less for it
            for i in reversed(self._order[position + 1:]):
                x[k] = x[k] - a[i, k] * x[i]
            x[k] = x[k] * self._inverse[k]
        return np.array([x[k] for k in range(len(x))])


def is_zero(value: Any) -> bool:
    """Whether a float, or the constant of a symbol, is zero."""
    return (value.value if isinstance(value, Scalar) else value) == 0.0
