"""`robodyn fleet`: identifies many robots from many logs, and compares them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from robodyn_ros.commands.output import add_force, progress_bar, refuse_existing
from robodyn_ros.files import whole_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(required=True, metavar='ACTION')

    def action(name: str, summary: str,
               function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        child: argparse.ArgumentParser = actions.add_parser(
            name, help=summary, formatter_class=parser.formatter_class,
            description=f'{summary[0].upper()}{summary[1:]}.')
        child.set_defaults(action=function)
        return child

    _add_identify(action('identify', 'identify every robot of a catalogue from each of its logs',
                         _identify))
    _add_report(action('report', 'write a page on what changed, what differs and which robots '
                       'need attention', _report))
    _add_merge(action('merge', 'fit each robot to all its logs together', _merge))
    _add_query(action('query', 'answer a question in SQL about the table `results`', _query))
    _add_simulate(action('simulate', 'write the logs of a simulated fleet with worn joints',
                         _simulate))


def _add_identify(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('catalogue', type=Path, metavar='CATALOGUE',
        help='YAML file with the robots, or a folder ROBOT/DATE/LOG')
    add('-o', '--output', type=Path, required=True, metavar='FOLDER',
        help='folder of the results; results that are there already are not computed again')
    add('--scheduler', metavar='ADDRESS',
        help='address of a Dask scheduler (default: workers on this machine)')
    add('--workers', type=int, metavar='NUMBER',
        help='worker processes on this machine (default: one for each core)')


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('results', type=Path, metavar='FOLDER', help='folder of the results')
    add('-o', '--output', type=Path, default=Path('fleet.html'), metavar='FILE',
        help='the page (default: fleet.html)')
    add('--false-alarms', type=float, default=0.01, metavar='FRACTION',
        help='expected fraction of false findings among all findings (default: 0.01)')
    add_force(parser)


def _add_merge(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('results', type=Path, metavar='FOLDER', help='folder of the results')
    add('-o', '--output', type=Path, default=Path('merged.csv'), metavar='FILE',
        help='table of the parameters, .csv or .parquet (default: merged.csv)')
    add('--since', metavar='DATE', help='first date of the logs, for example 2026-11-01 '
        '(default: that of the first log)')
    add('--until', metavar='DATE', help='last date of the logs (default: that of the last log)')
    add_force(parser)


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('results', type=Path, metavar='FOLDER', help='folder of the results')
    parser.add_argument('sql', metavar='SQL', help='for example "select robot, count(*) from '
                        'results group by robot"')


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('folder', type=Path, metavar='FOLDER', help='a new folder')
    parser.add_argument('--urdf', type=Path, required=True, metavar='FILE', help='the robot')
    for name, default, meaning in (('robots', 10, 'number of robots'),
                                   ('logs', 12, 'logs of each robot, one a week'),
                                   ('worn', 1, 'robots with a worn joint'),
                                   ('seed', 0, 'seed of the random numbers')):
        parser.add_argument(f'--{name}', type=int, default=default, metavar='NUMBER',
                            help=f'{meaning} (default: {default})')


def run(options: argparse.Namespace) -> int:
    """Run the action; return its exit code."""
    return int(options.action(options))


def _identify(options: argparse.Namespace) -> int:
    from robodyn_ros.fleet import identify_fleet, read_catalogue

    catalogue = read_catalogue(options.catalogue)
    with progress_bar() as bar:
        task = bar.add_task('', total=len(catalogue))
        summary = identify_fleet(
            catalogue, options.output, scheduler=options.scheduler, workers=options.workers,
            progress=lambda count, name: bar.update(
                task, completed=count, description=f'{count}/{len(catalogue)} {name[-40:]}'))
    print(summary.to_text())
    return 0


def _report(options: argparse.Namespace) -> int:
    from robodyn_ros.fleet import find, read_results, save_fleet_report

    refuse_existing(options, options.output)
    results = read_results(options.results)
    findings = find(results, false_alarms=options.false_alarms)
    with whole_file(options.output) as temporary:
        save_fleet_report(results, findings, temporary, false_alarms=options.false_alarms)
    for change in findings.changes.itertuples():
        print(f'{change.robot}: {change.parameter} {change.change:+.1%} since '
              f'{change.date:%Y-%m-%d} (p {change.p:.1g})')
    print(f'{len(findings.changes)} changed parameters, {len(findings.outliers)} outlying logs, '
          f'{len(findings.bad)} unusable logs; written to {options.output}')
    return 0


def _merge(options: argparse.Namespace) -> int:
    from robodyn_ros.fleet import merge_results

    refuse_existing(options, options.output)
    table = merge_results(options.results, since=options.since, until=options.until)
    with whole_file(options.output) as temporary:
        if options.output.suffix == '.parquet':
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)
    for robot, own in table.groupby('robot'):
        ratio = (own.standard_deviation / own.of_one_log).median()
        print(f'{robot}: {len(own)} base parameters from {own.logs.iloc[0]} logs, '
              f'{own["first"].iloc[0]:%Y-%m-%d} to {own["last"].iloc[0]:%Y-%m-%d}; median '
              f'standard deviation {ratio:.2f} times that of one log')
    print(f'written to {options.output}')
    return 0


def _query(options: argparse.Namespace) -> int:
    from robodyn_ros.fleet import query

    print(query(options.results, options.sql).to_string(index=False))
    return 0


def _simulate(options: argparse.Namespace) -> int:
    from robodyn_ros.fleet import simulate_fleet

    wear = simulate_fleet(options.folder, options.urdf, robots=options.robots, logs=options.logs,
                          worn=options.worn, seed=options.seed)
    for one in wear:
        print(f'{one.robot}: {one.joint} is worn since {one.since}')
    print(f'{options.robots * options.logs} logs and catalogue.yaml written to {options.folder}')
    return 0
