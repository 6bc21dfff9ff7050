"""Starts `identification`: ros2 launch robodyn_ros identification.launch.py urdf:=arm.urdf.

It publishes its motion on `trajectory_topic` (default: the reference of the node `feedforward`).
"""

from robodyn_ros.nodes.launching import node_launch_description


def generate_launch_description():
    """Return the launch description."""
    return node_launch_description('identification')
