"""`RobotDescription` -> `Model`: lumps what does not move, reflects motors to their joints."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description import (
    Array,
    Friction,
    Inertial,
    Joint,
    Mimic,
    Motor,
    RobotDescription,
)
from robodyn_ros.errors import DescriptionError, ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.model import LinkFrame, Model
from robodyn_ros.rigid_body import rigid_parameters, transform_rigid
from robodyn_ros.urdf import read_description

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
ROTOR_MODELS = ('full', 'armature')


def load_model(
    source: str | Path,
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    locked_joints: Mapping[str, float] | None = None,
    motors: str | Path | Mapping[str, Any] | None = None,
    srdf: str | Path | None = None,
    rotor_model: str | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
) -> Model:
    """Load a robot.

    Parameters
    ----------
    source : str or Path
        Path to a ``.urdf`` or ``.xacro`` file, or the URDF text itself.
    gravity : array-like, shape (3,)
        Gravitational acceleration in the root frame, m/s^2.
    locked_joints : mapping of str to float, optional
        Joints held at a position (rad or m) and lumped.
    motors : str, Path or mapping, optional
        Motor YAML, or its content (``docs/conventions.md``).
    srdf : str or Path, optional
        SRDF file with ``<rotor_params>``.
    rotor_model : {'full', 'armature'}, optional
        ``full``: diagonal, coupling and gyroscopic terms, spin axis along the joint axis where
        none is given; ``armature``: the reflected diagonal alone. Default: full for the motors
        whose spin axis is given, armature for the others.
    xacro_arguments : mapping, optional
        Arguments of a xacro file.

    Raises
    ------
    RobodynError
        The description cannot be used; names the element, its line and what would be valid.
    """
    description = read_description(source, motors=motors, srdf=srdf,
                                   xacro_arguments=xacro_arguments)
    return build_model(description, gravity=gravity, locked_joints=locked_joints,
                       rotor_model=rotor_model)


def build_model(
    description: RobotDescription,
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    locked_joints: Mapping[str, float] | None = None,
    rotor_model: str | None = None,
) -> Model:
    """Build the model of a description; see `load_model`."""
    if rotor_model is not None and rotor_model not in ROTOR_MODELS:
        raise UnknownNameError('rotor_model', rotor_model, ROTOR_MODELS)
    try:
        g = np.asarray(gravity, np.float64)
    except (TypeError, ValueError):
        g = np.zeros(0)
    if g.shape != (3,) or not np.isfinite(g).all():
        raise ShapeError('gravity', f'{gravity!r:.80}', 'three finite numbers, m/s^2')
    locked = _locked_positions(description, locked_joints or {})
    tree = _Lumping(description, locked)
    if not tree.coordinates:
        raise DescriptionError('has no joint that moves',
                               valid='at least one revolute, continuous or prismatic joint')
    if not any(link.inertial is not None and link.inertial.mass > 0
               for link in description.links):
        raise DescriptionError('no link has an <inertial> with a mass: there are no dynamics',
                               valid='<inertial> with <mass> and <inertia> in the moving links')
    joints = tree.coordinates
    motor_data = _motor_arrays(description, tree, rotor_model)
    return Model(
        name=description.name,
        joint_names=tuple(joint.name for joint in joints),
        lower=np.array([joint.lower for joint in joints]),
        upper=np.array([joint.upper for joint in joints]),
        velocity_limit=np.array([joint.velocity for joint in joints]),
        effort_limit=np.array([joint.effort for joint in joints]),
        gravity=g,
        body_joints=tuple(joint.name for joint in tree.bodies),
        parent=tuple(tree.parents),
        prismatic=tuple(joint.type == 'prismatic' for joint in tree.bodies),
        axis=np.array([joint.axis for joint in tree.bodies]),
        rotation=np.array(tree.rotations),
        translation=np.array(tree.translations),
        row=tree.rows(),
        offset=np.array([joint.mimic.offset if joint.mimic else 0.0 for joint in tree.bodies]),
        link_frames=tree.frames,
        description=description,
        **motor_data)


def _locked_positions(description: RobotDescription,
                      locked_joints: Mapping[str, float]) -> dict[str, float]:
    joints = {joint.name: joint for joint in description.joints if joint.type != 'fixed'}
    locked: dict[str, float] = {}
    for name, position in locked_joints.items():
        if name not in joints:
            raise UnknownNameError('locked joint', name, joints)
        mimic = joints[name].mimic
        if mimic is not None:
            raise DescriptionError(f'cannot be locked: it mimics {mimic.joint!r}',
                                   element=f'joint {name!r}', valid=f'lock {mimic.joint!r}')
        if not isinstance(position, Real) or not np.isfinite(position):
            raise ValueRangeError(f'position of locked joint {name!r}', position, 'finite')
        locked[name] = float(position)
    for joint in joints.values():
        if joint.mimic is not None and joint.mimic.joint in locked:
            locked[joint.name] = (joint.mimic.multiplier * locked[joint.mimic.joint]
                                  + joint.mimic.offset)
    return locked


class _Lumping:
    """Walks the tree, parents first, and lumps what does not move."""

    def __init__(self, description: RobotDescription, locked: dict[str, float]):
        self.coordinates: list[Joint] = [
            joint for joint in description.joints
            if joint.type != 'fixed' and joint.mimic is None and joint.name not in locked]
        self.bodies: list[Joint] = []
        self.parents: list[int] = []
        self.rotations: list[Array] = []
        self.translations: list[Array] = []
        self.frames: dict[str, LinkFrame] = {}
        self.rigid: dict[int, Array] = {-1: np.zeros(10)}
        self._inertials = {link.name: link.inertial for link in description.links}
        children: dict[str, list[Joint]] = {}
        for joint in description.joints:
            children.setdefault(joint.parent, []).append(joint)
        is_child = {joint.child for joint in description.joints}
        root = next(link.name for link in description.links if link.name not in is_child)
        self._place(root, LinkFrame(-1, np.eye(3), np.zeros(3)))
        stack = list(reversed(children.get(root, [])))
        while stack:
            joint = stack.pop()
            self._attach(joint, locked)
            stack.extend(reversed(children.get(joint.child, [])))

    def _attach(self, joint: Joint, locked: dict[str, float]) -> None:
        parent = self.frames[joint.parent]
        rotation = _clean(parent.rotation @ joint.rotation)
        translation = parent.translation + parent.rotation @ joint.translation
        if joint.type == 'fixed' or joint.name in locked:
            position = locked.get(joint.name, 0.0)
            if joint.type == 'prismatic':
                translation = translation + rotation @ joint.axis * position
            elif joint.type != 'fixed':
                rotation = _clean(rotation @ axis_rotation(joint.axis, position))
            self._place(joint.child, LinkFrame(parent.body, rotation, translation))
        else:
            self.bodies.append(joint)
            self.parents.append(parent.body)
            self.rotations.append(rotation)
            self.translations.append(_clean(translation))
            self.rigid[len(self.bodies) - 1] = np.zeros(10)
            self._place(joint.child, LinkFrame(len(self.bodies) - 1, np.eye(3), np.zeros(3)))

    def _place(self, link: str, frame: LinkFrame) -> None:
        self.frames[link] = frame
        inertial = self._inertials[link]
        if inertial is not None:
            self.rigid[frame.body] = self.rigid[frame.body] + transform_rigid(
                rigid_parameters(inertial), frame.rotation, frame.translation)

    def rows(self) -> Array:
        """Joint position of each body as a row over the coordinates."""
        index = {joint.name: i for i, joint in enumerate(self.coordinates)}
        rows = np.zeros((len(self.bodies), len(self.coordinates)))
        for i, joint in enumerate(self.bodies):
            mimic = joint.mimic or Mimic(joint.name)
            rows[i, index[mimic.joint]] = mimic.multiplier
        return rows


def _clean(values: Array) -> Array:
    """Round-off of exact angles (cos(pi/2) = 6e-17) to exact zeros and ones."""
    cleaned = np.where(np.abs(values) < 1e-15, 0.0, values)
    return np.where(np.abs(np.abs(cleaned) - 1) < 1e-15, np.sign(cleaned), cleaned)


def axis_rotation(axis: Array, angle: float) -> Array:
    """Rotation matrix about a unit axis (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)


