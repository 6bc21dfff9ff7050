"""`robodyn export`: writes equations of motion as plain C, or parameter values for such code."""

from __future__ import annotations

import argparse
from pathlib import Path

from robodyn_ros.commands.options import add_base, add_loops, add_robot, robot_of
from robodyn_ros.commands.output import add_force, refuse_existing
from robodyn_ros.description.yaml import read_yaml
from robodyn_ros.dynamics.efforts import commanded_model
from robodyn_ros.errors import RobodynError
from robodyn_ros.export import export_c, values_text
from robodyn_ros.export.functions import DEFAULT_TERMS, LINK_TERMS, TERMS
from robodyn_ros.export.package import UNDECLARED
from robodyn_ros.files import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add_robot(parser)
    add_loops(parser)
    add_base(parser)
    add('-o', '--output', type=Path, required=True, metavar='PATH',
        help='folder for the code; with --values, the file')
    add_force(parser)
    add('--terms', type=lambda text: text.split(','), default=list(DEFAULT_TERMS),
        metavar='TERM,TERM',
        help=f'what is exported: {", ".join((*TERMS, *(f"{kind}:LINK" for kind in LINK_TERMS)))} '
        f'(default: {",".join(DEFAULT_TERMS)})')
    add('--prefix', metavar='NAME', help="prefix of all names (default: the robot's name)")
    add('--single', action='store_true', help='32-bit numbers instead of 64-bit ones')
    add('--own-sincos', action='store_true',
        help="polynomials for sine and cosine instead of the C library's functions: faster, with "
        'the same results on every machine')
    add('--parametric', action='store_true',
        help='make the dynamic parameters an argument of the functions, so that they can be '
        'replaced and payloads added at run time')
    add('--friction-width', type=float, metavar='SPEED',
        help='width over which dry friction changes its sign at all joints, rad/s or m/s; 0: the '
        'sign itself (default: those of the motor file)')
    add('--for-commands', action='store_true',
        help='leave out the gravity and friction that the robot adds to commanded torques, as '
        'commands_add in the section effort of the motor file says')
    add('--license', default=UNDECLARED, metavar='NAME',
        help='licence of the package, for its package.xml, for example Apache-2.0')
    add('--values', action='store_true',
        help='write the parameter values of the robot for code that was exported with '
        '--parametric, instead of code')


def run(options: argparse.Namespace) -> int:
    """Write the files and name them."""
    refuse_existing(options, options.output)
    model, origin = robot_of(options, base=options.base), origin_of(options.urdf)
    if options.values:
        write_text(options.output, values_text(model, origin))
        print(f'{options.output}: {len(model.standard_parameters)} parameter values')
        return 0
    added = model.effort.commands_add
    if options.for_commands:
        model = commanded_model(model)
    elif added:
        print(f'The robot adds {" and ".join(added)} to commands; this code contains them as '
              'well. With --for-commands it would not.')
    files = export_c(model, options.output, terms=options.terms, prefix=options.prefix,
                     single=options.single, own_sincos=options.own_sincos,
                     parametric=options.parametric, loops=options.loops,
                     friction_width=options.friction_width, origin=origin,
                     license=options.license)
    print(f'Written to {options.output}:')
    for path in files:
        print(f'  {path.name}')
    return 0


def origin_of(urdf: Path) -> str:
    """Return a description of the run in which a URDF was identified; '' for other URDFs.

    `robodyn identify` marks its URDF, and writes parameters.yaml with the logs beside it.
    """
    try:
        if 'identified by robodyn' not in urdf.read_text(encoding='utf-8', errors='replace'):
            return ''
        content = read_yaml(urdf.parent / 'parameters.yaml')
        logs = ', '.join(f'{log["source"]} (SHA-256 {log["sha256"][:16]}...)'
                         for log in content['provenance']['logs'])
        verdict = content.get('validation', {}).get('verdict', 'none')
    except (OSError, RobodynError, KeyError, TypeError, AttributeError):
        return 'identified by robodyn; parameters.yaml of the run was not found beside the URDF'
    return f'identified by robodyn from {logs}; verdict of the validation: {verdict}'
