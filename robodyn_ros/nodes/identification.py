"""The node `identification`: an action that excites, records, identifies, validates and swaps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.action import IdentifyDynamics, IdentifyPayload
from robodyn_ros.control import Reference
from robodyn_ros.errors import ExperimentError, RobodynError
from robodyn_ros.experiment.job import Job, JobQueue
from robodyn_ros.experiment.payload_procedure import PayloadProcedure
from robodyn_ros.experiment.procedure import PATIENCE, Options, Procedure, Status
from robodyn_ros.experiment.recorder import complete
from robodyn_ros.experiment.results import MOTORS, URDF
from robodyn_ros.experiment.runs import Runs
from robodyn_ros.experiment.state_monitor import StateMonitor
from robodyn_ros.experiment.swap import ModelTexts, SwapError, swap_model
from robodyn_ros.identification import Thresholds
from robodyn_ros.identification.verdict import MEANINGS
from robodyn_ros.nodes import payload_goals
from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.fast_path import DEPTH
from robodyn_ros.nodes.goals import feedback_of, fill, goal_of, list_files
from robodyn_ros.nodes.joint_states import StateError, StateReader
from robodyn_ros.nodes.model_clients import ModelClient, PayloadClient
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare, parameter_files
from robodyn_ros.nodes.running import run
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.trajectories import trajectory_of

LAST_PIECE = 3.0  # s that a shutdown waits until the stop of a moving robot has been sent
TICK = 0.02  # s between two checks
ACCEPT = 'accept_'  # prefix of the parameters with thresholds of the verdict
# parameters of the state monitor that take effect at once, and its attributes
MONITOR_PARAMETERS = {'state_timeout': 'timeout', 'frozen_after': 'frozen_after',
                      'tracking_tolerance': 'tracking_tolerance'}


class Identification(DynamicsNode):
    """Serves ~/identify and ~/identify_payload; a new goal pre-empts the running one.

    The motion is published as JointTrajectory on ~/trajectory, in short overlapping pieces. Remap
    this topic to that of joint_trajectory_controller or to ~/reference of the node
    ``feedforward``. The robot is monitored through joint_states.
    """

    kernels = ('inverse_dynamics',)
    hot_swap = False  # its model is the robot description, with which the results are compared

    def __init__(self, **options: Any):
        self._jobs = JobQueue()
        self._handles: dict[Job, tuple[Any, Callable[..., Any]]] = {}
        self._monitor: StateMonitor | None = None
        self._reader: StateReader | None = None
        super().__init__('identification', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare(self, 'root', '~/.ros/robodyn', 'folder of all runs; goals have no access to '
                'anything outside it', read_only=True)
        declare(self, 'use_motor_states', False, 'record motor_states as well: JointState with '
                'the torques of the motors as its efforts (for kinds that need motor torques)',
                read_only=True)
        declare(self, 'trajectory_rate', 50.0, 'points per second of ~/trajectory, Hz; used by '
                'the next motion', range_=(5.0, 1000.0))
        declare(self, 'start_delay', 1.0, 'time from sending the first piece of a motion to its '
                'start, s on the clock of joint_states; used by the next motion',
                range_=(0.0, 60.0))
        declare(self, 'lease', 0.4, 'duration of the motion that the controller holds in advance, '
                's on the clock of joint_states; if this node stops, the robot brakes after it; '
                'used by the next motion', range_=(0.1, 600.0))
        declare(self, 'state_timeout', 0.3, 'time without a new joint state after which a motion '
                'is stopped, s', range_=(0.01, 3600.0))
        declare(self, 'frozen_after', 1.0, 'time of unchanged joint states under a moving '
                'reference after which the motion is stopped, s', range_=(0.1, 60.0))
        declare(self, 'tracking_tolerance', 0.3, 'distance of a joint from its reference beyond '
                'which the motion is stopped, rad or m', range_=(0.0, 100.0))
        declare(self, 'apply_to', ['dynamics', 'feedforward'], 'names of the nodes that are given '
                'the identified model', read_only=True)
        declare(self, 'apply_timeout', 15.0, 'time within which each of these nodes must answer, '
                's; after it a node refuses the model', range_=(0.1, 600.0))
        for field in fields(Thresholds):
            declare(self, f'{ACCEPT}{field.name}', field.default, 'threshold of the verdict: '
                    f'{MEANINGS[field.name]}; used by the next goal', range_=(1e-9, 1e12))

    def check_parameters(self, changes: dict[str, Any]) -> str | None:
        """Refuse thresholds that contradict one another."""
        try:
            self._thresholds(changes)
        except RobodynError as error:
            return str(error)
        return None

    def _thresholds(self, changes: dict[str, Any] | None = None) -> Thresholds:
        """Return the thresholds of the parameters, after changes of them."""
        changes = changes or {}
        names = {field.name: f'{ACCEPT}{field.name}' for field in fields(Thresholds)}
        return Thresholds(**{name: changes.get(key, self.get_parameter(key).value)
                             for name, key in names.items()})

    def apply_parameters(self, changes: dict[str, Any]) -> None:
        """Let the state monitor use changed parameters at once."""
        if self._monitor is not None:
            self._monitor.use(**{attribute: changes[name] for name, attribute
                                 in MONITOR_PARAMETERS.items() if name in changes})

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
        self._serve(IdentifyDynamics, '~/identify', goal_of, feedback_of, self._identify)
        self._serve(IdentifyPayload, '~/identify_payload', payload_goals.goal_of,
                    payload_goals.feedback_of, self._identify_payload)
        names = [name for name in self.get_parameter('apply_to').value if name]
        self._users, self._carriers = (
            [self.keep(client, client.destroy, self, name) for name in names]
            for client in (ModelClient, PayloadClient))

    def _serve(self, kind: Any, name: str, goal: Callable[[Any], Any],
               feedback: Callable[..., Any], carry_out: Callable[..., None]) -> None:
        """Serve an action; its goals are carried out one at a time with those of the others."""
        def accept(handle: Any) -> None:
            job = Job(goal(handle.request), lambda: handle.is_cancel_requested)
            self._handles[job] = handle, feedback
            if self._jobs.add(job):
                handle.execute()

        async def execute(handle: Any) -> Any:
            return await self._execute(handle, kind.Result(), carry_out)

        self.keep(ActionServer, lambda server: server.destroy(), self, kind, name, execute,
                  goal_callback=self._on_goal, handle_accepted_callback=accept,
                  cancel_callback=lambda handle: CancelResponse.ACCEPT)

    def _recover(self) -> None:
        """Complete bags whose writer was killed."""
        for folder in self._runs.cut_off():
            try:
                count = complete(folder)
            except Exception as error:  # sqlite and rosbags raise many kinds of errors
                self.report('warning', f'{folder} was cut off and cannot be completed: '
                                       f'{type(error).__name__}: {error}')
                continue
            self.report('info', f'{folder} was cut off after {count} messages; they can be used '
                                f'as log {folder.parent.name!r}')

    def on_model(self, running: Running) -> None:
        """Monitor the robot with the new model; a running motion is stopped."""
        job = self._jobs.running
        if job is not None:
            job.stop('the robot_description changed')
        values = {attribute: self.get_parameter(name).value
                  for name, attribute in MONITOR_PARAMETERS.items()}
        self._reader = StateReader(running.joints)
        self._monitor = StateMonitor(running.joints, **values)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop all jobs."""
        self.before_shutdown()
        return super().on_deactivate(state)

    def before_shutdown(self) -> None:
        """Brake the robot and close the bags before the node ends."""
        self._jobs.stop('the server ends')
        end = time.monotonic() + LAST_PIECE
        while (job := self._jobs.running) is not None and job.moving and time.monotonic() < end:
            time.sleep(TICK)

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self.keeper.running is None:
            return super().level()
        job = self._jobs.running
        return DiagnosticStatus.OK, job.phase if job is not None else 'ready'

    # joint states ---------------------------------------------------------------------------

    def _on_state(self, raw: bytes) -> None:
        monitor, reader = self._monitor, self._reader
        if monitor is None or reader is None or not self.active:
            return
        message = deserialize_message(raw, JointState)
        stamp = nanoseconds(message.header.stamp)
        monitor.record(stamp, raw)
        try:
            monitor.add_state(stamp, *reader.read_on(message, lambda error: None))
        except StateError:
            monitor.refuse_state()

    def _on_motor_state(self, raw: bytes) -> None:
        if self._monitor is not None and self.active:
            self._monitor.record_motors(raw)

    # what a procedure needs of its node -----------------------------------------------------

    def send(self, piece: Reference, start: int) -> None:
        """Publish a motion that starts at a stamp (ns)."""
        running = self.keeper.running
        assert running is not None
        message = trajectory_of(running.joints.joint_names, piece.times, piece.q, piece.qd,
                                piece.qdd)
        set_nanoseconds(message.header.stamp, start)
        self._trajectory.publish(message)

    def has_controller(self) -> bool:
        """Return whether ~/trajectory has a subscriber."""
        return bool(self._trajectory.get_subscription_count())

    def send_status(self, job: Job, status: Status) -> None:
        """Publish a status as feedback."""
        running, (handle, feedback) = self.keeper.running, self._handles[job]
        if handle.is_active:
            handle.publish_feedback(feedback(
                status, running.joints.joint_names if running else ()))

    # the action -----------------------------------------------------------------------------

    def _on_goal(self, goal: Any) -> GoalResponse:
        if not self.active:
            self.warn('goals_refused', 'a goal is refused: the node is not active')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    async def _execute(self, handle: Any, result: Any, carry_out: Callable[..., None]) -> Any:
        job = self._jobs.running
        assert job is not None
        try:
            await self.in_background(lambda: self._carry_out(job, result, carry_out))
            self._end(job, handle, result)
        finally:
            del self._handles[job]
            following = self._jobs.next()
            if following is not None:
                self._handles[following][0].execute()
        return result

    def _end(self, job: Job, handle: Any, result: Any) -> None:
        self.counts['goals'] += 1
        if result.success:
            handle.succeed()
        elif handle.is_cancel_requested and handle.status == GoalStatus.STATUS_CANCELING:
            handle.canceled()
        else:
            handle.abort()
        self.report('info' if result.success else 'warning', '; '.join(
            [f'{job.folder.name if job.folder else "goal"}: '
             + (getattr(result, 'verdict', '') or getattr(result, 'summary', '') or 'ended'),
             *result.reasons]))

    def _identify(self, job: Job, result: IdentifyDynamics.Result) -> None:
        running, monitor = self._robot(job)
        outcome = Procedure(job, running.dynamics, monitor, self._runs, self,
                            self._options()).run()
        fill(result, outcome)
        if job.goal.apply or job.goal.force:
            self._apply(job, self._users, lambda: ModelTexts(
                outcome.text(URDF), outcome.text(MOTORS), outcome.files[0].parent.name), result,
                outcome.why_not_apply(job.goal.force))

    def _identify_payload(self, job: Job, result: IdentifyPayload.Result) -> None:
        running, monitor = self._robot(job)
        outcome = PayloadProcedure(job, running.dynamics, monitor, self._runs, self,
                                   self._options()).identify([user.name for user in self._users])
        payload_goals.fill(result, outcome)
        if job.goal.apply:
            self._apply(job, self._carriers, lambda: payload_goals.request_of(outcome.payload),
                        result, '' if result.state == result.STATE_FOUND else result.summary)

    def _carry_out(self, job: Job, result: Any, carry_out: Callable[..., None]) -> None:
        """Execute a job; errors are written into the result."""
        try:
            carry_out(job, result)
            result.success = True
        except RobodynError as error:
            result.reasons = [str(error), *result.reasons]
        except Exception as error:  # a goal must not end the node
            result.reasons = [f'{type(error).__name__}: {error}', *result.reasons]
        if job.folder is not None:
            kept = [str(one.folder.relative_to(self._runs.root)) for one in job.recorders
                    if one.count]
            list_files(result, job.folder, kept)

    def _robot(self, job: Job) -> tuple[Running, StateMonitor]:
        """Return the model and its monitor; wait up to `PATIENCE` for a robot_description."""
        end = time.monotonic() + PATIENCE
        while self._monitor is None and time.monotonic() < end:
            job.check()
            time.sleep(TICK)
        running, monitor = self.keeper.running, self._monitor
        if running is None or monitor is None:
            raise ExperimentError('there is no robot_description yet')
        return running, monitor

    def _options(self) -> Options:
        rate, delay, lease, motor_states = (self.get_parameter(name).value for name in (
            'trajectory_rate', 'start_delay', 'lease', 'use_motor_states'))
        return Options(rate, delay, lease, motor_states, self._thresholds(),
                       parameter_files(self))

    def _apply(self, job: Job, users: Sequence[ModelClient], model: Callable[[], Any],
               result: Any, reason: str) -> None:
        """Give the running nodes a model or a payload, unless there is a reason against it."""
        if not reason:
            self.send_status(job, Status('swap', 0.0))
            job.phase = 'swap'
            try:
                result.model_version = swap_model(
                    users, model(), timeout=self.get_parameter('apply_timeout').value,
                    check=job.check)
                result.applied = True
            except SwapError as error:
                reason = str(error)
        if reason:
            result.reasons = [*result.reasons, f'not applied: {reason}']


def main(arguments: list[str] | None = None) -> int:
    """Run the node."""
    return run(Identification, arguments)


if __name__ == '__main__':
    raise SystemExit(main())
