"""The node `observer` beside a controller and the embedded simulator, in lock-step."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import ClosedLoop  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from ros_world import World, message_at, seconds  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from synthetic import own_robot  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import Contact  # noqa: E402
from robodyn_interfaces.srv import SetModel  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import nanoseconds  # noqa: E402

pytestmark = pytest.mark.nodes
TEXT = own_robot('articulated_3r')
POSE = [0.2, 0.5, -0.6]
FORCE = np.array([0.0, 15.0, -20.0, 0.0, 0.0, 0.0])
EFFORT = '{gravity: removed, commands_add: [gravity]}'


class Watched:
    """A closed loop that holds a pose, and the observer of its robot."""

    def __init__(self, world, lock_step=True):
        self.world, self.dynamics = world, rd.Dynamics(rd.load_model(TEXT))
        effort = f'effort:="{EFFORT}"'
        self.process = NodeProcess('observer', '--ros-args', '-p', effort, '-p',
                                   'contact_thresholds:=[1.0]', '-p', 'wrench_link:=tip')
        self.loop = ClosedLoop(world, TEXT, simulator=(effort, 'rate:=1000.0'), controller=(
            effort, 'mode:=gravity_compensation', 'damping:=[20.0]'), lock_step=lock_step)
        world.wait_for_model('observer')
        self.torque = world.collect(JointState, 'observer/external_torque')
        self.wrench = world.collect(WrenchStamped, 'observer/external_wrench')
        self.contact = world.collect(Contact, 'observer/contact')
        self.loop.begin(POSE)
        world.wait(lambda: self.torque and self.wrench and self.contact, 'observations')

    def close(self):
        self.loop.__exit__()
        self.process.stop()

    def push(self, force):
        self.loop.pause(True)
        message = WrenchStamped()
        message.header.frame_id = 'tip'
        push = message.wrench.force
        push.x, push.y, push.z = map(float, force[:3])
        before = self.world.count('simulator', 'pushes')
        self.world.publish(WrenchStamped, 'simulator/push', message)
        self.world.wait(lambda: self.world.count('simulator', 'pushes') > before, 'the push')
        self.start = self.loop.now()
        self.loop.pause(False)

    def run(self, time):
        """Let simulated time pass; then the world is paused and all of it observed."""
        self.loop.until(self.loop.now() * 1e-9 + time)
        self.loop.pause(True)
        last = self.loop.now()
        self.world.wait(lambda: message_at(self.contact, last), 'the last observation')

    def state(self, position, velocity, effort, after):
        """Publish a state some time after the last one, s; return its stamp, ns."""
        stamp = self.loop.now() + round(after * 1e9)
        return self.world.state(self.dynamics.joints.joint_names, position, velocity, effort,
                                ns=stamp)

    def rest_in_poses(self):
        """Publish states of a robot at rest in several poses, with hardly any effort."""
        names, stamp = self.dynamics.joints.joint_names, self.loop.now() + 10**9
        for pose in ([0.0, 0.3, 0.5], [0.5, 0.6, -0.2], [-0.5, 0.9, 0.4], [0.2, 0.1, 0.1]):
            for k in range(200):
                stamp += 10**6
                speed = 0.0 if k > 20 else 0.5  # it has just arrived
                self.world.state(names, pose, [speed] * 3, [0.01] * 3, ns=stamp)
                time.sleep(0.001)  # of queued states, only the newest is processed


@pytest.fixture(scope='module')
def watched():
    world = World()
    found = Watched(world)
    yield found
    found.close()
    world.close()


def test_a_robot_that_adds_gravity_is_held_and_no_contact_is_found(watched):
    watched.run(0.3)
    watched.contact.clear()  # the robot was set to its pose, which an observer takes for a push
    watched.loop.pause(False)
    watched.run(0.3)
    states = watched.loop.states
    assert np.abs(np.array(states[-1].position) - POSE).max() < 1e-3
    assert np.abs(states[-1].effort).max() < 1e-3  # gravity is neither commanded nor reported
    assert np.abs(watched.torque[-1].effort).max() < 0.05
    assert {message.state for message in watched.contact} == {Contact.NONE}


def test_a_push_is_a_contact_and_its_wrench_is_found(watched):
    watched.contact.clear()
    watched.push(FORCE)
    watched.run(0.1)
    state = watched.loop.states[-1]
    expected = watched.dynamics.jacobian(np.array(state.position), 'tip').T @ FORCE
    found = np.array(watched.torque[-1].effort)
    assert np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
    accidental = [m for m in watched.contact if m.state == Contact.ACCIDENTAL]
    assert accidental and 0 <= seconds(accidental[0]) - watched.start * 1e-9 < 0.02
    assert accidental[-1].magnitude > accidental[-1].threshold == 1.0
    message = watched.wrench[-1]
    assert message.header.frame_id == 'base'
    force, moment = message.wrench.force, message.wrench.torque
    values = np.array([force.x, force.y, force.z, moment.x, moment.y, moment.z])
    jacobian = watched.dynamics.jacobian(np.array(state.position), 'tip')
    assert np.allclose(jacobian.T @ values, found, atol=0.1)


def test_a_new_model_in_the_middle_of_a_contact_keeps_the_contact(watched):
    watched.contact.clear()
    answer = watched.world.call(SetModel, 'observer/set_model',
                                SetModel.Request(robot_description=TEXT, origin='test'))
    assert answer.success, answer.message
    watched.loop.pause(False)
    watched.run(0.05)
    assert watched.contact
    assert {message.state for message in watched.contact} == {Contact.ACCIDENTAL}


def test_zero_takes_the_push_as_no_contact(watched):
    assert watched.world.call(Trigger, 'observer/zero', Trigger.Request()).success
    watched.torque.clear()
    watched.contact.clear()
    watched.loop.pause(False)
    watched.run(0.01)
    assert np.abs(watched.torque[-1].effort).max() < 2.0
    assert watched.contact[-1].state == Contact.NONE


@pytest.mark.parametrize(('position', 'velocity', 'effort', 'kind'), [
    (POSE, [0.0] * 3, (), 'no_effort'), (POSE, (), [0.0] * 3, 'no_velocity'),
    (POSE, [0.0] * 3, [0.0, float('nan'), 0.0], 'not_finite'),
    ([0.0, float('inf'), 0.0], [0.0] * 3, [0.0] * 3, 'not_finite'),
    (POSE, [1e308] * 3, [0.0] * 3, 'not_finite')])
def test_a_bad_state_is_counted_and_not_answered(watched, position, velocity, effort, kind):
    world, before = watched.world, watched.world.count('observer', kind)
    watched.loop.pause(True)
    stamp = watched.state(position, velocity, effort, 0.01)
    world.wait(lambda: world.count('observer', kind) > before, kind)
    assert message_at(watched.contact, stamp) is None


def test_frozen_states_are_noticed(watched):
    world = watched.world
    for k in range(60):
        watched.state(POSE, [0.5] * 3, [0.0] * 3, 0.02 + 0.001 * k)
    world.wait(lambda: world.count('observer', 'frozen') > 0, 'frozen states')


def test_wrong_thresholds_and_links_are_refused(watched):
    for name, value, valid in (('contact_thresholds', [1.0, 2.0], '3'),
                               ('wrench_link', 'hand', 'tip'), ('wrench_axes', 'world', 'root')):
        answer = watched.world.set_parameter('observer', name, value)
        assert not answer.successful and valid in answer.reason


def test_efforts_at_rest_that_contradict_the_setting_are_reported(watched):
    """The robot reports no gravity, and the setting says that it does."""
    world, nodes = watched.world, ('observer', 'feedforward')
    assert not world.count('feedforward', 'efforts_contradict')
    for node in nodes:
        assert world.set_parameter(node, 'effort', 'gravity: included').successful
    watched.rest_in_poses()
    world.wait(lambda: 'is wrong' in world.diagnostics['observer']['message'] and world.count(
        'feedforward', 'efforts_contradict'), 'warnings')
    assert 'measured torques are 0.0' in watched.loop.controller.log()
    for node in nodes:
        assert world.set_parameter(node, 'effort', EFFORT).successful


def test_currents_without_gains_are_refused_and_the_model_goes_on(watched):
    world = watched.world
    before = world.count('observer', 'states')
    answer = world.set_parameter('observer', 'effort', 'measured: current')
    assert not answer.successful and 'drive_gain' in answer.reason
    watched.state(POSE, [0.0] * 3, [0.1] * 3, 0.01)
    world.wait(lambda: world.count('observer', 'states') > before, 'another state')


def test_everything_that_was_published_is_finite(watched):
    for message in watched.torque:
        assert np.isfinite(message.effort).all() and nanoseconds(message.header.stamp) >= 0


@pytest.mark.real_time
def test_a_push_is_found_within_20_ms_in_real_time(world, stalls):
    """At 1 kHz of the wall clock: every state is answered, and a push is found at once."""
    real = Watched(world, lock_step=False)
    try:
        real.run(0.3)
        before, began = (len(real.loop.states), len(real.contact)), time.monotonic()
        real.loop.pause(False)
        real.run(1.0)
        states, answers = len(real.loop.states) - before[0], len(real.contact) - before[1]
        print(f'{answers} of {states} states answered')
        assert states - answers <= 5 + 2000 * stalls.total(began)
        assert {message.state for message in real.contact[before[1]:]} == {Contact.NONE}
        real.contact.clear()
        began = time.monotonic()
        real.push(FORCE)
        real.run(0.3)
        accidental = [m for m in real.contact if m.state == Contact.ACCIDENTAL]
        assert accidental
        late = seconds(accidental[0]) - real.start * 1e-9
        print(f'found after {1e3 * late:.0f} ms')
        assert 0 <= late < 0.02 + stalls.worst(began)
        assert np.isfinite([m.magnitude for m in real.contact]).all()
    finally:
        real.close()
