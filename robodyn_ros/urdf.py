"""URDF or xacro -> `RobotDescription`.

The XML is hardened, checked with line numbers and trimmed to what dynamics need;
``urdf_parser_py`` reads what is left, so that visuals, textures and vendor tags can never stop a
robot from loading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from robodyn_ros import motors as motor_sources
from robodyn_ros.description import (
    JOINT_TYPES,
    Array,
    Finding,
    Inertial,
    Joint,
    Link,
    Mimic,
    RobotDescription,
)
from robodyn_ros.errors import DescriptionError
from robodyn_ros.kinematic_tree import check_mimics, check_tree
from robodyn_ros.rigid_body import rotation_from_rpy
from robodyn_ros.shapes import read_shapes
from robodyn_ros.xml import LARGEST, MAX_BYTES, local_name, parse_number, parse_xml

MAX_LINKS = 2000
# attribute -> how many numbers it holds, for every element that dynamics read
_NUMBERS = {
    'origin': {'xyz': 3, 'rpy': 3},
    'mass': {'value': 1},
    'inertia': dict.fromkeys(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), 1),
    'axis': {'xyz': 3},
    'limit': dict.fromkeys(('lower', 'upper', 'velocity', 'effort'), 1),
    'dynamics': {'damping': 1, 'friction': 1},
    'mimic': {'multiplier': 1, 'offset': 1},
}
_NEEDED = {'mass': ('value',), 'inertia': tuple(_NUMBERS['inertia']), 'axis': ('xyz',),
           'mimic': ('joint',)}


def read_description(
    source: str | Path,
    *,
    motors: str | Path | Mapping[str, Any] | None = None,
    srdf: str | Path | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
) -> RobotDescription:
    """Read a robot description.

    Parameters
    ----------
    source : str or Path
        Path to a ``.urdf`` or ``.xacro`` file, or the URDF text itself.
    motors : str, Path or mapping, optional
        Motor data: a YAML file, or what such a file holds.
    srdf : str or Path, optional
        An SRDF file with ``<rotor_params>``.
    xacro_arguments : mapping, optional
        ``name: value`` for a xacro file.

    Raises
    ------
    DescriptionError
        The description cannot be used; says which element, which line, what would be valid.
    """
    return parse_urdf(read_text(source, xacro_arguments), motors=motors, srdf=srdf)


def read_text(source: str | Path,
              xacro_arguments: Mapping[str, str] | None = None) -> str | bytes:
    """Return the URDF text of a file (xacro expanded), or of text itself.

    Raises
    ------
    DescriptionError
        The file cannot be read or expanded.
    """
    if isinstance(source, str) and (not source.strip() or
                                    source.lstrip('\ufeff \t\r\n').startswith('<')):
        return source
    path = Path(source).expanduser()
    try:
        if path.suffix == '.xacro':
            return _expand_xacro(path, xacro_arguments or {})
        if path.stat().st_size > MAX_BYTES:
            raise DescriptionError(f'the file has more than {MAX_BYTES} bytes', element=str(path))
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        shown = str(source)[:200]
        reason = getattr(error, 'strerror', None) or error
        raise DescriptionError(f'cannot be read: {reason}', element=repr(shown),
                               valid='path to a .urdf or .xacro file, or URDF text') from None


def _expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    import xacro

    path.stat()
    try:
        return xacro.process_file(str(path), mappings=dict(arguments)).toxml()
    except Exception as error:  # xacro raises whatever an expression raises
        raise DescriptionError(f'xacro: {type(error).__name__}: {error}', element=str(path),
                               valid='a xacro file and its arguments as name:=value') from None


def parse_urdf(
    text: str | bytes,
    *,
    motors: str | Path | Mapping[str, Any] | None = None,
    srdf: str | Path | None = None,
) -> RobotDescription:
    """Parse URDF text (never a path, never xacro: safe for text from a topic).

    Raises
    ------
    DescriptionError
        See `read_description`.
    """
    root = parse_xml(text)
    if local_name(root) != 'robot':
        raise DescriptionError('is not a URDF', element=f'<{local_name(root)}>',
                               line=root.sourceline, valid='<robot> as the root element')
    trimmed, lines, findings = _trim(root)
    robot = _parse_trimmed(trimmed)
    shapes = {element.get('name'): element for element in root if element.tag == 'link'}
    links = tuple(_link(link, lines, shapes[link.name]) for link in robot.links)
    joints = tuple(_joint(joint, lines, findings) for joint in robot.joints)
    check_tree(links, joints)
    joints = check_mimics(joints, findings)
    description = RobotDescription(root.get('name') or 'robot', links, joints,
                                   findings=tuple(findings), urdf=text)
    description = motor_sources.from_urdf(description, root)
    if srdf is not None:
        description = motor_sources.from_srdf(description, srdf)
    if motors is not None:
        description = motor_sources.from_yaml(description, motors)
    return description


def _parse_trimmed(trimmed: etree._Element) -> Any:
    from urdf_parser_py.urdf import Robot

    try:
        return Robot.from_xml_string(etree.tostring(trimmed))
    except Exception as error:  # urdf_parser_py raises KeyError, AssertionError, ParseError...
        raise DescriptionError(f'{type(error).__name__}: {error}',
                               valid='see the URDF specification') from None


def _trim(root: etree._Element) -> tuple[etree._Element, dict[str, int], list[Finding]]:
    """Keep what dynamics need, checked; return it with line numbers by 'link NAME'."""
    trimmed = etree.Element('robot', name=root.get('name') or 'robot')
    lines: dict[str, int] = {}
    findings: list[Finding] = []
    names: Counter[str] = Counter()
    for element in root:
        tag = local_name(element)
        if element.tag not in ('link', 'joint'):
            continue
        name = element.get('name')
        if not name:
            raise DescriptionError('has no name', element=f'<{tag}>', line=element.sourceline)
        where = f'{tag} {name!r}'
        names[where] += 1
        if names[where] > 1:
            raise DescriptionError('is defined twice', element=where, line=element.sourceline,
                                   valid=f'one <{tag}> of each name')
        if names.total() > 2 * MAX_LINKS:
            raise DescriptionError(f'more than {MAX_LINKS} links and joints', element=where,
                                   line=element.sourceline)
        lines[where] = element.sourceline or 0
        kept = etree.SubElement(trimmed, tag, name=name)
        if tag == 'link':
            _trim_link(element, kept, where, findings)
        else:
            _trim_joint(element, kept, where, findings)
    if not any(key.startswith('link ') for key in lines):
        raise DescriptionError('has no link', element='<robot>', line=root.sourceline)
    return trimmed, lines, findings


def _trim_link(element: etree._Element, kept: etree._Element, where: str,
               findings: list[Finding]) -> None:
    inertial = _only(element, 'inertial', where)
    if inertial is None:
        return
    copied = etree.SubElement(kept, 'inertial')
    for tag in ('origin', 'mass', 'inertia'):
        child = _only(inertial, tag, f'{where} <inertial>')
        if child is not None:
            copied.append(_checked(child, where))
        elif tag == 'mass':
            raise DescriptionError('<inertial> has no <mass>', element=where,
                                   line=inertial.sourceline, valid='<mass value="..."/>')
        elif tag == 'inertia':
            etree.SubElement(copied, 'inertia', dict.fromkeys(_NUMBERS['inertia'], '0'))
            findings.append(Finding(kept.get('name') or '', 'inertia', 0.0, where, True,
                                    '<inertial> has no <inertia>, taken as a point mass'))
    mass = copied.find('mass')
    assert mass is not None
    if float(mass.get('value') or 0) < 0:
        raise DescriptionError(f'mass is {mass.get("value")}', element=where,
                               line=inertial.sourceline, valid='a mass >= 0')


def _trim_joint(element: etree._Element, kept: etree._Element, where: str,
                findings: list[Finding]) -> None:
    joint_type = element.get('type') or ''
    line = element.sourceline
    if joint_type in ('floating', 'planar'):
        raise DescriptionError(f'type {joint_type!r} is not supported', element=where, line=line,
                               valid='; '.join(JOINT_TYPES) + ' (fix the base to use the robot)')
    if joint_type not in JOINT_TYPES:
        raise DescriptionError(f'type is {joint_type!r}', element=where, line=line,
                               valid=', '.join(JOINT_TYPES))
    kept.set('type', joint_type)
    for tag in ('parent', 'child'):
        child = _only(element, tag, where)
        if child is None or not child.get('link'):
            raise DescriptionError(f'has no <{tag} link="..."/>', element=where, line=line)
        etree.SubElement(kept, tag, link=child.get('link') or '')
    for tag in ('origin', 'axis', 'limit', 'dynamics', 'mimic'):
        child = _only(element, tag, where)
        if child is not None and not (tag != 'origin' and joint_type == 'fixed'):
            kept.append(_checked(child, where))
    limit = kept.find('limit')
    if limit is not None:
        for attribute in ('velocity', 'effort'):
            if limit.get(attribute) is None:
                limit.set(attribute, '-1')  # urdf_parser_py wants both; -1 is read as no limit
    elif joint_type in ('revolute', 'prismatic'):
        findings.append(Finding(kept.get('name') or '', 'limit', 'none', where, False,
                                f'a {joint_type} joint should have <limit>'))


def _only(element: etree._Element, tag: str, where: str) -> etree._Element | None:
    found = element.findall(tag)
    if len(found) > 1:
        raise DescriptionError(f'has {len(found)} <{tag}>', element=where,
                               line=found[1].sourceline, valid='one')
    return found[0] if found else None


def _checked(element: etree._Element, where: str) -> etree._Element:
    """Copy an element with its known attributes alone, every number checked."""
    tag = local_name(element)
    copied = etree.Element(tag)
    for attribute in _NEEDED.get(tag, ()):
        if element.get(attribute) is None:
            raise DescriptionError(f'<{tag}> has no {attribute!r}', element=where,
                                   line=element.sourceline, valid=f'<{tag} {attribute}="..."/>')
    for attribute, count in _NUMBERS[tag].items():
        text = element.get(attribute)
        if text is None:
            continue
        words = text.split()
        if len(words) != count:
            comma = ' (decimal commas?)' if ',' in text else ''
            raise DescriptionError(f'<{tag}> {attribute} is {text[:60]!r}{comma}', element=where,
                                   line=element.sourceline,
                                   valid=f'{count} number{"s" if count > 1 else ""}')
        numbers = [parse_number(word, element=where, line=element.sourceline,
                                quantity=f'<{tag}> {attribute}',
                                largest=np.inf if tag == 'limit' else LARGEST)
                   for word in words]
        copied.set(attribute, ' '.join(map(repr, numbers)))
    if tag == 'mimic':
        copied.set('joint', element.get('joint') or '')
    return copied


def _link(link: Any, lines: dict[str, int], element: etree._Element) -> Link:
    inertial = None
    if link.inertial is not None:
        translation, rotation = _pose(link.inertial.origin)
        tensor = np.array(link.inertial.inertia.to_matrix(), float)
        inertial = Inertial(float(link.inertial.mass), translation,
                            rotation @ tensor @ rotation.T)
    return Link(link.name, inertial, lines.get(f'link {link.name!r}'),
                collision=read_shapes(element, 'collision'),
                visual=read_shapes(element, 'visual'))


def _joint(joint: Any, lines: dict[str, int], findings: list[Finding]) -> Joint:
    where = f'joint {joint.name!r}'
    line = lines.get(where)
    translation, rotation = _pose(joint.origin)
    axis = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0), float)
    norm = float(np.linalg.norm(axis))
    if joint.type != 'fixed':
        if not 1e-8 < norm < 1e8:
            raise DescriptionError(f'axis is {axis.tolist()}', element=where, line=line,
                                   valid='a unit vector')
        if abs(norm - 1) > 1e-4:
            findings.append(Finding(joint.name, 'axis', axis.tolist(), where, True,
                                    f'its length is {norm:.6g}, normalised'))
        if not np.isin(axis, (-1.0, 0.0, 1.0)).all() or norm != 1.0:
            axis = axis / norm
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    lower, upper = -np.inf, np.inf
    if limit is not None and joint.type in ('revolute', 'prismatic'):
        lower, upper = float(limit.lower or 0.0), float(limit.upper or 0.0)
        if lower > upper:
            raise DescriptionError(f'lower limit {lower} is above the upper {upper}',
                                   element=where, line=line, valid='lower <= upper')
        if lower == upper:
            findings.append(Finding(joint.name, 'limit', [lower, upper], where, False,
                                    'lower equals upper'))
    return Joint(
        joint.name, joint.type, joint.parent, joint.child, translation, rotation, axis,
        lower, upper,
        velocity=_limit(limit.velocity if limit is not None else None),
        effort=_limit(limit.effort if limit is not None else None),
        damping=_friction(dynamics, 'damping', where, line),
        friction=_friction(dynamics, 'friction', where, line),
        mimic=None if mimic is None else Mimic(mimic.joint, _or(mimic.multiplier, 1.0),
                                               _or(mimic.offset, 0.0)),
        line=line)


def _or(value: float | None, default: float) -> float:
    return default if value is None else float(value)


def _limit(value: float | None) -> float:
    """No limit, and the zero that exporters write for 'unknown', mean none."""
    return float(value) if value is not None and value > 0 else np.inf


def _friction(dynamics: Any, name: str, where: str, line: int | None) -> float:
    value = _or(getattr(dynamics, name), 0.0) if dynamics is not None else 0.0
    if value < 0:
        raise DescriptionError(f'{name} is {value}', element=where, line=line,
                               valid=f'{name} >= 0')
    return value


def _pose(origin: Any) -> tuple[Array, Array]:
    if origin is None:
        return np.zeros(3), np.eye(3)
    return (np.array(origin.xyz if origin.xyz is not None else (0.0, 0.0, 0.0), float),
            rotation_from_rpy(origin.rpy if origin.rpy is not None else (0.0, 0.0, 0.0)))
