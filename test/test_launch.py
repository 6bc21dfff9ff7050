"""The launch files, run by the real `ros2 launch` where it is installed."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gazebo_server import why_no_gazebo

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from rclpy.parameter import parameter_value_to_python  # noqa: E402
from ros2_tools import MISSING, Ros2, need_ros2  # noqa: E402
from ros_world import LATCHED  # noqa: E402
from std_msgs.msg import Float64, String  # noqa: E402

from robodyn_ros.errors import ValueRangeError  # noqa: E402
from robodyn_ros.nodes.declarations import NODES, Declaration, parameters_of  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402

ROOT = Path(__file__).parent.parent
UR10 = (ROOT / 'test/data/ur10/ur10_nomesh.urdf').read_text()
ARM = ROOT / 'urdf/articulated_3r.urdf.xacro'


def described(path):
    pytest.importorskip('launch_ros', reason=MISSING)
    return runpy.run_path(str(path))['generate_launch_description']()


# what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize('name', NODES)
def test_every_parameter_of_a_node_is_an_argument_of_its_launch_file(name, world):
    if name == 'gazebo_bridge' and why_no_gazebo():
        pytest.skip(why_no_gazebo())
    file = name.removesuffix('_bridge')
    declared = described(ROOT / f'launch/{file}.launch.py').get_launch_arguments()
    with NodeProcess(name):
        world.wait(lambda: name in world.diagnostics, 'the node')
        names = set(parameters_of(name))
        assert {'autostart', 'gravity', 'motors_file'} < names
        values, descriptors = world.parameters(name, sorted(names))
        assert [d.name for d in descriptors] == sorted(names)
        for value, descriptor in zip(values, descriptors, strict=True):
            assert parameter_value_to_python(value) == parameters_of(name)[descriptor.name].default
    assert names | {'urdf', 'motors', 'xacro_args', 'config', 'namespace',
                    'use_sim_time'} <= {argument.name for argument in declared}
    assert all(argument.description for argument in declared)


def test_an_argument_becomes_a_value_of_the_type_of_the_parameter():
    rate = Declaration('rate', 500.0, '', (1.0, 5000.0))
    assert rate.value_of('100') == 100.0 and isinstance(rate.value_of('100'), float)
    assert Declaration('delay', 0.0, '', (0.0, 1.0)).value_of('1e-3') == 1e-3
    gains = Declaration('kp', [-1.0], '', None)
    assert gains.value_of('[1, 2.5]') == [1.0, 2.5] and gains.value_of('3') == [3.0]
    assert Declaration('brakes', False, '', None).value_of('true') is True
    assert Declaration('mode', 'pd', '', None).value_of('1') == '1'
    assert Declaration('apply_to', ['a'], '', None).value_of('[b, c]') == ['b', 'c']
    for declaration, text, valid in ((rate, 'fast', 'a number'), (rate, '0', '1 to 5000'),
                                     (gains, '[1, true]', 'a list'), (rate, 'true', 'a number'),
                                     (Declaration('brakes', False, '', None), '2', 'true'),
                                     (parameters_of('simulator')['dropped'], '1.5', '0 to 1')):
        with pytest.raises(ValueRangeError, match=valid):
            declaration.value_of(text)


# what the nodes are started with --------------------------------------------------------------


@pytest.mark.nodes
def test_arguments_reach_the_node(world, tmp_path):
    need_ros2()
    folder = tmp_path / 'a folder'
    shutil.copytree(ROOT / 'urdf', folder / 'urdf')
    shutil.copytree(ROOT / 'config', folder / 'config')
    (tmp_path / 'own.yaml').write_text('/**: {ros__parameters: {timestep: 0.0005, seed: 7}}')
    with Ros2('launch', 'robodyn_ros', 'simulator.launch.py',
              f'urdf:={folder}/urdf/{ARM.name}',
              f'xacro_args:=parameters:={ROOT}/config/robots/articulated_3r.yaml', 'rate:=100',
              'brakes:=true', 'start_position:=0.1', 'namespace:=left', 'seed:=8',
              f'config:={tmp_path / "own.yaml"}', 'brake:=true') as process:
        world.wait(lambda: 'left/simulator' in world.diagnostics, 'the node')
        names = ['rate', 'brakes', 'start_position', 'timestep', 'seed', 'command_timeout']
        values, _ = world.parameters('left/simulator', names)
        assert list(map(parameter_value_to_python, values)) == [
            100.0, True, [0.1], 0.0005, 8, 0.1]
        assert world.node.count_publishers('/left/joint_states') == 1
        assert "no launch argument 'brake': it is ignored; did you mean 'brakes'?" in \
            process.log()
        assert process.stop() == 0


@pytest.mark.nodes
@pytest.mark.parametrize(('argument', 'sentence'), [
    ('urdf:=/nowhere/arm.urdf', "urdf is '/nowhere/arm.urdf': there is no such file"),
    ('motors:=nowhere.yaml', "motors_file is 'nowhere.yaml': there is no such file"),
    ('config:=nowhere.yaml', "config is 'nowhere.yaml': there is no such file"),
    ('gravity:=down', "gravity is 'down'; valid: a number, or a list of such: [a number, ...]"),
    ('xacro_args:=arm', "unknown argument in xacro_args 'arm'; valid: name:=value"),
])
def test_errors_are_one_sentence(argument, sentence):
    need_ros2()
    with Ros2('launch', 'robodyn_ros', 'dynamics.launch.py', f'urdf:={ARM}', argument) as process:
        assert process.wait() == 1
        assert sentence in process.log()
        assert 'Traceback' not in process.log()


@pytest.mark.nodes
def test_two_robots_in_namespaces_do_not_receive_each_others_messages(world):
    options = ('-p', 'rate:=50.0', '-p', 'lock_step:=true')
    with NodeProcess('simulator', '--ros-args', *options, '-r', '__ns:=/left'), \
            NodeProcess('simulator', '--ros-args', *options, '-r', '__ns:=/right', '-p',
                        'publish_clock:=false'):
        for side in ('left', 'right'):
            world.publish(String, f'{side}/robot_description', String(data=UR10), LATCHED)
            world.wait(lambda side=side: 'running at' in world.diagnostics.get(
                f'{side}/simulator', {}).get('message', ''), f'the robot on the {side}')
        topics = dict(world.node.get_topic_names_and_types())
        joints = [name for name in topics if name.endswith('elbow_joint/cmd_force')]
        robot = joints[0].split('/')[-4]
        assert sorted(joints) == [f'/{side}/model/{robot}/joint/elbow_joint/cmd_force'
                                  for side in ('left', 'right')]
        assert all(topics[name] == ['std_msgs/msg/Float64'] for name in joints)
        assert world.node.count_publishers('/clock') == 1
        world.publish(Float64, joints[0], Float64(data=1.0))
        world.wait(lambda: world.count(joints[0].split('/')[1] + '/simulator', 'commands') == 1,
                   'the command')
        other = {'left': 'right', 'right': 'left'}[joints[0].split('/')[1]]
        world.spin(1.2)
        assert world.count(f'{other}/simulator', 'commands') == 0


# the experiment ---------------------------------------------------------------------------------


@pytest.mark.nodes
@pytest.mark.parametrize('where', ['embedded', pytest.param('gazebo', marks=pytest.mark.skipif(
    why_no_gazebo() is not None, reason=str(why_no_gazebo())))])
def test_one_launch_file_and_calibrate_identify_the_robot(world, tmp_path, where, monkeypatch):
    """In Gazebo, which has no rotors, a controller with rotors in its model is unstable."""
    need_ros2()
    monkeypatch.setenv('GZ_IP', '127.0.0.1')
    monkeypatch.setenv('GZ_PARTITION', f'launch{os.getpid()}')
    rotors = tmp_path / 'rotors.yaml'
    rotors.write_text(yaml.safe_dump({'joints': {name: {'armature': 20.0} for name in (
        'waist', 'shoulder', 'elbow')}}))
    more = [f'motors:={rotors}'] if where == 'gazebo' else []
    truth = tmp_path / 'truth.yaml'
    truth.write_text(yaml.safe_dump({'links': {'link2': {'mass': 1.3}, 'link3': {'mass': 0.8}}}))
    with Ros2('launch', 'robodyn_ros', 'experiment.launch.py', f'urdf:={ARM}', f'truth:={truth}',
              f'root:={tmp_path}', 'real_time_factor:=0', 'start_delay:=0.0',
              'namespace:=lab', f'world:={where}', *more) as process:
        process.wait_for('waiting -> gravity compensation', 180.0)
        world.wait_for_model('lab/identification')
        world.wait_for_model('lab/dynamics')
        done = subprocess.run(
            [sys.executable, '-m', 'robodyn_ros.commands.main', 'calibrate', '--force', '--name',
             'run', '--search-time', '8', '--period', '3', '--action',
             '/lab/identification/identify'], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr + process.log()[-3000:]
        assert 'applied to the running nodes' in done.stdout, done.stdout
        for node in ('lab/dynamics', 'lab/feedforward'):
            world.wait_for_model(node, 2)
            assert world.diagnostics[node]['model_origin'] == 'run'
        assert process.stop() == 0, process.log()[-3000:]
        assert not re.search('Traceback|ERROR', process.log()), process.log()


@pytest.mark.nodes
def test_lock_step_begins_without_calling_step(world):
    """The controller starts after the simulator has published its first state, or before."""
    world.describe(UR10)
    with NodeProcess('simulator', '--ros-args', '-p', 'lock_step:=true'):
        world.wait(lambda: 'waiting for torques on /simulator/torque' in world.diagnostics.get(
            'simulator', {}).get('message', ''), 'what it waits for')
        assert 'at 0.000 s' in world.diagnostics['simulator']['message']
        with NodeProcess('feedforward', '--ros-args', '-p', 'mode:=pd', '-r',
                         '~/torque:=simulator/torque'):
            world.wait(lambda: world.count('simulator', 'commands') > 100, 'a running loop')
