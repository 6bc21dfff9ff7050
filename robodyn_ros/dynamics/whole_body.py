"""Centre of mass, centroidal momentum, and the motion of a floating base."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.compiled_model import CompiledModel
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.lazy import cached_property
from robodyn_ros.numerics import unknown
from robodyn_ros.spatial import Array


class WholeBody(CompiledModel):
    """The part of `Dynamics` for the robot as a whole."""

    @cached_property
    def _center_of_mass(self) -> Callable[..., Array]:
        return self.kernel('center_of_mass').single

    @cached_property
    def _centroidal_momentum(self) -> Callable[..., Array]:
        return self.kernel('centroidal_momentum').single

    def center_of_mass(self, q: ArrayLike) -> Array:
        """Centre of mass of the robot in the root frame, root link included; (3,) or (N, 3), m."""
        return self._center_of_mass(q)

    def centroidal_momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Momentum about the centre of mass, shape (6,) or (N, 6).

        Linear momentum (kg m/s), then angular momentum (kg m^2/s), in the axes of the root frame.
        """
        return self._centroidal_momentum(q, qd)

    def position_rates(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Time derivative of q, shape of q; qd itself if the base is fixed.

        The velocity of a floating base's origin is turned into the axes of the root frame, and the
        rate of the quaternion is half its product with the angular velocity.
        """
        q, qd = check_array(q, self.model.nq, 'q'), check_array(qd, self.model.n, 'qd')
        if not self.model.floating:
            return qd
        rotation = self.pose(q, self.model.description.root)[..., :3, :3]  # type: ignore[attr-defined]
        linear = np.einsum('...ij,...j->...i', rotation, qd[..., :3])
        vector, scalar, turn = q[..., 3:6], q[..., 6:7], qd[..., 3:6]
        quaternion = 0.5 * np.concatenate([
            scalar * turn + np.cross(vector, turn),
            -(vector * turn).sum(axis=-1, keepdims=True)], axis=-1)
        joints = np.broadcast_to(qd[..., 6:], (*linear.shape[:-1], self.model.n - 6))
        rates = np.concatenate([linear, quaternion, joints], axis=-1)
        return np.asarray(rates + unknown(q, qd, linear))

    def state_space(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """``x' = f(x) + g(x) tau`` with x = [q; qd] (Kolyubin 1.19).

        Returns
        -------
        f : ndarray, shape (2n,) or (N, 2n)
            With a floating base, f and g have one row more, as q has.
        g : ndarray, shape (2n, n) or (N, 2n, n)
        """
        q, qd = check_array(q, self.model.nq, 'q'), check_array(qd, self.model.n, 'qd')
        drift = self.forward_dynamics(q, qd, np.zeros_like(qd))  # type: ignore[attr-defined]
        inverse = np.linalg.inv(self.mass_matrix(q))  # type: ignore[attr-defined]
        if q.ndim < drift.ndim:
            inverse = np.broadcast_to(inverse, (*drift.shape[:-1], *inverse.shape[-2:]))
        rates = self.position_rates(q, qd)
        still = np.zeros((*inverse.shape[:-2], self.model.nq, self.model.n))
        return (np.concatenate([np.broadcast_to(rates, (*drift.shape[:-1], self.model.nq)),
                                drift], axis=-1), np.concatenate([still, inverse], axis=-2))
