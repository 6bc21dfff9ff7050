"""`SimulatedRobot`: the common interface of the embedded engine and Gazebo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import RobodynError, ShapeError, ValueRangeError
from robodyn_ros.model import Joints, Model
from robodyn_ros.simulation.sensors import Measurement
from robodyn_ros.spatial import Array


class SimulationError(RobodynError):
    """The simulation cannot continue."""


class SimulatedRobot(Protocol):
    """A robot in a simulated world, driven by joint torques.

    Attributes
    ----------
    joints : Joints
        The joints that are driven and measured.
    true_model : Model
        The model of the true robot.
    """

    joints: Joints
    true_model: Model

    @property
    def n(self) -> int:
        """Number of joints that are driven and measured."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def time(self) -> float:
        """Simulated time, s."""

    @property
    def timestep(self) -> float:
        """Time step of the physics, s."""

    @property
    def position(self) -> Array:
        """True joint positions, shape (n,), rad or m."""

    @property
    def velocity(self) -> Array:
        """True joint velocities, shape (n,), rad/s or m/s."""

    def reset(self, position: ArrayLike | None = None) -> None:
        """Restart at time 0, at rest."""

    def step(self, torque: ArrayLike, steps: int = 1) -> None:
        """Advance the physics under constant torques."""

    def hold(self, steps: int = 1) -> None:
        """Advance time while brakes hold the robot."""

    def measure(self) -> Measurement | None:
        """Take a measurement; return the newest one that has arrived by now, or None."""

    def attach(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
               inertia: ArrayLike | None = None) -> None:
        """Fix a payload to a link; it replaces the previous payload."""


def checked_joint_values(name: str, values: ArrayLike, joint_names: Sequence[str]) -> Array:
    """Return one finite number for each joint, shape (n,).

    Raises
    ------
    ShapeError, ValueRangeError
        The count of numbers is wrong, or one is not finite; the message names the joint.
    """
    array = np.asarray(values, np.float64)
    if array.shape != (len(joint_names),):
        raise ShapeError(name, f'shape {array.shape}', f'({len(joint_names)},)')
    if not np.isfinite(array).all():
        joint = joint_names[int(np.argmin(np.isfinite(array)))]
        raise ValueRangeError(f'{name} of {joint}', array.tolist(), 'finite numbers')
    return array
