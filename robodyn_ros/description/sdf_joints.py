"""Joints of an SDF, with their links and axes resolved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from lxml import etree

from robodyn_ros.description.motors import number_or_text, set_motor_value
from robodyn_ros.description.robot import Finding, Mimic, RobotDescription
from robodyn_ros.description.sdf_elements import (
    check_content,
    child_of,
    flag_of,
    is_extension,
    limit_of,
    number_of,
    text_of,
    vector_of,
)
from robodyn_ros.description.sdf_frames import MODEL, WORLD, Frames, Scope
from robodyn_ros.description.sdf_tree import Axis, Connection
from robodyn_ros.description.xml import local_name
from robodyn_ros.errors import DescriptionError, UnknownNameError
from robodyn_ros.spatial import Array

# type of a joint -> the axes that it needs
TYPES = {'fixed': (), 'ball': (), 'revolute': ('axis',), 'continuous': ('axis',),
         'prismatic': ('axis',), 'screw': ('axis',), 'universal': ('axis', 'axis2'),
         'revolute2': ('axis', 'axis2'), 'gearbox': ('axis',)}
SHORTEST_AXIS = 1e-8  # length of <xyz> below which it has no direction
AXES_IN_MODEL = (1, 4)  # up to this version, axes are given in the frame of the model
MOTOR = ('rotor_inertia', 'gear_ratio')  # extensions of Drake: <drake:rotor_inertia>


class Entry(NamedTuple):
    """A link or joint of the document, whose names and poses are not yet resolved.

    Attributes
    ----------
    name, frame : str
        Absolute names of the link or joint, and of its frame.
    element : lxml element
        Its element.
    scope : Scope
        The model in which it is defined.
    file : str
        The included file that contains it; '' for the main file.
    """

    name: str
    frame: str
    element: etree._Element
    scope: Scope
    file: str


@contextmanager
def in_file(file: str) -> Iterator[None]:
    """Name an included file in errors."""
    try:
        yield
    except DescriptionError as error:
        raise (error.within(file) if file else error) from None


def relative_to(pose: etree._Element | None) -> str:
    """Return the frame of a ``<pose>``; up to version 1.6 the attribute was called ``frame``."""
    return '' if pose is None else pose.get('relative_to') or pose.get('frame') or ''


def connection_of(entry: Entry, frames: Frames, findings: list[Finding]) -> Connection:
    """Return a joint with its links, and its origin and axes in the world.

    Raises
    ------
    RobodynError
        A name is unknown, or something is not understood.
    """
    name, element, scope = entry.name, entry.element, entry.scope
    where, line = f'joint {name!r}', element.sourceline
    check_content(element, where)
    kind = element.get('type') or ''
    if kind not in TYPES:
        raise DescriptionError(f'type is {kind!r}', element=where, line=line,
                               valid=', '.join(TYPES))
    ends = [_link(element, tag, scope, frames, where) for tag in ('parent', 'child')]
    if ends[0] == ends[1]:
        raise DescriptionError(f'connects {ends[0]!r} with itself', element=where, line=line,
                               valid='two links')
    position = frames.pose(entry.frame)[1]
    axes = [_axis(element, tag, entry, frames, findings) for tag in TYPES[kind]]
    gear, pitch = None, 0.0
    if kind == 'gearbox':
        if child_of(element, 'axis2') is not None:
            axes.append(_axis(element, 'axis2', entry, frames, findings))
        reference = text_of(element, 'gearbox_reference_body')
        if not reference:
            raise DescriptionError('has no <gearbox_reference_body>', element=where, line=line)
        gear = (number_of(element, 'gearbox_ratio', where, 1.0),
                frames.link(frames.find(scope.absolute(reference), line)))
    elif kind == 'screw':
        pitch = _pitch(element, where)
    bounded = any(np.isfinite([axis.limits['lower'], axis.limits['upper']]).any()
                  for axis in axes)
    plain = {'revolute2': 'universal', 'revolute': 'revolute' if bounded else 'continuous'}
    return Connection(name, plain.get(kind, kind), ends[0], ends[1], position, tuple(axes), pitch,
                      gear, line)


def _link(element: etree._Element, tag: str, scope: Scope, frames: Frames, where: str) -> str:
    """Return the link to which <parent> or <child> leads."""
    text = text_of(element, tag)
    if not text:
        raise DescriptionError(f'has no <{tag}>', element=where, line=element.sourceline,
                               valid=f'<{tag}>name of a link</{tag}>')
    link = frames.link(frames.find(scope.absolute(text), element.sourceline))
    if link.rpartition('::')[2] == MODEL:
        raise DescriptionError(f'{tag} is {text!r}, a model without links', element=where,
                               line=element.sourceline, valid='a link, frame, joint or model')
    if tag == 'child' and link == WORLD:
        raise DescriptionError("child is 'world'", element=where, line=element.sourceline,
                               valid="a link; 'world' can be the parent")
    return link


def _pitch(element: etree._Element, where: str) -> float:
    """Return the advance of a screw, m/rad."""
    if child_of(element, 'screw_thread_pitch') is not None:  # m per revolution
        return number_of(element, 'screw_thread_pitch', where, 0.0) / (2 * np.pi)
    turns = number_of(element, 'thread_pitch', where, 0.0)  # rad/m, of a left-handed screw
    if not turns:
        raise DescriptionError('has no pitch', element=where, line=element.sourceline,
                               valid='<screw_thread_pitch> in m per revolution')
    return -1.0 / turns


def _axis(joint: etree._Element, tag: str, entry: Entry, frames: Frames,
          findings: list[Finding]) -> Axis:
    where, scope = f'joint {entry.name!r}', entry.scope
    element = child_of(joint, tag, entry.name, findings)
    if element is None:
        raise DescriptionError(f'has no <{tag}>', element=where, line=joint.sourceline,
                               valid=f'<{tag}><xyz>0 0 1</xyz></{tag}>')
    check_content(element, where)
    xyz = child_of(element, 'xyz', entry.name, findings)
    vector = np.array([0.0, 0.0, 1.0]) if xyz is None else vector_of(xyz, 3, where)
    length = float(np.linalg.norm(vector))
    if length < SHORTEST_AXIS:
        raise DescriptionError(f'<xyz> of <{tag}> is {vector.tolist()}', element=where,
                               line=element.sourceline, valid='a unit vector')
    frame = '' if xyz is None else xyz.get('expressed_in') or ''
    if scope.version <= AXES_IN_MODEL or flag_of(element, 'use_parent_model_frame', where):
        frame = frame or MODEL
    absolute = frames.find(scope.absolute(frame), element.sourceline) if frame else entry.frame
    direction: Array = frames.pose(absolute)[0] @ (vector / length)
    return Axis(direction, _limits(element, entry.name, joint.get('type') or '', findings),
                _mimic(joint, element, scope, where))


def _limits(axis: etree._Element, name: str, kind: str,
            findings: list[Finding]) -> dict[str, float]:
    where, limit = f'joint {name!r}', child_of(axis, 'limit')
    dynamics = child_of(axis, 'dynamics')
    for element in (limit, dynamics):
        if element is not None:
            check_content(element, where)
    lower = limit_of(limit, 'lower', where, -np.inf)
    upper = limit_of(limit, 'upper', where, np.inf)
    if kind == 'continuous':
        lower, upper = -np.inf, np.inf
    elif lower > upper:
        findings.append(Finding(name, 'limit', [lower, upper], where, False,
                                'the lower limit is above the upper limit: the joint is treated '
                                'as one without position limits'))
        lower, upper = -np.inf, np.inf
    found = {'lower': lower, 'upper': upper}
    for tag in ('velocity', 'effort'):
        value = limit_of(limit, tag, where, np.inf)
        found[tag] = value if value > 0 else np.inf  # -1: no limit
    for tag in ('damping', 'friction'):
        found[tag] = number_of(dynamics, tag, where, 0.0)
        if found[tag] < 0:
            raise DescriptionError(f'{tag} is {found[tag]}', element=where, line=axis.sourceline,
                                   valid=f'{tag} >= 0')
    if number_of(dynamics, 'spring_stiffness', where, 0.0):
        findings.append(Finding(name, 'spring_stiffness', number_of(
            dynamics, 'spring_stiffness', where, 0.0), where, False,
            'springs of SDF are not read; a motor file can hold them'))
    return found


def _mimic(joint: etree._Element, axis: etree._Element, scope: Scope, where: str) -> Mimic | None:
    """Return what an axis follows: <mimic> of SDF 1.11, or <drake:mimic> of the joint."""
    element = child_of(axis, 'mimic')
    if element is not None:
        check_content(element, where)
        name = element.get('joint') or ''
        factor = number_of(element, 'multiplier', where, 1.0)
        shift = number_of(element, 'offset', where, 0.0)
        shift -= factor * number_of(element, 'reference', where, 0.0)
        which = element.get('axis') or 'axis'
        if which not in ('axis', 'axis2'):
            raise UnknownNameError(f'axis that {where} mimics', which, ('axis', 'axis2'))
        return Mimic(scope.absolute(name) + (' axis2' if which == 'axis2' else ''), factor, shift)
    for element in joint:
        if is_extension(element) and local_name(element) == 'mimic' and element.get('joint'):
            values = [number_or_text(element.get(key) or default)
                      for key, default in (('multiplier', '1'), ('offset', '0'))]
            if any(isinstance(value, str) for value in values):
                raise DescriptionError('<drake:mimic> is not numbers', element=where,
                                       line=element.sourceline, valid='multiplier and offset')
            return Mimic(scope.absolute(element.get('joint') or ''),
                         *values)  # type: ignore[arg-type]
    return None


def with_drake_motor(description: RobotDescription, joint: str,
                     element: etree._Element) -> RobotDescription:
    """Read ``<drake:rotor_inertia>`` and ``<drake:gear_ratio>`` of a joint or its axis."""
    for holder in (element, *element.findall('axis')):
        for child in holder:
            if is_extension(child) and local_name(child) in MOTOR:
                description = set_motor_value(
                    description, joint, local_name(child), number_or_text(
                        child.get('value') or child.text or ''),
                    f'<drake:{local_name(child)}> (line {child.sourceline})')
    return description
