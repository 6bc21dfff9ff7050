"""`EffortMeaning`: what the measured efforts and the commanded torques of a robot contain.

Its keys in the motor YAML are described in ``docs/reference/files.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from robodyn_ros.description.robot import EffortMeaning, RobotDescription
from robodyn_ros.description.section import Section
from robodyn_ros.description.yaml import parse_yaml
from robodyn_ros.errors import UnknownNameError

MEASURED = ('torque', 'current', 'external_torque')
SIDES = ('link', 'motor')
CONTENTS = ('included', 'removed')
ADDED = ('gravity', 'friction')
KEYS = ('preset', 'measured', 'side', 'gravity', 'friction', 'rotors', 'scale', 'commands_add')
_WORDS = {'measured': MEASURED, 'side': SIDES, 'gravity': CONTENTS, 'friction': CONTENTS,
          'rotors': CONTENTS}


@dataclass(frozen=True)
class Preset:
    """What the efforts of a family of robots mean, and where this is documented."""

    meaning: EffortMeaning
    source: str


PRESETS = {
    'generic': Preset(EffortMeaning(), 'joint torques with gravity and friction'),
    'ur_current': Preset(
        EffortMeaning(measured='current', commands_add=ADDED),
        'Universal_Robots_ROS2_Driver: efforts are `actual_current` unless '
        '`use_currents_as_efforts` is false (pull request 1551); `direct_torque` of URScript adds '
        'gravity, and friction compensation unless it is switched off'),
    'ur_torque': Preset(
        EffortMeaning(gravity='removed', commands_add=ADDED),
        'Universal_Robots_ROS2_Driver, `use_currents_as_efforts: false` (PolyScope 5.23, 10.11): '
        '`actual_current_as_torque` is without gravity (pull request 1551)'),
    'franka': Preset(
        EffortMeaning(friction='removed', rotors='removed', commands_add=ADDED),
        'libfranka, RobotState::tau_J: sensors on the link side, with gravity; commands are '
        'without gravity and friction, which the robot adds'),
    'franka_external': Preset(
        EffortMeaning(measured='external_torque', commands_add=ADDED),
        'libfranka, RobotState::tau_ext_hat_filtered'),
    'kuka_iiwa': Preset(
        EffortMeaning(friction='removed', rotors='removed', commands_add=ADDED),
        'KUKA FRI, getMeasuredTorque: sensors on the link side, with gravity; torques are '
        'overlaid on a controller that compensates gravity'),
    'kuka_iiwa_external': Preset(
        EffortMeaning(measured='external_torque', commands_add=ADDED),
        'KUKA FRI, getExternalTorque'),
    'kinova_gen3': Preset(
        EffortMeaning(friction='removed', rotors='removed'),
        'Kortex, BaseFeedback.actuators.torque: torque sensors, with gravity; a torque command of '
        'zero lets the arm fall (ros_kortex issue 243)'),
    'xarm': Preset(
        EffortMeaning(),
        'xarm_ros2: the robot has no torque sensors, and efforts are estimated from currents '
        '(issue 98); there are no torque commands'),
}


def read_effort(source: Mapping[str, Any] | str, where: str = 'effort') -> EffortMeaning:
    """Read the meaning of efforts.

    Parameters
    ----------
    source : mapping or str
        The content of the section ``effort``; or a text: the name of a preset, or
        ``key: value, key: value``.
    where : str
        Its name in error messages.

    Raises
    ------
    DescriptionError, UnknownNameError
        A key or a word does not exist, or a value is of the wrong type.
    """
    if isinstance(source, str):
        text = source.strip()
        if not text:
            return EffortMeaning()
        if ':' not in text:
            source = {'preset': text}
        else:
            content = parse_yaml(text if text.startswith('{') else '{' + text + '}', where)
            source = content if isinstance(content, Mapping) else {'preset': text}
    entry = Section(source, where, KEYS)
    name = entry.text('preset', 'generic')
    if name not in PRESETS:
        raise UnknownNameError(f'preset in {where}', name, PRESETS)
    changes: dict[str, Any] = {'preset': name}
    for key, words in _WORDS.items():
        if key in entry:
            changes[key] = entry.text(key)
            if changes[key] not in words:
                raise UnknownNameError(f'{key} in {where}', changes[key], words)
    if 'scale' in entry:
        changes['scale'] = entry.number('scale')
        if changes['scale'] == 0:
            raise entry.fail('scale', 'is 0', 'a number other than 0')
    if 'commands_add' in entry:
        changes['commands_add'] = entry.names('commands_add')
        for term in changes['commands_add']:
            if term not in ADDED:
                raise UnknownNameError(f'term in {where}: commands_add', term, ADDED)
    return replace(PRESETS[name].meaning, **changes)


def with_effort(description: RobotDescription,
                source: Mapping[str, Any] | str) -> RobotDescription:
    """Return the description with another meaning of its efforts, see `read_effort`."""
    return replace(description, effort=read_effort(source))


def effort_section(meaning: EffortMeaning) -> dict[str, Any]:
    """Return the section of the motor YAML that says the same; empty for the usual meaning."""
    usual = EffortMeaning()
    found: dict[str, Any] = {}
    for key in (field.name for field in fields(EffortMeaning)):
        value = getattr(meaning, key)
        if value != getattr(usual, key):
            found[key] = list(value) if isinstance(value, tuple) else value
    if found.get('preset') and found.get('commands_add') is None and meaning.commands_add != \
            PRESETS[meaning.preset].meaning.commands_add:
        found['commands_add'] = list(meaning.commands_add)
    return found
