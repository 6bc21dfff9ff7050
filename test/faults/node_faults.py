"""Random sequences of faults on running nodes, and what must hold after each of them.

The nodes `feedforward` (with its watchdog), `dynamics`, `simulator` and `identification` run for
one robot in processes of their own. The simulator's states go to a topic of its own: the states
that the controller answers are those of the campaign, good or bad.
"""

import os
import signal
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
from lifecycle_msgs.msg import Transition
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from robots import planar_2r
from ros_world import World, payload, trajectory
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.action import IdentifyDynamics
from robodyn_interfaces.srv import SetModel, SetPayload
from robodyn_ros.control.tuning import MODES
from robodyn_ros.nodes.fast_path import FastSubscriptions
from robodyn_ros.nodes.processes import NodeProcess
from robodyn_ros.nodes.stamps import nanoseconds

TEXT = planar_2r()
NAMES = ('j1', 'j2')
LIMIT = 100.0  # N m, of both joints
Q = np.array([0.3, -0.4])
TIMEOUT, ZERO_AFTER = 0.3, 0.8  # s
GRAVITY = 'gravity:=[0.0, -9.81, 0.0]'
OPTIONS = {
    'feedforward': ('mode:=gravity_compensation', f'state_timeout:={TIMEOUT}',
                    f'zero_after:={ZERO_AFTER}', GRAVITY),
    'dynamics': (GRAVITY,), 'simulator': ('rate:=100.0', GRAVITY),
    'identification': (GRAVITY,)}
HOSTILE_MODELS = (
    ('', ''), ('<robot', ''), (TEXT.replace('mass value="2', 'mass value="-2'), ''),
    (TEXT, 'a: 2020-13-45'), (TEXT, '[' * 5000), (TEXT, 'joints: {j9: {armature: 1}}'),
    (TEXT, 'joints: {j1: {armature: .inf}}'), (TEXT.replace('revolute', 'floating'), ''))
LATEST = 30.0  # s, within which every request is answered and every node controls again


