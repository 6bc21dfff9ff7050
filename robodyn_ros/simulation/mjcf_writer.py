"""Writes bodies, joints, motors and loops of a `Model` as MJCF, with all digits of its numbers.

MuJoCo accepts only moving bodies that can exist. What is fixed to a moving link is therefore part
of its inertia, as in `Model`; the link itself is a body without mass, which keeps its frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lxml import etree

from robodyn_ros.description.robot import Cut
from robodyn_ros.description.urdf_writer import numbers
from robodyn_ros.errors import DescriptionError
from robodyn_ros.model import Model
from robodyn_ros.spatial import (
    ROUND_OFF,
    Array,
    inertia_tensor,
    inertial_of,
    quaternion_of,
)

WORLD = 'world'
# kg and kg m^2, of moving bodies without mass or inertia, which MuJoCo does not accept
NEGLIGIBLE = 1e-12
UNBOUNDED = 1e10  # rad or m, limit on the side on which a joint has none
SHORTEST_BAR, THICKEST_BAR, SLENDERNESS = 1e-3, 0.03, 6  # m, m, length of a bar by its radius
BAR_COLOUR = [0.3, 0.45, 0.7, 1.0]


def mjcf_text(model: Model, cuts: Sequence[Cut], *, timestep: float) -> str:
    """Return a robot as MJCF.

    Parameters
    ----------
    model : Model
        The robot.
    cuts : sequence of Cut
        The cuts of its closed loops.
    timestep : float
        Time step of a simulation, s.

    Raises
    ------
    DescriptionError
        No rigid body can have the inertia of a moving link, and MuJoCo refuses it. The message
        names the link.
    """
    root = etree.Element('mujoco', model=model.name)
    # inertiafromgeom: a shape that is added later, such as a foot, has no mass
    etree.SubElement(root, 'compiler', angle='radian', autolimits='true', inertiafromgeom='false')
    etree.SubElement(root, 'option', timestep=numbers([timestep]), gravity=numbers(model.gravity),
                     integrator='implicitfast')
    world = etree.SubElement(root, 'worldbody')
    bodies = _add_bodies(world, model)
    equalities = etree.SubElement(root, 'equality')
    _add_mimics(equalities, model)
    _add_loops(equalities, world, bodies, cuts)
    if not len(equalities):
        root.remove(equalities)
    motors = etree.SubElement(root, 'actuator')
    for name, limit in zip(model.joint_names, model.effort_limit, strict=True):
        motor = etree.SubElement(motors, 'motor', name=name, joint=name)
        if np.isfinite(limit) and limit > 0:
            motor.set('ctrlrange', numbers([-limit, limit]))
    etree.indent(root)
    return str(etree.tostring(root, encoding='unicode')) + '\n'


def _add_bodies(world: etree._Element, model: Model) -> dict[str, etree._Element]:
    """Add a body for each link; return them by name."""
    base = model.description.root
    joints = {joint.name: joint for joint in model.description.joints}
    moved = [joints[name].child for name in model.body_joints]
    bodies: dict[str, etree._Element] = {}
    if base == WORLD and not model.floating:
        bodies[base] = world
    else:  # MuJoCo has a body world of its own
        name = f'{base}_' if base == WORLD else base
        bodies[base] = etree.SubElement(world, 'body', name=name)
    if model.floating:
        etree.SubElement(bodies[base], 'freejoint')
        _add_inertial(bodies[base], base, model.base_inertial_parameters)
    elif bodies[base] is not world and _moments(model.base_inertial_parameters) is not None:
        _add_inertial(bodies[base], base, model.base_inertial_parameters)
    for i, link in enumerate(moved):
        parent = bodies[base if model.parent[i] < 0 else moved[model.parent[i]]]
        bodies[link] = _add_body(parent, link, model.rotation[i], model.translation[i])
        _add_joint(bodies[link], model, i)
        _add_inertial(bodies[link], link, model.inertial_parameters[i])
    for link, frame in model.link_frames.items():
        if link not in bodies:
            parent = bodies[base if frame.body < 0 else moved[frame.body]]
            bodies[link] = _add_body(parent, link, frame.rotation, frame.translation)
    return bodies


def _add_body(parent: etree._Element, name: str, rotation: Array,
              translation: Array) -> etree._Element:
    """Add a body, and a bar without mass and contact that leads to it."""
    length = float(np.linalg.norm(translation))
    if length > SHORTEST_BAR:
        etree.SubElement(
            parent, 'geom', type='capsule', fromto=numbers([0.0, 0.0, 0.0, *translation]),
            size=numbers([min(THICKEST_BAR, length / SLENDERNESS)]), contype='0', conaffinity='0',
            rgba=numbers(BAR_COLOUR))
    return etree.SubElement(parent, 'body', name=name, pos=numbers(translation),
                            quat=_quaternion(rotation))


def _quaternion(rotation: Array) -> str:
    return numbers(np.roll(quaternion_of(rotation), 1))  # MuJoCo: w x y z


def _add_joint(body: etree._Element, model: Model, i: int) -> None:
    name = model.body_joints[i]
    joint = etree.SubElement(body, 'joint', name=name, axis=numbers(model.axis[i]),
                             type='slide' if model.prismatic[i] else 'hinge')
    viscous, coulomb, offset = model.link_friction[i] + model.motor_friction[i]
    spring = float(model.spring[i, 0])
    for key, value in (('armature', model.armature[i]), ('damping', viscous),
                       ('frictionloss', coulomb), ('stiffness', spring)):
        if value:
            joint.set(key, numbers([value]))
    if spring and offset:
        joint.set('springref', numbers([-offset / spring]))
    if name in model.joint_names:
        own = model.joint_names.index(name)
        lower, upper, effort = (float(limits[own]) for limits in (
            model.lower, model.upper, model.effort_limit))
    else:
        described = next(one for one in model.description.joints if one.name == name)
        lower, upper, effort = described.lower, described.upper, described.effort
    if lower < upper and (np.isfinite(lower) or np.isfinite(upper)):
        joint.set('range', numbers(list(np.clip([lower, upper], -UNBOUNDED, UNBOUNDED))))
    if np.isfinite(effort) and effort > 0:
        joint.set('actuatorfrcrange', numbers([-effort, effort]))


def _add_inertial(body: etree._Element, link: str, parameters: Array) -> None:
    """Add mass, centre of mass, principal moments and principal axes of a body."""
    found = _moments(parameters)
    if found is None:
        raise DescriptionError(
            f'is not the inertia of a rigid body: {_complaint(parameters)}. MuJoCo does not '
            'accept it', element=f'link {link!r} with all that is fixed to it',
            valid='an inertia whose principal moments about the centre of mass are not negative '
            'and none of which exceeds the sum of the others, as rd.identify finds it or '
            '`robodyn inertia` computes it')
    mass, com, moments, axes = found
    etree.SubElement(body, 'inertial', pos=numbers(com), quat=_quaternion(axes),
                     mass=numbers([max(mass, NEGLIGIBLE)]), diaginertia=numbers(moments))


def _moments(parameters: Array) -> tuple[float, Array, Array, Array] | None:
    """Return mass, centre, principal moments that MuJoCo accepts and axes, if there are any."""
    mass, tensor, com = float(parameters[6]), inertia_tensor(parameters), np.zeros(3)
    if mass < 0 or (mass == 0 and parameters[7:].any()):
        return None
    if mass > 0:
        inertial = inertial_of(parameters)
        com, tensor = inertial.com, inertial.inertia
    moments, axes = np.linalg.eigh(tensor)
    # round-off of the shift from the origin of the link to the centre of mass
    tolerance = ROUND_OFF * max(float(np.abs(inertia_tensor(parameters)).max()), NEGLIGIBLE)
    if moments[0] < -tolerance or moments[2] > moments[0] + moments[1] + tolerance:
        return None
    moments = np.maximum(moments, NEGLIGIBLE)
    excess = moments[2] - moments[0] - moments[1]
    if excess >= 0:  # by round-off, or a flat body
        moments[:2] += excess / 2 + np.spacing(moments[2])
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return mass, com, moments, axes


def _complaint(parameters: Array) -> str:
    mass = float(parameters[6])
    if mass <= 0:
        return f'its mass is {mass:g} kg'
    a, b, c = np.linalg.eigvalsh(inertial_of(parameters).inertia)
    shown = f'its principal moments are {a:.3g}, {b:.3g} and {c:.3g} kg m^2'
    return f'{shown}, and one is negative' if a < 0 else \
        f'{shown}, and the largest exceeds the sum of the others'


def _add_mimics(equalities: etree._Element, model: Model) -> None:
    for i, name in enumerate(model.body_joints):
        if name in model.joint_names:
            continue
        places, offset = np.flatnonzero(model.row[i]), float(model.offset[i])
        equality = etree.SubElement(equalities, 'joint', joint1=name)
        ratio = 0.0
        if len(places):
            equality.set('joint2', model.joint_names[int(places[0]) - model.first_joint])
            ratio = float(model.row[i, places[0]])
        equality.set('polycoef', numbers([offset, ratio, 0.0, 0.0, 0.0]))


def _add_loops(equalities: etree._Element, world: etree._Element,
               bodies: dict[str, etree._Element], cuts: Sequence[Cut]) -> None:
    """Add a ``connect`` between two sites for each pair of points of the cuts."""
    for number, cut in enumerate(cuts, 1):
        for pair, points in enumerate(cut.points, 1):
            name = f'cut_{number}_{pair}'
            sites = [f'{name}_{side}' for side in 'ab']
            for site, link, point in zip(sites, cut.links, points, strict=True):
                body = bodies.get(link, world)
                body.insert(0, etree.Element('site', name=site, pos=numbers(point)))
            etree.SubElement(equalities, 'connect', name=name, site1=sites[0], site2=sites[1])
