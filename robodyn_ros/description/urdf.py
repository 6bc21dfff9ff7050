"""Reads URDF, xacro, MJCF or SDF into a `RobotDescription`.

The XML is parsed with limits on size and depth (``xml.py``), then checked and reduced to what
dynamics need (``trim.py``), and finally read by ``urdf_parser_py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any, TypeGuard

import numpy as np
from lxml import etree

from robodyn_ros.description import motors as motor_sources
from robodyn_ros.description.base_joints import expand_planar, release_base
from robodyn_ros.description.cuts import read_cuts
from robodyn_ros.description.mjcf import read_mjcf
from robodyn_ros.description.motor_yaml import from_yaml
from robodyn_ros.description.robot import (
    Finding,
    Joint,
    Link,
    Mimic,
    RobotDescription,
)
from robodyn_ros.description.sdf import read_sdf
from robodyn_ros.description.shapes import read_shapes
from robodyn_ros.description.tree import check_mimics, check_tree
from robodyn_ros.description.trim import trim
from robodyn_ros.description.urdf_writer import urdf_text
from robodyn_ros.description.xacro_process import expand_xacro
from robodyn_ros.description.xml import MAX_BYTES, NO_LIMIT, local_name, parse_xml
from robodyn_ros.errors import DescriptionError, check_type
from robodyn_ros.files import read_regular
from robodyn_ros.spatial import Array, Inertial, rotation_from_rpy

# Length of an axis: beyond the first two bounds, its direction is round-off or a mistake.
# Exporters round unit vectors to four digits or more; a larger deviation from 1 is reported.
SHORTEST_AXIS, LONGEST_AXIS, UNIT_TOLERANCE = 1e-8, 1e8, 1e-4


def read_description(
    source: str | bytes | Path,
    *,
    motors: str | Path | Mapping[str, Any] | None = None,
    srdf: str | Path | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
    trust_xacro: bool = False,
) -> RobotDescription:
    """Read a robot description.

    Parameters
    ----------
    source : str, bytes or Path
        Path to a ``.urdf``, ``.xacro``, ``.sdf`` or MJCF file, or the text of a URDF, SDF or
        MJCF.
    motors : str, Path or mapping, optional
        Motor data: a YAML file, or its content.
    srdf : str or Path, optional
        An SRDF file with ``<rotor_params>``.
    xacro_arguments : mapping, optional
        ``name: value`` for a xacro file.
    trust_xacro : bool
        Expand a xacro file without sandboxing the code that it may run (`expand_xacro`).

    Raises
    ------
    DescriptionError
        The description cannot be used. The message names the element, its line and what would be
        valid.
    """
    text = read_text(source, xacro_arguments, trust_xacro=trust_xacro)
    file = '' if isinstance(source, bytes) or is_text(source) else str(source)
    try:
        mjcf = _is_mjcf(text)
    except DescriptionError as error:
        raise (error.within(file) if file else error) from None
    if not mjcf:
        return parse_urdf(text, motors=motors, srdf=srdf, file=file)
    if file:
        description = read_mjcf(Path(file))
    else:  # only a file may include others
        description = read_mjcf(text.encode() if isinstance(text, str) else text)
    description = replace(description, urdf=urdf_text(description))
    return description if motors is None else from_yaml(description, motors)


def _is_mjcf(text: str | bytes) -> bool:
    """Return whether a document is MJCF; URDFs may contain elements <mujoco> as well."""
    return _mentions(text, '<mujoco') and local_name(parse_xml(text)) == 'mujoco'


def _is_sdf(text: str | bytes) -> bool:
    return _mentions(text, '<sdf') and local_name(parse_xml(text)) == 'sdf'


def _mentions(text: str | bytes, word: str) -> bool:
    return word in text if isinstance(text, str) else word.encode() in text


def read_urdf_text(source: str | bytes | Path, xacro_arguments: Mapping[str, str] | None = None, *,
                   trust_xacro: bool = False) -> str:
    """Return a robot as URDF text, whatever its format, for nodes, which read no other files.

    Parameters
    ----------
    source, xacro_arguments, trust_xacro
        As in `read_description`.

    Raises
    ------
    DescriptionError
        The file cannot be read or expanded.
    """
    text = read_text(source, xacro_arguments, trust_xacro=trust_xacro)
    if _is_mjcf(text) or _is_sdf(text):
        text = read_description(source).urdf
    return text.decode() if isinstance(text, bytes) else text


def is_text(source: object) -> TypeGuard[str]:
    """Return whether a source is XML text, not a path."""
    return isinstance(source, str) and (not source.strip() or
                                        source.lstrip('\ufeff \t\r\n').startswith('<'))


def read_text(source: str | bytes | Path, xacro_arguments: Mapping[str, str] | None = None, *,
              trust_xacro: bool = False) -> str | bytes:
    """Return the URDF text of a file (with xacro expanded), or a text unchanged.

    Parameters
    ----------
    source : str, bytes or Path
        Path, or the text; bytes are always text.
    xacro_arguments, trust_xacro
        As in `read_description`.

    Raises
    ------
    DescriptionError
        The file cannot be read or expanded.
    """
    if isinstance(source, bytes) or is_text(source):
        return source
    if not isinstance(source, (str, Path)):
        raise DescriptionError(f'is {type(source).__name__}', element='robot description',
                               valid='path to a URDF, xacro, SDF or MJCF file, or the text of one')
    check_type('xacro_arguments', xacro_arguments, (Mapping, NoneType), 'a mapping, name: value')
    if str(source).endswith('.xacro'):
        return expand_xacro(Path(source).expanduser(), xacro_arguments or {}, trust=trust_xacro)
    return read_regular(source, MAX_BYTES)


def parse_urdf(
    text: str | bytes,
    *,
    motors: str | Path | Mapping[str, Any] | None = None,
    srdf: str | Path | None = None,
    file: str = '',
) -> RobotDescription:
    """Parse the text of a URDF or SDF; without a file, it can read no other files.

    Parameters
    ----------
    text : str or bytes
        The text, for example from a topic.
    motors, srdf
        As in `read_description`.
    file : str
        The file that contains the text, for errors and for the files that an SDF includes.

    Raises
    ------
    DescriptionError
        See `read_description`.
    """
    try:
        description = _description_of(text, file)
    except DescriptionError as error:
        raise (error.within(file) if file else error) from None
    if srdf is not None:
        description = motor_sources.from_srdf(description, srdf)
    if motors is not None:
        description = from_yaml(description, motors)
    return description


def _description_of(text: str | bytes, file: str) -> RobotDescription:
    root = parse_xml(text)
    if local_name(root) == 'sdf':
        description = read_sdf(root, Path(file).expanduser() if file else None)
        return replace(description, urdf=urdf_text(description))
    if local_name(root) != 'robot':
        raise DescriptionError('is not a URDF, MJCF or SDF', element=f'<{local_name(root)}>',
                               line=root.sourceline, valid='<robot>, <mujoco> or <sdf> as the '
                               'root element')
    trimmed, lines, findings = trim(root)
    robot = _parse_trimmed(trimmed)
    shapes = {element.get('name'): element for element in root if element.tag == 'link'}
    links = tuple(_link(link, lines, shapes[link.name]) for link in robot.links)
    joints = tuple(_joint(joint, lines, findings) for joint in robot.joints)
    check_tree(links, joints)
    links, joints = expand_planar(links, joints)
    links, joints, floating = release_base(links, joints, findings)
    joints = check_mimics(joints, findings)
    description = RobotDescription(root.get('name') or 'robot', links, joints,
                                   findings=tuple(findings), urdf=text, floating=floating,
                                   cuts=read_cuts(root, [link.name for link in links]))
    return motor_sources.from_urdf(description, root)


def _parse_trimmed(trimmed: etree._Element) -> Any:
    from urdf_parser_py.urdf import Robot

    try:
        return Robot.from_xml_string(etree.tostring(trimmed))
    except Exception as error:  # urdf_parser_py raises KeyError, AssertionError, ParseError...
        raise DescriptionError(f'{type(error).__name__}: {error}',
                               valid='see the URDF specification') from None


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
        if not SHORTEST_AXIS < norm < LONGEST_AXIS:
            raise DescriptionError(f'axis is {axis.tolist()}', element=where, line=line,
                                   valid='a unit vector')
        if abs(norm - 1) > UNIT_TOLERANCE:
            findings.append(Finding(joint.name, 'axis', axis.tolist(), where, True,
                                    f'its length is {norm:.6g}; it is normalised'))
        if not np.isin(axis, (-1.0, 0.0, 1.0)).all() or norm != 1.0:
            axis = axis / norm
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    lower, upper = -np.inf, np.inf
    if limit is not None and joint.type in ('revolute', 'prismatic'):
        lower, upper = float(limit.lower or 0.0), float(limit.upper or 0.0)
        if lower > upper:
            findings.append(Finding(joint.name, 'limit', [lower, upper], where, False,
                                    'the lower limit is above the upper limit: the joint is '
                                    'treated as one without position limits'))
            lower, upper = -np.inf, np.inf
        elif lower == upper:
            findings.append(Finding(joint.name, 'limit', [lower, upper], where, True,
                                    'lower equals upper, so the joint has no range'))
    return Joint(
        joint.name, joint.type, joint.parent, joint.child, translation, rotation, axis,
        lower, upper,
        velocity=_limit(limit.velocity if limit is not None else None),
        effort=_limit(limit.effort if limit is not None else None),
        damping=_friction(dynamics, 'damping', where, line),
        friction=_friction(dynamics, 'friction', where, line),
        mimic=None if mimic is None else Mimic(mimic.joint, _value(mimic.multiplier, 1.0),
                                               _value(mimic.offset, 0.0)),
        line=line)


def _value(value: float | None, default: float) -> float:
    return default if value is None else float(value)


def _limit(value: float | None) -> float:
    """Return the limit; inf if it is absent, huge, or 0, as exporters write unknown limits."""
    return float(value) if value is not None and 0 < value < NO_LIMIT else np.inf


def _friction(dynamics: Any, name: str, where: str, line: int | None) -> float:
    value = _value(getattr(dynamics, name), 0.0) if dynamics is not None else 0.0
    if value < 0:
        raise DescriptionError(f'{name} is {value}', element=where, line=line,
                               valid=f'{name} >= 0')
    return value


def _pose(origin: Any) -> tuple[Array, Array]:
    if origin is None:
        return np.zeros(3), np.eye(3)
    return (np.array(origin.xyz if origin.xyz is not None else (0.0, 0.0, 0.0), float),
            rotation_from_rpy(origin.rpy if origin.rpy is not None else (0.0, 0.0, 0.0)))
