"""`ExperimentView`: shows a running experiment in the browser, for `robodyn calibrate --view`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robodyn_ros.errors import ExperimentError
from robodyn_ros.model import load_model
from robodyn_ros.nodes.base import LATCHED
from robodyn_ros.view import ExperimentPage, opened

PATIENCE = 10.0  # s, timeout for a robot description
FRAME = 0.07  # s between two poses of the robot on the page


class ExperimentView:
    """A page that follows the joint states of a robot and the feedback of an identification.

    Use it in a ``with`` statement.

    Parameters
    ----------
    node : Node
        The node that subscribes.
    action : str
        Name of the action, whose server knows the robot.
    port : int
        Port of the page on the loopback interface.
    spin : callable
        Serves the node for at most the given time, s.

    Attributes
    ----------
    address : str
        Address of the page.

    Raises
    ------
    ExperimentError
        There is no robot description.
    ValueRangeError, OutputError
        The port is out of range, or in use.
    """

    def __init__(self, node: Node, action: str, port: int, spin: Callable[[float], None]):
        self._stack, self._drawn = ExitStack(), 0.0
        server = action.rpartition('/')[0]
        prefix = server.rpartition('/')[0]
        self._prefix = f'{prefix}/' if prefix else ''
        model = load_model(self._description(node, server, spin))
        page, self.address = self._stack.enter_context(opened(port, f'{model.name}: experiment'))
        self._page = ExperimentPage(page, model)
        node.create_subscription(JointState, f'{self._prefix}joint_states', self._on_state,
                                 qos_profile_sensor_data)

    def __enter__(self) -> ExperimentView:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def _description(self, node: Node, server: str, spin: Callable[[float], None]) -> str:
        """Return the description from the parameter of the server, or else from the topic."""
        texts: list[str] = []
        topic = f'{self._prefix}robot_description'
        node.create_subscription(String, topic, lambda message: texts.append(message.data),
                                 LATCHED)
        client = node.create_client(GetParameters, f'{server}/get_parameters')
        asked, end = None, time.monotonic() + PATIENCE
        while not texts and time.monotonic() < end:
            spin(0.1)
            if asked is None and client.service_is_ready():
                asked = client.call_async(GetParameters.Request(names=['robot_description']))
            elif asked is not None and asked.done() and asked.result() is not None:
                texts += [one.string_value for one in asked.result().values if one.string_value]
        if not texts:
            raise ExperimentError(
                f'there is no robot description to show: neither the parameter of {server} nor '
                f'the topic {topic} has one; valid: a running robot_state_publisher, or no '
                '--view')
        return texts[0]

    def _on_state(self, message: Any) -> None:
        if time.monotonic() - self._drawn < FRAME or len(message.position) != len(message.name):
            return
        self._drawn = time.monotonic()
        self._page.move(dict(zip(message.name, message.position, strict=True)))

    def take(self, feedback: Any) -> None:
        """Show a feedback message of the action."""
        joints = list(feedback.joint)
        self._page.show(
            feedback.phase, feedback.progress, samples=feedback.samples,
            condition=feedback.condition,
            tracking=dict(zip(joints, feedback.tracking_error, strict=False)),
            unexplained=dict(zip(joints, feedback.residual, strict=False)))

    def end(self, result: Any, word: str) -> None:
        """Show how the experiment ended."""
        self._page.end(word, result.reasons)


