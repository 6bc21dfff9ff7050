"""Judges a joint: can it hold itself up, does it move anything, what turns with its motor."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.check.report import Doubt
from robodyn_ros.check.robot import Load
from robodyn_ros.description import Joint
from robodyn_ros.model import Model


def check_joint(joint: Joint, model: Model, loads: dict[str, Load],
                doubts: list[Doubt]) -> dict[str, Any]:
    """Return facts of a joint; add what is doubtful of it."""
    where = f'joint {joint.name}'
    facts: dict[str, Any] = {
        'joint': joint.name, 'type': joint.type, 'axis': joint.axis.tolist(),
        'lower': joint.lower, 'upper': joint.upper, 'velocity': joint.velocity,
        'effort': joint.effort, 'damping': joint.damping, 'friction': joint.friction}
    if joint.mimic is not None:
        facts['mimics'] = joint.mimic.joint
        return facts
    i = model.body_joints.index(joint.name)
    facts['armature'] = float(model.armature[i])
    sources = {f.source for f in model.findings if f.joint == joint.name and f.used
               and f.quantity in ('gear_ratio', 'rotor_inertia', 'armature')}
    if sources:
        facts['motor from'] = ', '.join(sorted(sources))
    load = loads[joint.name]
    facts['gravity'] = load.gravity
    if load.gravity > joint.effort:
        doubts.append(Doubt('warning', where, f'gravity needs up to {load.gravity:.3g} in its '
                            f'range, its effort limit is {joint.effort:g}: it cannot hold itself '
                            'up everywhere'))
    if not np.isfinite(joint.effort):
        doubts.append(Doubt('warning', where, 'no effort limit: torques are not limited'))
    facts['rotor_share'] = float(model.armature[i]) / load.inertia if load.inertia > 0 else 0.0
    if load.inertia < 1e-9:
        doubts.append(Doubt('fault', where, 'moves no inertia: forward dynamics are undefined'))
    return facts
