"""Dynamics of robots with closed loops (Kolyubin 2.3.2).

The loops are cut open, which leaves a tree; each cut says that points of two links coincide. Some
joints are independent, the others depend on them. With the velocities ``qd = G(q) qd_r`` of all
joints, the equations of the tree are reduced to
``G' M G qdd_r + G' (M dG/dt qd_r + c + friction) + G' g = G' tau``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.assembly import SINGULAR
from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.catalogue import MOVING
from robodyn_ros.dynamics.loop_gradients import LoopGradients
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.dynamics.quantities import Energy, FullMotion, Terms, state_by_state, times
from robodyn_ros.dynamics.reactions import Wrenches, wrenches_by_link
from robodyn_ros.dynamics.underactuated import Underactuated
from robodyn_ros.errors import ShapeError, UnknownNameError
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.model import Model
from robodyn_ros.numerics import pseudo_inverse
from robodyn_ros.spatial import Array

# kernels that each method needs: those of the loops, and those of the tree
_NEEDED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **{name: (('terms',), ()) for name in ('terms', 'mass_matrix', 'gravity', 'coriolis',
                                           'friction')},
    **{name: ((name,), ()) for name in ('inverse_dynamics', 'forward_dynamics')},
    **{name: (('full_motion',), ()) for name in ('motion', 'motion_matrix', 'velocities',
                                                 'accelerations')},
    **{name: (('',), ()) for name in ('positions', 'singularity')},
    'driven_torques': (('inverse_dynamics', 'terms'), ()),
    'constraint_forces': (('full_motion',), ('inverse_dynamics',)),
    'coriolis_matrix': (('full_motion',), ('terms', 'coriolis_matrix')),
    'energy': (('full_motion',), ('energy',)),
    **{name: (('full_motion',), (name,)) for name in ('regressor', 'wrenches', 'base_wrench')},
    'joint_wrenches': (('full_motion',), ('inverse_dynamics', 'joint_wrenches', 'body_poses')),
    **{MOVING + name: ((MOVING + name,), ()) for name in ('inverse_dynamics',
                                                         'forward_dynamics')},
}


class ClosedLoopDynamics(LoopGradients, Underactuated):
    """Dynamics of a robot with closed loops, in its independent joints.

    Every method takes one state, arrays of shape (n,), or a batch, shape (N, n). The keyword
    ``near`` is a pose of all joints, shape (b,), from which the loops are closed in small steps
    up to the given state, see `positions`; by default it is the pose `home`. A caller that follows
    a motion should pass on the last pose: this is faster, and the robot stays in the assembly mode
    that it has reached.

    Parameters
    ----------
    model : Model
        The robot with its loops cut open.
    loops : Loops, str, Path or mapping
        Cuts and independent joints, see `read_loops`.
    start : array-like, shape (b,), optional
        Positions of all joints from which the loops are first closed; they choose the assembly
        mode. Default: the start pose in ``loops``. Else zero; if the loops do not close from
        there, a closed pose near it is looked for, away from singularities if there is one.
    friction_width : float, optional
        See `Dynamics`.

    Attributes
    ----------
    joints : Joints
        The n independent joints and their limits.
    dependent_names : tuple of str
        Names of the dependent joints.
    tree : Dynamics
        Dynamics of the robot with its loops cut open.

    Raises
    ------
    UnknownNameError, ValueRangeError
        A link or joint does not exist, the number of dependent joints does not match the
        constraints of the loops, or the loops cannot be closed.

    Notes
    -----
    No method changes the object, so several threads may use it at the same time.

    Examples
    --------
    >>> arm = ClosedLoopDynamics(model, 'loops.yaml')
    >>> pose = None
    >>> for q, qd in states:
    ...     pose = arm.positions(q, near=pose)
    ...     terms = arm.terms(q, qd, near=pose)
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles hold the model and the loops; kernels belong to the process."""
        return _make, (self.model, self.loops, self.home, self.friction_width)

    def with_model(self, model: Model, *, friction_width: float | None = None,
                   shared_code: bool = False) -> ClosedLoopDynamics:
        """Return the dynamics of the same loops for a tree with other parameters.

        No code is shared: ``shared_code`` is accepted as in `Dynamics` and has no effect.
        """
        width = self.friction_width if friction_width is None else friction_width
        return ClosedLoopDynamics(model, self.loops, start=self.home, friction_width=width)

    def warm_up(self, *names: str) -> None:
        """Compile the kernels of these methods now instead of at their first call.

        Raises
        ------
        UnknownNameError
            There is no such method.
        """
        for name in names:
            if name not in _NEEDED:
                raise UnknownNameError('method', name, _NEEDED)
            of_loops, of_tree = _NEEDED[name]
            for kernel in of_loops:
                self._solver(kernel)
            self.tree.warm_up(*of_tree)
            if name in ('joint_wrenches', 'constraint_forces'):
                for cut in self.loops.cuts:
                    self.tree.warm_up_links('pose', *cut.links)

    def terms(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Terms:
        """Return reduced M, C qd, g and friction."""
        table, n = self._at('terms', near, q, qd), self.n
        return Terms(table[..., :n], table[..., n], table[..., n + 1], table[..., n + 2])

    def mass_matrix(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the reduced M, shape (n, n) or (N, n, n)."""
        return self._terms_at_rest(q, near).mass_matrix

    def gravity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the reduced gravity torque, shape of q, N m or N."""
        return self._terms_at_rest(q, near).gravity

    def _terms_at_rest(self, q: ArrayLike, near: ArrayLike | None) -> Terms:
        return self.terms(q, np.zeros_like(self._array('q', q)), near=near)

    def coriolis(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the reduced Coriolis and centrifugal torque, shape of q."""
        return self.terms(q, qd, near=near).coriolis

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *,
                        near: ArrayLike | None = None) -> Array:
        """Return ``C = G' (C_tree G + M dG/dt)``, shape (n, n) or (N, n, n).

        With it, ``dM/dt - 2 C`` is skew.
        """
        q, qd = check_array(q, self.n, 'q'), check_array(qd, self.n, 'qd')
        if q.ndim == 2 or qd.ndim == 2:
            return state_by_state(self.coriolis_matrix, q, qd, near)
        motion, n = self.motion(q, qd, near=near), self.n
        bilinear = np.zeros((self.model.n, n))
        own = self._table(motion.q, motion.qd)
        inverse = np.linalg.pinv(own[:, 1:-1][:, self._bound], rcond=SINGULAR)
        for k, column in enumerate(motion.matrix.T):  # polarisation of the drift, a quadratic form
            both = self._table(motion.q, motion.qd + column)[:, -1]
            alone = self._table(motion.q, column)[:, -1]
            bilinear[self._bound, k] = -inverse @ (both - own[:, -1] - alone) / 2
        tree = self.tree.terms(motion.q, motion.qd)
        return np.asarray(motion.matrix.T @ (
            self.tree.coriolis_matrix(motion.q, motion.qd) @ motion.matrix
            + tree.mass_matrix @ bilinear))

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None, *,
                 near: ArrayLike | None = None) -> Array:
        """Return the friction of all joints, reduced to the independent joints, shape of qd."""
        if q is None:
            raise ShapeError('q', 'None', f'({self.n},): friction of loops depends on the pose')
        return self.terms(q, qd, near=near).friction

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                         f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array:
        """Return the torques of the independent joints, shape of q.

        The friction of the dependent joints is included. ``f_ext`` and ``base_motion`` are those
        of `Dynamics.inverse_dynamics`.
        """
        tau = self._at('inverse_dynamics', near, q, qd, qdd, base=base_motion)
        return tau if f_ext is None else tau - self._external(self.positions(q, near=near), f_ext)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *,
                         f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                         near: ArrayLike | None = None) -> Array:
        """Return the independent accelerations, shape of q, under torques on these joints."""
        if f_ext is not None:
            tau = self._array('tau', tau) + self._external(self.positions(q, near=near), f_ext)
        return self._at('forward_dynamics', near, q, qd, tau, base=base_motion)

    def _external(self, full: Array, f_ext: Wrenches) -> Array:
        """Forces of external wrenches at the independent joints, in a pose of all joints."""
        return self._still(full).reduce(self.tree._external(full, f_ext))

    def constraint_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                          f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                          near: ArrayLike | None = None) -> Array:
        """Return force (N) and moment (N m) at each cut on its second link, shape (cuts, 6).

        They are in root axes, about the first point of the cut; for a batch, the shape is
        (N, cuts, 6). The torques are those of `inverse_dynamics`, which act on the independent
        joints only. Of forces that the loops do not determine (such as those across the plane of a
        planar mechanism), the solution with the smallest norm is returned.
        """
        motion = self.motion(q, qd, near=near)
        need = self.tree.inverse_dynamics(motion.q, motion.qd,
                                          motion.qdd(self._array('qdd', qdd)), f_ext,
                                          base_motion=base_motion)
        return self._cut_forces(motion, need)

    def _cut_forces(self, motion: FullMotion, need: Array) -> Array:
        """Forces at the cuts that complete torques of the independent joints to those of all."""
        torque = np.zeros_like(need)
        torque[..., self._free] = motion.reduce(need)
        across = np.swapaxes(pseudo_inverse(self._jacobian(motion.q), SINGULAR), -1, -2)
        forces = -times(across, need - torque)
        forces = forces.reshape(*forces.shape[:-1], -1, 3)
        result, place = [], 0
        for cut in self.loops.cuts:
            own = forces[..., place:place + len(cut.points), :]
            turn = self.tree.pose(motion.q, cut.links[1])[..., :3, :3]
            arms = np.einsum('...ij,kj->...ki', turn, cut.points[:, 1] - cut.points[0, 1])
            result.append(np.concatenate([own.sum(axis=-2), np.cross(arms, own).sum(axis=-2)],
                                         axis=-1))
            place += len(cut.points)
        return np.stack(result, axis=-2)

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                  base_motion: BaseMotion | None = None,
                  near: ArrayLike | None = None) -> Array:
        """Return Y, (n, 17 b) or (N, n, 17 b): torques are ``Y @ model.standard_parameters``."""
        motion = self.motion(q, qd, near=near)
        tree = self.tree.regressor(motion.q, motion.qd, motion.qdd(self._array('qdd', qdd)),
                                   base_motion=base_motion)
        return np.asarray(np.swapaxes(motion.matrix, -1, -2) @ tree)

    def energy(self, q: ArrayLike, qd: ArrayLike, *, near: ArrayLike | None = None) -> Energy:
        """Return kinetic and potential energy, J."""
        motion = self.motion(q, qd, near=near)
        return self.tree.energy(motion.q, motion.qd)

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                    f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                    near: ArrayLike | None = None) -> Array:
        """Return the wrench that the robot exerts on its mounting, see `Dynamics.base_wrench`."""
        motion = self.motion(q, qd, near=near)
        return self.tree.base_wrench(motion.q, motion.qd, motion.qdd(self._array('qdd', qdd)),
                                     f_ext=f_ext, base_motion=base_motion)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                       frame: str = 'joint', *, f_ext: Wrenches | None = None,
                       base_motion: BaseMotion | None = None,
                       near: ArrayLike | None = None) -> Array:
        """Return force and moment through every joint, see `Dynamics.joint_wrenches`.

        The forces at the cuts are those of `constraint_forces`; the rows are those of
        ``tree.wrench_joints``.
        """
        motion = self.motion(q, qd, near=near)
        cuts = self.constraint_forces(q, qd, qdd, f_ext=f_ext, base_motion=base_motion, near=near)
        total: dict[str, Any] = {link: np.asarray(one)
                                 for link, one in wrenches_by_link(f_ext or {})}
        for k, cut in enumerate(self.loops.cuts):
            for link, point, sign in ((cut.links[1], cut.points[0, 1], 1.0),
                                      (cut.links[0], cut.points[0, 0], -1.0)):
                force = sign * cuts[..., k, :3]
                arm = self.tree.pose(motion.q, link)[..., :3, :3] @ point
                moment = sign * cuts[..., k, 3:] + np.cross(arm, force)
                total[link] = total.get(link, 0.0) + np.concatenate([force, moment], axis=-1)
        return self.tree.joint_wrenches(
            motion.q, motion.qd, motion.qdd(self._array('qdd', qdd)), frame, f_ext=total,
            base_motion=base_motion)


def _make(model: Model, loops: Loops, home: Array,
          friction_width: float | None) -> ClosedLoopDynamics:
    return ClosedLoopDynamics(model, loops, start=home, friction_width=friction_width)
