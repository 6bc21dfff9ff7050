"""Reads motor and gear data from URDF and SRDF in all known spellings.

Later sources override earlier ones: first the tags of the URDF, then ``<rotor_params>`` of an SRDF
file, then a motor YAML (``motor_yaml.py``). Every value becomes a `Finding`, which says where it
was read and whether it is used.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from lxml import etree

from robodyn_ros.description.robot import Finding, Friction, Motor, RobotDescription
from robodyn_ros.description.xml import LARGEST, MAX_BYTES, local_name, parse_xml
from robodyn_ros.errors import DescriptionError
from robodyn_ros.files import read_regular

# spelling (lower case, no prefix) -> quantity; the number is the text or the attribute `value`
_SPELLINGS = {
    'mechanicalreduction': 'gear_ratio',
    'mechanical_reduction': 'gear_ratio',
    'gear_ratio': 'gear_ratio',
    'gearratio': 'gear_ratio',
    'motorinertia': 'rotor_inertia',
    'rotor_inertia': 'rotor_inertia',
    'rotorinertia': 'rotor_inertia',
    'armature': 'armature',
}

NOT_A_NUMBER = f'not a finite number of at most {LARGEST:g} in magnitude'


def from_urdf(description: RobotDescription, root: etree._Element) -> RobotDescription:
    """Read transmissions (URDF, ros2_control, Drake, PR2), armatures and friction offsets.

    The friction offset of a joint, N m or N, is the attribute ``friction_offset`` of its
    ``<dynamics>``; `write_urdf` writes it for identified robots.

    A value that is not a number is ignored, and its finding says so.

    Parameters
    ----------
    description : RobotDescription
        Links and joints of the same URDF.
    root : lxml element
        The ``<robot>`` element.
    """
    for element in root.iter():
        tag = local_name(element)
        if tag == 'transmission':
            description = _from_transmission(description, element)
        elif tag == 'joint' and element.getparent() is root:
            description = _from_joint(description, element)
    return description


def _from_transmission(description: RobotDescription,
                       element: etree._Element) -> RobotDescription:
    joints = [joint for joint in element if local_name(joint) == 'joint']
    actuators = [child for child in element if local_name(child) == 'actuator']
    label = f'<transmission> {element.get("name") or ""!r}'.strip()
    if element.sourceline:
        label += f' (line {element.sourceline})'
    values: dict[str, tuple[float | str, str]] = {}
    for holder in (element, *actuators, *joints):
        for child in holder:
            quantity = _SPELLINGS.get(local_name(child).lower())
            if quantity is None:
                continue
            value = number_or_text(child.get('value') or child.text or '')
            other = values[quantity][0] if quantity in values else ''
            if quantity == 'gear_ratio' and len(joints) == 1 and isinstance(
                    other, float) and isinstance(value, float):
                value *= other  # ros2_control: the reductions of actuator and joint multiply
            values[quantity] = (value, f'{label} <{local_name(child)}>')
    known = {joint.name for joint in description.joints}
    for joint_element in joints:
        name = joint_element.get('name') or ''
        if len(joints) > 1:
            reason = 'the transmission couples several joints: give gear_matrix in a motor YAML'
        elif name not in known:
            reason = 'there is no such joint'
        else:
            reason = ''
        for quantity, (value, source) in values.items():
            description = set_motor_value(description, name, quantity, value, source, reason)
    return description


def _from_joint(description: RobotDescription, element: etree._Element) -> RobotDescription:
    name = element.get('name') or ''
    for holder in (element, *element):
        tag = local_name(holder)
        text = holder.get('armature')
        if tag == 'armature':
            text = holder.get('value') or holder.text
        if text is not None:
            description = set_motor_value(description, name, 'armature', number_or_text(text),
                                          f'<{tag}> armature (line {holder.sourceline})')
        offset = holder.get('friction_offset')
        if tag == 'dynamics' and offset is not None:
            description = _set_friction_offset(description, name, number_or_text(offset),
                                               f'<dynamics> (line {holder.sourceline})')
    return description


def _set_friction_offset(description: RobotDescription, name: str, value: float | str,
                         source: str) -> RobotDescription:
    joint = next(joint for joint in description.joints if joint.name == name)
    if isinstance(value, str) or joint.type == 'fixed':
        reason = NOT_A_NUMBER if isinstance(value, str) else 'the joint is fixed'
        return description.with_findings(
            Finding(name, 'friction_offset', value, source, False, reason))
    friction = Friction(joint.damping, joint.friction, value)
    return replace(description, link_friction={
        **description.link_friction, name: friction}).with_findings(
            Finding(name, 'friction_offset', value, source, True))


def set_motor_value(description: RobotDescription, joint: str, quantity: str,
                    value: float | str, source: str, reason: str = '') -> RobotDescription:
    """Return the description with one motor value of one joint, and a finding about it.

    If the value cannot be used, only the finding is added.

    Parameters
    ----------
    description : RobotDescription
        The robot.
    joint, quantity : str
        The joint, and ``gear_ratio``, ``rotor_inertia`` or ``armature``.
    value : float or str
        The number that was read, or the text if it is not a number.
    source : str
        Where it was read.
    reason : str
        Why it cannot be used, if the caller knows a reason; otherwise the value is checked here.
    """
    if isinstance(value, str):
        return description.with_findings(Finding(
            joint, quantity, value, source, False, NOT_A_NUMBER))
    if not reason and quantity in ('rotor_inertia', 'armature') and value < 0:
        reason = 'it is negative'
    if not reason and quantity == 'gear_ratio' and value == 0:
        reason = 'it is zero'
    joint_type = next((j.type for j in description.joints if j.name == joint), '')
    if not reason and joint_type == 'fixed':
        reason = 'the joint is fixed'
    if not reason:
        motor = description.motors.get(joint, Motor())
        changes: dict[str, Any] = {quantity: value}
        if quantity == 'rotor_inertia' and motor.armature is not None:
            changes['armature'] = None
        description = replace(description, motors={
            **description.motors, joint: replace(motor, **changes)}, findings=tuple(
                replace(finding, used=False, reason=f'overridden by {source}')
                if (finding.joint, finding.quantity, finding.used) == (joint, quantity, True)
                else finding for finding in description.findings))
    return description.with_findings(Finding(joint, quantity, value, source, not reason, reason))


def number_or_text(text: str) -> float | str:
    """Return the number in a text, or the text itself if it is not a usable number."""
    try:
        value = float('nan' if '_' in text else text[:100])
    except ValueError:
        value = math.nan
    return value if abs(value) <= LARGEST else text.strip()[:60]


def from_srdf(description: RobotDescription, path: str | Path) -> RobotDescription:
    """Read the elements ``<rotor_params><joint name mass gear_ratio/>`` of an SRDF file.

    ``mass`` there is the rotor's inertia, kg m^2 on the motor side.

    Raises
    ------
    DescriptionError
        The file cannot be read or parsed.
    """
    path = Path(path)
    try:
        root = parse_xml(read_regular(path, MAX_BYTES))
    except DescriptionError as error:
        raise error.within(str(path)) from None
    for group in root.iter('rotor_params'):
        for joint in group.iter('joint'):
            name = joint.get('name') or ''
            exists = any(j.name == name for j in description.joints)
            for attribute, quantity in (('gear_ratio', 'gear_ratio'), ('mass', 'rotor_inertia')):
                text = joint.get(attribute)
                if text is not None:
                    description = set_motor_value(
                        description, name, quantity, number_or_text(text),
                        f'{path.name} <rotor_params> {attribute} (line {joint.sourceline})',
                        '' if exists else 'there is no such joint')
    return description
