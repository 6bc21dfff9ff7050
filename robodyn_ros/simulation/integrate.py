"""`simulate`: integrates the package's own forward dynamics with the solvers of SciPy.

The step size follows from the wanted accuracy, so a motion can be computed to many digits, for
example as a reference for an engine with fixed steps. There are no joint limits and no contacts.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.robot import CURVE
from robodyn_ros.dynamics import BaseMotion, FlexibleDynamics, RobotDynamics, dynamics_of
from robodyn_ros.dynamics.joint_terms import friction_widths
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.dynamics.protocol import smoothed
from robodyn_ros.errors import ShapeError, ValueRangeError
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.packages import package
from robodyn_ros.simulation.world import SimulationError
from robodyn_ros.spatial import Array

RATE = 100.0  # Hz, at which the motion is returned unless times are given
FRICTION_WIDTH = 1e-3  # rad/s or m/s, width of the smooth sign if the robot is given as a model
DIVERGED = 1e9  # rad, m, rad/s or m/s; a larger position or velocity has diverged
DRY = [CURVE.index(name) for name in ('coulomb', 'stribeck', 'load')]  # terms with a sign

Torque = Callable[..., ArrayLike]
Wrenches = Mapping[str, ArrayLike]


@dataclass(frozen=True, eq=False)
class SimulatedMotion:
    """The motion that `simulate` returns.

    Attributes
    ----------
    t : ndarray, shape (K,)
        Times, s.
    q, qd, tau : ndarray, shape (K, n)
        Positions (rad or m), velocities and torques (N m or N) of the independent joints; with a
        floating base, q has n + 1 columns.
    theta, theta_d : ndarray, shape (K, n), or None
        Positions and velocities of the motors of a robot with elastic joints, at the output of
        the gears.
    events : tuple of ndarray
        The times at which each of the given events happened, s.
    evaluations : int
        Number of evaluations of the accelerations.
    """

    t: Array
    q: Array
    qd: Array
    tau: Array
    theta: Array | None
    theta_d: Array | None
    events: tuple[Array, ...]
    evaluations: int


def simulate(robot: Model | RobotDynamics | FlexibleDynamics,
             tau: Torque | ArrayLike | None = None, *, q: ArrayLike,
             qd: ArrayLike | None = None, duration: float,
             times: ArrayLike | None = None, theta: ArrayLike | None = None,
             theta_d: ArrayLike | None = None,
             f_ext: Callable[..., Wrenches] | Wrenches | None = None,
             base_motion: Callable[[float], BaseMotion] | BaseMotion | None = None,
             events: Sequence[Callable[..., float]] = (),
             loops: Loops | str | Path | Mapping[str, Any] | None = None,
             friction_width: float | None = None, method: str = 'DOP853', rtol: float = 1e-8,
             atol: float = 1e-10, max_step: float = np.inf) -> SimulatedMotion:
    """Simulate a robot with the forward dynamics of this package.

    Parameters
    ----------
    robot : Model, Dynamics, ClosedLoopDynamics, FloatingLoopDynamics or FlexibleDynamics
        The robot; its base may float. Then tau begins with the force and moment on the base.
    tau : callable or array-like, shape (n,), optional
        Torques, N m or N: constant, or a control law ``tau(t, q, qd)``. That of a robot with
        elastic joints is ``tau(t, q, qd, theta, theta_d)``. Default: none.
    q, qd : array-like, shape (n,)
        State at the start; default velocity: zero. With a floating base, q has n + 1 elements.
    duration : float
        Simulated time, s.
    times : array-like, shape (K,), optional
        Times between 0 and ``duration`` at which the motion is returned, s; default: at 100 Hz.
    theta, theta_d : array-like, shape (n,), optional
        Motors of a robot with elastic joints at the start; by default the springs are deflected so
        far that they hold the links at rest, and the motors have the velocities of the links.
    f_ext : optional
        Wrenches on links, see `Dynamics.inverse_dynamics`: constant, a function ``f_ext(t)`` of
        the time, or ``f_ext(t, q, qd)`` of the state as well, for example the forces of a ground.
    base_motion : optional
        Motion of the base, see `Dynamics.inverse_dynamics`: constant, or a function of the time.
    events : sequence of callable
        Functions ``event(t, q, qd)`` (with ``theta, theta_d`` for elastic joints) whose zeros are
        found. As in SciPy, the attribute ``terminal = True`` of a function ends the simulation
        there, and ``direction`` 1 or -1 restricts it to one direction.
    loops : Loops, str, Path or mapping, optional
        Closed loops, if ``robot`` is a model that has them.
    friction_width : float, optional
        Width of the smooth sign of dry friction, rad/s or m/s, if ``robot`` is a model; default:
        those of the model, and 1e-3 for joints that have none.
    method, rtol, atol, max_step
        Those of ``scipy.integrate.solve_ivp``. Friction and stiff springs can make 'LSODA' or
        'Radau' faster than the default.

    Returns
    -------
    SimulatedMotion

    Raises
    ------
    ShapeError, ValueRangeError
        An argument cannot be used, a torque is not finite, or the robot has Coulomb friction but
        no friction width: the sign of the velocity would chatter.
    SimulationError
        The solver cannot continue, for example because the motion diverges.

    Examples
    --------
    >>> swing = rd.simulate(model, q=[0.5, 0.0], duration=2.0)
    >>> held = rd.simulate(model, lambda t, q, qd: dynamics.gravity(q) - 20 * qd, q=q, duration=1)
    """
    dynamics = _dynamics(robot, loops, friction_width) if isinstance(robot, Model) else robot
    plant: _Plant = _Elastic(dynamics, theta, theta_d) if isinstance(
        dynamics, FlexibleDynamics) else _Rigid(dynamics)
    if not (np.isfinite(duration) and duration > 0):
        raise ValueRangeError('duration', duration, 'a finite number of seconds above 0')
    at = _sample_times(times, duration)
    law = tau if callable(tau) else _constant(np.zeros(plant.n) if tau is None else tau)
    push = _pushes(f_ext)
    base = base_motion if callable(base_motion) else lambda t: base_motion

    def torque(t: float, y: Array) -> Array:
        values = check_array(law(t, *plant.split(y)), plant.n, 'tau')
        if values.ndim != 1 or not np.isfinite(values).all():
            raise ValueRangeError(f'tau at {t:.6g} s', np.asarray(values).tolist(),
                                  f'{plant.n} finite numbers')
        return values

    def rate(t: float, y: Array) -> Array:
        if not np.abs(y).max() < DIVERGED:
            raise SimulationError(f'the motion has diverged at {t:.4g} s: check torques, inertias '
                                  'and springs')
        wrenches = push(t, *plant.split(y)[:2])
        result = plant.rate(y, torque(t, y), wrenches, base(t))
        if np.isfinite(result).all():
            return result
        for link, wrench in (wrenches or {}).items():
            if not np.isfinite(wrench).all():
                raise ValueRangeError(f'f_ext[{link!r}] at {t:.6g} s', np.asarray(
                    wrench).tolist(), 'finite numbers')
        raise SimulationError(f'the accelerations at {t:.4g} s are not finite; valid: joints that '
                              'move bodies with inertia')

    result = package('scipy.integrate').solve_ivp(
        rate, (0.0, duration), plant.start(q, qd), method=method, t_eval=at, rtol=rtol, atol=atol,
        max_step=max_step, events=[_event(event, plant) for event in events] or None)
    if result.status < 0:
        reached = result.t[-1] if len(result.t) else 0.0
        raise SimulationError(f'the simulation cannot continue after {reached:.4g} s: '
                              f'{result.message}; check torques, inertias and springs')
    states = result.y.T
    parts = plant.split(states)
    theta_, theta_d_ = parts[2:] if len(parts) > 2 else (None, None)
    return SimulatedMotion(
        result.t, plant.positions(parts[0]), parts[1],
        np.array([torque(t, y) for t, y in zip(result.t, states, strict=True)]),
        theta_, theta_d_, tuple(result.t_events or ()), int(result.nfev))


def _sample_times(times: ArrayLike | None, duration: float) -> Array:
    """Return the times at which the motion is returned."""
    if times is None:
        return np.minimum(np.arange(0.0, duration * (1 + 1e-12), 1 / RATE), duration)
    at = real_numbers('times', times)
    if at.ndim != 1 or not ((np.diff(at) > 0).all() and (at >= 0).all() and (
            at <= duration).all()):
        raise ValueRangeError('times', at.tolist(), f'increasing numbers from 0 to {duration:g} s')
    return at


class _Plant(Protocol):
    """A robot whose state is one vector y, as solvers need it."""

    n: int

    def start(self, q: ArrayLike, qd: ArrayLike | None) -> Array:
        """Return the state at the start."""
        ...

    def split(self, y: Array) -> tuple[Array, ...]:
        """Return q and qd; of a robot with elastic joints theta and theta_d as well."""
        ...

    def positions(self, q: Array) -> Array:
        """Return positions as they are given to the user."""
        ...

    def rate(self, y: Array, tau: Array, push: Wrenches | None, base: BaseMotion | None) -> Array:
        """Return dy/dt under torques, wrenches on links, and a motion of the base."""
        ...


class _Rigid:
    """Positions and velocities of the independent joints, after those of a floating base.

    For the solver, the quaternion is four numbers. Its length has no effect on forces,
    accelerations and rates of rotation, so a deviation from 1 does not change the motion. The
    returned quaternions have length 1.
    """

    def __init__(self, dynamics: RobotDynamics):
        _check_friction(dynamics.model, dynamics.friction_width)
        self.dynamics, self.n = dynamics, dynamics.n
        self.nq = dynamics.n + dynamics.model.floating
        self.pose: Array | None = None  # of all joints, near which closed loops are closed

    def start(self, q: ArrayLike, qd: ArrayLike | None) -> Array:
        start = _vector('q', q, self.nq)
        square = sum(x * x for x in start[3:7].tolist())
        if self.nq > self.n and not (square and math.isfinite(1 / square + square)):
            raise ValueRangeError('q[3:7]', start[3:7].tolist(), 'a quaternion x, y, z, w of '
                                  'length 1')
        return np.concatenate([self.positions(start), _vector('qd', qd, self.n)])

    def split(self, y: Array) -> tuple[Array, ...]:
        return y[..., :self.nq], y[..., self.nq:]

    def positions(self, q: Array) -> Array:
        if self.nq == self.n:
            return q
        turn = q[..., 3:7]
        return np.concatenate([q[..., :3], turn / np.linalg.norm(turn, axis=-1, keepdims=True),
                               q[..., 7:]], axis=-1)

    def rate(self, y: Array, tau: Array, push: Wrenches | None, base: BaseMotion | None) -> Array:
        q, qd = self.split(y)
        self.pose = self.dynamics.positions(q, near=self.pose)
        qdd = self.dynamics.forward_dynamics(q, qd, tau, f_ext=push, base_motion=base,
                                             near=self.pose)
        moved = self.dynamics.position_rates(q, qd) if self.nq > self.n else qd
        return np.concatenate([moved, qdd])


class _Elastic:
    """Positions of links and motors, then their velocities."""

    def __init__(self, dynamics: FlexibleDynamics, theta: ArrayLike | None,
                 theta_d: ArrayLike | None):
        _check_friction(dynamics.model, dynamics.links.friction_width)
        self.dynamics, self.n = dynamics, dynamics.n
        self.motors = theta, theta_d

    def start(self, q: ArrayLike, qd: ArrayLike | None) -> Array:
        q_, qd_ = _vector('q', q, self.n), _vector('qd', qd, self.n)
        theta, theta_d = self.motors
        return np.concatenate([
            q_, q_ + self.dynamics.deflection(q_) if theta is None else _vector(
                'theta', theta, self.n),
            qd_, qd_ if theta_d is None else _vector('theta_d', theta_d, self.n)])

    def split(self, y: Array) -> tuple[Array, ...]:
        n = self.n
        return y[..., :n], y[..., 2 * n:3 * n], y[..., n:2 * n], y[..., 3 * n:]

    def positions(self, q: Array) -> Array:
        return q

    def rate(self, y: Array, tau: Array, push: Wrenches | None, base: BaseMotion | None) -> Array:
        q, qd, theta, theta_d = self.split(y)
        return np.concatenate([qd, theta_d, *self.dynamics.forward_dynamics(
            q, qd, theta, theta_d, tau, f_ext=push, base_motion=base)])


def _dynamics(model: Model, loops: Loops | str | Path | Mapping[str, Any] | None,
              friction_width: float | None) -> RobotDynamics:
    """Return the dynamics of a model, with a smooth sign of dry friction."""
    dynamics = dynamics_of(model, loops, friction_width=friction_width)
    return smoothed(dynamics, FRICTION_WIDTH) if friction_width is None else dynamics


def _check_friction(model: Model, width: float | None) -> None:
    """Refuse friction that depends on the sign of the velocity, if this sign is not smooth."""
    curve, widths = np.nan_to_num(model.friction_curve), friction_widths(model, width)
    dry = (((model.link_friction[:, 1] != 0) | curve[:, DRY].any(axis=1)) & (widths.link == 0)
           | (model.motor_friction[:, 1] != 0) & (widths.motor == 0))
    if dry.any():
        raise ValueRangeError(
            'friction_width', 0.0, 'above 0, for example 1e-3: '
            f'{model.body_joints[int(np.argmax(dry))]} has Coulomb friction, whose sign chatters '
            'at rest')


def _vector(name: str, values: ArrayLike | None, size: int) -> Array:
    array = np.zeros(size) if values is None else real_numbers(name, values)
    if array.shape != (size,):
        raise ShapeError(name, f'shape {array.shape}', f'({size},)')
    if not np.isfinite(array).all():
        raise ValueRangeError(name, array.tolist(), 'finite numbers')
    return array


def _pushes(f_ext: Callable[..., Wrenches] | Wrenches | None) -> Callable[..., Any]:
    """Return wrenches as a function of time, positions and velocities."""
    if not callable(f_ext):
        return lambda *state: f_ext
    try:
        inspect.signature(f_ext).bind(0.0, None, None)
    except TypeError:
        return lambda t, q, qd: f_ext(t)
    except ValueError:  # a builtin without a signature
        pass
    return f_ext


def _constant(values: ArrayLike) -> Torque:
    return lambda *state: values


def _event(function: Callable[..., float], plant: _Plant) -> Callable[[float, Array], float]:
    """Return an event of the whole state, with the attributes of the given one."""
    def event(t: float, y: Array) -> float:
        return float(function(t, *plant.split(y)))

    for name in ('terminal', 'direction'):
        if hasattr(function, name):
            setattr(event, name, getattr(function, name))
    return event
