"""`Job`: the execution of a goal; `JobQueue`: runs one job at a time; a new one stops the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robodyn_ros.errors import RobodynError
from robodyn_ros.experiment.recorder import Recorder


class Stopped(RobodynError):
    """The goal was cancelled or pre-empted, or the server is shutting down."""


class Job:
    """The execution of a goal.

    Parameters
    ----------
    goal : Goal or PayloadGoal
        The goal.
    cancelled : callable
        Returns whether the client has cancelled the goal.

    Attributes
    ----------
    phase : str
        Name of the current phase, for diagnostics.
    moving : bool
        Whether the robot moves, or states are recorded.
    folder : Path or None
        The folder of the run, once it exists.
    recorders : list of Recorder
        The recorders of all recordings so far.
    """

    def __init__(self, goal: Any, cancelled: Callable[[], bool] = lambda: False):
        self.goal = goal
        self.phase, self.moving = 'waiting', False
        self.folder: Path | None = None
        self.recorders: list[Recorder] = []
        self._cancelled, self._reason = cancelled, ''

    def stop(self, reason: str) -> None:
        """Make the job stop at its next step."""
        self._reason = self._reason or reason

    def check(self) -> None:
        """Raise Stopped if the job has to stop."""
        if self._cancelled():
            self.stop('cancelled')
        if self._reason:
            raise Stopped(self._reason)


class JobQueue:
    """Lets one job run at a time; a new job pre-empts all others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Job] = []
        self.running: Job | None = None

    def add(self, job: Job) -> bool:
        """Add a job and stop all others; return whether the new job may start at once."""
        with self._lock:
            for other in (self.running, *self._waiting):
                if other is not None:
                    other.stop('pre-empted by another goal')
            if self.running is not None:
                self._waiting.append(job)
                return False
            self.running = job
            return True

    def next(self) -> Job | None:
        """Remove the running job; return the next job, which may start now, or None."""
        with self._lock:
            self.running = self._waiting.pop(0) if self._waiting else None
            return self.running

    def stop(self, reason: str) -> None:
        """Make all jobs stop."""
        with self._lock:
            for job in (self.running, *self._waiting):
                if job is not None:
                    job.stop(reason)
