"""`Log`: a measured motion and its torques, checked and arranged by the joints of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.errors import LogError, ShapeError, UnknownNameError, check_type
from robodyn_ros.identification.periodic import whole_periods
from robodyn_ros.keywords import checked_fields
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

MINIMUM = 50  # samples of a log; with fewer, no spectrum and no fit is meaningful
LARGEST_LOSS = 0.2  # fraction of the samples above which a log is refused
DEGREES = 180 / np.pi
LONGEST_STEP = 1.0  # s between samples; a longer one is that of another unit of time
USUAL_SPEED = 10.0  # rad/s, velocity limit of joints that have none
ARRAYS = ('q', 'tau', 'qd', 'tau_motor', 'extra', 'reference', 'temperature')  # of shape (N, n)


@checked_fields
@dataclass(eq=False)
class Log:
    """A measured log, in rad, m, s, N m and N.

    Parameters
    ----------
    t : array-like, shape (N,)
        Stamps, s. They may have jitter and gaps, repeat, or jump back.
    q : array-like, shape (N, n)
        Joint positions.
    tau : array-like, shape (N, n)
        Joint torques: those of the joint torque sensors, or the only ones that were measured.
    qd : array-like, shape (N, n), optional
        Measured velocities. The fit differentiates the positions instead; these serve to detect
        wrong units, and to find contact thresholds and expected residuals.
    tau_motor : array-like, shape (N, n), optional
        Torques of the motors, as they act on the joints (for the kinds ``links_and_drives`` and
        ``drives``).
    joint_names : sequence of str
        Names of the n joints, in any order.
    extra : array-like, shape (N, n), optional
        Known additional torques on the joints (springs, counterbalances); the identified model
        explains ``tau - extra``.
    reference : array-like, shape (N, n), optional
        Commanded positions, which serve as instrumental variables.
    temperature : array-like, shape (N, n), optional
        Temperatures of the joints, degrees Celsius. NaN between the readings of a slow sensor,
        which are interpolated in time, and for joints without a sensor.
    loaded : bool
        Whether the payload is attached.
    period : float, optional
        Period of a periodic motion, s.
    source : str
        Name of the log, for messages.

    Attributes
    ----------
    notes : list of str
        Remarks on what was found and changed.
    """

    t: ArrayLike
    q: ArrayLike
    tau: ArrayLike
    qd: ArrayLike | None = None
    tau_motor: ArrayLike | None = None
    joint_names: Sequence[str] = ()
    extra: ArrayLike | None = None
    reference: ArrayLike | None = None
    temperature: ArrayLike | None = None
    loaded: bool = False
    period: float | None = None
    source: str = 'log'
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check types and shapes; leave out samples that are not finite, and note how many."""
        t = _real(self.t, f'{self.source}: t')
        if t.ndim != 1 or len(t) < MINIMUM:
            raise LogError(f'has {t.size} samples', source=self.source,
                           valid=f'at least {MINIMUM}, t of shape (N,)')
        names = tuple(self.joint_names)
        shape = (len(t), len(names))
        arrays = {}
        for name in ARRAYS:
            values = getattr(self, name)
            if values is None:
                continue
            array = _real(values, f'{self.source}: {name}')
            if array.shape != shape:
                raise ShapeError(f'{self.source}: {name}', f'shape {array.shape}',
                                 f'{shape}: samples, joints')
            arrays[name] = _between_readings(t, array) if name == 'temperature' else array
        if len(set(names)) != len(names):
            raise LogError(f'has repeated joint names: {", ".join(names)}', source=self.source)
        if self.period is not None and not 0 < self.period < np.inf:
            raise LogError(f'has a period of {self.period} s', source=self.source,
                           valid='a number above 0, or none')
        finite, notes = finite_samples({'t': t, **arrays}, self.source)
        self.t, self.joint_names, self.notes = t[finite], names, [*self.notes, *notes]
        for name, array in arrays.items():
            setattr(self, name, array[finite])

    @property
    def duration(self) -> float:
        """Time from the first stamp to the last, s."""
        return float(np.ptp(np.asarray(self.t)))

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(np.asarray(self.t))

    def part(self, start: float, stop: float) -> Log:
        """Return the samples between two fractions, 0 to 1, of the number of samples.

        A part of a periodic log that has less than two whole periods is not periodic.

        Raises
        ------
        LogError
            If the fractions are not in order.
        """
        if not 0 <= start < stop <= 1:
            raise LogError(f'cannot be cut from {start} to {stop}', source=self.source,
                           valid='0 <= start < stop <= 1')
        a, b = round(start * len(self)), round(stop * len(self))
        cut: dict[str, Any] = {name: np.asarray(value)[a:b] for name in ('t', *ARRAYS)
            if (value := getattr(self, name)) is not None}
        if self.period is not None and whole_periods(cut['t'], self.period) < 2:
            cut['period'] = None
        return replace(self, **cut, source=f'{self.source} [{start:.3g}, {stop:.3g}]')

    def split(self, fraction: float) -> tuple[Log, Log]:
        """Return two logs: the samples before and after a fraction of them.

        A periodic log is cut between two of its periods.
        """
        if self.period is not None and (
                count := whole_periods(np.asarray(self.t), self.period)) >= 2 and 0 < fraction < 1:
            whole = min(max(round(fraction * count), 1), count - 1) * self.period
            fraction = whole / (self.duration * len(self) / (len(self) - 1))
        return self.part(0, fraction), self.part(fraction, 1)

    def for_model(self, model: Model, *, joints: Sequence[str] | None = None,
                  used: Sequence[str] | None = None) -> Log:
        """Return the log with the model's joints in the model's order, after checking it.

        Parameters
        ----------
        model : Model
            The robot.
        joints : sequence of str, optional
            The joints to keep, for a robot with closed loops. The default is all of the model's.
        used : sequence of str, optional
            Joints whose torques are used; the others need not be measured.

        Raises
        ------
        UnknownNameError
            If a joint is missing in the log.
        LogError
            If positions or velocities are in degrees, or if a torque is constant.
        """
        names, wanted = list(self.joint_names), tuple(joints or model.joint_names)
        for joint in wanted:
            if joint not in names:
                raise UnknownNameError(f'joint in {self.source}, which the model has', joint,
                                       names)
        order = [names.index(joint) for joint in wanted]
        picked: dict[str, Any] = {name: np.asarray(value)[:, order] for name in ARRAYS
            if (value := getattr(self, name)) is not None}
        log = replace(self, **picked, joint_names=wanted, notes=list(self.notes))
        left = [name for name in names if name not in model.joint_names]
        if left:
            log.notes.append(f'the model does not have these joints of the log: {", ".join(left)}')
        _check_units(log, model)
        _check_torques(log, used)
        return log


