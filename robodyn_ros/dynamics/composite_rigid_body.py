"""Mass matrix by the composite rigid body algorithm (Kolyubin 2.27, Velagić 4.34).

With all joints beyond joint i locked, the bodies that joint i carries form one rigid body. The
wrench that gives it a unit acceleration about joint i, projected onto the axes of joint i and of
the joints before it, is a column of M.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.dynamics.tree import Placement, Tree, cross, joint_transforms
from robodyn_ros.spatial import inertia_tensor


def to_parent(inertial: Any, placement: Placement) -> Any:
    """Return inertial parameters, (10,), in the parent's frame (Steiner, Kolyubin App. 3)."""
    shift = placement.translation
    mass, moment = inertial[6], placement.rotation @ np.asarray(inertial[7:10])
    inertia = placement.turn @ inertia_tensor(inertial) @ placement.turn.T
    inertia = placement.fixed @ inertia @ placement.fixed.T
    heavy = moment + moment + mass * shift  # |r + t|^2 - |r|^2 sums to t . (2 h + m t)
    spread = [shift[k] * heavy[k] for k in range(3)]
    new = moment + mass * shift
    cross_terms = [-(moment[a] * shift[b] + shift[a] * new[b])
                   for a, b in ((0, 1), (0, 2), (1, 2))]
    return np.array([
        inertia[0, 0] + spread[1] + spread[2], inertia[0, 1] + cross_terms[0],
        inertia[0, 2] + cross_terms[1], inertia[1, 1] + spread[0] + spread[2],
        inertia[1, 2] + cross_terms[2], inertia[2, 2] + spread[0] + spread[1],
        mass, new[0], new[1], new[2]])


def composites(tree: Tree, placements: Sequence[Placement]) -> list[Any]:
    """Return the inertial parameters of each body with all that it carries, in its frame."""
    inertial: list[Any] = list(tree.inertial_parameters)
    for i in reversed(range(len(inertial))):
        if tree.parent[i] >= 0:
            moved = to_parent(inertial[i], placements[i])
            inertial[tree.parent[i]] = inertial[tree.parent[i]] + moved
    return inertial


def composite_mass_matrix(tree: Tree, q: Any) -> Any:
    """Return M without armature, shape (n, n)."""
    placements = joint_transforms(tree, q)
    total: list[list[Any]] = [[0.0] * tree.n for _ in range(tree.n)]
    for i, inertial in enumerate(composites(tree, placements)):
        axis = tree.axis[i]
        if tree.prismatic[i]:
            force, torque = inertial[6] * axis, cross(inertial[7:10], axis)
        else:
            force, torque = cross(axis, inertial[7:10]), inertia_tensor(inertial) @ axis
        body = i
        while True:
            _add(total, tree, i, body,
                 tree.axis[body] @ (force if tree.prismatic[body] else torque))
            parent = tree.parent[body]
            if parent < 0:
                break
            placement = placements[body]
            force = placement.rotation @ force
            torque = placement.rotation @ torque + cross(placement.translation, force)
            body = parent
    return np.array(total)


def _add(total: list[list[Any]], tree: Tree, i: int, j: int, value: Any) -> None:
    """Add the entry of the bodies' joints i and j to the mass matrix of the coordinates."""
    for k in np.flatnonzero(tree.row[i]):
        for m in np.flatnonzero(tree.row[j]):
            entry = tree.row[i, k] * (tree.row[j, m] * value)
            total[k][m] = total[k][m] + entry
            if i != j:
                total[m][k] = total[m][k] + entry
