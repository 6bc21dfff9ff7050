"""`GazeboWorld` with a real, headless Gazebo, without ROS: time steps, speed, joint states."""

import time

import numpy as np
import pytest
from gazebo_server import GazeboServer, why_no_gazebo
from robots import joint, link, robot
from synthetic import own_robot

from robodyn_ros.description.examples import example_robots
from robodyn_ros.spatial import inertia_components, rotation_from_rpy

if why_no_gazebo():
    pytest.skip(why_no_gazebo(), allow_module_level=True)
from robodyn_ros.simulation import Simulation  # noqa: E402
from robodyn_ros.simulation.gazebo import GazeboRobot  # noqa: E402
from robodyn_ros.simulation.gazebo_bindings import load_bindings  # noqa: E402
from robodyn_ros.simulation.gazebo_listener import GazeboListener  # noqa: E402
from robodyn_ros.simulation.gazebo_world import GazeboWorld  # noqa: E402

pytestmark = pytest.mark.nodes

PLANAR = own_robot('planar_2r')
START = np.array([0.2, -0.3])


@pytest.fixture(scope='module')
def server():
    with GazeboServer() as server:
        yield server


@pytest.fixture
def world(server):
    """Create a world with the arm for given options; at the end it leaves Gazebo."""
    worlds = []

    def create(**options):
        worlds.append(GazeboWorld(GazeboRobot.of(PLANAR), **options))
        worlds[-1]._listener.until(worlds[-1].serves, 'the world')
        return worlds[-1]

    yield create
    for one in worlds:
        one.close()


@pytest.mark.parametrize('timestep', [1e-3, 1 / 1024, 1 / 300, 0.00123456789])
@pytest.mark.parametrize('steps', [1, 3])
def test_any_time_step_works_also_one_that_is_not_a_whole_number_of_nanoseconds(
        world, timestep, steps):
    arm, engine = world(timestep=timestep, steps=steps), Simulation(PLANAR, timestep=timestep)
    arm.appear(START)
    arm.reset(START)
    engine.reset(START)
    for torque in np.random.default_rng(0).normal(size=(5, 2)):
        arm.step(torque, steps)
        engine.step(torque, steps)
    assert arm.time == pytest.approx(5 * steps * timestep, rel=1e-5)
    np.testing.assert_allclose(arm.position, engine.position, atol=1e-6)
    before = arm.position
    arm.hold(steps)
    assert arm.time == pytest.approx(6 * steps * timestep, rel=1e-5)
    np.testing.assert_allclose(arm.position, before, atol=1e-12)


def test_a_robot_appears_in_a_world_that_is_younger_than_a_cycle(world):
    """Gazebo publishes no joint states in the first period of their rate."""
    first = world(timestep=1e-3, steps=1)
    first.appear(START)
    first.reset(START)
    first.step([0.0, 0.0])
    assert first.time == 1e-3
    second = world(timestep=1e-3, steps=10)
    second.appear(START)
    np.testing.assert_allclose(second.position, START, atol=1e-12)
    assert not second.velocity.any()


def body(name, mass, *moments, turn=0.0):
    """A link whose inertial is turned about x, then about z."""
    spin = rotation_from_rpy([turn, 0.0, turn])
    return link(name, mass, (0.1, 0.0, 0.1), inertia_components(
        spin @ np.diag(moments) @ spin.T))


ODD = {
    'massless chains': robot(
        body('base', 0.0, 0, 0, 0), body('arm', 1.0, 0.02, 0.03, 0.04), joint(
            'j1', 'revolute', 'base', 'arm'),
        *(part for parent in ('base', 'arm') for k in '12' for part in (
            body(f'{parent}{k}', 0.0, 0, 0, 0),
            joint(f'to_{parent}{k}', 'fixed', parent + ('' if k == '1' else '1'), parent + k)))),
    'impossible base': robot(
        body('base', 1.0, 0.1, 0.1, 0.9), body('arm', 1.0, 0.02, 0.03, 0.04),
        joint('j1', 'revolute', 'base', 'arm')),
    'rods': robot(body('base', 1.0, 0.1, 0.1, 0.1), *(part for k in range(8) for part in (
        body(f'rod{k}', 1.0, 0.0, 0.02, 0.02, turn=0.3 * k + 0.1),
        joint(f'j{k}', 'revolute', 'base', f'rod{k}')))),
    'talos_full_v2': (example_robots() / 'talos_data/robots/talos_full_v2.urdf').read_text()}


