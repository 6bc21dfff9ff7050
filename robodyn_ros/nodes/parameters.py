"""Declares parameters with descriptors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node

MODEL_PARAMETERS: tuple[tuple[str, Any, str], ...] = (
    ('robot_description', '', 'URDF text; empty: wait for the topic robot_description'),
    ('motors_file', '', 'YAML file with motor data (docs/reference/files.md); empty: none'),
    ('effort', '', 'what efforts and commanded torques contain: a preset of `robodyn effort '
     "--presets`, or text such as 'measured: torque, gravity: removed'; empty: as in "
     'motors_file'),
    ('loops_file', '', 'YAML file that defines closed loops (docs/howto/special_structures.md); '
     'empty: none'),
    ('rotor_model', 'auto', 'model of the rotors: auto, full (with coupling and gyroscopic terms) '
     'or armature'),
    ('gravity', [0.0, 0.0, -9.80665], 'gravitational acceleration in the root frame, m/s^2'),
    ('locked_joints', [''], 'joints that are locked at locked_positions'),
    ('locked_positions', [0.0], 'position of each of locked_joints, rad or m'),
    ('friction_width', -1.0, 'width of the smooth sign of dry friction at all joints, rad/s or '
     'm/s; 0: the sign itself; -1: those of motors_file, and 0 where it has none'),
    ('temperature_joints', [''], 'joints whose friction is adjusted to joint_temperatures, where '
     'motors_file has their friction_temperature'),
    ('joint_temperatures', [0.0], 'temperature of each of temperature_joints, degrees Celsius'),
)
MODEL_PARAMETER_NAMES = tuple(name for name, *_ in MODEL_PARAMETERS)

FILES = ('motors_file', 'loops_file', 'residual_model')  # the last one: feedforward


def declare(node: Node, name: str, default: Any, description: str, *,
            range_: tuple[float, float] | None = None, read_only: bool = False) -> Any:
    """Declare a parameter and return its value."""
    descriptor = ParameterDescriptor(description=description, read_only=read_only)
    if range_ is not None and isinstance(default, float):
        descriptor.floating_point_range = [FloatingPointRange(from_value=range_[0],
                                                              to_value=range_[1])]
    elif range_ is not None:
        descriptor.integer_range = [IntegerRange(from_value=int(range_[0]),
                                                 to_value=int(range_[1]))]
    if not node.has_parameter(name):
        node.declare_parameter(name, default, descriptor)
    return node.get_parameter(name).value


def declare_common_parameters(node: Node) -> None:
    """Declare autostart and the parameters of the model, which can be changed at run time."""
    declare(node, 'autostart', True, 'configure and activate at start', read_only=True)
    declare(node, 'model_folders', [''], 'folders that must contain motors_file, loops_file '
            'and residual_model if these change while the node is running; empty: the folders of '
            'the files given at the start', read_only=True)
    for name, default, description in MODEL_PARAMETERS:
        declare(node, name, default, description,
                range_=(-1.0, 10.0) if name == 'friction_width' else None)


def model_options(node: Node, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the options for building models from the parameters and from changes of them.

    The entry ``parameters`` contains the values of the parameters themselves, except
    robot_description.
    """
    values = {name: node.get_parameter(name).value for name in MODEL_PARAMETER_NAMES}
    values.update({name: value for name, value in (changes or {}).items() if name in values})
    del values['robot_description']
    names = [name for name in values['locked_joints'] if name]
    rotor_model = values['rotor_model']
    floating = any(node.has_parameter(name) and node.get_parameter(name).value
                   for name in ('odometry_topic', 'imu_topic'))
    return {
        'base': 'floating' if floating else 'auto',
        'gravity': tuple(values['gravity']),
        'motors': values['motors_file'] or None,
        'loops': values['loops_file'] or None,
        'rotor_model': None if rotor_model == 'auto' else rotor_model,
        'locked_joints': dict(zip(names, values['locked_positions'], strict=False)),
        'friction_width': None if values['friction_width'] == -1.0 else values['friction_width'],
        'temperatures': dict(zip([name for name in values['temperature_joints'] if name],
                                 values['joint_temperatures'], strict=False)),
        'effort': values['effort'],
        'parameters': {name: list(value) if isinstance(value, Sequence) and not isinstance(
            value, str) else value for name, value in values.items()},
    }


def model_folders(node: Node) -> tuple[Path, ...]:
    """Return the folders from which files may be read while the node is running."""
    folders = [Path(name) for name in node.get_parameter('model_folders').value if name]
    if not folders:
        folders = [path.parent for path in parameter_files(node)]
    return tuple(folder.expanduser().resolve() for folder in folders)


def parameter_files(node: Node) -> tuple[Path, ...]:
    """Return the files that the parameters of a node name."""
    names = (node.get_parameter(name).value for name in FILES if node.has_parameter(name))
    return tuple(Path(name).expanduser() for name in names if name)


def outside(folders: Sequence[Path], changes: Mapping[str, Any]) -> str | None:
    """Return an error message if a changed file parameter is outside all folders, or None."""
    for name in FILES:
        value = changes.get(name)
        if not value:
            continue
        try:
            path = Path(value).expanduser().resolve()
        except (OSError, RuntimeError, ValueError):  # circular links, no home folder
            path = Path('/')
        if not any(path.is_relative_to(folder) for folder in folders):
            return (f'{name} is {value[:200]!r}; valid while the node runs: a file in a folder of '
                    f'model_folders: {", ".join(map(str, folders)) or "none"}')
    return None


def accepted() -> SetParametersResult:
    """Return the result of a change that is accepted."""
    return SetParametersResult(successful=True)


def refused(reason: object) -> SetParametersResult:
    """Return the result of a change that is rejected, with the reason."""
    return SetParametersResult(successful=False, reason=str(reason))
