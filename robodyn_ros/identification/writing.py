"""Writes what was identified: the URDF with new inertials, parameters and motor data as YAML."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from robodyn_ros.description import Array, Inertial
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.consistency import consistent_bodies
from robodyn_ros.identification.result import Result, consistent, settings_mapping
from robodyn_ros.identification.validation import Validation
from robodyn_ros.model import Model
from robodyn_ros.repair import inertial_element
from robodyn_ros.urdf import parse_urdf
from robodyn_ros.xml import parse_xml


def urdf_of(model: Model, text: str | bytes) -> str:
    """Return a URDF with the inertials, damping, friction and armature of a model.

    All that is fixed to a moving link counts in that link's inertial from now on: torques cannot
    tell the parts apart.

    Parameters
    ----------
    model : Model
        With new parameters.
    text : str or bytes
        The URDF that it came from.

    Raises
    ------
    IdentificationError
        No real body has these parameters; or joints of the model were locked.
    """
    heavy = model.rigid[:, 6] != 0
    if not consistent(model):
        bad = [joint for joint, one, weighs in zip(
            model.body_joints, consistent_bodies(model.rigid), heavy, strict=True)
            if weighs and not one]
        raise IdentificationError('these parameters are not physically consistent, no URDF is '
                                  f'written: {", ".join(bad) or "negative friction or rotor"}')
    moving = {joint.name for joint in parse_urdf(text).joints if joint.type != 'fixed'}
    locked = moving - set(model.body_joints)
    if locked:
        raise IdentificationError('joints were locked, their links cannot be told apart: '
                                  + ', '.join(sorted(locked)))
    root = parse_xml(text, comments=True)
    links = {element.get('name'): element for element in root if element.tag == 'link'}
    joints = {element.get('name'): element for element in root if element.tag == 'joint'}
    for body, joint in enumerate(model.body_joints):
        element = joints[joint]
        child = element.find('child').get('link')
        for name, frame in model.link_frames.items():
            if frame.body == body:
                _drop_inertial(links[name], None if name == child else child)
        if model.rigid[body, 6]:
            links[child].insert(0, etree.Comment(' identified by robodyn '))
            links[child].insert(1, inertial_element(inertial_of(model.rigid[body])))
        dynamics = element.find('dynamics')
        if dynamics is None:
            dynamics = etree.SubElement(element, 'dynamics')
        friction = model.link_friction[body] + model.motor_friction[body]
        dynamics.set('damping', repr(float(friction[0])))
        dynamics.set('friction', repr(float(friction[1])))
        if model.armature[body]:
            dynamics.set('armature', repr(float(model.armature[body])))
    for rotor in list(root.iter()):
        if isinstance(rotor.tag, str) and rotor.tag.rpartition('}')[2].rpartition(':')[2] in (
                'motorInertia', 'rotor_inertia') and rotor.getparent() is not None:
            rotor.getparent().remove(rotor)  # the armature says it now
    etree.indent(root)
    return etree.tostring(root, encoding='unicode') + '\n'


def inertial_of(rigid: Array) -> Inertial:
    """Mass, centre of mass and inertia about it, of rigid parameters; shape (10,)."""
    xx, xy, xz, yy, yz, zz, mass, *moment = rigid
    com = np.array(moment) / mass
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(float(mass), com,
                    tensor - mass * (com @ com * np.eye(3) - np.outer(com, com)))


def motors_of(model: Model) -> dict[str, Any]:
    """Motor YAML of a model: friction with offsets and armature of every joint."""
    joints = {}
    for body, joint in enumerate(model.body_joints):
        link, motor = model.link_friction[body], model.motor_friction[body]
        total = link + motor
        joints[joint] = {
            'link_friction': {'viscous': float(total[0]), 'coulomb': float(total[1]),
                              'offset': float(total[2])},
            'armature': float(model.armature[body])}
    return {'joints': joints}


def parameters_of(result: Result, validation: Validation | None = None) -> dict[str, Any]:
    """Everything that was identified, with its provenance, as plain data."""
    from robodyn_ros import __version__

    base, u = result.base_, result.uncertainty_
    content: dict[str, Any] = {
        'robot': result.model.name,
        'provenance': {
            'robodyn_ros': __version__, 'numpy': np.__version__,
            'python': platform.python_version(),
            'logs': [{'source': name, 'sha256': digest} for name, digest in result.sources],
            'settings': plain(settings_mapping(result.settings)),
            'notes': list(result.notes)},
        'friction': {'model': result.linear.friction.model,
                     'width': result.linear.friction.width,
                     'speed': result.linear.friction.speed.tolist()},
        'base_parameters': {
            name: {'value': float(result.estimate_.values[k]),
                   'standard_deviation': float(u.deviation[k]),
                   'interval_95': u.interval[k].tolist(),
                   'significant': name in result.significant_,
                   'expression': base.expressions[k]}
            for k, name in enumerate(base.names)},
        'condition': u.condition,
        'torques_older_than_positions': {'value': u.delay,
                                         'standard_deviation': u.delay_deviation},  # s
        'durbin_watson': [None if np.isnan(x) else float(x) for x in u.durbin_watson],
        'consistent_parameters': {name: float(value) for name, value in zip(
            result.linear.names, result.consistent_, strict=True)},
        'unconstrained_bodies_that_cannot_exist': list(result.inconsistent_bodies_),
        'without_effect': list(base.without_effect),
    }
    for name, one in (('training', result.training_), ('validation', validation)):
        if one is not None:
            content[name] = {
                'verdict': one.verdict, 'reasons': list(one.reasons), 'total': one.total,
                'total_filtered': one.total_filtered, 'nominal_total': one.nominal_total,
                'relative_error': dict(zip(one.joint_names, one.relative_error.tolist(),
                                           strict=True)),
                'rms': dict(zip(one.joint_names, one.rms.tolist(), strict=True))}
    return content


def save_parameters(result: Result, path: str | Path, validation: Validation | None = None,
                    ) -> None:
    """Write `parameters_of` as YAML."""
    Path(path).write_text(yaml.safe_dump(parameters_of(result, validation), sort_keys=False,
                                         allow_unicode=True, width=100), encoding='utf-8')


def _drop_inertial(link: etree._Element, counted_in: str | None) -> None:
    inertial = link.find('inertial')
    if inertial is None:
        return
    link.remove(inertial)
    if counted_in is not None:
        link.insert(0, etree.Comment(f' its inertial counts in link {counted_in} '.replace(
            '--', '- -')))


def plain(value: Any) -> Any:
    """Return mappings, sequences, arrays and numbers as YAML has them."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
