"""Writes a payload as requests to the nodes of this package, to Universal Robots and to Franka.

Sources: the URScript manual (PolyScope X 10.6, `set_target_payload`), ``ur_msgs/srv/SetPayload``
of ROS 2 Jazzy, ``franka/robot.h`` of libfranka (`Robot::setLoad`, `RobotState::I_load`) and
``franka_msgs/srv/SetLoad`` of ROS 2 Humble.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from robodyn_ros.identification.payload_result import IdentifiedPayload
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

# links whose frames are usually those of the flanges
FLANGES = {'ur': ('tool0', '*_tool0'), 'franka': ('*_link8', '*_flange')}


def flange_of(model: Model, link: str, family: str) -> str:
    """Return the link whose frame is that of the flange, or the link of the payload itself.

    Parameters
    ----------
    model : Model
        The robot.
    link : str
        The link that carries the payload.
    family : str
        ``ur`` or ``franka``.
    """
    body = model.link_frame(link).body
    return next((name for pattern in FLANGES[family]
                 for name, frame in model.link_frames.items()
                 if frame.body == body and fnmatchcase(name, pattern)), link)


def service_calls(payload: IdentifiedPayload, model: Model, nodes: Sequence[str]) -> str:
    """Return the commands that set the payload of running nodes of this package."""
    mass, com, inertia = payload.in_frame(model, payload.link)
    moments = [f'i{"xyz"[i]}{"xyz"[j]}: {_number(inertia[i, j])}'
               for i in range(3) for j in range(i, 3)]
    return '\n'.join(
        f'ros2 service call /{node}/set_payload \\\n'
        f'  robodyn_interfaces/srv/SetPayload "{{link: {payload.link},\n'
        f'  inertia: {{m: {_number(mass)}, com: {_point(com)},\n'
        f'  {", ".join(moments[:3])},\n  {", ".join(moments[3:])}}}}}"'
        for node in nodes)


def universal_robots(payload: IdentifiedPayload, model: Model, flange: str = '') -> str:
    """Return the line of URScript and the request to the driver, in the flange's frame.

    The flange is the link of this name; by default, that of `flange_of`.
    """
    link = flange or flange_of(model, payload.link, 'ur')
    mass, com, inertia = payload.in_frame(model, link)
    (ixx, ixy, ixz), (_, iyy, iyz), izz = inertia[0], inertia[1], inertia[2, 2]
    moments = {'ixx': ixx, 'iyy': iyy, 'izz': izz, 'ixy': ixy, 'ixz': ixz, 'iyz': iyz}
    fields = [f'{name}: {_number(value)}' for name, value in moments.items()]
    return (f'Universal Robots (kg, m, kg m^2; frame of the tool flange: {link}; everything\n'
            'mounted on the flange, so add a tool that the model contains):\n'
            f'set_target_payload({_number(mass)}, {_list(com)},\n'
            f'  {_list(list(moments.values()))})\n'
            'and with ur_robot_driver:\n'
            'ros2 service call /io_and_status_controller/set_payload \\\n'
            f'  ur_msgs/srv/SetPayload "{{mass: {_number(mass)},\n'
            f'  center_of_gravity: {_point(com)},\n'
            f'  {", ".join(fields[:3])},\n  {", ".join(fields[3:])}}}"')


def franka(payload: IdentifiedPayload, model: Model, flange: str = '') -> str:
    """Return the call of libfranka and the request to franka_ros2, in the flange's frame.

    The flange is the link of this name; by default, that of `flange_of`.
    """
    link = flange or flange_of(model, payload.link, 'franka')
    mass, com, inertia = payload.in_frame(model, link)
    columns = [', '.join(map(_number, inertia[:, k])) for k in range(3)]
    return (f'Franka (kg, m, kg m^2 by columns; frame of the flange: {link}; in addition to\n'
            'the end effector that is set in Desk):\n'
            f'robot.setLoad({_number(mass)}, {{{", ".join(map(_number, com))}}},\n'
            f'  {{{columns[0]},\n   {columns[1]},\n   {columns[2]}}});\n'
            'and with franka_ros2, to the service set_load, franka_msgs/srv/SetLoad:\n'
            f'"{{mass: {_number(mass)}, center_of_mass: {_list(com)},\n'
            f'  load_inertia: [{columns[0]},\n  {columns[1]},\n  {columns[2]}]}}"')


def _number(value: float) -> str:
    """Return a number with four decimals of SI units; small moments of inertia with more."""
    text = f'{value:.4f}' if abs(value) >= 1e-2 or not value else f'{value:.6f}'
    return text.replace('-0.0000', '0.0000') if float(text) == 0 else text


def _list(values: Sequence[float] | Array) -> str:
    return f'[{", ".join(map(_number, values))}]'


def _point(values: Array) -> str:
    return '{' + ', '.join(f'{axis}: {_number(value)}'
                           for axis, value in zip('xyz', values, strict=True)) + '}'
