"""`Log`: a measured motion and its torques, checked and brought to the model's joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import LogError, ShapeError, UnknownNameError
from robodyn_ros.model import Model

MINIMUM = 50  # samples
DEGREES = 180 / np.pi


@dataclass(eq=False)
class Log:
    """A measured log; rad, m, s, N m, N.

    Parameters
    ----------
    t : array-like, shape (N,)
        Stamps, s; may jitter, have gaps, repeat or jump back.
    q : array-like, shape (N, n)
        Joint positions.
    tau : array-like, shape (N, n)
        Joint torques as measured at the links, or all there is.
    qd : array-like, shape (N, n), optional
        Measured velocities; used to detect wrong units, never differentiated.
    tau_motor : array-like, shape (N, n), optional
        Torques of the motors, as felt at the joints (models 2 and 3).
    joint_names : sequence of str
        The n joints, in any order.
    extra : array-like, shape (N, n), optional
        Known torques on the joints besides the robot's own (springs, counterbalances): what is
        identified is ``tau - extra``.
    reference : array-like, shape (N, n), optional
        Commanded positions, for instrumental variables.
    loaded : bool
        The payload is on.
    period : float, optional
        s, of a periodic motion.
    source : str
        Where it came from.

    Attributes
    ----------
    notes : list of str
        What was found and done on the way.
    """

    t: ArrayLike
    q: ArrayLike
    tau: ArrayLike
    qd: ArrayLike | None = None
    tau_motor: ArrayLike | None = None
    joint_names: Sequence[str] = ()
    extra: ArrayLike | None = None
    reference: ArrayLike | None = None
    loaded: bool = False
    period: float | None = None
    source: str = 'log'
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check shapes; leave out samples with NaN or infinity, and say how many."""
        t = np.asarray(self.t, np.float64)
        if t.ndim != 1 or len(t) < MINIMUM:
            raise LogError(f'{t.size} samples', source=self.source,
                           valid=f'at least {MINIMUM}, t of shape (N,)')
        names = tuple(self.joint_names)
        shape = (len(t), len(names))
        arrays = {}
        for name in ('q', 'tau', 'qd', 'tau_motor', 'extra', 'reference'):
            values = getattr(self, name)
            if values is None:
                continue
            array = np.asarray(values, np.float64)
            if array.shape != shape:
                raise ShapeError(f'{self.source}: {name}', f'shape {array.shape}',
                                 f'{shape}: samples, joints')
            arrays[name] = array
        if len(set(names)) != len(names):
            raise LogError(f'joint names repeat: {", ".join(names)}', source=self.source)
        finite = np.isfinite(t)
        for array in arrays.values():
            finite &= np.isfinite(array).all(axis=1)
        bad = int((~finite).sum())
        if bad > 0.2 * len(t):
            worst = max(arrays, key=lambda name: int((~np.isfinite(arrays[name])).sum()))
            raise LogError(f'{bad} of {len(t)} samples are not finite, most in {worst}',
                           source=self.source)
        if bad:
            self.notes = [*self.notes, f'{bad} samples that are not finite left out']
        self.t, self.joint_names = t[finite], names
        for name, array in arrays.items():
            setattr(self, name, array[finite])

    @property
    def duration(self) -> float:
        """From the first stamp to the last, s."""
        return float(np.ptp(np.asarray(self.t)))

    def __len__(self) -> int:
        """Samples."""
        return len(np.asarray(self.t))

    def part(self, start: float, stop: float) -> Log:
        """Return the samples from one share of the log to another, 0 to 1, by count."""
        if not 0 <= start < stop <= 1:
            raise LogError(f'part from {start} to {stop}', source=self.source,
                           valid='0 <= start < stop <= 1')
        a, b = round(start * len(self)), round(stop * len(self))
        cut: dict[str, Any] = {name: np.asarray(value)[a:b] for name in (
            't', 'q', 'tau', 'qd', 'tau_motor', 'extra', 'reference')
            if (value := getattr(self, name)) is not None}
        return replace(self, **cut, source=f'{self.source} [{start:.3g}, {stop:.3g}]', notes=[])

    def split(self, share: float) -> tuple[Log, Log]:
        """Return two logs: before and after a share of the samples."""
        return self.part(0, share), self.part(share, 1)

    def for_model(self, model: Model, *, joints: Sequence[str] | None = None,
                  used: Sequence[str] | None = None) -> Log:
        """Return the log with the model's joints in the model's order, and judged.

        Parameters
        ----------
        model : Model
            The robot.
        joints : sequence of str, optional
            Those that are wanted, of a robot with closed loops; default: all of the model.
        used : sequence of str, optional
            Joints whose torques count; others may be unmeasured.

        Raises
        ------
        UnknownNameError, LogError
            A joint is missing; degrees; a torque that is constant.
        """
        names, wanted = list(self.joint_names), tuple(joints or model.joint_names)
        for joint in wanted:
            if joint not in names:
                raise UnknownNameError(f'joint in {self.source}, which the model has', joint,
                                       names)
        order = [names.index(joint) for joint in wanted]
        picked: dict[str, Any] = {name: np.asarray(value)[:, order] for name in (
            'q', 'tau', 'qd', 'tau_motor', 'extra', 'reference')
            if (value := getattr(self, name)) is not None}
        log = replace(self, **picked, joint_names=wanted, notes=list(self.notes))
        left = [name for name in names if name not in model.joint_names]
        if left:
            log.notes.append(f'joints that the model does not have: {", ".join(left)}')
        _check_units(log, model)
        _check_torques(log, used)
        return log


def _check_units(log: Log, model: Model) -> None:
    t, q = np.asarray(log.t), np.asarray(log.q)
    for k, joint in enumerate(log.joint_names):
        body, place = model.body_joints.index(joint), model.joint_names.index(joint)
        if model.prismatic[body]:
            continue
        largest = float(np.abs(q[:, k]).max())
        bound = float(np.max(np.abs([model.lower[place], model.upper[place]])))
        bound = bound if np.isfinite(bound) and bound > 0 else 2 * np.pi
        if largest > 3 * bound and largest > 10 and np.ptp(q[:, k]) > 6:
            raise LogError(f'positions of {joint!r} reach {largest:.4g}, its range is '
                           f'{bound:.4g} rad: degrees?', source=log.source,
                           valid='radians (or say degrees when reading)')
        if log.qd is None:
            continue
        slope = np.gradient(q[:, k]) / np.maximum(np.gradient(t), 1e-9)
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
            raise LogError(f'the torque of {joint!r} is {tau[0, k]:g} throughout: it was not '
                           'measured', source=log.source,
                           valid=f'a measured torque, or torques_of without {joint!r}')