def finite_samples(arrays: Mapping[str, Array], source: str,
                   ) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which samples are finite in all arrays, shape (N,), and a note if some are not.

    Parameters
    ----------
    arrays : dict of ndarray, shape (N, ...)
        What was measured, by its name for messages.
    source : str
        Name of the log.

    Raises
    ------
    LogError
        If more than a fifth of the samples are not finite.
    """
    each = {name: np.isfinite(x).reshape(len(x), -1).all(axis=1) for name, x in arrays.items()}
    finite = np.logical_and.reduce(list(each.values()))
    bad = int((~finite).sum())
    if bad > LARGEST_LOSS * len(finite):
        worst = min(each, key=lambda name: int(each[name].sum()))
        raise LogError(f'{bad} of {len(finite)} samples are not finite, most in {worst}',
                       source=source)
    return finite, [f'{bad} samples that are not finite were left out'] if bad else []


def _real(values: ArrayLike, name: str) -> Array:
    """Return an array of float64; text, objects and complex numbers are refused."""
    array = np.asarray(values)
    if array.dtype.kind not in 'biuf':
        raise ShapeError(name, f'values of type {array.dtype}', 'real numbers')
    return array.astype(np.float64)


def _between_readings(t: Array, temperature: Array) -> Array:
    """Return temperatures with those between the readings interpolated in time."""
    found = temperature.copy()
    for column in found.T:
        read = np.isfinite(column) & np.isfinite(t)
        if read.any():
            order = np.argsort(t[read], kind='stable')
            column[~read] = np.interp(t[~read], t[read][order], column[read][order])
        else:  # no sensor: constant, so that friction cannot depend on it
            column[:] = 0.0
    return found


def _check_units(log: Log, model: Model) -> None:
    t, q = np.asarray(log.t), np.asarray(log.q)
    step = float(np.median(np.diff(np.sort(t))))
    if step > LONGEST_STEP:
        raise LogError(f'samples are {step:.4g} s apart: are stamps in seconds?',
                       source=log.source, valid='seconds, or unit_of_time in the format')
    for k, joint in enumerate(log.joint_names):
        body, place = model.body_joints.index(joint), model.joint_names.index(joint)
        if model.prismatic[body]:
            continue
        largest = float(np.abs(q[:, k]).max())
        bound = float(np.max(np.abs([model.lower[place], model.upper[place]])))
        turns = not (np.isfinite(bound) and bound > 0)  # without end: any number of turns
        bound = 2 * np.pi if turns else bound
        slope = np.gradient(q[:, k]) / np.maximum(np.gradient(t), 1e-9)
        limit = float(model.velocity_limit[place])
        limit = limit if np.isfinite(limit) and limit > 0 else USUAL_SPEED
        too_far = largest > 3 * bound and largest > 10 and np.ptp(q[:, k]) > 6
        if too_far and (not turns or np.quantile(np.abs(slope), 0.95) > 3 * limit):
            raise LogError(f'positions of {joint!r} reach {largest:.4g}, its range is '
                           f'{bound:.4g} rad: are they in degrees?', source=log.source,
                           valid='radians (or say degrees when reading)')
        if log.qd is None:
            continue
        qd = np.asarray(log.qd)[:, k]
        if slope.std() > 1e-3 and np.corrcoef(slope, qd)[0, 1] > 0.8:
            ratio = float(qd @ slope / (slope @ slope))
            if abs(ratio - DEGREES) < 10 or abs(ratio - 1 / DEGREES) < 0.004:
                raise LogError(f'velocities of {joint!r} are {ratio:.3g} times the rate of its '
                               'positions: one of them is in degrees', source=log.source,
                               valid='rad and rad/s')


def _check_torques(log: Log, used: Sequence[str] | None) -> None:
    tau = np.asarray(log.tau)
    for k, joint in enumerate(log.joint_names):
        if used is not None and joint not in used:
            continue
        if np.ptp(tau[:, k]) == 0:
            raise LogError(f'the torque of {joint!r} is always {tau[0, k]:g}: it was not '
                           'measured', source=log.source,
                           valid=f'a measured torque, or torques_of without {joint!r}')


def logs_of(logs: Log | Sequence[Log]) -> list[Log]:
    """Return one log, or several, as a list.

    Raises
    ------
    WrongTypeError
        Something else was given.
    """
    valid = 'a Log as read_log returns it, or several'
    check_type('logs', logs, (Log, Sequence), valid)
    every = [logs] if isinstance(logs, Log) else list(logs)
    for log in every:
        check_type('logs', log, Log, valid)
    return every
