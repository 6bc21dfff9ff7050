"""Lead an arm by hand: `feedforward` compensates gravity through forward_command_controller.

ros2 launch robodyn_ros gravity_compensation.launch.py urdf:=arm.urdf.xacro

The description needs a <ros2_control> tag with effort command interfaces and position and velocity
state interfaces. Efforts go out in the order of the controller's joints.
"""

from pathlib import Path

import yaml
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
    joints = yaml.safe_load(Path(controllers).read_text())['forward_effort_controller'][
        'ros__parameters']['joints']
    text = ParameterValue(robot_description(context), value_type=str)
    return [
        Node(package='robot_state_publisher', executable='robot_state_publisher',
             parameters=[{'robot_description': text}]),
        # takes the description from the topic robot_description
        Node(package='controller_manager', executable='ros2_control_node',
             parameters=[controllers]),
        Node(package='controller_manager', executable='spawner',
             arguments=['joint_state_broadcaster', 'forward_effort_controller', '--param-file',
                        controllers]),
        Node(package='robodyn_ros', executable='feedforward', output='screen',
             parameters=[{'mode': 'gravity_compensation', 'friction_width': 0.02,
                          'friction_compensation': 0.5, 'command_joints': joints}],
             remappings=[('~/commands', 'forward_effort_controller/commands')]),
    ]


def generate_launch_description():
    """Return what to start."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, description=description, default_value=str(
            CONTROLLERS) if name == 'controllers' else '')
          for name, description in ARGUMENTS.items()),
        OpaqueFunction(function=start)])
