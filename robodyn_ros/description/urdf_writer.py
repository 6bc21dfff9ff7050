"""Writes a `RobotDescription` as URDF: links with their inertials and geometry, and joints."""

from __future__ import annotations

import numpy as np
from lxml import etree

from robodyn_ros.description.cuts import add_cuts
from robodyn_ros.description.robot import Joint, Link, RobotDescription
from robodyn_ros.description.xml import NO_LIMIT
from robodyn_ros.spatial import Array, Inertial, inertia_components, rpy_from_rotation

ENVIRONMENT = 'world'  # root link of a robot with a floating base
UNLIMITED = 1e6  # m, range of a prismatic joint without limits of its position


def urdf_text(description: RobotDescription) -> str:
    """Return a URDF of a robot.

    Friction is that of the joints; armature is written as `Motor.reflected_inertia`. A floating
    base is connected to a link ``world`` by a joint of type ``floating``. Cuts of closed loops are
    an extension, see `read_cuts`.
    """
    root = etree.Element('robot', name=description.name)
    links = {link.name: link for link in description.links}
    if description.floating:
        environment = ENVIRONMENT
        while environment in links:
            environment += '_'
        etree.SubElement(root, 'link', name=environment)
    for link in links.values():
        element = etree.SubElement(root, 'link', name=link.name)
        if link.inertial is not None:
            element.append(inertial_element(link.inertial))
        _add_shapes(element, link)
    if description.floating:
        free = etree.SubElement(root, 'joint', name=f'{environment} to {description.root}',
                                type='floating')
        etree.SubElement(free, 'parent', link=environment)
        etree.SubElement(free, 'child', link=description.root)
    for joint in description.joints:
        _add_joint(root, joint, description)
    add_cuts(root, description.cuts)
    etree.indent(root)
    return str(etree.tostring(root, encoding='unicode')) + '\n'


def _add_shapes(element: etree._Element, link: Link) -> None:
    for tag, shapes in (('visual', link.visual), ('collision', link.collision)):
        for shape in shapes:
            holder = etree.SubElement(element, tag)
            etree.SubElement(holder, 'origin', xyz=numbers(shape.translation),
                             rpy=numbers(rpy_from_rotation(shape.rotation)))
            geometry = etree.SubElement(holder, 'geometry')
            size = {name: numbers(list(part)) for name, part in shape.sizes.items()}
            if shape.file:
                size['filename'] = shape.file
            etree.SubElement(geometry, shape.kind, size)


def _add_joint(root: etree._Element, joint: Joint, description: RobotDescription) -> None:
    kind = joint.type
    bounded = bool(np.isfinite(joint.lower) and np.isfinite(joint.upper))
    if kind == 'revolute' and not bounded:
        kind = 'continuous'
    element = etree.SubElement(root, 'joint', name=joint.name, type=kind)
    etree.SubElement(element, 'parent', link=joint.parent)
    etree.SubElement(element, 'child', link=joint.child)
    etree.SubElement(element, 'origin', xyz=numbers(joint.translation),
                     rpy=numbers(rpy_from_rotation(joint.rotation)))
    if joint.type == 'fixed':
        return
    etree.SubElement(element, 'axis', xyz=numbers(joint.axis))
    limits = {name: value for name, value in (('velocity', joint.velocity),
                                              ('effort', joint.effort)) if np.isfinite(value)}
    if bounded and kind != 'continuous':
        limits |= {'lower': joint.lower, 'upper': joint.upper}
    elif kind == 'prismatic':
        limits |= {'lower': -UNLIMITED, 'upper': UNLIMITED}
    if limits:  # other parsers of URDF refuse slides without limits, and limits without effort
        limits = {'velocity': NO_LIMIT, 'effort': NO_LIMIT} | limits
        etree.SubElement(element, 'limit', {name: numbers([value])
                                            for name, value in limits.items()})
    friction = description.link_friction.get(joint.name)
    dynamics = {'damping': joint.damping if friction is None else friction.viscous,
                'friction': joint.friction if friction is None else friction.coulomb}
    motor = description.motors.get(joint.name)
    if motor is not None and motor.reflected_inertia:
        dynamics['armature'] = motor.reflected_inertia
    if any(dynamics.values()):
        etree.SubElement(element, 'dynamics', {
            name: numbers([value]) for name, value in dynamics.items()})
    if joint.mimic is not None:
        etree.SubElement(element, 'mimic', joint=joint.mimic.joint,
                         multiplier=numbers([joint.mimic.multiplier]),
                         offset=numbers([joint.mimic.offset]))


def inertial_element(inertial: Inertial) -> etree._Element:
    """Return the URDF element ``<inertial>``."""
    element = etree.Element('inertial')
    etree.SubElement(element, 'origin', xyz=numbers(inertial.com), rpy='0 0 0')
    etree.SubElement(element, 'mass', value=numbers([inertial.mass]))
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    values = inertia_components(inertial.inertia)
    etree.SubElement(element, 'inertia', {name: numbers([value])
                                          for name, value in zip(names, values, strict=True)})
    return element


def inertial_text(inertial: Inertial) -> str:
    """Return the URDF element ``<inertial>`` as text."""
    element = inertial_element(inertial)
    etree.indent(element)
    return etree.tostring(element, encoding='unicode')


def numbers(values: Array | list[float]) -> str:
    """Return numbers as the text of a URDF attribute, without loss of precision."""
    return ' '.join(repr(float(value) + 0.0) for value in values)
