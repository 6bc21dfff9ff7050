"""Lead an arm by hand: `feedforward` compensates gravity through forward_command_controller.

ros2 launch robodyn_ros gravity_compensation.launch.py urdf:=arm.urdf.xacro

The description needs a <ros2_control> tag with effort command interfaces and position and velocity
state interfaces. Efforts are sent in the order of the controller's joints.
"""

from pathlib import Path

import yaml
from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from launch import LaunchDescription
from robodyn_ros.nodes.launching import given, ros2_control_actions, ros2_control_arguments

CONTROLLERS = Path(__file__).with_name('controllers.yaml')


def start(context):
    """Return the actions for the arguments of the launch."""
    controllers = yaml.safe_load(Path(given(context, 'controllers')).read_text())
    joints = controllers['forward_effort_controller']['ros__parameters']['joints']
    return [
        *ros2_control_actions(context, 'forward_effort_controller'),
        Node(package='robodyn_ros', executable='feedforward', output='screen',
             parameters=[{'mode': 'gravity_compensation', 'friction_width': 0.02,
                          'friction_compensation': 0.5, 'command_joints': joints}],
             remappings=[('~/commands', 'forward_effort_controller/commands')]),
    ]


def generate_launch_description():
    """Return the launch description."""
    return LaunchDescription([*ros2_control_arguments(CONTROLLERS),
                              OpaqueFunction(function=start)])
