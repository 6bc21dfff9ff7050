"""Recursive Newton-Euler (Luh-Walker-Paul; Velagić 4.89-4.95, Kolyubin 3.3-3.8).

The forward pass computes angular velocity, angular acceleration and acceleration of the origin of
each frame; the backward pass computes force and moment that the parent exerts. Gravity is
represented by an acceleration -g of the base.

The velocity terms are a quadratic form in qd. They are written as a symmetric bilinear form of two
velocities u and v. With u = v = qd this is the usual Newton-Euler recursion; with a unit vector v
it is a column of the Christoffel matrix (``coriolis_matrix``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.dynamics.tree import (
    Matrix,
    Placement,
    Tree,
    Vector,
    base_pose,
    cross,
    gather,
    joint_transforms,
    sparse_dot,
)


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of one body in its own frame.

    Attributes
    ----------
    u, v : (3,)
        Angular velocities for the two velocities of the bilinear form, rad/s.
    products : (3, 3)
        ``(u v' + v u') / 2``.
    angular : (3,)
        Angular acceleration, rad/s^2.
    field : (3, 3)
        ``S(angular) + (S(u) S(v) + S(v) S(u)) / 2``; multiplied by r, it is the acceleration of
        the point r relative to the origin.
    linear : (3,)
        Acceleration of the origin minus gravity, m/s^2.
    """

    u: Vector
    v: Vector
    products: Matrix
    angular: Vector
    field: Matrix
    linear: Vector


def _motion(u: Vector, v: Vector, angular: Vector, linear: Vector) -> Motion:
    p = (np.outer(u, v) + np.outer(v, u)) * 0.5
    x, y, z = angular
    field = np.array([[-(p[1, 1] + p[2, 2]), p[0, 1] - z, p[0, 2] + y],
                      [p[0, 1] + z, -(p[0, 0] + p[2, 2]), p[1, 2] - x],
                      [p[0, 2] - y, p[1, 2] + x, -(p[0, 0] + p[1, 1])]])
    return Motion(u, v, p, angular, field, linear)


def base_motion(tree: Tree, q: Any, u: Any, v: Any, qdd: Any, gravity: Any) -> Motion:
    """Motion of the root, with the acceleration -g that represents gravity.

    The first six velocities and accelerations of a floating base are the twist in its own axes,
    ``[linear, angular]``, and its derivative; its origin accelerates by ``dv/dt + w x v``.
    """
    zero = np.zeros(3)
    if not tree.floating:
        return _motion(zero, zero, zero, -np.asarray(gravity))
    rotation, _ = base_pose(tree, q)
    turning = (cross(u[3:6], v[:3]) + cross(v[3:6], u[:3])) * 0.5
    return _motion(np.asarray(u[3:6]), np.asarray(v[3:6]), np.asarray(qdd[3:6]),
                   np.asarray(qdd[:3]) + turning - rotation.T @ np.asarray(gravity))


def given_motion(values: Any) -> Motion:
    """Motion of a root that is moved, from `BaseMotion.values`, shape (9,).

    These are omega_0, its derivative, and the acceleration of the origin minus gravity.
    """
    turning = np.asarray(values[:3])
    return _motion(turning, turning, np.asarray(values[3:6]), np.asarray(values[6:9]))


def forward_pass(tree: Tree, placements: Sequence[Placement], u: Any, v: Any, qdd: Any,
                 base: Motion) -> Iterator[Motion]:
    """Forward pass: the motion of every body (Velagić 4.89-4.92, Kolyubin 3.3-3.5).

    Bodies are yielded one by one, so that a caller can compute the wrench of a body before the
    next step. A wrench does not depend on the next step, so the processor can execute both at
    once; the steps themselves depend on each other.
    """
    motions: list[Motion] = []
    for i, (placement, axis) in enumerate(zip(placements, tree.axis, strict=True)):
        parent = motions[tree.parent[i]] if tree.parent[i] >= 0 else base
        to_body = placement.rotation.T
        ju, jv, jdd = (sparse_dot(tree.row[i], rate) for rate in (u, v, qdd))
        angular_u, angular_v = to_body @ parent.u, to_body @ parent.v
        angular = to_body @ parent.angular
        linear = to_body @ (parent.linear + parent.field @ placement.translation)
        swing = (cross(angular_u, axis * jv) + cross(angular_v, axis * ju)) * 0.5
        if tree.prismatic[i]:
            linear = linear + 2.0 * swing + axis * jdd
        else:
            angular = angular + axis * jdd + swing
            angular_u, angular_v = angular_u + axis * ju, angular_v + axis * jv
        motions.append(_motion(angular_u, angular_v, angular, linear))
        yield motions[-1]


def body_wrench(inertial: Any, motion: Motion) -> tuple[Vector, Vector]:
    """Force and moment about the frame's origin that a rigid body needs for its motion.

    ``F = m a + U h``, ``N = I w' + w x (I w) + h x a``, linear in the 10 parameters
    (Velagić 4.93-4.94; Kolyubin 3.1 corrected).
    """
    xx, xy, xz, yy, yz, zz, mass = inertial[:7]
    moment = np.asarray(inertial[7:10])
    w, p, u = motion.angular, motion.products, motion.field
    force = mass * motion.linear + u @ moment
    torque = np.array([
        xx * w[0] - xy * u[2, 0] + xz * u[1, 0] + (zz - yy) * p[1, 2]
        + yz * (u[1, 1] - u[2, 2]),
        yy * w[1] + xy * u[2, 1] - yz * u[0, 1] + (xx - zz) * p[0, 2]
        + xz * (u[2, 2] - u[0, 0]),
        zz * w[2] - xz * u[1, 2] + yz * u[0, 2] + (yy - xx) * p[0, 1]
        + xy * (u[0, 0] - u[1, 1])])
    return force, torque + cross(moment, motion.linear)


def backward_pass(tree: Tree, placements: Sequence[Placement], motions: Iterable[Motion],
                  base_motion: Motion,
                  ) -> tuple[list[tuple[Vector, Vector]], tuple[Vector, Vector]]:
    """Backward pass: force and moment through each joint on its body, and those on the base.

    Velagić 4.93-4.95, Kolyubin 3.6-3.8.
    """
    wrenches = [body_wrench(parameters, motion)
                for parameters, motion in zip(tree.inertial_parameters, motions, strict=True)]
    base = body_wrench(tree.base_inertial_parameters, base_motion)
    for i in reversed(range(len(wrenches))):
        force, torque = wrenches[i]
        force = placements[i].rotation @ force
        torque = placements[i].rotation @ torque + cross(placements[i].translation, force)
        parent = tree.parent[i]
        if parent < 0:
            base = base[0] + force, base[1] + torque
        else:
            wrenches[parent] = wrenches[parent][0] + force, wrenches[parent][1] + torque
    return wrenches, base


def newton_euler(tree: Tree, q: Any, u: Any, v: Any, qdd: Any, gravity: Any,
                 base: Motion | None = None) -> Any:
    """Generalised forces, shape (n,), of the bodies and rotors (no friction, no armature).

    If the motion of the root is given, it contains gravity.
    """
    placements = joint_transforms(tree, q)
    if base is None:
        base = base_motion(tree, q, u, v, qdd, gravity)
    motions = forward_pass(tree, placements, u, v, qdd, base)
    wrenches, on_base = backward_pass(tree, placements, motions, base)
    forces = gather(tree, [axis @ wrench[0 if prismatic else 1]
                           for axis, prismatic, wrench in zip(
                               tree.axis, tree.prismatic, wrenches, strict=True)])
    return np.concatenate([*on_base, forces[6:]]) if tree.floating else forces
