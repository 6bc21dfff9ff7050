"""Reads logs: ROS 2 bags (sqlite3, MCAP; metadata may be missing), CSV and NPZ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robodyn_ros.description import Array
from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.errors import LogError, UnknownNameError
from robodyn_ros.identification.log import MINIMUM, Log
from robodyn_ros.model import Model

_SPELLINGS = {
    'time': ('t', 'time', 'stamp', 'timestamp'),
    'position': ('q', 'position', 'pos'),
    'velocity': ('qd', 'dq', 'velocity', 'vel'),
    'torque': ('tau', 'effort', 'torque'),
    'motor_torque': ('tau_motor', 'motor_torque'),
    'extra': ('extra', 'tau_extra'),
    'reference': ('q_reference', 'reference'),
}
_BAG_SUFFIXES = ('.db3', '.mcap')
JOINT_STATE = 'sensor_msgs/msg/JointState'


@dataclass(frozen=True)
class LogFormat:
    """How a log file is to be understood; everything has a usual value.

    Attributes
    ----------
    topic, motor_topic : str
        Of a bag: sensor_msgs/JointState; the second has the motors' torques as its efforts.
    time, position, velocity, torque, motor_torque, extra, reference : str
        Names of arrays in an NPZ file, or of column groups in a CSV file (``position`` reads
        ``position_JOINT``, ``position_1`` or ``JOINT_position``); default: the usual spellings.
    joints : sequence of str
        Names of the columns, where the file has none.
    rate : float
        Hz, where the file has no time.
    unit_of_time : float
        s of one unit of time, 1e-3 for milliseconds.
    degrees : bool
        Positions and velocities are in degrees.
    side : str
        ``joint``, or ``motor``: positions and torques are the motors', and the model's gear ratios
        or gear matrix bring them to the joints (theory section 3).
    position_offset : sequence of float
        rad or m, added to the joint positions.
    torque_scale : sequence of float
        Factor on each torque, for example a drive gain, N m/A.
    """

    topic: str = 'joint_states'
    motor_topic: str = ''
    time: str = ''
    position: str = ''
    velocity: str = ''
    torque: str = ''
    motor_torque: str = ''
    extra: str = ''
    reference: str = ''
    joints: Sequence[str] = ()
    rate: float = 0.0
    unit_of_time: float = 1.0
    degrees: bool = False
    side: str = 'joint'
    position_offset: Sequence[float] = ()
    torque_scale: Sequence[float] = ()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> LogFormat:
        """Make one of a mapping, as a YAML file holds it."""
        names = [entry.name for entry in fields(cls)]
        for key in values:
            if key not in names:
                raise UnknownNameError('key of a log format', key, names)
        return cls(**values)


def read_log(path: str | Path, model: Model | ClosedLoopDynamics,
             format: LogFormat | Mapping[str, Any] | str | Path | None = None) -> Log:
    """Read a measured log.

    Parameters
    ----------
    path : str or Path
        A bag (folder, ``.db3`` or ``.mcap``), ``.csv`` or ``.npz`` file.
    model : Model or ClosedLoopDynamics
        The robot that was logged; with loops, columns without names are of the independent joints.
    format : LogFormat, mapping or path of a YAML file, optional
        What is not as usual.

    Raises
    ------
    LogError
        It cannot be read, or lacks what is needed.
    """
    path = Path(path).expanduser()
    if isinstance(format, (str, Path)):
        format = read_format(Path(format))
    form = format if isinstance(format, LogFormat) else LogFormat.from_mapping(format or {})
    if isinstance(model, ClosedLoopDynamics):
        form = replace(form, joints=form.joints or model.joint_names)
        model = model.model
    if not path.exists():
        raise LogError('does not exist', source=str(path), valid='a bag, .csv or .npz file')
    if path.is_dir() or path.suffix in _BAG_SUFFIXES:
        arrays, names, notes = _read_bag(path, form)
    elif path.suffix == '.npz':
        arrays, names, notes = _read_npz(path, form, model)
    elif path.suffix == '.csv':
        arrays, names, notes = _read_csv(path, form, model)
    else:
        raise LogError(f'has the suffix {path.suffix!r}', source=str(path),
                       valid='a bag (folder, .db3, .mcap), .csv or .npz')
    return _to_log(arrays, names, notes, form, model, path)


def read_format(path: Path) -> LogFormat:
    """Read a YAML file of `LogFormat`'s keys; LogError where it is none."""
    try:
        content = yaml.safe_load(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LogError(f'cannot be read: {error}', source=str(path)) from None
    if not isinstance(content, dict):
        raise LogError('is not a mapping', source=str(path), valid='keys of LogFormat')
    return LogFormat.from_mapping(content)


def _to_log(arrays: dict[str, Array], names: Sequence[str], notes: list[str], form: LogFormat,
            model: Model, path: Path) -> Log:
    turns = np.array([not model.prismatic[model.body_joints.index(name)]
                      if name in model.body_joints else True for name in names])
    if form.degrees:
        for key in ('position', 'velocity', 'reference'):
            if key in arrays:
                arrays[key] = np.where(turns, np.deg2rad(arrays[key]), arrays[key])
    if form.side not in ('joint', 'motor'):
        raise UnknownNameError('side', form.side, ('joint', 'motor'))
    if len(form.torque_scale):
        arrays['torque'] = arrays['torque'] * _per_joint(form.torque_scale, names, 'torque_scale')
    if form.side == 'motor':
        ratios = motor_ratios(model, names)
        inverse = np.linalg.inv(ratios).T
        for key in ('position', 'velocity', 'reference'):
            if key in arrays:
                arrays[key] = arrays[key] @ inverse
        arrays['torque'] = arrays['torque'] @ ratios  # tau = K' tau_m, a row for each sample
        notes.append('positions and torques brought from the motors to the joints')
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
        raise LogError(f'{what} has {array.size} numbers', valid=f'{len(names)}, one a joint')
    return array


# bags ---------------------------------------------------------------------------------------


def _read_bag(path: Path, form: LogFormat) -> tuple[dict[str, Array], list[str], list[str]]:
    notes: list[str] = []
    states = _joint_states(path, form.topic, notes)
    if not states:
        raise LogError(f'no message on {form.topic!r}', source=str(path),
                       valid='a topic of sensor_msgs/JointState')
    names = list(states[0].name)
    rows: dict[str, list[Any]] = {'time': [], 'position': [], 'velocity': [], 'torque': []}
    lacking = 0
    for state in states:
        place = {name: k for k, name in enumerate(state.name)}
        sizes = {len(state.position), len(state.effort)}
        if sizes != {len(place)} or any(name not in place for name in names):
            lacking += 1
            continue
        order = [place[name] for name in names]
        rows['time'].append(state.header.stamp.sec + state.header.stamp.nanosec * 1e-9)
        rows['position'].append(np.asarray(state.position)[order])
        rows['torque'].append(np.asarray(state.effort)[order])
        rows['velocity'].append(np.asarray(state.velocity)[order]
                                if len(state.velocity) == len(place) else np.full(len(order), 0.0))
    if not rows['time']:
        raise LogError('no state has positions and efforts of every joint', source=str(path))
    arrays = {key: np.array(value) for key, value in rows.items()}
    if not arrays['velocity'].any():
        del arrays['velocity']
    if lacking:
        notes.append(f'{lacking} states without positions and efforts of every joint left out')
    if form.motor_topic:
        arrays['motor_torque'] = _at_stamps(path, form.motor_topic, names, arrays['time'],
                                            notes)
    return arrays, names, notes


def _at_stamps(path: Path, topic: str, names: list[str], stamps: Array,
               notes: list[str]) -> Array:
    """Efforts of another topic, at the stamps of the first."""
    states = [s for s in _joint_states(path, topic, notes) if set(names) <= set(s.name)
              and len(s.effort) == len(s.name)]
    if len(states) < 2:
        raise LogError(f'no efforts of every joint on {topic!r}', source=str(path))
    t = np.array([s.header.stamp.sec + s.header.stamp.nanosec * 1e-9 for s in states])
    order = np.argsort(t, kind='stable')
    efforts = np.array([[s.effort[list(s.name).index(name)] for name in names] for s in states])
    return np.column_stack([np.interp(stamps, t[order], column) for column in efforts[order].T])


def _joint_states(path: Path, topic: str, notes: list[str]) -> list[Any]:
    """Messages of a topic; where a file is cut short, those before the cut."""
    states: list[Any] = []
    for part in _parts(path):
        try:
            for state in _messages(part, topic):
                states.append(state)
        except Exception as error:  # rosbags raises whatever sqlite and its own readers raise
            if len(states) < MINIMUM:
                raise LogError(f'cannot be read: {type(error).__name__}: {error}',
                               source=str(part), valid='a ROS 2 bag, sqlite3 or MCAP') from None
            notes.append(f'{part.name} is damaged after {len(states)} messages '
                         f'({type(error).__name__}); what came before is used')
    return states


def _parts(path: Path) -> list[Path]:
    """The bag as a whole where it has its metadata, else its storage files."""
    if not path.is_dir() or (path / 'metadata.yaml').is_file():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in _BAG_SUFFIXES)
    if not files:
        raise LogError('holds no .db3 or .mcap file', source=str(path), valid='a ROS 2 bag')
    return files


