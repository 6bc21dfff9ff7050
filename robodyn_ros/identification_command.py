"""The commands `robodyn identify` and `robodyn parameters`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from robodyn_ros.building import load_model
from robodyn_ros.command_line import add_robot, robot_of
from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.model import Model

FRICTIONS = ('auto', 'none', 'coulomb', 'asymmetric', 'stribeck', 'root', 'rich')
KINDS = ('rigid', 'lumped', 'model1', 'model2', 'model3')


def add_commands(commands: Any) -> None:
    """Add them to the command line."""
    identify = commands.add_parser('identify', help='find the true parameters from measured logs')
    identify.add_argument('logs', nargs='+', type=Path, metavar='LOG',
                          help='bag (folder, .db3, .mcap), .csv or .npz')
    identify.add_argument('--urdf', type=Path, required=True, help='URDF or xacro of the robot')
    identify.add_argument('--motors', type=Path, help='YAML with motor data')
    identify.add_argument('--loops', type=Path, help='YAML that closes the tree to loops')
    identify.add_argument('-o', '--output', type=Path, default=Path('identified'),
                          help='folder of the results (default: identified)')
    identify.add_argument('--validate', nargs='+', type=Path, default=[], metavar='LOG',
                          help='logs of other motions for the proof')
    identify.add_argument('--share', type=float, default=0.7, help='without --validate: this '
                          'share of each log is for the fit, the rest for the proof (default 0.7)')
    identify.add_argument('--format', type=Path, help='YAML that says how the logs are to be read')
    identify.add_argument('--kind', choices=KINDS, default='lumped')
    identify.add_argument('--friction', choices=FRICTIONS, default='auto')
    identify.add_argument('--method', choices=('weighted', 'ordinary', 'huber'),
                          default='weighted')
    identify.add_argument('--cutoff', type=float, help='Hz, of the filter of positions')
    identify.add_argument('--decimation', type=float, help='Hz, of the parallel filter; 0: none')
    identify.add_argument('--slow', type=float, nargs='+',
                          help='rad/s: slower samples do not count; one number, or one a joint')
    identify.add_argument('--guard', type=float, help='s about slow samples in which others do '
                          'not count either; default: where the parallel filter sees it')
    identify.add_argument('--period', type=float, help='s, of a periodic motion: average periods')
    identify.add_argument('--joints', nargs='+', help='estimate these, the rest stays nominal')
    identify.add_argument('--torques-of', nargs='+', help='joints whose torques count')
    identify.set_defaults(run=run_identify)
    parameters = commands.add_parser('parameters', help='list the base parameters of a robot')
    add_robot(parameters)
    parameters.add_argument('--kind', choices=KINDS, default='lumped')
    parameters.add_argument('--loops', type=Path, help='YAML that closes the tree to loops')
    parameters.set_defaults(run=run_parameters)


def run_parameters(options: argparse.Namespace) -> int:
    """Print the base parameters with what is regrouped into them."""
    from robodyn_ros.identification import base_parameters

    print(base_parameters(_closed(robot_of(options), options), options.kind).to_text())
    return 0


def run_identify(options: argparse.Namespace) -> int:
    """Identify, prove, write; return 0 where the verdict is not bad."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from robodyn_ros.identification import FilterSettings, Settings, read_log
    from robodyn_ros.report.results import PHASES, identify_and_write

    console = Console(highlight=False, soft_wrap=True)
    model = _closed(load_model(options.urdf, motors=options.motors), options)
    slow = None
    if options.slow is not None:
        slow = options.slow[0] if len(options.slow) == 1 else options.slow
        if isinstance(slow, list) and len(slow) != model.n:
            raise ValueRangeError('--slow', slow, f'one number, or {model.n}')
    settings = Settings(
        kind=options.kind, friction=options.friction, method=options.method,
        filter=FilterSettings(cutoff=options.cutoff), decimation=options.decimation, slow=slow,
        guard=options.guard, joints=options.joints, torques_of=options.torques_of)
    fit, proof = _read(options, model, read_log)
    with Progress(BarColumn(), TextColumn('{task.description}'), TimeElapsedColumn(),
                  console=console, transient=True) as bar:
        task = bar.add_task('', total=len(PHASES))
        outcome = identify_and_write(
            model, fit, proof, settings, options.output,
            command=shlex.join(['robodyn', *sys.argv[1:]]),
            progress=lambda phase: bar.update(task, description=phase,
                                              completed=PHASES.index(phase)))
    result, proven, consistent = outcome.result, outcome.proof, outcome.consistent
    console.print('\n'.join(result.notes), style='dim')
    console.print(result.to_text())
    console.print(f'\nProof on {", ".join(log.source for log in proof)}:')
    console.print(proven.to_text())
    console.print(f'  physically consistent: {consistent.total:.2%} '
                  f'({consistent.total_filtered:.2%} filtered)')
    names = ', '.join(path.name for path in outcome.files)
    console.print(f'\nwritten to {options.output}: {names}')
    return int(proven.verdict == 'bad')


def _closed(model: Model, options: argparse.Namespace) -> Model | ClosedLoopDynamics:
    return model if options.loops is None else ClosedLoopDynamics(model, options.loops)


def _read(options: argparse.Namespace, model: Any, read_log: Any) -> tuple[list[Any], list[Any]]:
    from robodyn_ros.report.results import shares

    def read(path: Path) -> Any:
        log = read_log(path, model, options.format)
        log.period = options.period
        return log

    logs = [read(path) for path in options.logs]
    if options.validate:
        return logs, [read(path) for path in options.validate]
    return shares(logs, options.share)
