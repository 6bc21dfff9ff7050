"""The hot path, on threads of its own: subscriptions, and work at a fixed rate.

rclpy's executor builds its wait set anew for every event, over every service, timer and parameter
of the node: several times what a message itself costs. Here a thread waits on nothing but its
subscriptions. Everything else of the node stays with the executor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

CAUGHT_UP = 0.02  # s that what keeps pace may be late, and hurries
DEPTH = 1000  # of queues: nothing is lost where the machine pauses for a second, at 1 kHz


class _NotForExecutors(CallbackGroup):
    """A group whose members no executor waits for."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return None


class FastSubscriptions:
    """Subscriptions that one thread serves, one message after the other.

    Parameters
    ----------
    node : Node
        Whose subscriptions they are; remappings and namespaces hold as ever.
    on_error : callable
        ``on_error(topic, exception)`` where a callback raises; the thread goes on.
    """

    def __init__(self, node: Node, on_error: Callable[[str, Exception], None]):
        self._node, self._on_error = node, on_error
        self._group = _NotForExecutors()
        self._subscriptions: list[Any] = []
        self._wake = rclpy_implementation.GuardCondition(node.context.handle)
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def add(self, kind: Any, topic: str, callback: Callable[[Any], None], qos: Any,
            raw: bool = False) -> None:
        """Subscribe; before `start`. Raw messages come as serialised bytes."""
        subscription = self._node.create_subscription(kind, topic, callback, qos, raw=raw,
                                                      callback_group=self._group)
        self._subscriptions.append(subscription)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and destroy the subscriptions."""
        self._stopping = True
        self._wake.trigger_guard_condition()
        self._thread.join(timeout=5.0)
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _serve(self) -> None:
        context = self._node.context
        waiting = rclpy_implementation.WaitSet(len(self._subscriptions), 1, 0, 0, 0, 0,
                                               context.handle)
        by_pointer = {entry.handle.pointer: entry for entry in self._subscriptions}
        with self._wake:
            while not self._stopping and context.ok():
                waiting.clear_entities()
                for subscription in self._subscriptions:
                    waiting.add_subscription(subscription.handle)
                waiting.add_guard_condition(self._wake)
                try:
                    waiting.wait(500_000_000)  # ns; the context may end meanwhile
                except rclpy_implementation.RCLError:
                    if context.ok():
                        raise
                    return
                for pointer in waiting.get_ready_entities('subscription'):
                    self._take_all(by_pointer[pointer])

    def _take_all(self, subscription: Any) -> None:
        while not self._stopping:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                return
            try:
                subscription.callback(taken[0])
            except Exception as error:  # a running node never dies of a message
                if self._node.context.ok():
                    self._on_error(subscription.topic_name, error)


class Pace:
    """Waits for moments at equal distances of the wall clock; short delays are caught up."""

    def __init__(self) -> None:
        self._due = time.perf_counter()

    def wait(self, period: float) -> None:
        """Wait until ``period`` (s) after the moment before."""
        now = time.perf_counter()
        self._due = max(self._due + period, now - CAUGHT_UP)
        time.sleep(max(self._due - now, 0.0))


class Pacer:
    """Calls a function at a fixed rate of the wall clock.

    Late calls are caught up where the delay is short, else dropped.

    Attributes
    ----------
    period : float
        s between two calls; may be changed at any time.
    """

    def __init__(self, function: Callable[[], None], period: float,
                 on_error: Callable[[str, Exception], None]):
        self.period = period
        self._function, self._on_error = function, on_error
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Call no more."""
        self._stopping = True
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        pace = Pace()
        while not self._stopping:
            try:
                self._function()
            except Exception as error:  # a running node never dies of what it plays
                if not self._stopping:
                    self._on_error('timer', error)
            pace.wait(self.period)
