"""Gradients with respect to the motion of the independent joints of a robot with closed loops.

The gradient of a function with respect to the motion of all joints is given. This motion follows
from that of the independent joints: positions change by ``dq = G dq_r`` along the closed poses,
and velocities and accelerations are those of `LoopClosure.motion`, which is differentiated.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics.catalogue import Points
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.loop_kinematics import LoopKinematics
from robodyn_ros.dynamics.quantities import FullMotion, times
from robodyn_ros.spatial import Array


class LoopGradients(LoopKinematics):
    """The part of `ClosedLoopDynamics` for points, gradients, and distances from singularities.

    The motions are batches of consecutive samples, shape (N, n).
    """

    tree: Dynamics

    def motion_pullback(self, motion: FullMotion, qd: Array, qdd: Array, of_q: Array,
                        of_qd: Array, of_qdd: Array, of_matrix: Array) -> Array:
        """Return a gradient with respect to q, qd, qdd of the independent joints, (N, 3, n).

        Parameters
        ----------
        motion : FullMotion
            The motion of all joints.
        qd, qdd : ndarray, shape (N, n)
            Velocities and accelerations of the independent joints.
        of_q, of_qd, of_qdd : ndarray, shape (N, b)
            Gradients with respect to positions, velocities and accelerations of all joints.
        of_matrix : ndarray, shape (N, b, n)
            Gradient with respect to the motion matrix.
        """
        b, n = self.model.n, self.n
        found = self._closure_kernel('motion_pullback').general(
            motion.q, qd, qdd, of_qd, of_qdd, of_matrix.reshape(len(qd), -1))
        by_q = motion.reduce(found[:, :b] + of_q)
        return np.stack([by_q, found[:, b:b + n], found[:, b + n:]], axis=1)

    def inverse_dynamics_pullback(self, q: Array, qd: Array, qdd: Array,
                                  cotangent: Array) -> Array:
        """Gradient of ``cotangent . inverse_dynamics`` with respect to q, qd and qdd, (N, 3, n).

        The cotangent, shape (N, n), is held constant.
        """
        motion = self.motion(q, qd)
        every = motion.qdd(qdd)
        torque = self.tree.inverse_dynamics(motion.q, motion.qd, every)
        pulled = self.tree.inverse_dynamics_pullback(motion.q, motion.qd, every,
                                                     times(motion.matrix, cotangent))
        return self.motion_pullback(motion, qd, qdd, pulled[:, 0], pulled[:, 1], pulled[:, 2],
                                    torque[:, :, None] * cotangent[:, None])

    def points(self, q: Array, points: Points) -> Array:
        """Positions of points fixed to links, in the root frame; (N, k, 3), m."""
        return self.tree.points(self.positions(q), points)

    def points_pullback(self, q: Array, cotangent: Array, points: Points) -> Array:
        """Gradient of ``sum(cotangent * points)`` with respect to q, shape (N, n)."""
        motion = self.motion(q, np.zeros_like(q))
        return motion.reduce(self.tree.points_pullback(motion.q, cotangent, points))

    def regularity(self, full: Array) -> Array:
        """Squared sine of each dependent joint in closed poses (N, b), shape (N, b - n).

        The sine is that of the angle between the motion of the gaps by this joint and those by
        others; it is 0 in a singularity. See `LoopClosure.closing`.
        """
        return np.asarray(self._closure_kernel('regularity').general(full))

    def regularity_pullback(self, full: Array, cotangent: Array) -> Array:
        """Gradient of ``cotangent . regularity`` with respect to all joints, shape (N, b)."""
        return np.asarray(self._closure_kernel('regularity_pullback').general(full, cotangent))
