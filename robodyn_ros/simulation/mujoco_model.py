"""Builds the model of a robot for the MuJoCo engine: armature, friction, elastic joints, loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.model import Model
from robodyn_ros.simulation.world import SimulationError
from robodyn_ros.spatial import Array

MOTOR = 'motor of '  # prefix of the names of motor bodies, joints and springs


def compile_robot(text: str, model: Model, *, timestep: float, gravity: Array,
                  elastic: Mapping[str, tuple[float, float]],
                  loops: ClosedLoopDynamics | None) -> Any:
    """Return a robot as a compiled model of the engine.

    Parameters
    ----------
    text : str
        URDF text of the true robot.
    model : Model
        The same robot.
    timestep : float
        Time step of the physics, s.
    gravity : ndarray, shape (3,)
        Gravitational acceleration in the root frame, m/s^2.
    elastic : mapping of str to (float, float)
        Stiffness and damping of each elastic joint, N m/rad and N m s/rad (N/m and N s/m).
    loops : ClosedLoopDynamics, optional
        The closed loops, if there are any.

    Raises
    ------
    SimulationError
        The engine cannot read this robot.
    """
    import mujoco

    try:
        spec = mujoco.MjSpec.from_string(text)
        spec.compiler.fusestatic = False
        spec.compiler.balanceinertia = False
        spec.option.timestep = timestep
        spec.option.gravity = gravity
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        armature = dict(zip(model.body_joints, model.armature, strict=True))
        for joint in spec.joints:
            joint.armature = float(armature.get(joint.name, 0.0))
            # stiffer than the default of the engine, with which dry friction creeps
            joint.solref_friction = [4 * timestep, 1.0]
            joint.solimp_friction = [0.9999, 0.9999, 0.001, 0.5, 2.0]
        _add_skeleton(spec)
        for joint in list(spec.joints):
            if joint.name in elastic:
                _add_motor(spec, joint, *elastic[joint.name])
        anchors = [] if loops is None else _close(spec, loops, timestep)
        _add_mimics(spec, model)
        engine = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise SimulationError(f'the engine cannot read this robot: {error}') from None
    for place, anchor in enumerate(anchors):  # the compiler computes them for joint positions zero
        engine.eq_data[place, 3:6] = anchor
    return engine


def _add_mimics(spec: Any, model: Model) -> None:
    """Add a constraint for each mimic joint; some versions of MuJoCo read them from the URDF."""
    import mujoco

    present = {equality.name1 for equality in spec.equalities}
    for i, name in enumerate(model.body_joints):
        if name not in model.joint_names and name not in present:
            place = int(np.flatnonzero(model.row[i])[0])
            equality = spec.add_equality()
            equality.type = mujoco.mjtEq.mjEQ_JOINT
            equality.name1 = name
            equality.name2 = model.joint_names[place - model.first_joint]
            equality.data[:2] = model.offset[i], model.row[i, place]


def _close(spec: Any, loops: ClosedLoopDynamics, timestep: float) -> list[Array]:
    """Add constraints for the points of each cut; return the points on the second bodies."""
    import mujoco

    anchors = []
    for cut in loops.cuts:
        for first, second in cut.points:
            equality = spec.add_equality()
            equality.type, equality.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
            equality.name1, equality.name2 = (
                link if spec.body(link) is not None else 'world' for link in cut.links)
            equality.data[:3] = first
            equality.solref = [2 * timestep, 1.0]
            equality.solimp = [0.9999, 0.9999, 0.001, 0.5, 2.0]
            anchors.append(second)
    return anchors


def _add_motor(spec: Any, joint: Any, stiffness: float, damping: float) -> None:
    """Add a separate motor for a joint, and a spring and damper between the two."""
    body = spec.worldbody.add_body(name=MOTOR + joint.name, mass=1e-6, inertia=[1e-9] * 3,
                                   gravcomp=1.0)
    body.explicitinertial = True
    motor = body.add_joint(name=MOTOR + joint.name, type=joint.type, axis=[0.0, 0.0, 1.0],
                           armature=joint.armature, damping=joint.damping,
                           frictionloss=joint.frictionloss)
    motor.solref_friction, motor.solimp_friction = joint.solref_friction, joint.solimp_friction
    joint.armature, joint.frictionloss = 0.0, 0.0
    joint.damping = np.zeros_like(joint.damping)
    spring = spec.add_tendon(name=MOTOR + joint.name, stiffness=stiffness, damping=damping,
                             springlength=[0.0, 0.0])
    spring.wrap_joint(MOTOR + joint.name, 1.0)
    spring.wrap_joint(joint.name, -1.0)


def _add_skeleton(spec: Any) -> None:
    """Draw a bar from each body to the next, without mass or contact."""
    import mujoco

    for body in spec.bodies:
        if body.name == 'world' or body.parent is None:
            continue
        length = float(np.linalg.norm(body.pos))
        if length < 1e-3:
            continue
        body.parent.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=[0.0, 0.0, 0.0, *body.pos],
            size=[min(0.03, length / 6), 0.0, 0.0], mass=0.0, contype=0, conaffinity=0,
            rgba=[0.3, 0.45, 0.7, 1.0])
