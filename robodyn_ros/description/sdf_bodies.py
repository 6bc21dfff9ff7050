"""Inertials and geometry of the links of an SDF."""

from __future__ import annotations

import numpy as np
from lxml import etree

from robodyn_ros.description.robot import Finding, Link, Shape
from robodyn_ros.description.sdf_elements import (
    check_content,
    child_of,
    flag_of,
    number_of,
    pose_of,
    text_of,
)
from robodyn_ros.errors import DescriptionError
from robodyn_ros.spatial import Inertial

# kind of shape -> the elements that hold its size
_SIZES = {'box': ('size',), 'sphere': ('radius',), 'cylinder': ('radius', 'length'),
          'capsule': ('radius', 'length'), 'mesh': ('scale',)}


def link_of(name: str, element: etree._Element, findings: list[Finding]) -> Link:
    """Return a link with its inertial and geometry.

    A link without ``<inertial>`` has 1 kg and 1 kg m^2 about each axis, as SDF specifies.

    Raises
    ------
    DescriptionError
        A number is invalid, or the inertia is to be computed from the geometry.
    """
    where = f'link {name!r}'
    inertial = child_of(element, 'inertial', name, findings)
    if inertial is None:
        findings.append(Finding(name, 'inertial', 'none', where, True,
                                'SDF then gives the link 1 kg and 1 kg m^2 about each axis'))
    else:
        check_content(inertial, where)
        if inertial.get('auto') in ('true', '1'):
            raise DescriptionError('<inertial auto="true"> is computed from the geometry',
                                   element=where, line=inertial.sourceline,
                                   valid='<mass> and <inertia>; `gz sdf '
                                   '--expand-auto-inertials -p FILE` writes them')
    pose = child_of(inertial, 'pose')
    if pose is not None and (pose.get('relative_to') or pose.get('frame')):
        raise DescriptionError('<pose> of <inertial> is relative to another frame',
                               element=where, line=pose.sourceline, valid='the frame of the link')
    turn, centre = pose_of(pose, where)
    mass = number_of(inertial, 'mass', where, 1.0)
    if mass < 0:
        raise DescriptionError(f'mass is {mass}', element=where, line=element.sourceline,
                               valid='a mass >= 0')
    moments = child_of(inertial, 'inertia')
    if moments is not None:
        check_content(moments, where)
    xx, yy, zz = (number_of(moments, tag, where, 1.0) for tag in ('ixx', 'iyy', 'izz'))
    xy, xz, yz = (number_of(moments, tag, where, 0.0) for tag in ('ixy', 'ixz', 'iyz'))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    _report_ignored(name, element, inertial, where, findings)
    return Link(name, Inertial(mass, centre, turn @ tensor @ turn.T), element.sourceline,
                collision=_shapes(element, 'collision'), visual=_shapes(element, 'visual'))


def _report_ignored(name: str, element: etree._Element, inertial: etree._Element | None,
                    where: str, findings: list[Finding]) -> None:
    if not flag_of(element, 'gravity', where, default=True):
        findings.append(Finding(name, 'gravity', False, where, False, 'gravity acts on all links'))
    if flag_of(element, 'kinematic', where):
        findings.append(Finding(name, 'kinematic', True, where, False, 'the link moves by forces'))
    if child_of(inertial, 'fluid_added_mass') is not None:
        findings.append(Finding(name, 'fluid_added_mass', '', where, False,
                                'there is no fluid around the robot'))
    decay = child_of(element, 'velocity_decay')
    if decay is not None and any(number_of(decay, tag, where, 0.0) for tag in (
            'linear', 'angular')):
        findings.append(Finding(name, 'velocity_decay', '', where, False,
                                'there is no damping of links'))


def _shapes(link: etree._Element, tag: str) -> tuple[Shape, ...]:
    """Return the geometry that can be read; dynamics do not need it."""
    shapes = []
    for element in link.iterfind(tag):
        try:
            shape = _shape(element)
        except DescriptionError:
            continue
        if shape is not None:
            shapes.append(shape)
    return tuple(shapes)


def _shape(element: etree._Element) -> Shape | None:
    geometry, pose = child_of(element, 'geometry'), child_of(element, 'pose')
    content = None if geometry is None else next(
        (child for child in geometry if child.tag in _SIZES), None)
    if content is None or (pose is not None and (pose.get('relative_to') or pose.get('frame'))):
        return None
    kind = str(content.tag)
    if kind == 'mesh':
        words = text_of(content, 'scale', '1 1 1').split()
    else:
        words = ' '.join(text_of(content, tag) for tag in _SIZES[kind]).split()
    try:
        size = tuple(map(float, words))
    except ValueError:
        return None
    rotation, translation = pose_of(pose, f'<{element.tag}>')
    if len(size) != (3 if kind in ('box', 'mesh') else len(_SIZES[kind])) or not np.isfinite(
            size).all() or (kind != 'mesh' and min(size) <= 0):
        return None
    return Shape(kind, size, translation, rotation, text_of(content, 'uri'))
