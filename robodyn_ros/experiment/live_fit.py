"""`LiveFit`: a quick estimate during a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.efforts import effort_factors, measured_dynamics
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.model.kinds import joint_torque_kind
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

SPACING = 0.02  # s between used samples, over which velocities are differentiated
LEAST = 1e-10  # relative to the largest eigenvalue; smaller eigenvalues are round-off
SIGN_WIDTH = 0.02  # width of the smooth sign of Coulomb friction, relative to the velocity limit


class Fit(Protocol):
    """What follows a recording, see `LiveFit`."""

    samples: int

    def add(self, t: Sequence[float], q: Array, qd: Array, tau: Array) -> None:
        """Add measured samples in temporal order."""

    def state(self) -> tuple[float, Array]:
        """Return the condition number and the unexplained fraction of each joint's torque."""


class LiveFit:
    """Least squares on normal equations without filters: quick, but less accurate.

    Parameters
    ----------
    dynamics : RobotDynamics
        The nominal robot.
    kind : str
        Kind of the identification; a kind that also needs motor torques is replaced by ``links``.

    Attributes
    ----------
    samples : int
        Number of samples so far.
    """

    def __init__(self, dynamics: RobotDynamics, kind: str = 'lumped'):
        dynamics = measured_dynamics(dynamics)
        self._factors = effort_factors(dynamics.model, dynamics.joints.joint_names)
        limit = dynamics.model.velocity_limit
        speed = np.where(np.isfinite(limit), limit, 1.0)
        self._linear = LinearModel(dynamics, joint_torque_kind(kind),
                                   friction=FrictionShape('coulomb', SIGN_WIDTH, speed))
        self._kept = list(base_parameters(self._linear).kept)
        b, n = len(self._kept), dynamics.joints.n
        self._linear.warm_up()  # the compiler must not run while the robot moves
        self._squares = np.zeros((n, b, b))
        self._products = np.zeros((n, b))
        self._torques = np.zeros(n)
        self._last: tuple[float, Array, Array, Array] | None = None
        self.samples = 0

    def add(self, t: Sequence[float], q: Array, qd: Array, tau: Array) -> None:
        """Add measured samples in temporal order.

        Parameters
        ----------
        t : sequence of float
            Stamps, s.
        q, qd, tau : ndarray, shape (N, n)
            Positions, velocities and torques; rad or m, N m or N.
        """
        rows = []
        for row in zip(t, q, qd, tau, strict=True):
            self.samples += 1
            last = self._last
            if last is not None and 0 <= row[0] - last[0] < SPACING:
                continue
            if last is not None and row[0] - last[0] < 3 * SPACING:
                step = row[0] - last[0]
                rows.append([(row[1] + last[1]) / 2, (row[2] + last[2]) / 2,
                             (row[2] - last[2]) / step, (row[3] + last[3]) / 2])
            self._last = row
        if not rows:
            return
        q_, qd_, qdd_, tau_ = np.array(rows).transpose(1, 0, 2)
        tau_ = tau_ @ self._factors
        w = self._linear.regressor(q_, qd_, qdd_)[:, :, self._kept]
        self._squares += np.einsum('kji,kjl->jil', w, w)
        self._products += np.einsum('kji,kj->ji', w, tau_)
        self._torques += (tau_**2).sum(axis=0)

    def state(self) -> tuple[float, Array]:
        """Return the condition number and the unexplained fraction of each joint's torque.

        Returns
        -------
        condition : float
            Condition number; infinite while a parameter is not excited.
        unexplained : ndarray, shape (n,)
            Fractions; nan for a joint without torque.
        """
        whole = self._squares.sum(axis=0)
        scale = np.sqrt(np.diag(whole))
        values, vectors = np.linalg.eigh(safe_divide(whole, np.outer(scale, scale)))
        good = values > LEAST * values[-1]
        condition = float(np.sqrt(values[-1] / values[0])) if good.all() else np.inf
        inner = vectors[:, good].T @ safe_divide(self._products.sum(axis=0), scale)
        theta = safe_divide(vectors[:, good] @ (inner / values[good]), scale)
        rest = self._torques - 2 * self._products @ theta + np.einsum(
            'i,jil,l->j', theta, self._squares, theta)
        return condition, np.sqrt(safe_divide(np.maximum(rest, 0), self._torques, at_zero=np.nan))
