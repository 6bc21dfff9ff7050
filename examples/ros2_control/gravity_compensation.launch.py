"""Lead an arm by hand: `feedforward` compensates gravity through forward_command_controller.

ros2 launch gravity_compensation.launch.py urdf:=arm.urdf.xacro

The description needs a <ros2_control> tag with effort command interfaces and position and velocity
state interfaces. Efforts go out in the order of the controller's joints.
"""

from pathlib import Path

import yaml
from launch.actions import DeclareLaunchArgument
from launch.substitutions import Command, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription

CONTROLLERS = Path(__file__).with_name('controllers.yaml')


def generate_launch_description():
    """Return what to start."""
    joints = yaml.safe_load(CONTROLLERS.read_text())['forward_effort_controller'][
        'ros__parameters']['joints']
    description = {'robot_description': ParameterValue(
        Command(['xacro ', LaunchConfiguration('urdf')]), value_type=str)}
    return LaunchDescription([
        DeclareLaunchArgument('urdf', description='URDF or xacro with a <ros2_control> tag'),
        Node(package='robot_state_publisher', executable='robot_state_publisher',
             parameters=[description]),
        Node(package='controller_manager', executable='ros2_control_node',
             parameters=[str(CONTROLLERS)],
             remappings=[('~/robot_description', '/robot_description')]),
        Node(package='controller_manager', executable='spawner',
             arguments=['joint_state_broadcaster', 'forward_effort_controller']),
        Node(package='robodyn_ros', executable='feedforward',
             parameters=[{'mode': 'gravity_compensation', 'friction_width': 0.02,
                          'friction_compensation': 0.5, 'command_joints': joints}],
             remappings=[('~/commands', '/forward_effort_controller/commands')]),
    ])
