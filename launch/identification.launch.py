"""Starts the node `identification`: robodyn_ros identification.launch.py urdf:=arm.urdf.

Its motion goes to `trajectory_topic` (default: the reference of the node `feedforward`).
"""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration

from robodyn_ros.nodes.launching import launch_node


def generate_launch_description():
    """Return what to start."""
    description = launch_node('identification', remappings=[
        ('~/trajectory', LaunchConfiguration('trajectory_topic'))])
    description.entities.insert(0, DeclareLaunchArgument(
        'trajectory_topic', default_value='feedforward/reference',
        description='JointTrajectory topic of the controller that moves the robot'))
    return description
