"""`ModelClient`: asks another node to use a model, or to return to its previous model."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from robodyn_interfaces.srv import SetModel, SetPayload
from robodyn_ros.experiment.swap import Answer, ModelTexts
from robodyn_ros.nodes.stamps import set_nanoseconds


class ModelClient:
    """The services ``set_model`` and ``rollback`` of one node.

    Parameters
    ----------
    node : Node
        The node that asks; its executor receives the answers.
    name : str
        Name of the node that is asked.
    """

    def __init__(self, node: Node, name: str):
        self.name, self._node = name, node
        self._set_model = node.create_client(SetModel, f'{name}/set_model')
        self._rollback = node.create_client(Trigger, f'{name}/rollback')

    def destroy(self) -> None:
        """Destroy the clients."""
        self._node.destroy_client(self._set_model)
        self._node.destroy_client(self._rollback)

    def is_ready(self) -> bool:
        """Return whether the node offers both services."""
        return bool(self._set_model.service_is_ready() and self._rollback.service_is_ready())

    def set_model(self, model: ModelTexts, timeout: float) -> Future[Answer]:
        """Ask the node to use a model, and to refuse it after a time in s."""
        request = SetModel.Request(robot_description=model.urdf, motors=model.motors,
                                   origin=model.origin)
        set_nanoseconds(request.valid_until, time.time_ns() + round(timeout * 1e9))
        return _asked(self._set_model, request, lambda answer: Answer(
            answer.success, answer.message, answer.model_version))

    def roll_back(self) -> Future[Answer]:
        """Ask the node to return to its previous model."""
        return _asked(self._rollback, Trigger.Request(), lambda answer: Answer(
            answer.success, answer.message))


class PayloadClient(ModelClient):
    """As `ModelClient`, but the model changes by its payload, through ``set_payload``."""

    def __init__(self, node: Node, name: str):
        super().__init__(node, name)
        self._set_payload = node.create_client(SetPayload, f'{name}/set_payload')

    def destroy(self) -> None:
        """Destroy the clients."""
        super().destroy()
        self._node.destroy_client(self._set_payload)

    def is_ready(self) -> bool:
        """Return whether the node offers the services."""
        return bool(super().is_ready() and self._set_payload.service_is_ready())

    def set_model(self, model: Any, timeout: float) -> Future[Answer]:
        """Ask the node to take a payload, which a request of ``set_payload`` describes."""
        return _asked(self._set_payload, model, lambda answer: Answer(
            answer.success, answer.message, answer.model_version))


def _asked(client: Any, request: Any, read: Callable[[Any], Answer]) -> Future[Answer]:
    """Call a service; any thread except that of the executor may wait for the future."""
    future: Future[Answer] = Future()

    def on_answer(answered: Any) -> None:
        if answered.exception() is not None:
            future.set_exception(answered.exception())
        elif answered.result() is not None:
            future.set_result(read(answered.result()))

    client.call_async(request).add_done_callback(on_answer)
    return future
