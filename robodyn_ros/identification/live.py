"""`LiveFit`: what a recording tells so far, while it is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.description import Array
from robodyn_ros.dynamics import AnyDynamics
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.linear_model import FrictionShape, LinearModel

SPACING = 0.02  # s between samples that count, over which velocities are differentiated
LEAST = 1e-10  # of the largest eigenvalue: what is below is not told at all


class LiveFit:
    """Least squares on normal equations: quick, unfiltered, and gone when the recording ends.

    Parameters
    ----------
    dynamics : Dynamics or ClosedLoopDynamics
        Of the nominal robot.
    kind : str
        Joint torques alone count: of ``model2`` and ``model3`` the link's side.
    """

    def __init__(self, dynamics: AnyDynamics, kind: str = 'lumped'):
        limit = dynamics.model.velocity_limit
        speed = np.where(np.isfinite(limit), limit, 1.0)
        kind = kind if kind in ('rigid', 'lumped', 'model1') else 'model1'
        self._linear = LinearModel(dynamics, kind,
                                   friction=FrictionShape('coulomb', 0.02, speed))
        self._kept = list(base_parameters(self._linear).kept)
        b, n = len(self._kept), dynamics.joints.n
        self._linear.warm_up()  # not while the robot moves
        self._squares = np.zeros((n, b, b))
        self._products = np.zeros((n, b))
        self._torques = np.zeros(n)
        self._last: tuple[float, Array, Array, Array] | None = None
        self.samples = 0

    def add(self, t: Sequence[float], q: Array, qd: Array, tau: Array) -> None:
        """Add measured samples, in order; s and shape (N, n)."""
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
        w = self._linear.regressor(q_, qd_, qdd_)[:, :, self._kept]
        self._squares += np.einsum('kji,kjl->jil', w, w)
        self._products += np.einsum('kji,kj->ji', w, tau_)
        self._torques += (tau_**2).sum(axis=0)

    def state(self) -> tuple[float, Array]:
        """Return the condition number (inf: not told yet) and each joint's unexplained share."""
        whole = self._squares.sum(axis=0)
        scale = np.sqrt(np.maximum(np.diag(whole), 1e-300))
        values, vectors = np.linalg.eigh(whole / np.outer(scale, scale))
        good = values > LEAST * values[-1]
        condition = float(np.sqrt(values[-1] / values[0])) if good.all() else np.inf
        inner = vectors[:, good].T @ (self._products.sum(axis=0) / scale)
        theta = (vectors[:, good] @ (inner / values[good])) / scale
        rest = self._torques - 2 * self._products @ theta + np.einsum(
            'i,jil,l->j', theta, self._squares, theta)
        share = np.sqrt(np.maximum(rest, 0) / np.maximum(self._torques, 1e-300))
        return condition, np.where(self._torques > 0, share, np.nan)
