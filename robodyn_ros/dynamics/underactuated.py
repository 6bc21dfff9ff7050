"""Robots of which no motor drives some joints or the base: torques of the motors alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.quantities import times
from robodyn_ros.dynamics.reactions import Wrenches
from robodyn_ros.dynamics.scaled_mass import ScaledMass
from robodyn_ros.errors import ShapeError
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.spatial import Array


class Underactuated:
    """The part of `ClosedLoopDynamics` and `FloatingLoopDynamics` for the driven joints."""

    def driven_torques(self: Any, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                       f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                       near: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return the torques of the driven joints, and the accelerations of all.

        No motor drives the passive independent joints and a floating base: the torques of these
        joints and the wrench on the base are zero, except those of ``f_ext``, and their
        accelerations follow from those of the driven joints.

        Parameters
        ----------
        q, qd : array-like, shape (n,) or (N, n)
            Positions and velocities of all independent joints; with a floating base, its pose and
            its twist come first, and q has n + 1 elements.
        qdd : array-like, shape (d,) or (N, d)
            Accelerations of the d driven joints, in the order of `driven_names`.
        f_ext, base_motion, near
            See `Dynamics.inverse_dynamics` and `RobotDynamics`.

        Returns
        -------
        torques : ndarray, shape (d,) or (N, d)
        accelerations : ndarray, shape (n,) or (N, n)
            Accelerations of a floating base, and of all independent joints.
        """
        first = self.n - len(self.joint_names)
        driven = [first + k for k, name in enumerate(self.joint_names)
                  if name in self.driven_names]
        others = [k for k in range(self.n) if k not in driven]
        wanted = check_array(qdd, len(driven), 'qdd')
        bias = self.inverse_dynamics(q, qd, np.zeros(self.n), f_ext=f_ext,
                                     base_motion=base_motion, near=near)
        mass = self.mass_matrix(q, near=near)
        counts = {len(array) for array, rank in ((bias, 1), (mass, 2), (wanted, 1))
                  if array.ndim > rank}
        if len(counts) > 1:
            raise ShapeError('batch', f'arrays of different length: {sorted(counts)}',
                             'the same N for all')
        full = np.zeros((*(counts or ()), self.n))
        full[..., driven] = wanted
        if others:
            pull = (times(mass, full) + bias)[..., others]
            full[..., others] = -ScaledMass(mass[..., others, :][..., others]).solve(pull)
        return (times(mass, full) + bias)[..., driven], full
