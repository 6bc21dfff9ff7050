"""Motor and gear data in every spelling found in the wild (theory section 3).

Later sources override earlier ones: the URDF's own tags, then an SRDF's ``<rotor_params>``, then a
motor YAML. Every value found becomes a `Finding` that says which source won.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from robodyn_ros.description import (
    Finding,
    Friction,
    GearMatrix,
    Joint,
    Motor,
    RobotDescription,
)
from robodyn_ros.errors import DescriptionError, ShapeError, UnknownNameError
from robodyn_ros.xml import MAX_BYTES, local_name, parse_number, parse_xml

# spelling (lower case, no prefix) -> quantity; the text or the attribute `value` is the number
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
_JOINT_KEYS = ('gear_ratio', 'rotor_inertia', 'armature', 'spin_axis', 'carrier', 'rotor_mass',
               'rotor_position', 'rotor_in_link', 'motor_friction', 'link_friction', 'drive_gain',
               'stiffness', 'stiffness_damping')
_FRICTION_KEYS = ('viscous', 'coulomb', 'offset')


def from_urdf(description: RobotDescription, root: etree._Element) -> RobotDescription:
    """Read transmissions (URDF, ros2_control, Drake, PR2) and armatures of a URDF.

    Parameters
    ----------
    description : RobotDescription
        What the same URDF says of links and joints.
    root : lxml element
        Its ``<robot>``.

    Raises
    ------
    DescriptionError
        A number that is none.
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
    values: dict[str, tuple[float, str]] = {}
    for holder in (element, *actuators, *joints):
        for child in holder:
            quantity = _SPELLINGS.get(local_name(child).lower())
            if quantity is None:
                continue
            text = (child.get('value') or child.text or '').strip()
            value = parse_number(text, element=label, line=child.sourceline,
                                 quantity=f'<{local_name(child)}>')
            if quantity == 'gear_ratio' and quantity in values and len(joints) == 1:
                value *= values[quantity][0]  # ros2_control: those of actuator and joint multiply
            values[quantity] = (value, f'{label} <{local_name(child)}>')
    known = {joint.name for joint in description.joints}
    for joint_element in joints:
        name = joint_element.get('name') or ''
        if len(joints) > 1:
            reason = 'couples several joints: give gear_matrix in a motor YAML'
        elif name not in known:
            reason = 'no such joint'
        else:
            reason = ''
        for quantity, (value, source) in values.items():
            description = _set(description, name, quantity, value, source, reason)
    return description


def _from_joint(description: RobotDescription, element: etree._Element) -> RobotDescription:
    name = element.get('name') or ''
    for holder in (element, *element):
        tag = local_name(holder)
        text = holder.get('armature')
        if tag == 'armature':
            text = holder.get('value') or holder.text
        if text is not None:
            value = parse_number(text.strip(), element=f'joint {name!r}', line=holder.sourceline,
                                 quantity='armature')
            description = _set(description, name, 'armature', value,
                               f'<{tag}> armature (line {holder.sourceline})')
    return description


def _set(description: RobotDescription, joint: str, quantity: str, value: float, source: str,
         reason: str = '') -> RobotDescription:
    """Set one motor value of one joint, or say why not."""
    if not reason and quantity in ('rotor_inertia', 'armature') and value < 0:
        reason = 'negative'
    if not reason and quantity == 'gear_ratio' and value == 0:
        reason = 'zero'
    joint_type = next((j.type for j in description.joints if j.name == joint), '')
    if not reason and joint_type == 'fixed':
        reason = 'a fixed joint'
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


