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


def all_robots() -> list[str]:
    """Time every robot of the benchmark of speed; return the lines of their tables."""
    return [line for robot in ROBOTS for line in (*speed(robot), '')]


# each prints its table, or returns the lines
ALL = {'speed': all_robots, 'floating_base': floating_base, 'threads': threads, 'loops': loops,
       'large_robots': large_robots, 'latency': latency, 'scheduling': scheduling,
       'closed_loop': closed_loop, 'identification': identification, 'birdy': birdy,
       'excitation': excitation, 'fleet': fleet, 'many_arms': many_arms}

if __name__ == '__main__':
    wanted = sys.argv[1:] or ALL
    if not set(wanted) <= set(ALL):
        sys.exit(f'unknown benchmark in {" ".join(wanted)}; valid: {", ".join(ALL)}')
    for name, benchmark in ALL.items():
        if name in wanted:
            print('\n'.join(benchmark() or ()), flush=True)
