"""`robodyn view`: shows a robot, its inertials and its torques in the browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from robodyn_ros.check import mesh_folders
from robodyn_ros.commands.options import add_robot, robot_of
from robodyn_ros.model import load_model
from robodyn_ros.packages import package


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_robot(parser)
    parser.add_argument('--beside', type=Path, metavar='URDF',
                        help='another description of the same robot, for example the identified '
                        'one, to be compared')
    parser.add_argument('--motion', type=Path, metavar='FILE',
                        help='excitation to play, as `robodyn excite` writes it')
    parser.add_argument('--port', type=int, default=8080,
                        help='port on the loopback interface (default: 8080)')


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    package('viser')
    from robodyn_ros.view import serve

    motion = None
    if options.motion is not None:
        from robodyn_ros.excitation import Excitation

        motion = Excitation.from_yaml(options.motion)
    beside = None if options.beside is None else load_model(options.beside)
    try:
        serve(robot_of(options), mesh_folders(options.urdf), port=options.port, beside=beside,
              motion=motion, ready=lambda address: print(
                  f'The robot is at {address}; Ctrl-C ends it.', flush=True))
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0
