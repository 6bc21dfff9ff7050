"""Parameters of control laws and tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node

from robodyn_ros.control.tuning import AUTOMATIC, MODES, NO_REACTION, OPEN_LOOP, REACTIONS
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.nodes.parameters import declare

LISTS = (
    ('kp', AUTOMATIC, 'proportional gains, N m/rad or N/m; one number, or one for each joint; '
     '-1: computed from the model'),
    ('kd', AUTOMATIC, 'derivative gains, N m s/rad or N s/m, as kp'),
    ('computed_torque_kp', 100.0, 'proportional gains of computed_torque, 1/s^2'),
    ('computed_torque_kd', 20.0, 'derivative gains of computed_torque, 1/s'),
    ('damping', AUTOMATIC, 'damping while gravity is compensated, N m s/rad or N s/m; -1: '
     'computed from the model'),
    ('torque_rate_limit', 0.0, 'largest change of torque, N m/s or N/s; 0: unlimited'),
    ('path_tolerance', 1.0, 'largest distance between the measured position and the reference, '
     'rad or m; a reference that is farther away is dropped; 0: any distance; not in the mode '
     'feedforward'),
    ('goal_tolerance', 0.0, 'largest distance to the end of a reference, goal_time after it, rad '
     'or m; 0: any distance; not in the mode feedforward'),
)
NUMBERS = (
    ('gain_frequency', 10.0, 'natural frequency of the gains that are computed from the model, '
     'rad/s; at most a 25th of the control rate in Hz', (0.1, 1000.0)),
    ('friction_compensation', 0.0, 'fraction of the friction that is compensated together with '
     'gravity, for hand-guiding', (0.0, 1.0)),
    ('state_timeout', 0.1, 'time without a new joint state after which the last one is stale, s',
     (0.001, 3600.0)),
    ('zero_after', 0.5, 'time without a new joint state after which the torque goes to zero, s; '
     'at least state_timeout', (0.001, 3600.0)),
    ('ramp', 0.2, 'duration of every transition between torques, s', (0.0, 10.0)),
    ('brake_time', 0.5, 'how long a stop after a contact brakes before the torque goes to zero, s',
     (0.0, 10.0)),
    ('hold', 1.0, 'how long the end of a reference at rest is held, s', (0.0, 3600.0)),
    ('setpoint_timeout', 0.1, 'how long a reference of a single point is valid, s', (0.001, 10.0)),
    ('start_tolerance', 0.5, 'largest distance between the measured position and the start of a '
     'reference, rad or m; not in the mode feedforward', (0.0, 100.0)),
    ('goal_time', 1.0, 'how much later than planned the end of a reference may be reached, s, '
     'where goal_tolerance is set', (0.0, 3600.0)),
)
NAMES = ('mode', 'on_contact', 'residual_model', *(name for name, *_ in LISTS),
         *(name for name, *_ in NUMBERS))
# values that fit every robot, used if the configured values do not
USUAL: dict[str, Any] = {'mode': OPEN_LOOP, 'residual_model': ''} | {
    name: [default] for name, default, _ in LISTS}


def declare_tuning(node: Node) -> None:
    """Declare the parameters; all of them can be changed at run time."""
    declare(node, 'mode', OPEN_LOOP,
            f'control law, one of {", ".join(MODES)}; the first needs no joint_states')
    declare(node, 'on_contact', NO_REACTION, f'reaction to an accidental contact, one of '
            f'{", ".join(REACTIONS)}: stop brakes, then commands zero torque after brake_time; '
            'yield compensates gravity; until ~/acknowledge_contact is called. In the mode '
            'feedforward, both command zero torque')
    declare(node, 'residual_model', '', 'file of a residual model (residual.npz, as robodyn '
            'identify --residual-model writes it), whose bounded torques at the reference are '
            'added to feed-forward torques; empty: none')
    for name, default, description in LISTS:
        declare(node, name, [default], description)
    for name, default, description, range_ in NUMBERS:
        declare(node, name, default, description, range_=range_)


def command_order(names: Sequence[str], joints: Sequence[str]) -> list[int]:
    """Return the indices of the joints to command; without names, those of all joints.

    Raises
    ------
    UnknownNameError
        There is no such joint.
    """
    wanted = [name for name in joints if name]
    for name in wanted:
        if name not in names:
            raise UnknownNameError('command_joints: joint', name, tuple(names))
    return [list(names).index(name) for name in wanted] or list(range(len(names)))


def tuning_values(node: Node, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the values of the parameters, with changes applied."""
    values = {name: node.get_parameter(name).value for name in NAMES}
    return values | {k: v for k, v in (changes or {}).items() if k in values}
