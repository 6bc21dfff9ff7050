"""Effect of real-time scheduling: latency of `dynamics` at 1 kHz on a machine with full load.

As many processes as there are cores use all the processor time they can get. The node runs with
ordinary scheduling and with ``realtime_priority`` and ``lock_memory`` in turn. This process, which
sends the states and receives the answers, takes the place of the robot's driver and has real-time
priority both times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
from latency import measure

from robodyn_ros.nodes.processes import NodeProcess
from robodyn_ros.nodes.real_time import set_priority

PRIORITY = 40
WAYS = {'ordinary': (), 'real time': ('--ros-args', '-p', f'realtime_priority:={PRIORITY}',
                                      '-p', 'lock_memory:=true')}
LATE = 0.001  # s: later than the next state


def busy(stack: ExitStack) -> None:
    """Keep every core busy with an ordinary process."""
    for _ in range(os.cpu_count() or 1):
        process = subprocess.Popen([sys.executable, '-c', 'while True: pass'],
                                   preexec_fn=lambda: os.sched_setscheduler(
                                       0, os.SCHED_OTHER, os.sched_param(0)))
        stack.callback(process.wait)
        stack.callback(process.kill)


def node(arguments: tuple[str, ...]) -> NodeProcess:
    """Start the node from an ordinary process, as launch files do."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    process = NodeProcess('dynamics', *arguments)
    set_priority(PRIORITY)
    return process


def scheduling(seconds: float = 10.0, rounds: int = 3) -> list[str]:
    """Measure both ways in turn; return the lines of a table."""
    problem = set_priority(PRIORITY)
    if problem:
        return [f'real-time scheduling cannot be measured: {problem}']
    found: dict[str, list[np.ndarray]] = {name: [] for name in WAYS}
    lost = dict.fromkeys(WAYS, 0)
    with ExitStack() as stack:
        busy(stack)
        for _ in range(rounds):
            for name, arguments in WAYS.items():
                with node(arguments):
                    late, missing = measure(seconds, 1000.0)
                found[name].append(late)
                lost[name] += missing
    lines = [f'latency at 1 kHz beside {os.cpu_count()} busy processes on {os.cpu_count()} cores, '
             f'{rounds} x {seconds:.0f} s each, alternating',
             f'{"":10} {"median":>9} {"99 %":>10} {"99.9 %":>10} {"largest":>10} {"late":>7} '
             f'{"lost":>6} {"of":>7}']
    for name, runs in found.items():
        us = np.concatenate(runs) * 1e6
        lines.append(f'{name:10} {np.median(us):6.0f} us {np.percentile(us, 99):7.0f} us '
                     f'{np.percentile(us, 99.9):7.0f} us {us.max():7.0f} us '
                     f'{np.mean(us > LATE * 1e6):7.2%} {lost[name]:6d} {len(us) + lost[name]:7d}')
    return lines


if __name__ == '__main__':
    print('\n'.join(scheduling()))
