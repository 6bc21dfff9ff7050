"""The identified robot as a `Model`, from a set of parameters of the linear model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import lsq_linear

from robodyn_ros.description.robot import CURVE
from robodyn_ros.identification.friction import Source
from robodyn_ros.identification.linear_model import STANDARD, LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.springs import SPRING_TERMS, is_spring
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

SPEED_STEP = 7  # every seventh sample suffices to fit a curve of two or three parameters
WARM = ('Fw', 'Fk')  # changes of viscous and Coulomb friction per kelvin
PLACES = {'Fv': 'viscous', 'Fc': 'coulomb', 'of': 'offset', 'Fa': 'asymmetric', 'Fs': 'stribeck',
          'Ft': 'load', 'Fz': 'presliding'}  # of the terms in a friction curve


def identified_model(linear: LinearModel, theta: Array, observations: Observations) -> Model:
    """Return the robot with identified parameters.

    Friction with terms beyond viscous and Coulomb friction and an offset becomes the joint's
    friction curve. Its viscous and Coulomb friction and offset then approximate the curve at the
    speeds and loads of the log, for formats that have no friction curves, such as URDF.

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
    spring = linear.model.spring.copy()
    for k, column in enumerate(linear.columns):
        if is_spring(column.term):
            spring[column.body, SPRING_TERMS.index(column.term)] = theta[k]
    ripple = linear.model.ripple.copy()
    if linear.kind != 'drives':  # which leaves the links as they are
        ripple[list(linear.bodies)] = 0.0
    for body, lines in linear.friction.ripple.items():
        ripple[body, :len(lines)] = lines
    curve = linear.model.friction_curve.copy()
    curve[list(linear.bodies)] = np.nan
    rich = [source for source in linear.gears.sources
            if any(linear.columns[k].standard < 0 and linear.columns[k].term[:2] not in WARM
                   for k in _of_source(linear, source))]
    if rich:
        speeds, loads = _states(linear, observations)
        for source in rich:
            for standard, value in _approximated(linear, theta, source, speeds, loads).items():
                chi[standard] = value
            terms = {linear.columns[k].term[:2] for k in _of_source(linear, source)} - set(WARM)
            if source.side == 'l' and terms <= set(PLACES):
                curve[source.body] = _curve(linear, theta, source)
    model = linear.model.with_standard_parameters(chi)
    width = linear.model.friction_width.copy()
    if linear.friction_columns():
        width[list(linear.bodies)] = [linear.friction.change(linear.model.row[body])
                                      for body in linear.bodies]
    return replace(model, friction_curve=curve, friction_width=width, spring=spring, ripple=ripple,
                   friction_temperature=_by_temperature(linear, theta))


def _by_temperature(linear: LinearModel, theta: Array) -> Array:
    """Return how the friction of each joint depends on its temperature, see `Model`."""
    found = linear.model.friction_temperature.copy()
    found[list(linear.bodies)] = np.nan
    for source in linear.gears.sources:
        slopes = {linear.columns[k].term[:2]: float(theta[k]) for k in _of_source(linear, source)
                  if linear.columns[k].term[:2] in WARM}
        if slopes:
            joint = int(np.flatnonzero(source.row)[0])
            found[source.body] = [linear.friction.reference[joint],
                                  *(slopes.get(term, 0.0) for term in WARM)]
    return found


def _of_source(linear: LinearModel, source: Source) -> list[int]:
    """Return the columns of one source of friction."""
    first = linear.friction_columns()[0]
    place = [s.key for s in linear.gears.sources].index(source.key)
    return [first + k for k, term in enumerate(linear.gears.terms) if term.source == place]


def _curve(linear: LinearModel, theta: Array, source: Source) -> list[float]:
    values = dict.fromkeys(CURVE, 0.0)
    values['stribeck_velocity'] = linear.friction.stribeck_velocity(source)
    values['presliding_distance'] = linear.friction.presliding.get(source.key, 1.0)
    for k in _of_source(linear, source):
        if linear.columns[k].term[:2] in PLACES:
            values[PLACES[linear.columns[k].term[:2]]] = float(theta[k])
    return [values[name] for name in CURVE]


def _states(linear: LinearModel, observations: Observations) -> tuple[Array, Array | None]:
    """Return velocities of all joints, and the torques that gears transmit, at some samples."""
    segments = observations.segments
    speeds = [linear.whole.velocities(s.q[::SPEED_STEP], s.qd[::SPEED_STEP]) for s in segments]
    if not linear.follows_load:
        return np.concatenate(speeds), None
    loads = []
    for s in segments:
        few = slice(None, None, SPEED_STEP)
        found = linear.loads(linear.regressor(s.q[few], s.qd[few], s.qdd[few]),
                             None if s.extra is None else s.extra[few])
        assert found is not None
        loads.append(found)
    return np.concatenate(speeds), np.concatenate(loads)


def _approximated(linear: LinearModel, theta: Array, source: Source, speeds: Array,
                  loads: Array | None) -> dict[int, float]:
    """Return plain friction parameters that approximate the richer ones, by their index."""
    shape = linear.friction
    speed = speeds @ source.row
    direction = shape.direction(speed, source.row)
    load = 0.0 if loads is None or np.count_nonzero(source.row) > 1 else source.load(loads)
    columns = {k: shape.values(linear.columns[k].term, source, speed, direction, load)
               for k in _of_source(linear, source)}
    torque = sum((theta[k] * values for k, values in columns.items()), np.zeros(len(speed)))
    plain = [k for k in columns if linear.columns[k].standard >= 0]
    lowest = [-np.inf if linear.columns[k].term.startswith('off') else 0.0 for k in plain]
    found = lsq_linear(np.column_stack([columns[k] for k in plain]), torque, (lowest, np.inf)).x
    return {linear.columns[k].standard: float(v) for k, v in zip(plain, found, strict=True)}
