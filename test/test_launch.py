"""The launch files, run by the real `launch` and `launch_ros` where they are installed."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip('launch_ros', reason='launch and launch_ros are on no package index; '
                                         'they come with a ROS distribution')

FOLDER = Path(__file__).parent.parent / 'launch'


@pytest.mark.parametrize('name', sorted(path.name for path in FOLDER.glob('*.launch.py')))
def test_launch_files_describe_one_node(name):
    from launch_ros.actions import Node

    from launch import LaunchContext

    description = runpy.run_path(str(FOLDER / name))['generate_launch_description']()
    nodes = [entity for entity in description.entities if isinstance(entity, Node)]
    assert len(nodes) == 1
    arguments = {a.name for a in description.get_launch_arguments()}
    assert arguments == {'urdf', 'motors', 'config', 'namespace'}
    assert LaunchContext() is not None
