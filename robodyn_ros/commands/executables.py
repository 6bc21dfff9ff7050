"""The executables of the nodes that pip installs; without ROS 2 they end with a message."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module

from robodyn_ros.errors import RobodynError
from robodyn_ros.packages import explained


def main(node: str) -> int:
    """Run a node of this package; return its exit code."""
    try:
        module = import_module(f'robodyn_ros.nodes.{node}')
    except ImportError as error:
        reason: Exception = explained(error)
        if not isinstance(reason, RobodynError):
            reason = RobodynError(f'nodes need ROS 2 ({error}); source a distribution')
        print(f'robodyn-{node}: {reason}', file=sys.stderr)
        return 2
    return int(module.main())


dynamics, feedforward, identification, observer, simulator, gazebo_bridge = (
    partial(main, node) for node in ('dynamics', 'feedforward', 'identification', 'observer',
                                     'simulator', 'gazebo_bridge'))
