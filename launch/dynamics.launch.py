"""Starts the node `dynamics`: ros2 launch robodyn_ros dynamics.launch.py urdf:=arm.urdf."""

from robodyn_ros.nodes.launching import node_launch_description


def generate_launch_description():
    """Return the launch description."""
    return node_launch_description('dynamics')
