"""Balancing of robots (Kolyubin 1.3): the best masses and stiffnesses at given places.

Counter-masses and springs can take the static load off the motors, and counter-masses the
inertial forces off the mounting. Torques and forces are linear in the masses and stiffnesses,
which are found by least squares within bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.balancing.elements import (
    CounterMass,
    JointSpring,
    Spring,
    pull_of,
    shaking_of,
    torsion_of,
    weight_of,
)
from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

SAMPLES = 1000  # poses of the workspace

Robot = Model | RobotDynamics
LoopsSource = Loops | str | Path | Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class Balance:
    """Masses and stiffnesses, and what they achieve.

    Attributes
    ----------
    masses : ndarray
        Masses of the counter-masses, kg.
    stiffnesses : ndarray
        Stiffnesses of the springs between links, N/m.
    joint_stiffnesses, joint_rests : ndarray
        Stiffnesses of the springs at joints, N m/rad or N/m, and their rest positions, rad or m;
        NaN for a stiffness of 0.
    before, after : ndarray, shape (n,) or (6,)
        Root mean squares of the motors' static torques (N m or N), or of the shaking force and
        moment (N and N m), without and with the counter-masses and springs.
    dynamics : RobotDynamics
        The robot with the counter-masses.
    springs, joint_springs : tuple
        The springs as they were given.
    """

    masses: Array
    stiffnesses: Array
    joint_stiffnesses: Array
    joint_rests: Array
    before: Array
    after: Array
    dynamics: RobotDynamics
    springs: tuple[Spring, ...]
    joint_springs: tuple[JointSpring, ...]

    @property
    def model(self) -> Model:
        """The model of the robot with the counter-masses."""
        return self.dynamics.model

    def spring_torque(self, q: ArrayLike) -> Array:
        """Return the torques of all springs at the joints, shape (n,) or (N, n).

        The motors hold the robot with ``dynamics.gravity(q) - spring_torque(q)``.
        """
        given = real_numbers('q', q)
        poses = np.atleast_2d(given)
        motion = self.dynamics.motion(poses, np.zeros_like(poses))
        total = np.zeros_like(poses)
        for spring, stiffness in zip(self.springs, self.stiffnesses, strict=True):
            total -= stiffness * pull_of(self.dynamics, motion, spring)
        for joint, stiffness, rest in zip(self.joint_springs, self.joint_stiffnesses,
                                          self.joint_rests, strict=True):
            if stiffness:
                turned, constant = torsion_of(self.dynamics, poses, joint)
                total -= stiffness * (turned + rest * constant)
        return total[0] if given.ndim == 1 else total


def balance_gravity(robot: Robot, *, counter_masses: Sequence[CounterMass] = (),
                    springs: Sequence[Spring] = (), joint_springs: Sequence[JointSpring] = (),
                    poses: ArrayLike | None = None, weights: ArrayLike | None = None,
                    loops: LoopsSource = None) -> Balance:
    """Find counter-masses and springs that minimise the static torques over a workspace.

    Parameters
    ----------
    robot : Model or RobotDynamics
        The robot, on a fixed base.
    counter_masses, springs, joint_springs : sequence
        The places where they can be mounted.
    poses : array-like, shape (N, n), optional
        The workspace, rad or m; default: 1000 random poses within the joints' limits.
    weights : array-like, shape (n,), optional
        Factor of each joint's torque; default: 1.
    loops : Loops, str, Path or mapping, optional
        Closed loops, if ``robot`` is a model that has them.

    Raises
    ------
    UnknownNameError, ShapeError, ValueRangeError
        A link or joint does not exist, or an array cannot be used.

    Examples
    --------
    >>> spring = rd.balancing.Spring(('base', 'link2'), [(0, 0, 0.6), (0.3, 0, 0)])
    >>> found = rd.balancing.balance_gravity(model, springs=[spring])
    >>> found.stiffnesses, found.before, found.after
    """
    dynamics = _fixed(robot, loops)
    if poses is None:
        q = dynamics.joints.sample_poses(np.random.default_rng(0), SAMPLES)
        q = q[dynamics.reachable(q)]
    else:
        q = _states('poses', poses, dynamics.n)
    motion = dynamics.motion(q, np.zeros_like(q))
    turns = [torsion_of(dynamics, q, spring) for spring in joint_springs]
    columns = [*(weight_of(dynamics, motion, mass) for mass in counter_masses),
               *(pull_of(dynamics, motion, spring) for spring in springs),
               *(stiff for stiff, _ in turns), *(constant for _, constant in turns)]
    upper = [*(mass.heaviest for mass in counter_masses), *(s.stiffest for s in springs),
             *(s.stiffest for s in joint_springs), *[np.inf] * len(turns)]
    lower = [0.0] * (len(columns) - len(turns)) + [-np.inf] * len(turns)
    before = dynamics.gravity(q)
    factor = np.ones(dynamics.n) if weights is None else real_numbers('weights', weights)
    if factor.shape != (dynamics.n,):
        raise ShapeError('weights', f'shape {factor.shape}', f'({dynamics.n},)')
    found = _fit(before * factor, [column * factor for column in columns], lower, upper)
    after = before + sum(x * column for x, column in zip(found, columns, strict=True))
    masses, stiffnesses, at_joints, constants = np.split(found, np.cumsum(
        [len(counter_masses), len(springs), len(turns)]))
    rests = np.where(at_joints > 0, constants / np.where(at_joints > 0, at_joints, 1.0), np.nan)
    return Balance(masses, stiffnesses, at_joints, rests, _rms(before), _rms(after),
                   _loaded(dynamics, counter_masses, masses), tuple(springs), tuple(joint_springs))


def balance_base(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                 counter_masses: Sequence[CounterMass], moment_arm: float = 1.0,
                 loops: LoopsSource = None) -> Balance:
    """Find counter-masses that minimise the shaking force and moment on the base.

    These are the parts of `Dynamics.base_wrench` that the motion causes, without the weight.

    Parameters
    ----------
    robot : Model or RobotDynamics
        The robot, on a fixed base; with closed loops or without.
    q, qd, qdd : array-like, shape (N, n)
        The motion for which the base is balanced.
    counter_masses : sequence of CounterMass
        The places where they can be mounted.
    moment_arm : float
        Length by which moments are divided, to be added to forces, m; ``inf``: forces only.
    loops : Loops, str, Path or mapping, optional
        Closed loops, if ``robot`` is a model that has them.

    Raises
    ------
    UnknownNameError, ShapeError, ValueRangeError
        A link does not exist, or an array cannot be used.
    """
    dynamics = _fixed(robot, loops)
    if not moment_arm > 0:
        raise ValueRangeError('moment_arm', moment_arm, 'a length above 0 m')
    q_, qd_, qdd_ = (_states(name, x, dynamics.n) for name, x in (
        ('q', q), ('qd', qd), ('qdd', qdd)))
    motion, still = dynamics.motion(q_, qd_), np.zeros_like(q_)
    before = dynamics.base_wrench(q_, qd_, qdd_) - dynamics.base_wrench(q_, still, still)
    columns = [shaking_of(dynamics, motion, motion.qdd(qdd_), mass) for mass in counter_masses]
    factor = np.array([1.0] * 3 + [1 / moment_arm] * 3)
    masses = _fit(before * factor, [column * factor for column in columns],
                  [0.0] * len(columns), [mass.heaviest for mass in counter_masses])
    after = before + sum(x * column for x, column in zip(masses, columns, strict=True))
    none = np.zeros(0)
    return Balance(masses, none, none, none, _rms(before), _rms(after),
                   _loaded(dynamics, counter_masses, masses), (), ())


def _fit(load: Array, columns: Sequence[Array], lower: Sequence[float],
         upper: Sequence[float]) -> Array:
    """Return the factors of the columns, within bounds, that cancel a load best."""
    if not columns:
        raise ValueRangeError('places of masses and springs', 'none', 'at least one')
    if not all(limit >= 0 for limit in upper):
        raise ValueRangeError('largest masses and stiffnesses', list(upper), 'numbers above 0')
    table = np.column_stack([column.ravel() for column in columns])
    scale = np.linalg.norm(table, axis=0)
    scale[scale == 0] = 1.0
    # QR leaves a small problem with the same solution
    reduced: Array = np.asarray(
        np.linalg.qr(np.column_stack([table / scale, -load.ravel()]), mode='r'))
    found = package('scipy.optimize').lsq_linear(
        reduced[:, :-1], reduced[:, -1], (lower * scale, upper * scale), method='bvls', tol=1e-14)
    return np.asarray(found.x / scale)


def _loaded(dynamics: RobotDynamics, places: Sequence[CounterMass], masses: Array,
            ) -> RobotDynamics:
    model = dynamics.model
    for place, mass in zip(places, masses, strict=True):
        model = model.with_payload(place.link, float(mass), place.point)
    return dynamics.with_model(model)


def _fixed(robot: Robot, loops: LoopsSource) -> RobotDynamics:
    dynamics = dynamics_of(robot, loops)
    dynamics.model.require_fixed_base('balancing')
    return dynamics


def _states(name: str, values: ArrayLike, n: int) -> Array:
    array = np.atleast_2d(real_numbers(name, values))
    if array.ndim != 2 or array.shape[1] != n or not len(array):
        raise ShapeError(name, f'shape {array.shape}', f'(N, {n})')
    return array


def _rms(values: Array) -> Array:
    return np.asarray(np.sqrt((values**2).mean(axis=0)))
