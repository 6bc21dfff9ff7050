"""Model health in the node `observer`, and reactions to contacts in `feedforward`."""

import contextlib
import threading

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from ros_world import World, payload, trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from synthetic import fourier_motion, own_robot  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import Contact  # noqa: E402
from robodyn_interfaces.srv import SetModel, SetPayload  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds  # noqa: E402

pytestmark = pytest.mark.nodes
TEXT = own_robot('articulated_3r')
NAMES = ('waist', 'shoulder', 'elbow')
MOTORS = {'joints': {name: {'link_friction': {'coulomb': 2.0, 'viscous': 1.0}} for name in NAMES},
          'residual': dict.fromkeys(NAMES, 0.1)}
POSE = np.array([0.2, 0.5, -0.6])
SECOND = 1_000_000_000


class Robot:
    """Both nodes, and a robot whose states and contacts the test publishes; stamps are its own."""

    def __init__(self, root):
        self.world, self.root, self.stamp = World(), root, 10 * SECOND
        self.motors = root / 'motors.yaml'
        self.motors.write_text(yaml.safe_dump(MOTORS))
        self.file = root / 'observer.health.json'
        self.file.write_text('[' * 100_000)  # as a broken disk might leave it
        self.dynamics = rd.Dynamics(rd.load_model(TEXT, motors=MOTORS))
        self.observer = self.start_observer()
        words = ('mode:=pd_gravity', 'kp:=[50.0]', 'kd:=[1.0]', 'damping:=[1.0]', 'ramp:=0.1',
                 'brake_time:=0.1', 'watchdog:=false', 'state_timeout:=600.0', 'hold:=600.0',
                 'zero_after:=600.0', 'path_tolerance:=[0.0]', 'contact_topic:=touched')
        self.controller = NodeProcess('feedforward', '--ros-args', *(
            word for entry in words for word in ('-p', entry)))
        self.world.describe(TEXT)
        for node in ('observer', 'feedforward'):
            self.world.wait_for_model(node)
        self.seen = self.world.collect(Contact, 'observer/contact')
        self.torques = self.world.collect(JointState, 'feedforward/torque')
        self.connect()

    def start_observer(self):
        return NodeProcess('observer', '--ros-args', '-p', f'motors_file:={self.motors}', '-p',
                           f'root:={self.root}', '-p', 'contact_thresholds:=[500.0]')

    def close(self):
        self.observer.stop()
        self.controller.stop()
        self.world.close()

    def connect(self):
        """Publish states until both nodes answer: the first ones may reach nobody."""
        self.seen.clear()
        self.torques.clear()
        for _ in range(100):
            self.state()
            self.world.spin(0.1)
            if self.seen and self.torques:
                return
        raise AssertionError(self.observer.log() + self.controller.log())

    def state(self, q=POSE, qd=(0.0,) * 3, effort=(0.0,) * 3, after=0.01):
        self.stamp += round(after * SECOND)
        self.world.state(NAMES, q, qd, effort, ns=self.stamp)

    def answers(self, count):
        """The torques for some states at rest, each awaited."""
        found = []
        for _ in range(count):
            self.torques.clear()
            self.state()
            self.world.wait(lambda: self.torques and nanoseconds(
                self.torques[-1].header.stamp) == self.stamp, 'an answer')
            found.append(np.array(self.torques[-1].effort))
            assert (np.abs(found[-1]) <= self.dynamics.joints.effort_limit).all()
        return np.array(found)

    def move(self, seconds, friction):
        """Move for a time, with a multiple of the friction, at 40 states a second."""
        motion = fourier_motion(self.dynamics.model, np.random.default_rng(1), seconds, 40)
        _, q, qd, qdd = motion
        tau = self.dynamics.inverse_dynamics(q, qd, qdd) + (
            friction - 1) * self.dynamics.friction(qd, q) * [0, 1, 0]
        for first in range(0, len(q), 400):
            self.seen.clear()
            rows = list(zip(q, qd, tau, strict=True))[first:first + 400]
            for row in rows:
                self.state(*row, after=0.025)
            self.world.wait(lambda: self.seen and nanoseconds(
                self.seen[-1].header.stamp) == self.stamp, 'all states')  # noqa: B023

    def says(self):
        return self.world.diagnostics['observer'].get('message', '')

    def touch(self, state=Contact.ACCIDENTAL, joint='elbow', magnitude=9.0, age=0.0):
        message = Contact(state=state, joint=joint, link='tip', magnitude=magnitude,
                          threshold=1.0)
        set_nanoseconds(message.header.stamp, self.stamp - round(age * SECOND))
        self.world.publish(Contact, 'touched', message)

    @contextlib.contextmanager
    def touching(self):
        """Report the contact again and again, as an observer does."""
        over = threading.Event()

        def report():
            while not over.wait(0.05):
                self.touch()

        self.touch()
        thread = threading.Thread(target=report)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def acknowledge(self):
        return self.world.call(Trigger, 'feedforward/acknowledge_contact', Trigger.Request())

    def follow(self):
        """Ask for a pose that is 0.1 rad away, and wait until it is followed."""
        message = trajectory(NAMES, [(0.0, POSE, 0 * POSE, 0 * POSE),
                                     (0.5, POSE + 0.1, 0 * POSE, 0 * POSE)])
        self.world.publish(JointTrajectory, 'feedforward/reference', message)


