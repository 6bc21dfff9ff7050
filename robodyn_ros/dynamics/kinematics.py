"""Poses, Jacobians and their drift, in the axes of the root frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.dynamics.composite_rigid_body import composites
from robodyn_ros.dynamics.newton_euler import backward_pass, base_motion, forward_pass
from robodyn_ros.dynamics.tree import Tree, base_pose, body_poses, cross, joint_transforms
from robodyn_ros.model import LinkFrame


def link_pose(tree: Tree, frame: LinkFrame, q: Any) -> Any:
    """Homogeneous transform of a link in the root frame, shape (4, 4)."""
    rotation, origin = base_pose(tree, q) if frame.body < 0 else body_poses(tree, q)[frame.body]
    pose = np.zeros((4, 4), dtype=object)
    pose[:3, :3] = rotation @ frame.rotation
    pose[:3, 3] = origin + rotation @ frame.translation
    pose[3, 3] = 1.0
    return pose


def link_jacobian(tree: Tree, frame: LinkFrame, q: Any) -> Any:
    """Jacobian of a link, shape (6, n): velocity of its origin, then angular velocity."""
    jacobian: list[list[Any]] = [[0.0] * tree.n for _ in range(6)]
    tip = link_pose(tree, frame, q)[:3, 3]
    if tree.floating:
        rotation, origin = base_pose(tree, q)
        for unit, direction in enumerate(rotation.T):
            turning = [*cross(direction, tip - origin), *direction]
            for r, linear in enumerate([*direction, 0.0, 0.0, 0.0]):
                jacobian[r][unit], jacobian[r][3 + unit] = linear, turning[r]
    if frame.body >= 0:
        poses = body_poses(tree, q)
        for i in tree.ancestors(frame.body):
            axis = poses[i][0] @ tree.axis[i]
            if tree.prismatic[i]:
                column = [*axis, 0.0, 0.0, 0.0]
            else:
                column = [*cross(axis, tip - poses[i][1]), *axis]
            for k in np.flatnonzero(tree.row[i]):
                for r in range(6):
                    jacobian[r][k] = jacobian[r][k] + tree.row[i, k] * column[r]
    return np.array(jacobian)


def link_drift(tree: Tree, frame: LinkFrame, q: Any, qd: Any) -> Any:
    """``dJ/dt qd`` of a link, shape (6,): its acceleration for qdd = 0."""
    if frame.body < 0 and not tree.floating:
        return np.zeros(6)
    still = np.zeros(tree.n)
    base = base_motion(tree, q, qd, qd, still, np.zeros(3))
    motions = [*forward_pass(tree, joint_transforms(tree, q), qd, qd, still, base), base]
    motion = motions[frame.body]
    rotation, _ = body_poses(tree, q)[frame.body]
    return np.array([*(rotation @ (motion.linear + motion.field @ frame.translation)),
                     *(rotation @ motion.angular)])


def potential_energy(tree: Tree, q: Any) -> Any:
    """``-sum (m p + R h) . g`` of the moving bodies, J; zero if all mass were at the origin."""
    total: Any = 0.0
    *moving, base = body_poses(tree, q)
    bodies = list(zip(moving, tree.inertial_parameters, strict=True))
    if tree.floating:
        bodies.append((base, tree.base_inertial_parameters))
    for (rotation, origin), body in bodies:
        total = total - (body[6] * origin + rotation @ np.asarray(body[7:10])) @ tree.gravity
    return total


def center_of_mass(tree: Tree, q: Any) -> Any:
    """Centre of mass of the whole robot, root link included, in the root frame; shape (3,)."""
    whole = composites(tree, joint_transforms(tree, q))[-1]
    rotation, origin = base_pose(tree, q)
    return origin + rotation @ np.asarray(whole[7:10]) / whole[6]


def centroidal_momentum(tree: Tree, q: Any, qd: Any) -> Any:
    """Linear and angular momentum of the robot about its centre of mass, root axes; (6,)."""
    still, placements = np.zeros(tree.n), joint_transforms(tree, q)
    base = base_motion(tree, q, still, still, qd, np.zeros(3))  # momenta instead of wrenches
    _, (linear, angular) = backward_pass(tree, placements, forward_pass(
        tree, placements, still, still, qd, base), base)
    rotation, origin = base_pose(tree, q)
    linear = rotation @ linear
    arm = center_of_mass(tree, q) - origin
    return np.array([*linear, *(rotation @ angular - cross(arm, linear))])
