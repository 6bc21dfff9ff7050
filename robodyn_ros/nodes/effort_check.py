"""`EffortCheck`: whether efforts and commands at rest fit their settings in the motor file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.control import Answer
from robodyn_ros.dynamics import dynamics_of
from robodyn_ros.dynamics.efforts import applied_torque, complete_torque, effort_factors
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Model
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.reporting import ReportingNode
from robodyn_ros.observation.rest_check import SLOW, RestCheck
from robodyn_ros.spatial import Array


def known_factors(model: Model, names: Sequence[str]) -> Array | None:
    """Return `effort_factors`; None for external torques and currents without gains."""
    if model.effort.measured == 'external_torque':
        return None
    try:
        return effort_factors(model, tuple(names))
    except RobodynError:
        return None


class EffortCheck:
    """Compares measured efforts and commanded torques at rest with gravity.

    Robots with closed loops or a floating base are not checked; efforts that are all zero are not
    counted, since brakes may hold the robot.

    Parameters
    ----------
    running : Running
        The model of the node.
    """

    def __init__(self, running: Running):
        model, joints = running.model, running.joints
        self.measured, self.commanded = RestCheck(joints.n), RestCheck(joints.n)
        self._dynamics: Any = None
        self._factors: Any = None
        if running.dynamics.cuts or model.floating:
            return
        self._dynamics = running.dynamics if running.dynamics.model is model else \
            dynamics_of(model)
        self._dynamics.warm_up('gravity', 'friction')
        self._factors = known_factors(model, joints.joint_names)

    def state(self, q: Array, qd: Array | None, effort: Array | None) -> None:
        """Take a measured state into account."""
        if self._factors is None or qd is None or effort is None or not np.isfinite(
                effort).all() or not effort.any():
            return
        torque = effort
        if np.abs(qd).max() < SLOW:
            torque = complete_torque(self._dynamics, q, np.zeros_like(qd), effort @ self._factors)
        self.measured.add(q, qd, torque, self._dynamics.gravity)

    def command(self, q: Array, qd: Array, answer: Answer | None) -> None:
        """Take the command that answers a state into account."""
        if self._dynamics is None or answer is None or not answer.torque.any():
            return
        torque = answer.torque
        if np.abs(qd).max() < SLOW:
            torque = applied_torque(self._dynamics, q, np.zeros_like(qd), torque)
        self.commanded.add(q, qd, torque, self._dynamics.gravity)

    def warn(self, node: ReportingNode) -> None:
        """Warn if efforts or commands contradict the setting."""
        problem = self.measured.contradiction() or self.commanded.contradiction(
            'commanded torques, with what the robot adds to them,', 'commands_add')
        if problem:
            node.warn('efforts_contradict', problem)