class Campaign:
    """Nodes, a source of random faults, and the invariants."""

    def __init__(self, seed, root):
        self.rng = np.random.default_rng(seed)
        self.world, self.events, self.broken = World(), Counter(), []
        self.torques = self.states = 0
        self._late, self._timely, self._odd_until = [], 0, 0.0
        self._stack = ExitStack()
        self.nodes = {name: self._start(name, f'root:={root}') for name in OPTIONS}
        listener = FastSubscriptions(self.world.node, lambda topic, error: None)
        listener.add(JointState, 'simulated_states', self._on_simulated, 1000)
        listener.start()
        self._stack.callback(listener.stop)
        self.world.node.create_subscription(JointState, 'feedforward/torque', self._on_torque,
                                            1000)
        self.world.describe(TEXT)
        for name in OPTIONS:
            self.world.wait_for_model(name)
        self._goals = ActionClient(self.world.node, IdentifyDynamics, 'identification/identify')
        self.recover()
        self.threads, self.memory = self._use()

    def _start(self, name, root):
        words = [*OPTIONS[name], *((root,) if name == 'identification' else ())]
        arguments = [word for option in words for word in ('-p', option)]
        if name == 'simulator':
            arguments += ['-r', 'joint_states:=simulated_states']
        return self._stack.enter_context(NodeProcess(name, '--ros-args', *arguments))

    def close(self):
        self._goals.destroy()
        self._stack.close()
        self.world.close()

    # invariants -----------------------------------------------------------------------------

    def _on_torque(self, message, info):
        torque = np.array(message.effort)
        self.torques += 1
        if not np.isfinite(torque).all() or (np.abs(torque) > LIMIT).any():
            self.broken.append(f'torque {torque}')
        age = (info['source_timestamp'] - nanoseconds(message.header.stamp)) * 1e-9
        if time.monotonic() > self._odd_until and age > TIMEOUT + 0.1:
            self._late.append(age)  # when it was published; its stamp is that of a state
        self._timely += abs(age) < TIMEOUT

    def _on_simulated(self, message):
        self.states += 1
        if not np.isfinite(message.position).all() or not np.isfinite(message.effort).all():
            self.broken.append(f'simulated state {message}')

    def _use(self):
        """Threads and memory (MB) of each node."""
        threads, memory = {}, {}
        for name, process in self.nodes.items():
            fields = dict(line.split(':', 1) for line in Path(
                f'/proc/{process.pid}/status').read_text().splitlines() if ':' in line)
            threads[name] = int(fields['Threads'])
            memory[name] = int(fields['VmRSS'].split()[0]) / 1024
        return threads, memory

    def check(self):
        """Check what must hold at any time."""
        for name, process in self.nodes.items():
            assert process.exit_code is None, (name, self.events, process.log()[-3000:])
        assert not self.broken, (self.broken[:3], self.events)
        # a process that is stopped between computing a torque and publishing it makes one late
        assert len(self._late) < 3, ('torques for old states', self._late[:9], self.events,
                                     self.nodes['feedforward'].log()[-2000:])
        self._late.clear()

    def check_use(self):
        """Check that nothing leaks: threads, and memory by more than 64 MB."""
        threads, memory = self._use()
        for name in self.nodes:
            assert threads[name] <= self.threads[name] + 4, (name, threads, self.threads)
            assert memory[name] <= self.memory[name] + 64, (name, memory, self.memory)
        return threads, memory

    def recover(self):
        """Require that the controller answers good states again, with a torque for them.

        Good states come as fast as a robot sends them; parameters, mode and lifecycle are set back
        first, as an operator would.
        """
        for name in self.nodes:
            if self.world.lifecycle(name) == 'unconfigured':
                self.world.transition(name, Transition.TRANSITION_CONFIGURE)
            if self.world.lifecycle(name) == 'inactive':
                self.world.transition(name, Transition.TRANSITION_ACTIVATE)
        self._set('feedforward', mode='gravity_compensation', gravity=[0.0, -9.81, 0.0])
        before, end = self._timely, time.monotonic() + LATEST
        while self._timely < before + 20:
            self.world.state(NAMES, Q, (0.0, 0.0))
            self.world.spin(0.005)
            assert time.monotonic() < end, ('no torques', dict(self.events),
                                            self.nodes['feedforward'].log()[-3000:])
        self.check()

    # faults ---------------------------------------------------------------------------------

    def step(self):
        """Do one random thing, and go on with good states for a moment."""
        faults = [name for name in dir(self) if name.startswith('fault_')]
        name = str(self.rng.choice(faults))
        self.events[name.removeprefix('fault_')] += 1
        getattr(self, name)()
        for _ in range(int(self.rng.integers(0, 10))):
            self.world.state(NAMES, Q + self.rng.normal(0, 1e-4, 2), (0.0, 0.0))
            self.world.spin(0.005)
        self.check()

    def _node(self):
        return str(self.rng.choice(list(self.nodes)))

    def _call(self, kind, service, request):
        return self.world.call(kind, service, request, LATEST)

    def _set(self, node, **values):
        request = SetParametersAtomically.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
        return self._call(SetParametersAtomically, f'{node}/set_parameters_atomically',
                          request).result

    def fault_bad_states(self):
        for _ in range(int(self.rng.integers(1, 30))):
            q, qd = Q.copy(), np.zeros(2)
            size = self.rng.choice([np.nan, np.inf, 1e300, 1e6, 3.0, -0.9])
            (q if self.rng.random() < 0.5 else qd)[self.rng.integers(2)] = size
            names = NAMES if self.rng.random() < 0.8 else ('j1', 'knee')
            self.world.state(names, q, qd if self.rng.random() < 0.9 else ())

    def fault_stamps(self):
        self._odd_until = np.inf  # torques have the stamps of states
        for _ in range(20):
            self.world.state(NAMES, Q, (0.0, 0.0), ns=int(self.rng.choice([
                0, 1, 2**31 * 10**9 - 1, self.world.now() + int(self.rng.normal(0, 1e10))])))
        self.recover()
        self._odd_until = time.monotonic() + 1.0

    def fault_flood(self):
        for _ in range(int(self.rng.integers(100, 2000))):
            self.world.state(NAMES, Q, (0.0, 0.0))

    def fault_silence(self):
        self.world.spin(float(self.rng.uniform(0.1, 1.3)))

    def fault_references(self):
        for _ in range(int(self.rng.integers(1, 10))):
            count = int(self.rng.integers(0, 6))
            scale = 10 ** self.rng.uniform(-2, 2 if self.rng.random() < 0.7 else 300)
            points = [(abs(t), Q + scale * self.rng.normal(size=2), scale * self.rng.normal(
                size=2), np.zeros(2)) for t in np.cumsum(self.rng.normal(0.2, 0.2, count))]
            start = int(self.rng.choice([0, 1, max(self.world.now() + 10**8, 0)]))
            self.world.publish(JointTrajectory, 'feedforward/reference',
                               trajectory(NAMES, points, start))

    def fault_stream_of_setpoints(self):
        for k in range(30):
            self.world.publish(JointTrajectory, 'feedforward/reference', trajectory(
                NAMES, [(0.0, Q + 0.001 * k, (0, 0), (0, 0))]))
            self.world.state(NAMES, Q, (0.0, 0.0))

    def fault_long_reference(self):
        points = [(0.01 * k, Q, (0, 0), (0, 0)) for k in range(int(self.rng.integers(100, 3000)))]
        raw = serialize_message(trajectory(NAMES, points))
        if self.rng.random() < 0.3:
            raw = raw[:len(raw) // 2]
        self.world.publish(JointTrajectory, 'feedforward/reference', raw)

    def fault_modes(self):
        for mode in self.rng.choice(MODES, 3):
            self._set('feedforward', mode=str(mode))
            self.world.state(NAMES, Q, (0.0, 0.0))

    def fault_parameters(self):
        number = float(self.rng.choice([np.nan, np.inf, -1.0, 0.0, 1e-9, 1e9, 0.5]))
        name = str(self.rng.choice(['ramp', 'zero_after', 'kp', 'gravity', 'friction_width',
                                    'rate', 'hold', 'damping', 'torque_rate_limit']))
        before = {'ramp': 0.2, 'zero_after': ZERO_AFTER, 'kp': [-1.0], 'rate': 500.0, 'hold': 1.0,
                  'gravity': [0.0, -9.81, 0.0], 'friction_width': 0.0, 'damping': [-1.0],
                  'torque_rate_limit': [0.0]}[name]
        value = [number] * self.rng.integers(1, 4) if isinstance(before, list) else number
        self._set('feedforward', mode=str(self.rng.choice(MODES)), **{name: value})
        self.world.state(NAMES, Q, (0.0, 0.0))
        assert self._set('feedforward', **{name: before}).successful

    def fault_models(self):
        text, motors = HOSTILE_MODELS[self.rng.integers(len(HOSTILE_MODELS))]
        node = str(self.rng.choice(['feedforward', 'dynamics']))
        answer = self._call(SetModel, f'{node}/set_model', SetModel.Request(
            robot_description=text, motors=motors))
        assert not answer.success

    def fault_other_models(self):
        mass = float(self.rng.uniform(0.5, 5.0))
        for node in ('feedforward', 'dynamics'):
            self._call(SetModel, f'{node}/set_model', SetModel.Request(
                robot_description=planar_2r(m1=mass)))
            self._call(Trigger, f'{node}/rollback', Trigger.Request())

    def fault_payloads(self):
        mass = float(self.rng.choice([np.nan, -1.0, 0.0, 1.0, 1e30]))
        self._call(SetPayload, f'{self.rng.choice(["feedforward", "dynamics", "simulator"])}'
                               '/set_payload', payload('lower', mass))
        for node in ('feedforward', 'dynamics', 'simulator'):
            assert self._call(SetPayload, f'{node}/set_payload', payload('lower')).success

    def fault_transitions(self):
        node = self._node()
        for _ in range(int(self.rng.integers(1, 4))):
            self.world.transition(node, int(self.rng.choice([0, 1, 2, 3, 4, 8, 60, 99])))
        self.recover()

    def fault_stops(self):
        process = self.nodes[self._node()]
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(float(self.rng.uniform(0.05, 1.5)))
        os.kill(process.pid, signal.SIGCONT)

    def fault_commands(self):
        for _ in range(20):
            values = self.rng.normal(size=int(self.rng.integers(0, 5))) * 10 ** self.rng.uniform(
                0, 300)
            self.world.publish(Float64MultiArray, 'simulator/commands', Float64MultiArray(
                data=values.tolist()))
        for service in self.rng.choice(['reset', 'step'], 2):
            self._call(Trigger, f'simulator/{service}', Trigger.Request())
        for held in (True, False):
            self._call(SetBool, 'simulator/pause', SetBool.Request(data=held))
        self._call(Trigger, 'simulator/reset', Trigger.Request())

    def fault_goals(self):
        kinds = ['', 'lumped', 'rigid', 'model1', 'magic']
        goal = IdentifyDynamics.Goal(
            source=int(self.rng.choice([0, 2, 2, 77])), kind=str(self.rng.choice(kinds)),
            logs=[str(self.rng.choice(['../../etc/passwd', '/dev/zero', 'none', '']))],
            period=float(self.rng.choice([0.0, -1.0, np.nan])), search_time=0.1)
        sent = self._goals.send_goal_async(goal)
        self.world.wait(sent.done, 'an answer to a goal', LATEST)
        handle = sent.result()
        if not handle.accepted:
            return
        result = handle.get_result_async()
        with suppress(AssertionError):
            self.world.wait(result.done, 'a result', float(self.rng.uniform(0.0, 1.0)))
        handle.cancel_goal_async()
        self.world.wait(result.done, 'the end of a goal that was cancelled', LATEST)
