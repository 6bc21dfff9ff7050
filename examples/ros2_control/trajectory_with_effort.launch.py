"""Track with feed-forward: `feedforward` fills in a trajectory's efforts for the controller.

ros2 launch robodyn_ros trajectory_with_effort.launch.py urdf:=arm.urdf.xacro
ros2 topic pub --once /feedforward/reference trajectory_msgs/msg/JointTrajectory ...

joint_trajectory_controller 4.22 and newer adds the efforts of the points to its PD, linearly
interpolated between them: give points every 10 to 20 ms. Older versions ignore efforts.
"""

from pathlib import Path

from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from launch import LaunchDescription
from robodyn_ros.nodes.launching import ros2_control_actions, ros2_control_arguments

CONTROLLERS = Path(__file__).with_name('controllers.yaml')


def start(context):
    """Return the actions for the arguments of the launch."""
    return [
        *ros2_control_actions(context, 'joint_trajectory_controller'),
        Node(package='robodyn_ros', executable='feedforward', output='screen',
             remappings=[('~/trajectory_with_effort',
                          'joint_trajectory_controller/joint_trajectory')]),
    ]


def generate_launch_description():
    """Return the launch description."""
    return LaunchDescription([*ros2_control_arguments(CONTROLLERS),
                              OpaqueFunction(function=start)])
