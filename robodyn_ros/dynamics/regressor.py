"""The regressor Y of ``tau = Y(q, qd, qdd) chi`` (Kolyubin 5.4-5.9).

By virtual power, the torque that a parameter of body i causes at joint a is the twist of frame i
for a unit velocity of joint a, times the wrench of body i for a unit value of the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from robodyn_ros.dynamics.joint_terms import FrictionWidths
from robodyn_ros.dynamics.newton_euler import Motion, base_motion, body_wrench, forward_pass
from robodyn_ros.dynamics.tree import (
    Placement,
    Tree,
    cross,
    joint_transforms,
    joint_twists,
    root_link_poses,
    sparse_dot,
)
from robodyn_ros.kernels import smooth_sign
from robodyn_ros.model import LINK_FRICTION, MOTOR_FRICTION, PARAMETER_NAMES, RIGID, ROTOR, Model
from robodyn_ros.spatial import inertia_components

STANDARD = len(PARAMETER_NAMES)  # 17 for each body's joint


def standard_regressor(model: Model, tree: Tree, q: Any, qd: Any, qdd: Any,
                       widths: FrictionWidths, columns: Sequence[int],
                       base: Motion | None = None) -> Any:
    """Return columns of the regressor of `Model.standard_parameters`, shape (n, len(columns)).

    If the motion of the root is given, it contains gravity.
    """
    placements = joint_transforms(tree, q)
    if base is None:
        base = base_motion(tree, q, qd, qd, qdd, tree.gravity)
    motions = [*forward_pass(tree, placements, qd, qd, qdd, base), base]

    @cache
    def axes(body: int) -> list[tuple[Any, Any, Any]]:
        return _carried_axes(tree, placements, body)

    result = np.zeros((model.n, len(columns)), dtype=object)
    for position, column in enumerate(columns):
        body, parameter = divmod(column, STANDARD)
        body = -1 if body == tree.bodies else body  # the base's parameters come last
        if parameter in RIGID:
            unit = np.eye(10)[parameter]
            result[:, position] = _project(tree, axes(body), body_wrench(unit, motions[body]))
        elif parameter == ROTOR:
            result[:, position] = _rotor_column(model, tree, placements, motions, axes, body, qdd)
        else:
            of_link = parameter in LINK_FRICTION
            row = model.row[body] if of_link else model.motor_row[body]
            speed = sparse_dot(row, qd)
            place = (LINK_FRICTION if of_link else MOTOR_FRICTION).index(parameter)
            width = (widths.link if of_link else widths.motor)[body]
            value = (speed, smooth_sign(speed, float(width)), 1.0)[place]
            for k in np.flatnonzero(row):
                result[k, position] = row[k] * value
    return result


def regressor_factors(tree: Tree, q: Any, qd: Any, qdd: Any, base: Motion | None = None) -> Any:
    """Return twists and wrenches whose products are the inertial columns of the regressor.

    They are given in the frame of the root link. The first b columns are the twists of the bodies
    for unit velocities of their joints. Then come ten columns for each of the b bodies and for
    the root link: the wrenches for unit values of their inertial parameters.

    Returns
    -------
    ndarray, shape (6, 11 b + 10)
    """
    placements, poses = joint_transforms(tree, q), root_link_poses(tree, q)
    if base is None:
        base = base_motion(tree, q, qd, qd, qdd, tree.gravity)
    motions = [*forward_pass(tree, placements, qd, qd, qdd, base)][:tree.bodies]
    columns = joint_twists(tree, poses)[:tree.bodies]
    for motion, (rotation, origin) in zip([*motions, base], [
            *poses[:tree.bodies], (np.eye(3), np.zeros(3))], strict=True):
        for unit in np.eye(10):
            force, torque = (rotation @ part for part in body_wrench(unit, motion))
            columns.append(np.concatenate([force, torque + cross(origin, force)]))
    return np.array(columns, dtype=object).T


def _carried_axes(tree: Tree, placements: Sequence[Placement], body: int,
                  ) -> list[tuple[Any, Any, Any]]:
    """Return the body's twist for a unit velocity of each joint that carries it, with its row.

    A floating base has six unit velocities of its own, which carry every body.
    """
    path = tree.ancestors(body)
    zero = np.zeros(3)
    units = [(joint, tree.row[joint], *((tree.axis[joint], zero) if tree.prismatic[joint]
                                        else (zero, tree.axis[joint]))) for joint in path]
    if tree.floating:
        units += [(-1, np.eye(tree.n)[k], np.eye(6)[k, :3], np.eye(6)[k, 3:]) for k in range(6)]
    carried: list[tuple[Any, Any, Any]] = []
    for joint, row, linear, angular in units:
        for step in reversed(path[:path.index(joint)] if joint >= 0 else path):
            linear = linear + cross(angular, placements[step].translation)
            linear = placements[step].rotation.T @ linear
            angular = placements[step].rotation.T @ angular
        carried.append((row, linear, angular))
    return carried


def _project(tree: Tree, axes: list[tuple[Any, Any, Any]], wrench: tuple[Any, Any]) -> Any:
    force, torque = wrench
    column: list[Any] = [0.0] * tree.n
    for row, linear, angular in axes:
        value = linear @ force + angular @ torque
        for k in np.flatnonzero(row):
            column[k] = column[k] + row[k] * value
    return np.array(column, dtype=object)


def _rotor_column(model: Model, tree: Tree, placements: Sequence[Placement],
                  motions: Sequence[Motion], axes: Callable[[int], Any], body: int,
                  qdd: Any) -> Any:
    """Return the column of Ia: reflected inertia, or a spinning rotor minus that rotor at rest."""
    spinning = [i for i in range(len(model.parent)) if not np.isnan(model.spin_axis[i, 0])]
    if body not in spinning:
        row = model.motor_row[body]
        return np.array([row[k] * sparse_dot(row, qdd) for k in range(model.n)], dtype=object)
    rotor = tree.bodies + spinning.index(body)
    carrier = model.carrier[body]
    spread = np.outer(tree.axis[rotor], tree.axis[rotor]) / model.gear_ratio[body] ** 2
    unit = np.array([*inertia_components(spread), 0.0, 0.0, 0.0, 0.0])
    column = _project(tree, axes(rotor), body_wrench(unit, motions[rotor]))
    if carrier >= 0 or tree.floating:
        column = column - _project(tree, axes(carrier), body_wrench(unit, motions[carrier]))
    return column
