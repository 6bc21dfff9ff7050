"""`robodyn parameters`: lists the base parameters of a robot and what is regrouped into them."""

from __future__ import annotations

import argparse

from robodyn_ros.commands.options import (
    add_base,
    add_kind,
    add_loops,
    add_robot,
    robot_of,
)
from robodyn_ros.dynamics import dynamics_of
from robodyn_ros.identification import base_parameters
from robodyn_ros.model.kinds import KIND_NAMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_robot(parser)
    add_loops(parser)
    add_kind(parser, KIND_NAMES)
    add_base(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    robot = dynamics_of(robot_of(options, base=options.base), options.loops)
    print(base_parameters(robot, options.kind).to_text())
    return 0