def _messages(path: Path, topic: str) -> Iterator[Any]:
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    with Reader(path) as bag:
        wanted = [c for c in bag.connections if c.topic.strip('/') == topic.strip('/')]
        if not wanted:
            there = sorted({c.topic for c in bag.connections if c.msgtype == JOINT_STATE})
            raise LogError(f'no topic {topic!r}', source=str(path),
                           valid=', '.join(there) or f'a bag with a topic of {JOINT_STATE}')
        for connection in wanted:
            if connection.msgtype != JOINT_STATE:
                raise LogError(f'{topic!r} is of {connection.msgtype}', source=str(path),
                               valid=JOINT_STATE)
        for connection, _, raw in bag.messages(connections=wanted):
            yield store.deserialize_cdr(raw, connection.msgtype)


# arrays -------------------------------------------------------------------------------------


def _read_npz(path: Path, form: LogFormat, model: Model,
              ) -> tuple[dict[str, Array], list[str], list[str]]:
    try:
        with np.load(path, allow_pickle=False) as content:
            there = {name: content[name] for name in content.files}
    except Exception as error:  # zipfile, ValueError, EOFError, ...
        raise LogError(f'cannot be read: {type(error).__name__}: {error}', source=str(path),
                       valid='an .npz file') from None
    arrays = {}
    for key, spellings in _SPELLINGS.items():
        name = getattr(form, key) or next((s for s in spellings if s in there), '')
        if getattr(form, key) and name not in there:
            raise LogError(f'has no array {name!r}', source=str(path), valid=', '.join(there))
        if name:
            arrays[key] = np.asarray(there[name], np.float64)
    names = list(form.joints) or [str(n) for n in there.get('names', there.get('joints', ()))]
    return _complete(arrays, names, form, model, path)


