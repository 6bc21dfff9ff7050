"""Keeps the direction of friction while a reference is at rest.

An arm that came to rest while moving upwards is still held by friction in that direction. If the
sign of the velocity were used at rest, where it is zero or round-off of a spline, the Coulomb
friction torque would vanish or chatter. At joints with a smooth sign (``friction_width`` above 0)
friction decreases continuously, and no direction is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.joint_terms import friction_widths
from robodyn_ros.dynamics.presliding import Presliding
from robodyn_ros.spatial import Array

RESTING = 1e-6  # rad/s or m/s, velocity of a reference up to which a joint is at rest


class RestingDirection:
    """Remembers the last direction of motion of each joint of a reference."""

    def __init__(self) -> None:
        self._of: RobotDynamics | None = None
        self._smooth: Any = None
        self._last: Array | None = None

    def forget(self) -> None:
        """Forget the last directions."""
        self._last = None

    def __call__(self, dynamics: RobotDynamics, qd: Array) -> Array:
        """Return velocities whose signs are the directions of friction, shape (n,).

        Parameters
        ----------
        dynamics : RobotDynamics
            The robot.
        qd : ndarray, shape (n,)
            Velocities of the reference, rad/s or m/s.
        """
        if dynamics is not self._of:
            self._of, self._smooth = dynamics, _smooth_joints(dynamics)
        if self._smooth.all():
            return qd
        rests = np.abs(qd) <= RESTING
        last = self._last
        if last is None or last.shape != qd.shape:
            last = np.zeros_like(qd)
        self._last = np.where(rests, last, np.sign(qd))
        return np.where(rests & ~self._smooth & (self._last != 0), RESTING * self._last, qd)


def _smooth_joints(dynamics: RobotDynamics) -> NDArray[np.bool_]:
    """Return at which independent joints the sign of dry friction is smooth, shape (n,)."""
    model = dynamics.model
    widths = friction_widths(model, dynamics.friction_width).link
    return np.array([widths[model.body_joints.index(name)] > 0 for name in dynamics.joint_names])


class PreslidingState:
    """The state of presliding friction along a reference that is sampled again and again."""

    def __init__(self) -> None:
        self._of: RobotDynamics | None = None
        self._presliding: Presliding | None = None
        self._last: Array | None = None
        self._state: Array | None = None

    def forget(self) -> None:
        """Forget the past: friction is that of steady sliding until the next reversal."""
        self._last = self._state = None

    def __call__(self, dynamics: RobotDynamics, q: Array, qd: Array) -> Array | float:
        """Return what presliding adds to the friction of the plain direction, shape (n,).

        Parameters
        ----------
        dynamics : RobotDynamics
            The robot; the past is forgotten if it has become another one.
        q, qd : ndarray, shape (n,)
            The reference; rad or m, and per s.
        """
        if self._presliding is None or dynamics is not self._of:
            self._of, self._presliding = dynamics, Presliding(dynamics)
            self.forget()
        if not self._presliding:
            return 0.0
        last = q if self._last is None else self._last
        self._state = self._presliding.moved(self._state, q - last, qd)
        self._last = q.copy()
        return self._presliding.torque(self._state, qd)
