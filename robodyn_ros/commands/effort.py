"""`robodyn effort`: finds out from logs what the efforts of a robot mean."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from robodyn_ros.commands.options import add_loops, add_motors
from robodyn_ros.description.effort import PRESETS
from robodyn_ros.dynamics import dynamics_of
from robodyn_ros.identification.effort_test import contradiction, find_effort_meaning
from robodyn_ros.identification.reading import read_log
from robodyn_ros.model import load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add('logs', nargs='*', type=Path, metavar='LOG',
        help='bag or table as of robodyn identify: the robot at rest in several poses, or in '
        'motion')
    add('--urdf', type=Path, metavar='FILE',
        help='URDF, xacro, SDF or MJCF file of the robot')
    add_motors(parser)
    add_loops(parser)
    add('--format', type=Path, metavar='FILE', help='YAML file that describes the logs')
    add('--presets', action='store_true',
        help='list the presets of the section effort of motor files, with their sources')


def run(options: argparse.Namespace) -> int:
    """Print what the efforts probably mean; return 1 if this contradicts the description."""
    if options.presets:
        for name, preset in PRESETS.items():
            print(f'{name}\n  {preset.meaning}\n  source: {preset.source}')
        return 0
    model = load_model(options.urdf, motors=options.motors)
    robot = dynamics_of(model, options.loops)
    found = find_effort_meaning(robot, [read_log(path, robot, options.format)
                                        for path in options.logs])
    print(found.to_text())
    if 'link side' not in found.best and not np.isnan(found.scale).all():
        print('  torque per unit of effort: ' + ', '.join(
            f'{name} {value:.4g}' for name, value in zip(found.joint_names, found.scale,
                                                         strict=True) if np.isfinite(value)))
    if model.effort.measured != 'torque' or model.effort.side != 'link':
        print(f'The motor file says: {model.effort}')
        return 0
    text = contradiction(model.effort, found)
    print(f'The description says: {model.effort}' + (f'; {text}' if text else ''))
    return int(bool(text))
