"""Motor data as arrays over the bodies of a model, reflected to the joints."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np

from robodyn_ros.description.friction_temperature import BY_TEMPERATURE
from robodyn_ros.description.ripple import LINES, RippleLine
from robodyn_ros.description.robot import (
    CURVE,
    Friction,
    Joint,
    Motor,
    RobotDescription,
)
from robodyn_ros.description.spring import SPRING_PARAMETERS
from robodyn_ros.errors import DescriptionError
from robodyn_ros.model.bodies import Bodies, clean
from robodyn_ros.model.link_frame import LinkFrame
from robodyn_ros.spatial import Array, Inertial, inertial_parameters, transform_inertial


def motor_arrays(description: RobotDescription, tree: Bodies,
                 rotor_model: str | None) -> dict[str, Any]:
    """Return the fields of `Model` that motors, gears, friction and rotor masses determine.

    Parameters
    ----------
    description : RobotDescription
        The robot.
    tree : Bodies
        Its moving bodies.
    rotor_model : {'full', 'armature'} or None
        As in `load_model`.

    Raises
    ------
    DescriptionError
        A motor is on another link than its joint's parent, and its spin axis is not given.
    """
    bodies, rows = tree.bodies, tree.rows()
    count = len(bodies)
    link_friction, motor_friction = np.zeros((count, 3)), np.zeros((count, 3))
    curve, width = np.full((count, len(CURVE)), np.nan), np.zeros(count)
    spring = np.zeros((count, len(SPRING_PARAMETERS)))
    ripple = np.zeros((count, LINES, len(RippleLine._fields)))
    warmth = np.full((count, len(BY_TEMPERATURE)), np.nan)
    armature, gear_ratio = np.zeros(count), np.ones(count)
    drive_gain, spin_axis = np.full(count, np.nan), np.full((count, 3), np.nan)
    stiffness, stiffness_damping = np.full(count, np.inf), np.zeros(count)
    carrier = list(tree.parents)
    motor_row = _motor_rows(description, tree)
    inertial = {body: values.copy() for body, values in tree.carried.items()}
    for i, joint in enumerate(bodies):
        friction = description.link_friction.get(
            joint.name, Friction(joint.damping, joint.friction))
        link_friction[i] = friction.viscous, friction.coulomb, friction.offset
        if joint.name in description.friction_curve:
            curve[i] = [getattr(description.friction_curve[joint.name], name) for name in CURVE]
        width[i] = description.friction_width.get(joint.name, 0.0)
        if joint.name in description.springs:
            spring[i] = astuple(description.springs[joint.name])
        for k, line in enumerate(description.ripple.get(joint.name, ())):
            ripple[i, k] = line
        if joint.name in description.friction_temperature:
            warmth[i] = astuple(description.friction_temperature[joint.name])
        motor = description.motors.get(joint.name)
        gear_ratio[i] = ratio = _ratio(description, joint, motor or Motor())
        if motor is None:
            continue
        frame = tree.frames[motor.carrier or joint.parent]
        carrier[i] = frame.body
        armature[i] = ratio**2 * motor.rotor_inertia if motor.armature is None else motor.armature
        stiffness[i], stiffness_damping[i] = motor.stiffness, motor.stiffness_damping
        drive_gain[i] = np.nan if motor.drive_gain is None else motor.drive_gain
        motor_friction[i] = (ratio**2 * motor.friction.viscous,
                             abs(ratio) * motor.friction.coulomb, ratio * motor.friction.offset)
        axis = _spin_axis(motor, joint, rotor_model)
        if axis is None:
            if not motor.rotor_in_link:
                inertial[frame.body] += _rotor_at_rest(motor, 0.0, np.zeros(3), frame)
            continue
        if not motor.rotor_in_link:
            inertial[frame.body] += _rotor_at_rest(motor, armature[i] / ratio**2, axis, frame)
        if rotor_model != 'armature':
            spin_axis[i] = clean(frame.rotation @ axis)
    return {'link_friction': link_friction, 'motor_friction': motor_friction,
            'friction_curve': curve, 'friction_width': width, 'spring': spring, 'ripple': ripple,
            'friction_temperature': warmth,
            'stiffness': stiffness, 'stiffness_damping': stiffness_damping,
            'armature': armature, 'gear_ratio': gear_ratio, 'drive_gain': drive_gain,
            'motor_row': rows if motor_row is None else motor_row, 'spin_axis': spin_axis,
            'carrier': tuple(carrier), 'base_inertial_parameters': inertial[-1],
            'inertial_parameters': np.array([inertial[i] for i in range(count)]).reshape(-1, 10)}


def _spin_axis(motor: Motor, joint: Joint, rotor_model: str | None) -> Array | None:
    """Return the axis of a rotor in its carrier's frame; None if it only adds its armature."""
    if motor.spin_axis is not None or rotor_model != 'full' or joint.type == 'prismatic':
        return motor.spin_axis
    if motor.carrier not in (None, joint.parent):
        raise DescriptionError('its motor is on another link, and no spin_axis is given',
                               element=f'joint {joint.name!r}',
                               valid="spin_axis in the carrier's frame")
    return np.asarray(joint.rotation @ joint.axis)


def _ratio(description: RobotDescription, joint: Joint, motor: Motor) -> float:
    gears = description.gear_matrix
    if gears is not None and joint.name in gears.joints:
        i = gears.joints.index(joint.name)
        return float(gears.matrix[i, i])
    return motor.gear_ratio


def _motor_rows(description: RobotDescription, tree: Bodies) -> Array | None:
    """Motor speed over gear ratio, as rows over the coordinates (Kolyubin remark 2.4)."""
    gears = description.gear_matrix
    if gears is None:
        return None
    rows = tree.rows()
    motor_rows = rows.copy()
    index = {joint.name: i for i, joint in enumerate(tree.bodies)}
    for i, name in enumerate(gears.joints):
        if name in index:
            motor_rows[index[name]] = sum(
                ratio * rows[index[other]] for other, ratio in zip(
                    gears.joints, gears.matrix[i] / gears.matrix[i, i], strict=True)
                if other in index)
    return motor_rows


def _rotor_at_rest(motor: Motor, inertia: float, axis: Array, frame: LinkFrame) -> Array:
    body = Inertial(motor.rotor_mass, motor.rotor_position, inertia * np.outer(axis, axis))
    return transform_inertial(inertial_parameters(body), frame.rotation, frame.translation)
