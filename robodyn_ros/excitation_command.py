"""The command `robodyn excite`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robodyn_ros.check import mesh_folders
from robodyn_ros.command_line import add_robot, numbers_of, robot_of
from robodyn_ros.errors import LogError, ValueRangeError


def add_commands(commands: Any) -> None:
    """Add it to the command line."""
    excite = commands.add_parser('excite', help='find the best motion for an identification')
    add_robot(excite)
    excite.add_argument('-o', '--output', type=Path, default=Path('excitation.yaml'))
    excite.add_argument('--lock', nargs='+', default=[], metavar='JOINT:=POSITION',
                        help='joints that do not take part')
    excite.add_argument('--validation', type=Path, help='write a second, different motion here')
    excite.add_argument('--picture', type=Path, help='write a picture here')
    excite.add_argument('--kind', choices=('rigid', 'lumped', 'model1'), default='lumped')
    excite.add_argument('--criterion', choices=('condition', 'determinant'), default='condition')
    excite.add_argument('--scaling', choices=('columns', 'none'), default='columns')
    excite.add_argument('--period', type=float, help='s (default: proposed from the limits)')
    excite.add_argument('--harmonics', type=int, help='default: by the number of parameters')
    excite.add_argument('--periods', type=int, default=1, help='how often it is played')
    excite.add_argument('--resonance', type=float, help='Hz, the first one of the robot')
    excite.add_argument('--tool', help='link that height and distance are about')
    excite.add_argument('--height', type=float, help='lowest z of the tool, m')
    excite.add_argument('--distance', type=float, help="least distance from the base's axis, m")
    excite.add_argument('--floor', type=float, help='height of a floor for all links, m')
    excite.add_argument('--self-collision', action='store_true', help='keep links apart')
    excite.add_argument('--torque-margin', type=float, default=0.1,
                        help='share of the torque limits kept in reserve (default 0.1)')
    excite.add_argument('--speed', type=float, default=1.0,
                        help='share of the velocity limits that is used (default 1)')
    excite.add_argument('--mean-torque', nargs='+', default=[], metavar='JOINT:=N m',
                        help='goals of mean |torque| beside the condition number')
    excite.add_argument('--condition-goal', type=float, default=35.0)
    excite.add_argument('--budget', type=float, default=30.0, help='s (default 30)')
    excite.add_argument('--seed', type=int, default=0)
    excite.set_defaults(run=run_excite)


def run_excite(options: argparse.Namespace) -> int:
    """Find, prove and write an excitation; Ctrl-C keeps the best so far."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from robodyn_ros.excitation import (
        Limits,
        Plan,
        Progress,
        optimise_excitation,
        validation_plan,
    )
    from robodyn_ros.report.excitation_plot import save_excitation_plot

    model = robot_of(options, locked_joints=numbers_of(options.lock, '--lock'))
    if not 0 < options.speed <= 1:
        raise ValueRangeError('--speed', options.speed, 'above 0, at most 1')
    limits = Limits(
        velocity=model.velocity_limit * options.speed, torque_margin=options.torque_margin,
        tool=options.tool, height=options.height, distance=options.distance, floor=options.floor,
        self_collision=options.self_collision, mesh_folders=mesh_folders(options.urdf))
    plan = Plan(kind=options.kind, criterion=options.criterion, scaling=options.scaling,
                period=options.period, harmonics=options.harmonics, periods=options.periods,
                resonance=options.resonance,
                mean_torque=numbers_of(options.mean_torque, '--mean-torque'),
                condition_goal=options.condition_goal, budget=options.budget, seed=options.seed)
    wanted = [(options.output, plan)]
    for path, one in wanted:
        with Bar(TextColumn('{task.description}'), BarColumn(), TimeElapsedColumn(),
                 transient=True) as bar:
            task = bar.add_task('searching', total=options.budget)

            def tell(state: Progress, bar: Any = bar, task: Any = task) -> None:
                bar.update(task, completed=state.seconds,
                           description=f'best condition {state.condition:.4g} '
                                       f'({state.evaluations} motions tried)')

            found = optimise_excitation(model, limits, one, progress=tell)
        try:
            path.write_text(found.to_yaml(), encoding='utf-8')
        except OSError as error:
            raise LogError(f'cannot be written: {error.strerror}', source=str(path)) from None
        _say(path, found)
        if path == options.output:
            if options.picture is not None:
                save_excitation_plot(model, found, limits, options.picture)
            if options.validation is not None:
                wanted.append((options.validation, validation_plan(found, one)))
    return 0


def _say(path: Path, found: Any) -> None:
    facts, proof = found.facts, found.facts['proof']
    print(f'{path}: {found.harmonics} harmonics of {found.period:.4g} s, {found.periods} times')
    print(f'  condition {facts["condition"]:.4g} of {facts["base_parameters"]} base parameters '
          f'({facts["kind"]}, scaling: {facts["scaling"]})')
    print(f'  every limit proven at {proof["rate"]:g} Hz; closest: {proof["closest"]} '
          f'({proof["reserve"]:.2%} left)')
    torques = ' '.join(f'{value:.3g}' for value in facts['mean_torque'])
    print(f'  mean |torque|: {torques}')
    print(f'  {facts["evaluations"]} motions in {facts["seconds"]:.1f} s')
    for note in facts['notes']:
        print(f'  {note}')

