"""The node `identification`: excite, record, estimate, prove, swap; one action for all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.action import IdentifyDynamics
from robodyn_interfaces.srv import SetModel
from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.errors import IdentificationError, LogError, RobodynError
from robodyn_ros.excitation import (
    Excitation,
    Progress,
    optimise_excitation,
    validation_plan,
)
from robodyn_ros.identification import Log, LogFormat, read_log
from robodyn_ros.identification.live import LiveFit
from robodyn_ros.identification.reading import read_format
from robodyn_ros.identification.runs import PROOF, RECORDING, Runs
from robodyn_ros.nodes.base import DynamicsNode, run
from robodyn_ros.nodes.experiment import Eye, Fault, Silent, play, script_of
from robodyn_ros.nodes.fast_path import DEPTH
from robodyn_ros.nodes.goals import Goal, command_of, fill, search_of, settings_of
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.recorder import Recorder, complete
from robodyn_ros.report.results import MOTORS, PHASES, URDF, Outcome, identify_and_write, shares

JOINT_STATE = 'sensor_msgs/msg/JointState'
FEEDBACK_EVERY = 0.2  # s
ROOM = 100_000_000  # bytes that must be free on the disk before anything moves


class Stopped(Exception):
    """The goal is cancelled, pre-empted, or its server ends."""


class Job:
    """One goal, from its acceptance to its result; its work is done on a thread of its own."""

    def __init__(self, handle: Any):
        self.handle = handle
        self.reason = ''  # why it must stop
        self.phase = 'waiting'
        self.folder: Path | None = None
        self.recorders: list[Recorder] = []

    def stop(self, reason: str) -> None:
        """Make it stop at its next step."""
        self.reason = self.reason or reason

    def check(self) -> None:
        """Raise Stopped where it must stop."""
        if self.handle.is_cancel_requested:
            self.stop('cancelled')
        if self.reason:
            raise Stopped(self.reason)


class Identification(DynamicsNode):
    """Serves ~/identify. One goal at a time; a new one pre-empts the old.

    The motion goes out as one JointTrajectory on ~/trajectory, to be remapped to the topic of
    joint_trajectory_controller or to ~/reference of ``feedforward``; joint_states come back.
    """

    kernels = ('inverse_dynamics',)
    hot_swap = False  # its model is the description, against which it judges

    def __init__(self, **options: Any):
        self._job: Job | None = None
        self._queue: list[Job] = []
        self._lock = threading.Lock()
        self._eye: Eye | None = None
        super().__init__('identification', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'root', '~/.ros/robodyn', 'folder of all runs; goals cannot leave it',
                read_only=True)
        declare(self, 'use_motor_states', False, 'record motor_states as well: JointState with '
                "the motors' torques as its efforts (model2, model3)", read_only=True)
        declare(self, 'trajectory_rate', 50.0, 'points a second of ~/trajectory, Hz',
                range_=(5.0, 1000.0))
        declare(self, 'start_delay', 1.0, 's between sending a motion and its start on the clock '
                'of joint_states; 0: it starts when it arrives',
                range_=(0.0, 60.0))
        declare(self, 'state_timeout', 0.3, 's without a new state, after which a motion stops',
                range_=(0.01, 3600.0))
        declare(self, 'frozen_after', 1.0, 's of unchanged positions under a moving reference, '
                'after which a motion stops', range_=(0.1, 60.0))
        declare(self, 'tracking_tolerance', 0.3, 'rad or m that a joint may be off its reference',
                range_=(0.0, 100.0))
        declare(self, 'apply_to', ['dynamics', 'feedforward'],
                'nodes that take the identified model')

    # lifecycle ------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Create the action server, the topics and the clients."""
        self._runs = Runs(self.get_parameter('root').value)
        self._recover()
        make = self.create_publisher, self.destroy_publisher
        self._trajectory = self.keep(*make, JointTrajectory, '~/trajectory', 10)
        topics: list[Any] = [(JointState, 'joint_states', self._on_state, DEPTH, True)]
        if self.get_parameter('use_motor_states').value:
            topics.append((JointState, 'motor_states', self._on_motor_state, DEPTH, True))
        self.listen(*topics)
        server = ActionServer(
            self, IdentifyDynamics, '~/identify', self._execute,
            goal_callback=self._on_goal, handle_accepted_callback=self._on_accepted,
            cancel_callback=lambda handle: CancelResponse.ACCEPT)
        self._made.append(server.destroy)
        self._swaps = {name: self.keep(self.create_client, self.destroy_client, SetModel,
                                       f'{name}/set_model')
                       for name in self.get_parameter('apply_to').value if name}

    def _recover(self) -> None:
        """Give bags that were cut off what other tools miss in them."""
        for kind in (RECORDING, PROOF):
            for folder in sorted(self._runs.root.glob(f'*/{kind}')):
                if folder.is_dir() and not (folder / 'metadata.yaml').exists():
                    try:
                        count = complete(folder)
                    except Exception as error:  # whatever sqlite and rosbags raise
                        self.report('warning', f'{folder} was cut off and cannot be completed: '
                                               f'{type(error).__name__}: {error}')
                        continue
                    self.report('info', f'{folder} was cut off after {count} messages; they can '
                                        f'be used as log {folder.parent.name!r}')

    def on_model(self, running: Running) -> None:
        """Watch the robot with this model from now on; a motion on another one stops."""
        job = self._job
        if job is not None:
            job.stop('the robot_description changed')
        value = {name: self.get_parameter(name).value for name in (
            'state_timeout', 'frozen_after', 'tracking_tolerance')}
        self._eye = Eye(running.joints, value['state_timeout'], value['frozen_after'],
                        value['tracking_tolerance'])

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop what goes on."""
        self.farewell()
        return super().on_deactivate(state)

    def farewell(self) -> None:
        """Stop the robot and close the bags before the node ends."""
        with self._lock:
            jobs = [job for job in (self._job, *self._queue) if job is not None]
        for job in jobs:
            job.stop('the server ends')
        end = time.monotonic() + 3.0
        while self._job is not None and self._job.phase in ('experiment', 'record') and \
                time.monotonic() < end:
            time.sleep(0.02)

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self.keeper.running is None:
            return super().level()
        return DiagnosticStatus.OK, self._job.phase if self._job is not None else 'ready'

    def _on_state(self, raw: bytes) -> None:
        if self._eye is not None and self.active:
            self._eye.on_state(raw)

    def _on_motor_state(self, raw: bytes) -> None:
        if self._eye is not None and self.active:
            self._eye.on_motor_state(raw)

    # the action -----------------------------------------------------------------------------

    def _on_goal(self, goal: Goal) -> GoalResponse:
        if not self.active:
            self.warn('goals_refused', 'a goal is refused: the node is not active')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: Any) -> None:
        job = Job(handle)
        with self._lock:
            for other in self._queue:
                other.stop('pre-empted by another goal')
            if self._job is not None:
                self._job.stop('pre-empted by another goal')
                self._queue.append(job)
                return
            self._job = job
        handle.execute()

    async def _execute(self, handle: Any) -> IdentifyDynamics.Result:
        job = self._job
        assert job is not None
        result = IdentifyDynamics.Result()
        try:
            outcome = await self._in_background(lambda: self._guarded(job, result))
            if outcome is not None and handle.request.apply:
                job.phase = 'swap'
                await self._apply(outcome, result)
            self._end(job, result)
        finally:
            with self._lock:
                self._job = self._queue.pop(0) if self._queue else None
                follower = self._job
            if follower is not None:
                follower.handle.execute()
        return result

    def _end(self, job: Job, result: IdentifyDynamics.Result) -> None:
        handle = job.handle
        self.counts['goals'] += 1
        if result.success:
            handle.succeed()
        elif handle.is_cancel_requested and handle.status == GoalStatus.STATUS_CANCELING:
            handle.canceled()
        else:
            handle.abort()
        self.report('info' if result.success else 'warning',
                    f'{job.folder.name if job.folder else "goal"}: '
                    + (result.verdict or 'ended') + '; ' + '; '.join(result.reasons))

    def _guarded(self, job: Job, result: IdentifyDynamics.Result) -> Outcome | None:
        """Do the work; whatever goes wrong is in the result, with what was recorded until then."""
        try:
            outcome = self._work(job)
            fill(result, outcome)
            result.success = True
        except (Stopped, Fault, RobodynError) as error:
            result.reasons, outcome = [str(error)], None
        except Exception as error:  # a running node never dies of a goal
            result.reasons, outcome = [f'{type(error).__name__}: {error}'], None
        if job.folder is not None:
            result.folder = str(job.folder)
            result.files = sorted(str(path.relative_to(job.folder))
                                  for path in job.folder.rglob('*') if path.is_file())
            kept = [str(one.folder.relative_to(self._runs.root)) for one in job.recorders
                    if one.count]
            if not result.success and kept:
                result.reasons = [*result.reasons, 'what was recorded can be used as log '
                                  + ', '.join(kept)]
        return outcome

    def _work(self, job: Job) -> Outcome:
        goal: Goal = job.handle.request
        running, eye = self.keeper.running, self._eye
        if running is None or eye is None:
            raise Fault('there is no robot_description yet')
        job.check()
        settings = settings_of(goal)
        form = read_format(self._runs.file(goal.log_format)) if goal.log_format else None
        before = [self._runs.log(name) for name in goal.logs]
        proof_paths = [self._runs.log(name) for name in goal.validation_logs]
        folder = job.folder = self._runs.new(goal.name)
        if goal.source != Goal.USE_LOGS and self._runs.room() < ROOM:
            raise Fault(f'the disk of {self._runs.root} has {self._runs.room()} bytes left; '
                        f'valid: at least {ROOM}')
        fresh: list[Path] = []
        if goal.source == Goal.EXCITE:
            fresh, proof = self._excite(job, running, eye, folder, prove=not proof_paths
                                        and not goal.validation_share)
            proof_paths += proof
        elif goal.source == Goal.RECORD:
            fresh = [self._record(job, running, eye, folder)]
        elif goal.source != Goal.USE_LOGS:
            raise IdentificationError(f'source is {goal.source}; valid: EXCITE 0, RECORD 1, '
                                      'USE_LOGS 2')
        elif not before:
            raise LogError('no log', source='logs', valid='names of logs in ' + str(
                self._runs.root))
        self._feedback(job, 'reading', 0.0)
        model = running.dynamics if isinstance(running.dynamics, ClosedLoopDynamics) else \
            running.model
        usual = LogFormat(motor_topic='motor_states') if self.get_parameter(
            'use_motor_states').value else None

        def read(path: Path) -> Log:  # what a run has recorded has its topics
            return self._log(path, model, form or (
                usual if path.name in (RECORDING, PROOF) else None))

        logs = [read(path) for path in before + fresh]
        for log in logs[len(before):]:
            log.loaded = bool(goal.payload_link)
        proof_logs = [read(path) for path in proof_paths]
        if not proof_logs:
            logs, proof_logs = shares(logs, 1 - (goal.validation_share or 0.3))

        def tell(phase: str) -> None:
            self._feedback(job, f'identify: {phase}', PHASES.index(phase) / len(PHASES))
            job.check()

        return identify_and_write(model, logs, proof_logs, settings, folder,
                                  command=command_of(goal, folder), progress=tell)

    def _log(self, path: Path, model: Any, form: LogFormat | None) -> Log:
        log = read_log(path, model, form)
        log.source = str(path.relative_to(self._runs.root))
        return log

    # experiments ----------------------------------------------------------------------------

    def _excite(self, job: Job, running: Running, eye: Eye, folder: Path,
                prove: bool) -> tuple[list[Path], list[Path]]:
        goal: Goal = job.handle.request
        eye.begin()
        eye.check()  # before seconds go into a search
        motions = [(RECORDING, self._motion(job, running, None, folder))]
        if prove:
            motions.append((PROOF, self._motion(job, running, motions[0][1], folder)))
        assert eye.latest is not None
        dynamics = running.dynamics.with_model(running.model, friction_width=0.02)
        script = script_of(dynamics, eye.latest.q, motions,
                           self.get_parameter('trajectory_rate').value)
        if self._trajectory.get_subscription_count() == 0:
            raise Fault(f'nobody listens to {self._trajectory.topic_name}; valid: a controller '
                        'that it is remapped to')
        job.phase = 'experiment'
        live = LiveFit(running.dynamics, goal.kind)
        self._watch(job, eye, live, lambda tick: play(
            eye, script, self._trajectory.publish,
            lambda name: self._recorder(job, folder / name), tick,
            self.get_parameter('start_delay').value))
        return [folder / RECORDING], [folder / PROOF] if prove else []

    def _motion(self, job: Job, running: Running, first: Excitation | None,
                folder: Path) -> Excitation:
        """The excitation that was named, or the best one that is found."""
        goal, names = job.handle.request, running.joints.joint_names
        if first is None and goal.excitation:
            found = Excitation.from_yaml(self._runs.file(goal.excitation))
            if set(found.joint_names) != set(names):
                raise LogError(f'is for the joints {", ".join(found.joint_names)}',
                               source=goal.excitation, valid=', '.join(names))
            return found
        if isinstance(running.dynamics, ClosedLoopDynamics):
            raise IdentificationError('no excitation is searched for robots with closed loops; '
                                      'valid: name one, RECORD, or USE_LOGS')
        limits, plan = search_of(goal, running.model)
        if first is not None:
            plan = validation_plan(first, plan)
        job.phase = 'search' if first is None else 'search of the proof'

        def tell(state: Progress) -> None:
            job.check()
            self._feedback(job, job.phase, min(1.0, state.seconds / plan.budget),
                           condition=state.condition)

        found = optimise_excitation(running.model, limits, plan, progress=tell)
        name = 'excitation.yaml' if first is None else 'validation_excitation.yaml'
        (folder / name).write_text(found.to_yaml(), encoding='utf-8')
        return found

    def _record(self, job: Job, running: Running, eye: Eye, folder: Path) -> Path:
        """Record what others make the robot do."""
        goal: Goal = job.handle.request
        if not 0 < goal.duration <= 3600:
            raise IdentificationError(f'duration is {goal.duration}; valid: above 0, at most '
                                      '3600 s')
        job.phase = 'record'
        live = LiveFit(running.dynamics, goal.kind)
        eye.latest = None
        eye.begin()
        eye.record(self._recorder(job, folder / RECORDING), 0, 2**63)

        def go(tick: Callable[[str, float], None]) -> None:
            try:
                while eye.latest is None:
                    tick('waiting for joint_states', 0.0)
                    time.sleep(0.02)
                start, share = eye.latest.stamp, 0.0
                while share < 1:
                    eye.check()
                    share = (eye.latest.stamp - start) * 1e-9 / goal.duration
                    tick('record', min(share, 1.0))
                    time.sleep(0.02)
            except Silent:
                self.report('info', 'joint_states ended, and so does the recording')
            finally:
                eye.close()

        self._watch(job, eye, live, go)
        return folder / RECORDING

    def _recorder(self, job: Job, folder: Path) -> Recorder:
        topics = {'/joint_states': JOINT_STATE}
        if self.get_parameter('use_motor_states').value:
            topics['/motor_states'] = JOINT_STATE
        job.recorders.append(Recorder(folder, topics))
        return job.recorders[-1]

    def _watch(self, job: Job, eye: Eye, live: LiveFit,
               go: Callable[[Callable[[str, float], None]], None]) -> None:
        """Run an experiment with feedback of what it tells so far."""
        said = 0.0

        def tick(name: str, share: float) -> None:
            nonlocal said
            job.check()
            samples = eye.take()
            if name in (RECORDING, 'record'):
                live.add([s.stamp * 1e-9 for s in samples], *(
                    np.array([getattr(s, field) for s in samples]).reshape(
                        len(samples), eye.joints.n) for field in ('q', 'qd', 'tau')))
            if time.monotonic() - said > FEEDBACK_EVERY:
                said = time.monotonic()
                condition, residual = live.state() if live.samples else (np.inf, np.full(
                    eye.joints.n, np.nan))
                self._feedback(job, {RECORDING: 'excite', PROOF: 'proof'}.get(name, name), share,
                               samples=live.samples, condition=condition, residual=residual)

        go(tick)
        if eye.refused:
            self.warn('states_refused', f'{eye.refused} joint states could not be used')

    def _feedback(self, job: Job, phase: str, progress: float, *, samples: int = 0,
                  condition: float = np.inf, residual: Any = ()) -> None:
        running = self.keeper.running
        if job.phase not in ('experiment', 'record'):
            job.phase = phase
        message = IdentifyDynamics.Feedback(
            phase=phase, progress=float(progress), samples=samples,
            condition=float(condition) if np.isfinite(condition) else 0.0,
            joint=list(running.joints.joint_names) if running and len(residual) else [],
            residual=[float(x) for x in residual])
        if job.handle.is_active:
            job.handle.publish_feedback(message)

    # results --------------------------------------------------------------------------------

    async def _apply(self, outcome: Outcome, result: IdentifyDynamics.Result) -> None:
        """Swap the model into the running nodes: into all of them, or into none."""
        if outcome.proof.verdict != 'good':
            result.reasons = [*result.reasons, f'not applied: the verdict is '
                              f'{outcome.proof.verdict}']
            return
        files = {path.name: path for path in outcome.files}
        if URDF not in files:
            result.reasons = [*result.reasons, 'not applied: there is no URDF to apply']
            return
        request = SetModel.Request(
            robot_description=files[URDF].read_text(encoding='utf-8'),
            motors=files[MOTORS].read_text(encoding='utf-8'), origin=files[URDF].parent.name)
        absent = [name for name, client in self._swaps.items() if not client.service_is_ready()]
        if absent:
            result.reasons = [*result.reasons, f'not applied: {", ".join(absent)} not there']
            return
        done, versions = [], []
        for name, client in self._swaps.items():
            answer = await client.call_async(request)
            if not answer.success:
                result.reasons = [*result.reasons, f'not applied: {name}: {answer.message}']
                for other in done:
                    await self._roll_back(other)
                return
            done.append(name)
            versions.append(answer.model_version)
        result.applied, result.model_version = True, versions

    async def _roll_back(self, name: str) -> None:
        from std_srvs.srv import Trigger

        client = self.create_client(Trigger, f'{name}/rollback')
        try:
            if client.service_is_ready():
                await client.call_async(Trigger.Request())
        finally:
            self.destroy_client(client)


def main(arguments: list[str] | None = None) -> None:
    """Run the node."""
    run(Identification, arguments)


if __name__ == '__main__':
    main()
