"""Calls the kernels that close loops, and says why loops do not close."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.assembly import FARTHEST, ROUGH, SINGULAR
from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.catalogue import MOVING
from robodyn_ros.dynamics.loop_closure import LoopClosure, Points
from robodyn_ros.dynamics.loop_freedom import close_loops
from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.kernels import Kernel
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array

# rad or m, and number: poses near one that may be singular, with which it is compared
AROUND, POSES_AROUND = 0.2, 5


class LoopSearch:
    """The part of `ClosedLoopDynamics` that closes the loops."""

    model: Model
    _pairs: tuple[Points, ...]
    _free: list[int]
    _bound: list[int]
    _closure: LoopClosure
    _home: Array
    _kernels: dict[str, Kernel]
    _solvers: dict[str, tuple[Callable[..., Array], int]]

    def _search(self, near: ArrayLike | None, q: ArrayLike) -> tuple[Array, Any]:
        """Return the poses where the search ended, and whether the loops are closed there."""
        found = self._called(self._solver('')[0], near, q)
        self._search_again(found, '', near, q)
        full = found[..., :-1]
        return full if found.ndim == 1 else np.ascontiguousarray(full), found[..., -1] == 1.0

    def _closed(self, near: ArrayLike | None, q: ArrayLike) -> Array:
        """Return closed poses; raise the reason if there is none."""
        full, closed = self._search(near, q)
        if not closed.all():
            self._refuse_row(int(np.argmin(closed)), near, q)
        return full

    def _at(self, name: str, near: ArrayLike | None, q: ArrayLike, *others: ArrayLike,
            base: BaseMotion | None = None) -> Array:
        """Return a function of the closed pose; raise an error where there is none."""
        if base is not None:
            name, others = MOVING + name, (*others, base.values(self.model))
        function, rank = self._solvers.get(name) or self._solver(name)
        result = self._called(function, near, q, *others)
        if result.ndim == rank:
            first = result.item(0)  # NaN if any other is not finite, see `ContinuationKernel`
            if first == first:
                return result
        self._search_again(result, name, near, q, *others)
        missing = np.isnan(_first(result, rank))
        if missing.any():
            self._explain(missing, near, q, others)
        return result

    def _solver(self, name: str) -> tuple[Callable[..., Array], int]:
        """Return a kernel that closes the loops, and the rank of its result for one state."""
        found = self._solvers.get(name)
        if found is None:
            kernel = self._closure.solved(name)
            found = self._solvers[name] = kernel.single, len(kernel.spec.shape)
        return found

    def _called(self, function: Callable[..., Array], near: ArrayLike | None,
                *arrays: ArrayLike) -> Array:
        """Call a kernel that closes the loops; raise an error for arrays of a wrong shape."""
        try:
            return function(self._home if near is None else near, *arrays)
        except ShapeError:
            for what, array in zip(('q', 'qd', 'qdd'), arrays, strict=False):
                self._array(what, array)  # names the joints
            raise

    def _search_again(self, result: Array, name: str, near: ArrayLike | None,
                      *arrays: ArrayLike) -> None:
        """In a batch, search from `near` where the search from an earlier sample failed."""
        function, rank = self._solver(name)
        if result.ndim == rank:
            return
        given = (self._home if near is None else near, *arrays)
        bad = np.isnan(_first(result, rank)) if name else result[:, -1] == 0.0
        for k in map(int, np.flatnonzero(bad)):
            result[k] = function(*(_row(values, k) for values in given))

    def _explain(self, missing: Any, near: ArrayLike | None, q: ArrayLike,
                 others: Sequence[ArrayLike]) -> None:
        """Raise the reason why results are missing, unless it is NaN in another input."""
        full = self._closed(near, q)
        for values in others:
            missing &= np.isfinite(np.asarray(values, np.float64)).all(axis=-1)
        if not missing.any():
            return
        row = int(np.argmax(missing))
        pose = _row(q, row)
        sines = self._function('closing')(_row(full, row))[-len(self._bound):]
        if not sines.min() > SINGULAR**2:
            self._refuse_singular(pose)
        raise ValueRangeError(f'result at {self._where(pose)}', 'not finite', 'smaller inputs, '
                              'and mass beyond every independent joint or an armature')

    def _refuse_row(self, row: int, near: ArrayLike | None, q: ArrayLike) -> None:
        """Raise the reason why the loops do not close in one row of a batch, or in one state."""
        goal, start = _row(q, row), _row(self._home if near is None else near, row)
        self._refuse(goal, start, self._search(start, goal)[0])

    def _where(self, q: Array) -> str:
        names = [self.model.joint_names[k] for k in self._free]
        return ', '.join(f'{name} {x:.4g}' for name, x in zip(names, q, strict=True))

    def _refuse(self, q: Array, start: Array, full: Array) -> None:
        """Raise the reason why the loops do not close; `full` is where the search ended."""
        where = self._where(q)
        if not np.isfinite(q).all():
            raise ValueRangeError('pose', where, 'finite numbers')
        if not np.isfinite(start).all():
            raise ValueRangeError('near', self._where_all(start), 'finite numbers')
        if not np.abs(q - start[self._free]).max(initial=0.0) < FARTHEST:
            raise ValueRangeError('pose', where, f'less than {FARTHEST:g} rad or m from the pose '
                                  'from which the loops are closed')
        gap, one, other = self._widest(full)
        if not np.isfinite(gap):
            self._refuse_singular(q)
        raise ValueRangeError(f'gap between {one} and {other} at {where}', f'{gap:.3g} m',
                              'poses in which the loops close')

    def _widest(self, full: Array) -> tuple[float, str, str]:
        """Return the largest gap in a pose of all joints, m, and the links beside it."""
        gaps = np.linalg.norm(self._table(full, np.zeros_like(full))[:, 0].reshape(-1, 3), axis=1)
        first, second = self._pairs[int(np.argmax(gaps))]
        return float(gaps.max()), first[0], second[0]

    def _refuse_singular(self, q: Array) -> None:
        raise ValueRangeError(f'pose {self._where(q)}', 'singular', 'one away from singularities '
                              'of the loops, for example reached from another start')

    def _is_closed(self, pose: Array) -> bool:
        """Return whether the loops are closed in a pose of all joints; False for NaN."""
        gaps = self._table(pose, np.zeros_like(pose))[:, 0]
        return bool(np.abs(gaps).max() < ROUGH)

    def _where_all(self, pose: Array) -> str:
        return ', '.join(f'{name} {x:.4g}' for name, x in zip(
            self.model.joint_names, pose, strict=True))

    def _around(self, pose: Array) -> list[Array]:
        """Return closed poses around a pose."""
        rng = np.random.default_rng(0)
        starts = pose + AROUND * rng.uniform(-1, 1, (POSES_AROUND, len(pose)))
        return list(filter(self._is_closed, (close_loops(self._table, x) for x in starts)))

    def _closure_kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self._closure.kernel(name)
        return self._kernels[name]

    def _function(self, name: str) -> Callable[..., Array]:
        return self._closure_kernel(name).single

    def _table(self, full: Array, speed: Array) -> Array:
        return self._function('table')(full, speed)

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = real_numbers(name, values)
        n = len(self._free)
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            names = ', '.join(self.model.joint_names[k] for k in self._free)
            raise ShapeError(name, f'shape {array.shape}', f'({n},) or (N, {n}): {names}')
        return array


def _row(values: ArrayLike, row: int) -> Array:
    """Return one row of a batch, or the state that is common to its rows."""
    array = np.asarray(values, np.float64)
    return array[row] if array.ndim == 2 else array


def _first(result: Array, rank: int) -> Array:
    """Return the first element of the result of each state."""
    return np.atleast_1d(result[..., 0] if rank == 1 else result[..., 0, 0])
