"""Thresholds of contacts, and their YAML form; `fitting` takes them from motions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.section import Section
from robodyn_ros.errors import UnknownNameError, ValueRangeError
from robodyn_ros.observation.bands import standing_part
from robodyn_ros.spatial import Array

KEYS = ('bandwidth', 'separation', 'joints')
JOINT_KEYS = ('speed', 'fast', 'slow', 'fast_inertial', 'slow_inertial', 'standing',
              'deviation')
DEVIATIONS = 4.5  # threshold over standard deviation, for files that do not state the latter


@dataclass(frozen=True, eq=False)
class ContactThresholds:
    """Largest residuals without contact, for each joint, its speed and its inertial torque.

    A joint that stands still holds an unknown part of its Coulomb friction, which the smooth sign
    of the observer leaves out; therefore both of its thresholds are higher by ``standing``.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    speed : ndarray, shape (n, k)
        Ascending speeds, rad/s or m/s; between them, the thresholds are interpolated.
    fast, slow : ndarray, shape (n, k)
        Thresholds of the residual above and below the frequency that separates them, N m or N,
        for a robot that does not accelerate.
    inertial : ndarray, shape (n, 2)
        What is added to the fast and to the slow threshold for each N m or N of inertial torque.
    standing : ndarray, shape (n,)
        What is added to both where the joint stands still, N m or N.
    deviation : ndarray, shape (n,)
        Standard deviation of the residuals without contact, N m or N.
    bandwidth : float
        Bandwidth of the observer for which they hold, Hz.
    separation : float
        Frequency that separates fast from slow residuals, Hz.
    """

    joint_names: tuple[str, ...]
    speed: Array
    fast: Array
    slow: Array
    inertial: Array
    standing: Array
    deviation: Array
    bandwidth: float
    separation: float

    def at(self, qd: Array, conditions: Array | None = None) -> tuple[Array, Array]:
        """Return the thresholds of fast and slow residuals, shape (n,) each.

        Parameters
        ----------
        qd : ndarray, shape (n,)
            Velocities, rad/s or m/s.
        conditions : ndarray, shape (2, n), optional
            `Conditions` of the recent past; default: those of a robot that moves at these
            velocities without accelerating.
        """
        if conditions is None:
            conditions = np.array([np.zeros(len(qd)), standing_part(qd)])
        rows, last = np.arange(len(qd)), self.speed.shape[1] - 2
        speed = np.abs(qd)
        left = np.clip((self.speed <= speed[:, None]).sum(axis=1) - 1, 0, last)
        low, high = self.speed[rows, left], self.speed[rows, left + 1]
        part = np.clip((speed - low) / (high - low), 0.0, 1.0)
        fast, slow = (table[rows, left] * (1 - part) + table[rows, left + 1] * part
                      for table in (self.fast, self.slow))
        inertial, standing = conditions
        held = self.standing * standing
        return (fast + self.inertial[:, 0] * inertial + held,
                slow + self.inertial[:, 1] * inertial + held)

    def deviation_in(self, conditions: Array) -> Array:
        """Return the standard deviation of the residuals in `Conditions`, shape (n,).

        The friction that a joint at rest holds may have any value up to its largest.
        """
        return np.hypot(self.deviation, self.standing * conditions[1] / np.sqrt(3))

    def to_dict(self) -> dict[str, Any]:
        """Return the section ``contact`` of a motor file."""
        return {'bandwidth': self.bandwidth, 'separation': self.separation, 'joints': {
            name: {'speed': self.speed[k].tolist(), 'fast': self.fast[k].tolist(),
                   'slow': self.slow[k].tolist(),
                   'fast_inertial': float(self.inertial[k, 0]),
                   'slow_inertial': float(self.inertial[k, 1]),
                   'standing': float(self.standing[k]),
                   'deviation': float(self.deviation[k])}
            for k, name in enumerate(self.joint_names)}}

    @classmethod
    def read(cls, source: Mapping[str, Any] | str | Path, joint_names: Iterable[str],
             ) -> ContactThresholds | None:
        """Read the thresholds of a motor file; None if it has no section ``contact``.

        Raises
        ------
        DescriptionError, UnknownNameError
            The section cannot be read, or lacks a joint.
        """
        content = Section.read(source, 'motor data')
        if 'contact' not in content:
            return None
        entry = content.section('contact', KEYS)
        joints, names = entry.section('joints'), tuple(joint_names)
        tables, others = [], []
        for name in names:
            if name not in joints:
                raise UnknownNameError(f'joint in {joints.where}', name, joints)
            one = joints.section(name, JOINT_KEYS)
            speed = one.array('speed', (None,))
            row = [speed, *(one.array(key, (len(speed),)) for key in ('fast', 'slow'))]
            if len(speed) < 2 or not (np.diff(speed) > 0).all() or \
                    not min(x.min() for x in row[1:]) > 0:
                raise one.fail('speed', 'has fewer than two values, does not ascend, or a '
                               'threshold is not positive',
                               'ascending speeds and thresholds > 0')
            tables.append(row)
            others.append([*(one.number(key, 0.0, least=0) for key in JOINT_KEYS[3:6]),
                           one.number('deviation', float(row[2].max()) / DEVIATIONS, above=0)])
        size = {len(row[0]) for row in tables}
        if len(size) != 1:
            raise entry.fail('joints', 'have different numbers of speeds', 'the same number')
        speed, fast, slow = np.array(tables).transpose(1, 0, 2)
        other = np.array(others)
        return cls(names, speed, fast, slow, other[:, :2], other[:, 2], other[:, 3],
                   entry.number('bandwidth', above=0), entry.number('separation', above=0))


def constant_thresholds(joint_names: Iterable[str], limits: ArrayLike, bandwidth: float = 20.0,
                        separation: float = 1.0) -> ContactThresholds:
    """Return thresholds that do not depend on the motion.

    Parameters
    ----------
    joint_names : iterable of str
        The n joints.
    limits : array-like, shape () or (n,)
        Threshold of the fast and of the slow residual, N m or N.
    bandwidth, separation : float
        As in `ContactThresholds`, Hz.

    Raises
    ------
    ValueRangeError
        A limit is not positive.
    """
    names = tuple(joint_names)
    values = np.broadcast_to(np.asarray(limits, np.float64), (len(names),))
    if not (values > 0).all():
        raise ValueRangeError('contact thresholds', values.tolist(), 'numbers > 0')
    table = np.repeat(values[:, None], 2, axis=1)
    speed = np.tile([0.0, 1.0], (len(names), 1))
    return ContactThresholds(names, speed, table, table, np.zeros((len(names), 2)),
                             np.zeros(len(names)), values / DEVIATIONS, bandwidth, separation)
