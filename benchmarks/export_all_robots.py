"""Exports every robot of example-robot-data as C and compares it with rd.Dynamics.

Prints the largest relative error of each function over all robots, for a few random states of
each, and the names of the robots that cannot be loaded. The accelerations of both are also
compared with those in 80-bit numbers, in units of the rounding error that the mass matrix
amplifies: its condition number, with rows and columns scaled to a unit diagonal, times 2^-53.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import example_robots
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.dynamics.composite_rigid_body import composite_mass_matrix
from robodyn_ros.dynamics.joint_terms import armature_matrix
from robodyn_ros.dynamics.newton_euler import newton_euler

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
from exports import Case, Library  # noqa: E402  compiles and calls as in the tests

STATES = 5
AS_TORQUE = 'forward_dynamics, error as torque'
EXPORT, OURS = 'export, error over its bound', 'rd.Dynamics, error over its bound'


def exact_accelerations(case: Case, given: dict[str, np.ndarray]) -> np.ndarray:
    """Return the accelerations in 80-bit numbers, from the parameters as the description has them.

    The mass matrix is eliminated with pivoting, a way other than that of the exported code.
    """
    model, tree = case.model, Catalogue(case.model).tree
    q, qd = (given[name].astype(np.longdouble) for name in ('q', 'qd'))
    zero = np.zeros(model.n, np.longdouble)
    mass = composite_mass_matrix(tree, q) + armature_matrix(model)
    force = given['tau'] - newton_euler(tree, q, qd, qd, zero, tree.gravity) - (
        case.dynamics().friction(given['qd']))
    rows = np.column_stack([mass, force]).astype(np.longdouble)
    for k in range(model.n):
        pivot = k + int(np.abs(rows[k:, k]).argmax())
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k] /= rows[k, k]
        others = np.arange(model.n) != k
        rows[others] -= np.outer(rows[others, k], rows[k])
    return rows[:, -1]


def amplification(mass: np.ndarray) -> float:
    """Return the condition number of a mass matrix, scaled to a unit diagonal."""
    scale = 1 / np.sqrt(np.diag(mass))
    return float(np.linalg.cond(mass * np.outer(scale, scale)))


def errors_of(path: Path, folder: Path, flags: list[str], single: bool) -> dict[str, float]:
    """Export, compile and call one robot; return each function's error."""
    case = Case(rd.load_model(path), options={'single': single})
    case.export(folder)
    library_path = folder / 'arm.so'
    subprocess.run(['gcc', '-std=c99', *flags, '-shared', '-fPIC', folder / 'arm.c', '-lm', '-o',
                    library_path], check=True)
    library, rng, n = Library(library_path, case), np.random.default_rng(3), case.model.n
    found = dict.fromkeys(library.functions, 0.0)
    for _ in range(STATES):
        given = {name: rng.uniform(-2, 2, n) for name in ('q', 'qd', 'qdd', 'tau')}
        dynamics = case.dynamics()
        given['tau'] = given['tau'] + dynamics.inverse_dynamics(
            given['q'], given['qd'], given['qdd'])
        if single:  # the functions get what they can represent
            given = {name: x.astype(np.float32).astype(float) for name, x in given.items()}
        torque = np.abs(given['tau']).max()
        for function in library.functions.values():
            arguments = [given[name] for name, _ in function.arguments]
            expected = function.reference(*arguments)
            scale = np.abs(expected).max()
            if function.name in ('gravity', 'coriolis', 'friction'):  # parts of one sum
                scale = max(scale, torque)
            difference = library.call(function.name, *arguments) - expected
            found[function.name] = max(found[function.name], np.abs(difference).max() / scale)
            if function.name == 'forward_dynamics':  # amplified by the condition
                lacking = np.abs(dynamics.mass_matrix(given['q']) @ difference).max() / torque
                found[AS_TORQUE] = max(found.get(AS_TORQUE, 0.0), lacking)
                if single or case.model.friction_follows_load:
                    continue
                exact = exact_accelerations(case, given)
                bound = amplification(dynamics.mass_matrix(given['q'])) * 2.0**-53
                for name, value in ((OURS, expected), (EXPORT, expected + difference)):
                    error = float(np.abs(value - exact).max() / np.abs(exact).max())
                    found[name] = max(found.get(name, 0.0), error / bound)
    return found


def main() -> None:
    """Go through all robots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--flags', default='-O1', help="gcc's (default: -O1)")
    parser.add_argument('--single', action='store_true', help='32-bit numbers')
    parser.add_argument('names', nargs='*', help='file names; default: all')
    options = parser.parse_args()
    paths = sorted(path for path in example_robots().rglob('*.urdf')
                   if not options.names or path.name in options.names)
    worst: dict[str, tuple[float, str]] = {}
    count = 0
    for path in paths:
        folder = Path(tempfile.mkdtemp())
        try:
            found = errors_of(path, folder, options.flags.split(), options.single)
        except rd.RobodynError as error:
            print(f'{path.name}: not exported: {str(error)[:120]}', flush=True)
            continue
        finally:
            shutil.rmtree(folder)
        count += 1
        direct = [error for name, error in found.items() if name not in (OURS, EXPORT)]
        print(f'{path.name}: {max(direct):.2g}', flush=True)
        for name, error in found.items():
            if error > worst.get(name, (-1.0, ''))[0]:
                worst[name] = (error, path.name)
    print(f'\n{count} of {len(paths)} robots')
    for name, (error, robot) in worst.items():
        print(f'  {name:34} {error:9.2g}  ({robot})')


if __name__ == '__main__':
    main()
