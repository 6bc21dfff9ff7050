"""Builds a `Model` from a `RobotDescription`.

Links on fixed and locked joints are merged into the bodies that carry them, and motors are
reflected to their joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.denavit_hartenberg import description_from_dh
from robodyn_ros.description.robot import RobotDescription
from robodyn_ros.description.urdf import read_description
from robodyn_ros.errors import (
    DescriptionError,
    ShapeError,
    UnknownNameError,
    ValueRangeError,
    check_type,
    shown,
)
from robodyn_ros.keywords import checked_keywords
from robodyn_ros.model.bodies import Bodies
from robodyn_ros.model.model import Model
from robodyn_ros.model.motor_arrays import motor_arrays
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Inertial

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)  # m/s^2, the standard acceleration of free fall
ROTOR_MODELS = ('full', 'armature')
SAME_POSITION = 1e-6  # rad or m, largest deviation of a locked joint from what it mimics
BASES = ('auto', 'fixed', 'floating')


@checked_keywords
def load_model(
    source: str | bytes | Path,
    *,
    base: str = 'auto',
    gravity: ArrayLike | None = None,
    locked_joints: Mapping[str, float] | None = None,
    motors: str | Path | Mapping[str, Any] | None = None,
    srdf: str | Path | None = None,
    rotor_model: str | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
    trust_xacro: bool = False,
) -> Model:
    """Load a robot.

    Parameters
    ----------
    source : str, bytes or Path
        Path to a ``.urdf``, ``.xacro``, ``.sdf`` or MJCF file (``.xml``, MuJoCo must be
        installed), or the text of a URDF, SDF or MJCF.
    base : {'auto', 'fixed', 'floating'}
        Whether the root link is fixed to the environment or moves freely (legged, flying and
        swimming robots). ``auto``: it floats if the URDF connects it by a joint of type
        ``floating``, or if no joint of an SDF connects it to ``world``.
    gravity : array-like, shape (3,)
        Gravitational acceleration in the root frame, m/s^2; default: that of the description,
        which MJCF and worlds of SDF have, else (0, 0, -9.80665).
    locked_joints : mapping of str to float, optional
        Joints held at a position (rad or m); their links are merged into the carrying bodies.
    motors : str, Path or mapping, optional
        Motor YAML, or its content (``docs/reference/files.md``).
    srdf : str or Path, optional
        SRDF file with ``<rotor_params>``.
    rotor_model : {'full', 'armature'}, optional
        ``full``: diagonal, coupling and gyroscopic terms; a spin axis that is not given is taken
        along the joint axis. ``armature``: only the reflected inertia on the diagonal. Default:
        full for motors whose spin axis is given, armature for the others.
    xacro_arguments : mapping, optional
        Arguments of a xacro file.
    trust_xacro : bool
        xacro files can run code. By default they are expanded in a sandbox, which cannot start
        programs, use the network or change files. With True the code has all rights of the user.

    Raises
    ------
    RobodynError
        The description cannot be used. The message names the element, its line and what would be
        valid.
    """
    description = read_description(source, motors=motors, srdf=srdf,
                                   xacro_arguments=xacro_arguments, trust_xacro=trust_xacro)
    return build_model(description, base=base, gravity=gravity, locked_joints=locked_joints,
                       rotor_model=rotor_model)


@checked_keywords
def build_model(
    description: RobotDescription,
    *,
    base: str = 'auto',
    gravity: ArrayLike | None = None,
    locked_joints: Mapping[str, float] | None = None,
    rotor_model: str | None = None,
    massless: bool = False,
) -> Model:
    """Build the model of a description.

    Parameters
    ----------
    description : RobotDescription
        The robot.
    base, gravity, locked_joints, rotor_model
        As in `load_model`.
    massless : bool
        Whether the robot may have no mass at all; its parameters can then be identified.

    Raises
    ------
    RobodynError
        The robot has no joint that moves or no mass, or an argument cannot be used.
    """
    check_type('description', description, RobotDescription,
               'a RobotDescription; load_model takes files and text')
    check_type('locked_joints', locked_joints, (Mapping, NoneType), 'a mapping, joint: position')
    if rotor_model is not None and rotor_model not in ROTOR_MODELS:
        raise UnknownNameError('rotor_model', rotor_model, ROTOR_MODELS)
    if base not in BASES:
        raise UnknownNameError('base', base, BASES)
    floating = base == 'floating' or (base == 'auto' and description.floating)
    if gravity is None:
        gravity = description.gravity or STANDARD_GRAVITY
    try:
        acceleration = real_array('gravity', gravity, (3,))
    except ShapeError:
        acceleration = np.full(3, np.nan)
    if not np.isfinite(acceleration).all():
        raise ShapeError('gravity', shown(gravity), 'three finite numbers, m/s^2')
    locked = _locked_positions(description, locked_joints or {})
    tree = Bodies(description, locked, floating)
    if not tree.coordinates and not floating:
        raise DescriptionError('has no joint that moves', valid='at least one revolute, '
                               'continuous or prismatic joint, or a floating base')
    if not massless and not any(link.inertial is not None and link.inertial.mass > 0
                                for link in description.links):
        raise DescriptionError('no link has an <inertial> with a mass, so there are no dynamics',
                               valid='<inertial> with <mass> and <inertia> in the moving links')
    joints = tree.coordinates
    motor_data = motor_arrays(description, tree, rotor_model)
    return Model(
        name=description.name,
        joint_names=tuple(joint.name for joint in joints),
        lower=np.array([joint.lower for joint in joints]),
        upper=np.array([joint.upper for joint in joints]),
        velocity_limit=np.array([joint.velocity for joint in joints]),
        effort_limit=np.array([joint.effort for joint in joints]),
        gravity=acceleration,
        body_joints=tuple(joint.name for joint in tree.bodies),
        parent=tuple(tree.parents),
        prismatic=tuple(joint.type == 'prismatic' for joint in tree.bodies),
        axis=np.array([joint.axis for joint in tree.bodies]).reshape(-1, 3),
        rotation=np.array(tree.rotations).reshape(-1, 3, 3),
        translation=np.array(tree.translations).reshape(-1, 3),
        row=tree.rows(),
        offset=np.array([joint.mimic.offset if joint.mimic else 0.0 for joint in tree.bodies]),
        link_frames=tree.frames,
        description=description,
        floating=floating,
        **motor_data)


@checked_keywords
def model_from_dh(
    table: ArrayLike,
    inertials: Sequence[Inertial | None] | None = None,
    *,
    convention: str = 'standard',
    prismatic: Sequence[bool] | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
    motors: Mapping[str, Any] | None = None,
    rotor_model: str | None = None,
    name: str = 'robot',
) -> Model:
    """Build a model from a Denavit-Hartenberg table.

    Joints are ``joint1`` ... ``jointn``, links ``link0`` (root) ... ``linkn``. In both conventions
    the frame of link i, in which its inertial is given, is frame i of the table.

    Parameters
    ----------
    table : array-like, shape (n, 4)
        Rows ``a, alpha, d, theta`` in m and rad. The joint position is added to theta, or to d of
        a prismatic joint. ``standard``: ``Rz(theta) Tz(d) Tx(a) Rx(alpha)``; ``modified``
        (Craig, Khalil): ``Rx(alpha) Tx(a) Rz(theta) Tz(d)``.
    inertials : sequence of Inertial or None, length n, optional
        Inertials of links 1 to n, in their frames. Without them, the model has kinematics alone:
        its links have no mass until they are identified from logs.
    convention : {'standard', 'modified'}
        The convention of the table.
    prismatic : sequence of bool, optional
        Which joints are prismatic; default: none.
    lower, upper : array-like, shape (n,), optional
        Joint limits, rad or m.
    gravity : array-like, shape (3,)
        Gravitational acceleration in frame 0, m/s^2.
    motors, rotor_model
        As in `load_model`.
    name : str
        Name of the robot.

    Raises
    ------
    ShapeError, UnknownNameError
        The table or a list has the wrong shape, or the convention is unknown.
    """
    description = description_from_dh(
        table, inertials, convention=convention, prismatic=prismatic, lower=lower, upper=upper,
        motors=motors, name=name)
    return build_model(description, gravity=gravity, rotor_model=rotor_model,
                       massless=inertials is None)


def _locked_positions(description: RobotDescription,
                      locked_joints: Mapping[str, float]) -> dict[str, float]:
    joints = {joint.name: joint for joint in description.joints if joint.type != 'fixed'}
    locked: dict[str, float] = {}
    for name, position in locked_joints.items():
        if name not in joints:
            raise UnknownNameError('locked joint', name, joints)
        if not isinstance(position, Real) or not np.isfinite(position):
            raise ValueRangeError(f'position of locked joint {name!r}', position, 'finite')
        locked[name] = float(position)
    for joint in joints.values():
        if joint.mimic is None:
            continue
        other, given = joint.mimic.joint, locked.get(joint.name)
        if other in locked:
            locked[joint.name] = joint.mimic.multiplier * locked[other] + joint.mimic.offset
        elif given is not None:
            raise DescriptionError(f'cannot be locked: it mimics {other!r}',
                                   element=f'joint {joint.name!r}', valid=f'lock {other!r}')
        if given is not None and abs(given - locked[joint.name]) > SAME_POSITION:
            raise DescriptionError(f'cannot be locked at {given:g}: it mimics {other!r}',
                                   element=f'joint {joint.name!r}',
                                   valid=f'{locked[joint.name]:g}')
    return locked
