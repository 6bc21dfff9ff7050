"""External torques directly from measured accelerations: the reference of the observers."""

from __future__ import annotations

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.spatial import Array


def direct_torque(dynamics: RobotDynamics, q: Array, qd: Array, qdd: Array, tau: Array) -> Array:
    """Return ``M qdd + c + g + friction - tau``, the torques that act from outside.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.
    q, qd, qdd : ndarray, shape (n,) or (N, n)
        Measured motion, rad or m.
    tau : ndarray, shape (n,) or (N, n)
        Torques on the link's side, N m or N.
    """
    return dynamics.inverse_dynamics(q, qd, qdd) - tau
