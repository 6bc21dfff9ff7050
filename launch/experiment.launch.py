"""Starts a whole experiment: ros2 launch robodyn_ros experiment.launch.py urdf:=arm.urdf.

It consists of a simulated robot, `dynamics`, `feedforward` as its controller, and
`identification`; `robodyn calibrate --apply` then identifies the robot and loads the identified
model into the controller. config/experiment.yaml contains the parameters that differ from the
defaults of the nodes, and config/experiment_gazebo.yaml those that differ in Gazebo.
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
    'world': 'simulation of the robot: embedded (the default) or gazebo',
    'robot_state_publisher': 'start robot_state_publisher: true or false (the default)',
    **GAZEBO,
    'rviz': 'start RViz, and robot_state_publisher with it: true or false (the default)',
}


def start(context):
    """Return the actions for the arguments of the launch."""
    before = [share() / 'config/experiment.yaml']
    rotors = given(context, 'world') != 'gazebo'  # its robot has none, see docs/howto/gazebo.md
    if not rotors:
        before.append(share() / 'config/experiment_gazebo.yaml')
    return [*world(context, before),
            *(node_action(context, name, before=before, rotors=rotors) for name in NODES),
            *pictures(context)]


def world(context, before):
    """Return the actions that start the simulated robot."""
    worlds = ['embedded', 'gazebo']
    chosen = given(context, 'world') or worlds[0]
    if chosen not in worlds:
        raise UnknownNameError('world', chosen, worlds)
    if chosen == 'gazebo':
        return gazebo_actions(context, before=before)
    return [node_action(context, 'simulator', before=before)]


def pictures(context):
    """Return robot_state_publisher and RViz, if requested."""
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
    """Return the launch description."""
    return LaunchDescription([*arguments_for((*WORLDS, *NODES), ARGUMENTS),
                              OpaqueFunction(function=start)])
