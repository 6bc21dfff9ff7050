"""Subscriptions and periodic work on separate threads.

For every event, rclpy's executor rebuilds its wait set from all services, timers and subscriptions
of the node, which costs several times as much as processing a message. Here a thread waits for
only a few subscriptions; the executor serves the rest of the node.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile

CAUGHT_UP = 0.02  # s, longest delay that periodic work catches up; longer delays are dropped
DEPTH = 1000  # messages in a queue, those of one second at 1 kHz


class _NotForExecutors(CallbackGroup):
    """A callback group that executors do not serve."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return None


def private_interfaces_problem(node: Node) -> str | None:
    """Return why fast subscriptions cannot be used with this rclpy, or None.

    They need private interfaces of rclpy, which are tested on live objects here. The environment
    variable ``ROBODYN_FAST_SUBSCRIPTIONS=0`` switches fast subscriptions off.
    """
    if os.environ.get('ROBODYN_FAST_SUBSCRIPTIONS') == '0':
        return 'ROBODYN_FAST_SUBSCRIPTIONS is 0'
    try:
        wake = rclpy_implementation.GuardCondition(node.context.handle)
        waiting = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, 0, node.context.handle)
        trial = node.create_subscription(ParameterEvent, '/parameter_events', print, 1,
                                         callback_group=_NotForExecutors())
        try:
            with wake:
                waiting.clear_entities()
                waiting.add_subscription(trial.handle)
                waiting.add_guard_condition(wake)
                wake.trigger_guard_condition()
                waiting.wait(0)
                waiting.get_ready_entities('subscription').index  # noqa: B018
                hash(trial.handle.pointer)
                trial.handle.take_message(trial.msg_type, True)
        finally:
            node.destroy_subscription(trial)
    except (AttributeError, TypeError, ValueError) as error:
        return f'{type(error).__name__}: {error}'
    return None


class FastSubscriptions:
    """Subscriptions that a separate thread serves, one message at a time.

    If rclpy lacks the private interfaces for this, the executor of the node serves them.

    Parameters
    ----------
    node : Node
        The node that subscribes; its remappings and namespace apply as usual.
    on_error : callable
        Called as ``on_error(topic, exception)`` when a callback raises; the thread continues.
    on_superseded : callable, optional
        If given, only the newest queued message is processed, and this is called with the number
        of the others.

    Attributes
    ----------
    problem : str or None
        Why the executor of the node serves the subscriptions; None if the thread does.
    """

    def __init__(self, node: Node, on_error: Callable[[str, Exception], None],
                 on_superseded: Callable[[int], None] | None = None):
        self._node, self._on_error, self._on_superseded = node, on_error, on_superseded
        self.problem = private_interfaces_problem(node)
        self._subscriptions: list[Any] = []
        self._stopping = False
        if self.problem is None:
            self._group = _NotForExecutors()
            self._wake = rclpy_implementation.GuardCondition(node.context.handle)
            self._thread = threading.Thread(target=self._serve, daemon=True)

    def add(self, kind: Any, topic: str, callback: Callable[[Any], None], qos: Any,
            raw: bool = False) -> None:
        """Subscribe to a topic, before `start`; raw messages are passed as serialised bytes."""
        if self.problem is None:
            subscription = self._node.create_subscription(kind, topic, callback, qos, raw=raw,
                                                          callback_group=self._group)
        else:
            if self._on_superseded is not None:
                qos = QoSProfile(depth=1, reliability=qos.reliability) if isinstance(
                    qos, QoSProfile) else 1
            subscription = self._node.create_subscription(
                kind, topic, lambda message: self._call(subscription, callback, message), qos,
                raw=raw)
        self._subscriptions.append(subscription)

    def start(self) -> None:
        """Begin to serve."""
        if self.problem is None:
            self._thread.start()

    def stop(self) -> None:
        """Stop serving and destroy the subscriptions."""
        self._stopping = True
        if self.problem is None:
            self._wake.trigger_guard_condition()
            self._thread.join(timeout=5.0)
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _serve(self) -> None:
        context = self._node.context
        waiting = rclpy_implementation.WaitSet(len(self._subscriptions), 1, 0, 0, 0, 0,
                                               context.handle)
        by_pointer = {entry.handle.pointer: entry for entry in self._subscriptions}
        take = self._take_all if self._on_superseded is None else self._take_newest
        with self._wake:
            while not self._stopping and context.ok():
                waiting.clear_entities()
                for subscription in self._subscriptions:
                    waiting.add_subscription(subscription.handle)
                waiting.add_guard_condition(self._wake)
                try:
                    waiting.wait(500_000_000)  # ns, since the context may end meanwhile
                except rclpy_implementation.RCLError:
                    if context.ok():
                        raise
                    return
                for pointer in waiting.get_ready_entities('subscription'):
                    take(by_pointer[pointer])

    def _take_all(self, subscription: Any) -> None:
        while not self._stopping:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                return
            self._call(subscription, subscription.callback, taken[0])

    def _take_newest(self, subscription: Any) -> None:
        newest, count = None, 0
        while not self._stopping:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                break
            newest, count = taken[0], count + 1
        if newest is None:
            return
        if count > 1 and self._on_superseded is not None:
            self._on_superseded(count - 1)
        self._call(subscription, subscription.callback, newest)

    def _call(self, subscription: Any, callback: Callable[[Any], None], message: Any) -> None:
        try:
            callback(message)
        except Exception as error:  # a message must not end the node
            if self._node.context.ok():
                self._on_error(subscription.topic_name, error)


class Pace:
    """Waits for equally spaced times of wall time; short delays are caught up."""

    def __init__(self) -> None:
        self._due = time.perf_counter()

    def wait(self, period: float) -> None:
        """Wait until ``period`` (s) after the previous time."""
        now = time.perf_counter()
        self._due = max(self._due + period, now - CAUGHT_UP)
        time.sleep(max(self._due - now, 0.0))


class Pacer:
    """Calls a function at a fixed rate of wall time.

    After a short delay, late calls are made up for; after a longer one, they are dropped.

    Attributes
    ----------
    period : float
        Time between two calls, s; may be changed at any time.
    """

    def __init__(self, function: Callable[[], None], period: float,
                 on_error: Callable[[str, Exception], None]):
        self.period = period
        self._function, self._on_error = function, on_error
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop calling."""
        self._stopping = True
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        pace = Pace()
        while not self._stopping:
            try:
                self._function()
            except Exception as error:  # an error must not end the node
                if not self._stopping:
                    self._on_error('timer', error)
            pace.wait(self.period)
