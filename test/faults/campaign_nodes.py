"""The nodes of the campaign, and the invariants that hold whatever is done to them.

The nodes `feedforward` (with its watchdog), `dynamics`, `simulator` and `identification` run for
one robot in processes of their own, and, where Gazebo is installed, `gazebo_bridge` in place of
`simulator` every fourth time. The simulated states go to a topic of their own: the states that the
controller answers are those of the campaign, good or bad.
"""

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from campaign_robots import robot_of
from gazebo_server import GazeboServer
from lifecycle_msgs.msg import Transition
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from ros_world import World
from sensor_msgs.msg import JointState

from robodyn_interfaces.action import IdentifyDynamics
from robodyn_ros.control.tuning import OPEN_LOOP
from robodyn_ros.nodes.fast_path import FastSubscriptions
from robodyn_ros.nodes.processes import NodeProcess
from robodyn_ros.nodes.stamps import nanoseconds

TIMEOUT, ZERO_AFTER = 0.3, 0.8  # s
OPTIONS = {
    'feedforward': ('mode:=gravity_compensation', f'state_timeout:={TIMEOUT}',
                    f'zero_after:={ZERO_AFTER}'),
    'dynamics': (), 'simulator': ('rate:=100.0',), 'identification': ()}
LATEST = 30.0  # s, within which every request is answered and every node controls again


class CampaignNodes:
    """Nodes, and the invariants."""

    def __init__(self, seed, root, structure='tree', world_node='simulator'):
        self.rng, self.robot = np.random.default_rng(seed), robot_of(structure)
        self.world_node = world_node
        self.world, self.events, self.broken = World(), Counter(), []
        self.torques = self.states = 0
        self._late, self._timely = [], 0
        # s of the system's clock: stamps of torques are not judged before, recovery counts after
        self._odd_until = self._recovering = 0.0
        self._stack = ExitStack()
        if world_node == 'gazebo_bridge':
            self._stack.enter_context(GazeboServer())
        self.nodes = {name: self._start(name, root) for name in OPTIONS}
        listener = FastSubscriptions(self.world.node, lambda topic, error: None)
        listener.add(JointState, 'simulated_states', self._on_simulated, 1000)
        listener.start()
        self._stack.callback(listener.stop)
        self.world.node.create_subscription(JointState, 'feedforward/torque', self._on_torque,
                                            1000)
        self.world.describe(self.robot.text)
        for name in self.nodes:
            self.world.wait_for_model(name)
        self._goals = ActionClient(self.world.node, IdentifyDynamics, 'identification/identify')
        self.recover()
        self.threads, self.memory = self._use()

    def _start(self, name, root):
        options = [*OPTIONS[name], *self.robot.options]
        if name == 'identification':
            options.append(f'root:={root}')
        kind = self.world_node if name == 'simulator' else name
        arguments = ['--enclave', f'/robodyn_ros/{kind}', '-r', f'__node:={name}']
        arguments += [word for option in options for word in ('-p', option)]
        if name == 'simulator':
            arguments += ['-r', 'joint_states:=simulated_states']
        return self._stack.enter_context(NodeProcess(kind, '--ros-args', *arguments))

    def close(self):
        self._goals.destroy()
        self._stack.close()
        self.world.close()

    # invariants -----------------------------------------------------------------------------

    def _on_torque(self, message, info):
        torque = np.array(message.effort)
        self.torques += 1
        if not np.isfinite(torque).all() or len(torque) != len(self.robot.limit) or (
                np.abs(torque) > self.robot.limit).any():
            self.broken.append(f'torque {torque}')
        # judged by the time of its publication: it may have waited in the queue of this process
        published = info['source_timestamp'] * 1e-9
        age = published - nanoseconds(message.header.stamp) * 1e-9  # its stamp is that of a state
        if published > self._odd_until and age > TIMEOUT + 0.1:
            self._late.append((age, published))
        self._timely += published > self._recovering and abs(age) < TIMEOUT

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
        assert len(self._late) < 3, (
            'torques for old states: (age, time)', len(self._late), self._late[:9],
            self._late[-3:], self.events, self.world.diagnostics.get('feedforward'),
            self.nodes['feedforward'].log()[-6000:])
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
        mode = str(self.rng.choice([mode for mode in self.robot.modes if mode != OPEN_LOOP]))
        self._set('feedforward', mode=mode)
        self._timely, self._recovering, end = 0, time.time(), time.monotonic() + LATEST
        while self._timely < 20:
            self._state(self.robot.q)
            self.world.spin(0.005)
            assert time.monotonic() < end, ('no torques', dict(self.events),
                                            self.nodes['feedforward'].log()[-3000:])
        self.check()

    # what the faults use --------------------------------------------------------------------

    @property
    def _n(self):
        return len(self.robot.names)

    def _state(self, q, **options):
        self.world.state(self.robot.names, q, [0.0] * self._n, **options)

    def _node(self):
        return str(self.rng.choice(list(self.nodes)))

    def _call(self, kind, service, request):
        return self.world.call(kind, service, request, LATEST)

    def _set(self, node, **values):
        request = SetParametersAtomically.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
        return self._call(SetParametersAtomically, f'{node}/set_parameters_atomically',
                          request).result
