"""Reads motor YAML: motors, gears and friction of joints, and what efforts mean.

Its keys are described in ``docs/reference/files.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.effort import read_effort
from robodyn_ros.description.friction_temperature import BY_TEMPERATURE, FrictionTemperature
from robodyn_ros.description.motors import set_motor_value
from robodyn_ros.description.ripple import LINES, MOST_PERIODS, RippleLine
from robodyn_ros.description.robot import (
    CURVE,
    Finding,
    Friction,
    FrictionCurve,
    GearMatrix,
    Joint,
    Motor,
    RobotDescription,
)
from robodyn_ros.description.section import Section
from robodyn_ros.description.spring import SPRING_PARAMETERS, SpringTorque
from robodyn_ros.errors import DescriptionError, UnknownNameError
from robodyn_ros.spatial import Array

_KEYS = ('joints', 'gear_matrix', 'effort', 'contact', 'residual')  # the last two: observer
_JOINT_KEYS = ('gear_ratio', 'rotor_inertia', 'armature', 'spin_axis', 'carrier', 'rotor_mass',
               'rotor_position', 'rotor_in_link', 'motor_friction', 'link_friction',
               'friction_curve', 'friction_width', 'friction_temperature', 'spring', 'ripple',
               'drive_gain', 'stiffness', 'stiffness_damping')
_INERTIAS = ('gear_ratio', 'armature', 'rotor_inertia')
_FRICTION_KEYS = ('viscous', 'coulomb', 'offset')
_SHORTEST_AXIS = 1e-8  # the direction of a shorter vector is round-off


def from_yaml(description: RobotDescription,
              source: str | Path | Mapping[str, Any]) -> RobotDescription:
    """Read a motor YAML.

    Parameters
    ----------
    description : RobotDescription
        The robot whose joints and links it names.
    source : str, Path or mapping
        Path to the file, or its content.

    Raises
    ------
    DescriptionError, UnknownNameError
        The file cannot be read, contains a value of the wrong type or out of range, or names a
        joint, link or key that does not exist.
    """
    content = Section.read(source, 'motor data', _KEYS)
    label = content.where if isinstance(source, Mapping) else Path(source).name
    joints = {joint.name: joint for joint in description.joints if joint.type != 'fixed'}
    entries = content.section('joints')
    for name in entries:
        _check_joint(name, entries.where, joints)
        description = _with_joint(description, joints[name],
                                  entries.section(name, _JOINT_KEYS), label)
    if 'gear_matrix' in content:
        gears = _gear_matrix(content.section('gear_matrix', ('joints', 'matrix')), joints)
        description = replace(description, gear_matrix=gears)
    if 'effort' in content:
        description = replace(description, effort=read_effort(
            content['effort'], f'{content.where}: effort'))
    return description


def _with_joint(description: RobotDescription, joint: Joint, entry: Section,
                label: str) -> RobotDescription:
    """Return the description with one joint's entry."""
    if 'armature' in entry and 'rotor_inertia' in entry:
        raise DescriptionError('armature and rotor_inertia are both given', element=entry.where,
                               valid='one of them: armature is gear_ratio^2 * rotor_inertia')
    for quantity in _INERTIAS:
        if quantity in entry:
            value = entry.number(quantity)
            description = set_motor_value(description, joint.name, quantity, value, label)
            if not description.findings[-1].used:
                raise entry.fail(quantity, f'is {value}', 'gear_ratio not 0; inertias >= 0')
    motor = _motor(description.motors.get(joint.name, Motor()), joint, entry, [
        link.name for link in description.links])
    description = replace(
        description, motors={**description.motors, joint.name: motor}).with_findings(*(
            Finding(joint.name, key, entry[key], label, True) for key in entry
            if key not in _INERTIAS))
    if 'link_friction' in entry:
        friction = _friction(entry.section('link_friction', _FRICTION_KEYS))
        description = replace(description, link_friction={**description.link_friction,
                                                          joint.name: friction})
    if 'friction_curve' in entry:
        curve = _curve(entry.section('friction_curve', CURVE))
        description = replace(description, friction_curve={**description.friction_curve,
                                                           joint.name: curve})
    if 'friction_width' in entry:
        width = entry.number('friction_width', least=0)
        description = replace(description, friction_width={**description.friction_width,
                                                           joint.name: width})
    if 'spring' in entry:
        values = entry.section('spring', SPRING_PARAMETERS)
        spring = SpringTorque(**{key: values.number(key) for key in values})
        description = replace(description, springs={**description.springs, joint.name: spring})
    if 'ripple' in entry:
        lines = _ripple(entry)
        description = replace(description, ripple={**description.ripple, joint.name: lines})
    if 'friction_temperature' in entry:
        section = entry.section('friction_temperature', BY_TEMPERATURE)
        found = FrictionTemperature(**{key: section.number(key) for key in section})
        description = replace(description, friction_temperature={
            **description.friction_temperature, joint.name: found})
    return description


