"""Starts the node `observer`: ros2 launch robodyn_ros observer.launch.py urdf:=arm.urdf."""

from robodyn_ros.nodes.launching import node_launch_description


def generate_launch_description():
    """Return the launch description."""
    return node_launch_description('observer')
