"""`robodyn inertia`: prints the <inertial> element of a solid, to paste into a URDF."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from robodyn_ros.description import solids
from robodyn_ros.description.urdf_writer import inertial_text
from robodyn_ros.errors import ValueRangeError

SIZES = {'box': ('x', 'y', 'z'), 'sphere': ('radius',), 'cylinder': ('radius', 'length'),
         'capsule': ('radius', 'length')}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of every solid."""
    commands = parser.add_subparsers(required=True, metavar='SOLID')
    for name, sizes in SIZES.items():
        solid = commands.add_parser(name, help=f'{", ".join(sizes)} in m'
                                    + ('; its axis is z' if 'length' in sizes else ''))
        for size in sizes:
            solid.add_argument(size, type=float, help='m')
        solid.set_defaults(solid=name, sizes=sizes)
    mesh = commands.add_parser('mesh', help='the volume that a mesh file encloses')
    mesh.add_argument('file', type=Path, help='STL, OBJ, PLY, OFF or DAE file')
    mesh.add_argument('--scale', type=float, default=1.0, help='0.001 if it is in millimetres')
    mesh.set_defaults(solid='mesh')
    for solid in commands.choices.values():
        weight = solid.add_mutually_exclusive_group(required=True)
        weight.add_argument('--mass', type=float, help='kg')
        weight.add_argument('--density', type=float, help='kg/m^3')


def run(options: argparse.Namespace) -> int:
    """Print the element."""
    if options.solid == 'mesh':
        solid = solids.mesh_solid(options.file, (options.scale,) * 3)
    else:
        sizes = [getattr(options, size) for size in options.sizes]
        if not min(sizes) > 0 or not max(sizes) < 1e6:
            raise ValueRangeError(options.solid, sizes, 'sizes above 0, in m')
        solid = getattr(solids, options.solid)(*sizes)
    if solid.note:
        print(f'robodyn: {solid.note}', file=sys.stderr)
    print(inertial_text(solid.inertial(mass=options.mass, density=options.density)))
    return 0
