"""What a node answers to --help: how it is started, and its parameters."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module

from robodyn_ros.nodes.declarations import NODES, parameters_of

WIDTH = 79
USAGE = """usage: {name} [--help] [--ros-args -p NAME:=VALUE -r FROM:=TO]
       robodyn run {name} --urdf FILE [-p NAME:=VALUE] [-r FROM:=TO]
       ros2 launch robodyn_ros {launch} urdf:=FILE [NAME:=VALUE]"""


def wants_help(arguments: Sequence[str] | None) -> bool:
    """Whether the arguments of an executable, its name first, ask for help."""
    words = list(sys.argv if arguments is None else arguments)[1:]
    if '--ros-args' in words:
        words = words[:words.index('--ros-args')]
    return '--help' in words or '-h' in words


def help_of(node: str) -> str:
    """Return the help of a node of this package, at most 79 columns wide.

    Raises
    ------
    UnknownNameError
        There is no such node.
    """
    parameters = parameters_of(node)
    module = import_module(f'robodyn_ros.nodes.{node}')
    launch = {'gazebo_bridge': 'gazebo'}.get(node, node) + '.launch.py'
    lines = [USAGE.format(name=node, launch=launch), '',
             textwrap.fill(' '.join((module.__doc__ or '').split()), WIDTH), '', 'parameters:']
    for name, parameter in sorted(parameters.items()):
        limits = '' if parameter.range is None else \
            ', {:g} to {:g}'.format(*parameter.range)
        lines.append(f'  {name}')
        lines.append(textwrap.fill(
            f'{parameter.description} (default: {parameter.default!r}{limits})', WIDTH,
            initial_indent=' ' * 6, subsequent_indent=' ' * 6))
    return '\n'.join(lines)


def node_of(kind: str) -> str:
    """Return the name under which a class of `NODES` is started."""
    return next(name for name, entry in NODES.items() if entry == kind)
