"""`Dynamics`: every quantity of the equations of motion of one robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.description.robot import Cut
from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.parameter_functions import ParameterFunctions
from robodyn_ros.dynamics.quantities import Energy, FullMotion, Terms
from robodyn_ros.dynamics.reactions import Reactions, Wrenches
from robodyn_ros.dynamics.task_space import TaskSpace
from robodyn_ros.dynamics.whole_body import WholeBody
from robodyn_ros.errors import ShapeError
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.lazy import cached_property
from robodyn_ros.model import Model
from robodyn_ros.numerics import unknown
from robodyn_ros.spatial import Array


class Dynamics(Reactions, TaskSpace, ParameterFunctions, WholeBody):
    """The equations of motion ``M qdd + C qd + g + friction = tau + J' F_ext`` of one robot.

    Every method takes one state, arrays of shape (n,), or a batch, shape (N, n), and returns
    float64 arrays of the same form. With a floating base, q has n + 1 elements: position and
    quaternion (x, y, z, w) of the base, then the joints; the other arrays begin with the twist of
    the base in its own axes, its derivative, or the wrench on it. Code for this robot is compiled
    when a method is first called and cached on disk. M and C include rotor inertia; ``friction``
    is that of links and motors.

    Parameters
    ----------
    model : Model
        The robot.
    friction_width : float, optional
        Width w over which dry friction changes its sign, rad/s or m/s: the sign of the velocity s
        is replaced by ``s sqrt(s^2 + 4 w^2) / (s^2 + 2 w^2)``. With 0, the sign itself is used. By
        default, each joint has the width of the model, `Model.friction_width`.
    threads : int
        Maximum number of threads for a batch.
    shared_code : bool
        Let all models that differ from this one in their parameters alone share the compiled
        code, which takes the parameters as inputs. A call takes longer, but nothing is compiled
        for the next model. Robots with a floating base or more than 64 joints ignore it.

    Notes
    -----
    Joint order is ``model.joint_names``. Units: rad, m, s, N m, N. Wrong shapes raise
    `ShapeError`, unknown links `UnknownNameError`.

    Some methods have a keyword ``near`` for robots with closed loops, see `RobotDynamics`. It has
    no effect here; it is accepted so that callers can treat both kinds of robots alike.
    """

    @property
    def n(self) -> int:
        """Number of generalised velocities: independent joints, and six of a floating base."""
        return self.model.n

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints, in the order of all arrays."""
        return self.model.joint_names

    @property
    def dependent_names(self) -> tuple[str, ...]:
        """Names of the joints that closed loops make dependent: none."""
        return ()

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cuts of closed loops: none, see `ClosedLoopDynamics`."""
        return ()

    @property
    def home(self) -> Array:
        """A pose in which closed loops are closed, shape of q: all joints are zero."""
        pose = np.zeros(self.model.nq)
        if self.model.floating:
            pose[6] = 1.0  # the quaternion of no rotation
        return pose

    @property
    def tree(self) -> Dynamics:
        """The dynamics of the robot with its loops cut open: the object itself."""
        return self

    def with_model(self, model: Model, *, friction_width: float | None = None,
                   shared_code: bool = False) -> Dynamics:
        """Return the dynamics of the same robot with other parameters."""
        width = self.friction_width if friction_width is None else friction_width
        return Dynamics(model, friction_width=width, threads=self.threads,
                        shared_code=shared_code)

    # kernels of single states, compiled when first used -------------------------------------

    @cached_property
    def _inverse_dynamics(self) -> Callable[..., Array]:
        return self.kernel('inverse_dynamics').single

    @cached_property
    def _gravity(self) -> Callable[..., Array]:
        return self.kernel('gravity').single

    @cached_property
    def _coriolis(self) -> Callable[..., Array]:
        return self.kernel('coriolis').single

    @cached_property
    def _mass_matrix(self) -> Callable[..., Array]:
        return self._function('mass_matrix')

    @cached_property
    def _friction(self) -> Callable[..., Array]:
        return self.kernel('friction').single

    @cached_property
    def _terms(self) -> Callable[..., Array]:
        return self._function('terms')

    @cached_property
    def _momentum_terms(self) -> Callable[..., Array]:
        return self.kernel('momentum_terms').single

    @cached_property
    def _forward_dynamics(self) -> Callable[..., Array]:
        return self._function('forward_dynamics')

    # the equations of motion ------------------------------------------------------------------

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                         f_ext: Wrenches | None = None, *,
                         base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array:
        """Generalised forces of a motion: ``tau = M qdd + C qd + g + friction - sum J' F``.

        Luh-Walker-Paul recursion (Velagić 4.89-4.96, Kolyubin 3.3-3.8).

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Positions, velocities, accelerations.
        f_ext : mapping of str to array-like, shape (6,) or (N, 6), optional
            Wrenches that the environment exerts on links, by link name: force (N), then moment
            about the origin of the link frame (N m), in the axes of the root frame. The wrench
            that the last link exerts on what it holds, ``f_(n+1), mu_(n+1)`` of the texts, is the
            negative of that on this link.
        base_motion : BaseMotion, optional
            Motion of the base; default: at rest. The root frame then moves with the base.

        Returns
        -------
        ndarray, shape (n,) or (N, n)
            N m or N.
        """
        if f_ext is None and base_motion is None:
            return self._inverse_dynamics(q, qd, qdd)
        tau = self._inverse_dynamics(q, qd, qdd) if base_motion is None else self._function(
            'moving_inverse_dynamics')(q, qd, qdd, base_motion.values(self.model))
        return tau if f_ext is None else tau - self._external(q, f_ext)

    def gravity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """g(q), shape (n,) or (N, n), N m or N: what holds the robot at rest (Velagić 4.42)."""
        return self._gravity(q)

    def coriolis(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """C(q, qd) qd, shape of qd, N m or N: Coriolis, centrifugal and gyroscopic terms only."""
        return self._coriolis(q, qd)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *,
                        near: ArrayLike | None = None) -> Array:
        """C(q, qd), shape (n, n) or (N, n, n), from Christoffel symbols of the first kind.

        With this choice ``dM/dt - 2 C`` is skew-symmetric (Kolyubin 2.30, 4.3; Velagić 4.48-4.53).
        """
        return self._function('coriolis_matrix')(q, qd)

    def mass_matrix(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """M(q), shape (n, n) or (N, n, n), with rotor inertia (Kolyubin 2.27, Velagić 4.34)."""
        return self._mass_matrix(q)

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None, *,
                 near: ArrayLike | None = None) -> Array:
        """Friction of links and motors, shape of qd, N m or N (Kolyubin 5.7-5.8).

        If gear friction depends on the transmitted torque, the positions q are required: the
        transmitted torque is that of gravity and velocity, without acceleration.

        Raises
        ------
        ShapeError
            If the positions are required but missing.
        """
        if not self.model.friction_follows_load:
            return self._friction(qd)
        if q is None:
            size = self.model.nq
            raise ShapeError('q', 'missing', f'shape ({size},) or (N, {size}): friction of '
                             'this robot depends on the torques that its gears transmit')
        return self._friction(q, qd)

    def terms(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Terms:
        """M, C qd, g and friction, computed by one kernel."""
        flat = self._terms(q, qd)
        n = self.model.n
        if flat.ndim == 1:
            return Terms(flat[3 * n:].reshape(n, n), flat[n:2 * n], flat[:n], flat[2 * n:3 * n])
        return Terms(flat[..., 3 * n:].reshape(*flat.shape[:-1], n, n), flat[..., n:2 * n],
                     flat[..., :n], flat[..., 2 * n:3 * n])

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike,
                         f_ext: Wrenches | None = None, *,
                         base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array:
        """Accelerations, shape of qd: ``M qdd = tau + sum J' F - C qd - g - friction``.

        Parameters as in `inverse_dynamics`; ``tau`` in N m or N.
        """
        if f_ext is not None:
            tau = check_array(tau, self.n, 'tau') + self._external(q, f_ext)
        if base_motion is None:
            return self._forward_dynamics(q, qd, tau)
        return self._function('moving_forward_dynamics')(q, qd, tau,
                                                         base_motion.values(self.model))

    def velocity_change(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, damping: ArrayLike,
                        step: float) -> Array:
        """Change of the velocities over one linearly implicit step of time, shape of qd.

        ``(M + step D) dv = step (tau - C qd - g - friction)``, where the diagonal D is the damping
        and the slope of friction. Without D, light joints with much friction need far
        smaller steps.

        Parameters
        ----------
        q, qd, tau : array-like, shape (n,) or (N, n)
            State and torques.
        damping : array-like, shape (n,) or (N, n)
            Decrease of the torques with the velocities, for example that of a controller; N m s or
            N s/m.
        step : float
            Duration of the step, s.
        """
        change: Array = self._function('velocity_change')(q, qd, tau, damping, np.array([step]))
        return change

    def energy(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Energy:
        """Kinetic and potential energy, J, each a float or shape (N,).

        Potential energy is that of the moving bodies; with all their mass at the root's origin, it
        would be zero.
        """
        both = self.kernel('energy').single(q, qd)
        if both.ndim == 1:
            return Energy(float(both[0]), float(both[1]))
        return Energy(both[:, 0], both[:, 1])

    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Generalised momentum M qd, shape of qd (Kolyubin 3.2.3)."""
        return self.kernel('momentum').single(q, qd)  # type: ignore[no-any-return]

    def momentum_terms(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """Momentum p = M qd and ``C' qd - g``, shape of qd each.

        ``dp/dt = tau + C' qd - g - friction`` (De Luca and others, ICRA 2005).
        """
        both = self._momentum_terms(q, qd)
        return both[..., :self.n], both[..., self.n:]

    # the interface of robots with closed loops, for a tree --------------------------------------

    def positions(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Positions of all joints, shape of q, rad or m: q itself."""
        return check_array(q, self.model.nq, 'q')

    def reachable(self, q: ArrayLike) -> NDArray[np.bool_]:
        """Whether loops can be closed in poses, shape (N, n): in all finite ones; shape (N,)."""
        finite: NDArray[np.bool_] = np.isfinite(np.atleast_2d(check_array(q, self.model.nq, 'q')))
        return np.asarray(finite.all(axis=1))

    def motion(self, q: ArrayLike, qd: ArrayLike, *,
               near: ArrayLike | None = None) -> FullMotion:
        """Motion of all joints, see `FullMotion`: the matrix is the identity, the drift zero."""
        q, qd = check_array(q, self.model.nq, 'q'), check_array(qd, self.n, 'qd')
        return FullMotion(q, qd, np.broadcast_to(np.eye(self.n), (*qd.shape, self.n)),
                          np.zeros_like(qd))

    def velocities(self, q: ArrayLike, qd: ArrayLike, *,
                   near: ArrayLike | None = None) -> Array:
        """Velocities of all joints, shape of qd: qd itself."""
        return check_array(qd, self.n, 'qd')

    def singularity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Any:
        """Distance of closed loops from a singularity: 1, the largest value; a float or (N,)."""
        distance = 1.0 + unknown(check_array(q, self.model.nq, 'q'))[..., 0]
        return float(distance) if distance.ndim == 0 else distance

    def constraint_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                          f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                          near: ArrayLike | None = None) -> Array:
        """Force and moment at each cut of a closed loop, shape (0, 6) or (N, 0, 6)."""
        return np.zeros((*check_array(q, self.model.nq, 'q').shape[:-1], 0, 6))
