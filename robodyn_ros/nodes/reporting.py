"""`ReportingNode`: log lines, counted warnings, diagnostics, and services that always answer."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.task import Future

WARN_EVERY = 5.0  # s between two warnings of one kind
DIAGNOSE_EVERY = 1.0  # s between two diagnostics without news
DIAGNOSE_WITHIN = 0.1  # s, time within which news are in the diagnostics
LONGEST_TEXT = 4000  # characters of a log line or of a value in diagnostics


class ReportingNode(LifecycleNode):
    """A lifecycle node that continues after errors in requests, messages and its own work."""

    def __init__(self, name: str, **options: Any):
        self.counts: Counter[str] = Counter()
        self._last_warning: dict[str, float] = {}
        self._waiting: dict[str, Callable[[], Any] | None] = {}  # of `newest_in_background`
        self._waiting_lock = threading.Lock()
        self._made: list[Callable[[], Any]] = []
        self._news: Any = None  # a timer that runs while there are news
        super().__init__(name, enable_communication_interface=True, **options)

    def report(self, level: str, text: str) -> None:
        """Log a text; rclpy requires a separate line of code for each level."""
        logger = self.get_logger()
        text = text[:LONGEST_TEXT]
        if level == 'info':
            logger.info(text)
        elif level == 'warning':
            logger.warning(text)
        else:
            logger.error(text)
            self.diagnose_soon()

    def warn(self, kind: str, text: str) -> None:
        """Count an event and log it, at most every few seconds for each kind."""
        self.counts[kind] += 1
        self.diagnose_soon()
        now = self.get_clock().now().nanoseconds * 1e-9
        last = self._last_warning.get(kind)
        if last is None or not 0 <= now - last < WARN_EVERY:
            self._last_warning[kind] = now
            self.report('warning', f'{text} ({kind}: {self.counts[kind]} so far)')

    def on_failure(self, where: str, error: BaseException) -> None:
        """Count and log an error in the node's own work; the node continues."""
        if self.context.ok():
            self.warn('errors', f'{where}: {type(error).__name__}: {error}')

    def keep(self, create: Callable[..., Any], destroy: Callable[[Any], Any],
             *arguments: Any, **options: Any) -> Any:
        """Create an entity that cleanup destroys."""
        entity = create(*arguments, **options)
        self._made.append(lambda: destroy(entity))
        return entity

    def start_diagnostics(self, every_second: Callable[[], None],
                          with_news: Callable[[], None]) -> None:
        """Call functions that publish diagnostics: every second, and soon after there are news."""
        def publish_news() -> None:
            self._news.cancel()
            with_news()

        timer = self.create_timer, self.destroy_timer
        self.keep(*timer, DIAGNOSE_EVERY, every_second)
        self._news = self.keep(*timer, DIAGNOSE_WITHIN, publish_news,
                               clock=Clock(clock_type=ClockType.STEADY_TIME))

    def diagnose_soon(self) -> None:
        """Have the diagnostics published within `DIAGNOSE_WITHIN`, since there are news."""
        with suppress(InvalidHandle):  # the timer has been destroyed
            if self._news is not None and self._news.is_canceled():
                self._news.reset()
                if self.executor is not None:
                    self.executor.wake()

    def diagnose(self, publisher: Any, level: bytes, text: str, values: dict[str, Any],
                 hardware: str) -> None:
        """Publish a status with values and counts."""
        status = DiagnosticStatus(level=level, name=self.get_fully_qualified_name(),
                                  message=text, hardware_id=hardware)
        status.values = [KeyValue(key=key, value=str(value)[:LONGEST_TEXT])
                         for key, value in (values | self.counts).items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        publisher.publish(array)

    def other_publishers(self, topic: str) -> list[str]:
        """Return the other nodes that publish on a topic, without this node's watchdog."""
        own = self.get_fully_qualified_name()
        names = [f'{entry.node_namespace.rstrip("/")}/{entry.node_name}'
                 for entry in self.get_publishers_info_by_topic(topic)]
        others = sorted({name for name in names if name not in (own, f'{own}_watchdog')})
        return others + [f'another {own}'] * (names.count(own) > 1)

    # protection against errors --------------------------------------------------------------

    def create_service(self, kind: Any, name: str, callback: Callable[..., Any],
                       **options: Any) -> Any:
        """Create a service that answers with the error if its callback raises one."""
        def failed(error: Exception, response: Any) -> Any:
            self.on_failure(name, error)
            if hasattr(response, 'success'):
                response.success = False
            if hasattr(response, 'message'):
                response.message = f'{type(error).__name__}: {error}'[:LONGEST_TEXT]
            return response

        async def answer_later(request: Any, response: Any) -> Any:
            try:
                return await callback(request, response)
            except Exception as error:
                return failed(error, response)

        def answer(request: Any, response: Any) -> Any:
            try:
                return callback(request, response)
            except Exception as error:
                return failed(error, response)

        chosen = answer_later if inspect.iscoroutinefunction(callback) else answer
        return super().create_service(kind, name, chosen, **options)

    def _LifecycleNodeMixin__change_state(  # noqa: N802 (rclpy's own method, which would raise)
            self, transition_id: int) -> TransitionCallbackReturn:
        """Reject transitions that do not exist in this state, on which rclpy ends the node."""
        valid = {entry[0]: entry[1] for entry in self._state_machine.available_transitions}
        if transition_id not in valid:
            self.warn('transitions_refused', f'transition {transition_id} does not exist in the '
                      f'state {self._state_machine.current_state[1]!r}; valid: '
                      f'{", ".join(f"{name} ({key})" for key, name in valid.items()) or "none"}')
            return TransitionCallbackReturn.FAILURE
        return super()._LifecycleNodeMixin__change_state(transition_id)

    def in_background(self, work: Callable[[], Any]) -> Future:
        """Run work on a separate thread, while messages continue to be served.

        The future always resolves: with the result, or with the error that the work raised.
        """
        future: Future = Future(executor=self.executor)

        def run() -> None:
            try:
                result, error = work(), None
            except BaseException as raised:
                result, error = None, raised
                self.on_failure('background', raised)
            if not self.context.ok():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
            if self.executor is not None:
                self.executor.wake()

        threading.Thread(target=run, daemon=True).start()
        return future

    def newest_in_background(self, kind: str, work: Callable[[], Any]) -> None:
        """Run work on a separate thread, one at a time for each kind.

        While work of a kind runs, only the newest request of that kind is kept; older ones are
        dropped and counted as ``superseded``. This bounds threads and memory, however many
        messages arrive.
        """
        with self._waiting_lock:
            busy = kind in self._waiting
            self.counts['superseded'] += self._waiting.get(kind) is not None
            self._waiting[kind] = work
        if not busy:
            self.in_background(lambda: self._work_off(kind))

    def _work_off(self, kind: str) -> None:
        while True:
            with self._waiting_lock:
                work = self._waiting[kind]
                if work is None:
                    del self._waiting[kind]
                    return
                self._waiting[kind] = None
            try:
                work()
            except Exception as error:
                self.on_failure(kind, error)
