"""Excitations compared with published results; their run time compared with figaroh's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel

ROOT = Path(__file__).parent.parent
UR10 = ROOT / 'test/data/ur10/ur10_nomesh.urdf'
SEGMENT, WAYPOINTS, ITERATIONS = 2.0, 6, 40  # of figaroh's trajectory; s for each segment


def excitation():
    lwr4()
    beside_figaroh()


def lwr4():
    """Print condition numbers of the KUKA LWR 4+ with payload, limits of Kolyubin table 5.1."""
    model = rd.load_model(ROOT / 'urdf/kuka_lwr4.urdf.xacro',
                          xacro_arguments={'payload': 'true'})
    limits = rd.Limits(tool='tip', height=-0.1, distance=0.2, torque_margin=0.0)
    print('\nKUKA LWR 4+, 25 s, every limit kept at 1 kHz (published: 34.01; with goals of mean '
          '|tau_6|, |tau_7| of 1.64 N m: 37.23)\n')
    print('| parameter set | harmonics | goals | W_B as it is | columns of equal length |')
    print('|---|---|---|---|---|')
    for kind in ('rigid', 'links', 'lumped'):
        for goals in ({}, {'joint6': 1.66, 'joint7': 1.66}):
            cells = []
            for scaling in ('none', 'columns'):
                found = rd.optimise_excitation(
                    model, limits, period=25.0, harmonics=10, kind=kind, scaling=scaling,
                    budget=40.0, starts=3, mean_torque=goals, condition_goal=3.0 if
                    scaling == 'columns' else 30.0)
                torque = found.facts['mean_torque']
                cells.append(f'{found.facts["condition"]:.2f}'
                             + (f' ({torque[5]:.2f}, {torque[6]:.2f} N m)' if goals else ''))
            count = found.facts['base_parameters']
            print(f'| {kind}, {count} | 10 | {"yes" if goals else "-"} | ' + ' | '.join(cells)
                  + ' |', flush=True)


def beside_figaroh():
    """Print the condition number of the unscaled W_B, UR10 with its own limits, beside figaroh's.

    Both have 58 base parameters.
    """
    period = SEGMENT * (WAYPOINTS - 1)
    peer = os.environ.get('FIGAROH_PYTHON')
    print(f'\nUR10, {period:g} s, its own limits, W_B as it is, sign(s) without smoothing\n')
    if not peer:
        print('figaroh: set FIGAROH_PYTHON to an interpreter that has it, and cyipopt')
        return
    ran = subprocess.run([peer, str(ROOT / 'benchmarks/figaroh_excitation_peer.py'), str(UR10),
                          str(SEGMENT), str(WAYPOINTS), str(ITERATIONS)],
                         capture_output=True, text=True, check=True)
    theirs = json.loads(ran.stdout.splitlines()[-1])
    if theirs['condition'] is None:
        print('figaroh has found no motion; it needs cyipopt')
        return
    model = rd.load_model(UR10)
    linear = LinearModel(rd.Dynamics(model), friction=FrictionShape('coulomb', 0.0,
                                                                    np.ones(model.n)))
    base = rd.base_parameters(linear)

    def plain(found):
        motion = found.at(np.arange(500) * found.period / 500)
        w = linear.regressor(*motion[:3])[:, :, base.kept]
        return float(np.linalg.cond(w.reshape(-1, base.count)))

    reached = []

    def watch(state):
        if np.isfinite(state.condition):
            reached.append((state.seconds, state.condition))

    start = time.perf_counter()
    found = rd.optimise_excitation(model, rd.Limits(torque_margin=0.0), period=period,
                                   harmonics=6, scaling='none',
                                   budget=min(theirs['seconds'], 60.0), progress=watch)
    elapsed = time.perf_counter() - start
    first = next((seconds for seconds, value in reached if value <= theirs['condition']), None)
    print('| | here | figaroh |\n|---|---|---|')
    print(f'| base parameters | {base.count} | {theirs["parameters"]} |')
    print(f'| condition at the end | {plain(found):.1f} | {theirs["condition"]:.1f} |')
    print(f'| time | {elapsed:.1f} s | {theirs["seconds"]:.1f} s ({ITERATIONS} iterations, '
          f'{theirs["evaluations"]} evaluations) |')
    if first is not None:
        print(f"| time to figaroh's final condition | {first:.2f} s, "
              f'{theirs["seconds"] / first:.0f} times faster | {theirs["seconds"]:.1f} s |')


if __name__ == '__main__':
    if 'figaroh' in sys.argv[1:]:
        beside_figaroh()
    else:
        excitation()
