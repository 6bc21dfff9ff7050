"""Control loop at 1 kHz compared with a bare relay: cycles of the robot without a new command.

The robot is the node `simulator`; `feedforward` answers each of its states with a torque, and so
does the relay, an rclpy node that does nothing but publish a vector for each state.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
from domains import new_domain

os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
if 'ROS_DOMAIN_ID' not in os.environ:
    os.environ['ROS_DOMAIN_ID'] = new_domain()  # no test uses it

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import String

from robodyn_ros.description.examples import example_robots
from robodyn_ros.nodes.base import LATCHED
from robodyn_ros.nodes.processes import NodeProcess

RELAY = '''
import rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
rclpy.init()
node = rclpy.create_node('relay')
publisher = node.create_publisher(Float64MultiArray, '/simulator/commands', 100)
command = Float64MultiArray(data=[0.0] * 6)
node.create_subscription(JointState, 'joint_states', lambda message: publisher.publish(command),
                         qos_profile_sensor_data)
rclpy.spin(node)
'''


class _Relay:
    def __enter__(self) -> None:
        self._process = subprocess.Popen([sys.executable, '-c', RELAY])

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def measure(controller: object, seconds: float) -> tuple[int, int, int]:
    """Return cycles, commands, and cycles without a new command."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('bench', context=context)
    description = node.create_publisher(String, 'robot_description', LATCHED)
    description.publish(String(
        data=(example_robots() / 'ur_description/urdf/ur10_robot.urdf').read_text()))
    seen: list[dict[str, str]] = []

    def on_diagnostics(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == '/simulator':
                seen.append({entry.key: entry.value for entry in status.values})

    node.create_subscription(DiagnosticArray, '/diagnostics', on_diagnostics, 10)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def spin(duration: float) -> None:
        end = time.monotonic() + duration
        while time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)

    with NodeProcess('simulator', '--ros-args', '-p', 'brakes:=true'), controller:  # type: ignore
        while not seen or int(seen[-1].get('commands', 0)) < 2000:
            spin(0.5)
        first = seen[-1]
        spin(seconds)
        last = seen[-1]
    node.destroy_node()
    rclpy.shutdown(context=context)
    return tuple(int(last.get(key, 0)) - int(first.get(key, 0)) for key in (
        'cycles', 'commands', 'cycles_without_command'))


def closed_loop(seconds: float = 30.0) -> list[str]:
    """Return lines of the comparison."""
    ours = NodeProcess('feedforward', '--ros-args', '-p', 'mode:=gravity_compensation', '-r',
                       '~/commands:=/simulator/commands')
    results = {'feedforward': measure(ours, seconds), 'bare relay': measure(_Relay(), seconds)}
    lines = [f'{name}: {cycles} cycles at 1 kHz, {commands} commands, {late / cycles:.1%} of the '
             'cycles without a new command'
             for name, (cycles, commands, late) in results.items()]
    fractions = [late / cycles for cycles, _, late in results.values()]
    return [*lines, f'ratio of late cycles {fractions[0] / max(fractions[1], 1e-9):.2f}']


if __name__ == '__main__':
    print('\n'.join(closed_loop()))
