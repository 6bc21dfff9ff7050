"""Mass matrix by the composite rigid body algorithm (Kolyubin 2.27, Velagić 4.34).

With all joints beyond joint i locked, the bodies that joint i carries form one rigid body. The
wrench that gives it a unit acceleration about joint i, projected onto the axes of joint i and of
the joints before it, is a column of M.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.dynamics.tree import (
    Placement,
    Tree,
    cross,
    joint_transforms,
    joint_twists,
    root_link_poses,
)
from robodyn_ros.spatial import inertia_tensor, skew


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
    """Return the inertial parameters of each body with all that it carries, in its frame.

    The last entry is the whole robot, in the frame of the root link.
    """
    inertial: list[Any] = [*tree.inertial_parameters, tree.base_inertial_parameters]
    for i in reversed(range(len(placements))):
        parent = tree.parent[i]  # -1, the root, is the last entry
        inertial[parent] = inertial[parent] + to_parent(inertial[i], placements[i])
    return inertial


def composite_mass_matrix(tree: Tree, q: Any) -> Any:
    """Return M without armature, shape (n, n)."""
    placements = joint_transforms(tree, q)
    total: list[list[Any]] = [[0.0] * tree.n for _ in range(tree.n)]
    *carried, whole = composites(tree, placements)
    if tree.floating:
        total = _with_base(total, whole)
    for i, inertial in enumerate(carried):
        axis = tree.axis[i]
        if tree.prismatic[i]:
            force, torque = inertial[6] * axis, cross(inertial[7:10], axis)
        else:
            force, torque = cross(axis, inertial[7:10]), inertia_tensor(inertial) @ axis
        body = i
        while True:
            _add(total, tree, i, body,
                 tree.axis[body] @ (force if tree.prismatic[body] else torque))
            parent, placement = tree.parent[body], placements[body]
            if parent < 0 and not tree.floating:
                break
            force = placement.rotation @ force
            torque = placement.rotation @ torque + cross(placement.translation, force)
            if parent < 0:
                _add_to_base(total, tree.row[i], [*force, *torque])
                break
            body = parent
    return np.array(total)


def mass_factors(tree: Tree, q: Any) -> Any:
    """Return twists and wrenches whose products are the entries of M, shape (2, 6, b).

    They are given in the frame of the root link. Column i of the twists is that of body i for a
    unit velocity of its joint. Column i of the wrenches is the wrench by which a unit acceleration
    of this joint moves all bodies that it carries. For a floating base, its six unit twists and
    their wrenches come first.
    """
    poses = root_link_poses(tree, q)
    inertial = [to_parent(parameters, Placement(rotation, origin, np.eye(3), rotation))
                for parameters, (rotation, origin) in zip(
                    tree.inertial_parameters, poses, strict=True)]
    inertial.append(tree.base_inertial_parameters)
    for i in reversed(range(len(poses))):
        inertial[tree.parent[i]] = inertial[tree.parent[i]] + inertial[i]
    twists = joint_twists(tree, poses)
    bodies = inertial[:-1]
    if tree.floating:
        twists = [*np.eye(6), *twists]
        bodies = [inertial[-1]] * 6 + bodies
    wrenches = []
    for twist, body in zip(twists, bodies, strict=True):
        linear, turn, moment = twist[:3], twist[3:], np.asarray(body[7:10])
        wrenches.append([*(body[6] * linear + cross(turn, moment)),
                         *(inertia_tensor(body) @ turn + cross(moment, linear))])
    return np.array([np.array(twists, dtype=object).T, np.array(wrenches, dtype=object).T])


def _with_base(total: list[list[Any]], whole: Any) -> list[list[Any]]:
    """Return the matrix with the block of a floating base: the inertia of the whole robot."""
    moment = skew(whole[7:10])
    block = np.block([[whole[6] * np.eye(3), -moment], [moment, inertia_tensor(whole)]])
    return [[*block[k], *row[6:]] if k < 6 else row for k, row in enumerate(total)]


def _add_to_base(total: list[list[Any]], row: Any, wrench: Sequence[Any]) -> None:
    """Add the wrench on the base for a unit acceleration of a joint."""
    for k in np.flatnonzero(row):
        for m, value in enumerate(wrench):
            total[k][m] = total[m][k] = total[k][m] + row[k] * value


def _add(total: list[list[Any]], tree: Tree, i: int, j: int, value: Any) -> None:
    """Add the entry of the bodies' joints i and j to the mass matrix of the coordinates."""
    for k in np.flatnonzero(tree.row[i]):
        for m in np.flatnonzero(tree.row[j]):
            entry = tree.row[i, k] * (tree.row[j, m] * value)
            total[k][m] = total[k][m] + entry
            if i != j:
                total[m][k] = total[m][k] + entry
