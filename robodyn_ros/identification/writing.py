"""Writes an identified robot: its URDF, its parameters and its motor data as YAML."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from robodyn_ros._version import __version__
from robodyn_ros.description.effort import effort_section
from robodyn_ros.description.friction_temperature import BY_TEMPERATURE
from robodyn_ros.description.ripple import RippleLine
from robodyn_ros.description.robot import CURVE
from robodyn_ros.description.spring import SPRING_PARAMETERS
from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.description.urdf_writer import inertial_element, numbers, urdf_text
from robodyn_ros.description.xml import parse_xml
from robodyn_ros.errors import IdentificationError, check_type
from robodyn_ros.identification.consistency import consistent_bodies, is_consistent
from robodyn_ros.identification.model_uncertainty import ModelUncertainty
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.springs import SPRING_TERMS
from robodyn_ros.identification.validation import Validation
from robodyn_ros.model import A_MODEL, LinkFrame, Model
from robodyn_ros.spatial import Array, Inertial, inertia_tensor, inertial_of, rpy_from_rotation


def write_urdf(model: Model, path: str | Path, *, loops: str | Path | None = None) -> None:
    """Write the URDF from which a model was built, with the parameters of the model.

    The URDF of a robot that was read from SDF, MJCF or a Denavit-Hartenberg table is made from
    its links and joints.

    Parameters
    ----------
    model : Model
        For example ``result.model``, with the physically consistent parameters.
    path : str or Path
        The file to write.
    loops : str or Path, optional
        A YAML file to write, with the cuts of the closed loops that the description has;
        `ClosedLoopDynamics` reads it.

    Raises
    ------
    IdentificationError
        If its parameters are physically inconsistent, or the description has closed loops, which
        a URDF cannot contain, and ``loops`` is not given.
    """
    check_type('model', model, Model, A_MODEL)
    cuts = model.description.cuts
    if cuts and loops is None:
        raise IdentificationError("a URDF cannot contain the closed loops of this robot; name a "
                                  "file for them, loops='loops.yaml', or use write_mjcf")
    text = urdf_of(model)
    if loops is not None:
        entries = [{'links': list(cut.links), 'points': pair.tolist()}
                   for cut in cuts for pair in cut.points]
        Path(loops).write_text(yaml.safe_dump({'cuts': entries}, sort_keys=False),
                               encoding='utf-8')
    Path(path).write_text(text, encoding='utf-8')


def urdf_of(model: Model, text: str | bytes = '') -> str:
    """Return a URDF with the inertials, damping, friction and armature of a model.

    The inertial of a moving link includes everything that is fixed to it, because these parts
    cannot be distinguished by torques. Joints that were locked become fixed joints.

    Parameters
    ----------
    model : Model
        The robot with new parameters.
    text : str or bytes
        The URDF from which it was built; default: that of the model's description, or one that is
        written from it.

    Raises
    ------
    IdentificationError
        If the parameters are physically inconsistent.
    """
    text = text or model.description.urdf
    if not text or any(joint.get('type') == 'planar' for joint in parse_xml(text)):
        text = urdf_text(model.description)
    heavy = model.inertial_parameters[:, 6] != 0
    if not is_consistent(model):
        bad = [joint for joint, one, weighs in zip(
            model.body_joints, consistent_bodies(model.inertial_parameters), heavy, strict=True)
            if weighs and not one]
        raise IdentificationError('the parameters are physically inconsistent, so that no URDF '
                                  f'is written: {", ".join(bad) or "negative friction or rotor"}')
    moving = {joint.name for joint in parse_urdf(text).joints if joint.type != 'fixed'}
    root = parse_xml(text, comments=True)
    links = {element.get('name'): element for element in root if element.tag == 'link'}
    joints = {element.get('name'): element for element in root if element.tag == 'joint'}
    for joint in moving - set(model.body_joints):
        _fix(joints[joint], model.link_frames)
    for body, joint in enumerate(model.body_joints):
        element = joints[joint]
        child = element.find('child').get('link')
        for name, frame in model.link_frames.items():
            if frame.body == body:
                _drop_inertial(links[name], None if name == child else child)
        _insert_inertial(links[child], model.inertial_parameters[body])
        dynamics = element.find('dynamics')
        if dynamics is None:
            dynamics = etree.SubElement(element, 'dynamics')
        friction = model.link_friction[body] + model.motor_friction[body]
        dynamics.set('damping', repr(float(friction[0])))
        dynamics.set('friction', repr(float(friction[1])))
        if friction[2]:
            dynamics.set('friction_offset', repr(float(friction[2])))  # an extension of robodyn
        if model.armature[body]:
            dynamics.set('armature', repr(float(model.armature[body])))
    if model.floating:
        base = model.description.root
        for name, frame in model.link_frames.items():
            if frame.body < 0:
                _drop_inertial(links[name], None if name == base else base)
        _insert_inertial(links[base], model.base_inertial_parameters)
    for rotor in list(root.iter()):
        if isinstance(rotor.tag, str) and rotor.tag.rpartition('}')[2].rpartition(':')[2] in (
                'motorInertia', 'rotor_inertia') and rotor.getparent() is not None:
            rotor.getparent().remove(rotor)  # the armature includes it now
    etree.indent(root)
    return etree.tostring(root, encoding='unicode') + '\n'


def _fix(joint: etree._Element, frames: Mapping[str, LinkFrame]) -> None:
    """Make a locked joint a fixed one, at the position at which it was locked."""
    parent, child = (frames[joint.find(end).get('link')] for end in ('parent', 'child'))
    for element in list(joint):
        if element.tag not in ('parent', 'child'):
            joint.remove(element)
    joint.set('type', 'fixed')
    etree.SubElement(
        joint, 'origin', xyz=numbers(parent.rotation.T @ (child.translation - parent.translation)),
        rpy=numbers(rpy_from_rotation(parent.rotation.T @ child.rotation)))


def _insert_inertial(link: etree._Element, parameters: Array) -> None:
    if not parameters.any():
        return
    mass, tensor = float(parameters[6]), inertia_tensor(parameters)
    if not mass and parameters[7:].any():
        raise IdentificationError(f'link {link.get("name")!r} has a first moment of mass but no '
                                  'mass, so that no URDF is written')
    link.insert(0, etree.Comment(' identified by robodyn '))
    link.insert(1, inertial_element(inertial_of(parameters) if mass else Inertial(
        mass, np.zeros(3), tensor)))


def motors_of(model: Model) -> dict[str, Any]:
    """Return the motor data of a model: friction, offset and armature, and what efforts mean."""
    joints: dict[str, Any] = {}
    for body, joint in enumerate(model.body_joints):
        link, motor = model.link_friction[body], model.motor_friction[body]
        total = link + motor
        joints[joint] = {
            'link_friction': {'viscous': float(total[0]), 'coulomb': float(total[1]),
                              'offset': float(total[2])},
            'armature': float(model.armature[body])}
        if model.has_curve[body]:
            joints[joint]['friction_curve'] = dict(zip(
                CURVE, model.friction_curve[body].tolist(), strict=True))
        if model.friction_width[body]:
            joints[joint]['friction_width'] = float(model.friction_width[body])
        if model.spring[body].any():
            joints[joint]['spring'] = dict(zip(
                SPRING_PARAMETERS, model.spring[body].tolist(), strict=True))
        if model.ripple[body].any():
            joints[joint]['ripple'] = _ripple(model, body)
        if not np.isnan(model.friction_temperature[body, 0]):
            joints[joint]['friction_temperature'] = dict(zip(
                BY_TEMPERATURE, model.friction_temperature[body].tolist(), strict=True))
        if model.effort.measured == 'current':
            joints[joint]['drive_gain'] = float(model.drive_gain[body])
        if model.effort.side == 'motor':
            joints[joint]['gear_ratio'] = float(model.gear_ratio[body])
    effort = effort_section(model.effort)
    found: dict[str, Any] = {'joints': joints}
    gears = model.description.gear_matrix
    if model.effort.side == 'motor' and gears is not None:
        found['gear_matrix'] = {'joints': list(gears.joints), 'matrix': gears.matrix.tolist()}
    return found | ({'effort': effort} if effort else {})


def parameters_of(result: Result, validation: Validation | None = None) -> dict[str, Any]:
    """Return everything that was identified, with its provenance, as plain data."""
    base, u = result.base_, result.uncertainty_
    content: dict[str, Any] = {
        'robot': result.model.name,
        'provenance': {
            'robodyn_ros': __version__, 'numpy': np.__version__,
            'python': platform.python_version(),
            'logs': [{'source': name, 'sha256': digest} for name, digest in result.sources],
            'settings': plain(result.settings.changed()),
            'efforts': str(result.model.effort),
            'notes': list(result.notes)},
        'friction': {'model': result.linear.friction.model,
                     'width': result.linear.friction.width,
                     'terms': friction_terms(result),
                     'springs': _springs(result),
                     'ripple': {result.model.body_joints[body]: _ripple(result.model, body)
                                for body in result.linear.friction.ripple},
                     'joined': [{'term': words, 'error_left_out': error}
                                for words, error in result.friction_choice_.steps],
                     'speed': result.linear.friction.speed.tolist(),
                     'noise': result.linear.friction.floor.tolist(),  # of the velocity at rest
                     'reference_temperature': result.linear.friction.reference.tolist()},
        'filters': {name: float(value) if np.isfinite(value) else None
                    for name, value in asdict(result.filtering).items()},  # Hz, an order, and s
        'base_parameters': {
            name: {'value': float(result.estimate_.values[k]),
                   'standard_deviation': float(u.deviation[k]),
                   'interval_95': u.interval[k].tolist(),
                   'significant': name in result.significant_,
                   'expression': base.expressions[k]}
            for k, name in enumerate(base.names)},
        'condition': u.condition,
        'residual_model': None if result.residual_ is None else {  # in a file of its own
            name: {'gaussian_functions': len(one.weights), 'bound': one.bound}
            for name, one in result.residual_.joints.items()},
        'torques_older_than_positions': {'value': u.delay,
                                         'standard_deviation': u.delay_deviation},  # s
        'durbin_watson': [None if np.isnan(x) else float(x) for x in u.durbin_watson],
        'consistent_parameters': {name: float(value) for name, value in zip(
            result.linear.names, result.consistent_, strict=True)},
        'unconstrained_inconsistent_bodies': list(result.inconsistent_bodies_),
        'without_effect': list(base.without_effect),
        # of the base parameters: below the diagonal, row by row
        'correlation': ModelUncertainty.of(result).correlation_text(),
    }
    for name, one in (('training', result.training_), ('validation', validation)):
        if one is not None:
            content[name] = {
                'verdict': one.verdict, 'reasons': list(one.reasons),
                'criteria': [asdict(criterion) for criterion in one.criteria],
                'implausible': list(one.implausible), 'coverage': one.coverage,
                'total': one.total,
                'total_filtered': one.total_filtered, 'nominal_total': one.nominal_total,
                'relative_error': dict(zip(one.joint_names, one.relative_error.tolist(),
                                           strict=True)),
                'rms': dict(zip(one.joint_names, one.rms.tolist(), strict=True))}
            if one.with_residual is not None:
                content[name]['with_residual_model'] = {
                    'total': one.with_residual.total, 'relative_error': dict(zip(
                        one.joint_names, one.with_residual.relative_error.tolist(),
                        strict=True))}
            if one.rollout is not None:
                content[name]['rollout'] = one.rollout.to_dict()
    return content


def friction_terms(result: Result) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the terms beyond plain friction: by joint, side (``l`` or ``m``) and term.

    Each has its ``value``; Stribeck friction also its ``velocity`` (rad/s or m/s), presliding
    friction its ``distance`` (rad or m).
    """
    linear, found = result.linear, dict[str, dict[str, dict[str, Any]]]()
    first = linear.friction_columns()[0] if linear.gears.terms else 0
    for k, term in enumerate(linear.gears.terms):
        if term.standard >= 0:
            continue
        source = linear.gears.sources[term.source]
        entry: dict[str, Any] = {'value': float(result.consistent_[first + k])}
        if term.name[:2] == 'Fs':
            entry['velocity'] = linear.friction.stribeck_velocity(source)  # rad/s or m/s
        if term.name[:2] == 'Fz':
            entry['distance'] = linear.friction.presliding[source.key]  # rad or m
        joint = found.setdefault(linear.model.body_joints[source.body], {})
        joint.setdefault(source.side, {})[term.name[:2]] = entry
    return found


