"""`robodyn payload`: tells from logs what a robot holds."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from robodyn_ros.commands.options import add_loops, add_motors
from robodyn_ros.dynamics import dynamics_of
from robodyn_ros.errors import LogError, UnknownNameError
from robodyn_ros.experiment.results import MOTORS, PARAMETERS, URDF
from robodyn_ros.identification.model_uncertainty import ModelUncertainty
from robodyn_ros.identification.payload import identify_payload
from robodyn_ros.identification.payload_interfaces import (
    franka,
    service_calls,
    universal_robots,
)
from robodyn_ros.identification.payload_result import FOUND
from robodyn_ros.identification.reading import read_log
from robodyn_ros.model import load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add('logs', nargs='+', type=Path, metavar='LOG',
        help='bag or table as of robodyn identify: a motion with the payload, or poses in which '
        'the robot rests with it')
    add('--link', required=True, metavar='LINK', help='link that carries the payload')
    add('--model', type=Path, metavar='FOLDER',
        help='folder of an identification, with its URDF, motor data and uncertainty')
    add('--urdf', type=Path, metavar='FILE',
        help='URDF, xacro, SDF or MJCF file, instead of --model')
    add_motors(parser)
    add_loops(parser)
    add('--format', type=Path, metavar='FILE', help='YAML file that describes the logs')
    add('--without', nargs='+', type=Path, default=[], metavar='LOG',
        help='logs without the payload, preferably of the same motion: the model may then be '
        'inexact')
    add('--flange', default='', metavar='LINK', help='link whose frame is that of the flange for '
        'Universal Robots and Franka (default: tool0, or a link whose name ends in link8)')


def run(options: argparse.Namespace) -> int:
    """Print the payload and the requests that set it; return 1 if there is no payload."""
    urdf, motors, uncertainty = _files(options)
    model = load_model(urdf, motors=motors)
    robot = dynamics_of(model, options.loops)
    model.link_frame(options.flange or options.link)
    logs, without = ([read_log(path, robot, options.format) for path in paths]
                     for paths in (options.logs, options.without))
    found = identify_payload(robot, logs, options.link, without=without, uncertainty=uncertainty)
    print(found.to_text())
    for note in found.notes:
        print(textwrap.fill(note, 79, initial_indent='- ', subsequent_indent='  '))
    if found.state != FOUND:
        return 1
    print(f'\n{service_calls(found, model, ["dynamics", "feedforward"])}')
    print(f'\n{universal_robots(found, model, options.flange)}')
    print(f'\n{franka(found, model, options.flange)}')
    return 0


def _files(options: argparse.Namespace) -> tuple[Path, Path | None, ModelUncertainty | None]:
    """Return URDF, motor data and uncertainty of the known model."""
    folder = options.model
    if (folder is None) == (options.urdf is None):
        raise UnknownNameError('argument', 'neither --model nor --urdf' if folder is None
                               else '--model with --urdf', ['--model FOLDER', '--urdf FILE'])
    if folder is None:
        return options.urdf, options.motors, None
    for name in (URDF, PARAMETERS):
        if not (folder / name).is_file():
            raise LogError(f'has no file {name}', source=str(folder),
                           valid='a folder that robodyn identify has written')
    motors = options.motors or folder / MOTORS
    return folder / URDF, motors, ModelUncertainty.read(folder / PARAMETERS)
