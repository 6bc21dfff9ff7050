"""Runs repetitions of a benchmark in parallel, on the engine of `robodyn fleet`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from robodyn_ros.fleet.cluster import client_of

FOLDERS = [str(Path(__file__).parent), str(Path(__file__).parent.parent / 'test')]


def each(function, tasks):
    """Return the results of a function for tuples of arguments, in their order.

    The workers are those of the Dask scheduler at ``$ROBODYN_SCHEDULER``, else a process for each
    core of this machine.
    """
    with client_of(os.environ.get('ROBODYN_SCHEDULER'), None) as client:
        client.run(sys.path.extend, FOLDERS)
        return client.gather([client.submit(function, *task, pure=False) for task in tasks])
