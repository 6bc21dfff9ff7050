"""Joint torques of armature and friction (theory sections 3, 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.dynamics.tree import sparse_dot
from robodyn_ros.kernels import smooth_sign
from robodyn_ros.model import Model


def friction_torque(model: Model, qd: Any, width: float) -> Any:
    """Link- and motor-side friction at the coordinates, shape (n,) (Kolyubin 5.7-5.8).

    ``Fv s + Fc sign(s) + off`` for the velocity s of each joint, and of each motor at its joint.
    """
    total: list[Any] = [0.0] * model.n
    for rows, parameters in ((model.row, model.link_friction),
                             (model.motor_row, model.motor_friction)):
        for row, (viscous, coulomb, offset) in zip(rows, parameters, strict=True):
            if not (viscous or coulomb or offset):
                continue
            speed = sparse_dot(row, qd)
            torque = viscous * speed + offset
            if coulomb:
                torque = torque + coulomb * smooth_sign(speed, width)
            for k in np.flatnonzero(row):
                total[k] = total[k] + row[k] * torque
    return np.array(total)


def armature_torque(model: Model, qdd: Any) -> Any:
    """Reflected rotor inertia of the motors without a spin axis, shape (n,) (Kolyubin 5.6)."""
    total: list[Any] = [0.0] * model.n
    for i in np.flatnonzero(np.isnan(model.spin_axis[:, 0])):
        if model.armature[i]:
            torque = model.armature[i] * sparse_dot(model.motor_row[i], qdd)
            for k in np.flatnonzero(model.motor_row[i]):
                total[k] = total[k] + model.motor_row[i, k] * torque
    return np.array(total)


def armature_matrix(model: Model) -> Any:
    """The constant matrix of `armature_torque`, shape (n, n)."""
    plain = np.isnan(model.spin_axis[:, 0])
    rows = model.motor_row[plain]
    return rows.T @ (model.armature[plain, None] * rows)
