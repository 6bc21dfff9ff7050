"""`robodyn excite`: optimises a motion for an identification."""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from robodyn_ros.check import mesh_folders
from robodyn_ros.commands.options import (
    add_choice,
    add_kind,
    add_loops,
    add_robot,
    numbers_of,
    robot_of,
)
from robodyn_ros.commands.output import add_force, progress_bar, refuse_existing
from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.excitation import (
    Excitation,
    Limits,
    Plan,
    Progress,
    optimise_excitation,
    validation_plan,
)
from robodyn_ros.excitation.criteria import CRITERIA, SCALINGS
from robodyn_ros.excitation.plan import SUBSYSTEM
from robodyn_ros.files import whole_file, write_text
from robodyn_ros.model.kinds import KINDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add_robot(parser)
    add_loops(parser)
    add('-o', '--output', type=Path, default=Path('excitation.yaml'), metavar='FILE',
        help='file for the motion (default: excitation.yaml)')
    add('--validation', type=Path, metavar='FILE',
        help='file for a second, different motion for the validation')
    add('--picture', type=Path, metavar='FILE', help='file for a picture of the motion')
    add_force(parser)
    add('--lock', nargs='+', default=[], metavar='JOINT=POSITION',
        help='joints that are held at a position, rad or m')
    add_kind(parser, KINDS)
    add('--payload', metavar='LINK', help='link that carries an unknown payload in a second run')
    add('--payload-mass', type=float, default=0.0, metavar='KG',
        help='its approximate mass, for the torque limits')
    add_choice(parser, '--criterion', 'WORD', 'criterion that is optimised', CRITERIA, 'condition')
    add_choice(parser, '--scaling', 'WORD', 'scaling of the observation matrix', SCALINGS,
               'columns')
    add('--period', type=float, metavar='SECONDS', help='default: proposed from the limits')
    add('--harmonics', type=_harmonics, metavar='COUNT',
        help='default: half the number of base parameters per joint; subsystem: half of those on '
        "which a joint's torque depends")
    add('--periods', type=int, default=1, metavar='COUNT',
        help='number of periods (default: 1)')
    add('--resonance', type=float, metavar='HZ',
        help='lowest resonance of the robot; the motion stays below it')
    add('--tool', metavar='LINK', help='link that --height and --distance refer to')
    add('--height', type=float, metavar='METRES', help='lowest height of the tool')
    add('--distance', type=float, metavar='METRES',
        help="least distance of the tool from the base's z axis")
    add('--floor', type=float, metavar='METRES',
        help='height of a floor that no link may touch')
    add('--self-collision', action='store_true', help='keep the links apart from each other')
    add('--torque-margin', type=float, default=0.1, metavar='FRACTION',
        help='fraction of the torque limits that is kept in reserve (default: 0.1)')
    add('--speed', type=float, default=1.0, metavar='FRACTION',
        help='fraction of the velocity limits that is used (default: 1)')
    add('--mean-torque', nargs='+', default=[], metavar='JOINT:=TORQUE',
        help='goals for the mean absolute torque, N m or N, besides the criterion')
    add('--condition-goal', type=float, default=35.0, metavar='NUMBER',
        help='with --mean-torque: goal for the condition number (default: 35)')
    add('--budget', type=float, default=30.0, metavar='SECONDS',
        help='duration of the search (default: 30); Ctrl-C ends it with the best motion so far')
    add('--seed', type=int, default=0, metavar='NUMBER',
        help='seed of the random starts (default: 0)')
    add('--searches', type=int, default=1, metavar='NUMBER',
        help='independent searches with further seeds, as many at a time as there are workers; '
        'the best motion is kept (default: 1)')
    add('--scheduler', metavar='ADDRESS',
        help='address of a Dask scheduler for the searches (default: workers on this machine)')


def run(options: argparse.Namespace) -> int:
    """Find, check and write one motion, or two with --validation."""
    refuse_existing(options, options.output, options.validation, options.picture)
    if not 0 < options.speed <= 1:
        raise ValueRangeError('--speed', options.speed, 'above 0, at most 1')
    robot = dynamics_of(robot_of(options, locked_joints=numbers_of(options.lock, '--lock')),
                        options.loops)
    limits = Limits(
        velocity=robot.joints.velocity_limit * options.speed, torque_margin=options.torque_margin,
        tool=options.tool, height=options.height, distance=options.distance, floor=options.floor,
        self_collision=options.self_collision, mesh_folders=mesh_folders(options.urdf))
    plan = Plan(kind=options.kind, payload=options.payload,
                payload_mass=options.payload_mass, criterion=options.criterion,
                scaling=options.scaling, period=options.period, harmonics=options.harmonics,
                periods=options.periods, resonance=options.resonance,
                mean_torque=numbers_of(options.mean_torque, '--mean-torque'),
                condition_goal=options.condition_goal, budget=options.budget, seed=options.seed)
    found = _search(options, robot, limits, plan)
    write_text(options.output, found.to_yaml())
    _print(options.output, found)
    if options.picture is not None:
        from robodyn_ros.report.excitation_plot import save_excitation_plot

        with whole_file(options.picture) as path:
            save_excitation_plot(robot, found, limits, path)
    if options.validation is not None:
        print('searching for the validation motion; Ctrl-C ends this search with its best',
              file=sys.stderr)
        second = _search(options, robot, limits, validation_plan(found, plan))
        write_text(options.validation, second.to_yaml())
        _print(options.validation, second)
    return 0


def _harmonics(text: str) -> int | str:
    return text if text == SUBSYSTEM else int(text)


def _search(options: argparse.Namespace, robot: RobotDynamics, limits: Limits,
            plan: Plan) -> Excitation:
    """Search, and show the best condition number so far in a progress bar."""
    if options.searches > 1 or options.scheduler:
        from robodyn_ros.fleet import search_excitations

        return search_excitations(robot, limits, plan, searches=options.searches,
                                  scheduler=options.scheduler)
    with progress_bar() as bar:
        task = bar.add_task('searching', total=plan.budget)

        def show(state: Progress) -> None:
            bar.update(task, completed=state.seconds,
                       description=f'best condition {state.condition:.4g} '
                                   f'({state.evaluations} motions tried)')

        return optimise_excitation(robot, limits, plan, progress=show)


def _print(path: Path, found: Excitation) -> None:
    print(textwrap.indent(f'{path}: {found.to_text()}', '  ').lstrip())
