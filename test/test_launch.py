"""The launch files, run by the real `launch` and `launch_ros` where they are installed."""

import json
import runpy
from pathlib import Path

import pytest
import yaml
from lxml import etree
from measured_logs import DATA

import robodyn_ros as rd

ROOT = Path(__file__).parent.parent
NODES = sorted(path.name for path in (ROOT / 'launch').glob('*.launch.py'))
EXAMPLES = sorted(path.name for path in (ROOT / 'examples/ros2_control').glob('*.launch.py'))
MISSING = 'launch and launch_ros are on no package index; they come with a ROS distribution'


def described(path):
    pytest.importorskip('launch_ros', reason=MISSING)
    return runpy.run_path(str(path))['generate_launch_description']()


@pytest.mark.parametrize('name', NODES)
def test_launch_files_describe_one_node(name):
    description = described(ROOT / 'launch' / name)
    from launch_ros.actions import Node

    nodes = [entity for entity in description.entities if isinstance(entity, Node)]
    assert len(nodes) == 1
    arguments = {a.name for a in description.get_launch_arguments()}
    assert arguments - {'trajectory_topic'} == {'urdf', 'motors', 'loops', 'config',
                                               'namespace'}


@pytest.mark.parametrize('name', EXAMPLES)
def test_examples_describe_the_controllers_and_the_node(name):
    description = described(ROOT / 'examples/ros2_control' / name)
    from launch_ros.actions import Node

    packages = [e.node_package for e in description.entities if isinstance(e, Node)]
    assert sorted(packages) == ['controller_manager', 'controller_manager', 'robodyn_ros',
                                'robot_state_publisher']


def test_configurations_fit_the_robot_and_the_parameters():
    content = yaml.safe_load((ROOT / 'examples/ros2_control/controllers.yaml').read_text())
    joints = list(rd.load_model(DATA / 'ur10/ur10_nomesh.urdf').joint_names)
    for controller in ('forward_effort_controller', 'joint_trajectory_controller'):
        assert content[controller]['ros__parameters']['joints'] == joints
    assert list(content['joint_trajectory_controller']['ros__parameters']['gains']) == joints
    layout = json.loads((ROOT / 'config/layouts/foxglove.json').read_text())
    used = json.dumps(layout['layout'])
    assert all(panel in used for panel in layout['configById'])
    assert etree.parse(str(ROOT / 'config/layouts/plotjuggler.xml')).getroot().tag == 'root'
    assert yaml.safe_load((ROOT / 'config/layouts/robodyn.rviz').read_text())['Panels']