def _curve(entry: Section) -> FrictionCurve:
    return FrictionCurve(**{
        key: entry.number(key, above=0) if key in ('stribeck_velocity', 'presliding_distance') else
        entry.number(key, least=0) if key in ('viscous', 'coulomb', 'load', 'presliding') else
        entry.number(key) for key in entry})


def _motor(motor: Motor, joint: Joint, entry: Section, links: list[str]) -> Motor:
    """Return the motor with all values of an entry except gear ratio and inertia."""
    changes: dict[str, Any] = {}
    if 'spin_axis' in entry:
        changes['spin_axis'] = _spin_axis(joint, entry)
    if 'carrier' in entry:
        changes['carrier'] = entry.text('carrier')
        if changes['carrier'] not in links:
            raise UnknownNameError(f'carrier of {entry.where}', changes['carrier'], links)
    if 'rotor_mass' in entry:
        changes.update(rotor_mass=entry.number('rotor_mass', least=0), rotor_in_link=False)
    if 'rotor_position' in entry:
        changes['rotor_position'] = entry.array('rotor_position', (3,))
    if 'rotor_in_link' in entry:
        changes['rotor_in_link'] = entry.flag('rotor_in_link')
    if 'drive_gain' in entry:
        changes['drive_gain'] = entry.number('drive_gain')
    if 'stiffness' in entry:  # no stiffness: a rigid joint
        changes['stiffness'] = entry.number('stiffness', above=0)
    if 'stiffness_damping' in entry:
        changes['stiffness_damping'] = entry.number('stiffness_damping', least=0)
    if 'motor_friction' in entry:
        changes['friction'] = _friction(entry.section('motor_friction', _FRICTION_KEYS))
    return replace(motor, **changes)


def _spin_axis(joint: Joint, entry: Section) -> Array:
    """Unit vector in the carrier's frame."""
    if entry['spin_axis'] == 'joint':
        if 'carrier' in entry and entry['carrier'] != joint.parent:
            raise entry.fail('spin_axis', "is 'joint' while the carrier is not the joint's "
                             'parent link', "a vector in the carrier's frame")
        return joint.rotation @ joint.axis
    axis = entry.array('spin_axis', (3,))
    norm = float(np.linalg.norm(axis))
    if norm < _SHORTEST_AXIS:
        raise entry.fail('spin_axis', f'is {axis.tolist()}',
                         "a unit vector, or 'joint' for the joint's own axis")
    return axis / norm


def _gear_matrix(entry: Section, joints: Mapping[str, Joint]) -> GearMatrix:
    names = entry.names('joints')
    for name in names:
        _check_joint(name, entry.where, joints)
    matrix = entry.array('matrix', (len(names), len(names)))
    if not names or np.any(np.diag(matrix) == 0) or \
            np.linalg.matrix_rank(matrix) < len(names):
        raise entry.fail('matrix', 'is singular or has a zero on its diagonal',
                         "the row of motor i has joint i's ratio in column i")
    return GearMatrix(names, matrix)


def _check_joint(name: str, where: str, joints: Iterable[str]) -> None:
    if name not in joints:
        raise UnknownNameError(f'joint in {where}', name, joints)


def _friction(entry: Section) -> Friction:
    return Friction(**{key: entry.number(key) if key == 'offset' else entry.number(key, least=0)
                       for key in entry})


def _ripple(entry: Section) -> tuple[RippleLine, ...]:
    """Return the torque ripple of a joint."""
    lines = entry.sections('ripple', RippleLine._fields)
    if len(lines) > LINES:
        raise entry.fail('ripple', f'has {len(lines)} lines', f'at most {LINES}')
    return tuple(RippleLine(one.integer('harmonic', least=1, most=MOST_PERIODS),
                            one.number('sine', 0.0), one.number('cosine', 0.0)) for one in lines)
