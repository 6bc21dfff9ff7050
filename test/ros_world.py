"""A test's view of the ROS graph: publish, collect, call, wait."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path

os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'  # before rclpy is imported

import rclpy
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray
from domains import new_domain, release_domain
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.srv import SetPayload
from robodyn_ros.nodes.fast_path import DEPTH, FastSubscriptions
from robodyn_ros.nodes.stamps import nanoseconds

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def _fail(topic, error):
    raise error


class World:
    """One rclpy node of the test, in a domain that it shares with the processes it starts."""

    def __init__(self):
        os.environ['ROS_DOMAIN_ID'] = self._domain = new_domain()
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node('test', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.diagnostics = defaultdict(dict)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self._publishers, self._clients, self._listeners = {}, {}, []
        self._lines = None

    def close(self):
        for listener in self._listeners:
            listener.stop()
        self.executor.shutdown()
        self.node.destroy_node()  # otherwise its latched messages outlive the test
        rclpy.shutdown(context=self.context)
        release_domain(self._domain)

    def _on_diagnostics(self, message):
        for status in message.status:
            values = {entry.key: entry.value for entry in status.values}
            self.diagnostics[status.name.lstrip('/')] = values | {'message': status.message}

    def publish(self, kind, topic, message, qos=10):
        if topic not in self._publishers:
            self._publishers[topic] = self.node.create_publisher(kind, topic, qos)
            publisher = self._publishers[topic]
            if qos is not LATCHED:
                self.wait(lambda: publisher.get_subscription_count() > 0, f'a listener of {topic}')
                self.spin(0.3)  # the subscriber must match too: best effort repeats nothing
        self._publishers[topic].publish(message)

    def collect(self, kind, topic, raw=False):
        messages = []
        listener = FastSubscriptions(self.node, _fail)
        listener.add(kind, topic, messages.append, DEPTH, raw)
        listener.start()
        self._listeners.append(listener)
        self.wait(lambda: self.node.count_publishers(topic) > 0, f'a publisher of {topic}')
        return messages

    def logged(self):
        """Every line that nodes log from now on, in a list that all callers share."""
        if self._lines is None:
            self._lines = self.collect(Log, '/rosout')
            self.wait(lambda: self.node.count_publishers('/rosout') > 1, 'a node that logs')
            self.spin(0.5)  # until publishers and subscriber have matched
        self._lines.clear()
        return self._lines

    def spin(self, seconds, until=lambda: False):
        """Serve messages for a time, or until a condition is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            self.executor.spin_once(timeout_sec=0.02)

    def diagnosed_anew(self, *nodes):
        """Wait for new diagnostics of nodes, which publish them every second."""
        self.spin(0.1)  # those on their way are not new
        for node in nodes:
            self.diagnostics.pop(node, None)
        self.wait(lambda: all(node in self.diagnostics for node in nodes), f'{nodes}')

    def wait(self, condition, what, timeout=60.0):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if condition():
                return
            self.executor.spin_once(timeout_sec=0.02)
        raise AssertionError(f'waited {timeout} s for {what}')

    def call(self, kind, service, request, timeout=60.0):
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        client = self._clients[service]
        # it looks 4 times a second: by then, the server has found the client as well
        assert client.wait_for_service(timeout), service
        future = client.call_async(request)
        self.wait(future.done, f'an answer of {service}', timeout)
        return future.result()

    # the usual messages ---------------------------------------------------------------------

    def describe(self, text):
        self.publish(String, 'robot_description', String(data=text), LATCHED)

    def now(self):
        return self.node.get_clock().now().nanoseconds

    def state(self, names, position, velocity=(), effort=(), ns=None):
        message = JointState(name=list(names), position=[float(x) for x in position],
                             velocity=[float(x) for x in velocity],
                             effort=[float(x) for x in effort])
        ns = self.now() if ns is None else ns
        message.header.stamp = Time(sec=ns // 10**9, nanosec=ns % 10**9)
        self.publish(JointState, 'joint_states', message)
        return ns

    def count(self, node, key):
        return int(self.diagnostics.get(node, {}).get(key, 0))

    def pause(self, held):
        """Pause the simulated world, or let it continue."""
        assert self.call(SetBool, 'simulator/pause', SetBool.Request(data=held)).success

    def wait_for_model(self, node, version=1):
        self.wait(lambda: self.count(node, 'model_version') >= version, f'model of {node}')

    def set_parameter(self, node, name, value):
        request = SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()])
        return self.call(SetParameters, f'{node}/set_parameters', request).results[0]

    def parameters(self, node, names):
        values = self.call(GetParameters, f'{node}/get_parameters',
                           GetParameters.Request(names=names)).values
        descriptors = self.call(DescribeParameters, f'{node}/describe_parameters',
                                DescribeParameters.Request(names=names)).descriptors
        return values, descriptors

    def transition(self, node, identifier):
        request = ChangeState.Request()
        request.transition.id = identifier
        return self.call(ChangeState, f'{node}/change_state', request).success

    def lifecycle(self, node):
        for last in (False, False, True):  # the answer is lost if the node has not matched it yet
            try:
                return self.call(GetState, f'{node}/get_state', GetState.Request(),
                                 60.0 if last else 10.0).current_state.label
            except AssertionError:
                if last:
                    raise


def children(pid):
    """The running processes that a process has started."""
    return [int(word) for word in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]


def payload(link, mass=0.0, com=(0.0, 0.0, 0.0), moments=(0.0, 0.0, 0.0)):
    """A request that attaches a body; moments: the diagonal of its inertia tensor."""
    request = SetPayload.Request(link=link)
    body = request.inertia
    body.m, (body.com.x, body.com.y, body.com.z) = mass, com
    body.ixx, body.iyy, body.izz = moments
    return request


def trajectory(names, points, start_ns=0):
    """Points are (time, q, qd, qdd); None leaves a field empty."""
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp = Time(sec=start_ns // 10**9, nanosec=start_ns % 10**9)
    for when, *fields in points:
        q, qd, qdd = ([] if field is None else [float(x) for x in field] for field in fields)
        message.points.append(JointTrajectoryPoint(
            positions=q, velocities=qd, accelerations=qdd,
            time_from_start=Duration(sec=int(when), nanosec=round(when % 1 * 1e9))))
    return message


def seconds(message):
    """The stamp of a message, s."""
    return nanoseconds(message.header.stamp) * 1e-9


def since_reset(states):
    """The states since the time last jumped back; a first state that is repeated counts once."""
    stamps = [nanoseconds(m.header.stamp) for m in states]
    jumps = [k for k in range(1, len(stamps)) if stamps[k] <= stamps[k - 1]]
    return states[jumps[-1] if jumps else 0:len(stamps)]


def message_at(messages, ns):
    """The message with this stamp, ns; None if there is none."""
    for message in messages:
        if nanoseconds(message.header.stamp) == ns:
            return message
    return None