def from_srdf(description: RobotDescription, path: str | Path) -> RobotDescription:
    """Read ``<rotor_params><joint name mass gear_ratio/>`` of an SRDF file.

    ``mass`` there is the rotor's inertia, kg m^2 on the motor side.

    Raises
    ------
    DescriptionError
        The file cannot be read or parsed.
    """
    path = Path(path)
    root = parse_xml(_read(path))
    for group in root.iter('rotor_params'):
        for joint in group.iter('joint'):
            name = joint.get('name') or ''
            exists = any(j.name == name for j in description.joints)
            for attribute, quantity in (('gear_ratio', 'gear_ratio'), ('mass', 'rotor_inertia')):
                text = joint.get(attribute)
                if text is not None:
                    value = parse_number(text, element=f'{path.name} rotor_params {name!r}',
                                         line=joint.sourceline, quantity=attribute)
                    description = _set(
                        description, name, quantity, value,
                        f'{path.name} <rotor_params> {attribute} (line {joint.sourceline})',
                        '' if exists else 'no such joint')
    return description


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DescriptionError(f'the file has more than {MAX_BYTES} bytes', element=str(path))
        return path.read_bytes()
    except OSError as error:
        raise DescriptionError(f'cannot be read: {error.strerror}', element=str(path)) from None


def from_yaml(description: RobotDescription,
              source: str | Path | Mapping[str, Any]) -> RobotDescription:
    """Read a motor YAML (``docs/conventions.md`` lists its keys).

    Parameters
    ----------
    source : str, Path or mapping
        Path to the file, or its content.

    Raises
    ------
    DescriptionError, UnknownNameError
        The file cannot be read, or names a joint, link or key that does not exist.
    """
    label = 'motor data'
    content: Any = source
    if not isinstance(source, Mapping):
        path = Path(source)
        label = path.name
        try:
            content = yaml.safe_load(_read(path))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise DescriptionError(f'not valid YAML: {error}', element=label) from None
    if not isinstance(content, Mapping):
        raise DescriptionError('holds no mapping', element=label,
                               valid="'joints' and 'gear_matrix'")
    for key in content:
        if key not in ('joints', 'gear_matrix'):
            raise UnknownNameError(f'key in {label}', key, ('joints', 'gear_matrix'))
    joints = {joint.name: joint for joint in description.joints if joint.type != 'fixed'}
    for name, entry in _mapping(content.get('joints'), f'{label}: joints').items():
        if name not in joints:
            raise UnknownNameError(f'joint in {label}', name, joints)
        description = _from_entry(description, joints[name],
                                  _mapping(entry, f'{label}: {name}'), label)
    if content.get('gear_matrix') is not None:
        description = replace(description,
                              gear_matrix=_gear_matrix(content['gear_matrix'], joints, label))
    return description


def _from_entry(description: RobotDescription, joint: Joint, entry: Mapping[str, Any],
                label: str) -> RobotDescription:
    where = f'{label}: {joint.name}'
    for key in entry:
        if key not in _JOINT_KEYS:
            raise UnknownNameError(f'key of {where}', key, _JOINT_KEYS)
    if 'armature' in entry and 'rotor_inertia' in entry:
        raise DescriptionError('armature and rotor_inertia are both given', element=where,
                               valid='one of them: armature is gear_ratio^2 * rotor_inertia')
    for quantity in ('gear_ratio', 'armature', 'rotor_inertia'):
        if entry.get(quantity) is not None:
            value = _number(entry[quantity], f'{where}: {quantity}')
            description = _set(description, joint.name, quantity, value, label)
            if not description.findings[-1].used:
                raise DescriptionError(f'{quantity} is {value}', element=where,
                                       valid='gear_ratio not 0; inertias >= 0')
    changes: dict[str, Any] = {}
    if entry.get('spin_axis') is not None:
        changes['spin_axis'] = _spin_axis(entry['spin_axis'], joint, entry, where)
    if entry.get('carrier') is not None:
        links = [link.name for link in description.links]
        if entry['carrier'] not in links:
            raise UnknownNameError(f'carrier of {where}', entry['carrier'], links)
        changes['carrier'] = entry['carrier']
    if entry.get('rotor_mass') is not None:
        changes['rotor_mass'] = _number(entry['rotor_mass'], f'{where}: rotor_mass', minimum=0)
        changes['rotor_in_link'] = False
    if entry.get('rotor_position') is not None:
        changes['rotor_position'] = _vector(entry['rotor_position'], f'{where}: rotor_position')
    if entry.get('rotor_in_link') is not None:
        if not isinstance(entry['rotor_in_link'], bool):
            raise DescriptionError(f'rotor_in_link is {entry["rotor_in_link"]!r}', element=where,
                                   valid='true or false')
        changes['rotor_in_link'] = entry['rotor_in_link']
    if entry.get('drive_gain') is not None:
        changes['drive_gain'] = _number(entry['drive_gain'], f'{where}: drive_gain')
    for quantity in ('stiffness', 'stiffness_damping'):
        if entry.get(quantity) is not None:
            changes[quantity] = _number(entry[quantity], f'{where}: {quantity}', minimum=0)
    if changes.get('stiffness') == 0:
        raise DescriptionError('stiffness is 0', element=where,
                               valid='a number above 0, or no stiffness for a rigid joint')
    if entry.get('motor_friction') is not None:
        changes['friction'] = _friction(entry['motor_friction'], f'{where}: motor_friction')
    motor = replace(description.motors.get(joint.name, Motor()), **changes)
    description = replace(
        description, motors={**description.motors, joint.name: motor}).with_findings(*(
            Finding(joint.name, key, entry[key], label, True) for key in entry
            if key not in ('gear_ratio', 'armature', 'rotor_inertia')))
    if entry.get('link_friction') is not None:
        friction = _friction(entry['link_friction'], f'{where}: link_friction')
        description = replace(description, link_friction={**description.link_friction,
                                                          joint.name: friction})
    return description


