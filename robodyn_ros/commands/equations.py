"""`robodyn equations`: the equations of motion, in closed form or as a recursion."""

from __future__ import annotations

import argparse
import sys

from robodyn_ros.commands.options import (
    add_choice,
    add_loops,
    add_robot,
    numbers_of,
    robot_of,
    split_pairs,
)
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.export.recursive import recursion, recursion_text
from robodyn_ros.export.symbolic import MOST_JOINTS, equations
from robodyn_ros.export.symbolic_text import FORMATS, text_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_robot(parser)
    add_loops(parser)
    parser.add_argument('--recursion', action='store_true',
                        help='write the Newton-Euler recursion symbol by symbol; the default for '
                        f'arms with more than {MOST_JOINTS} joints')
    parser.add_argument('--terms', default='M,c,g', metavar='LIST',
                        help='terms, separated by commas: M, C, c (= C qd), g (default: M,c,g)')
    add_choice(parser, '--format', 'FORMAT', 'form of the output', FORMATS, 'markdown')
    parser.add_argument('--lumped', action='store_true',
                        help='write closed forms in lumped parameters p1, p2, ...')
    parser.add_argument('--lock', nargs='+', default=[], metavar='JOINT=POSITION',
                        help='joints that are held at a position, rad or m')
    parser.add_argument('--names', nargs='+', default=[], metavar='SYMBOL:=NAME',
                        help='other names of symbols, for example q1:=theta')


def run(options: argparse.Namespace) -> int:
    """Derive and print the equations."""
    model = robot_of(options, locked_joints=numbers_of(options.lock, '--lock'))
    if options.recursion or (model.n > MOST_JOINTS and options.loops is None):
        if options.lumped or options.names or options.loops is not None:
            raise ValueRangeError('--lumped, --names or --loops', 'given', 'closed forms of up '
                                  f'to {MOST_JOINTS} joints, where --lock holds the others')
        if not options.recursion:
            print(f'The robot has {model.n} joints, so closed forms would be too long; this is '
                  'the recursion', file=sys.stderr)
        print(recursion_text(recursion(model), options.format))
        return 0
    found = equations(model, names=dict(split_pairs(options.names, '--names', 'symbol:=name')),
                      loops=options.loops)
    print(text_of(found.lumped() if options.lumped else found, options.terms.split(','),
                  options.format))
    return 0
