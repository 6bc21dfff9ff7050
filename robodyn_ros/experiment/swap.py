"""`swap_model`: replaces the model of several running nodes, of all of them or of none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any, Protocol

from robodyn_ros.errors import RobodynError

TICK = 0.05  # s between two checks whether the job was stopped


class SwapError(RobodynError):
    """The model of some node could not be replaced."""


@dataclass(frozen=True)
class ModelTexts:
    """A model in the form in which running nodes receive it.

    Attributes
    ----------
    urdf, motors : str
        Text of the URDF and of the YAML with motor data.
    origin : str
        Name of its source.
    """

    urdf: str
    motors: str
    origin: str


@dataclass(frozen=True)
class Answer:
    """The answer of a node to a new model or to a rollback.

    Attributes
    ----------
    success : bool
        Whether the node accepted it.
    message : str
        What the node did, or the reason for a rejection.
    version : int
        Version of the model that the node uses now.
    """

    success: bool
    message: str
    version: int = 0


class ModelUser(Protocol):
    """A running node whose model can be replaced."""

    name: str

    def is_ready(self) -> bool:
        """Return whether the services of the node are available."""

    def set_model(self, model: Any, timeout: float) -> Future[Answer]:
        """Ask the node to use a model, and to refuse it after a time in s."""

    def roll_back(self) -> Future[Answer]:
        """Ask the node to return to the previous model."""


def swap_model(users: Sequence[ModelUser], model: Any, *, timeout: float,
               check: Callable[[], None] = lambda: None) -> list[int]:
    """Replace the model of all nodes; if one fails, roll back those that were changed before.

    Parameters
    ----------
    users : sequence of ModelUser
        The nodes.
    model : object
        The model: `ModelTexts`, or another object that ``set_model`` of the nodes accepts.
    timeout : float
        Timeout for the answer of a node, s. Afterwards the node refuses the model. If the swap
        ends earlier, a node that still accepts the model is rolled back as soon as it answers.
    check : callable
        Called many times per second; an exception that it raises ends the swap.

    Returns
    -------
    list of int
        The version of the model in each node.

    Raises
    ------
    SwapError
        A node is not running, refused the model, or did not answer. The message names the node,
        and every node that could not be rolled back.
    """
    absent = [user.name for user in users if not user.is_ready()]
    if absent:
        raise SwapError(f'there is no {", ".join(absent)}; valid: running nodes with a service '
                        'set_model')
    done: list[ModelUser] = []
    versions = []
    for user in users:
        asked = user.set_model(model, timeout)
        try:
            answer = _answer(asked, timeout, check)
            if not answer.success:
                raise SwapError(f'{user.name} refused the model: {answer.message}')
        except BaseException as error:
            if isinstance(error, FutureTimeoutError):
                error = SwapError(f'{user.name} did not answer within {timeout:g} s')
            if not asked.done() or asked.cancelled():
                _roll_back_late(user, asked)
            kept = _roll_back(done, timeout)
            if kept:
                raise SwapError(f'{error}; {", ".join(kept)} could not be rolled back and may use '
                                'the new model') from error
            raise error from None
        done.append(user)
        versions.append(answer.version)
    return versions


def _answer(asked: Future[Answer], timeout: float, check: Callable[[], None]) -> Answer:
    end = time.monotonic() + timeout
    while True:
        check()
        try:
            return asked.result(TICK)
        except FutureTimeoutError:
            if time.monotonic() > end:
                raise


def _roll_back(users: Sequence[ModelUser], timeout: float) -> list[str]:
    """Roll nodes back; return the names of those that failed."""
    asked = [(user.name, user.roll_back()) for user in users]
    kept = []
    for name, future in asked:
        try:
            if not future.result(timeout).success:
                kept.append(name)
        except FutureTimeoutError:
            kept.append(name)
    return kept


def _roll_back_late(user: ModelUser, asked: Future[Answer]) -> None:
    """Roll a node back if it accepts the model after the timeout."""
    def on_answer(answered: Future[Answer]) -> None:
        if answered.exception() is None and answered.result().success:
            user.roll_back()

    asked.add_done_callback(on_answer)
