"""Friction of joints at other temperatures than those at which it was identified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robodyn_ros.numerics import real_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robodyn_ros.model.model import Model


def friction_at(model: Model, temperature: ArrayLike) -> dict[str, Any]:
    """Return the fields of a model that change with the temperatures of its joints.

    Viscous and Coulomb friction change linearly; neither becomes negative.

    Parameters
    ----------
    model : Model
        The robot.
    temperature : array-like, shape (n,)
        Temperature of each joint, degrees Celsius; NaN leaves the friction of a joint unchanged.
    """
    wanted = real_array('temperature', temperature, (len(model.joint_names),))
    friction, curve = model.link_friction.copy(), model.friction_curve.copy()
    known = model.friction_temperature.copy()
    for body, name in enumerate(model.body_joints):
        if name not in model.joint_names or np.isnan(known[body, 0]):
            continue
        there = wanted[model.joint_names.index(name)]
        if np.isfinite(there):
            change = known[body, 1:] * (there - known[body, 0])
            friction[body, :2] = np.maximum(friction[body, :2] + change, 0.0)
            curve[body, :2] = np.maximum(curve[body, :2] + change, 0.0)
            known[body, 0] = there
    return {'link_friction': friction, 'friction_curve': curve, 'friction_temperature': known}
