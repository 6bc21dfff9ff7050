"""`Tuning` and `Tolerances`: law, gains, limits and tolerances of a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.laws import Gains, automatic_gains
from robodyn_ros.dynamics import FlexibleDynamics, RobotDynamics
from robodyn_ros.dynamics.residual_torque import ResidualTorque
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.spatial import Array

ELASTIC = 'elastic_feedforward_pd'
LAWS = ('gravity_compensation', 'pd', 'pd_gravity', 'feedforward_pd', 'feedforward_gravity',
        'computed_torque', ELASTIC)
OPEN_LOOP = 'feedforward'
MODES = (OPEN_LOOP, *LAWS)
NO_REACTION, STOP, YIELD = REACTIONS = ('none', 'stop', 'yield')  # to an accidental contact
AUTOMATIC = -1.0  # value of a gain that is to be computed from the model


@dataclass(frozen=True, eq=False)
class Tuning:
    """Control law, gains and limits of the supervisor.

    Attributes
    ----------
    law : str
        One of `LAWS`; ``gravity_compensation`` follows no reference.
    gains : Gains
        Gains of the laws with PD, N m/rad and N m s/rad (N/m, N s/m).
    acceleration_gains : Gains
        Gains of ``computed_torque``, 1/s^2 and 1/s.
    damping : ndarray, shape (n,)
        Damping while gravity is compensated, N m s/rad or N s/m.
    friction : float
        Fraction, 0 to 1, of the friction at the measured velocity that is compensated together
        with gravity.
    state_timeout : float
        Time without a new state after which the last one is stale, s.
    zero_after : float
        Time without a new state after which the torque goes to zero, s.
    ramp : float
        Duration of every transition, s.
    rate_limit : ndarray, shape (n,)
        Largest change of torque, N m/s or N/s; inf: none.
    flexible : FlexibleDynamics, optional
        Dynamics of an elastic arm whose motors are measured, for ``elastic_feedforward_pd``.
    brake_time : float
        Time for which a stop after a contact brakes before the torque goes to zero, s.
    residual : ResidualTorque, optional
        A bounded torque that is added to feed-forward torques at the reference.
    """

    law: str
    gains: Gains
    acceleration_gains: Gains
    damping: Array
    friction: float
    state_timeout: float
    zero_after: float
    ramp: float
    rate_limit: Array
    flexible: FlexibleDynamics | None = None
    brake_time: float = 0.5
    residual: ResidualTorque | None = None


@dataclass(frozen=True, eq=False)
class Tolerances:
    """When references end, and how far the robot may be from them.

    Attributes
    ----------
    hold : float
        Time for which the end of a reference is held if it ends at rest, s.
    setpoint_timeout : float
        Time for which a reference of a single point is valid, s.
    start : float
        Largest distance between the measured position and the start of a reference, rad or m.
    path : ndarray, shape (n,)
        Largest distance between the measured position and the reference, rad or m; inf: any.
    goal : ndarray, shape (n,)
        Largest distance at the end of a reference, rad or m; inf: any.
    goal_time : float
        Largest delay with which the end may be reached, s.
    ramp : float
        Duration of the fade that ends commands in the open loop, s.
    """

    hold: float
    setpoint_timeout: float
    start: float
    path: Array
    goal: Array
    goal_time: float
    ramp: float


def check_values(values: Mapping[str, Any]) -> None:
    """Check those named values for which no model is needed.

    Raises
    ------
    UnknownNameError, ValueRangeError
        The mode or reaction does not exist, or ``zero_after`` is shorter than ``state_timeout``.
    """
    if values.get('on_contact', NO_REACTION) not in REACTIONS:
        raise UnknownNameError('on_contact', values['on_contact'], REACTIONS)
    if values['mode'] not in MODES:
        raise UnknownNameError('mode', values['mode'], MODES)
    if values['zero_after'] < values['state_timeout']:
        raise ValueRangeError('zero_after', values['zero_after'],
                              f'at least state_timeout, {values["state_timeout"]} s')


def residual_of(values: Mapping[str, Any], names: Sequence[str]) -> ResidualTorque | None:
    """Return the residual model for the joints, from the file that the values name, if any.

    Raises
    ------
    RobodynError
        The file cannot be read, or was identified for other joints.
    """
    path = values.get('residual_model', '')
    return ResidualTorque.read(path).for_joints(names) if path else None


def tuning_of(values: Mapping[str, Any], dynamics: RobotDynamics,
              residual: ResidualTorque | None = None) -> Tuning | None:
    """Return the tuning for named values; None in the open loop.

    Raises
    ------
    RobodynError
        A value is invalid; the message names it.
    """
    check_values(values)
    n = dynamics.joints.n
    automatic = Gains(np.zeros(n), np.zeros(n))
    if any(AUTOMATIC in values[name] for name in ('kp', 'kd', 'damping')):
        # slow for robots with closed loops
        automatic = automatic_gains(dynamics, values['gain_frequency'])
    kp = numbers(values, 'kp', n, automatic.kp)
    kd = numbers(values, 'kd', n, automatic.kd)
    damping = numbers(values, 'damping', n, automatic.kd / 2)
    rate = numbers(values, 'torque_rate_limit', n)
    acceleration = Gains(numbers(values, 'computed_torque_kp', n),
                         numbers(values, 'computed_torque_kd', n))
    if values['mode'] == OPEN_LOOP:
        return None
    flexible = None
    if values['mode'] == ELASTIC:
        if dynamics.cuts:
            raise ValueRangeError('mode', ELASTIC, 'another one: the robot has closed loops')
        flexible = FlexibleDynamics(dynamics.model, friction_width=dynamics.friction_width)
    return Tuning(values['mode'], Gains(kp, kd), acceleration, damping,
                  values['friction_compensation'], values['state_timeout'], values['zero_after'],
                  values['ramp'], np.where(rate > 0, rate, np.inf), flexible,
                  values.get('brake_time', 0.5), residual)


def tolerances_of(values: Mapping[str, Any], n: int) -> Tolerances:
    """Return the tolerances of n joints for named values.

    Raises
    ------
    RobodynError
        A value is invalid; the message names it.
    """
    path, goal = (numbers(values, name, n) for name in ('path_tolerance', 'goal_tolerance'))
    return Tolerances(values['hold'], values['setpoint_timeout'], values['start_tolerance'],
                      np.where(path > 0, path, np.inf), np.where(goal > 0, goal, np.inf),
                      values['goal_time'], values['ramp'])


def numbers(values: Mapping[str, Any], name: str, n: int, automatic: Array | None = None) -> Array:
    """Return a named list of one number, or one for each joint, as an array of shape (n,).

    Raises
    ------
    ShapeError, ValueRangeError
        The count of numbers is wrong, or a number is negative or not finite.
    """
    array = np.asarray(values[name], np.float64)
    if array.shape not in ((1,), (n,)):
        raise ShapeError(name, f'{array.size} numbers', f'one number, or {n}')
    array = np.broadcast_to(array, (n,)).copy()
    if automatic is not None:
        array = np.where(array == AUTOMATIC, automatic, array)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueRangeError(name, values[name], 'finite numbers >= 0')
    return array
