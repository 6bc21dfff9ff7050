"""Parameters of the control laws -> `Tuning`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rclpy.node import Node

from robodyn_ros.control import LAWS, Gains, Tuning, automatic_gains
from robodyn_ros.control.supervisor import ELASTIC
from robodyn_ros.dynamics import AnyDynamics, ClosedLoopDynamics, FlexibleDynamics
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.nodes.parameters import declare

OPEN_LOOP = 'feedforward'
MODES = (OPEN_LOOP, *LAWS)
AUTOMATIC = -1.0  # of a gain: from the robot's least inertia
LISTS = (
    ('kp', AUTOMATIC, 'N m/rad or N/m; one number, or one for each joint; -1: from the model'),
    ('kd', AUTOMATIC, 'N m s/rad or N s/m, as kp'),
    ('computed_torque_kp', 100.0, '1/s^2, of computed_torque'),
    ('computed_torque_kd', 20.0, '1/s, of computed_torque'),
    ('damping', AUTOMATIC, 'N m s/rad or N s/m while gravity is compensated; -1: from the model'),
    ('torque_rate_limit', 0.0, 'largest change of torque, N m/s or N/s; 0: none'),
)
NUMBERS = (
    ('friction_compensation', 0.0, 'share of friction compensated with gravity (hand-guiding)',
     (0.0, 1.0)),
    ('state_timeout', 0.1, 's without a new joint state, after which it is stale',
     (0.001, 3600.0)),
    ('zero_after', 0.5, 's without a new joint state, after which torque goes to zero',
     (0.001, 3600.0)),
    ('ramp', 0.2, 's that every transition takes', (0.0, 10.0)),
)
NAMES = ('mode', *(name for name, *_ in LISTS), *(name for name, *_ in NUMBERS))


def declare_tuning(node: Node) -> None:
    """Declare the parameters; all of them can be changed at run time."""
    declare(node, 'mode', OPEN_LOOP, f'one of {", ".join(MODES)}; the first needs no joint_states')
    for name, default, description in LISTS:
        declare(node, name, [default], description)
    for name, default, description, range_ in NUMBERS:
        declare(node, name, default, description, range_=range_)


def tuning_values(node: Node, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the parameters, some of them changed."""
    values = {name: node.get_parameter(name).value for name in NAMES}
    return values | {k: v for k, v in (changes or {}).items() if k in values}


def check_mode(mode: str) -> None:
    """Raise UnknownNameError where there is no such mode."""
    if mode not in MODES:
        raise UnknownNameError('mode', mode, MODES)


def tuning_of(values: Mapping[str, Any], dynamics: AnyDynamics) -> Tuning | None:
    """Return how a robot is controlled; None in the open loop.

    Raises
    ------
    RobodynError
        Names the parameter.
    """
    check_mode(values['mode'])
    n = dynamics.joints.n
    automatic = automatic_gains(dynamics)
    kp = _list(values, 'kp', n, automatic.kp)
    kd = _list(values, 'kd', n, automatic.kd)
    damping = _list(values, 'damping', n, automatic.kd / 2)
    rate = _list(values, 'torque_rate_limit', n)
    acceleration = Gains(_list(values, 'computed_torque_kp', n),
                         _list(values, 'computed_torque_kd', n))
    if values['zero_after'] < values['state_timeout']:
        raise ValueRangeError('zero_after', values['zero_after'],
                              f'at least state_timeout, {values["state_timeout"]} s')
    if values['mode'] == OPEN_LOOP:
        return None
    flexible = None
    if values['mode'] == ELASTIC:
        if isinstance(dynamics, ClosedLoopDynamics):
            raise ValueRangeError('mode', ELASTIC, 'another one: the robot has closed loops')
        flexible = FlexibleDynamics(dynamics.model, friction_width=dynamics.friction_width)
    return Tuning(values['mode'], Gains(kp, kd), acceleration, damping,
                  values['friction_compensation'], values['state_timeout'], values['zero_after'],
                  values['ramp'], np.where(rate > 0, rate, np.inf), flexible)


def _list(values: Mapping[str, Any], name: str, n: int, automatic: Any = None) -> Any:
    array = np.asarray(values[name], np.float64)
    if array.shape not in ((1,), (n,)):
        raise ShapeError(name, f'{array.size} numbers', f'one number, or {n}')
    array = np.broadcast_to(array, (n,)).copy()
    if automatic is not None:
        array = np.where(array == AUTOMATIC, automatic, array)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueRangeError(name, values[name], 'finite numbers >= 0')
    return array
