"""Reduces a URDF to what dynamics need, and checks every number.

Visuals, textures and vendor tags are dropped, so that they can never prevent a robot from loading.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from lxml import etree

from robodyn_ros.description.robot import MOVING_TYPES, Finding
from robodyn_ros.description.xml import LARGEST, local_name, parse_number
from robodyn_ros.errors import DescriptionError

MAX_LINKS = 2000
LONGEST = 200  # characters of a name
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
# a joint that nothing shall move may have a damping of 1e11 N m s/rad
_LARGEST = {'limit': np.inf, 'dynamics': 1e15}
_ALL = ('origin', 'axis', 'limit', 'dynamics', 'mimic')
# type of a joint -> the elements that are read
_READ = {**dict.fromkeys(MOVING_TYPES, _ALL), 'fixed': ('origin',), 'floating': ('origin',),
         'planar': ('origin', 'axis')}
_NEEDED = {'mass': ('value',), 'inertia': tuple(_NUMBERS['inertia']), 'axis': ('xyz',),
           'mimic': ('joint',)}


def name_of(element: etree._Element, default: str = '') -> str:
    """Return the name of an element; names are repeated in topics, messages and logs.

    Raises
    ------
    DescriptionError
        The name is missing, too long, or contains control characters.
    """
    name = element.get('name') or default
    place = {'element': f'<{local_name(element)}>', 'line': element.sourceline}
    if not name:
        raise DescriptionError('has no name', **place)
    if len(name) > LONGEST:
        raise DescriptionError(f'has a name of {len(name)} characters', **place,
                               valid=f'at most {LONGEST}')
    if not name.isprintable():
        raise DescriptionError(f'has control characters in its name: {name!r}', **place,
                               valid='printable characters')
    return name


def trim(root: etree._Element) -> tuple[etree._Element, dict[str, int], list[Finding]]:
    """Return what dynamics need, checked; the line of each 'link NAME'; and findings.

    Raises
    ------
    DescriptionError
        There is no link, a name is defined twice, or the description is too large.
    """
    trimmed = etree.Element('robot', name=name_of(root, 'robot'))
    lines: dict[str, int] = {}
    findings: list[Finding] = []
    names: Counter[str] = Counter()
    for element in root:
        tag = local_name(element)
        if element.tag not in ('link', 'joint'):
            continue
        name = name_of(element)
        where = f'{tag} {name!r}'
        names[where] += 1
        if names[where] > 1:
            raise DescriptionError('is defined twice', element=where, line=element.sourceline,
                                   valid=f'one <{tag}> of each name')
        if names.total() > 2 * MAX_LINKS:
            raise DescriptionError(f'more than {2 * MAX_LINKS} links and joints in all',
                                   element=where, line=element.sourceline)
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
        child = _first(inertial, tag, kept, where, findings) if tag == 'origin' else \
            _only(inertial, tag, f'{where} <inertial>')
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
    if joint_type not in _READ:
        raise DescriptionError(f'type is {joint_type!r}', element=where, line=line,
                               valid=', '.join(_READ))
    kept.set('type', joint_type)
    for tag in ('parent', 'child'):
        child = _only(element, tag, where)
        if child is None or not child.get('link'):
            raise DescriptionError(f'has no <{tag} link="..."/>', element=where, line=line)
        etree.SubElement(kept, tag, link=child.get('link') or '')
    for tag in _ALL:
        if tag in ('origin', 'axis'):
            child = _first(element, tag, kept, where, findings)
        else:
            child = _only(element, tag, where)
        if child is not None and tag in _READ[joint_type]:
            kept.append(_checked(child, where))
    limit = kept.find('limit')
    if limit is not None:
        for attribute in ('velocity', 'effort'):
            if limit.get(attribute) is None:
                limit.set(attribute, '-1')  # urdf_parser_py wants both; -1 is read as no limit
    elif joint_type in ('revolute', 'prismatic'):
        findings.append(Finding(kept.get('name') or '', 'limit', 'none', where, False,
                                f'a {joint_type} joint should have <limit>'))


def _first(element: etree._Element, tag: str, kept: etree._Element, where: str,
           findings: list[Finding]) -> etree._Element | None:
    """Return the first of several elements, like other URDF parsers, and report the others."""
    found = element.findall(tag)
    if len(found) > 1:
        findings.append(Finding(kept.get('name') or '', tag, f'{len(found)} elements', where,
                                False, 'only the first one is used'))
    return found[0] if found else None


def _only(element: etree._Element, tag: str, where: str) -> etree._Element | None:
    found = element.findall(tag)
    if len(found) > 1:
        raise DescriptionError(f'has {len(found)} <{tag}>', element=where,
                               line=found[1].sourceline, valid='one')
    return found[0] if found else None


def _checked(element: etree._Element, where: str) -> etree._Element:
    """Return a copy of an element with only its known attributes, whose numbers are checked."""
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
                                largest=_LARGEST.get(tag, LARGEST))
                   for word in words]
        copied.set(attribute, ' '.join(map(repr, numbers)))
    if tag == 'mimic':
        copied.set('joint', element.get('joint') or '')
    return copied
