"""Starts the node `feedforward` for a robot: `ros2 launch robodyn_ros feedforward.launch.py urdf:=arm.urdf`."""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

CONFIG = PathJoinSubstitution([FindPackageShare('robodyn_ros'), 'config', 'feedforward.yaml'])


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the node."""
    return LaunchDescription([
        DeclareLaunchArgument('urdf', description='URDF or xacro file of the robot'),
        DeclareLaunchArgument('motors', default_value='', description='YAML with motor data'),
        DeclareLaunchArgument('config', default_value=CONFIG, description='YAML of parameters'),
        DeclareLaunchArgument('namespace', default_value='', description='namespace of the node'),
        Node(
            package='robodyn_ros', executable='feedforward', name='feedforward', output='screen',
            namespace=LaunchConfiguration('namespace'),
            parameters=[LaunchConfiguration('config'), {
                'robot_description': ParameterValue(
                    Command(['xacro ', LaunchConfiguration('urdf')]), value_type=str),
                'motors_file': LaunchConfiguration('motors'),
            }]),
    ])
