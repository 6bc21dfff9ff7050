"""The cluster that does the work: worker processes on this machine, or a Dask scheduler."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from robodyn_ros.errors import FleetError
from robodyn_ros.packages import package

ANSWERS_WITHIN = 10.0  # s, time limit for a scheduler to answer, also after its connection is lost


@contextmanager
def client_of(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Provide a Dask client, of a scheduler or of new worker processes on this machine.

    Parameters
    ----------
    scheduler : str or None
        Address of the scheduler; None for this machine.
    workers : int or None
        Number of worker processes on this machine; default: one for each core.

    Raises
    ------
    FleetError
        The scheduler does not answer, or has no workers.
    """
    distributed = package('distributed')
    if scheduler is None:
        with distributed.LocalCluster(
                n_workers=workers or os.cpu_count(), threads_per_worker=1, processes=True,
                host='127.0.0.1', dashboard_address='127.0.0.1:0',
                silence_logs=logging.CRITICAL) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=ANSWERS_WITHIN)
    except (OSError, ValueError) as error:
        raise FleetError(f'no scheduler answers at {scheduler}: {error}') from None
    with client:
        if not client.scheduler_info()['workers']:
            raise FleetError(f'the scheduler at {scheduler} has no workers; valid: at least one '
                             f'`dask worker {scheduler}`')
        yield client
