"""`Procedure`: executes a goal, from the first joint state to the result files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from robodyn_ros.control import Reference
from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import (
    ExperimentError,
    LogError,
    StatesMissingError,
)
from robodyn_ros.excitation import Excitation, Progress, optimise_excitation, validation_plan
from robodyn_ros.experiment.commanded import save_commanded, with_commanded
from robodyn_ros.experiment.goal import EXCITE, RECORD, USE_LOGS, Goal
from robodyn_ros.experiment.job import Job
from robodyn_ros.experiment.live_fit import Fit, LiveFit
from robodyn_ros.experiment.player import TICK, play
from robodyn_ros.experiment.recorder import (
    JOINT_STATE_TYPE,
    JOINT_STATES,
    MOTOR_STATES,
    Recorder,
)
from robodyn_ros.experiment.results import PHASES, Outcome, identify_and_write, split_logs
from robodyn_ros.experiment.runs import RECORDING, VALIDATION, Runs
from robodyn_ros.experiment.script import plan_script
from robodyn_ros.experiment.state_monitor import StateMonitor
from robodyn_ros.identification import Log, LogFormat, Thresholds, read_log
from robodyn_ros.report.record import hashes_of

STATUS_EVERY = 0.2  # s between two status messages
FREE_BYTES = 100_000_000  # free bytes on the disk that are required before anything moves
PATIENCE = 10.0  # s, timeout for the first joint state and for a controller
FRICTION_WIDTH = 0.02  # rad/s or m/s, width of the smooth sign in planned torques
FOREVER = 2**63  # ns
# name of the phase in which a recording is made
PHASE_OF = {RECORDING: 'excite', VALIDATION: 'validation motion'}


@dataclass(frozen=True, eq=False)
class Status:
    """The current status of a job.

    Attributes
    ----------
    phase : str
        Name of the phase.
    progress : float
        Completed fraction of the phase.
    samples : int
        Number of samples in the live fit.
    condition : float
        Condition number of the live fit; infinity while it is unknown.
    unexplained : sequence of float
        Relative unexplained torque of each joint in the live fit; empty while nothing is recorded.
    tracking : sequence of float
        Measured position minus reference of each joint, rad or m; empty while nothing moves.
    """

    phase: str
    progress: float
    samples: int = 0
    condition: float = np.inf
    unexplained: Sequence[float] = ()
    tracking: Sequence[float] = ()


class Port(Protocol):
    """The connection of a procedure to the robot and to the client of the goal."""

    def send(self, piece: Reference, start: int) -> None:
        """Send a motion that starts at a stamp (ns) to the controller."""

    def has_controller(self) -> bool:
        """Return whether a controller is subscribed to the motion."""

    def send_status(self, job: Job, status: Status) -> None:
        """Send the status of the job to the client."""

    def report(self, level: str, text: str) -> None:
        """Log a text; level is 'info', 'warning' or 'error'."""


@dataclass(frozen=True)
class Options:
    """Settings of motions, recordings and the verdict.

    Attributes
    ----------
    rate : float
        Points of the motion per second, Hz.
    delay : float
        Time between sending the first piece of a motion and its start, s.
    lease : float
        Duration of the motion that the controller has in advance, s.
    motor_states : bool
        Whether motor states are recorded as well.
    thresholds : Thresholds
        Thresholds of the verdict.
    files : tuple of Path
        Files that describe the robot, whose hashes the report states.
    """

    rate: float
    delay: float
    lease: float
    motor_states: bool
    thresholds: Thresholds = field(default_factory=Thresholds)
    files: tuple[Path, ...] = ()


class Procedure:
    """Executes one goal on one robot.

    Parameters
    ----------
    job : Job
        The job with its goal.
    dynamics : RobotDynamics
        Dynamics of the nominal robot.
    monitor : StateMonitor
        The monitor of the robot's states.
    runs : Runs
        The folders for logs and results.
    port : Port
        The connection to the robot and the client.
    options : Options
        Settings of motions and recordings.
    """

    def __init__(self, job: Job, dynamics: RobotDynamics, monitor: StateMonitor, runs: Runs,
                 port: Port, options: Options):
        self._job, self._dynamics = job, dynamics
        self._goal: Goal = job.goal
        self._monitor, self._runs, self._port, self._options = monitor, runs, port, options

    def run(self) -> Outcome:
        """Execute the goal and return its results.

        Raises
        ------
        RobodynError
            The goal is not valid, an experiment had to stop, the logs cannot be used, or the job
            was stopped (`Stopped`). Recordings are kept.
        """
        job, goal, runs = self._job, self._goal, self._runs
        job.check()
        goal.check()
        settings = goal.settings()
        form = LogFormat.read(runs.file(goal.log_format)) if goal.log_format else None
        before = [runs.log(name) for name in goal.logs]
        loaded = [runs.log(name) for name in goal.loaded_logs]
        validation = [runs.log(name) for name in goal.validation_logs]
        folder = job.folder = runs.new(goal.name)
        fresh: list[Path] = []
        if goal.source != USE_LOGS and runs.room() < FREE_BYTES:
            raise ExperimentError(f'the disk of {runs.root} has {runs.room()} bytes left; '
                                  f'valid: at least {FREE_BYTES}')
        if goal.source == EXCITE:
            self._excite(folder)
            fresh = [folder / RECORDING]
            if goal.validates_on_motion:
                validation.append(folder / VALIDATION)
        elif goal.source == RECORD:
            self._record(folder)
            fresh = [folder / RECORDING]
        self._send_status(Status('reading', 0.0))
        # what is recorded now carries the payload, if there is one
        new = {folder / RECORDING, folder / VALIDATION} if goal.payload_link else set()
        logs = [self._read(path, form, path in new or path in loaded)
                for path in before + loaded + fresh]
        validation_logs = [self._read(path, form, path in new) for path in validation]
        if not validation_logs:
            logs, validation_logs = split_logs(logs, goal.fit_fraction)
        thresholds = self._options.thresholds
        return identify_and_write(self._dynamics, logs, validation_logs, settings, folder,
                                  command=goal.command(folder, thresholds), thresholds=thresholds,
                                  record=goal.record(hashes_of(self._options.files)),
                                  reduced=goal.reduce, progress=self._step)

    def _step(self, phase: str) -> None:
        """Report a step of the identification, and stop if the job was stopped."""
        done = PHASES.index(phase) / len(PHASES) if phase in PHASES else 0.0
        self._send_status(Status(f'identify: {phase}', done))
        self._job.check()

    def _send_status(self, status: Status) -> None:
        self._job.phase = status.phase
        self._port.send_status(self._job, status)

    def _read(self, path: Path, form: LogFormat | None, loaded: bool) -> Log:
        """Read a log; recordings of this server include motor states and the known motion."""
        if form is None and self._options.motor_states and path.name in (RECORDING, VALIDATION):
            form = LogFormat(motor_topic=MOTOR_STATES.lstrip('/'))
        return replace(with_commanded(read_log(path, self._dynamics, form), path), loaded=loaded,
                       source=str(path.relative_to(self._runs.root)))

    # experiments ----------------------------------------------------------------------------

    def _excite(self, folder: Path) -> None:
        """Find the excitations, play them and record them."""
        monitor, options = self._monitor, self._options
        self._wait(lambda: monitor.latest is not None, 'joint_states')
        monitor.forget()
        monitor.check()  # before the search takes its time
        motions = [(RECORDING, self._excitation(None, folder))]
        if self._goal.validates_on_motion:
            motions.append((VALIDATION, self._excitation(motions[0][1], folder)))
        dynamics = self._dynamics.with_model(self._dynamics.model, friction_width=FRICTION_WIDTH)
        self._wait(self._port.has_controller, 'a controller')
        if not self._port.has_controller():
            raise ExperimentError('no controller is subscribed to the trajectory; valid: a '
                                  'running controller, to whose topic ~/trajectory is remapped')
        live = LiveFit(self._dynamics, self._goal.kind or 'lumped')
        script = plan_script(dynamics, monitor.check().q, motions, options.rate)
        began: list[int] = []
        self._watch(live, lambda tick: began.append(play(
            monitor, script, self._port.send, lambda name: self._recorder(folder / name), tick,
            delay=options.delay, lease=options.lease)))
        for window, (name, motion) in zip(script.windows, motions, strict=True):
            save_commanded(folder / name, motion, began[0] * 1e-9 + window.start)

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until something is ready, at most for `PATIENCE`."""
        end = time.monotonic() + PATIENCE
        while not ready() and time.monotonic() < end:
            self._job.check()
            self._send_status(Status(f'waiting for {what}', 0.0))
            time.sleep(STATUS_EVERY)

    def _excitation(self, first: Excitation | None, folder: Path) -> Excitation:
        """Return the excitation that the goal names, or an optimised one.

        Parameters
        ----------
        first : Excitation or None
            The excitation of the fit, if an excitation for the validation is required.
        folder : Path
            The folder to which an optimised excitation is written.
        """
        goal, robot = self._goal, self._dynamics
        if first is None and goal.excitation:
            named = Excitation.from_yaml(self._runs.file(goal.excitation))
            if set(named.joint_names) != set(robot.joint_names):
                raise LogError(f'is for the joints {", ".join(named.joint_names)}',
                               source=goal.excitation, valid=', '.join(robot.joint_names))
            named = named.in_order_of(robot.joint_names)
            return replace(named, periods=goal.periods) if goal.periods else named
        limits, plan = goal.search(robot)
        phase, file = 'search', 'excitation.yaml'
        if first is not None:
            plan = validation_plan(first, plan)
            phase, file = 'search for the validation', 'validation_excitation.yaml'

        def report(state: Progress) -> None:
            self._job.check()
            self._send_status(Status(phase, min(1.0, state.seconds / plan.budget),
                                     condition=state.condition))

        found = optimise_excitation(robot, limits, plan, progress=report)
        (folder / file).write_text(found.to_yaml(), encoding='utf-8')
        return found

    def _record(self, folder: Path) -> None:
        """Record a motion that is commanded elsewhere."""
        monitor, duration = self._monitor, self._goal.duration
        live = LiveFit(self._dynamics, self._goal.kind or 'lumped')

        def go(tick: Callable[[str, float], None]) -> None:
            monitor.forget_state()
            monitor.begin()
            monitor.add_recorder(self._recorder(folder / RECORDING), 0, FOREVER)
            try:
                while monitor.latest is None:
                    tick('waiting for joint_states', 0.0)
                    time.sleep(TICK)
                start, done = monitor.latest.stamp, 0.0
                while done < 1:
                    done = (monitor.check().stamp - start) * 1e-9 / duration
                    tick('record', min(done, 1.0))
                    time.sleep(TICK)
            except StatesMissingError:
                self._port.report('info', 'joint_states stopped arriving: the recording ends')
            finally:
                monitor.end()

        self._watch(live, go)

    def _recorder(self, folder: Path) -> Recorder:
        topics = {JOINT_STATES: JOINT_STATE_TYPE}
        if self._options.motor_states:
            topics[MOTOR_STATES] = JOINT_STATE_TYPE
        self._job.recorders.append(Recorder(folder, topics))
        return self._job.recorders[-1]

    def _watch(self, live: Fit, go: Callable[[Callable[[str, float], None]], None]) -> None:
        """Run an experiment, update the live fit, and report its state to the client."""
        job, monitor = self._job, self._monitor
        reported, refused = -np.inf, monitor.refused

        def tick(name: str, fraction: float) -> None:
            nonlocal reported
            job.check()
            samples = monitor.take()
            if name in (RECORDING, 'record') and samples:
                live.add([s.stamp * 1e-9 for s in samples], np.array([s.q for s in samples]),
                         np.array([s.qd for s in samples]), np.array([s.tau for s in samples]))
            if time.monotonic() - reported > STATUS_EVERY:
                reported = time.monotonic()
                condition, unexplained = live.state()
                self._send_status(Status(
                    PHASE_OF.get(name, name), fraction, live.samples, condition,
                    unexplained.tolist(), monitor.tracking.tolist()))

        job.moving = True
        try:
            go(tick)
        finally:
            job.moving = False
        for recorder in job.recorders:
            if recorder.error:  # includes errors of the last messages, written after the motion
                raise ExperimentError(f'not everything could be recorded: {recorder.error}')
        if monitor.refused > refused:
            self._port.report('warning', f'{monitor.refused - refused} joint states could not be '
                                         'used')
