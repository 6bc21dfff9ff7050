"""The command `robodyn`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robodyn_ros import __version__
from robodyn_ros.building import load_model
from robodyn_ros.check import check_robot
from robodyn_ros.errors import RobodynError, UnknownNameError
from robodyn_ros.motor_template import motor_template
from robodyn_ros.robots import PANDA, example_robots
from robodyn_ros.urdf import read_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except RobodynError as error:
        print(f'robodyn: {error}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='robodyn', description='The dynamics of any robot that '
                                                                 'has a URDF.')
    parser.add_argument('--version', action='version', version=__version__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    check = commands.add_parser('check', help='judge a robot description')
    check.add_argument('urdf', type=Path, help='URDF or xacro file')
    check.add_argument('xacro', nargs='*', metavar='name:=value', help='arguments of a xacro file')
    check.add_argument('--motors', type=Path, help='YAML with motor data')
    check.add_argument('--json', action='store_true', help='print JSON')
    check.set_defaults(run=_check)
    motors = commands.add_parser('motors', help='print a motor YAML with what is known of a robot')
    motors.add_argument('urdf', type=Path, help='URDF or xacro file')
    motors.set_defaults(run=_motors)
    demo = commands.add_parser('demo', help='see the topics of a moving arm, live and checked')
    demo.add_argument('--urdf', type=Path, help='URDF or xacro of another robot')
    demo.add_argument('--seconds', type=float, default=20.0, help='how long (default 20)')
    demo.add_argument('--picture', type=Path, help='write the terminal to this SVG file')
    demo.set_defaults(run=_demo)
    return parser


def _check(options: argparse.Namespace) -> int:
    arguments = {}
    for entry in options.xacro:
        name, separator, value = entry.partition(':=')
        if not separator:
            raise UnknownNameError('argument', entry, ['name:=value'])
        arguments[name] = value
    report = check_robot(options.urdf, motors=options.motors, xacro_arguments=arguments)
    print(report.to_json() if options.json else report.to_text())
    return report.exit_code


def _motors(options: argparse.Namespace) -> int:
    print(motor_template(load_model(options.urdf)), end='')
    return 0


def _demo(options: argparse.Namespace) -> int:
    if not 1.0 <= options.seconds <= 3600:
        print('robodyn: --seconds must be from 1 to 3600', file=sys.stderr)
        return 2
    try:
        from robodyn_ros.nodes.demo import run_demo
    except ImportError as error:
        print(f'robodyn: the demo needs ROS 2 ({error}); `make demo` sets it up, or source a '
              'distribution', file=sys.stderr)
        return 2
    source = options.urdf or example_robots() / PANDA
    model = load_model(source)
    text = read_text(source)
    if isinstance(text, bytes):
        text = text.decode(errors='replace')
    return run_demo(model, text, seconds=options.seconds, picture=options.picture)


if __name__ == '__main__':
    sys.exit(main())
