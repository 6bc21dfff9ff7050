"""The equations from which a payload is estimated beside a known model of the robot.

The unknowns are the errors of the robot's base parameters, the changes of its friction under the
load, and the ten inertial parameters of the payload in its link's frame. A joint that moves gives
one equation per sample. A joint with friction that rests gives one equation for each rest, since
static friction may hold any torque up to its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.efforts import complete_torque, sensed_model
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.decimation import Decimation
from robodyn_ros.identification.filter_choice import DECIMATED_PER_BAND, NOISE_WIDTH, first_shape
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import (
    LEAST_FAR,
    Block,
    Observations,
    apart,
)
from robodyn_ros.identification.pieces import Piece, Spectrum
from robodyn_ros.identification.settings import FilterSettings
from robodyn_ros.identification.signals import (
    Filtering,
    Segment,
    design,
    motion_spectrum,
    segments_of,
)
from robodyn_ros.spatial import Array, transform_inertial

SLOW = 0.1  # fraction of a joint's largest speed below which its friction counts as unknown
SLOWEST = 0.005  # rad/s or m/s; a joint below it rests
LEAST_TRAVEL = 0.01  # rad or m; shorter motions, as in settling, do not overcome static friction
SHARP = 1e-4  # rad/s or m/s, width of the direction of friction of moving joints
LEAST_REST = 0.3  # s, shortest rest that gives an equation
SAMPLES = 40  # states of a rest at which the regressor is evaluated
LEAST_FRICTION = 0.02  # smallest friction of a joint, as a fraction of the range of its effort
INDEPENDENT = 10.0  # Hz, rate at which samples of the noise during a rest are independent


@dataclass(frozen=True, eq=False)
class Equations:
    """``block.w @ x = block.tau`` and ``rest_rows @ x = rest_values``, in u unknowns.

    Attributes
    ----------
    names : tuple of str
        Names of the u unknowns; the payload's ten come last.
    errors : int
        Number of base parameters of the robot, which come first.
    changes : tuple of str
        Terms of friction that may change under the load, such as ``Fcl``, which follow.
    friction : ndarray, shape (len(changes),)
        Size of the friction at each of them, in N m or N per unit of the term.
    blocks : tuple of Block
        Samples of joints that move.
    rest_rows, rest_values, rest_deviation : ndarray, shape (r, u), (r,), (r,)
        Means of rests, and their standard deviations, N m or N.
    torque : ndarray, shape (n,)
        Root mean square of each joint's torque, N m or N.
    band, rate : float
        Highest frequency of the motion and samples a second, Hz.
    """

    names: tuple[str, ...]
    errors: int
    changes: tuple[str, ...]
    friction: Array
    blocks: tuple[Block, ...]
    rest_rows: Array
    rest_values: Array
    rest_deviation: Array
    torque: Array
    band: float
    rate: float


def equations_of(robot: RobotDynamics, pieces: Sequence[Piece], link: str, *,
                 with_errors: bool, notes: list[str]) -> Equations:
    """Return the equations of some pieces of logs.

    Parameters
    ----------
    robot : RobotDynamics
        The known robot.
    pieces : sequence of Piece
        Pieces with and without payload, whose torques are those on the link's side.
    link : str
        The link that carries the payload.
    with_errors : bool
        Whether errors of the robot's base parameters are unknowns.
    notes : list of str
        Remarks are added to it.

    Raises
    ------
    LogError
        The pieces are too short to be filtered.
    """
    spectrum = motion_spectrum(pieces)
    cutoff, order = design(pieces, spectrum, FilterSettings())
    decimation = DECIMATED_PER_BAND * spectrum.band
    segments = segments_of(pieces, Filtering(spectrum.band, cutoff, order, decimation,
                                             decimation), notes)
    has_friction = robot.model.effort.friction != 'removed'
    model = sensed_model(robot.model)
    shape = FrictionShape('none')
    if has_friction:
        shape = first_shape(robot, segments, spectrum, cutoff)
    linear = LinearModel(robot.with_model(model), 'links' if robot.model.effort.rotors == 'removed'
                         else 'lumped', friction=shape, payload=link)
    slow = _slow_speeds(segments, spectrum, cutoff)
    sizes = _friction_sizes(robot, segments, slow) if has_friction else np.zeros(linear.rows)
    names, maps, errors = _unknowns(linear, link, with_errors)
    torques = [_unexplained(robot, segment) for segment in segments]
    moving = [replace(segment, tau=y[0]) for segment, y in zip(segments, torques, strict=True)]
    observations = Observations(linear, moving, decimation=decimation)
    moves = [_moves(segment, slow) if has_friction else np.ones(segment.q.shape, bool)
             for segment in segments]
    blocks = tuple(replace(block, w=block.w @ maps[segment.loaded],
                           used=block.used & _inside(segment, mask, block.t, decimation))
                   for block, segment, mask in zip(observations.blocks(), segments, moves,
                                                   strict=True))
    rests = [rest for segment, y, mask in zip(segments, torques, moves, strict=True)
             for rest in _rests(linear, segment, y[1], mask, sizes, maps[segment.loaded])]
    terms = tuple(linear.columns[k].term for k in linear.friction_columns())
    return Equations(
        names, errors, terms, _sizes_of_terms(linear, segments, sizes),
        blocks, np.array([r[0] for r in rests]).reshape(-1, len(names)),
        np.array([r[1] for r in rests]), np.array([r[2] for r in rests]),
        np.sqrt(np.mean([np.mean(s.tau**2, axis=0) for s in segments], axis=0)),
        spectrum.band, min(s.rate for s in segments))


def _unknowns(linear: LinearModel, link: str, with_errors: bool,
              ) -> tuple[tuple[str, ...], dict[bool, Array], int]:
    """Return the unknowns' names, and matrices that map them to the linear model's parameters.

    There is one such matrix, shape (p, u), for pieces without and one for pieces with the payload.
    Last, the number of unknowns that are errors of base parameters.
    """
    robot = LinearModel(linear.whole, linear.kind, friction=linear.friction)
    base = base_parameters(robot) if with_errors else None
    kept = list(base.kept) if base is not None else []
    columns = linear.friction_columns()
    frame = linear.model.link_frame(link)
    to_body = np.array([transform_inertial(unit, frame.rotation, frame.translation)
                        for unit in np.eye(10)]).T
    b, f, p = len(kept), len(columns), len(linear.columns)
    without = np.zeros((p, b + f + 10))
    without[kept, range(b)] = 1.0
    loaded = without.copy()
    loaded[columns, range(b, b + f)] = 1.0
    loaded[-10:, -10:] = to_body
    names = (*(base.names if base is not None else ()),
             *(f'{linear.names[k]} under load' for k in columns), *linear.names[-10:])
    return names, {False: without, True: loaded}, b


def _unexplained(robot: RobotDynamics, segment: Segment) -> tuple[Array, Array]:
    """Return the torque that the known robot does not explain, in motion and at rest.

    At rest, the model's friction is only its offset.
    """
    q, qd = segment.q, segment.qd
    sharp = robot.with_model(robot.model, friction_width=SHARP)
    tau = segment.tau if segment.extra is None else segment.tau - segment.extra
    tau = complete_torque(sharp, q, qd, tau)
    sensed = robot.with_model(sensed_model(robot.model), friction_width=SHARP)
    smooth = sensed.with_model(sensed.model.without_friction())
    rest = tau - smooth.inverse_dynamics(q, qd, segment.qdd)
    slide = np.full_like(qd, 10 * SHARP)
    offset = 0.5 * (sensed.friction(slide, q) + sensed.friction(-slide, q))
    return rest - sensed.friction(qd, q), rest - offset


def _slow_speeds(segments: Sequence[Segment], spectrum: Spectrum, cutoff: float) -> Array:
    """Return the speed below which each joint's friction counts as unknown, rad/s or m/s."""
    fast = np.concatenate([np.abs(s.qd) for s in segments]).max(axis=0)
    noise = spectrum.velocity_noise(cutoff) if np.isfinite(cutoff) else 0.0
    return np.maximum(np.maximum(SLOW * fast, NOISE_WIDTH * noise), SLOWEST)


