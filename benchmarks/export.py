"""Exported C compared with Pinocchio's C++, both compiled with -O3 -march=native -DNDEBUG.

Needs a C and a C++ compiler, Eigen's headers (Debian's libeigen3-dev) and the wheel `pin` for its
headers; its library is not used, since it is compiled for any x86-64 processor. Contenders take
turns in one process, many short rounds each, and the best round counts, as other work of the
machine then hits all of them alike.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

import robodyn_ros as rd
from robodyn_ros.description.examples import PANDA, example_robots

HERE = Path(__file__).parent
FAST = ('-O3', '-march=native', '-DNDEBUG')
CONTRACT = ('-ffp-contract=fast', '-fno-math-errno')  # of the exported CMakeLists.txt
LIMITS = ('-DBOOST_MPL_LIMIT_LIST_SIZE=30', '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30',
          '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS',
          '-DBOOST_FUSION_INVOKE_MAX_ARITY=12')  # which Pinocchio's headers need
TERMS = ('inverse_dynamics', 'mass_matrix', 'forward_dynamics')
# file; joints that are locked in Pinocchio's model; those locked in ours, which follows <mimic>
ROBOTS = {
    'Panda': (PANDA, ('panda_finger_joint1', 'panda_finger_joint2'), ('panda_finger_joint1',)),
    'UR10': ('ur_description/urdf/ur10_robot.urdf', (), ()),
    'Talos': ('talos_data/robots/talos_reduced.urdf', (), ()),
}


def include_folders() -> list[str]:
    """Return the compiler's options for the headers of Pinocchio, Boost and Eigen."""
    prefix = next(path for path in (Path(entry) / 'cmeel.prefix' for entry in sys.path)
                  if (path / 'include/pinocchio').exists())
    eigen = next(path for path in (prefix / 'include/eigen3', Path('/usr/include/eigen3'))
                 if path.exists())
    return ['-isystem', f'{prefix}/include', '-isystem', str(eigen)]


def write_joints(path: Path, locked: tuple[str, ...], file: Path) -> None:
    """Write the joints of Pinocchio's model of a URDF, for export_peer.cpp."""
    full = pinocchio.buildModelFromUrdf(str(path))
    model = pinocchio.buildReducedModel(full, [full.getJointId(name) for name in locked],
                                        pinocchio.neutral(full))
    lines = []
    for k in range(1, model.njoints):
        joint, place, body = model.joints[k], model.jointPlacements[k], model.inertias[k]
        kind = joint.shortname().removeprefix('JointModel')
        axis = np.eye(3)['XYZ'.index(kind[-1])] if kind[1:] in 'XYZ' else joint.extract().axis
        inertia = body.inertia
        numbers = (*axis, *place.rotation.ravel(), *place.translation, body.mass, *body.lever,
                   inertia[0, 0], inertia[0, 1], inertia[1, 1], *inertia[2])
        lines.append(f'{model.names[k]} {model.parents[k]} {int(kind[0] == "P")} '
                     + ' '.join(repr(float(number)) for number in numbers))
    file.write_text('\n'.join(lines) + '\n')


def compile_peer(compiler: str, folder: Path) -> Path:
    """Compile Pinocchio's program once for all robots, since its templates take a minute."""
    target = folder / f'peer_{compiler}.o'
    if target.exists():
        return target
    subprocess.run([compiler, '-std=c++17', *FAST, '-w', *LIMITS, *include_folders(), '-c',
                    HERE / 'export_peer.cpp', '-o', target], check=True)
    return target


def compile_export(compiler: str, folder: Path) -> tuple[Path, float]:
    """Compile the exported source; return its object file and the seconds that it took."""
    target = folder / f'arm_{compiler}.o'
    begin = time.perf_counter()
    subprocess.run([compiler, '-std=c99', *FAST, *CONTRACT, '-c', folder / 'arm.c', '-o', target],
                   check=True)
    return target, time.perf_counter() - begin


def run(robot: str, seconds: float, calls: int, peers: dict[tuple[str, str], Path]) -> None:
    """Export one robot, compile all variants, print a table."""
    file, locked, held = ROBOTS[robot]
    path = example_robots() / file
    model = rd.load_model(path, locked_joints=dict.fromkeys(held, 0.0)).without_friction()
    with tempfile.TemporaryDirectory() as directory:
        joints = Path(directory) / 'joints'
        write_joints(path, locked, joints)
        for (c, cpp), peer in peers.items():
            for own in (False, True):
                folder = Path(directory) / f'{c}_{own}'
                rd.export_c(model, folder, terms=TERMS, prefix='arm', own_sincos=own)
                code, took = compile_export(c, folder)
                program = folder / 'peer'
                subprocess.run([cpp, peer, code, '-lm', '-o', program], check=True)
                done = called(program, joints, seconds, 0)
                if calls:
                    apart = called(program, joints, 0, calls, preexec_fn=in_real_time)
                    done += apart[apart.index('spread'):]
                size = subprocess.run(['size', code], check=True, capture_output=True,
                                      text=True).stdout.splitlines()[1].split()[0]
                report(robot, c, own, done, took, int(size))


def called(program: Path, joints: Path, seconds: float, calls: int, **options: Any) -> str:
    """Return what a program prints."""
    return subprocess.run([program, joints, str(seconds), str(calls)], check=True,
                          capture_output=True, text=True, **options).stdout


def in_real_time() -> None:
    """Let no ordinary process interrupt this one, where that is permitted."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))


def report(robot: str, compiler: str, own: bool, output: str, took: float, size: int) -> None:
    """Print what one variant measured."""
    lines = [line.split() for line in output.splitlines()]
    times = {(words[1], words[2]): float(words[3]) for words in lines if words[0] == 'time'}
    print(f'{robot}, {compiler}, sine and cosine: '
          f'{"polynomials" if own else "C library"}; compiled in {took:.2f} s, '
          f'{size / 1024:.0f} KiB of code')
    for term in TERMS:
        ours, theirs = times[term, 'ours'], times[term, 'pinocchio']
        print(f'  {term:18} {ours:8.1f} ns   Pinocchio {theirs:8.1f} ns   {theirs / ours:5.2f}x')
    for words in lines:
        if words[0] in ('spread', 'difference'):
            print('  ' + ' '.join(words))
    print(flush=True)


def main() -> None:
    """Compile and time all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('robots', nargs='*', default=list(ROBOTS))
    parser.add_argument('--seconds', type=float, default=5.0, help='for each function')
    parser.add_argument('--calls', type=int, default=0, help='measured one by one, 10000000 say')
    parser.add_argument('--peers', type=Path, help="folder that keeps the peers' object files")
    options = parser.parse_args()
    families = ([('gcc', 'g++')], [('clang', 'clang++'), ('clang-14', 'clang++-14')])
    found = ([pair for pair in family if all(map(shutil.which, pair))] for family in families)
    compilers = [pairs[0] for pairs in found if pairs]
    with tempfile.TemporaryDirectory() as directory:
        kept = options.peers or Path(directory)
        peers = {pair: compile_peer(pair[1], kept) for pair in compilers}
        for robot in options.robots:
            run(robot, options.seconds, options.calls, peers)


if __name__ == '__main__':
    main()
