"""The benchmarks of `make bench`, or one of them: `make bench ARGS=speed` (see `ALL`).

The other files of this folder are run by themselves, as their docstrings say.
"""

from __future__ import annotations

import sys

from birdy import birdy
from closed_loop import closed_loop
from excitation import excitation
from fleet import fleet
from floating_base import floating_base
from identification import identification
from large_robots import large_robots
from latency import latency
from loops import loops
from many_arms import many_arms
from scheduling import scheduling
from speed import ROBOTS, speed
from threads import threads

ALL = ('speed', 'floating_base', 'threads', 'loops', 'large_robots', 'latency', 'scheduling',
       'closed_loop', 'identification', 'birdy', 'excitation', 'fleet', 'many_arms')

if __name__ == '__main__':
    wanted = sys.argv[1:] or ALL
    if not set(wanted) <= set(ALL):
        sys.exit(f'unknown benchmark in {" ".join(wanted)}; valid: {", ".join(ALL)}')
    if 'speed' in wanted:
        for robot in ROBOTS:
            print('\n'.join(speed(robot)), end='\n\n', flush=True)
    if 'floating_base' in wanted:
        print('\n'.join(floating_base()))
    if 'threads' in wanted:
        print('\n'.join(threads()))
    if 'loops' in wanted:
        print('\n'.join(loops()))
    if 'large_robots' in wanted:
        print('\n'.join(large_robots()))
    if 'latency' in wanted:
        print('\n'.join(latency()))
    if 'scheduling' in wanted:
        print('\n'.join(scheduling()))
    if 'closed_loop' in wanted:
        print('\n'.join(closed_loop()))
    if 'identification' in wanted:
        identification()
    if 'birdy' in wanted:
        birdy()
    if 'excitation' in wanted:
        excitation()
    if 'fleet' in wanted:
        fleet()
    if 'many_arms' in wanted:
        print('\n'.join(many_arms()))
