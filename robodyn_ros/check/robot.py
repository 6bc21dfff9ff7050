"""Checks the dynamics of a robot in random poses within its joint limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.check.report import Issue
from robodyn_ros.description.robot import RobotDescription
from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.dynamics import Dynamics, inertia_bounds
from robodyn_ros.dynamics.tree import body_poses, build_tree
from robodyn_ros.model import Model
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

# The largest gravity torque in 2000 poses is within 3 % of that in 40 000 for Panda and UR10, and
# within 11 % for each of the 48 joints of a TIAGo.
POSES = 2000
EIGENVALUE_POSES = 200  # poses for the median condition, and for the eigenvalues of a quick check
REACH_POSES = 200  # poses for the reach
TIPS = 12  # maximum number of tips for the reach; the fingers of a hand differ by centimetres
ROUND_OFF = 1e-12  # gravity torques below this fraction of the largest are rounding errors
ROTOR_DOMINATES = 0.5  # fraction of the inertia about a joint above which its rotor dominates


@dataclass(frozen=True)
class Load:
    """A joint's largest gravity torque, N m or N, and its median inertia, kg m^2 or kg."""

    gravity: float
    inertia: float


def sample_dynamics(model: Model, dynamics: Dynamics, thorough: bool, issues: list[Issue],
                    ) -> tuple[dict[str, Any], dict[str, Load]]:
    """Return facts of the whole robot and the load of each joint, and append issues to a list.

    Parameters
    ----------
    model, dynamics : Model, Dynamics
        The robot.
    thorough : bool
        Whether to search for the bounds of the mass matrix, and to compute the reach.
    issues : list of Issue
        Receives the issues.
    """
    rng = np.random.default_rng(0)
    q = model.joints.sample_poses(rng, POSES)
    gravity = np.abs(dynamics.gravity(q)).max(axis=0)
    gravity[gravity < ROUND_OFF * gravity.max(initial=0.0)] = 0.0
    mass = dynamics.mass_matrix(q)
    diagonal = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0)
    values = np.linalg.eigvalsh(mass[:EIGENVALUE_POSES])
    smallest, largest = float(values[:, 0].min()), float(values[:, -1].max())
    if thorough:
        bounds = inertia_bounds(model, samples=500, refinements=6)
        smallest, largest = bounds.lambda_min, bounds.lambda_max
    if smallest <= 0:
        issues.append(Issue('fault', 'robot', 'the mass matrix is not positive definite: '
                            f'its smallest eigenvalue is {smallest:.3g}'))
    condition = float(np.median(safe_divide(values[:, -1], values[:, 0], at_zero=np.inf)))
    dominated = [name for k, name in enumerate(model.joint_names) if diagonal[k] > 0 and
                 model.armature[model.body_joints.index(name)] > ROTOR_DOMINATES * diagonal[k]]
    facts: dict[str, Any] = {
        'moving_joints': model.n,
        'total_mass_kg': sum(link.inertial.mass for link in model.description.links
                              if link.inertial)}
    if thorough:
        facts['reach_m'] = _reach(model, q[:REACH_POSES])
    facts |= {'smallest_eigenvalue_of_m': smallest, 'largest_eigenvalue_of_m': largest,
              'median_condition_of_m': condition, 'dominated_by_rotors': dominated}
    return facts, {name: Load(float(gravity[k]), float(diagonal[k]))
                   for k, name in enumerate(model.joint_names)}


def _reach(model: Model, poses: Array) -> float:
    """Return the largest distance of a tip from the root's origin, m.

    For so few poses, computing the body poses here is faster than compiling a kernel for each tip.
    """
    parents = {joint.parent for joint in model.description.joints}
    tips = [frame for link, frame in model.link_frames.items()
            if frame.body >= 0 and link not in parents][:TIPS]
    tree = build_tree(model)
    farthest = 0.0
    for q in poses:
        placed = body_poses(tree, q)
        for tip in tips:
            rotation, origin = placed[tip.body]
            farthest = max(farthest, float(np.linalg.norm(origin + rotation @ tip.translation)))
    return farthest


def kinematic_tree_text(description: RobotDescription) -> str:
    """Return links and joints as an indented tree."""
    lines = ['  ' + description.root]
    for joint, depth in joints_parent_first(description.root, description.joints):
        lines.append('  ' * (depth + 1) + f'{joint.child}  ({joint.name}, {joint.type})')
    return '\n'.join(lines)
