"""Random sequences of faults on running nodes, and what must hold after each of them."""

import os
import signal
import time
from contextlib import suppress

import numpy as np
from campaign_nodes import LATEST, ZERO_AFTER, CampaignNodes
from rclpy.serialization import serialize_message
from robots import planar_2r
from ros_world import children, payload, trajectory
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.action import IdentifyDynamics
from robodyn_interfaces.srv import SetModel, SetPayload

TEXT = planar_2r()
HOSTILE_MODELS = (
    ('', ''), ('<robot', ''), (TEXT.replace('mass value="2', 'mass value="-2'), ''),
    (TEXT, 'a: 2020-13-45'), (TEXT, '[' * 5000), (TEXT, 'joints: {j9: {armature: 1}}'),
    (TEXT, 'joints: {j1: {armature: .inf}}'), (TEXT.replace('revolute', 'floating'), ''))


class Campaign(CampaignNodes):
    """A source of random faults."""

    def step(self):
        """Apply one random fault, then continue with good states for a moment."""
        faults = [name for name in dir(self) if name.startswith('fault_')]
        name = str(self.rng.choice(faults))
        self.events[name.removeprefix('fault_')] += 1
        getattr(self, name)()
        for _ in range(int(self.rng.integers(0, 10))):
            self._state(self.robot.q + self.rng.normal(0, 1e-4, self._n))
            self.world.spin(0.005)
        self.check()

    def fault_bad_states(self):
        for _ in range(int(self.rng.integers(1, 30))):
            q, qd = self.robot.q.copy(), np.zeros(self._n)
            size = self.rng.choice([np.nan, np.inf, 1e300, 1e6, 3.0, -0.9])
            (q if self.rng.random() < 0.5 else qd)[self.rng.integers(self._n)] = size
            names = list(self.robot.names)
            if self.rng.random() < 0.2:
                names[-1] = 'knee'
            self.world.state(names, q, qd if self.rng.random() < 0.9 else ())

    def fault_raw_states(self):
        message = JointState(name=list(self.robot.names), position=self.robot.q.tolist())
        raw = serialize_message(message)
        for _ in range(int(self.rng.integers(1, 10))):
            at = int(self.rng.integers(4, len(raw)))
            byte = bytes([int(self.rng.integers(256))])
            self.world.publish(JointState, 'joint_states', raw[:at] if self.rng.random() < 0.5
                               else raw[:at] + byte + raw[at + 1:])

    def fault_huge_states(self):
        count = int(10 ** self.rng.uniform(2, 5.5))
        self.world.publish(JointState, 'joint_states', JointState(
            name=['x' * int(self.rng.integers(1, 20))] * int(self.rng.choice([0, count])),
            position=[0.1] * count))

    def fault_stamps(self):
        self._odd_until = np.inf  # torques have the stamps of states
        for _ in range(20):
            self._state(self.robot.q, ns=int(self.rng.choice([
                0, 1, 2**31 * 10**9 - 1, self.world.now() + int(self.rng.normal(0, 1e10))])))
        self.recover()
        self._odd_until = time.time() + 1.0

    def fault_flood(self):
        for _ in range(int(self.rng.integers(100, 2000))):
            self._state(self.robot.q)

    def fault_silence(self):
        self.world.spin(float(self.rng.uniform(0.1, 1.3)))

    def fault_motions(self):
        """A good reference, in any mode; the next fault comes while it is being followed."""
        q, still = self.robot.q, np.zeros(self._n)
        self.world.publish(JointTrajectory, 'feedforward/reference', trajectory(
            self.robot.names, [(0.0, q, still, still), (0.5, q + 0.02, still, still),
                               (3.0, q, still, still)]))
        for _ in range(20):
            self._state(q)
            self.world.spin(0.005)

    def fault_references(self):
        for _ in range(int(self.rng.integers(1, 10))):
            count = int(self.rng.integers(0, 6))
            scale = 10 ** self.rng.uniform(-2, 2 if self.rng.random() < 0.7 else 300)
            points = [(abs(t), *(self.robot.q * (part == 0) + scale * self.rng.normal(size=self._n)
                                 for part in range(2)), np.zeros(self._n))
                      for t in np.cumsum(self.rng.normal(0.2, 0.2, count))]
            start = int(self.rng.choice([0, 1, max(self.world.now() + 10**8, 0)]))
            self.world.publish(JointTrajectory, 'feedforward/reference',
                               trajectory(self.robot.names, points, start))

    def fault_stream_of_setpoints(self):
        still = np.zeros(self._n)
        for k in range(30):
            self.world.publish(JointTrajectory, 'feedforward/reference', trajectory(
                self.robot.names, [(0.0, self.robot.q + 0.001 * k, still, still)]))
            self._state(self.robot.q)

    def fault_long_reference(self):
        still = np.zeros(self._n)
        points = [(0.01 * k, self.robot.q, still, still)
                  for k in range(int(self.rng.integers(100, 3000)))]
        raw = serialize_message(trajectory(self.robot.names, points))
        if self.rng.random() < 0.3:
            raw = raw[:len(raw) // 2]
        for _ in range(int(self.rng.choice([1, 1, 10]))):
            self.world.publish(JointTrajectory, 'feedforward/reference', raw)

    def fault_modes(self):
        for mode in self.rng.choice(self.robot.modes, 3):
            self._set('feedforward', mode=str(mode))
            self._state(self.robot.q)

    def fault_parameters(self):
        number = float(self.rng.choice([np.nan, np.inf, -1.0, 0.0, 1e-9, 1e9, 0.5]))
        name = str(self.rng.choice(['ramp', 'zero_after', 'kp', 'gravity', 'friction_width',
                                    'rate', 'hold', 'damping', 'torque_rate_limit']))
        gravity = [0.0, -9.81, 0.0] if self.robot.structure == 'tree' else [0.0, 0.0, -9.80665]
        before = {'ramp': 0.2, 'zero_after': ZERO_AFTER, 'kp': [-1.0], 'rate': 500.0, 'hold': 1.0,
                  'gravity': gravity, 'friction_width': 0.0, 'damping': [-1.0],
                  'torque_rate_limit': [0.0]}[name]
        value = [number] * self.rng.integers(1, 4) if isinstance(before, list) else number
        self._set('feedforward', mode=str(self.rng.choice(self.robot.modes)), **{name: value})
        self._state(self.robot.q)
        assert self._set('feedforward', **{name: before}).successful

    def fault_models(self):
        text, motors = HOSTILE_MODELS[self.rng.integers(len(HOSTILE_MODELS))]
        node = str(self.rng.choice(['feedforward', 'dynamics']))
        answer = self._call(SetModel, f'{node}/set_model', SetModel.Request(
            robot_description=text, motors=motors))
        assert not answer.success

    def fault_other_models(self):
        text = self.robot.heavier(float(self.rng.uniform(0.5, 5.0)))
        for node in ('feedforward', 'dynamics'):
            if self._call(SetModel, f'{node}/set_model', SetModel.Request(
                    robot_description=text, motors=self.robot.motors)).success:
                self._call(Trigger, f'{node}/rollback', Trigger.Request())

    def fault_flood_of_descriptions(self):
        for _ in range(int(self.rng.integers(2, 30))):
            self.world.describe(self.robot.heavier(float(self.rng.uniform(0.5, 5.0))))
        self.world.describe(self.robot.text)

    def fault_payloads(self):
        nodes, link = ('feedforward', 'dynamics', 'simulator'), self.robot.link
        mass = float(self.rng.choice([np.nan, -1.0, 0.0, 1.0, 1e30]))
        self._call(SetPayload, f'{self.rng.choice(nodes)}/set_payload', payload(link, mass))
        for node in nodes:
            self._remove_payload(node)

    def _remove_payload(self, node, latest=LATEST):
        """Require that a payload is removed; in Gazebo, the robot may be spawned again before."""
        end = time.monotonic() + latest
        while True:
            answer = self.world.call(SetPayload, f'{node}/set_payload', payload(self.robot.link),
                                     latest)
            if answer.success:
                return
            appears = self.world_node == 'gazebo_bridge' and node == 'simulator'
            assert appears and time.monotonic() < end, (
                node, answer.message, self.nodes[node].log()[-3000:])
            self.world.spin(0.5)

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

    def fault_helpers(self):
        """A helper process or the watchdog is killed or stopped; the nodes start another one."""
        name = self._node()
        helpers = children(self.nodes[name].pid)
        watchdogs = [pid for helper in helpers for pid in children(helper)]
        pid = int(self.rng.choice(helpers + watchdogs))
        with suppress(ProcessLookupError):
            os.kill(pid, int(self.rng.choice([signal.SIGKILL, signal.SIGSTOP])))
        if name != 'identification':
            # where a process that builds a model is stopped, it is given up after 60 s
            self._remove_payload(name, 60.0 + LATEST)

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
