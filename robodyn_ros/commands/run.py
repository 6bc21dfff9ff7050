"""`robodyn run`: starts a node of this package without the tools of ROS 2."""

from __future__ import annotations

import argparse
import tempfile
from importlib import import_module
from pathlib import Path

import yaml

from robodyn_ros.commands.options import add_loops, add_motors, split_pairs
from robodyn_ros.description.urdf import read_urdf_text
from robodyn_ros.errors import RobodynError, UnknownNameError
from robodyn_ros.files import check_regular
from robodyn_ros.packages import explained

OF_EVERY_NODE = ('use_sim_time',)  # parameters that rclpy declares itself
LONGEST_FILE = 64 * 1024 * 1024  # bytes
NODE_NAMES = ('dynamics', 'feedforward', 'identification', 'observer', 'simulator',
              'gazebo_bridge')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add('node', metavar='NODE', choices=NODE_NAMES, help=f'one of: {", ".join(NODE_NAMES)}')
    add('--urdf', type=Path, metavar='FILE',
        help='URDF, xacro, SDF or MJCF file of the robot (default: the topic '
        'robot_description)')
    add('--xacro', nargs='+', default=[], metavar='name:=value',
        help='arguments of a xacro file')
    add('--trust', action='store_true', help='xacro files can run code: do not expand this one '
        'in a sandbox')
    add_motors(parser)
    add_loops(parser)
    add('-p', '--parameter', action='append', default=[], metavar='NAME:=VALUE',
        help='a parameter of the node; can be given several times')
    add('-r', '--remap', action='append', default=[], metavar='FROM:=TO',
        help='another name for a topic or service; can be given several times')
    add('--config', type=Path, metavar='FILE', help='YAML file of parameters')
    add('--namespace', default='', metavar='NAME', help='namespace of all topics of the robot')
    add('--parameters', action='store_true',
        help='print the parameters of the node with their meanings, and end')


def run(options: argparse.Namespace) -> int:
    """Start the node and spin it until Ctrl-C."""
    try:
        from robodyn_ros.nodes.declarations import parameters_of
        from robodyn_ros.nodes.help import help_of
    except ImportError as error:
        if isinstance(explained(error), RobodynError):
            raise explained(error) from None
        raise RobodynError(f'nodes need ROS 2 ({error}); source a distribution') from None
    if options.parameters:
        print(help_of(options.node))
        return 0
    declared = parameters_of(options.node)
    values: dict[str, object] = {}
    for name, text in split_pairs(options.parameter, 'parameter', 'NAME:=VALUE'):
        if name in OF_EVERY_NODE:
            values[name] = text.lower() == 'true'
        elif name not in declared:
            raise UnknownNameError(f'parameter of {options.node}', name,
                                   [*sorted(declared), *OF_EVERY_NODE])
        else:
            values[name] = declared[name].value_of(text)
    if options.urdf is not None:
        arguments = dict(split_pairs(options.xacro, 'argument', 'name:=value'))
        values['robot_description'] = read_urdf_text(options.urdf, arguments,
                                                     trust_xacro=options.trust)
    for name, path in (('motors_file', options.motors), ('loops_file', options.loops)):
        if path is None:
            continue
        if name not in declared:
            raise UnknownNameError(f'parameter of {options.node}', name, sorted(declared))
        values[name] = str(check_regular(path, LONGEST_FILE).absolute())
    return _run(options, values)


def _run(options: argparse.Namespace, values: dict[str, object]) -> int:
    """Run the node in this process with parameters from a file, which may be long."""
    words = [options.node, '--ros-args']
    if options.config is not None:
        words += ['--params-file', str(check_regular(options.config, LONGEST_FILE))]
    for entry in options.remap:
        words += ['-r', entry]
    if options.namespace:
        words += ['-r', f'__ns:=/{options.namespace.strip("/")}']
    with tempfile.TemporaryDirectory(prefix='robodyn_') as folder:
        if values:
            file = Path(folder) / 'parameters.yaml'
            file.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}),
                            encoding='utf-8')
            words += ['--params-file', str(file)]
        return int(import_module(f'robodyn_ros.nodes.{options.node}').main(words))
