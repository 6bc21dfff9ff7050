"""Writes an identified robot as MJCF, for MuJoCo and software based on it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np

from robodyn_ros.errors import IdentificationError, UnknownNameError
from robodyn_ros.identification import Result, urdf_of
from robodyn_ros.packages import package
from robodyn_ros.simulation.mujoco_model import add_mimics, add_skeleton
from robodyn_ros.simulation.truth import perturbed_urdf

TIMESTEP = 0.002  # s, MuJoCo's default


def write_mjcf(result: Result, path: str | Path) -> None:
    """Write the physically consistent identified robot as MJCF.

    Joints have armature, damping and dry friction; where friction has further terms, these
    approximate it. Every joint has a motor with the effort limit of the URDF. Without meshes,
    bars from joint to joint stand for the links. A comment names what the data do not determine:
    parameters that have no effect on the torques, and combinations that the motion hardly
    distinguishes. Their values come from the description, and forces between the links that
    depend on them are not identified.

    Parameters
    ----------
    result : Result
        What `identify` returned.
    path : str or Path
        The file to write.

    Raises
    ------
    IdentificationError
        If the model was not read from a URDF, or MuJoCo cannot read the robot.
    MissingPackageError
        If MuJoCo is not installed.
    """
    Path(path).write_text(mjcf_of(result), encoding='utf-8')


def mjcf_of(result: Result) -> str:
    """Return the text that `write_mjcf` writes."""
    mujoco = package('mujoco')
    model = result.model
    if result.linear.loops is not None:
        raise UnknownNameError('robot for MJCF', 'one with closed loops', ['a tree'])
    if not model.description.urdf:
        raise IdentificationError('the model was not read from a URDF; valid: a robot with one')
    text = perturbed_urdf(urdf_of(model, model.description.urdf), None)
    try:
        spec = mujoco.MjSpec.from_string(text)
        spec.compiler.fusestatic = False
        spec.compiler.balanceinertia = False
        spec.option.timestep = TIMESTEP
        spec.option.gravity = model.gravity
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        armature = dict(zip(model.body_joints, model.armature, strict=True))
        for joint in spec.joints:
            joint.armature = float(armature.get(joint.name, 0.0))
        add_skeleton(spec)
        add_mimics(spec, model)
        for name, limit in zip(model.joint_names, model.effort_limit, strict=True):
            motor = spec.add_actuator(name=name, target=name,
                                      trntype=mujoco.mjtTrn.mjTRN_JOINT)
            if np.isfinite(limit) and limit > 0:
                motor.ctrlrange = [-limit, limit]
                motor.ctrllimited = True
        spec.compile()
        written = str(spec.to_xml())
    except (ValueError, mujoco.FatalError) as error:
        raise IdentificationError(f'MuJoCo cannot read this robot: {error}') from None
    head = '\n'.join(f'  {line}' for paragraph in null_space(result)
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
    poor = result.uncertainty_.poorly_distinguished
    if poor:
        lines.append('Poorly determined by the motion: ' + '; '.join(poor) + '.')
    return lines
