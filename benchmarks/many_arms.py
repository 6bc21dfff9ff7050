"""How many arms does one core carry? Pairs of `dynamics` and `feedforward` at 1 kHz, by namespace.

Each arm is a Panda in a namespace of its own, with a node `dynamics` and a node `feedforward` in
gravity compensation: each node in a process of its own, or all nodes of all arms in one process.
This process publishes the joint states of all arms at 1 kHz and receives their torques. The
processor time of each pair follows from the clocks of the operating system; a bare relay of joint
states is the comparison.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import rclpy
from builtin_interfaces.msg import Time
from latency import RELAY, Relay  # also chooses a domain
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robodyn_ros.control import SmoothMotion
from robodyn_ros.description.examples import PANDA, example_robots
from robodyn_ros.model import load_model
from robodyn_ros.nodes.base import LATCHED
from robodyn_ros.nodes.fast_path import FastSubscriptions, Pacer
from robodyn_ros.nodes.processes import NodeProcess

RATE = 1000.0  # Hz
WARM_UP = 3.0  # s
CONTROLLER = ('-p', 'mode:=gravity_compensation')


def _fail(where, error):
    raise error


class Arms:
    """Publishes the states of some arms, and counts the torques that come back."""

    def __init__(self, namespaces):
        path = example_robots() / PANDA
        model = load_model(path)
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node('bench', context=self._context)
        self._names, self._motion = list(model.joint_names), SmoothMotion(model)
        self.sent, self.heard = 0, dict.fromkeys(namespaces, 0)
        self._states, self._latched, self._listeners = [], [], []
        for name in namespaces:
            description = self._node.create_publisher(String, f'{name}/robot_description', LATCHED)
            description.publish(String(data=path.read_text()))
            self._latched.append(description)
            self._states.append(self._node.create_publisher(JointState, f'{name}/joint_states',
                                                            10))
            listener = FastSubscriptions(self._node, _fail)
            listener.add(JointState, f'{name}/feedforward/torque', self._counter(name), 100,
                         raw=True)
            listener.start()
            self._listeners.append(listener)
        self._start = time.time()
        self._pacer = Pacer(self._send, 1 / RATE, _fail)

    def _counter(self, name):
        def count(message):
            self.heard[name] += 1
        return count

    def _send(self):
        now = time.time_ns()
        q, qd, _ = self._motion.sample(time.time() - self._start)
        message = JointState(name=self._names, position=q.tolist(), velocity=qd.tolist(),
                             effort=q.tolist())
        message.header.stamp = Time(sec=now // 10**9, nanosec=now % 10**9)
        for publisher in self._states:
            publisher.publish(message)
        self.sent += 1

    def close(self):
        """End everything."""
        self._pacer.stop()
        for listener in self._listeners:
            listener.stop()
        rclpy.shutdown(context=self._context)


def processor_time(pids):
    """Processor time of processes and of their helpers, s."""
    every = [p for pid in pids for p in (psutil.Process(pid),
                                         *psutil.Process(pid).children(recursive=True))]
    return sum(sum(process.cpu_times()[:2]) for process in every)


@contextmanager
def one_process(namespaces):
    """All nodes of all arms in one process; provides a list with its id."""
    script = Path(__file__).with_name('arms_in_one_process.py')
    process = subprocess.Popen([sys.executable, script, *namespaces, '--ros-args', *CONTROLLER,
                                '-p', 'watchdog:=false'])  # each would be one more process
    yield [process.pid]
    process.send_signal(signal.SIGINT)
    process.wait()


@contextmanager
def own_processes(namespaces):
    """A process for each node; provides their ids."""
    with ExitStack() as stack:
        yield [stack.enter_context(NodeProcess(
            node, '--ros-args', '-r', f'__ns:=/{name}', *(CONTROLLER if node == 'feedforward'
                                                          else ()))).pid
            for name in namespaces for node in ('dynamics', 'feedforward')]


def measure(count, seconds, started=own_processes):
    """Return cores for each pair, the fraction of states with torques, and states per second."""
    namespaces = [f'arm{k + 1}' for k in range(count)]
    with ExitStack() as stack:
        pids = stack.enter_context(started(namespaces))
        arms = Arms(namespaces)
        stack.callback(arms.close)
        end = time.monotonic() + 60
        while min(arms.heard.values()) < RATE and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(WARM_UP)
        before, sent, heard = processor_time(pids), arms.sent, sum(arms.heard.values())
        began = time.monotonic()
        time.sleep(seconds)
        used = (processor_time(pids) - before) / (time.monotonic() - began)
        answered = (sum(arms.heard.values()) - heard) / (count * (arms.sent - sent))
        rate = (arms.sent - sent) / (time.monotonic() - began)
    return used / count, answered, rate


def relay(seconds):
    """Return the fraction of a core that a bare relay of the states takes."""
    assert '/dynamics/gravity' in RELAY  # it answers joint_states in the root namespace
    with Relay() as process:
        arms = Arms([''])
        time.sleep(WARM_UP)
        pids = [process._process.pid]
        before, began = processor_time(pids), time.monotonic()
        time.sleep(seconds)
        used = (processor_time(pids) - before) / (time.monotonic() - began)
        arms.close()
    return used


def many_arms(counts=(1, 2, 3), seconds=10.0):
    """Return the lines of a table."""
    lines = ['| arms at 1 kHz | cores for each pair | states per s | torques per state |',
             '|---|---|---|---|']
    for started, words in ((own_processes, ''), (one_process, ' in one process')):
        for count in counts:
            used, answered, rate = measure(count, seconds, started)
            lines.append(f'| {count}{words} | {used:.2f} | {rate:.0f} | {answered:.3f} |')
    lines.append(f'| a bare relay | {relay(seconds):.2f} | | |')
    return lines


if __name__ == '__main__':
    print('\n'.join(many_arms()))