def _friction_sizes(robot: RobotDynamics, segments: Sequence[Segment], slow: Array) -> Array:
    """Return the size of each joint's friction at its slow speed, N m or N."""
    model = robot.with_model(robot.model, friction_width=SHARP)
    q = segments[0].q[:1]
    size = 0.5 * np.abs(model.friction(slow[None], q) - model.friction(-slow[None], q))[0]
    effort = np.concatenate([s.tau for s in segments])
    return np.maximum(size, LEAST_FRICTION * np.ptp(effort, axis=0))


def _moves(segment: Segment, slow: Array) -> NDArray[np.bool_]:
    """Return when each joint slides, shape (M, n): fast enough, and beyond `LEAST_TRAVEL`."""
    mask = np.abs(segment.qd) > slow
    for joint in range(mask.shape[1]):
        for first, end in _runs(mask[:, joint]):
            if abs(segment.q[end - 1, joint] - segment.q[first, joint]) < LEAST_TRAVEL:
                mask[first:end, joint] = False
    return mask


def _inside(segment: Segment, moves: NDArray[np.bool_], times: Array,
            decimation: float) -> NDArray[np.bool_]:
    """Return at which times the window of the parallel filter lies in sliding motion, (K, n).

    For a joint that would lose more than half of its samples, a narrower window is checked.
    """
    places = np.searchsorted(segment.t, times)
    width = Decimation.at(segment.rate, decimation, size=len(segment.t)).half
    far = apart(~moves, width)
    while width:
        poor = far.sum(axis=0) < LEAST_FAR * moves.sum(axis=0)
        width //= 2
        far[:, poor] = apart(~moves[:, poor], width)
    return far[np.minimum(places, len(far) - 1)]


