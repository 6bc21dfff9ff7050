"""`Assembly`: where the other joints of a robot with closed loops are, for the independent ones.

Newton's method on the gaps, in small steps from a pose that is known: the branch is kept. One pose
and many are found by the same steps; one alone is worth a loop of its own, which does without
masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.description import Array

CLOSED = 1e-14  # m, between points that coincide; or as near as the last step comes, below ROUGH
ROUGH = 1e-9
STEP = 0.1  # rad or m of an independent joint, from one solution to the next
LARGEST = 0.5  # rad or m of a dependent joint, in one of Newton's steps
ITERATIONS = 30
ANCHORS = 64  # samples of a batch that are reached from one of them


class Assembly:
    """One way to put a mechanism together, from the pose in which it first closed.

    Parameters
    ----------
    newton : callable
        Gaps (m) and Newton's step of the dependent joints, in one array, for poses of all b
        joints, shape (b,) or (N, b).
    free, bound : sequence of int
        Places of the independent and of the dependent joints.
    first : ndarray, shape (b,)
        Near the pose to begin with.

    Attributes
    ----------
    home, last : ndarray, shape (b,)
        The pose in which it first closed, and the last single one that was found.
    closed : bool
        Whether the loops close at home.
    """

    def __init__(self, newton: Callable[[Array], Array], free: Sequence[int],
                 bound: Sequence[int], first: Array):
        self._newton, self._free, self._bound = newton, list(free), list(bound)
        full, closed = self._close_all(first[None])
        self.home = self.last = full[0]
        self.closed = bool(closed[0])

    def reach(self, goals: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return poses of all joints for goals of shape (N, n), and where the loops close."""
        if len(goals) == 1:
            full, ok = self._march(goals[0])
            return full[None], np.array([ok])
        anchors, at = self._march_all(self.home[None], goals[::ANCHORS])
        begin = np.where(at[:, None], anchors, self.home)
        return self._march_all(np.repeat(begin, ANCHORS, axis=0)[:len(goals)], goals)

    def _march(self, goal: Array) -> tuple[Array, bool]:
        """One goal, from the last pose."""
        begin = full = self.last
        way = goal - begin[self._free]
        steps = max(1, int(np.ceil(float(np.abs(way).max(initial=0.0)) / STEP)))
        for k in range(1, steps + 1):
            full = full.copy()
            full[self._free] = begin[self._free] + way * (k / steps)
            full, closed = self._close(full)
            if not closed:
                return full, False
        self.last = full
        return full, True

    def _march_all(self, full: Array, goals: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Many goals, each along a straight line from its beginning."""
        begin = np.broadcast_to(full, (len(goals), full.shape[1]))
        way = goals - begin[:, self._free]
        steps = max(1, int(np.ceil(np.abs(way).max(initial=0.0) / STEP)))
        full, closed = begin.copy(), np.ones(len(goals), bool)
        for k in range(1, steps + 1):
            full[:, self._free] = begin[:, self._free] + way * k / steps
            full, ok = self._close_all(full)
            closed &= ok
        return full, closed

    def _close(self, full: Array) -> tuple[Array, bool]:
        newton, bound, before = self._newton, self._bound, np.inf
        for _ in range(ITERATIONS):
            found = newton(full)
            size = float(np.abs(found[:-len(bound)]).max())
            if size < CLOSED or (size < ROUGH and size >= before / 2):
                return full, True
            if not np.isfinite(size):
                break
            before = size
            step = found[-len(bound):]
            full = full.copy()
            full[bound] -= step * min(1.0, LARGEST / max(float(np.abs(step).max()), 1e-12))
        return full, before < ROUGH

    def _close_all(self, full: Array) -> tuple[Array, NDArray[np.bool_]]:
        """`_close` of many poses; what does not converge stays where it came to."""
        full, bound, before = full.copy(), self._bound, np.full(len(full), np.inf)
        open_ = np.arange(len(full))
        for _ in range(ITERATIONS):
            found = self._newton(full[open_])
            gap, step = found[:, :-len(bound)], found[:, -len(bound):]
            size = np.abs(gap).max(axis=1)
            on = ~((size < CLOSED) | ((size < ROUGH) & (size >= before[open_] / 2)))
            before[open_] = size
            open_ = open_[on]
            if not len(open_):
                break
            largest = np.abs(step[on]).max(axis=1, initial=1e-12)
            full[np.ix_(open_, bound)] -= step[on] * np.minimum(1.0, LARGEST / largest)[:, None]
        return full, before < ROUGH
