"""`robodyn reproduce`: repeats a published experiment, from the plan to the validation."""

from __future__ import annotations

import argparse
import sys

from robodyn_ros.commands.options import add_choice
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.packages import package

EXPERIMENTS = ('lwr4',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('experiment', choices=EXPERIMENTS, metavar='EXPERIMENT',
                        help='lwr4: the identification of a KUKA LWR 4+ in Kolyubin 2017, '
                        'section 5.8')
    parser.add_argument('--budget', type=float, default=30.0, metavar='SECONDS',
                        help='duration of the search for each optimised motion (default: 30)')
    parser.add_argument('--seed', type=int, default=0, metavar='NUMBER',
                        help='seed of motions and noise (default: 0)')
    add_choice(parser, '--motions', 'MOTIONS', 'motions to run', ('all', 'trapezoid'), 'all')


def run(options: argparse.Namespace) -> int:
    """Run the experiment and print its tables beside the published ones."""
    if not 1 <= options.budget <= 3600:
        raise ValueRangeError('--budget', options.budget, 'from 1 to 3600')
    experiment = package('robodyn_ros.reproduce.lwr4')
    motions = experiment.MOTIONS if options.motions == 'all' else (options.motions,)
    found = experiment.reproduce_lwr4(
        budget=options.budget, seed=options.seed, motions=motions,
        progress=lambda step: print(step, file=sys.stderr, flush=True))
    print(package('robodyn_ros.reproduce.lwr4_tables').report(found))
    return 0
