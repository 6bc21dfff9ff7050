"""Checks a joint: its range, its effort limit against gravity, and the inertia that it moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.check.report import Issue
from robodyn_ros.check.robot import Load
from robodyn_ros.description.robot import Joint
from robodyn_ros.model import Model
from robodyn_ros.numerics import safe_divide

NO_INERTIA = 1e-9  # kg m^2 or kg; for comparison, a cube of 5 mm and 1 g has 4e-9 kg m^2


def check_joint(joint: Joint, model: Model, loads: dict[str, Load],
                issues: list[Issue]) -> dict[str, Any]:
    """Return the facts of a joint, and append issues to a list.

    Parameters
    ----------
    joint : Joint
        A moving joint.
    model : Model
        The robot.
    loads : dict of str to Load
        The load of each joint.
    issues : list of Issue
        Receives the issues.
    """
    where = f'joint {joint.name}'
    slides = joint.type == 'prismatic'
    facts: dict[str, Any] = {
        'joint': joint.name, 'type': joint.type, 'axis': joint.axis.tolist(),
        'unit_of_position': 'm' if slides else 'rad', 'unit_of_effort': 'N' if slides else 'N m',
        'lower': joint.lower, 'upper': joint.upper, 'velocity_limit': joint.velocity,
        'effort_limit': joint.effort, 'viscous_friction': joint.damping,
        'coulomb_friction': joint.friction}
    if joint.mimic is not None:
        facts['mimics'] = joint.mimic.joint
        return facts
    i = model.body_joints.index(joint.name)
    facts['armature'] = float(model.armature[i])
    sources = {f.source for f in model.findings if f.joint == joint.name and f.used
               and f.quantity in ('gear_ratio', 'rotor_inertia', 'armature')}
    if sources:
        facts['motor_from'] = ', '.join(sorted(sources))
    if joint.lower == joint.upper:
        issues.append(Issue('warning', where, 'its lower and upper position limits are both '
                            f'{joint.lower:g}, so it has no range to move in'))
    load = loads[joint.name]
    facts['largest_gravity'] = load.gravity
    unit = facts['unit_of_effort']
    if load.gravity > joint.effort:
        issues.append(Issue('warning', where, f'gravity needs up to {load.gravity:.3g} {unit} '
                            f'within its range, but its effort limit is {joint.effort:g} {unit}: '
                            'it cannot hold its load in every pose'))
    if not np.isfinite(joint.effort):
        issues.append(Issue('warning', where, 'it has no effort limit, so its torque is not '
                            'limited'))
    facts['rotor_fraction'] = safe_divide(float(model.armature[i]), load.inertia)
    if load.inertia < NO_INERTIA:
        issues.append(Issue('fault', where, 'it moves no inertia, so forward dynamics are '
                            'undefined'))
    return facts
