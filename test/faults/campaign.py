"""The campaign of faults: ``python test/faults/campaign.py [SECONDS]``, ten minutes by default.

A fifth of the time goes to the controller without ROS, the rest to running nodes, which are
restarted after every 60 faults: for a tree, an elastic arm and a robot with closed loops in turn.
It prints its figures, and ends with an error where an invariant does not hold.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from controller_faults import STRUCTURES, run  # noqa: E402
from gazebo_server import why_no_gazebo  # noqa: E402
from node_faults import Campaign  # noqa: E402

EACH = 60  # faults for one set of nodes


def controller(seconds, seed):
    """Faults on the controller; return the counts for each structure."""
    rows, end = {}, time.monotonic() + seconds
    while time.monotonic() < end:
        for structure in STRUCTURES:
            torques, events = run(structure, seed, 150)
            total = rows.setdefault(structure, Counter())
            total.update(torques=torques, sequences=1, faults=150, refused=sum(
                events[kind] for kind in ('refused', 'malformed', 'stale', 'implausible_position',
                                          'implausible_jump', 'implausible_velocity')))
        seed += 1
    return rows


def nodes(seconds, seed):
    """Faults on running nodes; return what was done, what was seen, and the largest growth."""
    events, seen, growth = Counter(), Counter(), Counter()
    # Gazebo cannot close loops, and its elastic joints are rigid
    kinds = [(structure, 'simulator') for structure in STRUCTURES] + (
        [] if why_no_gazebo() else [('tree', 'gazebo_bridge')])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as root:
            structure, world_node = kinds[seen['sets'] % len(kinds)]
            campaign = Campaign(seed, root, structure, world_node)
            try:
                for _ in range(EACH):
                    campaign.step()
                    if time.monotonic() > end:
                        break
                campaign.recover()
                threads, memory = campaign.check_use()
                for name, value in memory.items():
                    growth[name] = max(growth[name], value - campaign.memory[name])
                events.update(campaign.events)
                seen.update(torques=campaign.torques, states=campaign.states, sets=1,
                            motions=campaign.world.count('feedforward', 'references'))
            finally:
                campaign.close()
        print(f'{seen["sets"]} sets of nodes, {sum(events.values())} faults, '
              f'{seen["torques"]} torques; {structure}, {world_node}', flush=True)
        seed += 1
    return events, seen, growth


def main(seconds=600.0, seed=1):
    """Run both parts and print the figures."""
    rows = controller(0.2 * seconds, seed)
    for structure, row in rows.items():
        print(f'controller, {structure}: {row["sequences"]} sequences of 150 faults, '
              f'{row["torques"]} torques, {row["refused"]} states and references refused')
    events, seen, growth = nodes(0.8 * seconds, seed)
    print(f'nodes: {seen["sets"]} sets, {sum(events.values())} faults, {seen["torques"]} torques, '
          f'{seen["states"]} simulated states, {seen["motions"]} references played')
    for name, count in sorted(events.items()):
        print(f'  {name.replace("_", " ")}: {count}')
    print('largest growth of memory, MB: ' + ', '.join(
        f'{name} {value:.1f}' for name, value in growth.items()))


if __name__ == '__main__':
    main(*map(float, sys.argv[1:2]), *map(int, sys.argv[2:3]))
