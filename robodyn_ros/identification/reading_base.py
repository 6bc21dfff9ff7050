"""Reads what logs of robots with a floating base contain besides the joints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.interpolate
from numpy.typing import NDArray

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import LogError, UnknownNameError
from robodyn_ros.identification.floating_log import FloatingBaseLog
from robodyn_ros.identification.log_format import LogFormat
from robodyn_ros.identification.reading_bags import messages_of, read_bag
from robodyn_ros.model import LinkFrame, Model
from robodyn_ros.spatial import Array, continuous_quaternions

ODOMETRY = 'nav_msgs/msg/Odometry'
WRENCH_STAMPED = 'geometry_msgs/msg/WrenchStamped'
WRENCH = 'wrench_'  # prefix of the array of a link's wrench
CONTACT = 'contact_'  # prefix of the array that says whether a link is in contact
POSE = ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw')
TWIST = ('vx', 'vy', 'vz', 'wx', 'wy', 'wz')
FORCE, MOMENT = ('fx', 'fy', 'fz'), ('mx', 'my', 'mz')


def base_columns(header: list[str], table: Array, model: Model) -> dict[str, Array]:
    """Return pose and twist of the base and wrenches from the columns of a table."""
    if not model.floating:
        return {}
    found: dict[str, Array] = {}
    links = [link for link in model.link_frames if f'{link}_fx' in header]
    for name, what, parts in (('base_pose', 'base', POSE), ('base_twist', 'base', TWIST),
                              *((WRENCH + link, link, FORCE) for link in links),
                              *((WRENCH + link, link, (*FORCE, *MOMENT)) for link in links)):
        wanted = [f'{what}_{part}' for part in parts]
        if all(column in header for column in wanted):
            found[name] = table[:, [header.index(column) for column in wanted]]
    found |= {CONTACT + link: table[:, header.index(f'{link}_contact')]
              for link in model.link_frames if f'{link}_contact' in header}
    return _with_moments(found)


def base_arrays(there: dict[str, Array], model: Model) -> dict[str, Array]:
    """Return pose and twist of the base and wrenches from arrays by their names."""
    if not model.floating:
        return {}
    names = ('base_pose', 'base_twist', *(prefix + link for link in model.link_frames
                                          for prefix in (WRENCH, CONTACT)))
    return _with_moments({name: np.asarray(there[name], np.float64) for name in names
                          if name in there})


def _with_moments(arrays: dict[str, Array]) -> dict[str, Array]:
    """Add moments of zero to wrenches that consist of forces alone."""
    return {name: np.hstack([array, np.zeros_like(array)]) if name.startswith(WRENCH)
            and array.ndim == 2 and array.shape[1] == 3 else array
            for name, array in arrays.items()}


def read_floating_bag(path: Path, form: LogFormat, model: Model,
                      ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a bag, at the stamps of its joint states within its odometry.

    Raises
    ------
    LogError
        The bag lacks messages, or its odometry is that of a link that is not fixed to the base.
    """
    arrays, names, notes = read_bag(path, form, {}, torques=False)
    states = messages_of(path, form.odometry_topic, (ODOMETRY,), notes)
    stamps, order = _stamps(states, path, form.odometry_topic)
    rows = np.array([_odometry(state) for state in states])[order]
    frame = _measured_frame({state.child_frame_id for state in states}, model, path, form)
    rows = np.hstack(frame.motion_of_body(rows[:, :7], rows[:, 7:]))
    rows[:, 3:7] = continuous_quaternions(rows[:, 3:7])
    inside = (arrays['time'] >= stamps[0]) & (arrays['time'] <= stamps[-1])
    if not inside.all():
        notes.append(f'{int((~inside).sum())} joint states before or after the odometry were '
                     'left out')
    arrays = {key: value[inside] for key, value in arrays.items()}
    t = arrays['time']
    even = scipy.interpolate.CubicSpline(stamps, rows)(t)
    even[:, 3:7] /= np.linalg.norm(even[:, 3:7], axis=1, keepdims=True)
    arrays['base_pose'], arrays['base_twist'] = even[:, :7], even[:, 7:]
    for link, topic in form.wrench_topics.items():
        messages = messages_of(path, topic, (WRENCH_STAMPED,), notes)
        stamps, order = _stamps(messages, path, topic)
        wrenches = np.array([_wrench(one) for one in messages])[order]
        arrays[WRENCH + link] = np.column_stack([np.interp(t, stamps, column)
                                                 for column in wrenches.T])
    if np.isnan(arrays['torque']).all():
        del arrays['torque']
    return arrays, names, notes


def _stamps(messages: list[Any], path: Path, topic: str) -> tuple[Array, NDArray[np.int_]]:
    """Return the increasing stamps of messages, s, and the indices of these messages."""
    if len(messages) < 2:
        raise LogError(f'has {len(messages)} messages on {topic!r}', source=str(path),
                       valid='at least two')
    t = np.array([m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in messages])
    stamps, order = np.unique(t, return_index=True)
    return stamps, order


def _measured_frame(names: set[str], model: Model, path: Path, form: LogFormat) -> LinkFrame:
    """Return the frame, on the base, of the link whose motion the odometry measured."""
    fixed = [name for name, frame in model.link_frames.items() if frame.body < 0]
    if len(names) == 1 and (names <= {'', *fixed}):
        return model.link_frames[names.pop() or model.description.root]
    raise LogError(f'has odometry of {", ".join(map(repr, sorted(names)))} on '
                   f'{form.odometry_topic!r} (child_frame_id)', source=str(path),
                   valid=f'that of one link fixed to the base: {", ".join(fixed[:20])}')


def _odometry(message: Any) -> list[float]:
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    return [place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w,
            linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]


def _wrench(message: Any) -> list[float]:
    force, moment = message.wrench.force, message.wrench.torque
    return [force.x, force.y, force.z, moment.x, moment.y, moment.z]


def in_root_axes(log: FloatingBaseLog, model: Model, form: LogFormat) -> FloatingBaseLog:
    """Return a log whose wrenches are given in the axes of the root frame.

    Raises
    ------
    UnknownNameError
        ``wrench_axes`` of the format is not known, the log lacks a joint of the model, or a link
        does not exist.
    """
    if form.wrench_axes not in ('root', 'link'):
        raise UnknownNameError('wrench_axes', form.wrench_axes, ('root', 'link'))
    if form.wrench_axes == 'root' or not log.wrenches:
        return log
    q = np.hstack([np.asarray(log.pose), np.asarray(log.joints)[:, log.joint_order(model)]])
    dynamics, turned = Dynamics(model), {}
    for link, wrench in log.wrenches.items():
        axes = dynamics.pose(q, link)[:, :3, :3]
        parts = np.asarray(wrench).reshape(-1, 2, 3)
        turned[link] = np.einsum('tij,tkj->tki', axes, parts).reshape(-1, 6)
    return replace(log, wrenches=turned)
