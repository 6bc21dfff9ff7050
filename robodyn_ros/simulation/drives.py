"""`Drives`: what a simulated robot adds to commanded torques, and what it reports as effort."""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.efforts import applied_torque, effort_factors
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array


class Drives:
    """Drives of a robot that knows its own nominal model.

    Parameters
    ----------
    dynamics : RobotDynamics
        The nominal dynamics, from which the robot computes gravity and friction; its description
        says what efforts mean.

    Raises
    ------
    ValueRangeError
        The robot measures external torques, or a drive gain is unknown.
    """

    def __init__(self, dynamics: RobotDynamics):
        model: Model = dynamics.model
        self._dynamics, self._meaning = dynamics, model.effort
        if self._meaning.measured == 'external_torque':
            raise ValueRangeError('measured efforts', 'external torques', 'torque or current in '
                                  'a simulation')
        self._inverse = np.linalg.inv(effort_factors(model, dynamics.joints.joint_names))

    @property
    def plain(self) -> bool:
        """Whether commands are applied as they are, and reported as efforts."""
        meaning = self._meaning
        return not meaning.commands_add and meaning.gravity == meaning.friction == 'included' \
            and bool(np.array_equal(self._inverse, np.eye(len(self._inverse))))

    def applied(self, command: Array, q: Array, qd: Array) -> Array:
        """Return the torque of the motors for a command, shape (n,), N m or N."""
        return applied_torque(self._dynamics, q, qd, command)

    def reported(self, torque: Array, q: Array, qd: Array) -> Array:
        """Return the effort that the robot reports for a torque of its motors, shape (n,)."""
        if self._meaning.gravity == 'removed':
            torque = torque - self._dynamics.gravity(q)
        if self._meaning.friction == 'removed':
            torque = torque - self._dynamics.friction(qd, q)
        return torque @ self._inverse
