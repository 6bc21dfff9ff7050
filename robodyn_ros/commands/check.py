"""`robodyn check`: checks a robot description, and adds missing inertials."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from robodyn_ros.check import check_model, check_robot, compare_formulations, mesh_folders
from robodyn_ros.commands.options import add_robot, robot_of, xacro_arguments
from robodyn_ros.commands.output import add_force, refuse_existing
from robodyn_ros.description.repair import add_missing_inertials
from robodyn_ros.description.urdf import read_text
from robodyn_ros.files import write_text
from robodyn_ros.model import load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_robot(parser)
    parser.add_argument('--json', action='store_true', help='print the report as JSON')
    parser.add_argument('--fix', type=Path, metavar='OUT.urdf',
                        help='write a copy in which missing inertials are estimated from the '
                        'collision geometry, and check that copy')
    parser.add_argument('--density', type=float, default=1000.0, metavar='DENSITY',
                        help='density for --fix, kg/m^3 (default: 1000)')
    parser.add_argument('--formulations', action='store_true',
                        help='compare the equations of motion from Lagrange-Euler, Newton-Euler '
                        'and the regressor instead')
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    """Print the report; return 1 if the description is faulty or the formulations differ."""
    if options.formulations:
        formulations = compare_formulations(robot_of(options))
        print(formulations.to_json() if options.json else formulations.to_text())
        return formulations.exit_code
    arguments = xacro_arguments(options)
    if options.fix is None:
        report = check_robot(options.urdf, motors=options.motors, xacro_arguments=arguments,
                             trust_xacro=options.trust)
    else:
        refuse_existing(options, options.fix)
        folders = mesh_folders(options.urdf)
        text, done = add_missing_inertials(
            read_text(options.urdf, arguments, trust_xacro=options.trust), options.density,
            folders=folders)
        report = check_model(load_model(text, motors=options.motors), folders=folders)
        write_text(options.fix, text)
        for link, what in done.items():
            print(f'link {link}: {what}', file=sys.stderr)
        print(f'{options.fix} was written'
              + ('' if done else '; no inertial was missing'), file=sys.stderr)
    print(report.to_json() if options.json else report.to_text())
    return report.exit_code
