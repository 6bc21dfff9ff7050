"""`robodyn calibrate`: sends a goal to a running identification server and shows its progress."""

from __future__ import annotations

import argparse

from robodyn_ros.commands.options import add_choice, add_filter, add_kind
from robodyn_ros.errors import RobodynError, ValueRangeError
from robodyn_ros.model.kinds import FRICTION_NAMES, KIND_NAMES
from robodyn_ros.packages import explained, package
from robodyn_ros.report.record import RECORD

# fields of the action's goal that are passed on unchanged; 0 selects the default of the server
NUMBERS = {
    'search_time': ('SECONDS', 'time to search for an excitation'),
    'period': ('SECONDS', 'period of the excitation'),
    'speed': ('FRACTION', 'fraction of the velocity limits that is used'),
    'torque_margin': ('FRACTION', 'fraction of the torque limits that is kept in reserve'),
    'validation_fraction': ('FRACTION', 'fraction of the data that is kept for the validation'),
    'slow': ('SPEED', 'samples below this speed are left out, rad/s or m/s'),
    'guard': ('SECONDS', 'samples this close to a slow one are left out as well'),
    'payload_mass': ('KG', 'mass of the payload, if it is known'),
}
WORDS = {
    'name': 'name of the run (default: date and time)',
    'excitation': "YAML file in the server's root folder with the motion to play",
}
# options whose words or numbers are passed on as well, if they are given
OTHERS = ('cutoff', 'order', 'corridor', 'periods')
FIELDS = {'operator': 'operator_name'}  # fields of the goal whose names differ from the options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument('--record', type=float, metavar='SECONDS',
                        help='record a motion that another program commands, instead of playing '
                        'an excitation')
    source.add_argument('--logs', nargs='+', default=[], metavar='LOG',
                        help="identify from logs in the server's root folder")
    parser.add_argument('--with', nargs='+', default=[], metavar='LOG', dest='earlier',
                        help="logs in the server's root folder that are used together with what "
                        'is recorded now')
    parser.add_argument('--payload', default='', metavar='LINK',
                        help='link that carries an unknown payload in what is recorded now and '
                        'in --loaded logs, but not in the others')
    parser.add_argument('--loaded', nargs='+', default=[], metavar='LOG',
                        help="logs in the server's root folder with the payload attached")
    parser.add_argument('--periods', type=int, metavar='COUNT',
                        help='how many periods of the excitation are played; several are '
                        'averaged (default: 1)')
    for name, meaning in WORDS.items():
        parser.add_argument(_option(name), default='', metavar=name.upper(), help=meaning)
    add_kind(parser, KIND_NAMES)
    add_choice(parser, '--friction', 'MODEL', 'friction model', FRICTION_NAMES, 'auto')
    for name, (unit, meaning) in NUMBERS.items():
        parser.add_argument(_option(name), type=float, default=0.0, metavar=unit, help=meaning)
    add_filter(parser)
    for name, (_, meaning) in RECORD.items():
        parser.add_argument(f'--{name}', default='', metavar='TEXT',
                            help=f'for the report: {meaning}')
    parser.add_argument('--apply', action='store_true',
                        help='send the model to the running nodes if the validation is good')
    parser.add_argument('--force', action='store_true',
                        help='send the model to the running nodes regardless of the validation')
    parser.add_argument('--view', action='store_true',
                        help='show the running experiment in the browser until Ctrl-C: the robot, '
                        'the phase, tracking errors, condition number and unexplained torque')
    parser.add_argument('--port', type=int, default=8080,
                        help='port of --view on the loopback interface (default: 8080)')
    parser.add_argument('--action', default='identification/identify', metavar='NAME',
                        help='name of the action (default: identification/identify)')


def run(options: argparse.Namespace) -> int:
    """Send the goal and follow it; Ctrl-C cancels it."""
    try:
        from robodyn_interfaces.action import IdentifyDynamics
        from robodyn_ros.nodes.calibrate import calibrate
    except ImportError as error:
        if isinstance(explained(error), RobodynError):
            raise explained(error) from None
        raise RobodynError(
            f'calibrate needs ROS 2 ({error}); source a distribution') from None
    if options.view:
        package('viser')
    goal = IdentifyDynamics.Goal()
    for name in (*WORDS, *NUMBERS, 'kind', 'friction', 'reduce', 'apply', 'force'):
        setattr(goal, name, getattr(options, name))
    for name in OTHERS:
        if (value := getattr(options, name)) is not None:
            if isinstance(value, int) and value < 1:
                raise ValueRangeError(_option(name), value, 'at least 1')
            setattr(goal, name, value)
    goal.logs, goal.loaded_logs = [*options.logs, *options.earlier], options.loaded
    goal.payload_link = options.payload
    for name in RECORD:
        setattr(goal, FIELDS.get(name, name), getattr(options, name))
    goal.source = goal.USE_LOGS if options.logs else goal.EXCITE
    if options.record is not None:
        goal.source, goal.duration = goal.RECORD, options.record
    return int(calibrate(goal, options.action, port=options.port if options.view else None))


def _option(name: str) -> str:
    return f'--{name.replace("_", "-")}'
