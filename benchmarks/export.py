"""Exported C compared with Pinocchio's C++, both compiled with -O3 -march=native -DNDEBUG.

Needs a C and a C++ compiler, Eigen's headers (Debian's libeigen3-dev) and the headers in the
wheel `pin`. Contenders take turns in one process, many short rounds each, and the best round
counts, as other work of the machine then hits all of them alike.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import robodyn_ros as rd
from robodyn_ros.description.examples import PANDA, example_robots

HERE = Path(__file__).parent
FAST = ('-O3', '-march=native', '-DNDEBUG')
CONTRACT = ('-ffp-contract=fast', '-fno-math-errno')  # of the exported CMakeLists.txt
AS_THE_WHEEL = ('-DBOOST_MPL_LIMIT_LIST_SIZE=30', '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30',
                '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS', '-DBOOST_FUSION_INVOKE_MAX_ARITY=12',
                '-DEIGEN_MAX_ALIGN_BYTES=16')  # as in the wheel's library, built for SSE
TERMS = ('inverse_dynamics', 'mass_matrix', 'forward_dynamics')
ROBOTS = {
    'Panda': (PANDA, ('panda_finger_joint1', 'panda_finger_joint2'), ('panda_finger_joint1',)),
    'UR10': ('ur_description/urdf/ur10_robot.urdf', (), ()),
    'Talos': ('talos_data/robots/talos_reduced.urdf', (), ()),
}


def find_pinocchio() -> tuple[list[str], list[str]]:
    """Return the compiler's options for Pinocchio's headers, and the linker's for its library."""
    prefix = next(path for path in (Path(entry) / 'cmeel.prefix' for entry in sys.path)
                  if (path / 'include/pinocchio').exists())
    eigen = next(path for path in (prefix / 'include/eigen3', Path('/usr/include/eigen3'))
                 if path.exists())
    libraries = ['-lpinocchio_parsers', '-lpinocchio_default', f'-L{prefix}/lib',
                 f'-Wl,-rpath,{prefix}/lib', '-Wl,--unresolved-symbols=ignore-in-shared-libs']
    return ['-isystem', f'{prefix}/include', '-isystem', str(eigen)], libraries


def compile_peer(compiler: str, folder: Path) -> Path:
    """Compile Pinocchio's program once for all robots, since its templates take a minute."""
    includes, _ = find_pinocchio()
    target = folder / f'peer_{compiler}.o'
    if target.exists():
        return target
    subprocess.run([compiler, '-std=c++17', *FAST, *AS_THE_WHEEL, *includes, '-c',
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
    _, libraries = find_pinocchio()
    with tempfile.TemporaryDirectory() as directory:
        for (c, cpp), peer in peers.items():
            for own in (False, True):
                folder = Path(directory) / f'{c}_{own}'
                rd.export_c(model, folder, terms=TERMS, prefix='arm', own_sincos=own)
                code, took = compile_export(c, folder)
                program = folder / 'peer'
                subprocess.run([cpp, peer, code, *libraries, '-lm', '-o', program], check=True)
                done = subprocess.run([program, path, str(seconds), str(calls), *locked],
                                      check=True, capture_output=True, text=True).stdout
                size = subprocess.run(['size', code], check=True, capture_output=True,
                                      text=True).stdout.splitlines()[1].split()[0]
                report(robot, c, own, done, took, int(size))


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
    pairs = [('gcc', 'g++'), ('clang', 'clang++'), ('clang-14', 'clang++-14')]
    compilers = [pair for pair in pairs if all(map(shutil.which, pair))]
    with tempfile.TemporaryDirectory() as directory:
        kept = options.peers or Path(directory)
        peers = {pair: compile_peer(pair[1], kept) for pair in compilers}
        for robot in options.robots:
            run(robot, options.seconds, options.calls, peers)


if __name__ == '__main__':
    main()
