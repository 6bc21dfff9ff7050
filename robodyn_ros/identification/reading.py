"""Reads logs: bags of ROS 2 and ROS 1, and tables in CSV, NPZ, MAT and Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics, RobotDynamics
from robodyn_ros.errors import LogError, UnknownNameError, check_type
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.log_format import LogFormat
from robodyn_ros.identification.reading_bags import BAG_SUFFIXES, read_bag
from robodyn_ros.identification.reading_tables import read_csv, read_mat, read_npz, read_parquet
from robodyn_ros.keywords import checked_keywords
from robodyn_ros.model import A_MODEL, Model
from robodyn_ros.spatial import Array

TABLES = {'.csv': read_csv, '.npz': read_npz, '.mat': read_mat, '.parquet': read_parquet}


@checked_keywords
def read_log(path: str | Path, model: Model | RobotDynamics,
             format: LogFormat | Mapping[str, Any] | str | Path | None = None) -> Log:
    """Read a measured log.

    Parameters
    ----------
    path : str or Path
        A bag (folder, ``.db3`` or ``.mcap``; ``.bag`` of ROS 1), or a ``.csv``, ``.npz``, ``.mat``
        or ``.parquet`` file.
    model : Model or RobotDynamics
        The robot that was logged. With closed loops, columns without names are those of the
        independent joints.
    format : LogFormat, mapping or path of a YAML file, optional
        Names, units and conventions of the file where they differ from the usual ones.

    Raises
    ------
    LogError
        If the file cannot be read, is too large, or lacks something that is needed.
    UnknownNameError
        If the format has an unknown key.
    """
    check_type('path', path, (str, Path), 'the path of a file or folder')
    check_type('model', model, (Model, Dynamics, ClosedLoopDynamics), A_MODEL)
    path = Path(path).expanduser()
    form = format if isinstance(format, LogFormat) else LogFormat.read(format or {})
    if not isinstance(model, Model):
        if model.cuts:
            form = replace(form, joints=form.joints or model.joint_names)
        model = model.model
    try:
        found = path.exists()
    except OSError:  # the name is too long for any file
        found = False
    if not found:
        raise LogError('does not exist', source=str(path)[:200], valid=_readable())
    if path.is_dir() or path.suffix in BAG_SUFFIXES:
        arrays, names, notes = read_bag(path, form)
    elif path.suffix in TABLES:
        arrays, names, notes = TABLES[path.suffix](path, form, model)
    else:
        raise LogError(f'has the suffix {path.suffix!r}', source=str(path),
                       valid=_readable())
    return _to_log(arrays, names, notes, form, model, path)


def _readable() -> str:
    return f'a bag (folder, {", ".join(BAG_SUFFIXES)}), {", ".join(TABLES)}'


def _to_log(arrays: dict[str, Array], names: Sequence[str], notes: list[str], form: LogFormat,
            model: Model, path: Path) -> Log:
    """Return the columns as a log of the joints, in SI units."""
    revolute = np.array([not model.prismatic[model.body_joints.index(name)]
                         if name in model.body_joints else True for name in names])
    if form.degrees:
        for key in ('position', 'velocity', 'reference'):
            if key in arrays:
                arrays[key] = np.where(revolute, np.deg2rad(arrays[key]), arrays[key])
    if form.side not in ('joint', 'motor'):
        raise UnknownNameError('side', form.side, ('joint', 'motor'))
    meaning = model.effort
    if (form.side == meaning.side == 'motor') or (
            len(form.torque_scale) and meaning.measured == 'current'):
        raise LogError('torques would be converted twice: by the format of the log, and by the '
                       'section effort of the motor data', source=path.name, valid='one of them')
    if len(form.torque_scale):
        arrays['torque'] = arrays['torque'] * _per_joint(form.torque_scale, names, 'torque_scale')
    if form.side == 'motor':
        ratios = motor_ratios(model, names)
        inverse = np.linalg.inv(ratios).T
        for key in ('position', 'velocity', 'reference'):
            if key in arrays:
                arrays[key] = arrays[key] @ inverse
        arrays['torque'] = arrays['torque'] @ ratios  # tau = K' tau_m, a row for each sample
        notes.append('positions and torques converted from the motors to the joints')
    if len(form.position_offset):
        offset = _per_joint(form.position_offset, names, 'position_offset')
        for key in ('position', 'reference'):
            if key in arrays:
                arrays[key] = arrays[key] + offset
    return Log(arrays['time'] * form.unit_of_time, arrays['position'], arrays['torque'],
               qd=arrays.get('velocity'), tau_motor=arrays.get('motor_torque'),
               extra=arrays.get('extra'), reference=arrays.get('reference'), joint_names=names,
               source=path.name, notes=notes)


def motor_ratios(model: Model, names: Sequence[str]) -> Array:
    """Return K of ``qm_dot = K qd`` for these joints, shape (k, k)."""
    bodies = [model.body_joints.index(name) for name in names]
    places = [model.joint_names.index(name) for name in names]
    return model.gear_ratio[bodies, None] * model.motor_row[np.ix_(bodies, places)]


def _per_joint(values: Sequence[float], names: Sequence[str], what: str) -> Array:
    array = np.asarray(values, np.float64)
    if array.shape != (len(names),):
        raise LogError(f'{what} has {array.size} numbers',
                       valid=f'{len(names)}, one for each joint')
    return array
