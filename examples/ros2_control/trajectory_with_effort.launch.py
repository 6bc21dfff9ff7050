"""Track with feed-forward: `feedforward` fills in a trajectory's efforts for the controller.

ros2 launch trajectory_with_effort.launch.py urdf:=arm.urdf.xacro
ros2 topic pub --once /feedforward/reference trajectory_msgs/msg/JointTrajectory ...

joint_trajectory_controller adds the efforts of each point to its PD.
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument
from launch.substitutions import Command, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription

CONTROLLERS = Path(__file__).with_name('controllers.yaml')


def generate_launch_description():
    """Return what to start."""
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
             arguments=['joint_state_broadcaster', 'joint_trajectory_controller']),
        Node(package='robodyn_ros', executable='feedforward',
             remappings=[('~/trajectory_with_effort',
                          '/joint_trajectory_controller/joint_trajectory')]),
    ])
