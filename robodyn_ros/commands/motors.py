"""`robodyn motors`: prints a motor file with what is known of a robot, to fill in."""

from __future__ import annotations

import argparse

from robodyn_ros.commands.options import add_robot, robot_of
from robodyn_ros.model.motor_template import motor_template


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_robot(parser)


def run(options: argparse.Namespace) -> int:
    """Print the YAML text."""
    print(motor_template(robot_of(options)), end='')
    return 0
