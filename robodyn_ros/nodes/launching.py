"""What the launch files share: one node for one robot, each argument declared here once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from launch.actions import DeclareLaunchArgument
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def launch_node(name: str, remappings: Sequence[tuple[Any, Any]] = ()) -> LaunchDescription:
    """Return the description that starts one node of this package for a robot."""
    config = PathJoinSubstitution([FindPackageShare('robodyn_ros'), 'config', f'{name}.yaml'])
    description = ParameterValue(Command(['xacro ', LaunchConfiguration('urdf')]), value_type=str)
    return LaunchDescription([
        DeclareLaunchArgument('urdf', description='URDF or xacro file of the robot'),
        DeclareLaunchArgument('motors', default_value='', description='YAML with motor data'),
        DeclareLaunchArgument('loops', default_value='',
                              description='YAML that closes the tree to loops'),
        DeclareLaunchArgument('config', default_value=config, description='YAML of parameters'),
        DeclareLaunchArgument('namespace', default_value='', description='namespace of the node'),
        Node(package='robodyn_ros', executable=name, name=name, output='screen',
             namespace=LaunchConfiguration('namespace'), remappings=list(remappings),
             parameters=[LaunchConfiguration('config'), {
                 'robot_description': description,
                 'motors_file': LaunchConfiguration('motors'),
                 'loops_file': LaunchConfiguration('loops')}]),
    ])
