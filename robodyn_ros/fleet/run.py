"""Identifies every log of a fleet with Dask: on this machine, or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from robodyn_ros.errors import FleetError, OutputError
from robodyn_ros.fleet.catalogue import Catalogue
from robodyn_ros.fleet.cluster import client_of
from robodyn_ros.fleet.store import KEPT, known_keys, write_factors, write_rows
from robodyn_ros.fleet.work import Done, Task, lost, work
from robodyn_ros.packages import package

ATTEMPTS = 3  # to run a task that Dask cancels because it lost data or the connection
RECONNECTS_WITHIN = 10.0  # s
AHEAD = 3  # tasks submitted for each worker, so that none has to wait for its next one


@dataclass(frozen=True)
class Summary:
    """How many logs a run has processed.

    Attributes
    ----------
    fresh : int
        Number of logs that were processed now.
    known : int
        Number of logs whose results were in the folder already.
    bad : int
        Number of those processed now that cannot be used.
    """

    fresh: int
    known: int
    bad: int

    @property
    def logs(self) -> int:
        """Number of all logs."""
        return self.fresh + self.known

    def to_text(self) -> str:
        """Return the numbers in a sentence."""
        return (f'{self.logs} logs: {self.fresh} processed now, {self.known} known from an '
                f'earlier run; {self.bad} cannot be used, for the reasons in the results')


def identify_fleet(catalogue: Catalogue, folder: str | Path, *, scheduler: str | None = None,
                   workers: int | None = None,
                   progress: Callable[[int, str], None] | None = None) -> Summary:
    """Identify every robot of a catalogue from each of its logs, and store the results.

    Results that are in the folder already are not computed again, so an interrupted run can be
    continued. A log that cannot be used becomes a row with the reason.

    Parameters
    ----------
    catalogue : Catalogue
        The robots and their logs.
    folder : str or Path
        Folder of the results; it is created if it does not exist.
    scheduler : str, optional
        Address of a Dask scheduler, for example ``tcp://10.0.0.1:8786``. Its workers need this
        package, and they need to reach the logs by the same paths or URLs. By default, worker
        processes are started on this machine.
    workers : int, optional
        Number of worker processes on this machine; default: one for each core.
    progress : callable, optional
        Called with the number of finished logs and the name of the last one.

    Raises
    ------
    OutputError
        A result cannot be written. All results that were written before are complete.
    FleetError
        The scheduler cannot be reached, or was lost.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f'it cannot be created: {error.strerror}', path=folder) from None
    tasks = (Task(replace(robot, logs=()), log, catalogue.settings, catalogue.fit_fraction)
             for robot, log in catalogue)  # a task is sent without the names of other logs
    fresh = known = bad = 0
    with client_of(scheduler, workers) as client:
        for task, done in _finished(client, tasks, known_keys(folder)):
            if done.rows is None:
                known += 1
            else:
                if done.factors is not None:
                    write_factors(folder, done.key, done.factors)
                write_rows(folder, done.key, done.rows)  # last: they mark what is finished
                fresh += 1
                bad += done.rows[0]['status'] == 'bad'
            if progress:
                progress(fresh + known, task.log.url)
    return Summary(fresh, known, bad)


def _finished(client: Any, tasks: Iterator[Task],
              known: frozenset[str]) -> Iterator[tuple[Task, Done]]:
    """Run tasks, with a few submitted in advance, and yield them as they finish."""
    distributed = package('distributed')
    known_there, = client.scatter([known], broadcast=True)
    owners: dict[Any, tuple[Task, int]] = {}

    def submit(task: Task, attempt: int = 1) -> Any:
        future = client.submit(work, task, known_there, pure=False)
        owners[future] = task, attempt
        return future

    submitted = AHEAD * max(len(client.scheduler_info()['workers']), 1)
    running = distributed.as_completed([submit(task) for task in islice(tasks, submitted)])
    for future in running:
        task, attempt = owners.pop(future)
        try:
            done = future.result()
        except distributed.KilledWorker:
            done = lost(task, 'every worker that processed this log died')
        except (distributed.client.FutureCancelledError, OSError) as error:
            if attempt == ATTEMPTS or not _connected(client):
                raise FleetError(f'the scheduler is gone ({error}); {KEPT}') from None
            known_there, = client.scatter([known], broadcast=True)  # it may be lost as well
            running.add(submit(task, attempt + 1))
            continue
        yield task, done
        for following in islice(tasks, 1):
            running.add(submit(following))


def _connected(client: Any) -> bool:
    """Whether a client is connected to its scheduler, or connects again by itself."""
    end = time.monotonic() + RECONNECTS_WITHIN
    while client.status == 'connecting' and time.monotonic() < end:
        time.sleep(0.1)
    return bool(client.status == 'running')
