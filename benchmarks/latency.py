"""Latency of `dynamics` and `observer` at 1 kHz compared with a bare rclpy relay.

All run in separate processes, in alternation, and receive the same states from this process. The
relay does the least that an rclpy node can do: it publishes each JointState again, unchanged. The
nodes answer the same states with gravity torques or external torques, as a JointState of the same
joints. The rows of Solo 12 are a relay of its 12 joints, and `dynamics` with a floating base,
whose odometry arrives with every fourth state.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
from domains import new_domain

os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
if 'ROS_DOMAIN_ID' not in os.environ:
    os.environ['ROS_DOMAIN_ID'] = new_domain()  # one that no test uses

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robodyn_ros.control import SmoothMotion
from robodyn_ros.description.examples import PANDA, example_robots
from robodyn_ros.model import load_model
from robodyn_ros.nodes.base import LATCHED
from robodyn_ros.nodes.fast_path import FastSubscriptions, Pacer
from robodyn_ros.nodes.processes import NodeProcess

RELAY = '''
import rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
rclpy.init()
node = rclpy.create_node('relay')
publisher = node.create_publisher(JointState, '/dynamics/gravity', 10)
node.create_subscription(JointState, 'joint_states', publisher.publish, qos_profile_sensor_data)
rclpy.spin(node)
'''
_STAMP = struct.Struct('<iI')
SOLO = 'solo_description/robots/solo12.urdf'
EACH = 4  # states for each message of odometry
FLOATING = ('--ros-args', '-p', 'odometry_topic:=odom')


class Relay:
    """The bare relay, in a separate process."""

    def __enter__(self) -> Relay:
        self._process = subprocess.Popen([sys.executable, '-c', RELAY])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def measure(seconds: float, rate: float, topic: str = '/dynamics/gravity',
            robot: str = PANDA, odometry: bool = False) -> tuple[np.ndarray, int]:
    """Latencies (s) of the answers to states of a moving robot; number of unanswered states."""
    path = example_robots() / robot
    model = load_model(path)
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('bench', context=context)
    description = node.create_publisher(String, 'robot_description', LATCHED)
    description.publish(String(data=path.read_text()))
    states = node.create_publisher(JointState, 'joint_states', 10)
    bases = node.create_publisher(Odometry, 'odom', 10)
    motion, sent, heard = SmoothMotion(model), {}, {}
    names, start = list(model.joint_names), time.time()

    def on_answer(message: bytes) -> None:
        now = time.perf_counter_ns()
        stamp = _STAMP.unpack_from(message, 4)
        heard[stamp[0] * 10**9 + stamp[1]] = now

    def on_error(where: str, error: Exception) -> None:
        raise error

    def send() -> None:
        now = time.time_ns()
        q, qd, _ = motion.sample(time.time() - start)
        message = JointState(name=names, position=q.tolist(), velocity=qd.tolist(),
                             effort=q.tolist())
        message.header.stamp = Time(sec=now // 10**9, nanosec=now % 10**9)
        if odometry and len(sent) % EACH == 0:
            base = Odometry()
            base.header.stamp = message.header.stamp
            base.pose.pose.position.z = 0.25
            base.twist.twist.angular.z = float(qd[0])
            bases.publish(base)
        sent[now] = time.perf_counter_ns()
        states.publish(message)

    listener = FastSubscriptions(node, on_error)
    listener.add(JointState, topic, on_answer, 100, raw=True)
    listener.start()
    pacer = Pacer(send, 1.0 / rate, on_error)
    end = time.monotonic() + 60
    while not heard and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1.0)
    begin = time.time_ns()
    time.sleep(seconds)
    pacer.stop()
    time.sleep(0.5)
    listener.stop()
    rclpy.shutdown(context=context)
    counted = [stamp for stamp in sent if stamp >= begin]
    answered = [stamp for stamp in counted if stamp in heard]
    return (np.array([heard[s] - sent[s] for s in answered]) * 1e-9,
            len(counted) - len(answered))


def latency(seconds: float = 5.0, rounds: int = 3, rate: float = 1000.0) -> list[str]:
    """Measure relay and nodes in turn; return the lines of a table."""
    gravity = '/dynamics/gravity'
    tried = {'relay': (gravity, PANDA), 'dynamics': (gravity, PANDA),
             'observer': ('/observer/external_torque', PANDA),
             'relay, Solo 12': (gravity, SOLO), 'dynamics, floating Solo 12': (gravity, SOLO)}
    found: dict[str, list[tuple[np.ndarray, int]]] = {name: [] for name in tried}
    for _ in range(rounds):
        for name, (topic, robot) in tried.items():
            kind, floats = name.split(',')[0], 'floating' in name
            with Relay() if kind == 'relay' else NodeProcess(kind, *FLOATING[:3 * floats]):
                found[name].append(measure(seconds, rate, topic, robot, floats))
    lines = [f'latency at {rate:.0f} Hz, {rounds} x {seconds:.0f} s each, alternating',
             f'{"":26} {"median":>9} {"99 %":>9} {"lost":>6} {"of":>7}']
    medians = {}
    for name, runs in found.items():
        late = np.concatenate([run[0] for run in runs]) * 1e6
        medians[name] = np.median([np.median(run[0]) for run in runs])
        lost = sum(run[1] for run in runs)
        lines.append(f'{name:26} {np.median(late):6.0f} us {np.percentile(late, 99):6.0f} us '
                     f'{lost:6d} {len(late) + lost:7d}')
    lines += [f'{name}: {medians[name] / medians[relay]:.2f} times the median of its relay'
              for name, relay in (('dynamics', 'relay'), ('observer', 'relay'),
                                  ('dynamics, floating Solo 12', 'relay, Solo 12'))]
    return lines


if __name__ == '__main__':
    print('\n'.join(latency()))
