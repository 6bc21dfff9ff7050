"""`RobotDynamics`: the common interface of dynamics with and without closed loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.description.robot import Cut
from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.closed_loops import ClosedLoopDynamics
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.floating_loops import FloatingLoopDynamics
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.dynamics.quantities import Energy, FullMotion, Terms
from robodyn_ros.dynamics.reactions import Wrenches
from robodyn_ros.errors import check_type
from robodyn_ros.model import A_MODEL, Joints, Model
from robodyn_ros.spatial import Array

# ruff: noqa: D102 - the methods are documented in Dynamics and ClosedLoopDynamics


class RobotDynamics(Protocol):
    """The equations of motion of a robot in its n independent joints.

    `Dynamics`, `ClosedLoopDynamics` and `FloatingLoopDynamics` implement it. In a robot without
    closed loops all joints are independent, `cuts` is empty, and ``near`` is not used.

    ``near`` is a pose of all joints, shape (b,), from which closed loops are closed in small steps
    up to the given state; by default it is `home`. A caller that follows a motion should pass on
    the last result of `positions`. The methods do not change the object, so threads may share it.
    """

    @property
    def model(self) -> Model:
        """The robot, with its loops cut open."""
        ...

    @property
    def joints(self) -> Joints:
        """The n independent joints, which are measured and commanded, with their limits."""
        ...

    @property
    def n(self) -> int:
        """Number of independent joints."""
        ...

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints, in the order of all arrays."""
        ...

    @property
    def dependent_names(self) -> tuple[str, ...]:
        """Names of the dependent joints; empty for a robot without closed loops."""
        ...

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cuts, at which loops are held together; empty for a robot without closed loops."""
        ...

    @property
    def home(self) -> Array:
        """A pose of all joints, shape (b,), in which the loops are closed."""
        ...

    @property
    def tree(self) -> Dynamics:
        """The dynamics of the robot with its loops cut open; itself if there are none."""
        ...

    @property
    def friction_width(self) -> float | None:
        """Width of the smooth sign of dry friction, rad/s or m/s; None: those of the model."""
        ...

    def with_model(self, model: Model, *, friction_width: float | None = None,
                   shared_code: bool = False) -> RobotDynamics:
        ...

    def warm_up(self, *names: str) -> None: ...

    def positions(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array: ...

    def reachable(self, q: ArrayLike) -> NDArray[Any]: ...

    def motion(self, q: ArrayLike, qd: ArrayLike, *,
               near: ArrayLike | None = None) -> FullMotion: ...

    def velocities(self, q: ArrayLike, qd: ArrayLike, *,
                   near: ArrayLike | None = None) -> Array: ...

    def singularity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Any: ...

    def terms(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Terms: ...

    def mass_matrix(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array: ...

    def gravity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array: ...

    def coriolis(self, q: ArrayLike, qd: ArrayLike, *,
                 near: ArrayLike | None = None) -> Array: ...

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *,
                        near: ArrayLike | None = None) -> Array: ...

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None, *,
                 near: ArrayLike | None = None) -> Array: ...

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                         f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array: ...

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *,
                         f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array: ...

    def constraint_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                          f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                          near: ArrayLike | None = None) -> Array: ...

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                  base_motion: BaseMotion | None = None,
                  near: ArrayLike | None = None) -> Array: ...

    def position_rates(self, q: ArrayLike, qd: ArrayLike) -> Array: ...

    def energy(self, q: ArrayLike, qd: ArrayLike, *,
               near: ArrayLike | None = None) -> Energy: ...

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                    f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                    near: ArrayLike | None = None) -> Array: ...


def dynamics_of(robot: Model | RobotDynamics,
                loops: Loops | str | Path | Mapping[str, Any] | None = None, *,
                friction_width: float | None = None) -> RobotDynamics:
    """Return the dynamics of a robot, with closed loops or without.

    Parameters
    ----------
    robot : Model, Dynamics or ClosedLoopDynamics
        The robot; dynamics are returned unchanged.
    loops : Loops, str, Path or mapping, optional
        Definition of the closed loops, if there are any, see `read_loops`.
    friction_width : float, optional
        See `Dynamics`; used only if ``robot`` is a model.

    Raises
    ------
    DescriptionError, UnknownNameError, ValueRangeError
        The loops cannot be read, do not fit the model, or cannot be closed.
    """
    if not isinstance(robot, Model):
        check_type('robot', robot, (Dynamics, ClosedLoopDynamics, FloatingLoopDynamics),
                   f'{A_MODEL}, or its dynamics')
        return robot
    if loops is None:
        return Dynamics(robot, friction_width=friction_width)
    if robot.floating:
        return FloatingLoopDynamics(robot, loops, friction_width=friction_width)
    return ClosedLoopDynamics(robot, loops, friction_width=friction_width)


def smoothed(dynamics: RobotDynamics, width: float) -> RobotDynamics:
    """Return the same dynamics with dry friction whose sign is smooth at all joints.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.
    width : float
        Width of the smooth sign for joints that have none, rad/s or m/s.
    """
    if dynamics.friction_width:
        return dynamics
    own = dynamics.model.friction_width
    if dynamics.friction_width is None and own.any():
        return dynamics.with_model(replace(dynamics.model,
                                           friction_width=np.where(own > 0, own, width)))
    return dynamics.with_model(dynamics.model, friction_width=width)
