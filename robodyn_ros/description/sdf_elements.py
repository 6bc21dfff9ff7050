"""Numbers, flags and poses of SDF elements, and which elements SDF knows."""

from __future__ import annotations

import numpy as np
from lxml import etree

from robodyn_ros.description.robot import Finding
from robodyn_ros.description.xml import LARGEST, NO_LIMIT, local_name, parse_number
from robodyn_ros.errors import DescriptionError
from robodyn_ros.spatial import Array, rotation_from_quaternion, rotation_from_rpy

Pose = tuple[Array, Array]  # rotation, shape (3, 3), and translation, shape (3,), m
IDENTITY: Pose = (np.eye(3), np.zeros(3))

# what an element may contain; other content of these elements is refused
_CONTENT = {
    'joint': 'parent child pose axis axis2 physics sensor origin thread_pitch screw_thread_pitch '
             'gearbox_ratio gearbox_reference_body',
    'axis': 'xyz dynamics limit mimic initial_position use_parent_model_frame',
    'axis2': 'xyz dynamics limit mimic initial_position use_parent_model_frame',
    'dynamics': 'damping friction spring_reference spring_stiffness',
    'limit': 'lower upper effort velocity stiffness dissipation',
    'mimic': 'multiplier offset reference',
    'inertial': 'mass pose inertia density fluid_added_mass auto_inertia_params',
    'inertia': 'ixx ixy ixz iyy iyz izz',
}


def is_extension(element: etree._Element) -> bool:
    """Return whether an element belongs to other software: its tag has a namespace."""
    return not isinstance(element.tag, str) or '{' in element.tag or ':' in element.tag


def check_content(element: etree._Element, where: str) -> None:
    """Refuse an element that SDF does not know, where it might change the dynamics.

    Raises
    ------
    DescriptionError
        It contains such an element.
    """
    known = _CONTENT[local_name(element)].split()
    for child in element:
        if not is_extension(child) and child.tag not in known:
            raise DescriptionError(f'<{local_name(element)}> has an unknown element '
                                   f'<{child.tag}>', element=where, line=child.sourceline,
                                   valid=', '.join(known))


def child_of(element: etree._Element | None, tag: str, where: str = '',
             findings: list[Finding] | None = None) -> etree._Element | None:
    """Return the first child with a tag, like libsdformat, and report further ones."""
    found = [] if element is None else element.findall(tag)
    if len(found) > 1 and findings is not None:
        findings.append(Finding(where, tag, f'{len(found)} elements',
                                f'<{tag}> (line {found[1].sourceline})', False,
                                'only the first one is used'))
    return found[0] if found else None


def text_of(element: etree._Element | None, tag: str, default: str = '') -> str:
    """Return the text of a child, the default if the child is absent or empty."""
    child = child_of(element, tag)
    return default if child is None else (child.text or '').strip() or default


def flag_of(element: etree._Element | None, tag: str, where: str, *,
            default: bool = False) -> bool:
    """Return the truth value that a child holds, the default if it is absent."""
    child = child_of(element, tag)
    return default if child is None else _flag(child.text or '', tag, where, child, default)


def _flag(text: str, what: str, where: str, element: etree._Element, default: bool) -> bool:
    word = text.strip().lower()
    if word not in ('', 'true', '1', 'false', '0'):
        raise DescriptionError(f'{what} is {text.strip()[:60]!r}', element=where,
                               line=element.sourceline, valid='true or false')
    return word in ('true', '1') if word else default


def number_of(element: etree._Element | None, tag: str, where: str, default: float) -> float:
    """Return the number that a child holds, the default if it is absent or empty."""
    child = child_of(element, tag)
    if child is None or not (child.text or '').strip():
        return default
    return parse_number((child.text or '').strip(), element=where, line=child.sourceline,
                        quantity=f'<{tag}>')


def limit_of(element: etree._Element | None, tag: str, where: str, default: float) -> float:
    """Return a limit; SDF defines 1e16 and more as infinite. If absent: the default."""
    child = child_of(element, tag)
    text = '' if child is None else (child.text or '').strip()
    if child is None or not text:
        return default
    if text.lstrip('+-').lower() in ('inf', 'infinity'):
        return float(text)
    value = parse_number(text, element=where, line=child.sourceline, quantity=f'<{tag}>',
                         largest=np.inf)
    return float(np.copysign(np.inf, value)) if abs(value) >= NO_LIMIT else value


def vector_of(element: etree._Element, count: int, where: str) -> Array:
    """Return the numbers that an element holds.

    Raises
    ------
    DescriptionError
        The element does not hold this many finite numbers.
    """
    words = (element.text or '').split()
    if len(words) != count:
        raise DescriptionError(f'<{local_name(element)}> is {(element.text or "").strip()[:60]!r}',
                               element=where, line=element.sourceline, valid=f'{count} numbers')
    return np.array([parse_number(word, element=where, line=element.sourceline, largest=LARGEST,
                                  quantity=f'<{local_name(element)}>') for word in words])


def pose_of(element: etree._Element | None, where: str) -> Pose:
    """Return the pose that ``<pose>`` holds; the identity if it is absent or empty.

    Raises
    ------
    DescriptionError
        The numbers or their format are not understood.
    """
    if element is None or not (element.text or '').strip():
        return IDENTITY
    form = element.get('rotation_format') or 'euler_rpy'
    degrees = _flag(element.get('degrees') or '', 'degrees', where, element, False)
    if form == 'quat_xyzw' and not degrees:
        values = vector_of(element, 7, where)
        length = float(np.linalg.norm(values[3:]))
        if not length:
            raise DescriptionError('<pose> has a quaternion of length 0', element=where,
                                   line=element.sourceline, valid='a unit quaternion x y z w')
        return rotation_from_quaternion(values[3:] / length), values[:3]
    if form != 'euler_rpy':
        raise DescriptionError(f'<pose> has rotation_format {form!r}'
                               + (' with degrees' if degrees else ''), element=where,
                               line=element.sourceline, valid='euler_rpy, or quat_xyzw')
    values = vector_of(element, 6, where)
    angles = np.deg2rad(values[3:]) if degrees else values[3:]
    return rotation_from_rpy(angles), values[:3]


def compose(first: Pose, second: Pose) -> Pose:
    """Return the first pose multiplied by the second, which is given in the frame of the first."""
    return first[0] @ second[0], first[1] + first[0] @ second[1]


def inverse(pose: Pose) -> Pose:
    """Return the inverse of a pose."""
    return pose[0].T, -pose[0].T @ pose[1]
