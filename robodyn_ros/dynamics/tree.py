"""`Tree`: the bodies and rotors on which the recursions run, and their placements.

All vectors are in the frames of the bodies. The functions take NumPy arrays of floats or of
symbols, so that the code that is compiled is also the code that is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.spatial import (
    Array,
    Inertial,
    axis_rotation,
    inertia_components,
    inertia_tensor,
    inertial_parameters,
    transform_inertial,
)

Vector = Any  # (3,) array of floats or symbols
Matrix = Any  # (3, 3) array of floats or symbols


@dataclass(frozen=True, eq=False)
class Tree:
    """The bodies of a model, parents first, followed by its spinning rotors as separate bodies.

    A rotor is a body on its carrier whose joint turns by ``row @ q`` (gear ratio included). Since
    it is symmetric about its axis, its angle has no effect, and its frame is that of the carrier.
    Its inertia at rest is subtracted from the carrier, which already includes it.

    Attributes
    ----------
    bodies : int
        Number of bodies of the model; the bodies after them are rotors.
    floating : bool
        Whether the root moves freely. Its twist then comes first in qd, in its own axes, and its
        pose comes first in q; ``row`` has zeros in the first six columns.

    The other attributes are those of `Model`, with the rotors after the bodies.
    """

    bodies: int
    parent: tuple[int, ...]
    prismatic: tuple[bool, ...]
    axis: Array
    rotation: Array
    translation: Array
    row: Array
    offset: Array
    inertial_parameters: Array
    base_inertial_parameters: Array
    gravity: Array
    floating: bool = False

    @property
    def n(self) -> int:
        """Number of generalised velocities."""
        return int(self.row.shape[1])

    def is_rotor(self, body: int) -> bool:
        """Whether a body is a rotor."""
        return body >= self.bodies

    def ancestors(self, body: int) -> list[int]:
        """Return the body, its parent, and so on up to the first body on the root."""
        path = []
        while body >= 0:
            path.append(body)
            body = self.parent[body]
        return path


def build_tree(model: Model) -> Tree:
    """Return the tree of a model."""
    spinning = [i for i in range(len(model.parent)) if not np.isnan(model.spin_axis[i, 0])]
    bodies, base = model.inertial_parameters.copy(), model.base_inertial_parameters.copy()
    rotors = []
    for i in spinning:
        inertia = model.armature[i] / model.gear_ratio[i] ** 2
        axis = model.spin_axis[i]
        rotor = inertial_parameters(Inertial(0.0, np.zeros(3), inertia * np.outer(axis, axis)))
        rotors.append(rotor)
        if model.carrier[i] < 0:
            base -= rotor
        else:
            bodies[model.carrier[i]] -= rotor
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
        inertial_parameters=np.concatenate([bodies, np.array(rotors).reshape(-1, 10)]),
        base_inertial_parameters=base,
        gravity=model.gravity,
        floating=model.floating)


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product a x b."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                     a[0] * b[1] - a[1] * b[0]])


@dataclass(frozen=True, eq=False)
class Placement:
    """The pose of a body in the frame of its parent.

    Attributes
    ----------
    rotation : (3, 3)
        Rotation from body axes to parent axes.
    translation : (3,)
        Body origin in the parent frame, m.
    fixed, turn : (3, 3)
        ``rotation = fixed @ turn``, where only the turn about the joint axis depends on q.
    """

    rotation: Matrix
    translation: Vector
    fixed: Array
    turn: Matrix


def base_pose(tree: Tree, q: Any) -> tuple[Matrix, Vector]:
    """Return rotation (3, 3) and origin (3,) of the root link in the root frame.

    A floating base has the position ``q[:3]`` and the quaternion ``q[3:7]`` (x, y, z, w), whose
    length has no effect; see `quaternion_guards`.
    """
    if not tree.floating:
        return np.eye(3), np.zeros(3)
    x, y, z, w = q[3:7]
    _, scale = quaternion_guards(q)
    xx, yy, zz = x * x * scale, y * y * scale, z * z * scale
    xy, xz, yz = x * y * scale, x * z * scale, y * z * scale
    wx, wy, wz = w * x * scale, w * y * scale, w * z * scale
    return np.array([[1.0 - (yy + zz), xy - wz, xz + wy],
                     [xy + wz, 1.0 - (xx + zz), yz - wx],
                     [xz - wy, yz + wx, 1.0 - (xx + yy)]]), np.asarray(q[:3])


def quaternion_guards(q: Any) -> list[Any]:
    """Return the squared length of a floating base's quaternion, and 2 divided by it.

    If one of them is not finite, the length is 0, or so small or large that its square is not a
    number, and the quaternion has no direction.
    """
    x, y, z, w = q[3:7]
    square = x * x + y * y + z * z + w * w
    return [square, 2.0 / square]


def joint_transforms(tree: Tree, q: Any) -> list[Placement]:
    """Return the placement of every body for positions q, shape (n,); (n + 1,) if floating."""
    placements = []
    q = q[1:] if tree.floating else q  # the pose of the base has seven numbers, its twist six
    for i, fixed in enumerate(tree.rotation):
        shift, turn = tree.translation[i], np.eye(3)
        if not tree.is_rotor(i):
            angle = sparse_dot(tree.row[i], q) + tree.offset[i]
            if tree.prismatic[i]:
                shift = shift + (fixed @ tree.axis[i]) * angle
            else:
                turn = axis_rotation(tree.axis[i], angle)
        placements.append(Placement(fixed @ turn, shift, fixed, turn))
    return placements


def body_poses(tree: Tree, q: Any) -> list[tuple[Any, Any]]:
    """Rotation (3, 3) and origin (3,) of every body in the root frame; the root link is last."""
    base = base_pose(tree, q)
    return [*_chained(tree, q, base), base]


def root_link_poses(tree: Tree, q: Any) -> list[tuple[Any, Any]]:
    """Rotation (3, 3) and origin (3,) of every body in the frame of the root link."""
    return _chained(tree, q, (np.eye(3), np.zeros(3)))


def _chained(tree: Tree, q: Any, base: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    poses: list[tuple[Any, Any]] = []
    for i, placement in enumerate(joint_transforms(tree, q)):
        rotation, origin = poses[tree.parent[i]] if tree.parent[i] >= 0 else base
        poses.append((rotation @ placement.rotation,
                      origin + rotation @ placement.translation))
    return poses


def joint_twists(tree: Tree, poses: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Twists for unit velocities of the joints, about the origin of the frame of the poses.

    A twist, shape (6,), is the velocity of a body's point in that origin, then the angular
    velocity.
    """
    twists: list[Any] = []
    for axis, prismatic, (rotation, origin) in zip(tree.axis, tree.prismatic, poses, strict=True):
        along = rotation @ axis
        twists.append(np.array([*along, 0.0, 0.0, 0.0] if prismatic
                               else [*cross(origin, along), *along], dtype=object))
    return twists


