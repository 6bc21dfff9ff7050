"""Starts the node `identification`: robodyn_ros identification.launch.py urdf:=arm.urdf.

Its motion goes to `trajectory_topic` (default: the reference of the node `feedforward`).
"""

from robodyn_ros.nodes.launching import node_launch_description


def generate_launch_description():
    """Return what to start."""
    return node_launch_description('identification')
