"""Batches over one and two threads, on cores that nothing else uses while a batch runs.

Each batch takes some 10 to 50 ms under the scheduling policy SCHED_FIFO, so that other programs
wait meanwhile; pauses between the batches leave them the cores. Without the permission for this
policy, the ordinary one is used, and the first line says so. Memory traffic is that of inputs and
results; a copy by two threads shows how much of it the machine can do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import PANDA, example_robots

ROUNDS, PAUSE = 31, 0.1  # s between two batches
BYTES = 1 << 25  # of the inputs and results of a batch
ROBOTS = {
    'Panda': (PANDA, {'panda_finger_joint1': 0.0}, 'fixed'),
    'Talos': ('talos_data/robots/talos_reduced.urdf', {}, 'fixed'),
    'Talos, floating': ('talos_data/robots/talos_reduced.urdf', {}, 'floating'),
}
TERMS = 'inverse_dynamics', 'forward_dynamics', 'mass_matrix', 'regressor'


def in_turns(calls: list[Callable[[], object]]) -> list[float]:
    """Return the median time of each call, s; they take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for call, taken in zip(calls, times, strict=True):
            time.sleep(PAUSE)
            begin = time.perf_counter()
            call()
            taken.append(time.perf_counter() - begin)
    return [float(np.median(taken)) for taken in times]


def row(name: str, one: float, two: float, size: int) -> str:
    """Return a line of the table."""
    return (f'{name:36} {one * 1e3:7.1f} ms {two * 1e3:7.1f} ms {one / two:5.2f}x '
            f'{size / one * 1e-9:6.1f} GB/s {size / two * 1e-9:6.1f} GB/s')


def copies() -> str:
    """Return the line of plain copies of memory."""
    source, target = np.ones((2, 2, BYTES // 16))
    with ThreadPoolExecutor(1) as pool:
        def both() -> None:
            other = pool.submit(np.copyto, target[1], source[1])
            np.copyto(target[0], source[0])
            other.result()

        return row('copy of memory', *in_turns([lambda: np.copyto(target, source), both]),
                   2 * source.nbytes)


def threads() -> list[str]:
    """Return the lines of the table."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        policy = 'SCHED_FIFO'
    except PermissionError:
        policy = f'the ordinary policy, load average {os.getloadavg()[0]:.1f}'
    lines = [f'{os.cpu_count()} cores, {policy}', copies()]
    for name, (file, locked, base) in ROBOTS.items():
        model = rd.load_model(example_robots() / file, locked_joints=locked, base=base)
        model, rng = model.without_friction(), np.random.default_rng(1)
        parameters = model.parameter_names
        rigid = [k for k in range(len(parameters)) if k % 17 < 10 or k >= 17 * len(
            model.body_joints)]
        for term in TERMS:
            kernels = [robot.regressor_kernel(rigid) if term == 'regressor' else robot.kernel(
                term) for robot in (rd.Dynamics(model, threads=count) for count in (1, 2))]
            spec = kernels[0].spec
            each = 8 * (sum(spec.sizes) + int(np.prod(spec.shape)))
            count = BYTES // each // 64 * 64
            inputs = [rng.uniform(-1, 1, (count, size)) for size in spec.sizes]
            out = np.zeros((count, *spec.shape))
            calls = [lambda kernel=kernel, x=inputs, out=out: kernel.general(*x, out=out)
                     for kernel in kernels]
            lines.append(row(f'{name}: {term}', *in_turns(calls), each * count))
    return lines


if __name__ == '__main__':
    print('\n'.join(threads()))