def sparse_dot(row: Array, values: Any) -> Any:
    """Return ``row @ values``, using only the nonzero elements of a constant row."""
    total: Any = 0.0
    for k in np.flatnonzero(row):
        total = total + row[k] * values[k]
    return total


def gather(tree: Tree, per_body: Any) -> Any:
    """Return the generalised forces of the coordinates, ``row' @ per_body``."""
    totals: list[Any] = [0.0] * tree.n
    for row, value in zip(tree.row, per_body, strict=True):
        for k in np.flatnonzero(row):
            totals[k] = totals[k] + row[k] * value
    return np.array(totals)


def regroup(tree: Tree) -> Tree:
    """Return a tree with fewer nonzero parameters and the same generalised forces.

    Mass on a joint's axis moves with the parent at any joint angle. The mass of a body, its first
    moment along the axis and one transverse moment of inertia can therefore be assigned to the
    parent, as a line of mass on the axis (the regrouping of base parameters). What is assigned to
    a root at rest has no effect. The inertia tensor of a body on a prismatic joint is assigned to
    the parent too, since both turn alike. The reactions at the joints are no longer those of the
    robot.
    """
    inertial, base = tree.inertial_parameters.copy(), tree.base_inertial_parameters.copy()
    for i in reversed(range(len(inertial))):
        axis, moved = tree.axis[i], np.zeros(10)
        if tree.prismatic[i]:
            moved[:6] = inertial[i, :6]
        else:
            across = np.eye(3) - np.outer(axis, axis)
            aligned = np.isin(np.abs(axis), (0.0, 1.0)).all()
            transverse = int(np.argmin(np.abs(axis)))
            kappa = inertia_tensor(inertial[i])[transverse, transverse] if aligned else 0.0
            moved[:6] = inertia_components(kappa * across)
            moved[6] = inertial[i, 6]
            moved[7:] = axis * (axis @ inertial[i, 7:])
        inertial[i] -= moved
        carrier = inertial[tree.parent[i]] if tree.parent[i] >= 0 else base
        carrier += transform_inertial(moved, tree.rotation[i], tree.translation[i])
    return replace(tree, inertial_parameters=inertial, base_inertial_parameters=base)
