"""Logs of robots with a floating base, and the filtered motion that they contain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.errors import LogError, UnknownNameError, ValueRangeError, check_type
from robodyn_ros.identification.log import MINIMUM, finite_samples
from robodyn_ros.identification.pieces import Piece, pieces_of
from robodyn_ros.identification.signals import (
    EDGE,
    UNFILTERED,
    automatic_cutoff,
    differentiate,
    motion_spectrum,
)
from robodyn_ros.keywords import checked_fields, checked_keywords
from robodyn_ros.model import A_MODEL, Model
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Array, continuous_quaternions

POSE, TWIST, WRENCH = 7, 6, 6  # numbers of a pose, of a twist and of a wrench
ORDER = 4  # of the Butterworth filter
KEPT = 4.0  # samples that are kept in each period of the cutoff frequency
UNIT = 0.01  # deviation of a quaternion's length from 1 above which it is a mistake


@checked_fields
@dataclass(eq=False)
class FloatingBaseLog:
    """A measured log of a robot with a floating base, in rad, m, s, N m and N.

    Parameters
    ----------
    t : array-like, shape (N,)
        Stamps, s.
    pose : array-like, shape (N, 7)
        Position of the base and its quaternion x, y, z, w, in the root frame.
    joints : array-like, shape (N, k)
        Positions of the joints.
    joint_names : sequence of str
        Their names, in any order.
    twist : array-like, shape (N, 6), optional
        Linear and angular velocity of the base in its own axes, as ``nav_msgs/Odometry`` has
        them; by default they are computed from the poses.
    tau : array-like, shape (N, k), optional
        Torques of the joints.
    wrenches : mapping of str to array-like, shape (N, 6), optional
        Measured wrenches on links, as ``f_ext`` of `Dynamics.inverse_dynamics`.
    contacts : mapping of str to array-like, shape (N,)
        Whether links are in contact with the ground, where the wrenches are not measured.
    source : str
        Name of the log, for messages.

    Attributes
    ----------
    notes : list of str
        Remarks on what was found and changed.
    """

    t: ArrayLike
    pose: ArrayLike
    joints: ArrayLike
    joint_names: Sequence[str] = ()
    twist: ArrayLike | None = None
    tau: ArrayLike | None = None
    wrenches: Mapping[str, ArrayLike] = field(default_factory=dict)
    contacts: Mapping[str, ArrayLike] = field(default_factory=dict)
    source: str = 'log'
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check shapes; leave out samples that are not finite, and note how many."""
        size, names = np.size(self.t), tuple(self.joint_names)
        if size < MINIMUM:
            raise LogError(f'has {size} samples', source=self.source,
                           valid=f'at least {MINIMUM}')
        shapes = {'t': (size,), 'pose': (size, POSE), 'joints': (size, len(names)),
                  'twist': (size, TWIST), 'tau': (size, len(names))}
        arrays = {name: real_array(f'{self.source}: {name}', getattr(self, name), shape)
                  for name, shape in shapes.items() if getattr(self, name) is not None}
        wrenches = {link: real_array(f'{self.source}: wrench on {link}', wrench, (size, WRENCH))
                    for link, wrench in self.wrenches.items()}
        contacts = {link: np.asarray(flags, np.float64) for link, flags in self.contacts.items()}
        for link, flags in contacts.items():
            real_array(f'{self.source}: contact of {link}', flags, (size,))
        finite, notes = finite_samples(arrays | {
            f'the wrench on {link}': wrench for link, wrench in wrenches.items()} | {
            f'the contact of {link}': flags for link, flags in contacts.items()}, self.source)
        self.notes = [*self.notes, *notes]
        for name, array in arrays.items():
            setattr(self, name, array[finite])
        self.wrenches = {link: wrench[finite] for link, wrench in wrenches.items()}
        self.contacts = {link: flags[finite] for link, flags in contacts.items()}
        self.joint_names = names
        length = np.linalg.norm(np.asarray(self.pose)[:, 3:], axis=1)
        if np.abs(length - 1).max() > UNIT:
            raise LogError(f'a quaternion of the base has the length '
                           f'{length[np.argmax(np.abs(length - 1))]:.4g}', source=self.source,
                           valid='1, in the order x, y, z, w')

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(np.asarray(self.t))

    def joint_order(self, model: Model) -> list[int]:
        """Return the columns of the joints in the order of a model.

        Raises
        ------
        UnknownNameError
            The log lacks a joint of the model.
        """
        names = list(self.joint_names)
        for joint in model.joint_names:
            if joint not in names:
                raise UnknownNameError(f'joint in {self.source}, which the model has', joint,
                                       names)
        return [names.index(joint) for joint in model.joint_names]

    @property
    def digest(self) -> str:
        """SHA-256 of the measurements."""
        sha = hashlib.sha256()
        for values in (self.t, self.pose, self.joints, self.twist, self.tau,
                       *self.wrenches.values(), *self.contacts.values()):
            if values is not None:
                sha.update(np.ascontiguousarray(values).tobytes())
        return sha.hexdigest()


