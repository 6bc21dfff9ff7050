"""Starts a whole experiment: ros2 launch robodyn_ros experiment.launch.py urdf:=arm.urdf.

A simulated robot, `dynamics`, `feedforward` as its controller, and `identification`; then
`robodyn calibrate --apply` identifies the robot and gives its model to the controller.
config/experiment.yaml holds what differs from the usual parameters of the nodes.
"""

from launch.actions import OpaqueFunction
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.nodes.launching import (
    GAZEBO,
    arguments_for,
    gazebo_actions,
    given,
    node_action,
    robot_description,
    share,
)

NODES = ('dynamics', 'feedforward', 'identification')
WORLDS = ('simulator', 'gazebo_bridge')
ARGUMENTS = {
    'world': 'where the robot moves: embedded (the default), or gazebo',
    'robot_state_publisher': 'start robot_state_publisher: true or false (the default)',
    **GAZEBO,
    'rviz': 'start RViz, and robot_state_publisher with it: true or false (the default)',
}


def start(context):
    """Return the actions, where the arguments are known."""
    before = [share() / 'config/experiment.yaml']
    rotors = given(context, 'world') != 'gazebo'  # its robot has none, see docs/howto/gazebo.md
    return [*world(context, before),
            *(node_action(context, name, before=before, rotors=rotors) for name in NODES),
            *pictures(context)]


def world(context, before):
    """Return what moves the robot."""
    worlds = ['embedded', 'gazebo']
    chosen = given(context, 'world') or worlds[0]
    if chosen not in worlds:
        raise UnknownNameError('world', chosen, worlds)
    if chosen == 'gazebo':
        return gazebo_actions(context, before=before)
    return [node_action(context, 'simulator', before=before)]


def pictures(context):
    """Return robot_state_publisher and RViz, where they are wanted."""
    rviz = given(context, 'rviz') == 'true'
    if not rviz and given(context, 'robot_state_publisher') != 'true':
        return []
    common = {'namespace': given(context, 'namespace'), 'output': 'screen'}
    layout = str(share() / 'config/layouts/robodyn.rviz')
    publisher = Node(
        package='robot_state_publisher', executable='robot_state_publisher', **common,
        parameters=[{'use_sim_time': True, 'robot_description': ParameterValue(
            robot_description(context), value_type=str)}])
    window = Node(package='rviz2', executable='rviz2', arguments=['-d', layout], **common,
                  parameters=[{'use_sim_time': True}])
    return [publisher, *([window] if rviz else [])]


def generate_launch_description():
    """Return what to start."""
    return LaunchDescription([*arguments_for((*WORLDS, *NODES), ARGUMENTS),
                              OpaqueFunction(function=start)])
