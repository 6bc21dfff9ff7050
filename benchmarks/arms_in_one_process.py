"""Runs `dynamics` and `feedforward` of several arms in one process, for `many_arms.py`.

`python benchmarks/arms_in_one_process.py arm1 arm2`: every node has an executor in a thread of its
own, and all of them share one Python interpreter.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from robodyn_ros.nodes.dynamics import DynamicsPublisher
from robodyn_ros.nodes.feedforward import Feedforward
from robodyn_ros.nodes.helper_process import HelperProcess


def main(arguments):
    """Serve all nodes until an interrupt."""
    ended = threading.Event()
    namespaces = arguments[1:arguments.index('--ros-args')]
    kinds = [(kind, name) for name in namespaces for kind in (DynamicsPublisher, Feedforward)]
    helpers = [HelperProcess(kind.tasks) for kind, _ in kinds]
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    nodes = [kind(helper=helper, namespace=name)
             for helper, (kind, name) in zip(helpers, kinds, strict=True)]
    for node in nodes:
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        node.trigger_configure()
        node.trigger_activate()
        threading.Thread(target=executor.spin, daemon=True).start()
    ended.wait()
    for node in nodes:
        node.before_shutdown()
        node.helper.close()
    os._exit(0)  # the executors still run


if __name__ == '__main__':
    main(sys.argv)
