"""Functions for launch files: arguments of the robot, and nodes with all of their parameters.

If an argument is not given, the parameter keeps the value of the YAML files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, ExecuteProcess, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchContext, LaunchDescription
from robodyn_ros.description.urdf import read_urdf_text
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.nodes.declarations import parameters_of
from robodyn_ros.simulation.gazebo import without_rotor_inertia, world_sdf

PACKAGE = 'robodyn_ros'
# short names of parameters that hold files
SHORT = {'motors': 'motors_file', 'loops': 'loops_file', 'truth': 'truth_file'}
ROBOT = {
    'urdf': 'URDF, xacro, SDF or MJCF file of the robot; empty: the topic robot_description, '
            'which robot_state_publisher publishes',
    'xacro_args': 'arguments of the xacro file: "name:=value name:=value"',
    'config': 'YAML file of parameters, which is read after the files in config/',
    'namespace': 'namespace of all nodes and topics of the robot',
    'use_sim_time': 'follow /clock instead of the time of the machine: true or false',
}
GAZEBO = {
    'gazebo_server': 'start Gazebo: true (the default), or false if it is already running',
    'gui': 'start Gazebo with its window: true or false (the default)',
    'world_file': 'SDF file of the world in Gazebo, with the name and the gravity of the '
                  'parameters gazebo_world and gravity; empty: an empty world',
}
ROS2_CONTROL = {
    'urdf': 'URDF or xacro file with a <ros2_control> tag',
    'xacro_args': ROBOT['xacro_args'],
    'controllers': 'YAML file with the parameters of the controllers',
}
CONFIG = {'gazebo_bridge': 'gazebo'}  # node -> file in config/, if the name differs
TORQUE_TOPIC = {'torque_topic': ('~/torque', 'feedforward/torque', 'topic of torques by joint '
                                 'names, sensor_msgs/JointState')}
# topics that connect a node to others: argument -> topic, default remapping, description
TOPICS: dict[str, dict[str, tuple[str, str, str]]] = {
    'dynamics': {},
    'feedforward': {
        'commands_topic': ('~/commands', '', 'topic of the controller that takes the torques, '
                           'std_msgs/Float64MultiArray'),
        'effort_topic': ('~/trajectory_with_effort', '', 'topic of the controller that takes '
                         'trajectories with efforts, trajectory_msgs/JointTrajectory')},
    'identification': {
        'trajectory_topic': ('~/trajectory', 'feedforward/reference', 'topic of the controller '
                             'that moves the robot, trajectory_msgs/JointTrajectory')},
    'observer': {},
    'simulator': TORQUE_TOPIC,
    'gazebo_bridge': TORQUE_TOPIC,
}


def node_launch_description(name: str) -> LaunchDescription:
    """Return the description that starts one node of this package for a robot."""
    return LaunchDescription([
        *arguments_for([name]),
        OpaqueFunction(function=lambda context: [node_action(context, name)]),
    ])


def arguments_for(nodes: Sequence[str], more: Mapping[str, str] | None = None) -> list[Any]:
    """Return the declarations of the arguments of some nodes, and the check of what was given.

    Parameters
    ----------
    nodes : sequence of str
        Nodes of this package.
    more : mapping, optional
        Descriptions of further arguments, which are empty by default.
    """
    found = ROBOT | dict(more or {})
    for node in nodes:
        for argument, (topic, usual, meaning) in TOPICS[node].items():
            found[argument] = f'{node}: {meaning}' + ('' if usual else f'; empty: {topic}')
        for parameter in parameters_of(node).values():
            before = found.get(parameter.name, '').partition(': ')[0]
            who = f'{before}, {node}' if parameter.name in found else node
            found[parameter.name] = (f'{who}: {parameter.description} '
                                     f'(default of the node: {parameter.default!r})')
    for short, name in SHORT.items():
        if name in found:
            found[short] = f'short for {name}'
    defaults = {argument: topic for node in nodes
             for argument, (_, topic, _) in TOPICS[node].items()}
    return [*(DeclareLaunchArgument(name, default_value=defaults.get(name, ''),
                                    description=description)
              for name, description in found.items()),
            OpaqueFunction(function=_point_at_misspelt, args=[list(found)])]


def node_action(context: LaunchContext, name: str, *, before: Iterable[Path] = (),
                remappings: Iterable[tuple[str, str]] = (), rotors: bool = True) -> Node:
    """Return the action that starts one node, with what the arguments say.

    Parameters
    ----------
    context : LaunchContext
        Holds the arguments.
    name : str
        The node.
    before : iterable of Path
        YAML files of parameters that are read after the node's own and before ``config``.
    remappings : iterable of (str, str)
        Topics beside those of `TOPICS`.
    rotors : bool
        Whether the node gets the rotor inertia of the robot, which Gazebo lacks.

    Raises
    ------
    RobodynError
        An argument is not valid; the error names it.
    """
    parameters: dict[str, Any] = {}
    for parameter in parameters_of(name).values():
        text = given(context, parameter.name)
        for short, long in SHORT.items():
            if long == parameter.name:
                text = text or given(context, short)
        if text and parameter.name.endswith('_file'):
            text = str(existing(text, parameter.name))
        if text:
            parameters[parameter.name] = parameter.value_of(text)
    description = robot_description(context)
    if description and not rotors:
        description = without_rotor_inertia(description,
                                            motors=parameters.pop('motors_file', None))
    if description:
        parameters['robot_description'] = ParameterValue(description, value_type=str)
    if given(context, 'use_sim_time'):
        parameters['use_sim_time'] = given(context, 'use_sim_time').lower() == 'true'
    files = [share() / 'config' / f'{CONFIG.get(name, name)}.yaml', *before]
    if given(context, 'config'):
        files.append(existing(given(context, 'config'), 'config'))
    topics = [(topic, given(context, argument)) for argument, (topic, _, _) in TOPICS[name].items()
              if given(context, argument)]
    return Node(package=PACKAGE, executable=name, name=name, output='screen',
                namespace=given(context, 'namespace'), remappings=[*topics, *remappings],
                parameters=[*map(str, files), parameters])


def gazebo_actions(context: LaunchContext, before: Iterable[Path] = ()) -> list[Any]:
    """Return the actions that start Gazebo and the node `gazebo_bridge`.

    Parameters
    ----------
    context : LaunchContext
        Holds the arguments.
    before : iterable of Path
        YAML files of parameters, as of `node_action`.

    Raises
    ------
    RobodynError, FileNotFoundError
        An argument is not valid, or Gazebo is not installed.
    """
    bridge = node_action(context, 'gazebo_bridge', before=before)
    if given(context, 'gazebo_server') == 'false':
        return [bridge]
    if shutil.which('gz') is None:
        raise FileNotFoundError('Gazebo is not installed: there is no command gz')
    if given(context, 'world_file'):
        world = existing(given(context, 'world_file'), 'world_file')
    else:
        values = {name: parameter.value_of(given(context, name)) if given(context, name)
                  else parameter.default
                  for name, parameter in parameters_of('gazebo_bridge').items()
                  if name in ('timestep', 'gravity', 'gazebo_world')}
        world = Path(tempfile.mkdtemp(prefix='robodyn_')) / 'world.sdf'
        world.write_text(world_sdf(values['timestep'], values['gravity'],
                                   name=values['gazebo_world']))
    window = [] if given(context, 'gui') == 'true' else ['-s']
    server = ExecuteProcess(cmd=['gz', 'sim', *window, str(world)], output='screen')
    return [server, bridge]


def ros2_control_arguments(controllers: Path) -> list[Any]:
    """Return the launch arguments of `ros2_control_actions`; controllers: the default file."""
    return [DeclareLaunchArgument(name, description=description, default_value=str(
        controllers) if name == 'controllers' else '')
        for name, description in ROS2_CONTROL.items()]


def ros2_control_actions(context: LaunchContext, controller: str) -> list[Any]:
    """Return the actions that start ros2_control with a controller and the broadcaster."""
    controllers = given(context, 'controllers')
    text = ParameterValue(robot_description(context), value_type=str)
    return [
        Node(package='robot_state_publisher', executable='robot_state_publisher',
             parameters=[{'robot_description': text}]),
        # takes the description from the topic robot_description
        Node(package='controller_manager', executable='ros2_control_node',
             parameters=[controllers]),
        Node(package='controller_manager', executable='spawner',
             arguments=['joint_state_broadcaster', controller, '--param-file', controllers]),
    ]


def robot_description(context: LaunchContext) -> str:
    """Return the URDF text of the argument ``urdf``, expanded by xacro; '' without one.

    Raises
    ------
    DescriptionError
        The file cannot be read or expanded.
    """
    if not given(context, 'urdf'):
        return ''
    file = existing(given(context, 'urdf'), 'urdf')
    arguments = {}
    for entry in given(context, 'xacro_args').split():
        name, separator, value = entry.partition(':=')
        if not separator:
            raise UnknownNameError('argument in xacro_args', entry, ['name:=value'])
        arguments[name] = value
    return read_urdf_text(file, arguments)


def given(context: LaunchContext, name: str) -> str:
    """Return the text of an argument, or '' if it has none."""
    return str(LaunchConfiguration(name, default='').perform(context))


def existing(text: str, argument: str) -> Path:
    """Return the path that an argument names, absolute.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    """
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise FileNotFoundError(f'{argument} is {text!r}: there is no such file')
    return path


def share() -> Path:
    """Return the folder of the package's data files."""
    return Path(get_package_share_directory(PACKAGE))


def _point_at_misspelt(context: LaunchContext, declared: Iterable[str]) -> list[LogInfo]:
    """Return warnings of ignored arguments that resemble declared ones."""
    messages = []
    for name in sorted({entry.partition(':=')[0] for entry in context.argv} - set(declared)):
        near = get_close_matches(name, declared, n=1, cutoff=0.8)
        if near:
            messages.append(LogInfo(msg=f'there is no launch argument {name!r}: it is '
                                        f'ignored; did you mean {near[0]!r}?'))
    return messages