@pytest.fixture(scope='module')
def robot(tmp_path_factory):
    robot = Robot(tmp_path_factory.mktemp('root'))
    yield robot
    robot.close()


def test_a_file_that_cannot_be_used_is_named_and_set_aside(robot):
    robot.world.wait(lambda: robot.world.count('observer', 'health_file') == 1, 'the warning')
    assert f'{robot.file}: is not JSON: nested too deeply' in robot.observer.log()
    assert (robot.root / 'observer.health.json.bad').read_text() == '[' * 100_000


def test_friction_that_rose_is_reported_also_after_a_restart_and_with_a_payload(robot):
    world = robot.world
    robot.move(30.0, friction=1.3)
    robot.move(60.0, friction=1.3)
    expected = 'joint shoulder: friction 30 % above the identified model since '
    world.wait(lambda: expected in robot.says(), 'the message')
    assert world.count('observer', 'model_changed') == 1
    text = robot.says()
    robot.observer.stop()
    assert robot.file.stat().st_size < 20_000
    world.diagnostics.clear()
    robot.observer = robot.start_observer()
    world.wait_for_model('observer')
    robot.connect()
    world.wait(lambda: robot.says() == text, f'{text!r} again, not {robot.says()!r}')
    assert world.call(SetPayload, 'observer/set_payload', payload('tip', 0.5)).success
    robot.state()
    world.wait(lambda: world.count('observer', 'model_version') == 2, 'the payload')
    world.wait(lambda: robot.says() == text, 'the same message')


def test_another_model_starts_anew(robot):
    world, other = robot.world, {**MOTORS, 'joints': {
        name: {'link_friction': {'coulomb': 2.6, 'viscous': 1.3}} for name in NAMES}}
    answer = world.call(SetModel, 'observer/set_model', SetModel.Request(
        robot_description=TEXT, motors=yaml.safe_dump(other), origin='test'))
    assert answer.success, answer.message
    robot.connect()
    world.wait(lambda: robot.says() == 'contact: none', 'a new start')
    assert 'no free motion yet' in world.diagnostics['observer']['health shoulder']


def test_by_default_contacts_are_ignored(robot):
    assert robot.world.node.count_subscribers('touched') == 0
    assert not robot.acknowledge().success


@pytest.mark.parametrize('kind', ['yield', 'stop'])
def test_an_accidental_contact_yields_or_stops_until_it_is_acknowledged(robot, kind):
    world, gravity = robot.world, robot.dynamics.with_model(rd.load_model(TEXT)).gravity(POSE)
    assert world.set_parameter('feedforward', 'on_contact', kind).successful
    robot.follow()
    world.wait(lambda: np.abs(robot.answers(1)[0] - gravity).max() > 4.0, 'the motion', 10.0)
    held = robot.answers(60)[-1]
    before = world.count('feedforward', 'contact')
    robot.touch(Contact.INTENDED)
    robot.touch(Contact.NONE)
    np.testing.assert_allclose(robot.answers(1)[0], held, atol=1e-9)
    robot.touch()
    world.wait(lambda: world.count('feedforward', 'contact') == before + 1, 'the contact')
    found = robot.answers(30)
    changed = np.abs(found - held).max(axis=1) > 1e-9
    assert not changed[0] and changed[1:].all()  # 0.02 s after the contact, and it fades
    assert np.abs(np.diff(found, axis=0)).max() < 0.4 * np.abs(held).max()
    np.testing.assert_allclose(found[-1], gravity if kind == 'yield' else 0.0, atol=1e-9)
    world.wait(lambda: world.diagnostics['feedforward'].get('reaction_delay') == '0.020000',
               'the delay')
    assert world.diagnostics['feedforward']['message'].startswith(f'{kind} after an accidental')
    refused = world.count('feedforward', 'reference_refused')
    with robot.touching():
        robot.follow()
        world.wait(lambda: world.count('feedforward', 'reference_refused') > refused, 'a refusal')
        answer = robot.acknowledge()
    assert not answer.success and 'joint elbow persists' in answer.message
    np.testing.assert_allclose(robot.answers(1)[0], found[-1], atol=1e-9)
    robot.touch(Contact.NONE)
    world.wait(lambda: robot.acknowledge().success, 'the acknowledgement', 10.0)
    np.testing.assert_allclose(robot.answers(15)[-1], gravity, atol=1e-9)


def test_contacts_that_cannot_be_right_are_counted_and_ignored(robot):
    world = robot.world
    assert world.set_parameter('feedforward', 'on_contact', 'stop').successful
    before = robot.answers(1)[0]
    for kind, change in (('contact_refused', {'magnitude': float('nan')}),
                         ('contact_refused', {'joint': 'knee'}), ('contact_refused', {'state': 7}),
                         ('contact_stale', {'age': 0.5}), ('contact_stale', {'age': -0.5})):
        count = world.count('feedforward', kind)
        robot.touch(**change)
        world.wait(lambda: world.count('feedforward', kind) > count, f'{kind} {change}')  # noqa: B023
    np.testing.assert_allclose(robot.answers(15)[-1], before, atol=1e-9)
    world.wait(lambda: 'cannot react' in world.diagnostics['feedforward']['message'], 'why')
    world.wait(lambda: world.count('feedforward', 'no_contacts') > 0, 'the warning')
    assert not world.set_parameter('feedforward', 'on_contact', 'flee').successful
