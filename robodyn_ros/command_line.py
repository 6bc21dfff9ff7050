"""What the commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robodyn_ros.building import load_model
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.model import Model


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a robot: a file, what xacro is to know, motor data."""
    parser.add_argument('urdf', type=Path, help='URDF or xacro file')
    parser.add_argument('xacro', nargs='*', metavar='name:=value',
                        help='arguments of a xacro file')
    parser.add_argument('--motors', type=Path, help='YAML with motor data')


def xacro_arguments(options: argparse.Namespace) -> dict[str, str]:
    """Return ``name: value`` of what xacro is to know."""
    return {name: value for name, value in _split(options.xacro, 'argument', 'name:=value')}


def robot_of(options: argparse.Namespace, **choices: Any) -> Model:
    """Load the robot that `add_robot`'s arguments name."""
    return load_model(options.urdf, motors=options.motors,
                      xacro_arguments=xacro_arguments(options), **choices)


def numbers_of(entries: Sequence[str], option: str) -> dict[str, float]:
    """Return ``joint: number`` of ``joint:=number``."""
    pairs = {}
    for name, value in _split(entries, option, 'joint:=number'):
        try:
            pairs[name] = float(value)
        except ValueError:
            raise UnknownNameError(option, f'{name}:={value}', ['joint:=number']) from None
    return pairs


def _split(entries: Sequence[str], what: str, form: str) -> list[tuple[str, str]]:
    pairs = []
    for entry in entries:
        name, separator, value = entry.partition(':=')
        if not separator:
            raise UnknownNameError(what, entry, [form])
        pairs.append((name, value))
    return pairs
