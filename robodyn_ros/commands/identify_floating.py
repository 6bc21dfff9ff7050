"""`robodyn identify` of a robot with a floating base."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robodyn_ros._version import __version__
from robodyn_ros.errors import LogError, ValueRangeError
from robodyn_ros.experiment.results import FIT_FRACTION, MOTORS, PARAMETERS, URDF
from robodyn_ros.files import write_text
from robodyn_ros.identification import (
    FloatingBaseLog,
    FloatingBaseResult,
    floating_base_motion,
    identify_floating_base,
    read_floating_base_log,
    save_motors,
    write_urdf,
)
from robodyn_ros.model import Model
from robodyn_ros.report.record import RECORD

# options that only robots with a fixed base have, with their defaults
UNUSED: dict[str, Any] = {
    'validate': [], 'validate_loaded': [], 'loaded': [], 'payload': None, 'payload_mass': None,
    'gains': False, 'cross_validate': False, 'loops': None, 'slow': None, 'guard': None,
    'period': None, 'joints': None, 'torques_of': None, 'friction_width': None,
    'torque_delay': None, 'reduce': False, 'order': None, 'corridor': None, 'decimation': None,
    'accept': [], 'kind': 'lumped', 'friction': 'auto', 'method': 'weighted',
    'fit_fraction': FIT_FRACTION, **dict.fromkeys(RECORD, '')}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add('--contacts', nargs='+', default=[], metavar='LINK',
        help='floating base: links on which unknown forces act at the origins of their frames; '
        'they are eliminated')
    add('--surfaces', nargs='+', default=[], metavar='LINK',
        help='floating base: links on which unknown forces and moments act')


def run(options: argparse.Namespace, model: Model) -> int:
    """Identify and write.

    Raises
    ------
    ValueRangeError
        An option is only for robots with a fixed base.
    """
    for name, default in UNUSED.items():
        if getattr(options, name) != default:
            raise ValueRangeError(f'--{name.replace("_", "-")}', getattr(options, name),
                                  'none for a floating base')
    if not options.logs:
        raise LogError('no log is named', source='LOG', valid='one or more logs')
    logs = [read_floating_base_log(path, model, options.format) for path in options.logs]
    motion = floating_base_motion(model, logs, cutoff=options.cutoff)
    found = identify_floating_base(
        model, motion.q, motion.qd, motion.qdd, torques=motion.torques, wrenches=motion.wrenches,
        contacts={**motion.contacts, **{link: np.ones(len(motion.t), bool)
                                        for link in options.contacts}},
        surfaces=options.surfaces)
    for note in motion.notes:
        print(note)
    measured = ['torques of the joints'] * (motion.torques is not None) + [
        f'wrench on {link}' for link in motion.wrenches] + [
        f'contact of {link}' for link in motion.contacts]
    print(f'{len(motion.q)} samples, filtered at {motion.cutoff:.3g} Hz; measured: '
          f'{", ".join(measured) or "the motion alone"}')
    equations = 'six of the base' if motion.torques is None else 'base and joints'
    print(f'equations: {equations}; {found.base.count} base parameters')
    print(f'unexplained forces on the last quarter, which was left out of the fit: '
          f'{found.error:.2%} (description {found.nominal_error:.2%})')
    _write(options.output, model, logs, found, motion.torques is not None, motion.cutoff, options)
    print(f'Written to {options.output}')
    return 0


def _write(folder: Path, model: Model, logs: Sequence[FloatingBaseLog],
           found: FloatingBaseResult, torques: bool, cutoff: float,
           options: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    values = {name: float(value) for name, value in zip(
        found.model.parameter_names, found.model.standard_parameters, strict=True)}
    content = {
        'robot': model.name,
        'provenance': {'robodyn_ros': __version__, 'numpy': np.__version__, 'logs': [
            {'source': log.source, 'sha256': log.digest} for log in logs],
            'contacts': list(options.contacts), 'surfaces': list(options.surfaces),
            'torques': torques},
        'filters': {'cutoff': float(cutoff)},  # Hz
        'error': {'identified': found.error, 'description': found.nominal_error},
        'base_parameters': dict(zip(found.base.names, found.base.expressions, strict=True)),
        'consistent_parameters': values}
    write_text(folder / PARAMETERS, yaml.safe_dump(content, sort_keys=False, allow_unicode=True,
                                                   width=100))
    write_urdf(found.model, folder / URDF)
    save_motors(found.model, folder / MOTORS)
