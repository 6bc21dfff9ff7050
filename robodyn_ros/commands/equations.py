"""`robodyn equations`: the closed forms of the equations of motion of a small arm."""

from __future__ import annotations

import argparse

from robodyn_ros.commands.options import (
    add_choice,
    add_robot,
    numbers_of,
    robot_of,
    split_pairs,
)
from robodyn_ros.export.symbolic import equations
from robodyn_ros.export.symbolic_text import FORMATS, text_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_robot(parser)
    parser.add_argument('--terms', default='M,c,g', metavar='LIST',
                        help='terms, separated by commas: M, C, c (= C qd), g (default: M,c,g)')
    add_choice(parser, '--format', 'FORMAT', 'form of the output', FORMATS, 'markdown')
    parser.add_argument('--lumped', action='store_true',
                        help='in lumped parameters p1, p2, ... with their definitions')
    parser.add_argument('--lock', nargs='+', default=[], metavar='JOINT:=POSITION',
                        help='joints that are held at a position, rad or m')
    parser.add_argument('--names', nargs='+', default=[], metavar='SYMBOL:=NAME',
                        help='other names of symbols, for example q1:=theta')


def run(options: argparse.Namespace) -> int:
    """Derive and print the equations."""
    model = robot_of(options, locked_joints=numbers_of(options.lock, '--lock'))
    found = equations(model, names=dict(split_pairs(options.names, '--names', 'symbol:=name')))
    print(text_of(found.lumped() if options.lumped else found, options.terms.split(','),
                  options.format))
    return 0
