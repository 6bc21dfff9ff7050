"""Arguments that several commands have in common, and their evaluation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robodyn_ros.errors import UnknownNameError
from robodyn_ros.model import Model, load_model
from robodyn_ros.model.build import BASES


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a robot: its file, xacro arguments, motor data."""
    parser.add_argument('urdf', type=Path, help='URDF, xacro, SDF or MJCF file')
    parser.add_argument('xacro', nargs='*', metavar='name:=value',
                        help='arguments of a xacro file')
    parser.add_argument('--trust', action='store_true', help='xacro files can run code: do not '
                        'expand this one in a sandbox')
    add_motors(parser)


def add_motors(parser: argparse.ArgumentParser) -> None:
    """Add the option for motor data."""
    parser.add_argument('--motors', type=Path, metavar='FILE', help='YAML file with motor data')


def add_loops(parser: argparse.ArgumentParser) -> None:
    """Add the option for closed loops."""
    parser.add_argument('--loops', type=Path, metavar='FILE',
                        help='YAML file that describes the closed loops of the robot')


def add_choice(parser: argparse.ArgumentParser, option: str, metavar: str, meaning: str,
               choices: Sequence[str], default: str) -> None:
    """Add an option with a word from a list, which its help names."""
    parser.add_argument(option, metavar=metavar, choices=choices, default=default,
                        help=f'{meaning}: {", ".join(choices)} (default: {default})')


def add_base(parser: argparse.ArgumentParser) -> None:
    """Add the option for a floating base."""
    add_choice(parser, '--base', 'BASE', 'whether the root link moves freely', BASES, 'auto')


def add_kind(parser: argparse.ArgumentParser, kinds: Sequence[str]) -> None:
    """Add the option for the kind of the linear model."""
    add_choice(parser, '--kind', 'KIND', 'kind of the linear model', kinds, 'lumped')


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Add the options for the filter of positions, and for the reduction."""
    add = parser.add_argument
    add('--cutoff', type=float, metavar='HZ',
        help='cut-off frequency of the filter of positions (default: from the motion)')
    add('--order', type=int, metavar='COUNT', help='order of this filter (default: 4)')
    add('--corridor', nargs=4, type=float, metavar=('PASS', 'LOSS', 'STOP', 'ATTENUATION'),
        help='instead of --cutoff and --order: end of the pass band (Hz) and the largest loss in '
        'it (dB), start of the stop band and the smallest attenuation in it')
    add('--reduce', action='store_true',
        help='also estimate, print and write the significant parameters alone')


def xacro_arguments(options: argparse.Namespace) -> dict[str, str]:
    """Return the xacro arguments as ``name: value``."""
    return {name: value for name, value in split_pairs(options.xacro, 'argument', 'name:=value')}


def robot_of(options: argparse.Namespace, **choices: Any) -> Model:
    """Load the robot that the arguments of `add_robot` name."""
    return load_model(options.urdf, motors=options.motors,
                      xacro_arguments=xacro_arguments(options), trust_xacro=options.trust,
                      **choices)


def numbers_of(entries: Sequence[str], option: str,
               form: str = 'joint:=number') -> dict[str, float]:
    """Return ``name: number`` of entries of a form such as ``joint:=number``, or with ``=``.

    Raises
    ------
    UnknownNameError
        An entry is not of this form.
    """
    pairs = {}
    for entry in entries:
        both = entry if ':=' in entry else entry.replace('=', ':=', 1)
        for name, value in split_pairs([both], option, form):
            try:
                pairs[name] = float(value)
            except ValueError:
                raise UnknownNameError(option, entry, [form]) from None
    return pairs


def split_pairs(entries: Sequence[str], what: str, form: str) -> list[tuple[str, str]]:
    """Return the name and the value of entries that read ``name:=value``.

    Raises
    ------
    UnknownNameError
        An entry is not of this form.
    """
    pairs = []
    for entry in entries:
        name, separator, value = entry.partition(':=')
        if not separator:
            raise UnknownNameError(what, entry, [form])
        pairs.append((name, value))
    return pairs
