"""Analytic Jacobians, and the operational-space dynamics of links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.link_functions import LinkFunctions
from robodyn_ros.dynamics.operational_space import OperationalSpace, operational_space
from robodyn_ros.dynamics.orientation import (
    ANGLES,
    angles_of,
    inverse_rates,
    rate_drift,
    rate_matrix,
)
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.spatial import Array


class TaskSpace(LinkFunctions):
    """The part of `Dynamics` for tasks of a link: analytic Jacobian, operational space."""

    def angles(self, q: ArrayLike, link: str, angles: str = 'rpy') -> Array:
        """Angles that describe the orientation of a link in the root frame, (3,) or (N, 3), rad.

        Parameters
        ----------
        q : array-like, shape (n,) or (N, n)
            Positions.
        link : str
            Name of the link.
        angles : {'rpy', 'zyz'}
            Roll, pitch and yaw as in URDF, ``Rz(yaw) Ry(pitch) Rx(roll)``, or the Euler angles a,
            b, c of ``Rz(a) Ry(b) Rz(c)``.

        Raises
        ------
        UnknownNameError
            There is no such link, or no such kind of angles.
        """
        return angles_of(self.pose(q, link)[..., :3, :3], _checked(angles))

    def analytic_jacobian(self, q: ArrayLike, link: str, angles: str = 'rpy') -> Array:
        """Analytic Jacobian of a link, shape (6, n) or (N, 6, n).

        Rows: velocity of the link frame's origin (m/s), rates of the angles (rad/s). Where the
        angles are singular (pitch of +-90 degrees, or b of 0 or 180 degrees), the rates are those
        of a pseudo-inverse.

        Parameters
        ----------
        q, link, angles
            See `angles`.
        """
        jacobian = self.jacobian(q, link)
        inverse = inverse_rates(rate_matrix(self.angles(q, link, angles), angles))
        return np.concatenate([jacobian[..., :3, :], inverse @ jacobian[..., 3:, :]], axis=-2)

    def analytic_jacobian_dot_qd(self, q: ArrayLike, qd: ArrayLike, link: str,
                                 angles: str = 'rpy') -> Array:
        """``dJ_a/dt qd`` of the analytic Jacobian, shape (6,) or (N, 6), m/s^2 and rad/s^2."""
        matrix = rate_matrix(self.angles(q, link, angles), angles)
        inverse, drift = inverse_rates(matrix), self.jacobian_dot_qd(q, qd, link)
        turning = np.einsum('...ij,...j->...i', self.jacobian(q, link)[..., 3:, :],
                            np.asarray(qd, np.float64))
        rates = np.einsum('...ij,...j->...i', inverse, turning)
        curve = np.einsum('...ij,...j->...i', inverse,
                          drift[..., 3:] - rate_drift(matrix, rates, angles))
        return np.concatenate(np.broadcast_arrays(drift[..., :3], curve), axis=-1)

    def operational_space(self, q: ArrayLike, qd: ArrayLike, link: str,
                          axes: Sequence[int] = (0, 1, 2, 3, 4, 5), *,
                          angles: str | None = None) -> OperationalSpace:
        """Operational-space dynamics of a link (Kolyubin 1.18): Lambda, mu, rho.

        Parameters
        ----------
        q, qd : array-like, shape (n,) or (N, n)
            State.
        link : str
            Name of the link.
        axes : sequence of int
            Rows of the Jacobian that span the task: 0-2 linear, 3-5 angular.
        angles : {'rpy', 'zyz'}, optional
            Take the analytic Jacobian: the last three coordinates of the task are these angles,
            and the forces on them are moments about their axes. Default: the geometric Jacobian,
            with accelerations and moments in root axes. Where the angles are singular, the pose
            counts as singular.

        Raises
        ------
        UnknownNameError
            There is no such link, axis or kind of angles.
        """
        if not axes or not set(axes) <= set(range(6)) or len(set(axes)) != len(axes):
            raise UnknownNameError('task axes', list(axes), map(str, range(6)))
        if angles is None:
            jacobian, drift = self.jacobian(q, link), self.jacobian_dot_qd(q, qd, link)
        else:
            jacobian = self.analytic_jacobian(q, link, angles)
            drift = self.analytic_jacobian_dot_qd(q, qd, link, angles)
        rows, terms = list(axes), self.terms(q, qd)  # type: ignore[attr-defined]
        return operational_space(jacobian[..., rows, :], drift[..., rows], terms.mass_matrix,
                                 terms.coriolis, terms.gravity)


def _checked(angles: str) -> str:
    if angles not in ANGLES:
        raise UnknownNameError('angles', angles, ANGLES)
    return angles
