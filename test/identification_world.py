"""The node `identification` beside a closed loop, and a client of its action."""

import copy
import os
import signal
from contextlib import contextmanager
from functools import cache

import numpy as np
from action_msgs.msg import GoalStatus
from closed_loop import ClosedLoop
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from synthetic import own_robot
from trajectory_msgs.msg import JointTrajectory

import robodyn_ros as rd
from robodyn_interfaces.action import IdentifyDynamics, IdentifyPayload
from robodyn_ros.nodes.processes import NodeProcess

PLANAR = rd.load_model(own_robot('planar_2r'))
EXCITATION = 'motion.yaml'
RATE = 125.0  # Hz, of the states
PACE = 3.0  # simulated time over wall time, if the machine is fast enough
LEASE = 15.0  # s of the simulated clock
STATE_TIMEOUT = 100.0  # s of the wall clock; the world may be held for this long
SUCCEEDED, CANCELED, ABORTED = (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED,
                                GoalStatus.STATUS_ABORTED)


def server(world, root, *parameters, model=1, remap=()):
    """Start the node; the motion goes to `feedforward`."""
    arguments = [f'root:={root}', 'tracking_tolerance:=0.6', *parameters]
    process = NodeProcess('identification', '--ros-args',
                          *(word for entry in arguments for word in ('-p', entry)),
                          '-r', '~/trajectory:=/feedforward/reference', *remap)
    world.wait_for_model('identification', model)
    return process


class Client:
    """Sends one goal, and keeps its feedback and its result."""

    action = IdentifyDynamics, 'identification/identify'

    def __init__(self, world, **goal):
        self.world, self.feedback, self._read = world, [], 0
        self.rest = None  # called when the motion is over: a running world costs computing time
        self._client = ActionClient(world.node, *self.action)
        world.wait(self._client.server_is_ready, 'the server')
        sent = self._client.send_goal_async(
            self.action[0].Goal(**goal),
            feedback_callback=lambda message: self.feedback.append(message.feedback))
        world.wait(sent.done, 'an answer to the goal')
        self._handle = sent.result()
        assert self._handle.accepted
        self._ended = self._handle.get_result_async()

    def until(self, phase, progress=0.0, timeout=120.0):
        """Wait for the feedback that a phase has reached this progress."""
        def reached():
            while self._read < len(self.feedback):
                entry = self.feedback[self._read]
                self._read += 1
                if entry.phase.startswith(phase) and entry.progress >= progress:
                    return True
            assert not self._ended.done(), (phase, self._ended.result().result.reasons)
            return False

        self.world.wait(reached, f'{phase} {progress}', timeout)
        return self.feedback[self._read - 1]

    @property
    def ended(self):
        """Whether the result has arrived."""
        return self._ended.done()

    @property
    def computes(self):
        """Whether the motion is over, and the recording is being read or used."""
        return bool(self.feedback) and self.feedback[-1].phase.startswith(
            ('reading', 'identify', 'swap'))

    def cancel(self):
        self._handle.cancel_goal_async()

    def result(self, timeout=300.0):
        """Wait for the result; its status is in `status`."""
        if self.rest is not None:
            self.world.wait(lambda: self.ended or self.computes, 'the end of the motion', timeout)
            if not self.ended:
                self.rest()
        self.world.wait(self._ended.done, 'the result', timeout)
        self.status = self._ended.result().status
        self._client.destroy()
        return self._ended.result().result


class PayloadClient(Client):
    """As `Client`, for the other action of the node."""

    action = IdentifyPayload, 'identification/identify_payload'


class Relay:
    """Passes joint states on, and damages them on request."""

    def __init__(self):
        self.harm, self.last, self.count = '', None, 0

    def __call__(self, message):
        self.count += 1
        if self.harm == 'frozen':
            stamp = message.header.stamp
            message = copy.deepcopy(self.last)
            message.header.stamp = stamp
        elif self.harm == 'silent':
            return []
        elif self.harm == 'dropped' and self.count % 10 in (3, 4, 7):
            return []
        elif self.harm == 'jump':
            message.header.stamp.sec += 1000
        elif self.harm == 'back':
            message.header.stamp.sec -= 5
        self.last = message
        return [message]


@cache
def excitation():
    """The excitation of the 2R arm."""
    return rd.optimise_excitation(PLANAR, rd.Limits(torque_margin=0.2), period=5.0, harmonics=3,
                                  periods=1, budget=60.0, starts=1)


