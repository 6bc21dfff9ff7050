"""Measured efforts and commanded torques as the equations of motion see them.

A robot may measure currents, torques on the motors' side, or torques from which it has removed
gravity and friction; and it may add these to the torques that it is commanded. `EffortMeaning` of
the description says what applies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robodyn_ros.dynamics.protocol import RobotDynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array


def effort_factors(model: Model, names: tuple[str, ...]) -> Array:
    """Return E of ``torque = effort @ E`` for joints, shape (k, k), torques on the link's side.

    Raises
    ------
    ValueRangeError
        Efforts are currents, and the drive gain of a joint is unknown.
    """
    meaning = model.effort
    bodies = [model.body_joints.index(name) for name in names]
    if meaning.measured == 'current':
        gains = model.drive_gain[bodies]
        if np.isnan(gains).any():
            name = names[int(np.argmax(np.isnan(gains)))]
            raise ValueRangeError(f'drive_gain of {name}', 'unknown', 'its joint torque per '
                                  'ampere in the motor data, since efforts are currents')
        return meaning.scale * np.diag(gains)
    if meaning.side == 'motor':
        places = [model.joint_names.index(name) for name in names]
        return meaning.scale * model.gear_ratio[bodies, None] * model.motor_row[
            np.ix_(bodies, places)]
    return meaning.scale * np.eye(len(names))


def measured_model(model: Model) -> Model:
    """Return the model whose inverse dynamics are the measured torques.

    It has no gravity, friction or rotors where measured torques do not contain them.

    Raises
    ------
    ValueRangeError
        Efforts are external torques, which the motion does not determine.
    """
    meaning = model.effort
    if meaning.measured == 'external_torque':
        raise ValueRangeError('measured efforts', 'external torques', 'torque or current: '
                              'external torques contain no dynamics of the robot')
    return _without(sensed_model(model), meaning.gravity == 'removed',
                    meaning.friction == 'removed')


def sensed_model(model: Model) -> Model:
    """Return the model without the rotors if the torque sensors do not measure their torque.

    Its inverse dynamics are the result of `complete_torque`.
    """
    return model.without_motors() if model.effort.rotors == 'removed' else model


def commanded_model(model: Model) -> Model:
    """Return the model whose inverse dynamics are the torques to command.

    It has no gravity and no friction where the robot adds them to commands itself.
    """
    added = model.effort.commands_add
    return _without(model, 'gravity' in added, 'friction' in added)


def measured_dynamics(dynamics: RobotDynamics) -> RobotDynamics:
    """Return the dynamics of `measured_model`; the same object where nothing is removed."""
    model = measured_model(dynamics.model)
    return dynamics if model is dynamics.model else dynamics.with_model(model)


def _without(model: Model, gravity: bool, friction: bool) -> Model:
    if friction:
        model = model.without_friction()
    return replace(model, gravity=np.zeros(3)) if gravity else model


def complete_torque(dynamics: RobotDynamics, q: Array, qd: Array, torque: Array, *,
                    near: Array | None = None) -> Array:
    """Return measured torques with the gravity and friction that the robot has removed.

    They still lack the torques of rotors that sensors do not measure, see `sensed_model`.

    Parameters
    ----------
    dynamics : RobotDynamics
        The whole dynamics of the robot.
    q, qd : ndarray, shape (n,) or (N, n)
        State.
    torque : ndarray, shape (n,) or (N, n)
        Measured efforts times `effort_factors`, N m or N.
    near : ndarray, optional
        Pose of all joints near which closed loops are closed.
    """
    meaning = dynamics.model.effort
    if meaning.gravity == 'removed':
        torque = torque + dynamics.gravity(q, near=near)
    if meaning.friction == 'removed':
        torque = torque + dynamics.friction(qd, q, near=near)
    return torque


def applied_torque(dynamics: RobotDynamics, q: Array, qd: Array, command: Array) -> Array:
    """Return the torque of the motors for a command, with what the robot adds to it itself.

    Parameters
    ----------
    dynamics : RobotDynamics
        The dynamics from which the robot computes what it adds.
    q, qd, command : ndarray, shape (n,)
        State and commanded torques, N m or N.
    """
    added = dynamics.model.effort.commands_add
    if 'gravity' in added:
        command = command + dynamics.gravity(q)
    if 'friction' in added:
        command = command + dynamics.friction(qd, q)
    return command
