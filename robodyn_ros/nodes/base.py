"""`DynamicsNode`: lifecycle, parameters, model and services that the nodes have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robodyn_interfaces.srv import SetModel, SetPayload
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Model
from robodyn_ros.nodes.fast_path import FastSubscriptions, Pacer
from robodyn_ros.nodes.helper_process import HelperProcess
from robodyn_ros.nodes.model_building import Payload, build
from robodyn_ros.nodes.model_keeper import Candidate, ModelKeeper, Running
from robodyn_ros.nodes.parameters import (
    MODEL_PARAMETER_NAMES,
    accepted,
    declare_common_parameters,
    model_folders,
    model_options,
    outside,
    refused,
)
from robodyn_ros.nodes.reporting import ReportingNode
from robodyn_ros.nodes.stamps import nanoseconds
from robodyn_ros.packages import package
from robodyn_ros.spatial import inertia_tensor

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL,
                     reliability=ReliabilityPolicy.RELIABLE)
STRONGEST_GRAVITY = 100.0  # m/s^2; a larger value has other units, for example mm/s^2


class DynamicsNode(ReportingNode):
    """A lifecycle node with a model.

    Subclasses create their interfaces in ``set_up`` (with ``keep``, so that cleanup destroys
    them), check changed parameters in ``check_parameters`` and adopt them in
    ``apply_parameters``, and adopt a new model in ``on_model``.

    Parameters
    ----------
    name : str
        Name of the node.
    helper : HelperProcess, optional
        Builds models and runs the other ``tasks``; without it, this process builds models.
    """

    tasks: dict[str, Callable[[Any], Any]] = {'build': build}  # what its helper process can run
    kernels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # optional packages that the node requires
    commands = False  # whether the node's dynamics give torques to be commanded, see ModelKeeper
    hot_swap = True  # whether the node offers ~/set_model and ~/rollback

    def __init__(self, name: str, helper: HelperProcess | None = None, **options: Any):
        super().__init__(name, **options)
        self.active = False
        self.ending = False  # whether the process has been interrupted, or the node shuts down
        self.helper = helper
        self.failure = ''  # reason why the last configuration failed, if this ends the node
        declare_common_parameters(self)
        self.declare_parameters_of_node()
        self.keeper = ModelKeeper(self.kernels, self.report, self._swapped, helper,
                                  commands=self.commands, check=self.check_model)
        self._arrived: str | None = None
        self._candidate: Candidate | None = None
        self._restoring = False
        self.add_on_set_parameters_callback(self._on_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)
        self._folders = model_folders(self)

    # for subclasses ----------------------------------------------------------------------

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""

    def set_up(self) -> None:
        """Create publishers, subscriptions and timers (configure)."""

    def check_model(self, model: Model) -> None:
        """Raise a RobodynError for a model that the node cannot use; the old one is kept."""

    def on_model(self, running: Running) -> None:
        """Adopt a new model; called on the thread that built it."""

    def before_shutdown(self) -> None:
        """Publish last messages before the node ends, while its topics still work."""

    def check_parameters(self, changes: dict[str, Any]) -> str | None:
        """Check changed parameters without adopting them; return what is wrong, or None."""
        return None

    def apply_parameters(self, changes: dict[str, Any]) -> None:
        """Adopt changed parameters."""

    def more_diagnostics(self) -> dict[str, Any]:
        """Return additional values for /diagnostics."""
        return {}

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self.keeper.running is None:
            return DiagnosticStatus.WARN, 'waiting for robot_description'
        return DiagnosticStatus.OK, 'running'

    # lifecycle ---------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create the interfaces; build the model if robot_description is given as a parameter."""
        self.failure = ''
        try:
            return self._configure()
        except Exception as error:
            self.failure = str(error) if isinstance(error, RobodynError) else \
                f'{type(error).__name__}: {error}'
            self.report('error', f'the node cannot be configured: {self.failure}')
            self.end()
            return TransitionCallbackReturn.FAILURE

    def _configure(self) -> TransitionCallbackReturn:
        for name in self.packages:
            package(name)
        values = {name: parameter.value for name, parameter in self._parameters.items()}
        problem = self._problem_of(values)
        if problem is not None:
            self.report('error', f'the node is not configured: {problem}')
            return TransitionCallbackReturn.FAILURE
        text = values['robot_description']
        if text and self.keeper.describe(text, model_options(self)) is not None:
            return TransitionCallbackReturn.FAILURE
        self.keep(self.create_subscription, self.destroy_subscription, String,
                  'robot_description', self._on_description, LATCHED)
        serve = self.create_service, self.destroy_service
        self.keep(*serve, SetPayload, '~/set_payload', self._on_set_payload)
        if self.hot_swap:
            self.keep(*serve, SetModel, '~/set_model', self._on_set_model)
            self.keep(*serve, Trigger, '~/rollback', self._on_rollback)
        self._diagnostics = self.keep(self.create_publisher, self.destroy_publisher,
                                      DiagnosticArray, '/diagnostics', 10)
        self.start_diagnostics(self.publish_diagnostics,
                               lambda: DynamicsNode.publish_diagnostics(self))
        self.set_up()
        if self.keeper.running is None:
            self.report('info', 'waiting for a robot_description on the topic '
                                f'{self.resolve_topic_name("robot_description")}')
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to compute and publish."""
        self.active = True
        self.diagnose_soon()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing; the model is kept."""
        self.active = False
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy the interfaces."""
        self.end()
        return TransitionCallbackReturn.SUCCESS

    def end(self) -> None:
        """Stop all threads and destroy the interfaces."""
        self.active = False
        self._arrived = None  # after cleanup, the same description is accepted again
        while self._made:
            self._made.pop()()

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Shut the node down."""
        self.ending = True
        self.before_shutdown()
        return self.on_cleanup(state)

    def listen(self, *subscriptions: tuple[Any, ...], newest: bool = False) -> None:
        """Serve subscriptions on a fast thread until cleanup.

        Each one is a tuple of the arguments of `FastSubscriptions.add`. With ``newest`` only the
        newest queued message is processed, and the others are counted as ``superseded``.
        """
        fast = FastSubscriptions(self, self.on_failure, self._on_superseded if newest else None)
        for subscription in subscriptions:
            fast.add(*subscription)
        fast.start()
        self._made.append(fast.stop)

    def _on_superseded(self, count: int) -> None:
        self.counts['superseded'] += count

    def pace(self, function: Callable[[], None], rate: float) -> Pacer:
        """Call a function at a rate (Hz of wall time) until cleanup."""
        pacer = Pacer(function, 1.0 / rate, self.on_failure)
        self._made.append(pacer.stop)
        return pacer

    def publish_diagnostics(self) -> None:
        """Publish state, model version and counts on /diagnostics."""
        running = self.keeper.running
        check = running.check if running else None
        self.diagnose(self._diagnostics, *self.level(), {
            'active': self.active,
            'robot': running.model.name if running else '',
            'model_version': running.version if running else 0,
            'model_origin': running.origin if running else '',
            'rotor_model': running.rotor_model if running else '',
            'efforts': running.model.effort if running else '',
            'payload_mass': running.payload.mass if running and running.payload else 0.0,
            'models_refused': self.keeper.refused,
            'verdict': check.verdict if check else '',
            'issues': '; '.join(f'{issue.where}: {issue.text}' for issue in
                                (check.issues if check else ())),
            **self.more_diagnostics(),
        }, running.model.name if running else '')

    # the model ---------------------------------------------------------------------------

    def _on_description(self, message: String) -> None:
        if message.data == self._arrived:  # the same description was sent again
            return
        self._arrived = message.data
        self.report('info', f'robot_description arrived ({len(message.data)} characters)')
        options = model_options(self)
        self.newest_in_background('robot_description',
                                  lambda: self.keeper.describe(message.data, options))

    async def _on_set_payload(self, request: SetPayload.Request,
                              response: SetPayload.Response) -> SetPayload.Response:
        payload, options = payload_of(request), model_options(self)
        problem = await self.in_background(lambda: self.keeper.set_payload(payload, options))
        return self._answer(response, problem, f'{payload.mass} kg on {payload.link}')

    async def _on_set_model(self, request: SetModel.Request,
                            response: SetModel.Response) -> SetModel.Response:
        options, origin = model_options(self), (request.origin or 'set_model')[:200]
        problem = await self.in_background(lambda: self.keeper.set_model(
            request.robot_description, request.motors, origin, options,
            nanoseconds(request.valid_until)))
        return self._answer(response, problem, f'the model of {origin} runs')

    async def _on_rollback(self, request: Trigger.Request,
                           response: Trigger.Response) -> Trigger.Response:
        problem = await self.in_background(self.keeper.rollback)
        running = self.keeper.running
        if problem is None and running is not None:
            self._restore_parameters(running.request.options['parameters'])
        return self._answer(response, problem, f'model {running.version}, from {running.origin}'
                            if running else '')

    def _answer(self, response: Any, problem: str | None, done: str) -> Any:
        response.success = problem is None
        response.message = problem or done
        if hasattr(response, 'model_version'):
            response.model_version = self.keeper.running.version if self.keeper.running else 0
        return response

    def _swapped(self, running: Running) -> None:
        model = running.model
        self.report('info', f'model {running.version}: {model.name}, joints '
                            f'{", ".join(running.joints.joint_names)}; rotors: '
                            f'{running.rotor_model}')
        for finding in model.findings:
            if finding.used and not finding.reason:
                self.report('info', str(finding))
            else:
                self.report('warning', str(finding))
        self.on_model(running)
        ignored = {finding.joint for finding in model.findings if not finding.used}
        for issue in running.check.issues if running.check else ():
            if issue.where not in ignored:  # these were reported with the findings
                self.report('warning', f'{issue.where}: {issue.text}')
        self.diagnose_soon()

    # parameters --------------------------------------------------------------------------

    def _problem_of(self, changes: dict[str, Any]) -> str | None:
        """Return what is wrong with parameters, or None."""
        for name, value in changes.items():
            numbers = value if isinstance(value, (list, tuple)) or hasattr(
                value, 'typecode') else [value]
            for number in numbers:
                if isinstance(number, float) and not np.isfinite(number):
                    return f'{name} is {number}; valid: finite numbers'
        if len(changes.get('gravity', (0, 0, 0))) != 3:
            return f'gravity has {len(changes["gravity"])} numbers; valid: 3'
        strength = float(np.linalg.norm(changes.get('gravity', 0.0)))
        if strength > STRONGEST_GRAVITY:
            return (f'gravity is {strength:g} m/s^2; valid: at most {STRONGEST_GRAVITY:g}, four '
                    'times that of Jupiter')
        own = {name: value for name, value in changes.items()
               if name not in MODEL_PARAMETER_NAMES}
        return self.check_parameters(own)

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Check a set of changes; `_on_parameters_set` applies it if all of it is accepted."""
        if self._restoring:
            return accepted()
        changes = {parameter.name: parameter.value for parameter in parameters}
        self._candidate = None
        problem = outside(self._folders, changes) or self._problem_of(changes)
        if problem is not None:
            return refused(problem)
        text = changes.get('robot_description')
        if (text or self.keeper.running) and changes.keys() & MODEL_PARAMETER_NAMES:
            try:
                self._candidate = self.keeper.prepare(
                    model_options(self, changes), text=text or None,
                    new_motors='motors_file' in changes)
            except RobodynError as error:
                return refused(f'the model cannot be built: {error}')
        return accepted()

    def _on_parameters_set(self, parameters: list[Parameter]) -> None:
        if self._restoring:
            return
        self.apply_parameters({p.name: p.value for p in parameters
                               if p.name not in MODEL_PARAMETER_NAMES})
        candidate, self._candidate = self._candidate, None
        if candidate is not None:
            problem = self.keeper.commit(candidate)
            if problem is not None:
                self.report('error', f'the changed parameters are not used: {problem}')

    def _restore_parameters(self, values: dict[str, Any]) -> None:
        """Set the parameters that a model was built with, without building it again."""
        self._restoring = True
        try:
            self.set_parameters([Parameter(name, value=value) for name, value in values.items()])
        finally:
            self._restoring = False


def payload_of(request: SetPayload.Request) -> Payload:
    """Return the payload that a request describes."""
    body = request.inertia
    return Payload(request.link, body.m, np.array([body.com.x, body.com.y, body.com.z]),
                   inertia_tensor([body.ixx, body.ixy, body.ixz, body.iyy, body.iyz, body.izz]))
