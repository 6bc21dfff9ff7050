"""Limits of a motion as constraint functions, which are zero at the limit and negative within.

For the optimiser, each limit over all samples is aggregated to one smooth number that is never
below the worst sample (Kreisselmeier-Steinhauser). The final check uses the worst sample of a
dense grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.excitation.capsules import (
    Capsule,
    capsules_of,
    end_points,
    pairs_to_watch,
    segment_distance,
)
from robodyn_ros.excitation.family import Family
from robodyn_ros.excitation.fourier import Basis, Motion
from robodyn_ros.excitation.loop_limits import LoopLimits
from robodyn_ros.keywords import checked_fields
from robodyn_ros.model import Joints, Model
from robodyn_ros.spatial import Array

SHARPNESS = 300.0  # the smooth maximum exceeds the maximum by at most log(N) / SHARPNESS
SHARPNESS_OF_LENGTHS = 2000.0  # the same for lengths, 1/m
LEAST_RANGE = 1e-3  # rad or m, range of a joint that hardly moves, and its largest speed per s


@checked_fields
@dataclass(frozen=True)
class Limits:
    """Limits of an excitation; those that are not given are taken from the model.

    Attributes
    ----------
    position : array-like, shape (n, 2), optional
        Lowest and highest position of each joint, rad or m.
    velocity, acceleration, jerk : array-like, shape (n,), optional
        Largest magnitudes, rad or m per s, s^2 and s^3. Acceleration and jerk have no limits by
        default.
    torque : array-like, shape (n,), optional
        Largest magnitude of the torque predicted by the nominal model, N m or N.
    torque_margin : float
        Fraction of the torque limit that is kept in reserve.
    tool : str, optional
        Link to whose origin the next four limits apply. The default is the last link.
    height : float, optional
        Lowest z of the tool in the root frame, m.
    distance : float, optional
        Least distance of the tool from the root's z axis, m.
    inside, outside : sequence of array-like, shape (2, 3)
        Boxes (lower and upper corner in the root frame, m) inside or outside of which the tool
        must stay.
    self_collision : bool
        Whether self-collisions are avoided, between capsules around the collision geometry.
    floor : float, optional
        Height of a floor that no moving capsule may touch, m.
    gap : float
        Least distance between capsules, m.
    mesh_folders : tuple of Path
        Folders that are searched for meshes.
    """

    position: ArrayLike | None = None
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None
    jerk: ArrayLike | None = None
    torque: ArrayLike | None = None
    torque_margin: float = 0.1
    tool: str | None = None
    height: float | None = None
    distance: float | None = None
    inside: tuple[ArrayLike, ...] = ()
    outside: tuple[ArrayLike, ...] = ()
    self_collision: bool = False
    floor: float | None = None
    gap: float = 0.01
    mesh_folders: tuple[Path, ...] = ()

    def within(self, motion: Motion, joints: Joints) -> Limits:
        """Return limits that also keep each joint within the positions and speeds of a motion.

        Parameters
        ----------
        motion : Motion
            A motion of these joints; what these limits exclude of its range stays excluded.
        joints : Joints
            The robot's joints, to whose limits those default that are not given.

        Raises
        ------
        ValueRangeError
            The motion lies outside of the position limits.
        """
        q, qd = motion[:2]
        half = np.maximum(np.ptp(q, axis=0), LEAST_RANGE) / 2
        middle = (q.min(axis=0) + q.max(axis=0)) / 2
        own = _pairs(self.position, joints)
        usual = _magnitudes('velocity', self.velocity, joints.velocity_limit, joints.n)
        speed = np.maximum(np.abs(qd).max(axis=0), LEAST_RANGE)
        both = np.column_stack([np.maximum(own[:, 0], middle - half),
                                np.minimum(own[:, 1], middle + half)])
        for name, (low, high), (first, last) in zip(joints.joint_names, own, both, strict=True):
            if first >= last:
                raise ValueRangeError(f'position limits of {name}', f'{low:.4g} to {high:.4g}',
                                      'limits within which the other motion lies')
        return replace(self, position=both, velocity=np.minimum(speed, usual))


@dataclass
class Constraints:
    """The limits of one robot.

    Parameters
    ----------
    dynamics : Dynamics or ClosedLoopDynamics
        The nominal robot, with friction whose sign function is smooth.
    limits : Limits
        The limits to keep.

    Attributes
    ----------
    notes : list of str
        Links for which there is no capsule, and why.
    """

    dynamics: Dynamics | ClosedLoopDynamics
    limits: Limits
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check the limits and find the points of the robot to which they refer."""
        model, limits, joints = self.dynamics.model, self.limits, self.dynamics.joints
        n = joints.n
        self.position = _pairs(limits.position, joints)
        self.velocity = _magnitudes('velocity', limits.velocity, joints.velocity_limit, n)
        self.acceleration = _magnitudes('acceleration', limits.acceleration, np.inf, n)
        self.jerk = _magnitudes('jerk', limits.jerk, np.inf, n)
        torque = _magnitudes('torque', limits.torque, joints.effort_limit, n)
        if not 0 <= limits.torque_margin < 1:
            raise ValueRangeError('torque_margin', limits.torque_margin, '0 <= margin < 1')
        self.torque = torque * (1 - limits.torque_margin)
        self.tool = limits.tool or tip_of(model)
        model.link_frame(self.tool)
        self.capsules: list[Capsule] = []
        self.pairs: list[tuple[int, int]] = []
        if limits.self_collision or limits.floor is not None:
            self.capsules, left = capsules_of(model, limits.mesh_folders)
            self.notes += [f'no capsule for link {text}' for text in left]
            if limits.self_collision:
                self.pairs = pairs_to_watch(model, self.dynamics, self.capsules, limits.gap)
        self.points = ((self.tool, (0.0, 0.0, 0.0)), *end_points(self.capsules))
        boxes = (*limits.inside, *limits.outside)
        for box in boxes:
            array = np.asarray(box, np.float64)
            if array.shape != (2, 3) or (array[0] >= array[1]).any():
                raise ValueRangeError('box', np.asarray(box).tolist(),
                                      'a lower and a higher corner, shape (2, 3)')
        self.loops = None if isinstance(self.dynamics, Dynamics) else LoopLimits(self.dynamics)
        self._about_points = bool(boxes or self.capsules or limits.height is not None
                                  or limits.distance is not None)

    def stay(self, motion: Motion) -> bool:
        """Return whether closed loops, if any, close and do not turn singular."""
        return self.loops is None or self.loops.stay(motion.q)

    def speeds(self) -> Array:
        """Return a fast speed of every joint, dependent ones included, rad/s or m/s."""
        model, own = self.dynamics.model, dict(zip(self.dynamics.joint_names, self.velocity,
                                                   strict=True))
        speed = np.array([own.get(name, usual) for name, usual in zip(
            model.joint_names, model.velocity_limit, strict=True)])
        return np.where(np.isfinite(speed), speed, 1.0)

    def families(self, motion: Motion, torque: Array) -> Iterator[Family]:
        """Yield every limit at a motion, with its derivatives."""
        for order, (name, bound) in enumerate((
                ('velocity', self.velocity), ('acceleration', self.acceleration),
                ('jerk', self.jerk)), start=1):
            for j in map(int, np.flatnonzero(np.isfinite(bound))):
                values = motion[order][:, j]
                yield Family(f'{name} of {self.dynamics.joint_names[j]}',
                             np.abs(values) / bound[j] - 1, j, (order, 1 / bound[j]))
        for j, joint in enumerate(self.dynamics.joint_names):
            low, high = self.position[j]
            if np.isfinite(high - low):
                half = max((high - low) / 2, 1e-9)
                yield Family(f'position of {joint}', np.abs(motion.q[:, j] - (low + high) / 2)
                             / half - 1, j, (0, 1 / half))
            if np.isfinite(self.torque[j]):
                yield Family(f'torque of {joint}', np.abs(torque[:, j]) / self.torque[j] - 1, j,
                             torque=np.sign(torque[:, j]) / self.torque[j])
        if self._about_points:
            yield from self._point_families(self.dynamics.points(motion.q, self.points))
        if self.loops is not None:
            for name, values, order, slopes in self.loops.limits(motion.q, motion.qd):
                yield Family(name, values, every=(order, slopes))

    def _point_families(self, points: Array) -> Iterator[Family]:
        limits, tool = self.limits, points[:, 0]
        if limits.height is not None:
            slope = np.zeros_like(points)
            slope[:, 0, 2] = -1.0
            yield Family(f'height of {self.tool}', limits.height - tool[:, 2], points=slope)
        if limits.distance is not None:
            away = np.linalg.norm(tool[:, :2], axis=1)
            slope = np.zeros_like(points)
            slope[:, 0, :2] = -tool[:, :2] / np.maximum(away, 1e-9)[:, None]
            yield Family(f"distance of {self.tool} from the base's axis",
                         limits.distance - away, points=slope)
        for boxes, sign, word in ((limits.inside, 1.0, 'inside'),
                                  (limits.outside, -1.0, 'outside')):
            for box in boxes:
                yield self._box(points, np.asarray(box, np.float64), sign, word)
        ends = points[:, 1:].reshape(len(points), -1, 2, 3)
        for i, j in self.pairs:
            yield self._pair(points, ends, i, j)
        if limits.floor is not None:
            for k, capsule in enumerate(self.capsules):
                if self.dynamics.model.link_frames[capsule.link].body >= 1:
                    lowest = np.argmin(ends[:, k, :, 2], axis=1)
                    slope = np.zeros_like(points)
                    slope[np.arange(len(points)), 1 + 2 * k + lowest, 2] = -1.0
                    values = limits.floor + capsule.radius + limits.gap \
                        - ends[:, k, :, 2].min(axis=1)
                    yield Family(f'floor under {capsule.link}', values, points=slope)

    def _box(self, points: Array, box: Array, sign: float, word: str) -> Family:
        centre, half = box.mean(axis=0), (box[1] - box[0]) / 2
        scaled = np.abs(points[:, 0] - centre) - half
        worst = np.argmax(scaled, axis=1)
        rows = np.arange(len(points))
        slope = np.zeros_like(points)
        slope[rows, 0, worst] = sign * np.sign(points[rows, 0, worst] - centre[worst])
        return Family(f'{self.tool} {word} the box {np.round(box, 3).tolist()}',
                      sign * scaled[rows, worst], points=slope)

    def _pair(self, points: Array, ends: Array, i: int, j: int) -> Family:
        a, b = ends[:, i], ends[:, j]
        distance, on_a, on_b = segment_distance(a, b)
        nearest_a = a[:, 0] + on_a[:, None] * (a[:, 1] - a[:, 0])
        nearest_b = b[:, 0] + on_b[:, None] * (b[:, 1] - b[:, 0])
        direction = (nearest_a - nearest_b) / np.maximum(distance, 1e-9)[:, None]
        slope = np.zeros_like(points)
        for k, weight, sign in ((2 * i, 1 - on_a, -1.0), (2 * i + 1, on_a, -1.0),
                                (2 * j, 1 - on_b, 1.0), (2 * j + 1, on_b, 1.0)):
            slope[:, 1 + k] += sign * weight[:, None] * direction
        first, second = self.capsules[i], self.capsules[j]
        return Family(f'{first.link} against {second.link}',
                      first.radius + second.radius + self.limits.gap - distance, points=slope)

    def smooth(self, basis: Basis, motion: Motion) -> tuple[Array, Array]:
        """Return the smooth maximum of every limit (m,) and its gradient (m, 1 + free, n)."""
        torque = self.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
        values, gradients = [], []
        size, n = motion.q.shape
        torques: list[tuple[int, Array]] = []
        for family in self.families(motion, torque):
            worst = float(family.values.max())
            sharpness = SHARPNESS if family.points is None else SHARPNESS_OF_LENGTHS
            weight = np.exp(sharpness * (family.values - worst))
            values.append(worst + np.log(weight.sum()) / sharpness)
            weight /= weight.sum()
            if family.linear is not None:
                order, factor = family.linear
                middle = self.position[family.joint].mean() if order == 0 else 0.0
                slope = np.zeros((size, n))
                slope[:, family.joint] = weight * factor * np.sign(
                    motion[order][:, family.joint] - middle)
                zero = np.zeros((size, n))
                parts = [slope if k == order else zero for k in range(4)]
                gradients.append(basis.pull(*parts))
            elif family.torque is not None:
                torques.append((len(gradients), self._torque_slope(family, weight, size)))
                gradients.append(np.zeros((1 + basis.free, n)))
            elif family.every is not None:
                assert self.loops is not None
                order, slopes = family.every
                zero = np.zeros((size, n))
                gradients.append(basis.pull(*self.loops.pull(
                    motion, order, slopes * weight[:, None]), zero))
            else:
                assert family.points is not None
                heavy = weight > 1e-9
                slope = np.zeros((size, n))
                slope[heavy] = self.dynamics.points_pullback(
                    motion.q[heavy], family.points[heavy] * weight[heavy, None, None], self.points)
                zero = np.zeros((size, n))
                gradients.append(basis.pull(slope, zero, zero))
        for place, cotangent in torques:
            pulled = self.dynamics.inverse_dynamics_pullback(motion.q, motion.qd, motion.qdd,
                                                             cotangent)
            gradients[place] = basis.pull(pulled[:, 0], pulled[:, 1], pulled[:, 2])
        return np.array(values), np.array(gradients)

    def _torque_slope(self, family: Family, weight: Array, size: int) -> Array:
        assert family.torque is not None
        cotangent = np.zeros((size, self.dynamics.n))
        cotangent[:, family.joint] = weight * family.torque
        return cotangent

    def worst(self, motion: Motion) -> dict[str, float]:
        """Return the worst value of every limit over the samples, by name; see `Family`."""
        if self.loops is not None and not self.loops.close(motion.q):
            return {'closure of the loops': np.inf}
        torque = self.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
        return {family.name: float(family.values.max())
                for family in self.families(motion, torque)}


def tip_of(model: Model) -> str:
    """Return the last link of the longest chain, where a tool is mounted."""
    description = model.description
    tip, longest = description.root, 0
    for joint, depth in joints_parent_first(description.root, description.joints):
        if depth >= longest:
            tip, longest = joint.child, depth
    return tip


def _pairs(given: ArrayLike | None, joints: Joints) -> Array:
    pairs = np.column_stack([joints.lower, joints.upper]) if given is None else np.asarray(
        given, np.float64)
    if pairs.shape != (joints.n, 2) or (pairs[:, 0] >= pairs[:, 1]).any():
        raise ValueRangeError('position limits', np.asarray(given).tolist(),
                              f'({joints.n}, 2), the lower below the upper')
    return pairs


def _magnitudes(name: str, given: ArrayLike | None, usual: ArrayLike, n: int) -> Array:
    values = np.broadcast_to(np.asarray(usual if given is None else given, np.float64), (n,))
    if values.shape != (n,) or not (values > 0).all():
        raise ValueRangeError(f'{name} limits', values.tolist(), f'{n} numbers above 0')
    return values.copy()


