"""The command `robodyn`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robodyn_ros import __version__, excitation_command, geometry, identification_command
from robodyn_ros.building import load_model
from robodyn_ros.check import check_model, check_robot, mesh_folders
from robodyn_ros.command_line import add_robot, robot_of, xacro_arguments
from robodyn_ros.errors import RobodynError, ValueRangeError
from robodyn_ros.motor_template import motor_template
from robodyn_ros.repair import add_missing_inertials, inertial_text
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
    add_robot(check)
    check.add_argument('--json', action='store_true', help='print JSON')
    check.add_argument('--fix', type=Path, metavar='OUT.urdf', help='write a copy whose missing '
                       'inertials are estimated from collision geometry, and judge that')
    check.add_argument('--density', type=float, default=1000.0,
                       help='for --fix, kg/m^3 (default 1000)')
    check.set_defaults(run=_check)
    inertia = commands.add_parser('inertia', help="print a solid's <inertial>")
    solids = inertia.add_subparsers(required=True, metavar='SOLID')
    for solid, sizes in (('box', ('x', 'y', 'z')), ('sphere', ('radius',)),
                         ('cylinder', ('radius', 'length')), ('capsule', ('radius', 'length'))):
        one = solids.add_parser(solid, help=f'{" ".join(sizes)}, m'
                                + (' (along z)' if 'length' in sizes else ''))
        for size in sizes:
            one.add_argument(size, type=float)
        one.set_defaults(run=_inertia, solid=solid, sizes=sizes)
    mesh = solids.add_parser('mesh', help='what a mesh file encloses')
    mesh.add_argument('file', type=Path)
    mesh.add_argument('--scale', type=float, default=1.0, help='0.001 for millimetres')
    mesh.set_defaults(run=_inertia, solid='mesh')
    for one in solids.choices.values():
        weight = one.add_mutually_exclusive_group(required=True)
        weight.add_argument('--mass', type=float, help='kg')
        weight.add_argument('--density', type=float, help='kg/m^3')
    motors = commands.add_parser('motors', help='print a motor YAML with what is known of a robot')
    add_robot(motors)
    motors.set_defaults(run=_motors)
    excitation_command.add_commands(commands)
    identification_command.add_commands(commands)
    calibrate = commands.add_parser('calibrate', help='call a running identification server: '
                                    'excite, record, identify, prove, swap')
    what = calibrate.add_mutually_exclusive_group()
    what.add_argument('--record', type=float, metavar='SECONDS',
                      help='record what others make the robot do, instead of exciting it')
    what.add_argument('--logs', nargs='+', default=[], help="names of logs in the server's root")
    calibrate.add_argument('--name', default='', help='of the run')
    calibrate.add_argument('--kind', choices=identification_command.KINDS, default='lumped')
    calibrate.add_argument('--friction', choices=identification_command.FRICTIONS, default='auto')
    calibrate.add_argument('--excitation', default='', help="YAML file in the server's root")
    for option, words in (('search-time', 's for the search of an excitation'),
                          ('period', 's of the excitation'),
                          ('speed', 'share of the velocity limits'),
                          ('torque-margin', 'share of the torque limits kept in reserve'),
                          ('validation-share', 'of the data, for the proof'),
                          ('slow', 'rad/s: slower samples do not count'),
                          ('guard', 's about slow samples; 0: by the filter')):
        calibrate.add_argument(f'--{option}', type=float, default=0.0, help=words)
    calibrate.add_argument('--apply', action='store_true',
                           help='swap the model into the running nodes where the proof is good')
    calibrate.add_argument('--action', default='identification/identify')
    calibrate.set_defaults(run=_calibrate)
    demo = commands.add_parser('demo', help='a closed loop: PD alone, then with feed-forward')
    demo.add_argument('--urdf', type=Path, help='URDF or xacro of another robot')
    demo.add_argument('--seconds', type=float, default=20.0, help='how long (default 20)')
    demo.add_argument('--record', type=Path, help='write a bag of the states and torques here')
    demo.add_argument('--plot', type=Path, help='write a picture of the errors here')
    demo.add_argument('--picture', type=Path, help='write the terminal to this SVG file')
    demo.set_defaults(run=_demo)
    return parser


def _check(options: argparse.Namespace) -> int:
    arguments = xacro_arguments(options)
    source = options.urdf
    if options.fix is not None:
        text, done = add_missing_inertials(read_text(source, arguments), options.density,
                                           folders=mesh_folders(source))
        options.fix.write_text(text, encoding='utf-8')
        for link, what in done.items():
            print(f'link {link}: {what}', file=sys.stderr)
        print(f'{options.fix}: written' + ('' if done else ', nothing was missing'),
              file=sys.stderr)
        report = check_model(load_model(text, motors=options.motors),
                             folders=mesh_folders(source))
    else:
        report = check_robot(source, motors=options.motors, xacro_arguments=arguments)
    print(report.to_json() if options.json else report.to_text())
    return report.exit_code


def _inertia(options: argparse.Namespace) -> int:
    if options.solid == 'mesh':
        solid = geometry.mesh_solid(options.file, (options.scale,) * 3)
    else:
        sizes = [getattr(options, size) for size in options.sizes]
        if not min(sizes) > 0 or not max(sizes) < 1e6:
            raise ValueRangeError(options.solid, sizes, 'sizes above 0, m')
        solid = getattr(geometry, options.solid)(*sizes)
    if solid.note:
        print(f'robodyn: {solid.note}', file=sys.stderr)
    print(inertial_text(solid.inertial(mass=options.mass, density=options.density)))
    return 0


def _motors(options: argparse.Namespace) -> int:
    print(motor_template(robot_of(options)), end='')
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    try:
        from robodyn_interfaces.action import IdentifyDynamics
        from robodyn_ros.nodes.calibrate import calibrate
    except ImportError as error:
        print(f'robodyn: calibrate needs ROS 2 ({error}); source a distribution', file=sys.stderr)
        return 2
    goal = IdentifyDynamics.Goal()
    for name in ('name', 'kind', 'friction', 'excitation', 'search_time', 'period', 'speed',
                 'torque_margin', 'validation_share', 'slow', 'guard', 'logs', 'apply'):
        setattr(goal, name, getattr(options, name))
    goal.source = goal.USE_LOGS if options.logs else goal.EXCITE
    if options.record is not None:
        goal.source, goal.duration = goal.RECORD, options.record
    return calibrate(goal, options.action)


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
    if options.record is not None and options.record.exists():
        print(f'robodyn: {options.record} exists; valid: a new folder', file=sys.stderr)
        return 2
    return run_demo(model, text, seconds=options.seconds, picture=options.picture,
                    plot=options.plot, record=options.record)


if __name__ == '__main__':
    sys.exit(main())
