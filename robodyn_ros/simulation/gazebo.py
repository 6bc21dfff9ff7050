"""Writes the input of Gazebo: a world as SDF, and a robot as URDF with the necessary systems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from robodyn_ros.description.robot import Joint
from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.description.urdf_writer import inertial_element, numbers
from robodyn_ros.errors import DescriptionError, ValueRangeError
from robodyn_ros.model import Model, build_model
from robodyn_ros.simulation.gazebo_bodies import merged, settle_inertials
from robodyn_ros.simulation.truth import perturbed_urdf
from robodyn_ros.simulation.world import checked_joint_values
from robodyn_ros.spatial import Inertial, axis_rotation, rpy_from_rotation

WORLD = 'robodyn'  # name of the world that `world_sdf` describes
NO_LIMIT = '1e9'  # rad/s, N m; limits of the drives do not limit the mechanics
SYSTEMS = (('gz-sim-physics-system', 'Physics'), ('gz-sim-user-commands-system', 'UserCommands'),
           ('gz-sim-scene-broadcaster-system', 'SceneBroadcaster'))


def world_sdf(timestep: float = 0.001, gravity: ArrayLike = (0.0, 0.0, -9.80665), *,
              name: str = WORLD) -> str:
    """Return an empty world for Gazebo, with the systems that the bridge needs.

    Parameters
    ----------
    timestep : float
        Time step of the physics, s.
    gravity : array-like, shape (3,)
        Gravitational acceleration in the world frame, m/s^2.
    name : str
        Name of the world.

    Raises
    ------
    ValueRangeError
        The time step is not between 1e-5 and 0.1 s, or gravity is not three finite numbers.
    """
    if not 1e-5 <= timestep <= 0.1:
        raise ValueRangeError('timestep', timestep, '1e-5 to 0.1 s')
    vector = np.asarray(gravity, np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueRangeError('gravity', gravity, 'three finite numbers, m/s^2')
    root = etree.Element('sdf', version='1.9')
    world = etree.SubElement(root, 'world', name=name)
    etree.SubElement(world, 'gravity').text = numbers(vector)
    physics = etree.SubElement(world, 'physics', name='fixed_step', type='dart')
    etree.SubElement(physics, 'max_step_size').text = numbers([timestep])
    etree.SubElement(physics, 'real_time_factor').text = '1'
    for library, system in SYSTEMS:
        etree.SubElement(world, 'plugin', filename=library, name=f'gz::sim::systems::{system}')
    light = etree.SubElement(world, 'light', name='sun', type='directional')
    etree.SubElement(light, 'pose').text = '0 0 10 0 0 0'
    etree.SubElement(light, 'direction').text = '-0.5 0.1 -0.9'
    etree.indent(root)
    return etree.tostring(root, encoding='unicode', doctype='<?xml version="1.0"?>') + '\n'


def without_rotor_inertia(urdf: str | bytes, *,
                          motors: str | Path | Mapping[str, Any] | None = None) -> str:
    """Return the description that a controller of the robot in Gazebo needs: without rotors.

    With rotor inertia in its model and none in Gazebo, the gains and feed-forward torques of a
    controller are too large for the links alone.

    Parameters
    ----------
    urdf : str or bytes
        URDF text of the robot.
    motors : str, Path or mapping, optional
        Motor data; their friction is kept.

    Raises
    ------
    RobodynError
        The description or the motor data cannot be used.
    """
    root = etree.fromstring(perturbed_urdf(urdf, None, motors=motors, shapes=True))
    for element in root.iter('dynamics'):
        element.attrib.pop('armature', None)
    return etree.tostring(root, encoding='unicode')


@dataclass(frozen=True, eq=False)
class GazeboRobot:
    """A robot reduced to what Gazebo can simulate.

    Attributes
    ----------
    urdf : str
        URDF text of the true robot: only links and joints, with friction and damping.
    model : Model
        The model of the same robot.
    left_out : tuple of str
        Sentences on properties that Gazebo cannot simulate.
    """

    urdf: str
    model: Model
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, urdf: str | bytes, *, truth: Mapping[str, Any] | str | Path | None = None,
           motors: str | Path | Mapping[str, Any] | None = None,
           gravity: ArrayLike = (0.0, 0.0, -9.80665), shapes: bool = False) -> GazeboRobot:
        """Prepare a robot description.

        Parameters
        ----------
        urdf : str or bytes
            URDF text of the nominal robot; tags for Gazebo are not needed, and are ignored.
        truth : mapping, str or Path, optional
            Differences of the true robot from its description, see `perturbed_urdf`.
        motors : str, Path or mapping, optional
            Motor data of the nominal robot.
        gravity : array-like, shape (3,)
            Gravitational acceleration in the root frame, m/s^2.
        shapes : bool
            Whether to keep the shapes of the links, for the window of Gazebo.

        Raises
        ------
        RobodynError
            The description, the truth or the motor data cannot be used, or Gazebo would refuse a
            link, which is named.
        """
        text = perturbed_urdf(urdf, truth, motors=motors, shapes=shapes)
        nominal = build_model(parse_urdf(urdf, motors=motors))
        model = build_model(parse_urdf(text), gravity=gravity)
        topics: dict[str, str] = {}
        for joint in model.joint_names:
            other = topics.setdefault(gazebo_topic(joint), joint)
            if other != joint:
                raise DescriptionError(f'has the same topic in Gazebo as the joint {other!r}',
                                       element=f'joint {joint!r}', valid='names that differ in '
                                       'more than spaces (which become _), @, ~, // and :=')
        heavy = [f'{name} ({inertia:g})' for name, inertia in zip(
            model.body_joints, model.armature, strict=True) if inertia]
        left_out = []
        if heavy:
            left_out.append('Gazebo does not support rotor inertia (armature), so the robot in '
                            f'Gazebo lacks that of {", ".join(heavy)}, in kg m^2 or kg')
        elastic = [name for name, stiffness in zip(
            nominal.body_joints, nominal.stiffness, strict=True) if np.isfinite(stiffness)]
        if elastic:
            left_out.append(f'the elastic joints {", ".join(elastic)} are rigid in Gazebo')
        mimics = [name for name in model.body_joints if name not in model.joint_names]
        if mimics:
            left_out.append('the physics engine DART does not support mimic joints, so '
                            f'{", ".join(mimics)} are fixed at their start positions')
        robot = cls(text, model, tuple(left_out))
        robot.spawn_text(np.clip(np.zeros(model.n), model.lower, model.upper), model.name)
        return robot

    def spawn_text(self, position: ArrayLike, name: str, *, update_rate: float = 0.0,
                   payload: tuple[str, Inertial] | None = None) -> str:
        """Return the URDF to spawn, which is fixed to the world and driven by joint forces.

        Gazebo starts every joint at zero, so the origins of the joints are moved to the start
        position. The joint positions in Gazebo are those of the robot minus ``position``.

        Parameters
        ----------
        position : array-like, shape (n,)
            Joint positions at the start, rad or m.
        name : str
            Name of the robot in Gazebo.
        update_rate : float
            Rate of the joint states in simulated time, Hz; 0: one in every physics step.
        payload : (str, Inertial), optional
            A link, and a body in its frame that is fixed to it.
        """
        model = self.model
        start = checked_joint_values('position', position, model.joint_names)
        root = etree.fromstring(self.urdf)
        elements = {(e.tag, e.get('name')): e for e in root}
        positions = dict(zip(model.body_joints, model.row @ start + model.offset, strict=True))
        for joint in model.description.joints:
            if joint.name in positions:
                _place(elements['joint', joint.name], joint, float(positions[joint.name]),
                       joint.name in model.joint_names)
        if payload is not None:
            _load(elements['link', payload[0]], model, *payload)
        _fix_to_world(root, model.description.root)
        settle_inertials(root)
        _distinguish_links(root)
        _add_systems(root, model.joint_names, name, update_rate)
        return etree.tostring(root, encoding='unicode')


def _place(element: etree._Element, joint: Joint, position: float, moves: bool) -> None:
    """Move the zero of a joint to a position; fix the joint if it does not move."""
    rotation, translation = joint.rotation, joint.translation
    if joint.type == 'prismatic':
        translation = translation + rotation @ joint.axis * position
    else:
        rotation = rotation @ axis_rotation(joint.axis, position)
    if position:
        origin = element.find('origin')
        if origin is None:
            origin = etree.SubElement(element, 'origin')
        origin.set('xyz', numbers(translation))
        origin.set('rpy', numbers(rpy_from_rotation(rotation)))
    for child in element.findall('mimic'):
        element.remove(child)
    if not moves:
        element.set('type', 'fixed')
        for tag in ('limit', 'dynamics', 'axis'):
            for child in element.findall(tag):
                element.remove(child)
        return
    dynamics = element.find('dynamics')
    if dynamics is not None and 'armature' in dynamics.attrib:
        del dynamics.attrib['armature']
    limit = element.find('limit')
    if limit is None:
        limit = etree.SubElement(element, 'limit')
    limit.set('effort', NO_LIMIT)
    limit.set('velocity', NO_LIMIT)
    if np.isfinite(joint.lower):
        limit.set('lower', numbers([joint.lower - position]))
    if np.isfinite(joint.upper):
        limit.set('upper', numbers([joint.upper - position]))


def _load(element: etree._Element, model: Model, link: str, payload: Inertial) -> None:
    """Merge a payload with the inertial of a link."""
    own = next(entry for entry in model.description.links if entry.name == link).inertial
    old = element.find('inertial')
    if old is not None:
        element.remove(old)
    element.append(inertial_element(payload if own is None else merged(own, payload)))


def _fix_to_world(root: etree._Element, base: str) -> None:
    """Fix the base to the world."""
    if base == 'world':  # Gazebo fixes a link of this name by itself
        return
    etree.SubElement(root, 'link', name='world')
    joint = etree.SubElement(root, 'joint', name='fixed_to_world', type='fixed')
    etree.SubElement(joint, 'parent', link='world')
    etree.SubElement(joint, 'child', link=base)


def _distinguish_links(root: etree._Element) -> None:
    """Rename links that have the name of a joint, which Gazebo does not allow."""
    joints = {joint.get('name') for joint in root.findall('joint')}
    names = {link.get('name') for link in root.findall('link')} | joints
    for link in root.findall('link'):
        old = link.get('name')
        if old not in joints:
            continue
        new = next(name for k in count() if (name := f'{old}_link{k or ""}') not in names)
        names.add(new)
        link.set('name', new)
        for end in root.iterfind('joint/*[@link]'):
            if end.get('link') == old:
                end.set('link', new)


def _add_systems(root: etree._Element, joints: tuple[str, ...], name: str,
                 update_rate: float) -> None:
    """Add the systems that apply forces, confirm them, and publish joint states."""
    gazebo = etree.SubElement(root, 'gazebo')
    states = _system(gazebo, 'joint-state-publisher', 'JointStatePublisher')
    if update_rate:
        etree.SubElement(states, 'update_rate').text = numbers([update_rate])
    for joint in joints:
        force = _system(gazebo, 'apply-joint-force', 'ApplyJointForce')
        etree.SubElement(force, 'joint_name').text = joint
    echo = _system(gazebo, 'triggered-publisher', 'TriggeredPublisher')
    sent, taken = confirmation_topics(name)
    etree.SubElement(echo, 'input', type='gz.msgs.Empty', topic=sent)
    etree.SubElement(echo, 'output', type='gz.msgs.Empty', topic=taken)


def gazebo_topic(name: str) -> str:
    """Return a topic as Gazebo changes it, which does not allow all characters."""
    return re.sub('@|~|//|:=', '', name.replace(' ', '_'))


def force_topic(name: str, joint: str) -> str:
    """Return the topic of the force of a joint."""
    return gazebo_topic(f'/model/{name}/joint/{joint}/cmd_force')


def confirmation_topics(name: str) -> tuple[str, str]:
    """Return the topic that ends a set of forces, and the one that confirms its arrival.

    The force of each joint is a separate message. Gazebo processes the messages of one sender in
    order, so the confirmation of the last message confirms all of them.
    """
    model = gazebo_topic(f'/model/{name}')
    return f'{model}/forces_sent', f'{model}/forces_taken'


def _system(gazebo: etree._Element, library: str, name: str) -> etree._Element:
    return etree.SubElement(gazebo, 'plugin', filename=f'gz-sim-{library}-system',
                            name=f'gz::sim::systems::{name}')