def _read_csv(path: Path, form: LogFormat, model: Model,
              ) -> tuple[dict[str, Array], list[str], list[str]]:
    notes: list[str] = []
    try:
        with path.open(encoding='utf-8-sig') as file:
            header = [name.strip().strip('"') for name in file.readline().split(',')]
            lines = [line.split(',') for line in file if line.strip()]
        whole = [line for line in lines if len(line) == len(header)]
        table = np.array([[float(cell) if cell.strip() else np.nan for cell in line]
                          for line in whole])
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise LogError(f'cannot be read: {error}', source=str(path),
                       valid='a header line, then numbers with decimal points, split by commas'
                       ) from None
    if len(whole) < len(lines):
        notes.append(f'{len(lines) - len(whole)} lines with another number of cells left out')
    if not len(table):
        raise LogError('has no lines of numbers', source=str(path))
    arrays: dict[str, Array] = {}
    names = list(form.joints) or list(model.joint_names)
    for key, spellings in _SPELLINGS.items():
        words = [getattr(form, key)] if getattr(form, key) else list(spellings)
        for word in words:
            if key == 'time' and word in header:
                arrays[key] = table[:, header.index(word)]
                break
            columns = _csv_columns(header, word, names)
            if columns is not None and key != 'time':
                arrays[key] = table[:, columns]
                break
    complete = _complete(arrays, names, form, model, path)
    return complete[0], complete[1], notes + complete[2]


def _csv_columns(header: list[str], word: str, names: Sequence[str]) -> list[int] | None:
    for style in ('{word}_{name}', '{name}_{word}', '{word}_{k}', '{word}{k}', '{name}.{word}'):
        wanted = [style.format(word=word, name=name, k=k + 1) for k, name in enumerate(names)]
        if all(name in header for name in wanted):
            return [header.index(name) for name in wanted]
    return None


def _complete(arrays: dict[str, Array], names: list[str], form: LogFormat, model: Model,
              path: Path) -> tuple[dict[str, Array], list[str], list[str]]:
    for key in ('position', 'torque'):
        if key not in arrays:
            raise LogError(f'has no {key}', source=str(path),
                           valid=f'{" or ".join(_SPELLINGS[key])}, or name it in the format')
        if arrays[key].ndim != 2:
            raise LogError(f'{key} has the shape {arrays[key].shape}', source=str(path),
                           valid='(samples, joints)')
    if form.rate:
        arrays['time'] = np.arange(len(arrays['position'])) / form.rate / form.unit_of_time
    elif 'time' not in arrays:
        raise LogError('has no time', source=str(path),
                       valid=f'{" or ".join(_SPELLINGS["time"])}, or a rate in the format')
    if not names:
        if arrays['position'].shape[1] != model.n:
            raise LogError(f'has {arrays["position"].shape[1]} joints without names',
                           source=str(path), valid=f'{model.n}, or joints in the format')
        names = list(model.joint_names)
    return arrays, names, []
