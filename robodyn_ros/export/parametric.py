"""Equations of motion with the standard parameters as symbols instead of numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.model import PARAMETER_NAMES, LinkFrame
from robodyn_ros.spatial import inertia_components

PARAMETERS = len(PARAMETER_NAMES)


@dataclass(frozen=True, eq=False)
class _SymbolicModel:
    """The part of a `Model` on which the equations depend, with symbols for its parameters."""

    n: int
    joint_names: tuple[str, ...]
    row: Any
    motor_row: Any
    spin_axis: Any
    link_friction: Any
    motor_friction: Any
    friction_curve: Any
    armature: Any
    friction_follows_load: bool
    link_frame: Callable[[str], LinkFrame]


def with_symbols(catalogue: Catalogue, parameters: Any) -> Catalogue:
    """Return a catalogue of the same robot with other standard parameters.

    Parameters
    ----------
    catalogue : Catalogue
        Catalogue of the robot.
    parameters : ndarray of Scalar or float, shape (17 b,)
        Standard parameters, see `Model.standard_parameters`.

    Notes
    -----
    The parameters are not regrouped, since this would cost as much in each call as it saves. The
    catalogue computes generalised forces, but not the wrenches at the joints and at the base.
    """
    model, tree = catalogue.model, catalogue.tree
    chi = np.array(parameters, dtype=object).reshape(-1, PARAMETERS)
    rigid = np.zeros((len(tree.parent), 10), dtype=object)
    rigid[:tree.bodies] = chi[:, :10]
    spinning = [i for i in range(tree.bodies) if not np.isnan(model.spin_axis[i, 0])]
    for rotor, i in enumerate(spinning, tree.bodies):
        axis = tree.axis[rotor]
        inertia = chi[i, 13] * inertia_components(
            np.outer(axis, axis) / model.gear_ratio[i] ** 2)
        rigid[rotor, :6] = inertia
        if tree.parent[rotor] >= 0:
            rigid[tree.parent[rotor], :6] = rigid[tree.parent[rotor], :6] - inertia
    result = copy.copy(catalogue)
    result.tree = result.light = replace(tree, inertial_parameters=rigid)
    result.model = _SymbolicModel(  # type: ignore[assignment]
        model.n, model.joint_names, model.row, model.motor_row, model.spin_axis,
        chi[:, 10:13], chi[:, 14:], np.full_like(model.friction_curve, np.nan), chi[:, 13],
        False, model.link_frame)
    return result
