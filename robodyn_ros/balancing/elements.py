"""Counter-masses and springs, and the forces of each for a unit of mass or stiffness.

Forces are linear in masses and stiffnesses, so that the best ones follow from least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import Dynamics, RobotDynamics
from robodyn_ros.dynamics.quantities import FullMotion
from robodyn_ros.errors import UnknownNameError, ValueRangeError
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class CounterMass:
    """A place for a point mass that is fixed to a link.

    Attributes
    ----------
    link : str
        The link.
    point : array-like, shape (3,)
        Position in the link's frame, m.
    heaviest : float
        Largest mass, kg.
    """

    link: str
    point: ArrayLike
    heaviest: float = np.inf


@dataclass(frozen=True, eq=False)
class Spring:
    """A place for a spring between points of two links; one of them may be the root link.

    Attributes
    ----------
    links : tuple of str
        The two links.
    points : array-like, shape (2, 3)
        A point in the frame of each link, m.
    rest_length : float
        Length without force, m. A spring with rest length 0, made with a cable and a pulley, can
        balance a weight exactly.
    stiffest : float
        Largest stiffness, N/m.
    """

    links: tuple[str, str]
    points: ArrayLike
    rest_length: float = 0.0
    stiffest: float = np.inf


@dataclass(frozen=True, eq=False)
class JointSpring:
    """A place for a spring parallel to the motor of a joint; its rest position is computed too.

    Attributes
    ----------
    joint : str
        An independent joint.
    stiffest : float
        Largest stiffness, N m/rad or N/m.
    """

    joint: str
    stiffest: float = np.inf


class PointMotion:
    """Position, Jacobian and acceleration of a point of a link along a motion of N states.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.
    motion : FullMotion
        Positions and velocities of all its joints.
    link : str
        The link.
    point : array-like, shape (3,)
        In the link's frame, m.
    """

    def __init__(self, dynamics: RobotDynamics, motion: FullMotion, link: str, point: ArrayLike):
        self._tree: Dynamics = dynamics.tree
        self._motion, self._link = motion, link
        pose, jacobian = self._tree.pose(motion.q, link), self._tree.jacobian(motion.q, link)
        self._arm = pose[..., :3, :3] @ real_array('point', point, (3,))
        self.position = pose[..., :3, 3] + self._arm
        turning = np.cross(np.swapaxes(jacobian[..., 3:, :], -1, -2), self._arm[..., None, :])
        self._angular = jacobian[..., 3:, :]
        self.jacobian = jacobian[..., :3, :] + np.swapaxes(turning, -1, -2)

    def force_at_joints(self, force: Array) -> Array:
        """Return the generalised forces of a force on the point, shape (N, n)."""
        return self._motion.reduce(np.einsum('...ij,...i->...j', self.jacobian, force))

    def acceleration(self, qdd: Array) -> Array:
        """Return the acceleration of the point for accelerations of all joints, shape (N, 3)."""
        drift = self._tree.jacobian_dot_qd(self._motion.q, self._motion.qd, self._link)
        turn = np.einsum('...ij,...j->...i', self._angular, self._motion.qd)
        return np.asarray(
            np.einsum('...ij,...j->...i', self.jacobian, qdd) + drift[..., :3]
            + np.cross(drift[..., 3:], self._arm) + np.cross(turn, np.cross(turn, self._arm)))


def weight_of(dynamics: RobotDynamics, motion: FullMotion, mass: CounterMass) -> Array:
    """Return the torques that hold 1 kg at the place of a counter-mass, shape (N, n)."""
    point = PointMotion(dynamics, motion, mass.link, mass.point)
    return -point.force_at_joints(np.broadcast_to(dynamics.model.gravity, point.position.shape))


def shaking_of(dynamics: RobotDynamics, motion: FullMotion, qdd: Array,
               mass: CounterMass) -> Array:
    """Return the shaking force and moment of 1 kg at the place of a counter-mass, (N, 6)."""
    point = PointMotion(dynamics, motion, mass.link, mass.point)
    force = -point.acceleration(qdd)
    return np.concatenate([force, np.cross(point.position, force)], axis=-1)


def pull_of(dynamics: RobotDynamics, motion: FullMotion, spring: Spring) -> Array:
    """Return the torques that hold a robot against a spring of 1 N/m, shape (N, n).

    Raises
    ------
    ValueRangeError
        The rest length is negative or infinite, or it is above 0 and the points meet.
    """
    if not 0 <= spring.rest_length < np.inf:
        raise ValueRangeError('rest_length', spring.rest_length, 'a length of at least 0 m')
    places = real_array('points', spring.points, (2, 3))
    ends = [PointMotion(dynamics, motion, link, place)
            for link, place in zip(spring.links, places, strict=True)]
    across = ends[1].position - ends[0].position
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    stretched = across
    if spring.rest_length:
        if not (length > 0).all():
            raise ValueRangeError('points of a spring', spring.links, 'points that do not meet '
                                  'within the workspace, or rest_length 0')
        stretched = across * (1 - spring.rest_length / length)
    return -ends[0].force_at_joints(stretched) + ends[1].force_at_joints(stretched)


def torsion_of(dynamics: RobotDynamics, q: Array, spring: JointSpring) -> tuple[Array, Array]:
    """Return the torques that hold a robot against a spring at a joint, (N, n) each.

    First for a stiffness of 1 N m/rad and a rest position of zero, then for a constant 1 N m.

    Raises
    ------
    UnknownNameError
        The robot has no such joint, or it is not independent.
    """
    if spring.joint not in dynamics.joint_names:
        raise UnknownNameError('joint of a spring', spring.joint, dynamics.joint_names)
    unit = np.zeros_like(q)
    unit[:, dynamics.joint_names.index(spring.joint)] = 1.0
    return unit * q, -unit
