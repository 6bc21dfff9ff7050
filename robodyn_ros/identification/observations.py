"""Observation matrices: parallel decimation of regressor and torque (Kolyubin 5.18-5.19).

Each row of the robot (a joint's torque) is compressed into a triangular factor of ``[W, tau]``,
which is all that least squares needs; the matrices themselves are kept only where they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from robodyn_ros.description import Array
from robodyn_ros.errors import LogError
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.signals import Segment

KEEP_BYTES = 1 << 30  # of observation matrices; what is beyond is computed again when needed
OUTPUTS = 64  # decimated samples computed at a time
TOGETHER = 12  # of them in one matrix product
HALF_WIDTH = 1.65  # of the parallel filter, over its cutoff
LEAST_FAR = 0.5  # of a joint's fast samples that a guard by default leaves
DECIMATED_PER_BAND = 3.0  # cutoff of the parallel filter, of the motion's band (5.5.2: 2 to 5)


@dataclass(eq=False)
class Block:
    """Decimated samples in a row.

    W (M, rows, p), the torque that it must explain (M, rows), which rows count, velocities, and
    the torque as it was measured.
    """

    t: Array
    w: Array
    tau: Array
    used: NDArray[np.bool_]
    qd: Array
    measured: Array


class Observations:
    """What the least squares see of some segments.

    Parameters
    ----------
    linear : LinearModel
        Of the robot.
    segments : list of Segment
        Motions and torques.
    cutoff : float, optional
        Hz, of the parallel filter; 0 filters and decimates nothing; default: by the motion's band.
    slow : ndarray, shape (n,), optional
        Below this speed (rad/s, m/s) a joint's rows do not count.
    guard : float, optional
        s before and after a slow sample in which a joint's rows do not count either; default:
        where the parallel filter sees it, less where half of the fast samples would be lost.
    torques_of : ndarray of bool, shape (n,), optional
        Joints whose torques count.
    known : dict of str to float, optional
        Parameters of the linear model that are known; their torque is taken off, their column
        left empty.
    """

    def __init__(self, linear: LinearModel, segments: list[Segment], *,
                 cutoff: float | None = None, slow: Array | None = None,
                 guard: float | None = None,
                 torques_of: NDArray[np.bool_] | None = None,
                 known: dict[str, float] | None = None):
        self.known = {linear.names.index(name): value for name, value in (known or {}).items()}
        self.linear, self.segments = linear, segments
        n = linear.joints.n
        self.slow, self.guard = np.zeros(n) if slow is None else slow, guard
        self.torques_of = np.ones(n, bool) if torques_of is None else torques_of
        self._rest = linear.rest()
        self.cutoffs = [DECIMATED_PER_BAND * s.band if cutoff is None else cutoff
                        for s in segments]
        self.steps = [max(1, int(0.2 * s.rate / c)) if c else 1
                      for s, c in zip(segments, self.cutoffs, strict=True)]
        size = sum(len(s.t) // d for s, d in zip(segments, self.steps, strict=True))
        self._kept: dict[int, Block] | None = {} if \
            size * linear.rows * len(linear.columns) * 8 < KEEP_BYTES else None

    def __len__(self) -> int:
        """Number of segments."""
        return len(self.segments)

    def torque(self, k: int) -> Array:
        """Torque of segment k that the parameters must explain, shape (M, rows)."""
        segment, linear = self.segments[k], self.linear
        tau = segment.tau if segment.extra is None else segment.tau - segment.extra
        if self._rest is not None:
            tau = tau - self._rest.inverse_dynamics(segment.q, segment.qd, segment.qdd)
        if linear.kind in ('model2', 'model3'):
            if segment.tau_motor is None:
                raise LogError('has no motor torques', source=segment.source,
                               valid=f'tau_motor, which {linear.kind} needs')
            if linear.kind == 'model3':
                return segment.tau_motor - segment.tau
            return np.concatenate([tau, segment.tau_motor], axis=1)
        return tau

    def measured(self, k: int) -> Array:
        """Torque of segment k as it was measured, shape (M, rows)."""
        segment = self.segments[k]
        if self.linear.kind == 'model3':
            return self.torque(k)
        if self.linear.kind == 'model2' and segment.tau_motor is not None:
            return np.concatenate([segment.tau, segment.tau_motor], axis=1)
        return segment.tau

    def block(self, k: int) -> Block:
        """Return the decimated observations of segment k."""
        if self._kept is not None and k in self._kept:
            return self._kept[k]
        parts = list(self._decimated(k))
        block = Block(*(np.concatenate([getattr(part, name) for part in parts])
                        for name in ('t', 'w', 'tau', 'used', 'qd', 'measured')))
        if self._kept is not None:
            self._kept[k] = block
        return block

    def blocks(self) -> Iterator[Block]:
        """Every segment's observations, one after the other."""
        return (self.block(k) for k in range(len(self)))

    def filtered(self, k: int, columns: Callable[[Array, Array], Array]) -> Array:
        """Columns that are a function of the state, decimated as the regressor of segment k.

        Parameters
        ----------
        k : int
            Segment.
        columns : callable
            ``columns(q, qd)`` of shape (M, rows, f) for states of shape (M, n).
        """
        segment = self.segments[k]
        return np.concatenate([decimate(columns(segment.q[part], segment.qd[part]))
                               for part, _, decimate in self._pieces(k)])

    def _decimated(self, k: int) -> Iterator[Block]:
        segment, tau, measured = self.segments[k], self.torque(k), self.measured(k)
        far = self._far_from_slow(k) if self.slow.any() else None
        for part, chosen, decimate in self._pieces(k):
            w = self.linear.regressor(segment.q[part], segment.qd[part], segment.qdd[part],
                                      loaded=segment.loaded)
            qd = decimate(segment.qd[part])
            used = np.broadcast_to(self.torques_of, qd.shape)
            if far is not None:
                used = used & (np.abs(qd) > self.slow) & far[chosen]
            target = tau[part]
            for column, value in self.known.items():
                target = target - w[:, :, column] * value
                w[:, :, column] = 0.0
            yield Block(segment.t[chosen], decimate(w), decimate(target),
                        np.tile(used, (1, self.linear.rows // used.shape[1])), qd,
                        decimate(measured[part]))

    def _far_from_slow(self, k: int) -> NDArray[np.bool_]:
        """When each joint of segment k is fast throughout the guard, shape (M, n)."""
        segment, guard = self.segments[k], self.guard
        if guard is None:
            guard = HALF_WIDTH / self.cutoffs[k] if self.steps[k] > 1 else 0.0
        slow = np.abs(segment.qd) <= self.slow
        width = int(np.ceil(guard * segment.rate))
        far = _apart(slow, width)
        while self.guard is None and width:
            poor = far.sum(axis=0) < LEAST_FAR * (~slow).sum(axis=0)
            width //= 2
            far[:, poor] = _apart(slow[:, poor], width)
        return far

    def _pieces(self, k: int) -> Iterator[tuple[slice, Any, Callable[[Array], Array]]]:
        """(samples, where decimated ones lie, filter) of segment k, a few at a time."""
        segment, step, cutoff = self.segments[k], self.steps[k], self.cutoffs[k]
        size = len(segment.t)
        half = int(HALF_WIDTH * segment.rate / cutoff) if step > 1 else 0
        if size <= 2 * half + 4 * step:
            raise LogError(f'{segment.t[-1] - segment.t[0]:.3g} s are too short for a parallel '
                           f'filter at {cutoff:.3g} Hz', source=segment.source)
        taps = np.ones(1) if step == 1 else scipy.signal.firwin(
            2 * half + 1, cutoff, fs=segment.rate)
        outputs = OUTPUTS if step > 1 else 4096
        centres = np.arange(half, size - half, step)
        for start in range(0, len(centres), outputs):
            chosen = centres[start:start + outputs]
            first, last = chosen[0] - half, chosen[-1] + half + 1
            yield slice(first, last), chosen, _as_is if step == 1 else _Decimator(
                taps, chosen - first - half, last - first)

    def prediction(self, k: int, theta: Array) -> Array:
        """Torque of segment k at full rate by some parameters, shape (M, rows)."""
        segment = self.segments[k]
        return np.concatenate([
            self.linear.regressor(segment.q[a:a + 4096], segment.qd[a:a + 4096],
                                  segment.qdd[a:a + 4096], loaded=segment.loaded) @ theta
            for a in range(0, len(segment.t), 4096)])


def _apart(marks: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Which samples have no mark within a number of samples, column by column."""
    count = np.vstack([np.zeros((1, marks.shape[1]), np.int64), np.cumsum(marks, axis=0)])
    here = np.arange(len(marks))
    return np.asarray(count[np.minimum(here + width + 1, len(marks))]
                      == count[np.maximum(here - width, 0)])


def _as_is(values: Array) -> Array:
    return values


class _Decimator:
    """A zero-phase FIR filter that computes only the outputs that stay."""

    def __init__(self, taps: Array, starts: Any, size: int):
        self._parts = []
        for first in range(0, len(starts), TOGETHER):
            some = starts[first:first + TOGETHER]
            rows = slice(int(some[0]), int(some[-1]) + len(taps))
            matrix = np.zeros((len(some), rows.stop - rows.start))
            for row, start in zip(matrix, some - some[0], strict=True):
                row[start:start + len(taps)] = taps
            self._parts.append((rows, matrix))
        assert self._parts[-1][0].stop <= size

    def __call__(self, values: Array) -> Array:
        flat = values.reshape(len(values), -1)
        return np.concatenate([matrix @ flat[rows] for rows, matrix in self._parts]
                              ).reshape(-1, *values.shape[1:])


def factors_of(block: Block, part: slice = slice(None)) -> Array:
    """Triangular factors of ``[W, tau]``, one for each row of the robot: (rows, p + 1, p + 1)."""
    w, tau, used = block.w[part], block.tau[part], block.used[part]
    rows, p = w.shape[1:]
    factors = np.zeros((rows, p + 1, p + 1))
    for row in range(rows):
        rows_used = used[:, row]
        felt = np.append(np.flatnonzero(w[:, row].any(axis=0)), p)
        data = np.column_stack([w[rows_used, row][:, felt[:-1]], tau[rows_used, row]])
        if len(data):
            small = triangular(data)
            factors[row][np.ix_(np.arange(len(small)), felt)] = small
    return factors


def triangular(rows: Array) -> Array:
    """R of the QR factorisation."""
    return np.asarray(np.linalg.qr(rows, mode='r'))


def merge(factors: list[Array]) -> Array:
    """Factors of several sets of rows as those of one."""
    if len(factors) == 1:
        return factors[0]
    return triangular(np.concatenate(factors, axis=1))
