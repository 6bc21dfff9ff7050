"""Writes a `RobotDescription` as URDF: links with their inertials, and joints."""

from __future__ import annotations

import numpy as np
from lxml import etree

from robodyn_ros.description.repair import inertial_element, numbers
from robodyn_ros.description.robot import Joint, RobotDescription
from robodyn_ros.spatial import rpy_from_rotation

ENVIRONMENT = 'world'  # root link of a robot with a floating base
UNLIMITED = 1e6  # m, range of a prismatic joint that has other limits, but none of its position


def urdf_text(description: RobotDescription) -> str:
    """Return a URDF of a robot, without geometry.

    Friction is that of the joints; armature is written as `Motor.reflected_inertia`. A floating
    base hangs on a link ``world`` by a joint of type ``floating``.
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
    if description.floating:
        free = etree.SubElement(root, 'joint', name=f'{environment} to {description.root}',
                                type='floating')
        etree.SubElement(free, 'parent', link=environment)
        etree.SubElement(free, 'child', link=description.root)
    for joint in description.joints:
        _add_joint(root, joint, description)
    etree.indent(root)
    return str(etree.tostring(root, encoding='unicode')) + '\n'


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
    elif limits and kind == 'prismatic':
        limits |= {'lower': -UNLIMITED, 'upper': UNLIMITED}
    if limits:
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
