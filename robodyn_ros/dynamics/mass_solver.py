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
from robodyn_ros.dynamics.tree import Tree, joint_transforms
from robodyn_ros.model import Model

FEW = 10  # velocities; up to here, elimination needs fewer operations


def uses_articulated(model: Model, tree: Tree) -> bool:
    """Whether `mass_solver` uses the articulated-body algorithm."""
    return model.n > FEW and is_articulated(tree, armature_matrix(model))


def mass_solver(model: Model, tree: Tree, light: Tree, q: Any, added: Any = 0.0,
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
    added : ndarray, shape (n,), or float
        Added to the diagonal of M.

    Raises
    ------
    SingularMassMatrixError
        Raised by the returned function if a joint, which is named, moves no inertia.
    """
    armature = armature_matrix(model)
    solve: Callable[[Any], Any]
    if uses_articulated(model, tree):
        diagonal = np.diagonal(armature) + added
        solve = partial(solve_articulated, tree, joint_transforms(tree, q), diagonal)
    else:
        matrix = composite_mass_matrix(light, q) + armature + np.diag(np.zeros(model.n) + added)
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