def _motor_arrays(description: RobotDescription, tree: _Lumping,
                  rotor_model: str | None) -> dict[str, Any]:
    bodies, rows = tree.bodies, tree.rows()
    count = len(bodies)
    link_friction, motor_friction = np.zeros((count, 3)), np.zeros((count, 3))
    armature, gear_ratio = np.zeros(count), np.ones(count)
    drive_gain, spin_axis = np.full(count, np.nan), np.full((count, 3), np.nan)
    stiffness, stiffness_damping = np.full(count, np.inf), np.zeros(count)
    carrier = list(tree.parents)
    motor_row = _motor_rows(description, tree)
    rigid = {body: values.copy() for body, values in tree.rigid.items()}
    for i, joint in enumerate(bodies):
        friction = description.link_friction.get(
            joint.name, Friction(joint.damping, joint.friction))
        link_friction[i] = friction.viscous, friction.coulomb, friction.offset
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
        axis = motor.spin_axis
        if axis is None and rotor_model == 'full' and joint.type != 'prismatic':
            axis = joint.rotation @ joint.axis if motor.carrier in (None, joint.parent) else None
            if axis is None:
                raise DescriptionError('its motor sits on another link and has no spin_axis',
                                       element=f'joint {joint.name!r}',
                                       valid="spin_axis in the carrier's frame")
        if axis is None:
            if not motor.rotor_in_link:
                rigid[frame.body] += _rotor_at_rest(motor, 0.0, np.zeros(3), frame)
            continue
        if not motor.rotor_in_link:
            rigid[frame.body] += _rotor_at_rest(motor, armature[i] / ratio**2, axis, frame)
        if rotor_model != 'armature':
            spin_axis[i] = _clean(frame.rotation @ axis)
    return {'link_friction': link_friction, 'motor_friction': motor_friction,
            'stiffness': stiffness, 'stiffness_damping': stiffness_damping,
            'armature': armature, 'gear_ratio': gear_ratio, 'drive_gain': drive_gain,
            'motor_row': rows if motor_row is None else motor_row, 'spin_axis': spin_axis,
            'carrier': tuple(carrier), 'base_rigid': rigid[-1],
            'rigid': np.array([rigid[i] for i in range(count)])}


def _ratio(description: RobotDescription, joint: Joint, motor: Motor) -> float:
    gears = description.gear_matrix
    if gears is not None and joint.name in gears.joints:
        i = gears.joints.index(joint.name)
        return float(gears.matrix[i, i])
    return motor.gear_ratio


def _motor_rows(description: RobotDescription, tree: _Lumping) -> Array | None:
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
    return transform_rigid(rigid_parameters(body), frame.rotation, frame.translation)
