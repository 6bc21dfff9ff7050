"""`BaseMotion`: how the base of a robot moves, for example on a vehicle, a ship or a test rig."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array

ORTHOGONAL = 1e-6  # largest deviation of R'R from the identity


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """The motion of the root link at one instant, or at N of them.

    These are omega_0, its derivative and the acceleration of the origin, with which the recursions
    begin (Velagić 4.89-4.92, Luh-Walker-Paul 4.45-4.53). All vectors are in the axes of the root
    link, which moves. The velocity of the origin has no effect on forces and torques.

    Attributes
    ----------
    angular_velocity, angular_acceleration : array-like, shape (3,) or (N, 3)
        rad/s and rad/s^2.
    acceleration : array-like, shape (3,) or (N, 3)
        Acceleration of the origin of the root link, without gravity, m/s^2.
    rotation : array-like, shape (3, 3) or (N, 3, 3), optional
        Rotation from the axes of the root link to the axes in which ``model.gravity`` is given.
        Default: the identity.
    specific_force : array-like, shape (3,) or (N, 3), optional
        Acceleration of the origin minus gravity, m/s^2, as an accelerometer at the origin measures
        it. It replaces ``acceleration`` and ``rotation``.

    Examples
    --------
    >>> heave = BaseMotion(acceleration=(0, 0, 1.5))
    >>> tau = dynamics.inverse_dynamics(q, qd, qdd, base_motion=heave)
    """

    angular_velocity: ArrayLike = (0.0, 0.0, 0.0)
    angular_acceleration: ArrayLike = (0.0, 0.0, 0.0)
    acceleration: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike | None = None
    specific_force: ArrayLike | None = None

    def values(self, model: Model) -> Array:
        """Return the motion as the kernels take it, shape (9,) or (N, 9).

        It consists of angular velocity, angular acceleration and specific force.

        Parameters
        ----------
        model : Model
            The robot, whose base is not floating.

        Raises
        ------
        ShapeError, ValueRangeError
            An array has the wrong shape, ``rotation`` is not a rotation, ``specific_force`` is
            given together with ``acceleration`` or ``rotation``, or the base floats.
        """
        if model.floating:
            raise ValueRangeError('base_motion', 'given for a floating base', 'none: the motion '
                                  'of a floating base is part of q, qd and qdd')
        parts: Sequence[Array] = [_vectors('angular_velocity', self.angular_velocity),
                                  _vectors('angular_acceleration', self.angular_acceleration),
                                  self._specific_force(model.gravity)]
        if any(part.ndim == 2 for part in parts):
            parts = np.broadcast_arrays(*parts)
        return np.concatenate(parts, axis=-1)

    @classmethod
    def stack(cls, motions: Sequence[BaseMotion], model: Model) -> BaseMotion:
        """Return the motions of a robot's base at N instants as one object.

        Parameters
        ----------
        motions : sequence of BaseMotion
            Each at one instant.
        model : Model
            The robot.
        """
        values = np.array([motion.values(model) for motion in motions])
        return cls(values[:, :3], values[:, 3:6], specific_force=values[:, 6:])

    def _specific_force(self, gravity: Array) -> Array:
        acceleration = _vectors('acceleration', self.acceleration)
        if self.specific_force is not None:
            if self.rotation is not None or acceleration.any():
                raise ValueRangeError('specific_force', 'given with acceleration or rotation',
                                      'specific_force alone, which contains both')
            return _vectors('specific_force', self.specific_force)
        if self.rotation is None:
            return acceleration - gravity
        rotation = real_numbers('rotation', self.rotation)
        if rotation.ndim not in (2, 3) or rotation.shape[-2:] != (3, 3):
            raise ShapeError('rotation', f'shape {rotation.shape}', '(3, 3) or (N, 3, 3)')
        product = np.swapaxes(rotation, -1, -2) @ rotation
        if not (np.abs(product - np.eye(3)).max() < ORTHOGONAL
                and (np.linalg.det(rotation) > 0).all()):
            raise ValueRangeError('rotation', rotation.tolist(), 'rotation matrices')
        return acceleration - gravity @ rotation


def _vectors(name: str, values: ArrayLike) -> Array:
    array = real_numbers(name, values)
    if array.ndim not in (1, 2) or array.shape[-1] != 3:
        raise ShapeError(name, f'shape {array.shape}', '(3,) or (N, 3)')
    return array
