"""`HealthKeeper`: follows the health of the observer's model, and keeps it over restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rclpy.node import Node

from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.model_building import read_motors
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.observation.health import ModelHealth, read_expected_residual
from robodyn_ros.observation.health_file import fingerprint, read_state, set_aside, write_state
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from robodyn_ros.nodes.base import DynamicsNode

SAVE_EVERY = 60.0  # s


class HealthKeeper:
    """The model health of a node: fed on its fast thread, judged and saved on the other one.

    Parameters
    ----------
    node : DynamicsNode
        The node, with the parameter of `declare`.
    """

    def __init__(self, node: DynamicsNode):
        self._node, self._lock = node, threading.Lock()
        self._health: ModelHealth | None = None
        self._model = ''  # its fingerprint
        self._stored: Mapping[str, Any] | None = None  # state of the last run, until used
        self._looked = False
        self._saved = time.monotonic()
        self._news = False  # whether there is something to save

    @staticmethod
    def declare(node: Node) -> None:
        """Declare the folder."""
        declare(node, 'root', '~/.ros/robodyn', 'folder of all runs, in which the health of the '
                'model is kept over restarts; empty: it is not kept', read_only=True)

    @property
    def path(self) -> Path | None:
        """The file; None if nothing is kept."""
        root = self._node.get_parameter('root').value
        name = self._node.get_fully_qualified_name().strip('/').replace('/', '.')
        return Path(root).expanduser().absolute() / f'{name}.health.json' if root else None

    def on_model(self, running: Running) -> None:
        """Follow a model; the estimates go on if it is the same one, and start anew otherwise."""
        model = fingerprint(running.model, running.text)
        health = self._begin(running)
        if health is None:
            self._health, self._model = None, ''
            return
        with self._lock:
            if model == self._model and self._health is not None:
                health.take_over(self._health)
            else:
                self._restore(health, model)
            self._health, self._model = health, model

    def _begin(self, running: Running) -> ModelHealth | None:
        """Return the health of a model; None if its expected residual is not known."""
        if running.model.effort.measured == 'external_torque':
            return None  # computed with the robot's own model
        request = running.request
        motors: Any = request.motors if request.motors_text is None else read_motors(
            request.motors_text)
        expected = None if motors is None else read_expected_residual(
            motors, running.joints.joint_names)
        return None if expected is None else ModelHealth(running.dynamics, expected)

    def _restore(self, health: ModelHealth, model: str) -> None:
        """Continue from the file of the last run, if it is about this model; only once."""
        stored, self._stored = self._load(), None
        if stored is None or self.path is None:
            return
        try:
            if health.restore(stored, str(self.path), model):
                self._node.report('info', f'the health of the model goes on from {self.path}')
            else:
                self._node.report('info', f'{self.path} is about another model: the health of '
                                          'this one starts anew')
        except RobodynError as error:
            self._set_aside(str(error))

    def _load(self) -> Mapping[str, Any] | None:
        if self._looked or self.path is None:
            return self._stored
        self._looked = True
        try:
            return read_state(self.path)
        except RobodynError as error:
            self._set_aside(str(error))
            return None

    def _set_aside(self, why: str) -> None:
        path = self.path
        if path is not None:
            self._node.warn('health_file', f'the health of the model starts anew: {why}; the '
                            f'file is now {set_aside(path)}')

    # observations ---------------------------------------------------------------------------

    def update(self, t: float, q: Array, qd: Array, residual: Array, contact: str) -> None:
        """Take a state into account, see `ModelHealth.update`."""
        if self._health is not None:
            with self._lock:
                self._health.update(t, q, qd, residual, contact)
            self._news = True

    def check(self) -> None:
        """Judge the health, warn of new changes, and save the state from time to time."""
        health, now = self._health, time.time()
        if health is None:
            return
        with self._lock:
            known = {(one.joint, one.kind) for one in health.changes}
            changes = health.judge(now)
        for one in changes:
            if (one.joint, one.kind) not in known:
                self._node.warn('model_changed', f'{health.sentence(one, now)}; identify again')
        if time.monotonic() - self._saved >= SAVE_EVERY or len(changes) != len(known):
            self.save()

    def save(self) -> None:
        """Write the file if there is something new."""
        health, path = self._health, self.path
        if health is None or path is None or not self._news:
            return
        self._saved, self._news = time.monotonic(), False
        with self._lock:
            content = health.to_dict(self._model)
        try:
            write_state(path, content)
        except RobodynError as error:
            self._node.warn('health_file', f'the health of the model is not kept: {error}')

    def text(self) -> str:
        """Return what differs from the model; empty if nothing does."""
        return '' if self._health is None else self._health.text(time.time())

    def values(self) -> dict[str, str]:
        """Return values for /diagnostics."""
        if self._health is None:
            return {'health': 'not known: motors_file has no section residual'}
        with self._lock:
            return self._health.values(time.time())
