"""The articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms, chapter 7).

It solves ``(M + E) x = f`` with a diagonal E, without computing M. The number of operations is
proportional to the number of joints. Where M is nearly singular, the solution is far more accurate
than that from the factors of M, whose entries are rounded before they cancel one another.

A body and all that it carries on joints without torque have the articulated inertia
``[[A, B], [B', D]]``: the acceleration a of the body's origin and the angular acceleration w need
the force ``F = A a + B w`` and the moment ``N = B' a + D w`` about this origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.dynamics.forward_dynamics import SingularMassMatrixError, is_zero, solve_symmetric
from robodyn_ros.dynamics.tree import Placement, Tree, Vector, cross
from robodyn_ros.spatial import inertia_tensor, skew

Inertia = tuple[Any, Any, Any]  # A, B, D


def is_articulated(tree: Tree, armature: Any) -> bool:
    """Return whether the algorithm applies to a robot.

    Each coordinate must move the joint of one body, and no rotor may spin as a body of its own.

    Parameters
    ----------
    tree : Tree
        The bodies.
    armature : array-like, shape (n, n)
        The armature of the coordinates.
    """
    one_each = len(tree.row) == tree.n - (6 if tree.floating else 0) and bool(
        np.isin(tree.row, (0.0, 1.0)).all() and (tree.row.sum(axis=1) == 1.0).all()
        and (tree.row.sum(axis=0) <= 1.0).all())
    return one_each and len(tree.parent) == tree.bodies and all(
        is_zero(armature[i, k]) for i in range(tree.n) for k in range(tree.n) if i != k)


def solve_articulated(tree: Tree, placements: Sequence[Placement], diagonal: Any,
                      right: Any) -> Any:
    """Solve ``(M + diag(diagonal)) x = right`` for x, with the M of the bodies alone.

    Parameters
    ----------
    tree : Tree
        The bodies.
    placements : sequence of Placement
        Their poses in their parents.
    diagonal, right : ndarray, shape (n,)
        The armature of each coordinate; the right side, for example torques.

    Raises
    ------
    SingularMassMatrixError
        A joint has no inertia in any pose.
    """
    place = [int(k) for k in tree.row.argmax(axis=1)]  # the coordinate of each body
    inertias: list[Inertia] = [_rigid(parameters) for parameters in [
        *tree.inertial_parameters, tree.base_inertial_parameters]]  # the root is the last one
    zero = np.zeros(3)
    wrenches: list[tuple[Any, Any]] = [(zero, zero)] * len(inertias)
    joints: list[tuple[Any, ...]] = [()] * tree.bodies
    for i in reversed(range(tree.bodies)):
        axis, prismatic, (a, b, d) = tree.axis[i], tree.prismatic[i], inertias[i]
        force, moment = (a @ axis, axis @ b) if prismatic else (b @ axis, d @ axis)
        own = axis @ (force if prismatic else moment)
        pivot = own + diagonal[place[i]]
        if is_zero(pivot):
            raise SingularMassMatrixError(place[i])
        inverse = 1.0 / pivot
        rest = right[place[i]] - axis @ wrenches[i][0 if prismatic else 1]
        joints[i] = force, moment, inverse, rest
        if tree.parent[i] < 0 and not tree.floating:
            continue  # the root is at rest
        freed = _freed(inertias[i], force, moment, inverse)
        if np.isin(np.abs(axis), (0.0, 1.0)).all():
            _set_along_axis(freed, tree, i, force, moment, diagonal[place[i]] * inverse)
        carried, wrench = _to_parent(placements[i], freed, [
            old + part * (rest * inverse) for old, part in zip(
                wrenches[i], (force, moment), strict=True)])
        parent = tree.parent[i]
        inertias[parent] = tuple(x + y for x, y in zip(  # type: ignore[assignment]
            inertias[parent], carried, strict=True))
        wrenches[parent] = tuple(x + y for x, y in zip(  # type: ignore[assignment]
            wrenches[parent], wrench, strict=True))
    base = _root(inertias[-1], wrenches[-1], diagonal, right) if tree.floating else None
    values = dict(zip(place, _accelerations(tree, placements, joints, base), strict=True))
    values |= dict(enumerate([] if base is None else base))
    return np.array([values[k] for k in range(tree.n)])


def _rigid(inertial: Any) -> Inertia:
    return inertial[6] * np.eye(3), -skew(inertial[7:10]), inertia_tensor(inertial)


def _freed(inertia: Inertia, force: Vector, moment: Vector, inverse: Any) -> Inertia:
    """Return the inertia of a body that is free to move along its joint's axis."""
    a, b, d = inertia
    scaled = force * inverse
    return (_mirrored(a - np.outer(scaled, force)), b - np.outer(scaled, moment),
            _mirrored(d - np.outer(moment * inverse, moment)))


def _mirrored(matrix: Any) -> Any:
    """Return a symmetric matrix from its upper half, so that the other half is not computed."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = matrix
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _set_along_axis(freed: Inertia, tree: Tree, i: int, force: Vector, moment: Vector,
                    fraction: Any) -> None:
    """Write the entries along a joint's axis without cancellation; without armature, all are 0."""
    a, b, d = freed
    k = int(np.argmax(np.abs(tree.axis[i])))
    force, moment = (part * (tree.axis[i, k] * fraction) for part in (force, moment))
    if tree.prismatic[i]:
        a[:, k] = a[k, :] = force
        b[k, :] = moment
    else:
        b[:, k] = force
        d[:, k] = d[k, :] = moment


def _to_parent(placement: Placement, inertia: Inertia, wrench: Sequence[Vector],
               ) -> tuple[Inertia, tuple[Vector, Vector]]:
    """Return an inertia and a wrench in the parent's frame."""
    t = placement.translation
    a, b, d = inertia
    for rotation in (placement.turn, placement.fixed):
        a, d = (_mirrored(rotation @ block @ rotation.T) for block in (a, d))
        b = rotation @ b @ rotation.T
    force, moment = (placement.rotation @ part for part in wrench)
    shift = skew(t)
    moved = b - a @ shift
    return ((a, moved, _mirrored(d - b.T @ shift + shift @ moved)),
            (force, moment + cross(t, force)))


def _root(inertia: Inertia, wrench: tuple[Vector, Vector], diagonal: Any, right: Any) -> Any:
    """Return the acceleration of a floating base, shape (6,)."""
    a, b, d = inertia
    return solve_symmetric(np.block([[a, b], [b.T, d]]) + np.diag(diagonal[:6]),
                           np.asarray(right[:6]) - np.concatenate(wrench), [5, 4, 3, 2, 1, 0])


def _accelerations(tree: Tree, placements: Sequence[Placement], joints: Sequence[tuple[Any, ...]],
                   base: Any) -> list[Any]:
    result: list[Any] = []
    moves: list[tuple[Any, Any] | None] = []
    root = None if base is None else (base[:3], base[3:])
    for i, (force, moment, inverse, rest) in enumerate(joints):
        parent = moves[tree.parent[i]] if tree.parent[i] >= 0 else root
        if parent is None:
            linear, angular = np.zeros(3), np.zeros(3)
            value = rest * inverse
        else:
            back = placements[i].rotation.T
            linear = back @ (parent[0] + cross(parent[1], placements[i].translation))
            angular = back @ parent[1]
            value = (rest - force @ linear - moment @ angular) * inverse
        result.append(value)
        along = tree.axis[i] * value
        moves.append((linear + along, angular) if tree.prismatic[i] else (linear, angular + along))
    return result