@dataclass(frozen=True, eq=False)
class FloatingBaseMotion:
    """A filtered motion of a floating base, as `identify_floating_base` takes it.

    Attributes
    ----------
    t : ndarray, shape (M,)
        Stamps of the samples that are kept, s.
    q, qd, qdd : ndarray, shape (M, n + 1), (M, n), (M, n)
        Positions, velocities and accelerations; for the columns see `Dynamics`.
    torques : ndarray, shape (M, n - 6), or None
        Torques of the joints, N m or N.
    wrenches : dict of str to ndarray, shape (M, 6)
        Wrenches on links, see `FloatingBaseLog`.
    contacts : dict of str to ndarray of bool, shape (M,)
        Whether links are in contact at any time within the reach of the filter.
    cutoff : float
        Cutoff frequency of the filter, Hz.
    notes : tuple of str
        Remarks on what was found and changed in the logs.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    torques: Array | None
    wrenches: dict[str, Array]
    contacts: dict[str, NDArray[np.bool_]]
    cutoff: float
    notes: tuple[str, ...]


@checked_keywords
def floating_base_motion(model: Model, logs: FloatingBaseLog | Sequence[FloatingBaseLog], *,
                         cutoff: float | None = None) -> FloatingBaseMotion:
    """Filter logs of a robot with a floating base with zero phase, and differentiate them.

    Positions, torques and wrenches pass the same Butterworth filter. Where twists of the base were
    measured, they are differentiated once, otherwise the poses twice. Gaps split a log.

    Parameters
    ----------
    model : Model
        The robot, loaded with ``base='floating'``.
    logs : FloatingBaseLog or sequence of FloatingBaseLog
        Logs with the same measured quantities.
    cutoff : float, optional
        Cutoff frequency, Hz; default: five times the highest frequency of the motion.

    Raises
    ------
    LogError, UnknownNameError, ValueRangeError
        A log cannot be used, lacks a joint or differs from the others in what was measured; or
        the base is fixed.
    """
    check_type('model', model, Model, A_MODEL)
    if not model.floating:
        raise ValueRangeError('base', 'fixed', "'floating', see load_model")
    every = [logs] if isinstance(logs, FloatingBaseLog) else list(logs)
    measured = {(log.twist is None, log.tau is None, tuple(sorted(log.wrenches)),
                 tuple(sorted(log.contacts)))
                for log in every}
    if len(measured) != 1:
        raise LogError('the logs differ in what was measured', source=', '.join(
            log.source for log in every) or 'logs', valid='at least one log, and twists, torques '
            'and the same wrenches and contacts in all of them or in none')
    notes = [note for log in every for note in log.notes]
    pieces = [piece for log in every for piece in pieces_of(_samples(log, model), notes)]
    if cutoff is None:
        cutoff = automatic_cutoff(pieces, motion_spectrum(pieces))
    links = sorted(every[0].wrenches)
    feet = sorted(every[0].contacts)
    parts = [_filtered(piece, cutoff, every[0].twist is not None, len(feet)) for piece in pieces]
    t, q, qd, qdd, rest, touching = (np.concatenate(columns)
                                     for columns in zip(*parts, strict=True))
    torques = model.n - TWIST if every[0].tau is not None else 0
    return FloatingBaseMotion(
        t, q, qd, qdd, rest[:, :torques] if torques else None,
        {link: rest[:, torques + WRENCH * k:][:, :WRENCH] for k, link in enumerate(links)},
        {link: touching[:, k] for k, link in enumerate(feet)}, cutoff, tuple(notes))


@dataclass(eq=False)
class _Samples:
    """The columns of a log, as `pieces_of` reads them: smooth ones, then forces."""

    t: Array
    q: Array
    tau: Array
    source: str
    period: float | None = None
    loaded: bool = False


def _samples(log: FloatingBaseLog, model: Model) -> _Samples:
    order = log.joint_order(model)
    for link in (*log.wrenches, *log.contacts):
        model.link_frame(link)
    t, pose = np.asarray(log.t), np.array(log.pose)
    by_time = np.argsort(t, kind='stable')
    pose[by_time, 3:] = continuous_quaternions(pose[by_time, 3:])
    smooth = [pose, *([] if log.twist is None else [np.asarray(log.twist)]),
              np.asarray(log.joints)[:, order]]
    forces = [*([] if log.tau is None else [np.asarray(log.tau)[:, order]]),
              *(np.asarray(log.wrenches[link]) for link in sorted(log.wrenches)),
              *(np.asarray(log.contacts[link])[:, None] for link in sorted(log.contacts)),
              np.zeros((len(t), 0))]
    return _Samples(t, np.hstack(smooth), np.hstack(forces), log.source)


def _filtered(piece: Piece, cutoff: float, measured: bool, feet: int,
              ) -> tuple[NDArray[Any], ...]:
    """Return t, q, qd, qdd, forces and contacts of a piece, filtered and at a reduced rate."""
    rate = piece.rate
    forces, flags = np.split(piece.columns['tau'], [piece.columns['tau'].shape[1] - feet], axis=1)
    reach = 2 * int(np.ceil(rate / cutoff)) + 1  # the filter spreads forces over its period
    touching = scipy.ndimage.maximum_filter1d(flags, reach, axis=0) > 0 if feet else flags > 0
    x, xd, xdd = differentiate(piece.columns['q'], rate, cutoff, ORDER)
    if cutoff < UNFILTERED * rate and forces.size:
        forces = scipy.signal.sosfiltfilt(
            scipy.signal.butter(ORDER, cutoff, fs=rate, output='sos'), forces, axis=0)
    first = POSE + TWIST if measured else POSE
    turn = x[:, 3:POSE] / np.linalg.norm(x[:, 3:POSE], axis=1, keepdims=True)
    rotation = _rotations(turn)
    if measured:
        twist, change = x[:, POSE:first], xd[:, POSE:first]
    else:
        rates = 2 * _vector_of_product(turn, np.gradient(turn, 1 / rate, axis=0))
        linear, acceleration = (np.einsum('tji,tj->ti', rotation, values[:, :3])
                                for values in (xd, xdd))
        twist = np.hstack([linear, rates])
        change = np.hstack([acceleration - np.cross(rates, linear),
                            np.gradient(rates, 1 / rate, axis=0)])
    edge = int(np.ceil(EDGE * rate / cutoff))
    step = max(1, int(rate / (KEPT * cutoff)))
    kept = np.arange(edge, len(x) - edge, step)
    kept = kept[piece.measured[kept]]
    return (piece.t[kept], np.hstack([x[:, :3], turn, x[:, first:]])[kept],
            np.hstack([twist, xd[:, first:]])[kept], np.hstack([change, xdd[:, first:]])[kept],
            forces[kept], touching[kept])


def _vector_of_product(a: Array, b: Array) -> Array:
    """Return the vector part of the quaternion products conj(a) b, shape (M, 3)."""
    return (a[:, 3:] * b[:, :3] - b[:, 3:] * a[:, :3] - np.cross(a[:, :3], b[:, :3]))


def _rotations(turn: Array) -> Array:
    """Return the rotation matrices of unit quaternions, shape (M, 3, 3)."""
    vector, w = turn[:, :3], turn[:, 3]
    skew = np.cross(np.eye(3)[None], vector[:, None])  # S(v): its rows are e_k x v
    return np.eye(3) + 2 * w[:, None, None] * skew + 2 * skew @ skew
