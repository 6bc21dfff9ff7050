"""`robodyn identify`: estimates a robot's parameters from logs, validates and writes them."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import yaml

from robodyn_ros.commands import identify_floating
from robodyn_ros.commands.options import (
    add_base,
    add_choice,
    add_filter,
    add_kind,
    add_loops,
    add_motors,
    numbers_of,
)
from robodyn_ros.commands.output import add_force, progress_bar, refuse_existing
from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.errors import (
    IdentificationError,
    LogError,
    UnknownNameError,
    ValueRangeError,
)
from robodyn_ros.experiment.commanded import with_commanded
from robodyn_ros.experiment.results import (
    FIT_FRACTION,
    PHASES,
    Outcome,
    identify_and_write,
    split_logs,
)
from robodyn_ros.identification import (
    FilterSettings,
    Log,
    Settings,
    Thresholds,
    cross_validate,
    identify_drive_gains,
    read_log,
)
from robodyn_ros.model import Model, load_model
from robodyn_ros.model.kinds import FRICTION_NAMES, KIND_NAMES, METHODS, RESIDUAL_MODELS
from robodyn_ros.report.record import RECORD, Record, hashes_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add('logs', nargs='*', type=Path, metavar='LOG',
        help='bag (folder, .db3, .mcap; .bag of ROS 1), or .csv, .npz, .mat or .parquet file')
    add('--urdf', type=Path, required=True, metavar='FILE',
        help='URDF, xacro, SDF or MJCF file of the robot')
    add_motors(parser)
    add_loops(parser)
    add_base(parser)
    identify_floating.add_arguments(parser)
    add('-o', '--output', type=Path, default=Path('identified'), metavar='FOLDER',
        help='folder for the results (default: identified)')
    add_force(parser)
    add('--validate', nargs='+', type=Path, default=[], metavar='LOG',
        help='logs of other motions, used for the validation only')
    add('--validate-loaded', nargs='+', type=Path, default=[], metavar='LOG',
        help='the same, with the payload attached')
    add('--fit-fraction', type=float, default=FIT_FRACTION, metavar='FRACTION',
        help='without --validate: the first part of each log that is used for the fit; the rest '
        f'is kept for the validation (default: {FIT_FRACTION:g})')
    add('--format', type=Path, metavar='FILE', help='YAML file that describes the logs')
    add_kind(parser, KIND_NAMES)
    add_choice(parser, '--friction', 'MODEL', 'friction model', FRICTION_NAMES, 'auto')
    add_choice(parser, '--method', 'METHOD', 'method of the estimate', METHODS, 'weighted')
    add_choice(parser, '--residual-model', 'MODEL', 'model of what rigid bodies and friction do '
               'not explain, kept where it lowers the error on data left out of the fit',
               RESIDUAL_MODELS, 'none')
    add_filter(parser)
    add('--decimation', type=float, metavar='HZ',
        help='cut-off frequency of the parallel filter; 0 switches it off')
    add('--slow', type=float, nargs='+', metavar='SPEED',
        help='samples below this speed are left out, rad/s or m/s; one number for all joints, or '
        'one for each')
    add('--guard', type=float, metavar='SECONDS',
        help='samples this close to a slow one are left out as well (default: as far as the '
        'parallel filter reaches)')
    add('--period', type=float, metavar='SECONDS',
        help='period of a periodic motion: its periods are averaged (default: that of the '
        'motion which the recording server has kept beside the log, if there are several)')
    add('--joints', nargs='+', metavar='JOINT',
        help='estimate the parameters of these joints only; the others keep their nominal values')
    add('--accept', nargs='+', default=[], metavar='NAME:=NUMBER',
        help='thresholds of the verdict: ' + ', '.join(
            f'{field.name} ({field.default:g})' for field in fields(Thresholds)))
    for name, (_, meaning) in RECORD.items():
        add(f'--{name}', default='', metavar='TEXT', help=f'for the report: {meaning}')
    add('--torques-of', nargs='+', metavar='JOINT',
        help='joints whose measured torques are used (default: all)')
    add('--lock', nargs='+', default=[], metavar='JOINT=POSITION',
        help='joints that are held at a position, rad or m; joints that mimic them follow')
    add('--friction-width', type=float, metavar='FRACTION',
        help='width over which friction changes its direction, as a fraction of the fast speed '
        '(default: chosen from the data)')
    add('--torque-delay', type=float, metavar='SECONDS',
        help='time by which the torques are older than the positions (default: chosen from the '
        'data)')
    add('--payload', metavar='LINK', help='link that carries an unknown payload in --loaded logs')
    add('--payload-mass', type=float, metavar='KG', help='its mass, if it is known')
    add('--loaded', nargs='+', type=Path, default=[], metavar='LOG',
        help='further logs, with the payload attached')
    add('--gains', action='store_true',
        help='the logs hold currents: identify the drive gains from logs without and with '
        '(--loaded) a payload of known mass, print them and stop')
    add('--cross-validate', action='store_true',
        help='leave each log out once and predict it by a fit to the others; print the errors '
        'and how far the parameters scatter, write cross_validation.yaml, and stop')


def run(options: argparse.Namespace) -> int:
    """Identify, validate and write; return 1 if the verdict is bad."""
    refuse_existing(options, options.output)
    model = load_model(options.urdf, motors=options.motors, locked_joints=numbers_of(
        options.lock, '--lock', 'JOINT=POSITION'),
                       base=options.base)
    if model.floating:
        return identify_floating.run(options, model)
    robot = dynamics_of(model, options.loops)
    if options.gains:
        return _gains(options, model)
    settings = Settings(
        kind=options.kind, friction=options.friction, method=options.method,
        filter=FilterSettings(options.cutoff, options.order, None if options.corridor is None
                              else tuple(options.corridor)), decimation=options.decimation,
        slow=_slow(options, model), guard=options.guard, joints=options.joints,
        torques_of=options.torques_of, friction_width=options.friction_width,
        payload=options.payload, payload_mass=options.payload_mass,
        residual_model=options.residual_model, torque_delay=options.torque_delay)
    if options.cross_validate:
        return _cross_validate(options, robot, settings)
    thresholds = _thresholds(options.accept)
    fit, validation = _read_logs(options, robot)
    with progress_bar() as bar:
        task = bar.add_task('', total=len(PHASES))
        outcome = identify_and_write(
            robot, fit, validation, settings, options.output,
            command=shlex.join(['robodyn', *sys.argv[1:]]), thresholds=thresholds,
            record=_record(options), reduced=options.reduce,
            progress=lambda phase: bar.update(task, description=phase,
                                              completed=PHASES.index(phase)))
    _print(outcome, validation, options.output)
    if outcome.reduced is not None:
        print('\nSignificant parameters alone:')
        print(outcome.reduced.to_text())
    return int(outcome.validation.verdict == 'bad')


def _thresholds(entries: Sequence[str]) -> Thresholds:
    known = [field.name for field in fields(Thresholds)]
    values = numbers_of(entries, '--accept', 'NAME:=NUMBER')
    for name in values:
        if name not in known:
            raise UnknownNameError('threshold', name, known)
    return Thresholds(**values)


def _record(options: argparse.Namespace) -> Record:
    """Return the facts for the report, with the hashes of the files that were read."""
    files = hashes_of((options.urdf, options.motors, options.loops, options.format))
    return Record(**{name: getattr(options, name) for name in RECORD}, files=files)


def _slow(options: argparse.Namespace, model: Model) -> float | list[float] | None:
    if options.slow is None or len(options.slow) == model.n:
        return options.slow
    if len(options.slow) == 1:
        return float(options.slow[0])
    raise ValueRangeError('--slow', options.slow, f'one number, or {model.n}')


def _read_logs(options: argparse.Namespace, robot: RobotDynamics) -> tuple[list[Log], list[Log]]:
    """Return the logs for the fit and those for the validation."""
    logs = [log for part in _logs(options, robot) for log in part]
    if options.validate or options.validate_loaded:
        return logs, (_read(options, robot, options.validate)
                      + _read(options, robot, options.validate_loaded, loaded=True))
    return split_logs(logs, options.fit_fraction)


def _read(options: argparse.Namespace, robot: RobotDynamics, paths: Sequence[Path],
          loaded: bool = False) -> list[Log]:
    logs = [replace(read_log(path, robot, options.format), period=options.period, loaded=loaded)
            for path in paths]
    return [with_commanded(log, path) for log, path in zip(logs, paths, strict=True)]


def _logs(options: argparse.Namespace, robot: RobotDynamics) -> tuple[list[Log], list[Log]]:
    """Return the logs without and with the payload."""
    if not options.logs and not options.loaded:
        raise LogError('no log is named', source='LOG', valid='one or more logs')
    return (_read(options, robot, options.logs),
            _read(options, robot, options.loaded, loaded=True))


def _gains(options: argparse.Namespace, model: Model) -> int:
    """Print the drive gains."""
    missing = [f'--{name.replace("_", "-")}' for name in ('payload', 'payload_mass', 'loaded')
               if getattr(options, name) in (None, [])]
    if missing:
        raise IdentificationError(f'--gains also needs {" and ".join(missing)}: drive gains '
                                  'follow from logs without and with a payload of known mass')
    logs, loaded = _logs(options, dynamics_of(model, options.loops))
    gains = identify_drive_gains(model, logs + loaded, options.payload_mass, options.payload,
                                 kind=options.kind)
    for joint, value, deviation, (low, high) in zip(
            gains.joint_names, gains.values, gains.deviation, gains.interval, strict=True):
        print(f'{joint}: {value:.5g} N m/A, standard deviation {deviation:.2g}, '
              f'95 % from {low:.5g} to {high:.5g}')
    return 0


def _cross_validate(options: argparse.Namespace, robot: RobotDynamics, settings: Settings) -> int:
    """Cross-validate over the logs, print and write."""
    logs, loaded = _logs(options, robot)
    with progress_bar() as bar:
        task = bar.add_task('', total=len(logs) + len(loaded) + 1)
        found = cross_validate(robot, logs + loaded, settings, progress=lambda text: bar.update(
            task, description=text, advance=1))
    print(found.to_text())
    path = options.output / 'cross_validation.yaml'
    options.output.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(found.to_dict(), sort_keys=False), encoding='utf-8')
    print(f'\nWritten to {path}')
    return 0


def _print(outcome: Outcome, validation: Sequence[Log], folder: Path) -> None:
    for note in outcome.result.notes:
        print(textwrap.fill(note, 80, subsequent_indent='  '))
    print(outcome.result.to_text())
    print(f'\nValidation on {", ".join(log.source for log in validation)}:')
    print(outcome.validation.to_text())
    print(f'  with physically consistent parameters: {outcome.consistent.total:.2%} '
          f'({outcome.consistent.total_filtered:.2%} filtered)')
    print(f'\nWritten to {folder}:')
    for path in outcome.files:
        print(f'  {path.name}')
