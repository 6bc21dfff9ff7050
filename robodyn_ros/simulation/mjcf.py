"""Writes a robot as MJCF, for MuJoCo and software based on it."""

from __future__ import annotations

import textwrap
from pathlib import Path

from robodyn_ros.dynamics import ClosedLoopDynamics, FloatingLoopDynamics
from robodyn_ros.errors import IdentificationError, check_type
from robodyn_ros.identification import Result
from robodyn_ros.model import Model
from robodyn_ros.packages import package
from robodyn_ros.simulation.mjcf_writer import mjcf_text

TIMESTEP = 0.002  # s, MuJoCo's default


def write_mjcf(robot: Result | Model | ClosedLoopDynamics | FloatingLoopDynamics,
               path: str | Path) -> None:
    """Write a robot, for example the physically consistent identified one, as MJCF.

    Joints have armature, damping and dry friction; where friction has further terms, these
    approximate it. A linear spring is MuJoCo's stiffness; a comment names springs at cranks, which
    MuJoCo does not have. Every joint has a motor with the effort limit of the URDF. Without
    meshes, bars from joint to joint stand for the links. What is fixed to a moving link is part of
    its inertia; the fixed links are bodies without mass, which keep their frames. A floating base
    has a free joint; a base that is held has none, even if the description has a floating joint.
    Closed loops are ``connect`` constraints between sites. Numbers keep all their digits. For an
    identified robot, a comment names what the data
    do not determine: parameters that have no effect on the torques, and combinations that the
    motion hardly distinguishes. Their values come from the description, and forces between the
    links that depend on them are not identified.

    Parameters
    ----------
    robot : Result, Model, ClosedLoopDynamics or FloatingLoopDynamics
        What `identify` returned, or a robot. The loops of a model are those of its description.
    path : str or Path
        The file to write.

    Raises
    ------
    DescriptionError
        If no rigid body can have the inertia of a moving link, together with all that is fixed
        to it: MuJoCo refuses such bodies. The message names the link.
    IdentificationError
        If friction or the inertia of a rotor is negative, or MuJoCo cannot read the robot.
    MissingPackageError
        If MuJoCo is not installed.
    """
    Path(path).write_text(mjcf_of(robot), encoding='utf-8')


def mjcf_of(robot: Result | Model | ClosedLoopDynamics | FloatingLoopDynamics) -> str:
    """Return the text that `write_mjcf` writes.

    Raises
    ------
    DescriptionError, IdentificationError
        See `write_mjcf`.
    """
    mujoco = package('mujoco')
    check_type('robot', robot, (Result, Model, ClosedLoopDynamics, FloatingLoopDynamics),
               'a Result of identify, a Model, or dynamics of closed loops')
    model = robot if isinstance(robot, Model) else robot.model
    loops = robot.linear.loops if isinstance(robot, Result) else robot
    cuts = getattr(loops, 'cuts', ()) or model.description.cuts
    if (model.armature < 0).any() or min(model.link_friction[:, :2].min(initial=0.0),
                                         model.motor_friction[:, :2].min(initial=0.0)) < 0:
        raise IdentificationError('MuJoCo cannot read this robot: friction or the inertia of a '
                                  'rotor is negative')
    written = mjcf_text(model, cuts, timestep=TIMESTEP)
    try:
        mujoco.MjModel.from_xml_string(written)
    except (ValueError, mujoco.FatalError) as error:
        raise IdentificationError(f'MuJoCo cannot read this robot: {error}') from None
    if not isinstance(robot, Result):
        return written
    head = '\n'.join(f'  {line}' for paragraph in null_space(robot)
                     for line in textwrap.wrap(paragraph.replace('--', '- -'), 100))
    return f'<!--\n{head}\n-->\n{written}'


def null_space(result: Result) -> list[str]:
    """Return sentences that describe the parameters that the data do not determine."""
    base = result.base_
    rigid = sum(column.standard >= 0 for column in result.linear.columns)
    lines = [f'Identified by robodyn from {", ".join(name for name, _ in result.sources)}: '
             f'{base.count} base parameters of {rigid} standard parameters.']
    if base.without_effect:
        lines.append('Without effect on the torques, so that their values are those of the '
                     f'description: {", ".join(base.without_effect)}.')
    regrouped = [text for name, text in zip(base.names, base.expressions, strict=True)
                 if text != name]
    if regrouped:
        lines.append('Only these sums are determined; how they are split is the description\'s: '
                     + '; '.join(regrouped) + '.')
    cranks = [joint for joint, values in zip(result.model.body_joints, result.model.spring,
                                             strict=True) if values[1:].any()]
    if cranks:
        lines.append('Without the springs at cranks, which MuJoCo does not have: '
                     f'{", ".join(cranks)}.')
    if result.model.ripple.any():
        lines.append('Without torque ripple, which MuJoCo does not have.')
    poor = result.uncertainty_.poorly_distinguished
    if poor:
        lines.append('Poorly determined by the motion: ' + '; '.join(poor) + '.')
    return lines
