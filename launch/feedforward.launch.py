"""Starts the node `feedforward`: ros2 launch robodyn_ros feedforward.launch.py urdf:=arm.urdf."""

from robodyn_ros.nodes.launching import launch_node


def generate_launch_description():
    """Return what to start."""
    return launch_node('feedforward')
