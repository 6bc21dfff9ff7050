"""The true robot: its description with other masses, centres of mass, rotors and friction.

A YAML file or mapping holds the differences:

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
from lxml import etree

from robodyn_ros.description.cuts import TAG as CUT
from robodyn_ros.description.section import Section
from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.description.urdf_writer import inertial_element
from robodyn_ros.description.xml import parse_xml
from robodyn_ros.errors import UnknownNameError, ValueRangeError
from robodyn_ros.model import build_model
from robodyn_ros.spatial import Inertial, is_inertia

_LINK_KEYS = ('mass', 'com', 'inertia')
_JOINT_KEYS = ('armature', 'damping', 'friction')


def perturbed_urdf(text: str | bytes, truth: Mapping[str, Any] | str | Path | None, *,
                   motors: str | Path | Mapping[str, Any] | None = None,
                   shapes: bool = False) -> str:
    """Return the URDF of the true robot, reduced to links, joints and cuts.

    Rotor inertia and friction, in whatever way they were given, are written as ``<dynamics>`` of
    the joints.

    Parameters
    ----------
    text : str or bytes
        The nominal URDF.
    truth : mapping, str or Path, optional
        The differences: a mapping, or the path of a YAML file.
    motors : str, Path or mapping, optional
        Motor data of the nominal robot.
    shapes : bool
        Whether the visual shapes of the links are kept.

    Raises
    ------
    DescriptionError, UnknownNameError, ValueRangeError
        The file cannot be read; a link, joint or key does not exist; or a value is not a number or
        is physically impossible.
    """
    description = parse_urdf(text, motors=motors)
    root = parse_xml(description.urdf)
    unused = {'collision', 'safety_controller', 'calibration'} | (set() if shapes else {'visual'})
    for element in list(root):
        if element.tag not in ('link', 'joint', CUT):
            root.remove(element)
        for child in list(element):
            if child.tag in unused:
                element.remove(child)
    content = Section.read({} if truth is None else truth, 'truth', ('links', 'joints'))
    links = {link.name: link for link in description.links}
    elements = {(e.tag, e.get('name')): e for e in root}
    changed_links, changed_joints = content.section('links'), content.section('joints')
    for name in changed_links:
        if name not in links or links[name].inertial is None:
            raise UnknownNameError('link with an inertial', name, [
                link.name for link in description.links if link.inertial is not None])
        _change_link(elements['link', name], links[name].inertial,
                     changed_links.section(name, _LINK_KEYS))
    model = build_model(description)
    for body, joint in enumerate(model.body_joints):
        friction = model.link_friction[body] + model.motor_friction[body]
        _change_joint(elements['joint', joint], Section({
            'damping': float(friction[0]), 'friction': float(friction[1]),
            'armature': float(model.armature[body])}, f'joint {joint}'))
    joints = {joint.name for joint in description.joints}
    for name in changed_joints:
        if name not in joints:
            raise UnknownNameError(f'joint in {changed_joints.where}', name, joints)
        _change_joint(elements['joint', name], changed_joints.section(name, _JOINT_KEYS))
    return etree.tostring(root, encoding='unicode')


def _change_link(element: etree._Element, inertial: Inertial | None, changes: Section) -> None:
    assert inertial is not None
    factor = changes.number('mass', 1.0, above=0)
    shift = changes.array('com', (3,)) if 'com' in changes else np.zeros(3)
    tensor = inertial.inertia * changes.number('inertia', factor, above=0)
    if not is_inertia(tensor):
        raise ValueRangeError(f'{changes.where}: inertia', tensor.tolist(),
                              'the inertia tensor of a rigid body')
    old = element.find('inertial')
    element.replace(old, inertial_element(Inertial(inertial.mass * factor, inertial.com + shift,
                                                   tensor)))


def _change_joint(element: etree._Element, changes: Section) -> None:
    dynamics = element.find('dynamics')
    if dynamics is None:
        dynamics = etree.SubElement(element, 'dynamics')
    for key in changes:
        dynamics.set(key, repr(changes.number(key, least=0)))
