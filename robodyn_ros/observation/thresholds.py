"""Thresholds of contacts from the residuals of motions without contact, and their YAML form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.section import Section
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import UnknownNameError, ValueRangeError
from robodyn_ros.observation.bands import Bands
from robodyn_ros.observation.momentum import MomentumObserver
from robodyn_ros.spatial import Array

BINS = 6  # of the speed of each joint
FEWEST = 50  # samples in a bin; bins with fewer take the quantile of all samples
MARGIN = 1.5  # factor on the quantiles
QUANTILE = 0.9995
SETTLES = 3.0  # time constants of the slower filter after which a residual counts
KEYS = ('bandwidth', 'separation', 'joints')


@dataclass(frozen=True, eq=False)
class ContactThresholds:
    """Largest residuals without contact, for each joint and speed.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    speed : ndarray, shape (n, k)
        Ascending speeds, rad/s or m/s; between them, the thresholds are interpolated.
    fast, slow : ndarray, shape (n, k)
        Thresholds of the residual above and below the frequency that separates them, N m or N.
    bandwidth : float
        Bandwidth of the observer for which they hold, Hz.
    separation : float
        Frequency that separates fast from slow residuals, Hz.
    """

    joint_names: tuple[str, ...]
    speed: Array
    fast: Array
    slow: Array
    bandwidth: float
    separation: float

    def at(self, qd: Array) -> tuple[Array, Array]:
        """Return the thresholds of fast and slow residuals at velocities, shape (n,) each."""
        speed = np.abs(qd)
        return tuple(np.array([np.interp(s, x, y) for s, x, y in zip(  # type: ignore[return-value]
            speed, self.speed, table, strict=True)]) for table in (self.fast, self.slow))

    def deviation(self) -> Array:
        """Return a standard deviation of each joint's residual, shape (n,), N m or N."""
        return self.slow.max(axis=1) / (3 * MARGIN)

    def to_dict(self) -> dict[str, Any]:
        """Return the section ``contact`` of a motor file."""
        return {'bandwidth': self.bandwidth, 'separation': self.separation, 'joints': {
            name: {'speed': self.speed[k].tolist(), 'fast': self.fast[k].tolist(),
                   'slow': self.slow[k].tolist()} for k, name in enumerate(self.joint_names)}}

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
        tables = []
        for name in names:
            if name not in joints:
                raise UnknownNameError(f'joint in {joints.where}', name, joints)
            one = joints.section(name, ('speed', 'fast', 'slow'))
            speed = one.array('speed', (None,))
            row = [speed, *(one.array(key, (len(speed),)) for key in ('fast', 'slow'))]
            if not (np.diff(speed) > 0).all() or not min(x.min() for x in row[1:]) > 0:
                raise one.fail('speed', 'does not ascend, or a threshold is not positive',
                               'ascending speeds and thresholds > 0')
            tables.append(row)
        size = {len(row[0]) for row in tables}
        if len(size) != 1:
            raise entry.fail('joints', 'have different numbers of speeds', 'the same number')
        speed, fast, slow = np.array(tables).transpose(1, 0, 2)
        return cls(names, speed, fast, slow, entry.number('bandwidth', above=0),
                   entry.number('separation', above=0))


def constant_thresholds(joint_names: Iterable[str], limits: ArrayLike, bandwidth: float = 20.0,
                        separation: float = 1.0) -> ContactThresholds:
    """Return thresholds that do not depend on the speed, shape (n,), N m or N.

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
    return ContactThresholds(names, speed, table, table, bandwidth, separation)


def thresholds_of(dynamics: RobotDynamics, motions: Iterable[tuple[Array, Array, Array, Array]], *,
                  bandwidth: float = 20.0, separation: float = 1.0, quantile: float = QUANTILE,
                  margin: float = MARGIN) -> ContactThresholds:
    """Return thresholds from motions without contact.

    Parameters
    ----------
    dynamics : Dynamics
        The identified robot.
    motions : iterable of (t, q, qd, tau)
        Times, shape (N,); positions, velocities and torques, shape (N, n), of logs that were
        not used for the identification.
    bandwidth, separation : float
        Bandwidth of the observer, and frequency that separates fast from slow residuals, Hz.
    quantile : float
        Fraction of the residuals in each range of speed that is below the threshold divided by
        the margin.
    margin : float
        Factor on the quantiles.

    Raises
    ------
    ValueRangeError
        The motions are too short.
    """
    observer = MomentumObserver(dynamics, bandwidth)
    speeds, fast, slow = [], [], []
    for t, q, qd, tau in motions:
        bands = Bands(separation)
        residuals = observer.run(t, q, qd, tau)
        low = np.array([bands.update(s, r) for s, r in zip(t, residuals, strict=True)])
        settled = t - t[0] > SETTLES / (2 * np.pi * min(bandwidth, separation))
        speeds.append(np.abs(qd[settled]))
        fast.append(np.abs(residuals - low)[settled])
        slow.append(np.abs(low)[settled])
    count = sum(map(len, speeds))
    if count < 2 * FEWEST:
        raise ValueRangeError('motions', f'{count} usable samples',
                              f'at least {2 * FEWEST} after the filters have settled')
    speed, quick, steady = (np.concatenate(x) for x in (speeds, fast, slow))
    tables = [_table(speed[:, k], quick[:, k], steady[:, k], quantile, margin)
              for k in range(speed.shape[1])]
    grid, first, second = np.array(tables).transpose(1, 0, 2)
    return ContactThresholds(dynamics.joints.joint_names, grid, first, second, bandwidth,
                             separation)


def _table(speed: Array, fast: Array, slow: Array, quantile: float,
           margin: float) -> list[Array]:
    """Return speeds and both thresholds of one joint."""
    edges = np.linspace(0.0, max(float(speed.max()), 1e-6), BINS + 1)
    rows = []
    for values in (fast, slow):
        found = np.full(BINS, np.nan)
        for k in range(BINS):
            inside = (speed >= edges[k]) & (speed <= edges[k + 1])
            if inside.sum() >= FEWEST:
                found[k] = np.quantile(values[inside], quantile)
        found = np.where(np.isnan(found), np.quantile(values, quantile), found)
        # residuals lag behind the speed that causes them, so a neighbour's threshold may apply
        wide = np.maximum(found, np.maximum(np.append(found[1:], 0), np.insert(found[:-1], 0, 0)))
        rows.append(np.maximum(margin * wide, 1e-9))
    return [(edges[1:] + edges[:-1]) / 2, *rows]
