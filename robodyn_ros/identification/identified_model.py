"""The identified robot as a `Model`, from a set of parameters of the linear model."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from robodyn_ros.identification.friction import is_friction
from robodyn_ros.identification.linear_model import STANDARD, LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

SPEED_STEP = 7  # every seventh sample suffices to fit a curve of two or three parameters


def identified_model(linear: LinearModel, theta: Array, observations: Observations) -> Model:
    """Return the robot with identified parameters.

    A `Model` has viscous friction, Coulomb friction and offsets. Further friction terms are
    approximated by these over the speeds of the log.

    Parameters
    ----------
    linear : LinearModel
        The linear model with p parameters.
    theta : ndarray, shape (p,)
        Physically consistent parameters, SI units.
    observations : Observations
        The data of the fit.
    """
    chi = linear.model.standard_parameters.copy()
    if linear.kind == 'lumped':  # link-side friction now includes that of both sides
        motor = chi.reshape(-1, STANDARD)[:, 14:]
        motor[[b for b in linear.bodies if not linear.coupled(b)]] = 0.0
    for k, column in enumerate(linear.columns):
        if column.standard >= 0:
            chi[column.standard] = theta[k]
    speeds = np.concatenate([linear.whole.velocities(s.q[::SPEED_STEP], s.qd[::SPEED_STEP])
                             for s in observations.segments])
    for place, value in _approximated_friction(linear, theta, speeds).items():
        chi[place] = value
    return linear.model.with_standard_parameters(chi)


def _approximated_friction(linear: LinearModel, theta: Array, speeds: Array) -> dict[int, float]:
    """Return standard friction parameters that approximate the richer model, by their index."""
    shape = linear.friction
    found: dict[int, float] = {}
    for body, side, row in linear.friction_sources:
        speed = speeds @ row
        direction = shape.direction(speed, row)
        columns = [(k, c) for k, c in enumerate(linear.columns)
                   if c.body == body and is_friction(c.term) and c.term.endswith(side)]
        standard = [(k, c) for k, c in columns if c.standard >= 0]
        if len(standard) == len(columns):
            continue  # the friction model has no further terms
        curve = sum((theta[k] * shape.values(c.term, speed, row, direction)
                     for k, c in columns), np.zeros(len(speed)))
        w = np.column_stack([shape.values(c.term, speed, row, direction) for _, c in standard])
        lowest = [-np.inf if c.term.startswith('off') else 0.0 for _, c in standard]
        values = lsq_linear(w, curve, (lowest, np.inf)).x
        found |= {c.standard: float(v) for (_, c), v in zip(standard, values, strict=True)}
    return found
