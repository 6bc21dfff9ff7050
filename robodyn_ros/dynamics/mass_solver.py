"""Solves ``M x = f``: the articulated-body algorithm, or elimination of the mass matrix.

The articulated-body algorithm needs fewer operations from some ten velocities on. It requires that
each coordinate moves one joint; mimic joints and rotors that spin as bodies of their own couple
several.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from robodyn_ros.dynamics.articulated_body import is_articulated, solve_articulated
from robodyn_ros.dynamics.composite_rigid_body import composite_mass_matrix
from robodyn_ros.dynamics.forward_dynamics import SingularMassMatrixError, solve_symmetric
from robodyn_ros.dynamics.joint_terms import armature_matrix
from robodyn_ros.dynamics.tree import Tree, build_tree, joint_transforms
from robodyn_ros.model import Model
from robodyn_ros.spatial import inertia_tensor

FEW = 10  # velocities; up to here, elimination needs fewer operations
SINGULAR = 1e-13  # eigenvalues of M below this count as zero, if its diagonal consists of ones
PARTICIPATES = 1e-6  # least part of a velocity in a motion of length 1, likewise scaled


def uses_articulated(model: Model, tree: Tree) -> bool:
    """Whether `mass_solver` uses the articulated-body algorithm."""
    return model.n > FEW and is_articulated(tree, armature_matrix(model))


def require_regular(model: Model) -> None:
    """Raise an error if M is singular in every pose, though each joint moves some inertia.

    An example is a massless base that carries a single joint: both can turn against each other
    while the rest of the robot stands still. Only links without inertia of their own allow this.

    Raises
    ------
    SingularMassMatrixError
        Names what moves.
    """
    tree = build_tree(model)
    if all(map(_is_body, [*tree.inertial_parameters[:tree.bodies],
                          *[tree.base_inertial_parameters] * model.floating])):
        return
    q = np.random.default_rng(0).uniform(-1.0, 1.0, model.nq)
    if model.floating:
        q[:7] = 0, 0, 0, 0, 0, 0, 1
    mass = np.asarray(composite_mass_matrix(tree, q) + armature_matrix(model), np.float64)
    if not (np.diagonal(mass) > 0).all():
        return  # the solver names the joint
    size = np.sqrt(np.diagonal(mass))
    values, vectors = np.linalg.eigh(mass / size / size[:, None])
    moving = np.flatnonzero((np.abs(vectors[:, values < SINGULAR]) > PARTICIPATES).any(axis=1))
    if len(moving):
        joints = [repr(model.velocity_names[k]) for k in moving if k >= model.first_joint]
        base = [f'the base {model.description.root!r}'] * bool(moving[0] < model.first_joint)
        raise SingularMassMatrixError(int(moving[-1]), together=' and '.join(
            base + [f'the joint{"s" * (len(joints) > 1)} {", ".join(joints)}'] * bool(joints)))


def _is_body(parameters: Any) -> bool:
    """Return whether inertial parameters are those of a body with mass, extended in space."""
    mass, moment = parameters[6], parameters[7:10]
    if not mass > 0:
        return False
    central = inertia_tensor(parameters) - (moment @ moment * np.eye(3)
                                            - np.outer(moment, moment)) / mass
    return bool(np.linalg.eigvalsh(central.astype(np.float64))[0] > 0)


def mass_solver(model: Model, tree: Tree, light: Tree, q: Any, added: Any = None,
                ) -> Callable[[Any], Any]:
    """Return the function of f, shape (n,), that solves ``(M + diag(added)) x = f``.

    Parameters
    ----------
    model : Model
        The robot, with the names and the armature of its joints.
    tree, light : Tree
        Its bodies, and those with regrouped parameters, whose use loses accuracy where M is nearly
        singular.
    q : ndarray, shape (n,)
        Positions; floats or symbols.
    added : ndarray, shape (n,), optional
        Added to the diagonal of M.

    Raises
    ------
    SingularMassMatrixError
        Some joints can move together without moving any inertia. Or, raised by the returned
        function: a joint, which is named, moves no inertia.
    """
    if added is None:
        added = np.zeros(model.n)
        if isinstance(model, Model):  # not with symbols for its parameters
            require_regular(model)
    armature = armature_matrix(model)
    solve: Callable[[Any], Any]
    if uses_articulated(model, tree):
        diagonal = np.diagonal(armature) + added
        solve = partial(solve_articulated, tree, joint_transforms(tree, q), diagonal)
    else:
        matrix = composite_mass_matrix(light, q) + armature + np.diag(added)
        last = [max(np.flatnonzero(tree.row[:tree.bodies, k]).tolist(), default=-1)
                for k in range(model.n)]  # -1: a floating base, which is eliminated last
        order = [int(k) for k in np.argsort(last)[::-1]]
        solve = partial(solve_symmetric, matrix, order=order)

    def solved(right: Any) -> Any:
        try:
            return solve(right)
        except SingularMassMatrixError as error:
            joint = model.velocity_names[error.coordinate]
            raise SingularMassMatrixError(error.coordinate, joint) from None

    return solved

