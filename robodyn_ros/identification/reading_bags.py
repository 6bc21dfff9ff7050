"""Reads joint states from bags: sqlite3 or MCAP, with or without their metadata, and ROS 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.errors import LogError
from robodyn_ros.files import check_regular
from robodyn_ros.identification.log import MINIMUM
from robodyn_ros.identification.log_format import SPELLINGS, LogFormat
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

BAG_SUFFIXES = ('.db3', '.mcap', '.bag')
JOINT_STATE = 'sensor_msgs/msg/JointState'
TEMPERATURES = ('sensor_msgs/msg/Temperature', 'control_msgs/msg/DynamicJointState')
CONTROL_MSGS = {
    'control_msgs/msg/InterfaceValue': 'string[] interface_names\nfloat64[] values\n',
    'control_msgs/msg/DynamicJointState': 'std_msgs/Header header\nstring[] joint_names\n'
                                          'control_msgs/InterfaceValue[] interface_values\n'}
LARGEST_BAG = 1 << 36  # bytes; messages are read one by one
MOST_MESSAGES = 10_000_000  # 2.7 hours at 1 kHz; arrays of this many samples fit into memory


def read_bag(path: Path, form: LogFormat, links: Mapping[str, str], *,
             torques: bool = True) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a bag, the names of its joints, and notes.

    Without ``torques``, efforts may be missing: they are not numbers then.

    Parameters
    ----------
    path : Path
        The bag.
    form : LogFormat
        Its topics.
    links : mapping of str to str
        The joint that moves each link; temperature messages may name either.

    Raises
    ------
    LogError
        The bag cannot be read, or has no states with positions and efforts of every joint.
    """
    notes: list[str] = []
    states = _joint_states(path, form.topic, notes)
    if not states:
        raise LogError(f'has no message on {form.topic!r}', source=str(path),
                       valid='a topic of sensor_msgs/JointState')
    names = list(states[0].name)
    rows: dict[str, list[Any]] = {'time': [], 'position': [], 'velocity': [], 'torque': []}
    lacking = 0
    for state in states:
        place = {name: k for k, name in enumerate(state.name)}
        sizes = {len(state.position), *([len(state.effort)] if torques else [])}
        if sizes != {len(place)} or any(name not in place for name in names):
            lacking += 1
            continue
        order = [place[name] for name in names]
        rows['time'].append(state.header.stamp.sec + state.header.stamp.nanosec * 1e-9)
        rows['position'].append(np.asarray(state.position)[order])
        rows['torque'].append(np.asarray(state.effort)[order] if len(state.effort) == len(place)
                              else np.full(len(order), np.nan))
        rows['velocity'].append(np.asarray(state.velocity)[order]
                                if len(state.velocity) == len(place) else np.full(len(order), 0.0))
    if not rows['time']:
        raise LogError('has no state with positions and efforts of every joint', source=str(path))
    arrays = {key: np.array(value) for key, value in rows.items()}
    if not arrays['velocity'].any():
        del arrays['velocity']
    if lacking:
        notes.append(f'{lacking} states without positions and efforts of every joint were left '
                     'out')
    if form.motor_topic:
        arrays['motor_torque'] = _at_stamps(path, form.motor_topic, names, arrays['time'],
                                            notes)
    if form.temperature_topic:
        arrays['temperature'] = _temperatures(path, form.temperature_topic, names, links,
                                              arrays['time'], notes)
    return arrays, names, notes


def _temperatures(path: Path, topic: str, names: list[str], links: Mapping[str, str],
                  stamps: Array, notes: list[str]) -> Array:
    """Return the temperatures of joints at stamps; NaN for joints that have none."""
    readings: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    topics = {topic.replace('{joint}', name): name for name in names} if '{joint}' in topic \
        else {topic: ''}
    for one, alone in topics.items():
        for message in messages_of(path, one, TEMPERATURES, notes):
            time = message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
            for name, value in _readings(message, alone, links):
                if name in readings and np.isfinite(value):
                    readings[name].append((time, value))
    lacking = [name for name, found in readings.items() if not found]
    if len(lacking) == len(names):
        raise LogError(f'has no temperature of any joint on {topic!r}', source=str(path),
                       valid='messages that name joints or links, or {joint} in the topic')
    if lacking:
        notes.append(f'no temperature of {", ".join(lacking)} on {topic!r}')
    found = np.full((len(stamps), len(names)), np.nan)
    for k, name in enumerate(names):
        if readings[name]:
            times, values = np.array(sorted(readings[name])).T
            found[:, k] = np.interp(stamps, times, values)
    return found


