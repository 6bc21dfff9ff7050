"""Observation matrices: decimated regressor and torque of each uninterrupted motion.

For each row of the robot (the torque of a joint), least squares needs only the triangular factor
of ``[W, tau]``. The matrices themselves are kept only if they fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.description.ripple import RippleLine
from robodyn_ros.errors import LogError
from robodyn_ros.identification.decimation import LEAST_OUTPUTS, Decimation
from robodyn_ros.identification.friction import FrictionStates
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.ripple import ripple_torque
from robodyn_ros.identification.signals import Segment
from robodyn_ros.spatial import Array

KEEP_BYTES = 1 << 30  # limit of observation matrices in memory; larger ones are recomputed
OUTPUTS = 512  # decimated samples that are computed at a time
STATES = 4096  # states of which the regressor is evaluated at a time
LEAST_FAR = 0.5  # smallest fraction of a joint's fast samples that the automatic guard keeps


@dataclass(eq=False)
class Block:
    """Consecutive decimated samples.

    Attributes
    ----------
    t : ndarray, shape (M,)
        Times, s.
    w : ndarray, shape (M, rows, p)
        Observation matrices.
    tau : ndarray, shape (M, rows)
        Torques that ``w`` must explain, N m or N.
    used : ndarray of bool, shape (M, rows)
        Which rows are used.
    qd : ndarray, shape (M, n)
        Velocities, rad/s or m/s.
    measured : ndarray, shape (M, rows)
        Torques as measured, N m or N.
    """

    t: Array
    w: Array
    tau: Array
    used: NDArray[np.bool_]
    qd: Array
    measured: Array


class Observations:
    """The equations of least squares for some segments.

    Parameters
    ----------
    linear : LinearModel
        The linear model of the robot.
    segments : list of Segment
        Motions and torques.
    decimation : float
        Cutoff of the parallel filter, Hz; 0 means no filter.
    slow : ndarray, shape (n,), optional
        Samples of a joint below this speed (rad/s, m/s) are not used.
    guard : float, optional
        Time in s around a slow sample in which a joint's samples are not used either. The default
        is the reach of the parallel filter, or less if more than half of the fast samples would
        be lost.
    torques_of : ndarray of bool, shape (n,), optional
        Joints whose torques are used.
    known : dict of str to float, optional
        Known parameters of the linear model; their torque is subtracted, their column is zero.

    Raises
    ------
    LogError
        A segment is too short for the parallel filter, or has no motor torques that are needed.
    """

    def __init__(self, linear: LinearModel, segments: list[Segment], *,
                 decimation: float = 0.0, slow: Array | None = None,
                 guard: float | None = None,
                 torques_of: NDArray[np.bool_] | None = None,
                 known: dict[str, float] | None = None):
        self.known = {linear.names.index(name): value for name, value in (known or {}).items()}
        self.linear, self.segments, self.decimation = linear, segments, decimation
        n = linear.joints.n
        self.slow, self.guard = np.zeros(n) if slow is None else slow, guard
        self.torques_of = np.ones(n, bool) if torques_of is None else torques_of
        self._rest = linear.not_estimated()
        self._filters = [Decimation.at(segment.rate, decimation, segment.highest, len(segment.t))
                         for segment in segments]
        for segment, one in zip(segments, self._filters, strict=True):
            if one.count(len(segment.t)) < LEAST_OUTPUTS:
                raise LogError(
                    f'{segment.t[-1] - segment.t[0]:.3g} s are too short for a parallel filter at '
                    f'{decimation:.3g} Hz', source=segment.source,
                    valid='a longer log or a higher cutoff')
        size = sum(one.count(len(s.t)) for s, one in zip(segments, self._filters, strict=True))
        self._kept: dict[int, Block] | None = {} if \
            size * linear.rows * len(linear.columns) * 8 < KEEP_BYTES else None
        self._friction: dict[int, FrictionStates] = {}

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.segments)

    def changed(self, segments: list[Segment] | None = None,
                decimation: float | None = None,
                linear: LinearModel | None = None) -> Observations:
        """Return observations with other segments, parallel filter or linear model."""
        return Observations(linear or self.linear,
                            self.segments if segments is None else segments,
                            decimation=self.decimation if decimation is None else decimation,
                            slow=self.slow, guard=self.guard, torques_of=self.torques_of,
                            known={self.linear.names[k]: v for k, v in self.known.items()})

    def with_ripple(self, ripple: Mapping[int, tuple[RippleLine, ...]]) -> Observations:
        """Return the same observations with a linear model that has this torque ripple."""
        old = self.linear
        return self.changed(linear=LinearModel(
            old.whole, old.kind, friction=replace(old.friction, ripple=ripple),
            joints=[old.model.body_joints[body] for body in old.bodies], payload=old.payload))

    def torque(self, k: int) -> Array:
        """Return the torque of segment k that the parameters must explain, shape (M, rows).

        Raises
        ------
        LogError
            The segment has no motor torques, and the kind of identification needs them.
        """
        segment, linear = self.segments[k], self.linear
        tau = segment.tau if segment.extra is None else segment.tau - segment.extra
        tau = tau - self.ripple(k)
        if self._rest is not None:
            tau = tau - self._rest.inverse_dynamics(segment.q, segment.qd, segment.qdd)
        if linear.kind in ('links_and_drives', 'drives'):
            if segment.tau_motor is None:
                raise LogError('has no motor torques', source=segment.source,
                               valid=f'tau_motor, which the kind {linear.kind} needs')
            if linear.kind == 'drives':
                return segment.tau_motor - segment.tau
            return np.concatenate([tau, segment.tau_motor], axis=1)
        return tau

    def ripple(self, k: int) -> Array:
        """Return the torque ripple of the linear model in segment k, shape (M, n)."""
        return ripple_torque(self.linear.model, self.linear.friction.ripple, self.segments[k].q)

    def measured(self, k: int) -> Array:
        """Return the torque of segment k as it was measured, shape (M, rows)."""
        segment = self.segments[k]
        if self.linear.kind == 'drives':
            return self.torque(k)
        if self.linear.kind == 'links_and_drives' and segment.tau_motor is not None:
            return np.concatenate([segment.tau, segment.tau_motor], axis=1)
        return segment.tau

    def friction(self, k: int) -> FrictionStates:
        """Return the directions and temperatures of friction in segment k."""
        if k not in self._friction:
            one = self.segments[k]
            self._friction[k] = self.linear.friction_states(one.q, one.qd, one.rate,
                                                            one.temperature)
        return self._friction[k]

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
        """Yield the observations of each segment."""
        return (self.block(k) for k in range(len(self)))

    def _decimated(self, k: int) -> Iterator[Block]:
        """Yield the observations of segment k in parts that need little memory."""
        segment, one = self.segments[k], self._filters[k]
        tau, measured, friction = self.torque(k), self.measured(k), self.friction(k)
        far = self.far_from_slow(k) if self.slow.any() else None
        centres = one.centres(len(segment.t))
        outputs = OUTPUTS if one.step > 1 else STATES
        for start in range(0, len(centres), outputs):
            chosen = centres[start:start + outputs]
            part = slice(chosen[0] - one.half, chosen[-1] + one.half + 1)
            w = self._matrices(segment, part, one, friction[part])
            qd = one(segment.qd[part])
            used = np.broadcast_to(self.torques_of, qd.shape) & segment.measured[chosen, None]
            if far is not None:
                used = used & (np.abs(qd) > self.slow) & far[chosen]
            target = one(tau[part])
            for column, value in self.known.items():
                target = target - w[:, :, column] * value
                w[:, :, column] = 0.0
            yield Block(segment.t[chosen], w, target,
                        np.tile(used, (1, self.linear.rows // used.shape[1])), qd,
                        one(measured[part]))

    def _matrices(self, segment: Segment, part: slice, one: Decimation,
                  friction: FrictionStates) -> Array:
        """Return the decimated regressor; friction, which jumps, is filtered at the full rate."""
        coarse = slice(part.start, part.stop, one.stride)
        few = self.linear.regressor(segment.q[coarse], segment.qd[coarse], segment.qdd[coarse],
                                    loaded=segment.loaded, friction=friction[::one.stride],
                                    extra=self._extra(segment, coarse))
        w, columns = one(few, one.stride), self.linear.friction_columns()
        if one.stride == 1 or not columns:
            return w
        loads = self.linear.loads(few, self._extra(segment, coarse))
        if loads is not None:  # they are smooth
            at = np.arange(part.start, part.stop)
            loads = np.column_stack([np.interp(at, at[::one.stride], x) for x in loads.T])
        if self.linear.loops is None:
            for column, rows, values in self.linear.friction_terms(segment.qd[part], friction,
                                                                   loads):
                filtered = one(values)
                for row, factor in rows:
                    w[:, row, column] = factor * filtered
            return w
        w[:, :, columns] = one(self.linear.friction_regressor(
            segment.q[part], segment.qd[part], friction))
        return w

    @staticmethod
    def _extra(segment: Segment, part: slice) -> Array | None:
        return None if segment.extra is None else segment.extra[part]

    def far_from_slow(self, k: int, reach: float | None = None) -> NDArray[np.bool_]:
        """Return where each joint of segment k is fast within the whole guard, shape (M, n).

        Parameters
        ----------
        k : int
            Index of the segment.
        reach : float, optional
            Time that the parallel filter reaches to either side, s.
        """
        segment, guard = self.segments[k], self.guard
        if guard is None:
            guard = self._filters[k].half / segment.rate if reach is None else reach
        slow = np.abs(segment.qd) <= self.slow
        width = int(np.ceil(guard * segment.rate))
        far = apart(slow, width)
        while self.guard is None and width:
            poor = far.sum(axis=0) < LEAST_FAR * (~slow).sum(axis=0)
            width //= 2
            far[:, poor] = apart(slow[:, poor], width)
        return far

    def prediction(self, k: int, theta: Array) -> Array:
        """Return the torque of segment k predicted by parameters, at full rate, (M, rows)."""
        size = len(self.segments[k].t)
        return np.concatenate([self.regressor(k, slice(a, a + STATES)) @ theta
                               for a in range(0, size, STATES)])

    def regressor(self, k: int, places: slice | NDArray[np.int_]) -> Array:
        """Return the regressor at some samples of segment k, without the filter, (N, rows, p)."""
        segment = self.segments[k]
        extra = None if segment.extra is None else segment.extra[places]
        return self.linear.regressor(segment.q[places], segment.qd[places], segment.qdd[places],
                                     loaded=segment.loaded, friction=self.friction(k)[places],
                                     extra=extra)


def apart(marks: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Return which samples have no mark within a number of samples, column by column."""
    count = np.vstack([np.zeros((1, marks.shape[1]), np.int64), np.cumsum(marks, axis=0)])
    here = np.arange(len(marks))
    return np.asarray(count[np.minimum(here + width + 1, len(marks))]
                      == count[np.maximum(here - width, 0)])


def factors_of(block: Block, part: slice = slice(None)) -> Array:
    """Return triangular factors of ``[W, tau]`` for each row, shape (rows, p + 1, p + 1)."""
    w, tau, used = block.w[part], block.tau[part], block.used[part]
    rows, p = w.shape[1:]
    factors = np.zeros((rows, p + 1, p + 1))
    for row in range(rows):
        rows_used = used[:, row]
        nonzero = np.append(np.flatnonzero(w[:, row].any(axis=0)), p)
        data = np.column_stack([w[rows_used, row][:, nonzero[:-1]], tau[rows_used, row]])
        if len(data):
            small = triangular(data)
            factors[row][np.ix_(np.arange(len(small)), nonzero)] = small
    return factors


def triangular(rows: Array) -> Array:
    """Return R of the QR factorisation, shape (min(N, p), p), for N rows of p numbers."""
    return np.asarray(np.linalg.qr(rows, mode='r'))


def merge(factors: list[Array]) -> Array:
    """Return the factors of several sets of rows as those of one set."""
    if len(factors) == 1:
        return factors[0]
    return triangular(np.concatenate(factors, axis=1))
