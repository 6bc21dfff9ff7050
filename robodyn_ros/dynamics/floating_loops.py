"""Dynamics of robots with closed loops on a floating base.

The pose of the base has no effect on the loops, which are therefore closed as on a fixed base.
With ``qd = G(q) qd_r``, where G is the identity for the twist of the base, the equations of the
tree are reduced as in `ClosedLoopDynamics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.description.robot import Cut
from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.closed_loops import ClosedLoopDynamics
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.dynamics.quantities import Energy, FullMotion, Terms, state_by_state, times
from robodyn_ros.dynamics.reactions import Wrenches
from robodyn_ros.dynamics.scaled_mass import ScaledMass
from robodyn_ros.dynamics.underactuated import Underactuated
from robodyn_ros.errors import ShapeError, ValueRangeError, check_type
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.model import A_MODEL, Joints, Model
from robodyn_ros.numerics import unknown
from robodyn_ros.spatial import Array

BASE, POSE = 6, 7  # velocities and positions of the base
# kernels of the tree that methods need, if they are not those of the same method of the tree
_NEEDED = {'coriolis': ('terms',), 'friction': ('terms',), 'base_wrench': ('inverse_dynamics',),
           'forward_dynamics': ('inverse_dynamics', 'mass_matrix'),
           'driven_torques': ('inverse_dynamics', 'mass_matrix'),
           'coriolis_matrix': ('coriolis_matrix', 'mass_matrix')}


class FloatingLoopDynamics(Underactuated):
    """Dynamics of a robot with closed loops on a floating base, for example Cassie.

    Every method takes one state or a batch. With m independent joints, q has 7 + m elements: the
    pose of the base, then the independent joints; the other arrays have n = 6 + m, see the
    conventions of a floating base. ``near`` is a pose of the base and all joints, shape (7 + b,),
    from which the loops are closed, see `ClosedLoopDynamics`.

    Parameters
    ----------
    model : Model
        The robot with its loops cut open, loaded with ``base='floating'``.
    loops : Loops, str, Path or mapping
        Cuts and independent joints, see `read_loops`.
    start : array-like, shape (b,), optional
        Positions of all joints from which the loops are first closed.
    friction_width : float, optional
        See `Dynamics`.

    Attributes
    ----------
    model : Model
        The robot with its loops cut open.
    tree : Dynamics
        Its dynamics.
    fixed : ClosedLoopDynamics
        The same robot with its base fixed, which closes the loops.

    Raises
    ------
    UnknownNameError, ValueRangeError
        The base is fixed; else see `ClosedLoopDynamics`.
    """

    def __init__(self, model: Model, loops: Loops | str | Path | Mapping[str, Any], *,
                 start: ArrayLike | None = None, friction_width: float | None = None):
        check_type('model', model, Model, A_MODEL)
        if not model.floating:
            raise ValueRangeError('base', 'fixed', "'floating', see load_model; "
                                  'ClosedLoopDynamics is for robots with a fixed base')
        self.model = model
        self.tree = Dynamics(model, friction_width=friction_width)
        self.fixed = ClosedLoopDynamics(model.with_fixed_base(), loops, start=start,
                                       friction_width=friction_width)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles hold the model and the loops; kernels belong to the process."""
        return _make, (self.model, self.fixed.loops, self.fixed.home, self.friction_width)

    def __repr__(self) -> str:
        """Name and independent joints."""
        return (f'<{type(self).__name__} of {self.model.name!r}, floating base, '
                f'{", ".join(self.joint_names)}>')

    # facts ------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of independent joints, and six of the base."""
        return BASE + self.fixed.n

    @property
    def joints(self) -> Joints:
        """The independent joints and their limits."""
        return self.fixed.joints

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints."""
        return self.fixed.joint_names

    @property
    def driven_names(self) -> tuple[str, ...]:
        """Names of the independent joints that have a motor."""
        return self.fixed.driven_names

    @property
    def passive_names(self) -> tuple[str, ...]:
        """Names of the independent joints that no motor drives."""
        return self.fixed.passive_names

    @property
    def dependent_names(self) -> tuple[str, ...]:
        """Names of the dependent joints."""
        return self.fixed.dependent_names

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cuts, at which the loops are held together."""
        return self.fixed.cuts

    @property
    def friction_width(self) -> float | None:
        """Width of the smooth sign of dry friction, rad/s or m/s; None: those of the model."""
        return self.tree.friction_width

    @property
    def home(self) -> Array:
        """Base at the origin, and all joints as the loops were first closed, shape (7 + b,)."""
        return np.append(self.tree.home[:POSE], self.fixed.home)

    def with_model(self, model: Model, *, friction_width: float | None = None,
                   shared_code: bool = False) -> FloatingLoopDynamics:
        """Return the dynamics of the same loops for a tree with other parameters."""
        width = self.friction_width if friction_width is None else friction_width
        return FloatingLoopDynamics(model, self.fixed.loops, start=self.fixed.home,
                                    friction_width=width)

    def warm_up(self, *names: str) -> None:
        """Compile the kernels of these methods now instead of at their first call.

        Raises
        ------
        UnknownNameError
            There is no such method; the names are those of `Dynamics.warm_up`, and ``motion``.
        """
        self.fixed.warm_up('motion')
        for name in names:
            if name != 'motion':
                self.tree.warm_up(*_NEEDED.get(name, (name,)))

    # motion -----------------------------------------------------------------------------------

    def positions(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the pose of the base and the positions of all joints, (7 + b,) or (N, 7 + b)."""
        q = check_array(q, self.n + 1, 'q')
        return np.concatenate([q[..., :POSE], self.fixed.positions(
            q[..., POSE:], near=self._inner(near))], axis=-1)

    def motion(self, q: ArrayLike, qd: ArrayLike, *,
               near: ArrayLike | None = None) -> FullMotion:
        """Return the motion of the base and all joints; the matrix has 6 + b rows."""
        q, qd = check_array(q, self.n + 1, 'q'), check_array(qd, self.n, 'qd')
        inner = self.fixed.motion(q[..., POSE:], qd[..., BASE:], near=self._inner(near))
        b, shape = inner.matrix.shape[-2], inner.matrix.shape[:-2]
        matrix = np.zeros((*shape, BASE + b, self.n))
        matrix[..., :BASE, :BASE] = np.eye(BASE)
        matrix[..., BASE:, BASE:] = inner.matrix
        pose, twist = (np.broadcast_to(x, (*shape, x.shape[-1]))
                       for x in (q[..., :POSE], qd[..., :BASE]))
        full = FullMotion(np.concatenate([pose, inner.q], axis=-1),
                          np.concatenate([twist, inner.qd], axis=-1), matrix,
                          np.concatenate([np.zeros((*shape, BASE)), inner.drift], axis=-1))
        if np.isfinite(q.sum() + qd.sum()):
            return full
        mark = unknown(q, qd)
        return FullMotion(full.q + mark, full.qd + mark, matrix + mark[..., None],
                          full.drift + mark)

    def position_rates(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Time derivative of q, see `Dynamics.position_rates`."""
        q, qd = check_array(q, self.n + 1, 'q'), check_array(qd, self.n, 'qd')
        rest = self.model.n - BASE
        rates = self.tree.position_rates(
            np.concatenate([q[..., :POSE], np.zeros((*q.shape[:-1], rest))], axis=-1),
            np.concatenate([qd[..., :BASE], np.zeros((*qd.shape[:-1], rest))], axis=-1))
        return np.concatenate([rates[..., :POSE], np.broadcast_to(
            qd[..., BASE:], (*rates.shape[:-1], self.n - BASE))], axis=-1) + unknown(q, qd, rates)

    def velocities(self, q: ArrayLike, qd: ArrayLike, *,
                   near: ArrayLike | None = None) -> Array:
        """Return the twist of the base and the velocities of all joints."""
        return self.motion(q, qd, near=near).qd

    def reachable(self, q: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the loops close with every dependent joint within its limits, (N,)."""
        q = np.atleast_2d(check_array(q, self.n + 1, 'q'))
        known = np.isfinite(q).all(axis=1)
        known[known] = self.fixed.reachable(q[known, POSE:])
        return np.asarray(known)

    def singularity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Any:
        """Return the distance of the loops from a singularity, 0 to 1; a float or (N,)."""
        q = check_array(q, self.n + 1, 'q')
        distance = self.fixed.singularity(q[..., POSE:], near=self._inner(near))
        marked = distance + unknown(q)[..., 0]
        return float(marked) if marked.ndim == 0 else marked

    def pose(self, q: ArrayLike, link: str, *, near: ArrayLike | None = None) -> Array:
        """Pose of a link in the root frame, shape (4, 4) or (N, 4, 4)."""
        return self.tree.pose(self.positions(q, near=near), link)

    def jacobian(self, q: ArrayLike, link: str, *, near: ArrayLike | None = None) -> Array:
        """Jacobian of a link by the n velocities, shape (6, n) or (N, 6, n)."""
        motion = self._still(q, near)
        return np.asarray(self.tree.jacobian(motion.q, link) @ motion.matrix)

    # the equations of motion ------------------------------------------------------------------

    def terms(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Terms:
        """Return reduced M, C qd, g and friction."""
        motion = self.motion(q, qd, near=near)
        tree = self.tree.terms(motion.q, motion.qd)
        coriolis = tree.coriolis + times(tree.mass_matrix, motion.drift)
        return Terms(motion.reduce_mass(tree.mass_matrix), motion.reduce(coriolis),
                     motion.reduce(tree.gravity), motion.reduce(tree.friction))

    def mass_matrix(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the reduced M, shape (n, n) or (N, n, n)."""
        motion = self._still(q, near)
        return motion.reduce_mass(self.tree.mass_matrix(motion.q))

    def gravity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the reduced forces of gravity, shape (n,) or (N, n)."""
        motion = self._still(q, near)
        return motion.reduce(self.tree.gravity(motion.q))

    def coriolis(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the reduced Coriolis and centrifugal forces, shape of qd."""
        return self.terms(q, qd, near=near).coriolis

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *,
                        near: ArrayLike | None = None) -> Array:
        """Return C, (n, n) or (N, n, n), for which ``dM/dt - 2 C`` is skew."""
        q, qd = check_array(q, self.n + 1, 'q'), check_array(qd, self.n, 'qd')
        if q.ndim == 2 or qd.ndim == 2:
            return state_by_state(self.coriolis_matrix, q, qd, near)
        motion = self.motion(q, qd, near=near)
        change = np.zeros_like(motion.matrix)  # dG/dt
        for k, unit in enumerate(np.eye(self.n)):  # polarisation of the drift, a quadratic form
            both, alone = (self.motion(q, speed, near=near).drift
                           for speed in (np.asarray(qd) + unit, unit))
            change[:, k] = (both - motion.drift - alone) / 2
        g = motion.matrix
        return np.asarray(g.T @ (self.tree.coriolis_matrix(motion.q, motion.qd) @ g
                                 + self.tree.mass_matrix(motion.q) @ change))

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None, *,
                 near: ArrayLike | None = None) -> Array:
        """Return the friction of all joints, reduced to the independent joints, shape of qd."""
        if q is None:
            raise ShapeError('q', 'None',
                             f'({self.n + 1},): friction of loops depends on the pose')
        return self.terms(q, qd, near=near).friction

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                         f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array:
        """Return the wrench on the base and the torques of the independent joints."""
        motion = self.motion(q, qd, near=near)
        return motion.reduce(self.tree.inverse_dynamics(
            motion.q, motion.qd, motion.qdd(check_array(qdd, self.n, 'qdd')), f_ext,
            base_motion=base_motion))

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *,
                         f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array:
        """Return the accelerations of base and independent joints, shape of qd."""
        motion, tau = self.motion(q, qd, near=near), check_array(tau, self.n, 'tau')
        bias = motion.reduce(self.tree.inverse_dynamics(motion.q, motion.qd, motion.drift, f_ext,
                                                        base_motion=base_motion))
        mass = motion.reduce_mass(self.tree.mass_matrix(motion.q))
        return ScaledMass(mass).solve(tau - bias)

    def constraint_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                          f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                          near: ArrayLike | None = None) -> Array:
        """Return force and moment at each cut, see `ClosedLoopDynamics.constraint_forces`."""
        motion = self.motion(q, qd, near=near)
        need = self.tree.inverse_dynamics(
            motion.q, motion.qd, motion.qdd(check_array(qdd, self.n, 'qdd')), f_ext,
            base_motion=base_motion)
        inner = FullMotion(motion.q[..., POSE:], motion.qd[..., BASE:],
                           motion.matrix[..., BASE:, BASE:], motion.drift[..., BASE:])
        forces = self.fixed._cut_forces(inner, need[..., BASE:])  # in the axes of the base
        turn = self.tree.pose(motion.q, self.model.description.root)[..., None, None, :3, :3]
        parts = forces.reshape(*forces.shape[:-1], 2, 3)
        return np.asarray((turn @ parts[..., None])[..., 0].reshape(forces.shape))

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                  base_motion: BaseMotion | None = None,
                  near: ArrayLike | None = None) -> Array:
        """Return Y: forces and torques are ``Y @ model.standard_parameters``."""
        motion = self.motion(q, qd, near=near)
        tree = self.tree.regressor(motion.q, motion.qd, motion.qdd(
            check_array(qdd, self.n, 'qdd')), base_motion=base_motion)
        return np.asarray(np.swapaxes(motion.matrix, -1, -2) @ tree)

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                    f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                    near: ArrayLike | None = None) -> Array:
        """Return minus the wrench that must act on the base, in its axes, (6,) or (N, 6)."""
        return -self.inverse_dynamics(q, qd, qdd, f_ext=f_ext, base_motion=base_motion,
                                      near=near)[..., :BASE]

    def energy(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Energy:
        """Return kinetic and potential energy, J."""
        motion = self.motion(q, qd, near=near)
        return self.tree.energy(motion.q, motion.qd)

    def center_of_mass(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Centre of mass of the robot in the root frame, shape (3,) or (N, 3), m."""
        return self.tree.center_of_mass(self.positions(q, near=near))

    def centroidal_momentum(self, q: ArrayLike, qd: ArrayLike, *,
                            near: ArrayLike | None = None) -> Array:
        """Momentum about the centre of mass, see `Dynamics.centroidal_momentum`."""
        return self.tree.centroidal_momentum(*self.motion(q, qd, near=near)[:2])

    def _still(self, q: ArrayLike, near: ArrayLike | None) -> FullMotion:
        q = check_array(q, self.n + 1, 'q')
        return self.motion(q, np.zeros((*q.shape[:-1], self.n)), near=near)

    @staticmethod
    def _inner(near: ArrayLike | None) -> Array | None:
        return None if near is None else np.asarray(near, np.float64)[..., POSE:]


def _make(model: Model, loops: Loops, home: Array,
          friction_width: float | None) -> FloatingLoopDynamics:
    return FloatingLoopDynamics(model, loops, start=home, friction_width=friction_width)
