"""Poses, Jacobians and their drift, in the axes of the root frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.dynamics.newton_euler import forward_pass
from robodyn_ros.dynamics.tree import Tree, cross, joint_transforms
from robodyn_ros.model import LinkFrame


def body_poses(tree: Tree, q: Any) -> list[tuple[Any, Any]]:
    """Rotation (3, 3) and origin (3,) of every body in the root frame."""
    poses: list[tuple[Any, Any]] = []
    for i, placement in enumerate(joint_transforms(tree, q)):
        rotation, origin = poses[tree.parent[i]] if tree.parent[i] >= 0 else (
            np.eye(3), np.zeros(3))
        poses.append((rotation @ placement.rotation,
                      origin + rotation @ placement.translation))
    return poses


def link_pose(tree: Tree, frame: LinkFrame, q: Any) -> Any:
    """Homogeneous transform of a link in the root frame, shape (4, 4)."""
    rotation, origin = (np.eye(3), np.zeros(3)) if frame.body < 0 else (
        body_poses(tree, q)[frame.body])
    pose = np.zeros((4, 4), dtype=object)
    pose[:3, :3] = rotation @ frame.rotation
    pose[:3, 3] = origin + rotation @ frame.translation
    pose[3, 3] = 1.0
    return pose


def link_jacobian(tree: Tree, frame: LinkFrame, q: Any) -> Any:
    """Jacobian of a link, shape (6, n): velocity of its origin, then angular velocity."""
    jacobian: list[list[Any]] = [[0.0] * tree.n for _ in range(6)]
    if frame.body >= 0:
        poses = body_poses(tree, q)
        tip = link_pose(tree, frame, q)[:3, 3]
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
    if frame.body < 0:
        return np.zeros(6)
    motions = list(forward_pass(tree, joint_transforms(tree, q), qd, qd, np.zeros(tree.n),
                                np.zeros(3)))
    motion = motions[frame.body]
    rotation, _ = body_poses(tree, q)[frame.body]
    return np.array([*(rotation @ (motion.linear + motion.field @ frame.translation)),
                     *(rotation @ motion.angular)])


def potential_energy(tree: Tree, q: Any) -> Any:
    """``-sum (m p + R h) . g`` of the moving bodies, J; zero if all mass were at the origin."""
    total: Any = 0.0
    for (rotation, origin), body in zip(body_poses(tree, q), tree.inertial_parameters,
                                        strict=True):
        total = total - (body[6] * origin + rotation @ np.asarray(body[7:10])) @ tree.gravity
    return total
