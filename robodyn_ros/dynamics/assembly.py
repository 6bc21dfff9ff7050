"""`Assembly`: where the dependent joints of a robot with closed loops are.

Newton's method on the gaps between the points that are held together, in small steps from a pose
that is known, so that the mechanism stays assembled the way it is. One pose and many are found by
the same steps; a single pose has a loop of its own, which needs no masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.spatial import Array

CLOSED = 1e-14  # m between points that count as coincident, a few units in the last place of 1 m
ROUGH = 1e-9  # m, accepted where rounding keeps Newton's method from coming nearer
STEP = 0.1  # rad or m of an independent joint, from one solution to the next
LARGEST = 0.5  # rad or m of a dependent joint, in one of Newton's steps
ITERATIONS = 30  # of Newton's method, which needs 3 to 5 where the loops close
ANCHORS = 64  # samples of a batch that are reached from one of them
FARTHEST = 1e3  # rad or m from the pose to start from: more are no robot's joint positions


class Assembly:
    """One way to put a mechanism together, from the pose in which it first closed.

    Parameters
    ----------
    newton : callable
        Gaps (m) and Newton's step of the dependent joints, in one array, for poses of all b
        joints, shape (b,) or (N, b).
    free, bound : sequence of int
        Indices of the independent and of the dependent joints.
    first : ndarray, shape (b,)
        Pose of all joints, near which the loops are closed first.

    Attributes
    ----------
    home : ndarray, shape (b,)
        The pose in which it first closed.
    closed : bool
        Whether the loops close at home.
    """

    def __init__(self, newton: Callable[[Array], Array], free: Sequence[int],
                 bound: Sequence[int], first: Array):
        self._newton, self._free, self._bound = newton, list(free), list(bound)
        full, closed = self._close_all(first[None])
        self.home = full[0]
        self.home.setflags(write=False)
        self.closed = bool(closed[0])

    def reach(self, goals: Array, near: Array | None = None
              ) -> tuple[Array, NDArray[np.bool_]]:
        """Return poses of all joints for positions of the independent ones.

        Parameters
        ----------
        goals : ndarray, shape (N, n)
            Positions of the independent joints.
        near : ndarray, shape (b,), optional
            The pose to start from; default: `home`.

        Returns
        -------
        full : ndarray, shape (N, b)
        closed : ndarray of bool, shape (N,)
            Where the loops close; nowhere at goals that are not finite, or farther than
            `FARTHEST` from the start.
        """
        begin = self.home if near is None else near
        if len(goals) == 1:
            full, ok = self._march(begin, goals[0])
            return full[None], np.array([ok])
        anchors, at = self._march_all(begin[None], goals[::ANCHORS])
        starts = np.where(at[:, None], anchors, begin)
        return self._march_all(np.repeat(starts, ANCHORS, axis=0)[:len(goals)], goals)

    def _march(self, begin: Array, goal: Array) -> tuple[Array, bool]:
        """Reach one goal."""
        full = begin
        way = goal - begin[self._free]
        longest = float(np.abs(way).max(initial=0.0))
        if not longest < FARTHEST:  # nor where it is not a number
            return full, False
        steps = max(1, int(np.ceil(longest / STEP)))
        for k in range(1, steps + 1):
            full = full.copy()
            full[self._free] = begin[self._free] + way * (k / steps)
            full, closed = self._close(full)
            if not closed:
                return full, False
        return full, True

    def _march_all(self, full: Array, goals: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Reach many goals, each along a straight line from its beginning."""
        begin = np.broadcast_to(full, (len(goals), full.shape[1]))
        way = goals - begin[:, self._free]
        closed = np.abs(way).max(axis=1, initial=0.0) < FARTHEST
        way = np.where(closed[:, None], way, 0.0)
        steps = max(1, int(np.ceil(np.abs(way).max(initial=0.0) / STEP)))
        full = begin.copy()
        for k in range(1, steps + 1):
            full[:, self._free] = begin[:, self._free] + way * k / steps
            full, ok = self._close_all(full)
            closed &= ok
        return full, closed

    def _close(self, full: Array) -> tuple[Array, bool]:
        """Close the loops of one pose by moving its dependent joints."""
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
            longest = float(np.abs(step).max())
            full = full.copy()
            full[bound] -= step * (1.0 if longest <= LARGEST else LARGEST / longest)
        return full, before < ROUGH

    def _close_all(self, full: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Close the loops of many poses; one that does not converge stays where it came to."""
        full, bound, before = full.copy(), self._bound, np.full(len(full), np.inf)
        active = np.arange(len(full))
        for _ in range(ITERATIONS):
            found = self._newton(full[active])
            gap, step = found[:, :-len(bound)], found[:, -len(bound):]
            size = np.abs(gap).max(axis=1)
            on = ~((size < CLOSED) | ((size < ROUGH) & (size >= before[active] / 2)))
            before[active] = size
            active = active[on]
            if not len(active):
                break
            longest = np.maximum(np.abs(step[on]).max(axis=1, initial=0.0), LARGEST)
            full[np.ix_(active, bound)] -= step[on] * (LARGEST / longest)[:, None]
        return full, before < ROUGH