def _sizes_of_terms(linear: LinearModel, segments: Sequence[Segment], sizes: Array) -> Array:
    """Return the size of each term of friction, from that of each joint's friction, N m or N."""
    names = linear.joints.joint_names
    fast = np.maximum(np.concatenate([np.abs(s.qd) for s in segments]).max(axis=0), SLOWEST)
    found = []
    for column in (linear.columns[k] for k in linear.friction_columns()):
        joint = linear.model.body_joints[column.body]
        # a mimic joint has no effort of its own; its friction is taken to be the largest one
        size = sizes[names.index(joint)] if joint in names else sizes.max()
        speed = fast[names.index(joint)] if joint in names else fast.max()
        found.append(size / speed if column.term[:2] == 'Fv' else size)
    return np.array(found)


def _rests(linear: LinearModel, segment: Segment, unexplained: Array,
           moves: NDArray[np.bool_], sizes: Array, mapped: Array,
           ) -> list[tuple[Array, float, float]]:
    """Return row, value and standard deviation of the mean of each rest of each joint."""
    found = []
    friction = [k for k in linear.friction_columns()
                if not linear.columns[k].term.startswith('off')]
    for joint in range(linear.rows):
        for first, end in _runs(~moves[:, joint]):
            lasts = (end - first) / segment.rate
            if lasts < LEAST_REST:
                continue
            few = np.unique(np.linspace(first, end - 1, SAMPLES).astype(int))
            w = linear.regressor(segment.q[few], segment.qd[few], segment.qdd[few],
                                 loaded=segment.loaded)[:, joint]
            w[:, friction] = 0.0
            values = unexplained[first:end, joint]
            noise = values.var() / max(1.0, lasts * INDEPENDENT)
            found.append((w.mean(axis=0) @ mapped, float(values.mean()),
                          float(np.sqrt(sizes[joint] ** 2 / 3 + noise))))
    return found


def _runs(marks: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and end of each uninterrupted run of marks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
