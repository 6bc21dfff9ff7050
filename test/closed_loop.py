"""A controller and a simulated robot in separate processes, for tests that close the loop."""

import time
from contextlib import ExitStack
from functools import cached_property

import numpy as np
from gazebo_server import GazeboServer
from ros_world import message_at, seconds
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

import robodyn_ros as rd
from robodyn_ros.control import Reference
from robodyn_ros.excitation import sample_motion as fast_motion
from robodyn_ros.nodes.fast_path import DEPTH, FastSubscriptions
from robodyn_ros.nodes.processes import NodeProcess
from robodyn_ros.nodes.stamps import nanoseconds, set_nanoseconds
from robodyn_ros.nodes.trajectories import trajectory_of


def _fail(topic, error):
    raise error


# in lock-step the wall clock has no effect, and looking at it 500 times a second only costs time
PATIENT = ('state_timeout:=600.0', 'zero_after:=600.0', 'watchdog:=false', 'rate:=20.0')


class ClosedLoop:
    """The nodes `simulator` and `feedforward` for one robot.

    With ``robot='gazebo_bridge'`` the robot is in Gazebo, on the same topics and services.
    """

    def __init__(self, world, text, *, simulator=(), controller=(), lock_step=True,
                 robot='simulator', states_as='joint_states', loops=None):
        self.world, self.model = world, rd.load_model(text)
        self.joints = self.model.joints
        if loops is not None:
            closed = f'loops_file:={loops}'
            simulator, controller = (*simulator, closed), (*controller, closed)
            self.joints = rd.ClosedLoopDynamics(self.model, loops).joints
        self._stack = ExitStack()
        patient = PATIENT if lock_step else ()
        step = ('lock_step:=true',) if lock_step else ()
        self._what = 'torque' if lock_step else 'commands'  # stamped: the answer to one state
        self._robot, self._options = robot, (*step, *simulator)
        self._lock_step, self._states_as = lock_step, states_as
        self.gazebo = self._stack.enter_context(GazeboServer()) if robot == 'gazebo_bridge' \
            else None
        self.simulator = self.start_simulator()
        self.start_controller(*patient, *controller)
        world.describe(text)
        world.wait(lambda: 'running at' in world.diagnostics.get('simulator', {}).get(
            'message', ''), 'a simulated robot')
        world.wait_for_model('feedforward')
        self.states = world.collect(JointState, 'joint_states')
        self.taken = world.collect(JointTrajectory, 'feedforward/trajectory_with_effort')
        world.wait(lambda: world.node.count_publishers(f'simulator/{self._what}') >= 1, 'torques')
        world.spin(0.5)
        if lock_step and states_as == 'joint_states':
            self.connect()

    def connect(self):
        """In lock-step, reset until a state is answered: the first may reach nobody."""
        for last in (False,) * 9 + (True,):
            assert self.world.call(Trigger, 'simulator/reset', Trigger.Request()).success
            try:
                return self.until(0.05, 60.0 if last else 6.0)
            except AssertionError:
                if last:
                    raise

    def start_simulator(self):
        return self._start(self._robot, *self._options, remap=('__node:=simulator',))

    def start_controller(self, *parameters):
        self.controller = self._start(
            'feedforward', 'friction_width:=0.01', *parameters,
            remap=(f'~/{self._what}:=/simulator/{self._what}',
                   f'joint_states:={self._states_as}'))

    def hear(self, callback):
        """Call back with every joint state."""
        listener = FastSubscriptions(self.world.node, _fail)
        listener.add(JointState, 'joint_states', callback, DEPTH)
        listener.start()
        self._stack.callback(listener.stop)

    def _start(self, name, *parameters, remap=()):
        arguments = [word for entry in parameters for word in ('-p', entry)]
        arguments += [word for entry in remap for word in ('-r', entry)]
        return self._stack.enter_context(NodeProcess(name, '--ros-args', *arguments))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.close()

    def law(self, mode):
        assert self.world.set_parameter('feedforward', 'mode', mode).successful

    def begin(self, pose, held=False):
        """Put the robot at a pose, at time 0; with `held`, it stays there until the pause ends."""
        torques = [] if self._lock_step else self.torques
        self.pause(True)
        assert self.world.set_parameter('simulator', 'start_position', [float(x) for x in pose]
                                        ).successful
        self.world.spin(0.1)
        self.states.clear()
        torques.clear()
        assert self.world.call(Trigger, 'simulator/reset', Trigger.Request()).success
        if not self._lock_step:  # in lock-step only an answer advances it
            self.world.wait(lambda: self.states and message_at(torques, self.now()),
                            'the torque at the start')
        if not held:
            self.pause(False)
            self.world.wait(lambda: self.states, 'the first state')

    def pause(self, held):
        """Pause the world, or let it continue."""
        self.world.pause(held)

    def let_pass(self, seconds):
        """Let simulated time pass, and hold the world again."""
        self.pause(False)
        self.until(self.now() * 1e-9 + seconds)
        self.pause(True)

    def step(self):
        """Advance the world by one cycle, also while it is held."""
        assert self.world.call(Trigger, 'simulator/step', Trigger.Request()).success

    def hold_until(self, condition, what, timeout=200.0, advance=None):
        """Hold the world until a condition is true; it advances by a few cycles now and then.

        The controller would take a motion for late if its last state were seconds old. With
        `step` to advance it, a busy machine cannot pause it too late.
        """
        advance = advance or (lambda: self.let_pass(0.02))
        end = time.monotonic() + timeout
        self.pause(True)
        while not condition():
            assert time.monotonic() < end, f'waited {timeout} s for {what}'
            advance()
            self.world.spin(0.3, until=condition)

    @cached_property
    def torques(self):
        """Torques of the controller, collected since the first access."""
        torques = self.world.collect(JointState, 'feedforward/torque')
        self.world.wait(lambda: torques, 'a torque')
        return torques

    def now(self):
        return nanoseconds(self.states[-1].header.stamp)

    def until(self, seconds, timeout=300.0):
        """Wait until the simulated time."""
        try:
            self.world.wait(lambda: self.states and self.now() >= seconds * 1e9,
                            f'{seconds} s of simulated time', timeout)
        except AssertionError as error:
            raise AssertionError(f'{error}\n{self.world.diagnostics}\n'
                                 f'{self.controller.log()[-2000:]}\n'
                                 f'{self.simulator.log()[-2000:]}') from None

    def follow(self, motion, rate=100.0):
        """Follow an excitation from its start; return q - q_r at every state, shape (N, n)."""
        t, (q, qd, qdd, _) = motion.samples(rate)
        return self.follow_points(t, q, qd, qdd)

    def follow_points(self, t, *points):
        """Follow q, qd, qdd, shape (N, n), at times t from 0; return q - q_r at every state."""
        reference = Reference(t, *points)
        message = trajectory_of(self.joints.joint_names, t, *points)
        assert any(self._sent(message, reference.q[0]) for _ in range(5)), \
            self.controller.log()[-2000:]
        start = self.started
        self.until(start * 1e-9 + t[-1])
        times, q, _, _ = self.history()
        times = times - start * 1e-9
        moving = (times >= 0) & (times <= t[-1])
        return np.array([x - reference.sample(s)[0] for s, x in zip(
            times[moving], q[moving], strict=True)])

    def _sent(self, message, pose):
        """Send a motion that starts in a second; in lock-step the world waits until it is taken.

        Return whether it was: where the wall's clock is a second further, it counts as late.
        """
        self.begin(pose)
        self.until(0.05)
        if self._lock_step:
            self.pause(True)
        self.started = self.now() + 1_000_000_000
        set_nanoseconds(message.header.stamp, self.started)
        before = len(self.taken)
        self.world.publish(JointTrajectory, 'feedforward/reference', message)
        if not self._lock_step:
            return True
        try:
            self.world.wait(lambda: len(self.taken) > before, 'a motion to be taken', 5.0)
            return True
        except AssertionError:
            return False
        finally:
            self.pause(False)

    def history(self):
        """Stamps, s, shape (N,); positions, velocities, torques, shape (N, n) each."""
        states = list(self.states)
        stamps = [seconds(m) for m in states]
        return np.array(stamps), *(np.array([getattr(m, field) for m in states])
                                   for field in ('position', 'velocity', 'effort'))


__all__ = ['PATIENT', 'ClosedLoop', 'fast_motion', 'rms']


def rms(wrong):
    return float(np.sqrt(np.mean(np.square(wrong))))
