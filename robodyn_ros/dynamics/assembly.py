"""`Assembly`: solves for the dependent joints of a robot with closed loops.

Newton's method closes the gaps between the points that the cuts hold together, in small steps from
a known pose, so that the mechanism stays in the same assembly mode. Single poses and batches take
the same steps; single poses have their own, faster code without masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.spatial import Array

CLOSED = 1e-14  # m, gap that counts as closed: a few units in the last place of 1 m
ROUGH = 1e-9  # m, gap that is accepted if round-off prevents further convergence
STEP = 0.1  # rad or m, largest step of an independent joint between two solutions
LARGEST = 0.5  # rad or m, largest step of a dependent joint in one iteration
ITERATIONS = 30  # limit of Newton's method, which needs 3 to 5 iterations if the loops close
ANCHORS = 64  # samples of a batch that start from the solution of the same sample
FARTHEST = 1e3  # rad or m from the start; joint positions farther away are mistakes


class Assembly:
    """One assembly mode of a mechanism, defined by the pose in which its loops first closed.

    Parameters
    ----------
    newton : callable
        Returns the gaps (m) and the Newton step of the dependent joints, in one array, for poses
        of all b joints, shape (b,) or (N, b).
    free, bound : sequence of int
        Indices of the independent and of the dependent joints.
    first : ndarray, shape (b,)
        Pose of all joints from which the loops are first closed.

    Attributes
    ----------
    home : ndarray, shape (b,)
        The pose in which the loops first closed.
    closed : bool
        Whether the loops close at `home`.
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
            Whether the loops close; False for goals that are not finite or farther than `FARTHEST`
            from the start.
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
        if not longest < FARTHEST:  # also False for nan
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
        """Reach many goals, each along a straight line from its start."""
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
        """Close the loops of many poses; those that do not converge keep their last iterate."""
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
