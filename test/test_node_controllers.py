"""robodyn_controllers under a controller manager, where ros2_control is installed."""

from importlib.util import find_spec

import numpy as np
import pytest
from ros2_control_world import (
    ROOT,
    ControllerManager,
    build,
    description,
    export_and_build,
    has,
    why_no_ros2_control,
)

import robodyn_ros as rd
from robodyn_ros.export.values import values_text

WHY = why_no_ros2_control() if find_spec('rclpy') else 'ROS 2 is not set up'
pytestmark = [pytest.mark.nodes, pytest.mark.slow,
              pytest.mark.skipif(bool(WHY), reason=WHY)]
START = np.array([0.2, 0.5, -0.4])
END = np.array([0.8, -0.3, 0.6])
STILL = np.zeros(3)
GAINS = {'library': 'arm_dynamics', 'kp': [200.0, 200.0, 100.0], 'kd': [20.0, 20.0, 5.0],
         'damping': [0.5], 'state_publish_rate': 100.0}
KIND = 'robodyn_controllers/DynamicsController'
BROADCASTER = ('joint_state_broadcaster/JointStateBroadcaster', {})


@pytest.fixture(scope='module')
def model():
    return rd.load_model(ROOT / 'urdf/articulated_3r.urdf.xacro', gravity=(0, 0, -9.81))


@pytest.fixture(scope='module')
def prefix(model, tmp_path_factory):
    """A prefix with the exported arm and the controllers."""
    folder = tmp_path_factory.mktemp('ros2_control')
    export_and_build(model, folder, folder / 'install')
    build(ROOT / 'robodyn_controllers', folder / 'controllers', folder / 'install')
    return folder / 'install'


@pytest.fixture
def manager(world, model, prefix):
    """Return a function that starts a controller manager; it must end without a fault."""
    started = []

    def start(controllers, plugin='robodyn_controllers/MujocoSystem', rate=500):
        started.append(ControllerManager(world, description(model, START, plugin),
                                         {'joint_state_broadcaster': BROADCASTER, **controllers},
                                         prefix, rate))
        return started[-1]
    yield start
    for process in started:
        assert process.stop() == 0, process.output()


def states_of(world, name='arm'):
    from control_msgs.msg import JointTrajectoryControllerState

    return world.collect(JointTrajectoryControllerState, f'/{name}/controller_state')


def above(name, model):
    """Parameters of joint_trajectory_controller in front of a controller."""
    return {'joints': list(model.joint_names),
            'command_joints': [f'{name}/{joint}' for joint in model.joint_names],
            'command_interfaces': ['position', 'velocity', 'acceleration'],
            'state_interfaces': ['position', 'velocity']}


def arrived(q):
    return lambda m: np.abs(np.array(m.feedback.positions) - q).max() < 2e-3


def test_mock_hardware(world, manager, model):
    """Without a reference the efforts are those of gravity, and come back as states."""
    broadcasts = has('joint_state_broadcaster')
    manager({'arm': (KIND, GAINS)}, 'mock_components/GenericSystem').start(
        'arm', *(['joint_state_broadcaster'] if broadcasts else []))
    states, gravity = states_of(world), rd.Dynamics(model).gravity(START)
    world.wait(lambda: states and np.allclose(states[-1].output.effort, gravity),
               'efforts of gravity')
    assert np.isnan(states[-1].reference.positions).all()
    if broadcasts:
        from sensor_msgs.msg import JointState

        joints = world.collect(JointState, '/joint_states')

        def back():
            effort = dict(zip(joints[-1].name, joints[-1].effort, strict=True)) if joints else {}
            return effort and np.allclose([effort[x] for x in model.joint_names], gravity)
        world.wait(back, 'the efforts as states')


