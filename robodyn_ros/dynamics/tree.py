"""The tree that the recursions run on, and where its bodies are.

Frames are the bodies' own; functions take NumPy arrays of floats or of symbols alike, so that the
same lines are computed, tested and compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.description import Array, Inertial
from robodyn_ros.model import Model
from robodyn_ros.rigid_body import rigid_parameters, transform_rigid

Vector = Any  # (3,) array of floats or symbols
Matrix = Any  # (3, 3) array of floats or symbols


@dataclass(frozen=True, eq=False)
class Tree:
    """A model's bodies, parents first, then its spinning rotors as bodies of their own.

    A rotor is a body on its carrier whose joint turns by ``row @ q`` (gear ratio included). It is
    symmetric about its axis, so its angle never matters and its frame stays the carrier's. Its
    inertia at rest is part of the carrier's; it is taken from there (theory section 3).

    Attributes
    ----------
    bodies : int
        Number of bodies of the model; those after are rotors.
    """

    bodies: int
    parent: tuple[int, ...]
    prismatic: tuple[bool, ...]
    axis: Array
    rotation: Array
    translation: Array
    row: Array
    offset: Array
    rigid: Array
    base_rigid: Array
    gravity: Array

    @property
    def n(self) -> int:
        """Number of generalised coordinates."""
        return int(self.row.shape[1])

    def is_rotor(self, body: int) -> bool:
        """Whether a body is a rotor."""
        return body >= self.bodies

    def ancestors(self, body: int) -> list[int]:
        """The body, its parent, ... up to the first body on the root."""
        path = []
        while body >= 0:
            path.append(body)
            body = self.parent[body]
        return path


def build_tree(model: Model) -> Tree:
    """Return the tree of a model."""
    spinning = [i for i in range(len(model.parent)) if not np.isnan(model.spin_axis[i, 0])]
    rigid, base_rigid = model.rigid.copy(), model.base_rigid.copy()
    rotors = []
    for i in spinning:
        inertia = model.armature[i] / model.gear_ratio[i] ** 2
        axis = model.spin_axis[i]
        rotor = rigid_parameters(Inertial(0.0, np.zeros(3), inertia * np.outer(axis, axis)))
        rotors.append(rotor)
        if model.carrier[i] < 0:
            base_rigid -= rotor
        else:
            rigid[model.carrier[i]] -= rotor
    count = len(spinning)
    return Tree(
        bodies=len(model.parent),
        parent=(*model.parent, *(model.carrier[i] for i in spinning)),
        prismatic=(*model.prismatic, *(False,) * count),
        axis=np.concatenate([model.axis, model.spin_axis[spinning]]),
        rotation=np.concatenate([model.rotation, np.tile(np.eye(3), (count, 1, 1))]),
        translation=np.concatenate([model.translation, np.zeros((count, 3))]),
        row=np.concatenate([model.row, model.gear_ratio[spinning, None]
                            * model.motor_row[spinning]]),
        offset=np.concatenate([model.offset, np.zeros(count)]),
        rigid=np.concatenate([rigid, np.array(rotors).reshape(-1, 10)]),
        base_rigid=base_rigid,
        gravity=model.gravity)


def cross(a: Vector, b: Vector) -> Vector:
    """A x b."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                     a[0] * b[1] - a[1] * b[0]])


def cross_matrix(a: Vector) -> Matrix:
    """S(a), with S(a) b = a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def tensor(rigid: Any) -> Matrix:
    """The symmetric inertia tensor of ``Ixx Ixy Ixz Iyy Iyz Izz ...``."""
    xx, xy, xz, yy, yz, zz = rigid[:6]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def axis_turn(axis: Array, angle: Any) -> Matrix:
    """Rotation matrix about a unit axis (Rodrigues): aa' + cos (E - aa') + sin S(a)."""
    projector = np.outer(axis, axis)
    cosine, sine = np.cos(np.array([angle])[0]), np.sin(np.array([angle])[0])
    return projector + cosine * (np.eye(3) - projector) + sine * cross_matrix(axis)


@dataclass(frozen=True, eq=False)
class Placement:
    """Where a body is in its parent's frame.

    Attributes
    ----------
    rotation : (3, 3)
        Body axes to parent axes.
    translation : (3,)
        Body origin in the parent frame, m.
    fixed, turn : (3, 3)
        ``rotation = fixed @ turn``; the turn about the joint's axis alone holds the joint angle.
    """

    rotation: Matrix
    translation: Vector
    fixed: Array
    turn: Matrix


def place(tree: Tree, q: Any) -> list[Placement]:
    """Placement of every body for joint positions q, shape (n,)."""
    placements = []
    for i, fixed in enumerate(tree.rotation):
        shift, turn = tree.translation[i], np.eye(3)
        if not tree.is_rotor(i):
            angle = sparse_dot(tree.row[i], q) + tree.offset[i]
            if tree.prismatic[i]:
                shift = shift + (fixed @ tree.axis[i]) * angle
            else:
                turn = axis_turn(tree.axis[i], angle)
        placements.append(Placement(fixed @ turn, shift, fixed, turn))
    return placements


def sparse_dot(row: Array, values: Any) -> Any:
    """``row @ values`` over the non-zeros of a constant row."""
    total: Any = 0.0
    for k in np.flatnonzero(row):
        total = total + row[k] * values[k]
    return total


def gather(tree: Tree, per_body: Any) -> Any:
    """Generalised forces of the coordinates from those of the joints: ``row' @ per_body``."""
    totals: list[Any] = [0.0] * tree.n
    for row, value in zip(tree.row, per_body, strict=True):
        for k in np.flatnonzero(row):
            totals[k] = totals[k] + row[k] * value
    return np.array(totals)


def regroup(tree: Tree) -> Tree:
    """Return a tree with fewer non-zero parameters and the same generalised forces.

    Mass on a joint's axis moves as the parent does, whatever the joint's angle: each body's mass,
    its first moment along the axis and one transverse moment of inertia can be counted with the
    parent, as a line of mass on the axis (the regrouping of base parameters, theory section 8.2).
    What arrives at the root is at rest and drops out. A sliding body's inertia tensor is the
    parent's too, since both turn alike. Joint reactions are not kept.
    """
    rigid = tree.rigid.copy()
    for i in reversed(range(len(rigid))):
        axis, moved = tree.axis[i], np.zeros(10)
        if tree.prismatic[i]:
            moved[:6] = rigid[i, :6]
        else:
            across = np.eye(3) - np.outer(axis, axis)
            aligned = np.isin(np.abs(axis), (0.0, 1.0)).all()
            transverse = int(np.argmin(np.abs(axis)))
            kappa = tensor(rigid[i])[transverse, transverse] if aligned else 0.0
            moved[:6] = (kappa * across)[np.triu_indices(3)]
            moved[6] = rigid[i, 6]
            moved[7:] = axis * (axis @ rigid[i, 7:])
        rigid[i] -= moved
        if tree.parent[i] >= 0:
            rigid[tree.parent[i]] += transform_rigid(moved, tree.rotation[i],
                                                     tree.translation[i])
    return replace(tree, rigid=rigid)
