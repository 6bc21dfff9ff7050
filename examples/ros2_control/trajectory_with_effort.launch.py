"""Track with feed-forward: `feedforward` fills in a trajectory's efforts for the controller.

ros2 launch robodyn_ros trajectory_with_effort.launch.py urdf:=arm.urdf.xacro
ros2 topic pub --once /feedforward/reference trajectory_msgs/msg/JointTrajectory ...

joint_trajectory_controller 4.22 and newer adds the efforts of the points to its PD, linearly
interpolated between them: give points every 10 to 20 ms. Older versions ignore efforts.
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from robodyn_ros.nodes.launching import given, robot_description

CONTROLLERS = Path(__file__).with_name('controllers.yaml')
ARGUMENTS = {
    'urdf': 'URDF or xacro file with a <ros2_control> tag',
    'xacro_args': 'arguments of the xacro file: "name:=value name:=value"',
    'controllers': 'YAML file with the parameters of the controllers',
}


def start(context):
    """Return the actions, where the arguments are known."""
    controllers = given(context, 'controllers')
    text = ParameterValue(robot_description(context), value_type=str)
    return [
        Node(package='robot_state_publisher', executable='robot_state_publisher',
             parameters=[{'robot_description': text}]),
        # takes the description from the topic robot_description
        Node(package='controller_manager', executable='ros2_control_node',
             parameters=[controllers]),
        Node(package='controller_manager', executable='spawner',
             arguments=['joint_state_broadcaster', 'joint_trajectory_controller', '--param-file',
                        controllers]),
        Node(package='robodyn_ros', executable='feedforward', output='screen',
             remappings=[('~/trajectory_with_effort',
                          'joint_trajectory_controller/joint_trajectory')]),
    ]


def generate_launch_description():
    """Return what to start."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, description=description, default_value=str(
            CONTROLLERS) if name == 'controllers' else '')
          for name, description in ARGUMENTS.items()),
        OpaqueFunction(function=start)])
