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
        '`use_currents_as_efforts` is false (pull requests 1551, 1918); its documentation of '
        '`forward_effort_controller`: `direct_torque` of URScript compensates gravity; friction '
        'by default to 70 to 90 %, ur_msgs/FrictionModelParameters'),
    'ur_torque': Preset(
        EffortMeaning(gravity='removed', commands_add=ADDED),
        'Universal_Robots_ROS2_Driver, `use_currents_as_efforts: false` (PolyScope 5.23, 10.11): '
        '`actual_current_as_torque` (pull request 1551); that it is without gravity is '
        'unconfirmed here: try robodyn effort on a log; commands as in ur_current'),
    'franka': Preset(
        EffortMeaning(friction='removed', rotors='removed', commands_add=ADDED),
        'libfranka, robot_state.h: tau_J are measured link-side joint torque sensor signals, and '
        'of tau_J_d alone it says "without gravity"; control_types.h: torques are commanded '
        'without gravity and friction'),
    'franka_external': Preset(
        EffortMeaning(measured='external_torque', commands_add=ADDED),
        'libfranka, robot_state.h: tau_ext_hat_filtered, torques of external forces without the '
        'configured load and the dynamics of the robot'),
    'kuka_iiwa': Preset(
        EffortMeaning(friction='removed', rotors='removed', commands_add=ADDED),
        'KUKA FRI, friLBRState.h: getMeasuredTorque, from sensors in the joints; commanded '
        'torques are overlaid on joint impedance control (lbr_fri_ros2_stack, issue 153); that '
        'it compensates gravity and friction is unconfirmed by a public document'),
    'kuka_iiwa_external': Preset(
        EffortMeaning(measured='external_torque', commands_add=ADDED),
        'KUKA FRI, friLBRState.h: getExternalTorque, the measured torques without those that the '
        'robot itself induces; commands as in kuka_iiwa'),
    'kinova_gen3': Preset(
        EffortMeaning(friction='removed', rotors='removed'),
        'Kortex, torque in the feedback of actuators, from sensors, with gravity (measured logs); '
        'no gravity compensation in low-level mode (Kinova-kortex2_Gen3_G3L, issue 26, by Kinova; '
        'ros_kortex, issue 243)'),
    'xarm': Preset(
        EffortMeaning(),
        'xarm_ros2, issue 98, by UFACTORY: no torque sensors and no torque commands; that efforts '
        'are torques with gravity and friction, estimated from currents, is unconfirmed: try '
        'robodyn effort on a log'),
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
