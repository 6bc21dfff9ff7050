"""`robodyn demo`: a simulated robot under PD control, first without, then with its model."""

from __future__ import annotations

import argparse
from pathlib import Path

from robodyn_ros.commands.output import add_force, refuse_existing
from robodyn_ros.description.examples import PANDA, example_robots
from robodyn_ros.description.urdf import read_urdf_text
from robodyn_ros.errors import OutputError, RobodynError, ValueRangeError
from robodyn_ros.model import load_model
from robodyn_ros.packages import explained


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('--urdf', type=Path, metavar='FILE',
                        help='URDF, xacro, SDF or MJCF file of another robot')
    parser.add_argument('--seconds', type=float, default=20.0, metavar='SECONDS',
                        help='duration of the demo (default: 20)')
    parser.add_argument('--record', type=Path, metavar='FOLDER',
                        help='record the states and torques as a bag in a new folder')
    parser.add_argument('--plot', type=Path, metavar='FILE',
                        help='write a picture of the tracking errors')
    parser.add_argument('--picture', type=Path, metavar='FILE.svg',
                        help='write a picture of the terminal')
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    """Run the demo; return 0 if feed-forward improved the tracking."""
    if not 1.0 <= options.seconds <= 3600:
        raise ValueRangeError('--seconds', options.seconds, 'from 1 to 3600')
    refuse_existing(options, options.plot, options.picture)
    if options.record is not None and options.record.exists():
        raise OutputError('it exists already', path=options.record, valid='a new folder')
    try:
        from robodyn_ros.nodes.demo import run_demo
    except ImportError as error:
        if isinstance(explained(error), RobodynError):
            raise explained(error) from None
        raise RobodynError(f'the demo needs ROS 2 ({error}); `make demo` sets it up, or source a '
                           'distribution') from None
    source = options.urdf or example_robots() / PANDA
    model, text = load_model(source), read_urdf_text(source)
    return int(run_demo(model, text, seconds=options.seconds, picture=options.picture,
                        plot=options.plot, record=options.record))