def _springs(result: Result) -> dict[str, dict[str, float]]:
    """Return the springs that were estimated: by joint and term, see `SpringTorque`."""
    model, found = result.model, dict[str, dict[str, float]]()
    for body, name in result.linear.springs.terms:
        k = SPRING_TERMS.index(name)
        joint = found.setdefault(model.body_joints[body], {})
        joint[SPRING_PARAMETERS[k]] = float(model.spring[body, k])
    return found


def _ripple(model: Model, body: int) -> list[dict[str, float]]:
    """Return the torque ripple at one joint as plain data."""
    return [RippleLine(int(n), s, c)._asdict() for n, s, c in model.ripple[body].tolist() if n]


def save_parameters(result: Result, path: str | Path,
                    validation: Validation | None = None) -> None:
    """Write parameters, statistics and provenance as YAML, see `parameters_of`."""
    Path(path).write_text(yaml.safe_dump(parameters_of(result, validation), sort_keys=False,
                                         allow_unicode=True, width=100), encoding='utf-8')


def _drop_inertial(link: etree._Element, counted_in: str | None) -> None:
    inertial = link.find('inertial')
    if inertial is None:
        return
    link.remove(inertial)
    if counted_in is not None:
        link.insert(0, etree.Comment(f' its inertial is part of link {counted_in} '.replace(
            '--', '- -')))


def save_motors(model: Model, path: str | Path, contact: dict[str, Any] | None = None,
                residual: dict[str, float] | None = None) -> None:
    """Write `motors_of` as YAML, which ``load_model`` reads as ``motors``.

    Parameters
    ----------
    model : Model
        The identified robot.
    path : str or Path
        The file.
    contact : dict, optional
        Thresholds of contacts, see `ContactThresholds.to_dict`.
    residual : dict, optional
        Rms of the residual of each joint in the validation, N m or N.
    """
    content = motors_of(model) | ({'contact': contact} if contact else {}) | (
        {'residual': residual} if residual else {})
    Path(path).write_text(yaml.safe_dump(content, sort_keys=False), encoding='utf-8')


def plain(value: Any) -> Any:
    """Return mappings, sequences, arrays and numbers as types that YAML supports."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