@pytest.mark.parametrize('name', ODD)
def test_inertias_that_gazebo_would_refuse_as_they_are(server, name):
    prepared = GazeboRobot.of(ODD[name])
    gazebo = GazeboWorld(prepared, name='odd')
    try:
        gazebo._listener.until(gazebo.serves, 'the world')
        start = np.clip(np.zeros(gazebo.n), prepared.model.lower, prepared.model.upper)
        gazebo.appear(start)
        gazebo.step(np.ones(gazebo.n), 10)
        assert 0 < np.abs(gazebo.position - start).max() < 0.1
    finally:
        gazebo.close()


def test_names_that_topics_of_gazebo_do_not_allow(server):
    text = PLANAR.replace('"joint1"', '"joint @1"').replace('"joint2"', '"joint 2"')
    found = []
    for description, name in ((text, 'an arm'), (PLANAR, 'an_other')):
        gazebo = GazeboWorld(GazeboRobot.of(description), name=name)
        try:
            gazebo._listener.until(gazebo.serves, 'the world')
            gazebo.appear(START)
            gazebo.step([0.3, -0.2], 10)
            found.append(gazebo.position)
        finally:
            gazebo.close()
    np.testing.assert_allclose(*found, atol=1e-12)


@pytest.mark.real_time
def test_a_lost_confirmation_of_the_first_forces_is_requested_again(world, monkeypatch):
    """As happens where Gazebo publishes it before it knows who listens."""
    arm, confirmed = world(timestep=1e-3, steps=1), []
    send = arm._writer.send

    def lose_the_first(forces, confirm=False):
        confirmed.append(confirm)
        send(forces, confirm and confirmed.count(True) > 1)

    monkeypatch.setattr(arm._writer, 'send', lose_the_first)
    arm.appear(START)
    assert confirmed.count(True) == 2
    taken = arm._listener.taken
    arm.step([1.0, 0.0])
    assert arm._listener.taken == taken + 1


@pytest.mark.real_time
def test_a_real_time_factor_of_zero_is_faster_than_one(world):
    """Gazebo itself ignores a request for 0."""
    arm = world(timestep=1e-3, steps=50)
    took = {}
    for factor in (1.0, 0.0):
        arm.appear(START, real_time_factor=factor)
        began = time.monotonic()
        for _ in range(20):
            arm.step([0.0, 0.0], 50)
        took[factor] = time.monotonic() - began
    print('1 s of simulated time took', took)
    assert took[0.0] < 0.7 * took[1.0]


def test_states_are_passed_on_once_a_cycle_where_gazebo_publishes_every_step(server):
    """As Gazebo does before gz-sim 8.14, which ignores the rate."""
    gazebo, stamps = load_bindings(), []
    listener = GazeboListener('elsewhere', 'arm', ('j1',),
                              lambda: stamps.append(listener.stamp // 1_000_000), 5_000_000)
    try:
        node = gazebo.Node()
        publisher = node.advertise('/world/elsewhere/model/arm/joint_state',
                                   gazebo.messages['Model'])
        listener.until(publisher.has_connections, 'the connection')
        for stamp in (*range(3, 20), 20, 20, 1, 2, *range(3, 9)):  # a pause, and a reset
            message = gazebo.messages['Model']()
            message.header.stamp.nsec = stamp * 1_000_000
            joint = message.joint.add()
            joint.name, joint.axis1.position = 'j1', stamp
            publisher.publish(message)
            listener.until(lambda stamp=stamp: listener.position[0] == stamp, 'the state')
        assert stamps == [3, 8, 13, 18, 1, 6]
    finally:
        listener.close()
