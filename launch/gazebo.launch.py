"""Starts Gazebo with a robot: ros2 launch robodyn_ros gazebo.launch.py urdf:=arm.urdf.

Gazebo's server runs without a window; `gui:=true` opens one.
"""

from launch.actions import OpaqueFunction

from launch import LaunchDescription
from robodyn_ros.nodes.launching import GAZEBO, arguments_for, gazebo_actions


def generate_launch_description():
    """Return the launch description."""
    return LaunchDescription([*arguments_for(['gazebo_bridge'], GAZEBO),
                              OpaqueFunction(function=gazebo_actions)])