def test_a_trajectory_a_payload_and_values(world, manager, model):
    """Without a reference the simulated arm stays; then it follows a trajectory."""
    from ros_world import payload, trajectory
    from trajectory_msgs.msg import JointTrajectory

    from robodyn_interfaces.srv import SetPayload, SetValues

    manager({'arm': (KIND, GAINS)}).start('arm')
    states = states_of(world)
    world.wait(lambda: len(states) > 20, 'states')
    assert all(arrived(START)(message) for message in states)
    motion = trajectory(model.joint_names[::-1], [(1.0, END[::-1], STILL, STILL)])
    world.publish(JointTrajectory, '/arm/joint_trajectory', motion)
    world.wait(lambda: arrived(END)(states[-1]), 'the end of the motion')
    errors = np.array([message.error.positions for message in states])
    assert np.nanmax(np.abs(errors)) < 5e-3  # rad: feed-forward, the model is exact

    dynamics = rd.Dynamics(model)
    answer = world.call(SetPayload, '/arm/set_payload', payload('tip', 2.0))
    assert answer.success and answer.model_version == 2
    loaded = dynamics.with_model(model.with_payload('tip', 2.0))
    added = loaded.gravity(END) - dynamics.gravity(END)
    assert np.abs(added).max() > 5
    world.wait(lambda: np.allclose(np.array(states[-1].output.effort) - dynamics.gravity(END),
                                   added + np.array(GAINS['kp']) * states[-1].error.positions,
                                   atol=0.2), 'torques of the payload')
    assert 'no moving link' in world.call(SetPayload, '/arm/set_payload', payload('x')).message
    assert world.call(SetPayload, '/arm/set_payload', payload('tip')).success
    answer = world.call(SetValues, '/arm/set_values', SetValues.Request(values=values_text(model)))
    assert answer.success and answer.model_version == 4
    answer = world.call(SetValues, '/arm/set_values', SetValues.Request(values='x'))
    assert not answer.success and 'robodyn export' in answer.message
    world.wait(lambda: arrived(END)(states[-1]), 'the end again')


@pytest.mark.skipif(not has('joint_trajectory_controller'),
                    reason='joint_trajectory_controller is not there')
def test_behind_joint_trajectory_controller(world, manager, model):
    """In chained mode the reference is what joint_trajectory_controller commands."""
    from ros_world import trajectory
    from trajectory_msgs.msg import JointTrajectory

    running = manager({'arm': (KIND, GAINS), 'motion': (
        'joint_trajectory_controller/JointTrajectoryController', above('arm', model))})
    running.start('arm', 'motion')
    states = states_of(world)
    world.wait(lambda: states and not np.isnan(states[-1].reference.positions).any(),
               'the reference of the other controller')
    world.publish(JointTrajectory, '/motion/joint_trajectory',
                  trajectory(model.joint_names, [(1.0, END, STILL, STILL)]))
    world.wait(lambda: arrived(END)(states[-1]), 'the end of the motion')
    errors = np.array([message.error.positions for message in states])
    assert np.nanmax(np.abs(errors)) < 5e-3


@pytest.mark.skipif(not has('joint_trajectory_controller'),
                    reason='joint_trajectory_controller is not there')
def test_the_page_starts_the_chain_with_the_spawner(world, manager, model, tmp_path):
    """As docs/howto/dynamics_controller.md writes it, but for the file of parameters."""
    import shlex

    from ros2_tools import Ros2, need_ros2

    need_ros2()
    page = (ROOT / 'docs/howto/dynamics_controller.md').read_text()
    line, = (line for line in page.splitlines() if line.startswith('ros2 run'))
    running = manager({'my_arm': (KIND, GAINS), 'motion': (
        'joint_trajectory_controller/JointTrajectoryController', above('my_arm', model))})
    words = [str(running.parameters) if word == 'controllers.yaml' else word
             for word in shlex.split(line)[1:]]
    with Ros2(*words, cwd=tmp_path) as spawner:
        code, log = spawner.wait(120.0), spawner.log()
    assert code == 0, log + running.output()
    states = states_of(world, 'my_arm')
    world.wait(lambda: states and not np.isnan(states[-1].reference.positions).any(),
               'the reference of the other controller')


def test_what_cannot_be_configured(world, manager):
    """The log names the culprit and what would be valid."""
    from controller_manager_msgs.srv import ConfigureController, LoadController

    running = manager({'gains': (KIND, GAINS | {'kp': [1.0, 2.0]}),
                       'library': (KIND, GAINS | {'library': 'no_such_dynamics'})})
    assert not running.call(LoadController, 'load_controller',
                            LoadController.Request(name='library')).ok
    assert running.call(LoadController, 'load_controller',
                        LoadController.Request(name='gains')).ok
    assert not running.call(ConfigureController, 'configure_controller',
                            ConfigureController.Request(name='gains')).ok
    text = running.output()
    assert "No dynamics library 'no_such_dynamics'" in text
    assert 'Parameter kp has 2 values; valid: 1 or 3' in text
