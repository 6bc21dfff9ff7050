"""What the nodes share: lifecycle, model, payload service, diagnostics."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robodyn_interfaces.srv import SetModel, SetPayload
from robodyn_ros.check import CheckReport, check_model
from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.fast_path import FastSubscriptions, Pacer
from robodyn_ros.nodes.model_keeper import ModelKeeper, Payload, Running
from robodyn_ros.nodes.parameters import (
    MODEL_PARAMETERS,
    accepted,
    declare,
    declare_model_parameters,
    model_options,
    refused,
)

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL,
                     reliability=ReliabilityPolicy.RELIABLE)
WARN_EVERY = 5.0  # s between two warnings of one kind


class DynamicsNode(LifecycleNode):
    """A lifecycle node with a model.

    Subclasses create what they use in ``set_up`` (through ``keep``: cleanup destroys it), read
    their parameters in ``take_parameters``, and follow a new model in ``on_model``.
    """

    kernels: tuple[str, ...] = ()
    hot_swap = True  # offers ~/set_model and ~/rollback

    def __init__(self, name: str, **options: Any):
        super().__init__(name, enable_communication_interface=True, **options)
        self.active = False
        self.counts: Counter[str] = Counter()
        self._last_warning: dict[str, float] = {}
        declare(self, 'autostart', True, 'configure and activate at start', read_only=True)
        declare_model_parameters(self)
        self.declare_parameters_of_node()
        self.keeper = ModelKeeper(self.kernels, self.report, self._swapped)
        self._arrived: str | None = None
        self.verdict: CheckReport | None = None
        self.add_on_set_parameters_callback(self._on_parameters)
        self._made: list[Callable[[], Any]] = []

    # for subclasses ----------------------------------------------------------------------

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""

    def set_up(self) -> None:
        """Create publishers, subscriptions and timers (configure)."""

    def on_model(self, running: Running) -> None:
        """Follow a new model; called on the thread that built it."""

    def farewell(self) -> None:
        """Say what must be said before the node ends; the topics still work."""

    def take_parameters(self, changes: dict[str, Any]) -> str | None:
        """Take changed parameters; return why not, or None."""
        return None

    def more_diagnostics(self) -> dict[str, Any]:
        """Return values of the node's own for /diagnostics."""
        return {}

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self.keeper.running is None:
            return DiagnosticStatus.WARN, 'waiting for robot_description'
        return DiagnosticStatus.OK, 'running'

    # lifecycle ---------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create the interfaces; build the model where robot_description is a parameter."""
        text = self.get_parameter('robot_description').value
        if text and self.keeper.describe(text, model_options(self)) is not None:
            return TransitionCallbackReturn.FAILURE
        self.keep(self.create_subscription, self.destroy_subscription, String,
                  'robot_description', self._on_description, LATCHED)
        self.keep(self.create_service, self.destroy_service, SetPayload, '~/set_payload',
                  self._on_set_payload)
        if self.hot_swap:
            self.keep(self.create_service, self.destroy_service, SetModel, '~/set_model',
                      self._on_set_model)
            self.keep(self.create_service, self.destroy_service, Trigger, '~/rollback',
                      self._on_rollback)
        self._diagnostics = self.keep(self.create_publisher, self.destroy_publisher,
                                      DiagnosticArray, '/diagnostics', 10)
        self.keep(self.create_timer, self.destroy_timer, 1.0, self.publish_diagnostics)
        self.set_up()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to compute and publish."""
        self.active = True
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
        while self._made:
            self._made.pop()()

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop for good."""
        return self.on_cleanup(state)

    def keep(self, create: Callable[..., Any], destroy: Callable[[Any], Any],
             *arguments: Any, **options: Any) -> Any:
        """Create an entity that cleanup destroys."""
        entity = create(*arguments, **options)
        self._made.append(lambda: destroy(entity))
        return entity

    def listen(self, *subscriptions: tuple[Any, ...]) -> None:
        """Serve (type, topic, callback, qos, raw or not) on a fast thread until cleanup."""
        fast = FastSubscriptions(self, self._on_error)
        for subscription in subscriptions:
            fast.add(*subscription)
        fast.start()
        self._made.append(fast.stop)

    def pace(self, function: Callable[[], None], rate: float) -> Pacer:
        """Call a function at a rate (Hz of the wall clock) until cleanup."""
        pacer = Pacer(function, 1.0 / rate, self._on_error)
        self._made.append(pacer.stop)
        return pacer

    def _on_error(self, where: str, error: Exception) -> None:
        if rclpy.ok(context=self.context):
            self.warn('errors', f'{where}: {type(error).__name__}: {error}')

    # reports -----------------------------------------------------------------------------

    def report(self, level: str, text: str) -> None:
        """Log; the three levels from one place, since rclpy ties a level to a line of code."""
        logger = self.get_logger()
        if level == 'info':
            logger.info(text)
        elif level == 'warning':
            logger.warning(text)
        else:
            logger.error(text)

    def warn(self, kind: str, text: str) -> None:
        """Count an event and log it, at most every few seconds for each kind."""
        self.counts[kind] += 1
        now = self.get_clock().now().nanoseconds * 1e-9
        last = self._last_warning.get(kind)
        if last is None or not 0 <= now - last < WARN_EVERY:
            self._last_warning[kind] = now
            self.report('warning', f'{text} ({kind}: {self.counts[kind]} so far)')

    def publish_diagnostics(self) -> None:
        """Publish state, model version and counts on /diagnostics."""
        level, text = self.level()
        running = self.keeper.running
        values: dict[str, Any] = {
            'active': self.active,
            'robot': running.model.name if running else '',
            'model_version': running.version if running else 0,
            'model_origin': running.origin if running else '',
            'rotor_model': running.rotor_model if running else '',
            'payload_mass': running.payload.mass if running and running.payload else 0.0,
            'models_refused': self.keeper.refused,
            'verdict': self.verdict.verdict if self.verdict else '',
            'doubts': '; '.join(f'{doubt.where}: {doubt.text}' for doubt in
                                (self.verdict.doubts if self.verdict else ())),
            **self.more_diagnostics(),
            **self.counts,
        }
        status = DiagnosticStatus(level=level, name=self.get_fully_qualified_name(), message=text,
                                  hardware_id=running.model.name if running else '')
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    # the model ---------------------------------------------------------------------------

    def _on_description(self, message: String) -> None:
        if message.data == self._arrived:  # sent again: there is nothing new in it
            return
        self._arrived = message.data
        self.report('info', f'robot_description arrived ({len(message.data)} characters)')
        options = model_options(self)
        self._in_background(lambda: self.keeper.describe(message.data, options))

    async def _on_set_payload(self, request: SetPayload.Request,
                              response: SetPayload.Response) -> SetPayload.Response:
        xx, xy, xz, yy, yz, zz = request.inertia
        payload = Payload(request.link, request.mass,
                          np.array([request.com.x, request.com.y, request.com.z]),
                          np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        options = model_options(self)
        problem = await self._in_background(lambda: self.keeper.set_payload(payload, options))
        return self._answer(response, problem, f'{request.mass} kg on {request.link}')

    async def _on_set_model(self, request: SetModel.Request,
                            response: SetModel.Response) -> SetModel.Response:
        options = model_options(self)
        origin = request.origin or 'set_model'
        problem = await self._in_background(lambda: self.keeper.set_model(
            request.robot_description, request.motors, origin, options))
        return self._answer(response, problem, f'the model of {origin} runs')

    async def _on_rollback(self, request: Trigger.Request,
                           response: Trigger.Response) -> Trigger.Response:
        problem = await self._in_background(self.keeper.rollback)
        running = self.keeper.running
        return self._answer(response, problem, f'model {running.version}, from {running.origin}'
                            if running else '')

    def _answer(self, response: Any, problem: str | None, done: str) -> Any:
        response.success = problem is None
        response.message = problem or done
        if hasattr(response, 'model_version'):
            response.model_version = self.keeper.running.version if self.keeper.running else 0
        return response

    def _in_background(self, work: Callable[[], Any]) -> Future:
        """Run work on a thread of its own; messages go on being served meanwhile."""
        future: Future = Future(executor=self.executor)

        def run() -> None:
            result = work()
            if rclpy.ok():
                future.set_result(result)
                if self.executor is not None:
                    self.executor.wake()

        threading.Thread(target=run, daemon=True).start()
        return future

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
        threading.Thread(target=self._judge, args=(running,), daemon=True).start()

    def _judge(self, running: Running) -> None:
        """Say once what makes the dynamics of this model doubtful; meshes are not opened."""
        try:
            report = check_model(running.model, dynamics=running.dynamics.tree, thorough=False)
        except RobodynError as error:
            self.report('warning', f'the model cannot be judged: {error}')
            return
        ignored = {finding.joint for finding in running.model.findings if not finding.used}
        for doubt in report.doubts:
            if doubt.where not in ignored:  # those were said with the findings
                self.report('warning', f'{doubt.where}: {doubt.text}')
        self.verdict = report

    def _on_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        own = {p.name: p.value for p in changes if p.name not in {n for n, *_ in MODEL_PARAMETERS}}
        for name, value in own.items():
            if isinstance(value, float) and not np.isfinite(value):
                return refused(f'{name} is {value}; valid: a finite number')
        problem = self.take_parameters(own)
        if problem is not None:
            return refused(problem)
        running = self.keeper.running
        text = next((p.value for p in changes if p.name == 'robot_description'), None)
        if (text or running) and len(own) < len(changes):
            options = model_options(self, changes)
            problem = self.keeper.describe(text, options) if text else self.keeper.rebuild(
                options, new_motors=any(p.name == 'motors_file' for p in changes))
            if problem is not None:
                return refused(f'the model cannot be built: {problem}')
        return accepted()


def run(make: Callable[[], DynamicsNode], arguments: list[str] | None = None) -> None:
    """Initialise, make the node, start it, spin it; it speaks its last words while it can."""
    # rclpy's own handler would end the context first, and nothing could be published any more
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    for number in (signal.SIGINT, signal.SIGTERM):  # shells ignore SIGINT in the background
        signal.signal(number, signal.default_int_handler)
    try:
        node = make()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            if node.get_parameter('autostart').value:
                if node.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                    node.trigger_activate()
            while rclpy.ok():
                executor.spin_once(timeout_sec=0.2)
        finally:
            node.farewell()
            node.end()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()
