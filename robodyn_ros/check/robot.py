"""Judges the robot as a whole, over random poses of its joint range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.check.report import Doubt
from robodyn_ros.description import Joint, RobotDescription
from robodyn_ros.dynamics import Dynamics, inertia_bounds
from robodyn_ros.model import Model

POSES = 2000
ROTOR_DOMINATES = 0.5  # of a joint's own inertia


@dataclass(frozen=True)
class Load:
    """A joint's largest gravity torque, N m or N, and its median inertia, kg m^2 or kg."""

    gravity: float
    inertia: float


def sample_dynamics(model: Model, dynamics: Dynamics, thorough: bool, doubts: list[Doubt],
                    ) -> tuple[dict[str, Any], dict[str, Load]]:
    """Return facts of the whole robot and each joint's load; add what is doubtful."""
    rng = np.random.default_rng(0)
    lower = np.where(np.isfinite(model.lower), model.lower, -np.pi)
    upper = np.where(np.isfinite(model.upper), model.upper, np.pi)
    q = rng.uniform(lower, upper, (POSES, model.n))
    gravity = np.abs(dynamics.gravity(q)).max(axis=0)
    mass = dynamics.mass_matrix(q)
    diagonal = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0)
    values = np.linalg.eigvalsh(mass[:POSES if thorough else 200])
    smallest, largest = float(values[:, 0].min()), float(values[:, -1].max())
    if thorough:
        bounds = inertia_bounds(model, samples=500, refinements=6)
        smallest, largest = bounds.lambda_min, bounds.lambda_max
    if smallest <= 0:
        doubts.append(Doubt('fault', 'robot', 'its mass matrix is not positive definite: '
                            f'smallest eigenvalue {smallest:.3g}'))
    with np.errstate(divide='ignore', invalid='ignore'):
        condition = float(np.median(values[:, -1] / values[:, 0]))
    dominated = [name for k, name in enumerate(model.joint_names) if diagonal[k] > 0 and
                 model.armature[model.body_joints.index(name)] > ROTOR_DOMINATES * diagonal[k]]
    facts: dict[str, Any] = {
        'joints that move': model.n,
        'total mass, kg': sum(link.inertial.mass for link in model.description.links
                              if link.inertial)}
    if thorough:
        facts['reach, m'] = _reach(model, dynamics, q[:200])
    facts |= {'smallest eigenvalue of M': smallest, 'largest eigenvalue of M': largest,
              'condition of M, median': condition, 'dominated by their rotors': dominated}
    return facts, {name: Load(float(gravity[k]), float(diagonal[k]))
                   for k, name in enumerate(model.joint_names)}


def _reach(model: Model, dynamics: Dynamics, q: Any) -> float:
    parents = {joint.parent for joint in model.description.joints}
    tips = [link for link, frame in model.link_frames.items()
            if frame.body >= 0 and link not in parents]
    return max(float(np.linalg.norm(dynamics.pose(q, tip)[:, :3, 3], axis=1).max())
               for tip in tips[:12])


def kinematic_tree_text(description: RobotDescription) -> str:
    """Return links and joints as an indented tree."""
    children: dict[str, list[Joint]] = {}
    for joint in description.joints:
        children.setdefault(joint.parent, []).append(joint)
    roots = {link.name for link in description.links} - {
        joint.child for joint in description.joints}
    lines, stack = [], [(root, '', 0) for root in roots]
    while stack:
        link, by, depth = stack.pop()
        lines.append('  ' * (depth + 1) + link + by)
        for joint in reversed(children.get(link, [])):
            stack.append((joint.child, f'  ({joint.name}, {joint.type})', depth + 1))
    return '\n'.join(lines)
