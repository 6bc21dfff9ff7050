"""Reads logs: bags of ROS 2 and ROS 1, and tables in CSV, NPZ, MAT and Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics, RobotDynamics
from robodyn_ros.errors import LogError, UnknownNameError, ValueRangeError, check_type
from robodyn_ros.identification.floating_log import FloatingBaseLog
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.log_format import LogFormat
from robodyn_ros.identification.reading_bags import BAG_SUFFIXES, read_bag
from robodyn_ros.identification.reading_base import (
    CONTACT,
    WRENCH,
    in_root_axes,
    read_floating_bag,
)
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
    check_type('model', model, (Model, Dynamics, ClosedLoopDynamics), A_MODEL)
    form = format if isinstance(format, LogFormat) else LogFormat.read(format or {})
    if not isinstance(model, Model):
        if model.cuts:
            form = replace(form, joints=form.joints or model.joint_names)
        model = model.model
    model.require_fixed_base('read_log (read_floating_base_log supports it)')
    path = _existing(path)
    arrays, names, notes = _read(path, form, model)
    return _to_log(arrays, names, notes, form, model, path)


@checked_keywords
def read_floating_base_log(path: str | Path, model: Model,
                           format: LogFormat | Mapping[str, Any] | str | Path | None = None,
                           ) -> FloatingBaseLog:
    """Read a measured log of a robot with a floating base.

    Parameters
    ----------
    path, format
        See `read_log`. A table also has the pose of the base, columns ``base_x``, ``base_y``,
        ``base_z``, ``base_qx``, ``base_qy``, ``base_qz``, ``base_qw``, and optionally its twist,
        ``base_vx`` to ``base_wz``, and wrenches, ``LINK_fx`` to ``LINK_mz`` (without moments:
        zero), or ``LINK_contact`` (1 or 0); or arrays ``base_pose``, ``base_twist``,
        ``wrench_LINK`` and ``contact_LINK``. Torques of the joints
        are optional.
    model : Model
        The robot that was logged, loaded with ``base='floating'``.

    Raises
    ------
    LogError, UnknownNameError
        As `read_log`; or the pose of the base is missing.
    """
    check_type('model', model, Model, A_MODEL)
    if not model.floating:
        raise ValueRangeError('base', 'fixed', "'floating', see load_model; read_log reads logs "
                              'of robots with a fixed base')
    form = format if isinstance(format, LogFormat) else LogFormat.read(format or {})
    path = _existing(path)
    arrays, names, notes = _read(path, form, model)
    torques = arrays.pop('torque', None)
    arrays['torque'] = np.zeros_like(arrays['position']) if torques is None else torques
    _convert(arrays, names, notes, form, model, path)
    wrenches = {key.removeprefix(WRENCH): value for key, value in arrays.items()
                if key.startswith(WRENCH)}
    contacts = {key.removeprefix(CONTACT): value.ravel() for key, value in arrays.items()
                if key.startswith(CONTACT)}
    if 'base_pose' not in arrays:
        raise LogError('has no pose of the base', source=path.name,
                       valid='columns base_x ... base_qw, an array base_pose, or odometry')
    log = FloatingBaseLog(arrays['time'] * form.unit_of_time, arrays['base_pose'],
                          arrays['position'], names, arrays.get('base_twist'),
                          None if torques is None else arrays['torque'], wrenches, contacts,
                          path.name, notes)
    return in_root_axes(log, model, form)


def _existing(path: str | Path) -> Path:
    """Return the path of a log that exists."""
    check_type('path', path, (str, Path), 'the path of a file or folder')
    path = Path(path).expanduser()
    try:
        found = path.exists()
    except OSError:  # the name is too long for any file
        found = False
    if not found:
        raise LogError('does not exist', source=str(path)[:200], valid=_readable())
    return path


def _read(path: Path, form: LogFormat, model: Model,
          ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a file, the names of its joints, and notes."""
    if path.is_dir() or path.suffix in BAG_SUFFIXES:
        if model.floating:
            return read_floating_bag(path, form, model)
        return read_bag(path, form, {
            joint.child: joint.name for joint in model.description.joints})
    if path.suffix in TABLES:
        return TABLES[path.suffix](path, form, model)
    raise LogError(f'has the suffix {path.suffix!r}', source=str(path), valid=_readable())


def _readable() -> str:
    return f'a bag (folder, {", ".join(BAG_SUFFIXES)}), {", ".join(TABLES)}'


def _to_log(arrays: dict[str, Array], names: Sequence[str], notes: list[str], form: LogFormat,
            model: Model, path: Path) -> Log:
    """Return the columns as a log of the joints, in SI units."""
    _convert(arrays, names, notes, form, model, path)
    return Log(arrays['time'] * form.unit_of_time, arrays['position'], arrays['torque'],
               qd=arrays.get('velocity'), tau_motor=arrays.get('motor_torque'),
               extra=arrays.get('extra'), reference=arrays.get('reference'),
               temperature=arrays.get('temperature'), joint_names=names, source=path.name,
               notes=notes)


def _convert(arrays: dict[str, Array], names: Sequence[str], notes: list[str], form: LogFormat,
             model: Model, path: Path) -> None:
    """Convert the quantities of the joints to SI units and to the joints' side."""
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


def motor_ratios(model: Model, names: Sequence[str]) -> Array:
    """Return K of ``qm_dot = K qd`` for these joints, shape (k, k)."""
    bodies = [model.body_joints.index(name) for name in names]
    places = [model.first_joint + model.joint_names.index(name) for name in names]
    return model.gear_ratio[bodies, None] * model.motor_row[np.ix_(bodies, places)]


def _per_joint(values: Sequence[float], names: Sequence[str], what: str) -> Array:
    array = np.asarray(values, np.float64)
    if array.shape != (len(names),):
        raise LogError(f'{what} has {array.size} numbers',
                       valid=f'{len(names)}, one for each joint')
    return array