class Planar:
    """A 2R arm in its closed loop, and the server beside it; its states go through a relay.

    The loop is in lock-step: a machine that stalls holds the arm. The world is held unless a test
    needs motion: while nothing moves, its processes would only cost time.
    """

    def __init__(self, world, root):
        root.mkdir()
        self.world, self.root, self.relay = world, root, Relay()
        (root / EXCITATION).write_text(excitation().to_yaml())
        truth = root / 'truth.yaml'
        # the masses are those of the description: else the arm would sag before its motion begins
        truth.write_text('joints: {joint1: {armature: 0.2, damping: 0.5}, '
                         'joint2: {armature: 0.03, damping: 0.1}}')
        self.start_pose = [float(x) for x in excitation().at(0.0).q]
        self.loop = ClosedLoop(
            world, PLANAR.description.urdf,
            simulator=(f'rate:={RATE}', f'real_time_factor:={PACE}', 'effort_noise:=[0.05]',
                       f'truth_file:={truth}'),
            controller=('mode:=computed_torque', 'hold:=100.0', 'start_tolerance:=3.0'))
        publisher = world.node.create_publisher(JointState, 'relayed', 100)
        self.loop.hear(lambda message: [publisher.publish(m) for m in self.relay(message)])
        self.sent = world.collect(JointTrajectory, 'feedforward/trajectory_with_effort')
        self.begin(self.start_pose)
        self.server = self.start()

    def start(self, *parameters):
        with self.paused():
            process = server(self.world, self.root, f'state_timeout:={STATE_TIMEOUT}',
                             'frozen_after:=0.3', 'start_delay:=1.0', f'lease:={LEASE}',
                             *parameters, remap=('-r', 'joint_states:=relayed'))
            self.world.spin(0.5)
        self.ended = False
        return process

    def begin(self, pose):
        """Put the arm at a pose, and hold the world there."""
        self.loop.begin(pose, held=True)
        self._held = True

    def hold(self, held=True):
        """Hold the world, or let it continue."""
        if held != self._held:
            self.loop.pause(held)
            self._held = held

    @contextmanager
    def paused(self):
        """The world stands still."""
        before = self._held
        self.hold()
        yield
        self.hold(before)

    def let_pass(self, seconds):
        """Let simulated time pass, so that the server has a recent state; then hold the world."""
        self.loop.let_pass(seconds)
        self._held = True

    @contextmanager
    def motion(self):
        """Send a goal, then let the world continue once the controller has taken its motion.

        A busy machine may need longer for that than any delay before the start of the motion.
        """
        self.let_pass(0.1)
        before = len(self.sent)
        yield
        self.loop.hold_until(lambda: len(self.sent) > before, 'the motion',
                             advance=self.loop.step)
        self._held = True
        self.hold(False)

    def end(self, number):
        """Kill or suspend the server with a signal."""
        os.kill(self.server.pid, number)
        self.ended = True

    def go_on(self):
        """Let a suspended server continue."""
        os.kill(self.server.pid, signal.SIGCONT)
        self.ended = False

    def restart(self):
        """End the server, whatever its state, and start it again."""
        if self.server.exit_code is None:
            os.kill(self.server.pid, signal.SIGKILL)
        self.server.__exit__()
        self.world.spin(0.3)  # diagnostics of the old one may be on their way
        self.world.diagnostics.clear()
        self.server = self.start()

    def ask(self, name, **goal):
        """Ask for the known excitation; its first part is for the fit."""
        return Client(self.world, name=name, excitation=EXCITATION, validation_fraction=0.3,
                      friction='coulomb', **goal)

    def excite(self, name, **goal):
        """Play the known excitation."""
        with self.motion():
            client = self.ask(name, **goal)
        client.rest = self.hold
        return client

    def identify_payload(self, **goal):
        """Play the motion from which the payload is identified; return the client."""
        with self.motion():
            client = PayloadClient(self.world, **goal)
        return client

    def record(self, **goal):
        """Record the measured states."""
        self.hold(False)
        return Client(self.world, source=1, **goal)

    def use(self, name, *logs, **goal):
        """Identify from the logs of earlier runs."""
        with self.paused():
            client = Client(self.world, name=name, source=2, logs=list(logs), friction='coulomb',
                            **goal)
            result = client.result()
        assert result.success and client.status == SUCCEEDED, result.reasons
        return result

    def close(self):
        if self.server.exit_code is None and self.ended:
            os.kill(self.server.pid, signal.SIGKILL)  # suspended, it would not follow an interrupt
        self.server.__exit__()
        self.loop.__exit__()

    def speed(self, seconds=0.0):
        """The highest speed of the last seconds of the simulated clock."""
        last = self.loop.states[-max(int(seconds * RATE), 1):]
        return np.abs([message.velocity for message in last]).max()

    def at_rest(self):
        """Wait until the arm rests, which must be within seconds of simulated time."""
        first = len(self.loop.states)

        def still():
            assert len(self.loop.states) < first + (LEASE + 2.5) * RATE, self.speed()
            return len(self.loop.states) > first + 0.3 * RATE and self.speed(0.3) < 0.05

        self.world.wait(still, 'the arm to rest', 60.0)
