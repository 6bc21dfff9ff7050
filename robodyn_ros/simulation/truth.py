"""The robot as it truly is: a description with errors of masses, centres, rotors and friction.

A YAML file or mapping says where the truth differs:

```yaml
links:
  upper_arm: {mass: 1.2, com: [0.01, 0, -0.02], inertia: 1.1}   # factor; shift, m; factor
joints:
  elbow: {armature: 0.3, damping: 1.5, friction: 2.0}           # kg m^2, N m s/rad, N m
```
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from robodyn_ros.building import build_model
from robodyn_ros.description import Inertial
from robodyn_ros.errors import DescriptionError, ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.repair import inertial_element
from robodyn_ros.rigid_body import is_inertia
from robodyn_ros.urdf import parse_urdf
from robodyn_ros.xml import parse_xml

_LINK_KEYS = ('mass', 'com', 'inertia')
_JOINT_KEYS = ('armature', 'damping', 'friction')


def perturbed_urdf(text: str | bytes, truth: Mapping[str, Any] | str | Path | None, *,
                   motors: str | Path | Mapping[str, Any] | None = None) -> str:
    """Return the URDF of the true robot; nothing but links and joints is kept.

    Rotors and friction of every spelling are in the joints' ``<dynamics>`` then.

    Parameters
    ----------
    text : str or bytes
        The nominal URDF.
    truth : mapping, str or Path, optional
        Where the truth differs: a mapping, or the path of a YAML file.
    motors : str, Path or mapping, optional
        Motor data of the nominal robot.

    Raises
    ------
    DescriptionError, UnknownNameError, ShapeError, ValueRangeError
        A link, joint or key that does not exist; a number that no robot has.
    """
    description = parse_urdf(text, motors=motors)
    root = parse_xml(text)
    for element in list(root):
        if element.tag not in ('link', 'joint'):
            root.remove(element)
        for child in list(element):
            if child.tag in ('visual', 'collision', 'safety_controller', 'calibration'):
                element.remove(child)
    content = _content(truth)
    links = {link.name: link for link in description.links}
    elements = {(e.tag, e.get('name')): e for e in root}
    for name, changes in content.get('links', {}).items():
        if name not in links or links[name].inertial is None:
            raise UnknownNameError('link with an inertial', name, [
                link.name for link in description.links if link.inertial is not None])
        _change_link(elements['link', name], links[name].inertial, changes, name)
    model = build_model(description)
    for body, joint in enumerate(model.body_joints):
        friction = model.link_friction[body] + model.motor_friction[body]
        _change_joint(elements['joint', joint], {
            'damping': float(friction[0]), 'friction': float(friction[1]),
            'armature': float(model.armature[body])}, joint)
    joints = {joint.name for joint in description.joints}
    for name, changes in content.get('joints', {}).items():
        if name not in joints:
            raise UnknownNameError('joint', name, joints)
        _change_joint(elements['joint', name], changes, name)
    return etree.tostring(root, encoding='unicode')


def _content(truth: Mapping[str, Any] | str | Path | None) -> Mapping[str, Any]:
    if truth is None:
        return {}
    if isinstance(truth, Mapping):
        content: Any = truth
    else:
        try:
            content = yaml.safe_load(Path(truth).read_text(encoding='utf-8')) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise DescriptionError(f'cannot be read: {error}', element=str(truth),
                                   valid="a YAML file with 'links' and 'joints'") from None
    if not isinstance(content, Mapping):
        raise DescriptionError('is not a mapping', element='truth',
                               valid="a mapping with 'links' and 'joints'")
    for key, value in content.items():
        if key not in ('links', 'joints') or not isinstance(value, Mapping):
            raise UnknownNameError('key of the truth', key, ('links', 'joints'))
    return content


def _change_link(element: etree._Element, inertial: Inertial | None, changes: Any,
                 name: str) -> None:
    assert inertial is not None
    _check_keys(changes, _LINK_KEYS, f'link {name}')
    mass = inertial.mass * _positive(changes.get('mass', 1.0), f'mass factor of {name}')
    shift = np.asarray(changes.get('com', (0, 0, 0)), np.float64)
    if shift.shape != (3,) or not np.isfinite(shift).all():
        raise ShapeError(f'com of {name}', str(changes.get('com')), 'three finite numbers, m')
    factor = _positive(changes.get('inertia', changes.get('mass', 1.0)),
                       f'inertia factor of {name}')
    tensor = inertial.inertia * factor
    if not is_inertia(tensor):
        raise ValueRangeError(f'inertia of {name}', tensor.tolist(), 'one that a body can have')
    old = element.find('inertial')
    element.replace(old, inertial_element(Inertial(mass, inertial.com + shift, tensor)))


def _change_joint(element: etree._Element, changes: Any, name: str) -> None:
    _check_keys(changes, _JOINT_KEYS, f'joint {name}')
    dynamics = element.find('dynamics')
    if dynamics is None:
        dynamics = etree.SubElement(element, 'dynamics')
    for key, value in changes.items():
        dynamics.set(key, repr(_positive(value, f'{key} of {name}', zero=True)))


def _check_keys(changes: Any, keys: tuple[str, ...], where: str) -> None:
    if not isinstance(changes, Mapping):
        raise DescriptionError('is not a mapping', element=where, valid=', '.join(keys))
    for key in changes:
        if key not in keys:
            raise UnknownNameError(f'key of {where}', key, keys)


def _positive(value: Any, what: str, zero: bool = False) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
    if not good or value < 0 or (value == 0 and not zero):
        raise ValueRangeError(what, value, 'a number >= 0' if zero else 'a number > 0')
    return float(value)
