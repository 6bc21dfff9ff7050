"""Starts the node `simulator`: ros2 launch robodyn_ros simulator.launch.py urdf:=arm.urdf."""

from robodyn_ros.nodes.launching import launch_node


def generate_launch_description():
    """Return what to start."""
    return launch_node('simulator')
