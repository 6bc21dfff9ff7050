"""`Dynamics`: every quantity of the equations of motion of one robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description import Array
from robodyn_ros.dynamics.catalogue import Catalogue, Points
from robodyn_ros.dynamics.normal_equations import NormalEquations, accumulate
from robodyn_ros.dynamics.operational_space import OperationalSpace, operational_space
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.kernels import Kernel, KernelSpec
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.model import Model


class Terms(NamedTuple):
    """M (n, n), C qd (n,), g (n,) and friction (n,) at one state, or with N in front."""

    mass_matrix: Array
    coriolis: Array
    gravity: Array
    friction: Array


class Energy(NamedTuple):
    """Kinetic and potential energy, J."""

    kinetic: Any
    potential: Any


class Dynamics:
    """The equations of motion ``M qdd + C qd + g + friction = tau + J' F_ext`` of one robot.

    Every method takes one state, arrays of shape (n,), or a batch, shape (N, n), and answers in
    the same form, float64. Code for this robot is compiled when a method is first called and kept
    on disk. Rotor inertia is part of M and C; ``friction`` has the friction of links and motors.

    Parameters
    ----------
    model : Model
        The robot.
    friction_width : float
        Coulomb friction's sign(s) becomes ``s / sqrt(s^2 + width^2)``, rad/s or m/s; 0 (the
        default) is the sign itself.
    threads : int
        How many threads a batch may use.

    Notes
    -----
    Joint order is ``model.joint_names``. Units: rad, m, s, N m, N. Wrong shapes raise
    `ShapeError`, unknown links `UnknownNameError`.
    """

    def __init__(self, model: Model, *, friction_width: float = 0.0, threads: int = 1):
        if not (np.isfinite(friction_width) and friction_width >= 0):
            raise ValueRangeError('friction_width', friction_width, 'a finite number >= 0')
        if threads < 1:
            raise ValueRangeError('threads', threads, 'at least 1')
        self.model, self.joints = model, model.joints
        self.friction_width = friction_width
        self.threads = threads
        self.catalogue = Catalogue(model, friction_width)
        self._kernels: dict[Any, Kernel] = {}

    def __repr__(self) -> str:
        """Name and joints."""
        return f'<Dynamics of {self.model!r}>'

    @property
    def tree(self) -> Dynamics:
        """The robot with its loops cut open: itself, see `ClosedLoopDynamics`."""
        return self

    def with_model(self, model: Model, *, friction_width: float | None = None) -> Dynamics:
        """Return the dynamics of the same robot with other parameters."""
        width = self.friction_width if friction_width is None else friction_width
        return Dynamics(model, friction_width=width, threads=self.threads)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of a term, for callers that want its address or operation count."""
        if name not in self._kernels:
            self._kernels[name] = Kernel(self.catalogue.spec(name), self.threads)
        return self._kernels[name]

    def warm_up(self, *names: str) -> None:
        """Compile the single-state kernels of these methods now, not at their first call."""
        for name in names:
            self.kernel(name).single  # noqa: B018

    # the fast functions; each is compiled when first used -----------------------------------

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
        return self.kernel('mass_matrix').single

    @cached_property
    def _friction(self) -> Callable[..., Array]:
        return self.kernel('friction').single

    @cached_property
    def _terms(self) -> Callable[..., Array]:
        return self.kernel('terms').single

    @cached_property
    def _forward_dynamics(self) -> Callable[..., Array]:
        return self.kernel('forward_dynamics').single

    # the equations of motion ------------------------------------------------------------------

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                         f_ext: Mapping[str, ArrayLike] | None = None) -> Array:
        """Generalised forces of a motion: ``tau = M qdd + C qd + g + friction - sum J' F``.

        Luh-Walker-Paul recursion (Velagić 4.89-4.96, Kolyubin 3.3-3.8).

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Positions, velocities, accelerations.
        f_ext : mapping of str to array-like, shape (6,) or (N, 6), optional
            For each named link, the wrench that the environment exerts on it: force (N), then
            moment about the link frame's origin (N m), in the axes of the root frame.

        Returns
        -------
        ndarray, shape (n,) or (N, n)
            N m or N.
        """
        tau = self._inverse_dynamics(q, qd, qdd)
        return tau if f_ext is None else tau - self._external(q, f_ext)

    def gravity(self, q: ArrayLike) -> Array:
        """g(q), shape of q, N m or N: what holds the robot still (Velagić 4.42)."""
        return self._gravity(q)

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd) qd, shape of q, N m or N: Coriolis, centrifugal, gyroscopic; no gravity."""
        return self._coriolis(q, qd)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd), shape (n, n) or (N, n, n), of Christoffel symbols of the first kind.

        The choice that makes ``dM/dt - 2 C`` skew (Kolyubin 2.30, 4.3; Velagić 4.48-4.53).
        """
        return self.kernel('coriolis_matrix').single(q, qd)  # type: ignore[no-any-return]

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q), shape (n, n) or (N, n, n), rotors included (Kolyubin 2.27, Velagić 4.34)."""
        return self._mass_matrix(q)

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Friction of links and motors, shape of qd, N m or N (Kolyubin 5.7-5.8).

        It does not depend on the pose q, that of `ClosedLoopDynamics` does.
        """
        return self._friction(qd)

    def terms(self, q: ArrayLike, qd: ArrayLike) -> Terms:
        """M, C qd, g and friction from one kernel."""
        flat = self._terms(q, qd)
        n = self.model.n
        if flat.ndim == 1:
            return Terms(flat[3 * n:].reshape(n, n), flat[n:2 * n], flat[:n], flat[2 * n:3 * n])
        return Terms(flat[..., 3 * n:].reshape(*flat.shape[:-1], n, n), flat[..., n:2 * n],
                     flat[..., :n], flat[..., 2 * n:3 * n])

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike,
                         f_ext: Mapping[str, ArrayLike] | None = None) -> Array:
        """Accelerations, shape of q: ``M qdd = tau + sum J' F - C qd - g - friction``.

        Parameters as in `inverse_dynamics`; ``tau`` in N m or N.
        """
        if f_ext is not None:
            tau = np.asarray(tau, np.float64) + self._external(q, f_ext)
        return self._forward_dynamics(q, qd, tau)

    def _external(self, q: ArrayLike, f_ext: Mapping[str, ArrayLike]) -> Array:
        total: Any = 0.0
        for link, wrench in f_ext.items():
            forces = check_array(wrench, 6, f'f_ext[{link!r}]')
            total = total + np.einsum('...ij,...i->...j', self.jacobian(q, link), forces)
        return np.asarray(total, np.float64)

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Kinetic and potential energy, J, each a float or shape (N,).

        Potential energy is of the moving bodies, zero where their mass is at the root's origin.
        """
        both = self.kernel('energy').single(q, qd)
        if both.ndim == 1:
            return Energy(float(both[0]), float(both[1]))
        return Energy(both[:, 0], both[:, 1])

    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Generalised momentum M qd, shape of q (Kolyubin 3.2.3)."""
        return self.kernel('momentum').single(q, qd)  # type: ignore[no-any-return]

    def state_space(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """``x' = f(x) + g(x) tau`` with x = [q; qd] (Kolyubin 1.19).

        Returns
        -------
        f : ndarray, shape (2n,) or (N, 2n)
        g : ndarray, shape (2n, n) or (N, 2n, n)
        """
        q, qd = np.asarray(q, np.float64), np.asarray(qd, np.float64)
        drift = self.forward_dynamics(q, qd, np.zeros_like(q))
        inverse = np.linalg.inv(self.mass_matrix(q))
        if q.ndim < drift.ndim:
            inverse = np.broadcast_to(inverse, (*drift.shape[:-1], *inverse.shape[-2:]))
        return (np.concatenate([np.broadcast_to(qd, drift.shape), drift], axis=-1),
                np.concatenate([np.zeros_like(inverse), inverse], axis=-2))

    # links ------------------------------------------------------------------------------------

    def _link_kernel(self, kind: str, link: str) -> Kernel:
        key = (kind, link)
        if key not in self._kernels:
            spec = getattr(self.catalogue, f'{kind}_spec')(link)
            self._kernels[key] = Kernel(spec, self.threads)
        return self._kernels[key]

    def pose(self, q: ArrayLike, link: str) -> Array:
        """Homogeneous transform, shape (4, 4) or (N, 4, 4), of a link frame in the root frame."""
        return self._link_kernel('pose', link).single(q)  # type: ignore[no-any-return]

    def jacobian(self, q: ArrayLike, link: str) -> Array:
        """Jacobian of a link, shape (6, n) or (N, 6, n).

        Rows: velocity of the link frame's origin (m/s), angular velocity (rad/s); root axes.
        """
        return self._link_kernel('jacobian', link).single(q)  # type: ignore[no-any-return]

    def jacobian_dot_qd(self, q: ArrayLike, qd: ArrayLike, link: str) -> Array:
        """``dJ/dt qd`` of a link, shape (6,) or (N, 6), m/s^2 and rad/s^2; root axes."""
        return self._link_kernel('drift', link).single(q, qd)  # type: ignore[no-any-return]

    def operational_space(self, q: ArrayLike, qd: ArrayLike, link: str,
                          axes: Sequence[int] = (0, 1, 2, 3, 4, 5)) -> OperationalSpace:
        """Dynamics as seen at a link (Kolyubin 1.18): Lambda, mu, rho.

        Parameters
        ----------
        q, qd : array-like, shape (n,) or (N, n)
            State.
        link : str
            Name of the link.
        axes : sequence of int
            The rows of the Jacobian that span the task: 0-2 linear, 3-5 angular.
        """
        if not axes or not set(axes) <= set(range(6)) or len(set(axes)) != len(axes):
            raise UnknownNameError('task axes', list(axes), map(str, range(6)))
        rows = list(axes)
        terms = self.terms(q, qd)
        return operational_space(
            self.jacobian(q, link)[..., rows, :], self.jacobian_dot_qd(q, qd, link)[..., rows],
            terms.mass_matrix, terms.coriolis, terms.gravity)

    # reactions ----------------------------------------------------------------------------------

    @property
    def wrench_joints(self) -> tuple[str, ...]:
        """Order of `joint_wrenches`: ``model.joint_names``, then the joints that mimic."""
        mimics = [name for name in self.model.body_joints if name not in self.model.joint_names]
        return (*self.model.joint_names, *mimics)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                       frame: str = 'joint') -> Array:
        """Force (N) and moment (N m) through every joint, on the child link at the joint's origin.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        frame : {'joint', 'root'}
            Axes: of the joint's child link, or of the root.

        Returns
        -------
        ndarray, shape (b, 6) or (N, b, 6)
            A row for each of `wrench_joints`.
        """
        if frame not in ('joint', 'root'):
            raise UnknownNameError('frame', frame, ('joint', 'root'))
        wrenches = self.kernel('wrenches').single(q, qd, qdd)
        links = {joint.name: joint.child for joint in self.model.description.joints}
        rows = []
        for name in self.wrench_joints:
            wrench = wrenches[..., self.model.body_joints.index(name), :]
            if frame == 'root':
                rotation = self.pose(q, links[name])[..., :3, :3]
                wrench = np.concatenate([np.einsum('...ij,...j->...i', rotation, part)
                                         for part in (wrench[..., :3], wrench[..., 3:])], axis=-1)
            rows.append(wrench)
        return np.stack(rows, axis=-2)

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Force (N) and moment (N m) that the robot exerts on its mounting, shape (6,) or (N, 6).

        In the root frame, about its origin; the root link's own weight included. This is the
        "shaking" force and moment of Kolyubin 1.3.
        """
        return -self.kernel('wrenches').single(q, qd, qdd)[..., -1, :]

    # parameters ---------------------------------------------------------------------------------

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                  columns: Sequence[int] | None = None) -> Array:
        """Y of ``inverse_dynamics = Y @ model.standard_parameters`` (Kolyubin 5.4-5.9).

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        columns : sequence of int, optional
            Which of ``model.parameter_names``; default: all 17 of each joint.

        Returns
        -------
        ndarray, shape (n, p) or (N, n, p)
        """
        return self.regressor_kernel(columns).single(  # type: ignore[no-any-return]
            q, qd, qdd)

    def regressor_kernel(self, columns: Sequence[int] | None = None) -> Kernel:
        """Return the kernel of `regressor`."""
        count = len(self.model.parameter_names)
        chosen = tuple(range(count)) if columns is None else tuple(int(c) for c in columns)
        if not chosen or not all(0 <= c < count for c in chosen):
            raise ShapeError('columns', f'{list(chosen)[:10]}', f'numbers from 0 to {count - 1}')
        key = ('regressor', chosen)
        if key not in self._kernels:
            self._kernels[key] = Kernel(self.catalogue.regressor_spec(chosen), self.threads)
        return self._kernels[key]

    def regressor_pullback(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                           cotangent: ArrayLike, columns: Sequence[int]) -> Array:
        """Gradient of ``sum(cotangent * regressor)`` by the motion, at a constant cotangent.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        cotangent : array-like, shape (n, p) or (N, n, p)
            Of the regressor's chosen columns.
        columns : sequence of int
            Which of ``model.parameter_names``.

        Returns
        -------
        ndarray, shape (3, n) or (N, 3, n)
            By q, qd and qdd; the derivative of Coulomb's sign counts as 0.
        """
        chosen = tuple(int(c) for c in columns)
        kernel = self._kernel_of(('regressor pullback', chosen),
                                 lambda: self.catalogue.regressor_pullback_spec(chosen))
        g = np.asarray(cotangent, np.float64)
        return np.asarray(kernel.general(q, qd, qdd, g.reshape(*g.shape[:-2], -1)))

    def inverse_dynamics_pullback(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                                  cotangent: ArrayLike) -> Array:
        """Gradient of ``cotangent . inverse_dynamics`` by q, qd and qdd; (3, n) or (N, 3, n)."""
        kernel = self._kernel_of('inverse dynamics pullback',
                                 self.catalogue.inverse_dynamics_pullback_spec)
        return np.asarray(kernel.general(q, qd, qdd, cotangent))

    def points(self, q: ArrayLike, points: Points) -> Array:
        """Positions of points fixed to links, in the root frame; (k, 3) or (N, k, 3), m."""
        kernel = self._kernel_of(('points', points), lambda: self.catalogue.points_spec(points))
        return np.asarray(kernel.general(q))

    def points_pullback(self, q: ArrayLike, cotangent: ArrayLike, points: Points) -> Array:
        """Gradient of ``sum(cotangent * points)`` by q; shape (n,) or (N, n)."""
        kernel = self._kernel_of(('points pullback', points),
                                 lambda: self.catalogue.points_pullback_spec(points))
        g = np.asarray(cotangent, np.float64)
        return np.asarray(kernel.general(q, g.reshape(*g.shape[:-2], -1)))

    def _kernel_of(self, key: Any, make: Callable[[], KernelSpec]) -> Kernel:
        if key not in self._kernels:
            self._kernels[key] = Kernel(make(), self.threads)
        return self._kernels[key]

    def normal_equations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, tau: ArrayLike, *,
                         columns: Sequence[int] | None = None,
                         weights: ArrayLike | None = None) -> NormalEquations:
        """W'W and W'tau of ``tau = W chi`` over a batch, without storing W (Kolyubin 5.22).

        Parameters
        ----------
        q, qd, qdd, tau : array-like, shape (N, n)
            Motion and torque.
        columns : sequence of int, optional
            Which of ``model.parameter_names``; default: all.
        weights : array-like, shape (n,), optional
            Factor of each joint's rows; default: 1.
        """
        n = self.model.n
        q, qd, qdd, tau = (np.atleast_2d(check_array(values, n, name)) for name, values in (
            ('q', q), ('qd', qd), ('qdd', qdd), ('tau', tau)))
        factor = np.ones(n) if weights is None else np.asarray(weights, np.float64)
        return accumulate(self.regressor_kernel(columns), q, qd, qdd, tau, factor)
