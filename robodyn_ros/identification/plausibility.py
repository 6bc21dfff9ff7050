"""Checks whether an identified robot can be the described one, by bounds on the changes.

A log with wrong units, signs or columns, for example with positions in place of torques, may be
fitted well although the result is meaningless. Such a result must not reach a controller.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

LARGEST_CHANGE = 3.0  # factor; a full payload or links of another variant change gravity by less
NOTABLE_GRAVITY = 0.05  # relative to the largest; smaller gravity torques are not compared
POSES = 200  # of the logs, in which the gravity torques are compared


def implausible(dynamics: RobotDynamics, identified: Model, q: Array) -> tuple[str, ...]:
    """Return why an identified model cannot be the described robot; empty if it can.

    The gravity torque of each joint may differ from the description by a factor of three, and
    Coulomb friction must be smaller than the effort limit.

    Parameters
    ----------
    dynamics : RobotDynamics
        The described robot.
    identified : Model
        The physically consistent result.
    q : ndarray, shape (N, n)
        Positions of the independent joints in the logs, rad or m.
    """
    poses = q[::max(1, len(q) // POSES)]
    before = dynamics.gravity(poses)
    after = dynamics.with_model(identified, shared_code=True).gravity(poses)
    sizes = np.linalg.norm(before, axis=0)
    reasons = []
    for k, joint in enumerate(dynamics.joint_names):
        if not sizes[k] > NOTABLE_GRAVITY * sizes.max():
            continue
        ratio = float(after[:, k] @ before[:, k]) / float(sizes[k] ** 2)
        if not 1 / LARGEST_CHANGE <= ratio <= LARGEST_CHANGE:
            reasons.append(f'the gravity torque of {joint} is {ratio:.3g} times that of the '
                           f'description (plausible: {1 / LARGEST_CHANGE:.2g} to '
                           f'{LARGEST_CHANGE:g})')
    return (*reasons, *_friction(identified))


def _friction(model: Model) -> list[str]:
    """Return the joints whose Coulomb friction exceeds their effort limit."""
    total = model.link_friction + model.motor_friction
    reasons = []
    for place, joint in enumerate(model.joint_names):
        limit, friction = float(model.effort_limit[place]), float(
            total[model.body_joints.index(joint), 1])
        if limit > 0 and friction > limit:
            reasons.append(f'the Coulomb friction of {joint} is {friction:.3g}, more than its '
                           f'effort limit of {limit:.3g}')
    return reasons
