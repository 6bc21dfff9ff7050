"""Files of parameters, examples of ros2_control, and layouts fit the robots and the nodes."""

import json
import runpy
from pathlib import Path

import pytest
import yaml
from lxml import etree
from measured_logs import DATA

import robodyn_ros as rd

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from rclpy.parameter import parameter_value_to_python  # noqa: E402
from ros2_tools import MISSING  # noqa: E402

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / 'examples/ros2_control').glob('*.launch.py'))
PARAMETERS = sorted(path for folder in ('config', 'examples') for path in
                    (ROOT / folder).rglob('*.yaml') if 'ros__parameters' in path.read_text())


def flat(values, prefix=''):
    """Nested parameters as ROS names them."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f'{prefix}{name}.')
        else:
            yield f'{prefix}{name}', value


@pytest.mark.parametrize('path', PARAMETERS, ids=lambda path: path.name)
def test_ros_reads_the_parameters_as_they_are_written(path):
    """Read by the parser of rcl, which every node uses, and not by PyYAML."""
    content = yaml.safe_load(path.read_text())
    for section, entry in content.items():
        context = rclpy.Context()
        rclpy.init(context=context, args=['--ros-args', '--params-file', str(path)],
                   domain_id=100)
        try:
            name = 'anyone' if section == '/**' else section.split('/')[-1]
            node = rclpy.create_node(name, context=context, start_parameter_services=False,
                                     automatically_declare_parameters_from_overrides=True)
            found = {name: parameter_value_to_python(
                parameter.get_parameter_value()) for name, parameter in node._parameters.items()}
            node.destroy_node()
        finally:
            rclpy.shutdown(context=context)
        for name, value in flat(entry['ros__parameters']):
            assert found[name] == value and type(found[name]) is type(value), name


@pytest.mark.parametrize('path', [p for p in PARAMETERS if p.parent.name == 'config'],
                         ids=lambda path: path.name)
def test_the_parameters_are_those_of_the_nodes(path):
    from robodyn_ros.nodes.declarations import NODES, parameters_of

    for section, entry in yaml.safe_load(path.read_text()).items():
        stem = {'gazebo': 'gazebo_bridge'}.get(path.stem, path.stem)
        node = stem if section == '/**' else section.split('/')[-1]
        assert node in NODES
        declared = parameters_of(node)
        for name, value in entry['ros__parameters'].items():
            text = value if isinstance(value, str) else json.dumps(value)
            assert declared[name].value_of(text) == value, name
            assert type(declared[name].default) is type(value), name


def test_the_files_are_written_from_the_declarations():
    """After changing a parameter, run tools/write_config.py."""
    from robodyn_ros.nodes.declarations import NODES

    tool = runpy.run_path(str(ROOT / 'tools/write_config.py'))
    for node in NODES:
        path = ROOT / f'config/{tool["FILES"].get(node, node)}.yaml'
        assert path.read_text() == tool['config_of'](node), path


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_examples_start_the_controllers_with_their_parameters(path):
    pytest.importorskip('launch_ros', reason=MISSING)
    from launch.actions import OpaqueFunction
    from launch.utilities import perform_substitutions

    from launch import LaunchContext

    context = LaunchContext()
    context.launch_configurations['urdf'] = str(DATA / 'ur10/ur10_nomesh.urdf')
    entities = runpy.run_path(str(path))['generate_launch_description']().entities
    nodes = [node for entity in entities for node in entity.execute(context) or ()
             if isinstance(entity, OpaqueFunction)]
    assert [node.node_package for node in nodes] == [
        'robot_state_publisher', 'controller_manager', 'controller_manager', 'robodyn_ros']
    words = [perform_substitutions(context, part) for part in nodes[2].cmd[1:]]
    content = yaml.safe_load(Path(words[words.index('--param-file') + 1]).read_text())
    assert words[1] in content  # the joint_state_broadcaster, before it, has no parameters
    assert not nodes[1].expanded_remapping_rules  # it subscribes to /robot_description by itself


def test_the_controllers_have_the_joints_of_the_robot():
    content = yaml.safe_load((ROOT / 'examples/ros2_control/controllers.yaml').read_text())
    joints = list(rd.load_model(DATA / 'ur10/ur10_nomesh.urdf').joint_names)
    for controller in ('forward_effort_controller', 'joint_trajectory_controller'):
        assert content[controller]['ros__parameters']['joints'] == joints
    assert list(content['joint_trajectory_controller']['ros__parameters']['gains']) == joints


def test_layouts_can_be_read():
    layout = json.loads((ROOT / 'config/layouts/foxglove.json').read_text())
    used = json.dumps(layout['layout'])
    assert all(panel in used for panel in layout['configById'])
    assert etree.parse(str(ROOT / 'config/layouts/plotjuggler.xml')).getroot().tag == 'root'
    window = yaml.safe_load((ROOT / 'config/layouts/robodyn.rviz').read_text())
    shown = {display['Class']: display for display in window['Visualization Manager']['Displays']}
    robot = shown['rviz_default_plugins/RobotModel']  # its frames come from robot_state_publisher
    assert robot['Description Topic']['Value'] == '/robot_description'
    assert robot['Description Topic']['Durability Policy'] == 'Transient Local'
