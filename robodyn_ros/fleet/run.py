"""Identifies every log of a fleet with Dask: on this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from robodyn_ros.errors import FleetError, OutputError
from robodyn_ros.fleet.catalogue import Catalogue
from robodyn_ros.fleet.cluster import client_of
from robodyn_ros.fleet.store import known_keys, write_rows
from robodyn_ros.fleet.work import Done, Task, lost, work
from robodyn_ros.packages import package

AHEAD = 3  # tasks that wait for each worker, so that it never waits for the next one


@dataclass(frozen=True)
class Summary:
    """What was done.

    Attributes
    ----------
    logs, fresh, known, bad : int
        Number of logs; of those identified now, known from before, and of those of the fresh ones
        that could not be used.
    """

    logs: int
    fresh: int
    known: int
    bad: int

    def to_text(self) -> str:
        """Return it in a sentence."""
        return (f'{self.logs} logs: {self.fresh} identified now, {self.known} known from before; '
                f'{self.bad} cannot be used, and their rows say why')


def identify_fleet(catalogue: Catalogue, folder: str | Path, *, scheduler: str | None = None,
                   workers: int | None = None,
                   progress: Callable[[int, str], None] | None = None) -> Summary:
    """Identify every robot of a catalogue from each of its logs, and store the results.

    A result that is in the folder already is not computed again; so an interrupted command goes
    on where it was. A log that cannot be used becomes a row with the reason.

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
        A result cannot be written. What was written before is whole.
    FleetError
        The scheduler cannot be reached, or is gone.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f'it cannot be made: {error.strerror}', path=folder) from None
    tasks = (Task(robot, log, catalogue.settings, catalogue.fit_fraction)
             for robot, log in catalogue)
    fresh = known = bad = 0
    with client_of(scheduler, workers) as client:
        for task, done in _done(client, tasks, known_keys(folder)):
            if done.rows is None:
                known += 1
            else:
                write_rows(folder, done.key, done.rows)
                fresh += 1
                bad += done.rows[0]['status'] == 'bad'
            if progress:
                progress(fresh + known, task.log.url)
    return Summary(fresh + known, fresh, known, bad)


def _done(client: Any, tasks: Iterator[Task],
          known: frozenset[str]) -> Iterator[tuple[Task, Done]]:
    """Run tasks, few ahead of the workers, and yield them as they finish."""
    distributed = package('distributed')
    spread, = client.scatter([known], broadcast=True)
    owners: dict[Any, Task] = {}

    def submit(task: Task) -> Any:
        future = client.submit(work, task, spread, pure=False)
        owners[future] = task
        return future

    width = AHEAD * max(len(client.scheduler_info()['workers']), 1)
    running = distributed.as_completed([submit(task) for task in islice(tasks, width)])
    for future in running:
        task = owners.pop(future)
        try:
            done = future.result()
        except distributed.KilledWorker:
            done = lost(task, 'the worker died each time while it worked on this log')
        except (distributed.client.FutureCancelledError, OSError) as error:
            raise FleetError(f'the scheduler is gone ({type(error).__name__}); what is finished '
                             'is kept, and the same command goes on') from None
        yield task, done
        for following in islice(tasks, 1):
            running.add(submit(following))