def _spin_axis(value: Any, joint: Joint, entry: Mapping[str, Any], where: str) -> Any:
    if value == 'joint':
        if entry.get('carrier') not in (None, joint.parent):
            raise DescriptionError("spin_axis 'joint' with another carrier", element=where,
                                   valid='a vector in the frame of the carrier')
        return joint.rotation @ joint.axis
    axis = _vector(value, f'{where}: spin_axis')
    norm = float(np.linalg.norm(axis))
    if norm < 1e-8:
        raise DescriptionError(f'spin_axis is {value}', element=where,
                               valid="a unit vector, or 'joint' for the joint's own axis")
    return axis / norm


def _gear_matrix(entry: Any, joints: Mapping[str, Any], label: str) -> GearMatrix:
    entry = _mapping(entry, f'{label}: gear_matrix')
    names = entry.get('joints')
    if not isinstance(names, list) or set(entry) != {'joints', 'matrix'}:
        raise DescriptionError(f'gear_matrix has the keys {sorted(map(str, entry))}',
                               element=label, valid="'joints' (a list of names) and 'matrix'")
    for name in names:
        if name not in joints:
            raise UnknownNameError(f'joint in {label}: gear_matrix', name, joints)
    try:
        matrix = np.array(entry['matrix'], float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.shape != (len(names), len(names)) or not np.isfinite(matrix).all():
        raise ShapeError(f'{label}: gear_matrix', f'shape {matrix.shape}',
                         f'finite, ({len(names)}, {len(names)}), a row for each motor')
    if np.any(np.diag(matrix) == 0) or np.linalg.matrix_rank(matrix) < len(names):
        raise DescriptionError('gear_matrix is singular or has a zero on its diagonal',
                               element=label, valid="motor i's row has joint i's ratio at i")
    return GearMatrix(tuple(names), matrix)


def _mapping(value: Any, where: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DescriptionError(f'is {value!r:.60}', element=where, valid='a mapping')
    return value


def _number(value: Any, where: str, minimum: float = -np.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise DescriptionError(f'is {value!r:.60}', element=where, valid='a number')
    number = parse_number(str(value), element=where, line=None, quantity='value')
    if number < minimum:
        raise DescriptionError(f'is {number}', element=where, valid=f'at least {minimum}')
    return number


def _vector(value: Any, where: str) -> Any:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise DescriptionError(f'is {value!r:.60}', element=where, valid='three numbers')
    return np.array([_number(number, where) for number in value])


def _friction(value: Any, where: str) -> Friction:
    entry = _mapping(value, where)
    for key in entry:
        if key not in _FRICTION_KEYS:
            raise UnknownNameError(f'key of {where}', key, _FRICTION_KEYS)
    return Friction(**{
        key: _number(number, f'{where}: {key}', -np.inf if key == 'offset' else 0.0)
        for key, number in entry.items()})


