"""Runs a node in this process until it is interrupted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions

from robodyn_ros.nodes.base import DynamicsNode
from robodyn_ros.nodes.help import help_of, node_of, wants_help
from robodyn_ros.nodes.helper_process import HelperProcess
from robodyn_ros.nodes.real_time import apply_real_time

FAILED = 2  # exit code
FORCED = 3  # number of interrupts after which the process ends immediately
# s after the last commands, within which the process ends even if the middleware hangs while the
# node is destroyed; `ros2 launch` sends SIGTERM 5 s after an interrupt
ENDS_WITHIN = 3.5


def run(make: Callable[..., DynamicsNode], arguments: list[str] | None = None,
        tasks: dict[str, Callable[[Any], Any]] = DynamicsNode.tasks) -> int:
    """Make a node, start it, and spin it until it is interrupted.

    At the end, the node publishes its last commands before the middleware is shut down.

    Returns
    -------
    int
        The exit code: 2 where the node cannot be made or configured.
    """
    if wants_help(arguments):
        print(help_of(node_of(make.__name__)))
        return 0
    helper = HelperProcess(tasks)
    interrupts = 0
    node: DynamicsNode | None = None

    def on_signal(number: int, frame: Any) -> None:
        nonlocal interrupts
        interrupts += 1
        if node is not None:
            node.ending = True
        if interrupts >= FORCED:
            os._exit(128 + number)

    # rclpy's own handler would end the context first, so that the node could not publish
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    for number in (signal.SIGINT, signal.SIGTERM):  # background shells ignore SIGINT
        signal.signal(number, on_signal)
    code = 0
    try:
        node = make(helper=helper)
        apply_real_time(node)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        if node.get_parameter('autostart').value:
            if node.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                node.trigger_activate()
            elif node.failure:
                code = FAILED
        while rclpy.ok() and not interrupts and not code:
            try:
                executor.spin_once(timeout_sec=0.2)
            except ExternalShutdownException:
                break
            except Exception as error:  # a message or service call must not end the node
                node.on_failure('executor', error)
    except ParameterException as error:  # a value of the wrong type, or outside its range
        get_logger('robodyn_ros').error(f'the node cannot be made: {error}')
        code = FAILED
    finally:
        if node is not None:
            node.ending = True
            node.before_shutdown()
            _end_in_time(helper, code)
            node.end()
            node.destroy_node()  # otherwise clients wait for its services until they time out
        rclpy.try_shutdown()
        helper.close()
    return code


def _end_in_time(helper: HelperProcess, code: int) -> None:
    """End the process with its exit code after `ENDS_WITHIN`, even if it still waits."""
    def end() -> None:
        helper.close()
        os._exit(code)

    timer = threading.Timer(ENDS_WITHIN, end)
    timer.daemon = True
    timer.start()