def _readings(message: Any, alone: str, links: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yield the joints of a message and their temperatures."""
    if hasattr(message, 'temperature'):
        frame = message.header.frame_id
        yield alone or links.get(frame, frame), float(message.temperature)
        return
    for name, interface in zip(message.joint_names, message.interface_values, strict=False):
        for kind, value in zip(interface.interface_names, interface.values, strict=False):
            if kind.rpartition('/')[2] in SPELLINGS['temperature']:
                yield name, float(value)


def _at_stamps(path: Path, topic: str, names: list[str], stamps: Array,
               notes: list[str]) -> Array:
    """Return the efforts of another topic, interpolated at the stamps of the first."""
    states = [s for s in _joint_states(path, topic, notes) if set(names) <= set(s.name)
              and len(s.effort) == len(s.name)]
    if len(states) < 2:
        raise LogError(f'has no efforts of every joint on {topic!r}', source=str(path))
    t = np.array([s.header.stamp.sec + s.header.stamp.nanosec * 1e-9 for s in states])
    order = np.argsort(t, kind='stable')
    efforts = np.array([[s.effort[list(s.name).index(name)] for name in names] for s in states])
    return np.column_stack([np.interp(stamps, t[order], column) for column in efforts[order].T])


def _joint_states(path: Path, topic: str, notes: list[str]) -> list[Any]:
    return messages_of(path, topic, (JOINT_STATE,), notes)


def messages_of(path: Path, topic: str, kinds: tuple[str, ...], notes: list[str]) -> list[Any]:
    """Return the messages of a topic; in a damaged file, those before the damage."""
    states: list[Any] = []
    for part in _parts(path):
        try:
            for state in _messages(part, topic, kinds):
                states.append(state)
                if len(states) > MOST_MESSAGES:
                    break
        except LogError:
            raise
        except Exception as error:  # rosbags passes on the errors of sqlite and of its readers
            if len(states) < MINIMUM:
                raise LogError(f'cannot be read: {type(error).__name__}: {error}',
                               source=str(part), valid='a bag (.db3, .mcap, .bag)') from None
            notes.append(f'{part.name} is damaged after {len(states)} messages '
                         f'({type(error).__name__}); the messages before that are used')
        if len(states) > MOST_MESSAGES:
            raise LogError(f'has more than {MOST_MESSAGES} messages on {topic!r}',
                           source=str(path), valid='a shorter bag')
    return states


def _parts(path: Path) -> list[Path]:
    """Return the bag itself if it has its metadata, otherwise its storage files."""
    for file in path.iterdir() if path.is_dir() else [path]:
        check_regular(file, LARGEST_BAG, error=LogError)
    if not path.is_dir():
        return [path]
    if (path / 'metadata.yaml').is_file():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in BAG_SUFFIXES)
    if not files:
        raise LogError('contains no .db3 or .mcap file', source=str(path), valid='a ROS 2 bag')
    return files


def _messages(path: Path, topic: str, kinds: tuple[str, ...]) -> Iterator[Any]:
    typesys = package('rosbags.typesys')
    first = path.suffix == '.bag'  # of ROS 1
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC if first else
                                  typesys.Stores.ROS2_JAZZY)
    for name, text in CONTROL_MSGS.items():  # which are not among the common ones
        if name not in store.types:
            store.register(typesys.get_types_from_msg(text, name))
    read = store.deserialize_ros1 if first else store.deserialize_cdr
    with package('rosbags.rosbag1' if first else 'rosbags.rosbag2').Reader(path) as bag:
        wanted = [c for c in bag.connections if c.topic.strip('/') == topic.strip('/')]
        if not wanted:
            there = sorted({c.topic for c in bag.connections if c.msgtype in kinds})
            raise LogError(f'has no topic {topic!r}', source=str(path), valid=', '.join(there)
                           or f'a bag with a topic of {" or ".join(kinds)}')
        for connection in wanted:
            if connection.msgtype not in kinds:
                raise LogError(f'has {topic!r} of type {connection.msgtype}', source=str(path),
                               valid=' or '.join(kinds))
        for connection, _, raw in bag.messages(connections=wanted):
            yield read(raw, connection.msgtype)
