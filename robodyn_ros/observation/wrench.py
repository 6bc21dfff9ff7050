"""External wrench at a link from external joint torques, with its covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.spatial import Array

# N, N m: standard deviation of wrenches before the torques are known
USUAL = np.array([300.0] * 3 + [100.0] * 3)


@dataclass(frozen=True, eq=False)
class Wrench:
    """A wrench at the origin of a link: force (N), then moment (N m), in the root's axes.

    Attributes
    ----------
    values : ndarray, shape (6,)
    covariance : ndarray, shape (6, 6)
    """

    values: Array
    covariance: Array

    def turned(self, rotation: Array) -> Wrench:
        """Return the wrench in other axes; ``rotation`` maps from the root's axes to these."""
        both = np.zeros((6, 6))
        both[:3, :3] = both[3:, 3:] = rotation
        return Wrench(both @ self.values, both @ self.covariance @ both.T)


def external_wrench(jacobian: Array, torque: Array, deviation: Array,
                    usual: Array = USUAL) -> Wrench:
    """Return the wrench that explains external torques, by a damped inverse of the Jacobian.

    It minimises ``|(J' F - torque) / deviation|^2 + |F / usual|^2``. Directions without effect on
    the joint torques keep the covariance of ``usual``.

    Parameters
    ----------
    jacobian : ndarray, shape (6, n)
        Jacobian of the link, in the root's axes.
    torque : ndarray, shape (n,)
        External torques, N m or N.
    deviation : ndarray, shape (n,)
        Their standard deviations, N m or N.
    usual : ndarray, shape (6,)
        Standard deviation of the wrench before the torques are known, N and N m.
    """
    weighted = jacobian / deviation**2
    covariance = np.linalg.inv(weighted @ jacobian.T + np.diag(1 / usual**2))
    return Wrench(covariance @ weighted @ torque, covariance)
