"""Arms with closed loops: a tree whose branches meet again (Kolyubin 2.3.2).

A cut says that points of two links coincide; some joints are independent, the others follow. With
``qd = G(q) qd_r`` of all joints, the equations of the tree are reduced to
``G' M G qdd_r + G' (M dG/dt qd_r + c + friction) + G' g = G' tau``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.description import Array
from robodyn_ros.dynamics.assembly import Assembly
from robodyn_ros.dynamics.dynamics import Dynamics, Energy, Terms
from robodyn_ros.dynamics.loop_closure import LoopClosure
from robodyn_ros.dynamics.loops import Loops, read_loops
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.model import Model

SINGULAR = 1e-6  # smallest over largest singular value of the dependent joints' Jacobian


class FullMotion(NamedTuple):
    """The motion of all b joints that follows from that of the n independent ones.

    ``qdd`` is ``matrix @ qdd_r + drift``; shapes (b,), (b, n) and so on, or with N in front.
    """

    q: Array
    qd: Array
    matrix: Array
    drift: Array

    def qdd(self, independent: Array) -> Array:
        """Return the accelerations of all joints."""
        return _times(self.matrix, independent) + self.drift

    def reduce(self, torque: Array) -> Array:
        """Return ``G' tau``: torques of all joints as the independent ones feel them."""
        return np.asarray(np.einsum('...ij,...i->...j', self.matrix, torque))


class ClosedLoopDynamics:
    """Dynamics of a robot with closed loops, in its independent joints.

    Every method takes one state, arrays of shape (n,), or a batch, shape (N, n).

    Parameters
    ----------
    model : Model
        The tree.
    loops : Loops, str, Path or mapping
        Cuts and independent joints, see `read_loops`.
    start : array-like, shape (b,), optional
        Positions of all joints near which the loops are closed first: the branch of the assembly
        that is kept from then on. Default: what the loops say, else zero.
    friction_width : float
        As of `Dynamics`.

    Attributes
    ----------
    joints : Joints
        The n independent ones, with their limits.
    dependent_names : tuple of str
        The others.
    tree : Dynamics
        Of the robot with its loops cut open.

    Raises
    ------
    UnknownNameError, ValueRangeError
        A link or joint that does not exist; loops that do not leave as many joints dependent as
        they bind; loops that cannot be closed.

    Notes
    -----
    Single states are reached in small steps from the last one, so their branch may change hands
    where that of a batch, always reached from the start, does not. Not for several threads at
    once.
    """

    def __init__(self, model: Model, loops: Loops | str | Path | Mapping[str, Any], *,
                 start: ArrayLike | None = None, friction_width: float = 0.0):
        self.model = model
        self.tree = Dynamics(model, friction_width=friction_width)
        self.loops = loops if isinstance(loops, Loops) else read_loops(loops)
        for cut in self.loops.cuts:
            for link in cut.links:
                if link not in model.link_frames:
                    raise UnknownNameError('link of a cut', link, model.link_frames)
        for name in (*self.loops.independent, *self.loops.start):
            if name not in model.joint_names:
                raise UnknownNameError('joint of the loops', name, model.joint_names)
        self._free = [k for k, name in enumerate(model.joint_names)
                      if name in self.loops.independent]
        self._bound = [k for k in range(model.n) if k not in self._free]
        self.joints = model.joints.take(self._free)
        self.dependent_names = tuple(model.joint_names[k] for k in self._bound)
        self._pairs = tuple(
            ((cut.links[0], tuple(map(float, one))), (cut.links[1], tuple(map(float, other))))
            for cut in self.loops.cuts for one, other in cut.points)
        self._closure = LoopClosure(self.tree.catalogue, self._pairs, self._free, self._bound)
        self._functions: dict[str, Callable[..., Array]] = {}
        first = self._first(start)
        self._assembly = Assembly(self._function('newton'), self._free, self._bound, first)
        home = self._assembly.home
        if not self._assembly.closed:
            self._refuse(first[self._free], home)
        rank = int(np.linalg.matrix_rank(self._jacobian(home), tol=SINGULAR))
        if rank != len(self._bound):
            raise ValueRangeError('independent joints', len(self._free),
                                  f'{model.n - rank}: the cuts bind {rank} of {model.n} joints')

    def __repr__(self) -> str:
        """Name and independent joints."""
        return f'<ClosedLoopDynamics of {self.model.name!r}, {", ".join(self.joint_names)}>'

    @property
    def n(self) -> int:
        """Independent joints."""
        return len(self._free)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints."""
        return self.joints.joint_names

    def with_model(self, model: Model, *,
                   friction_width: float | None = None) -> ClosedLoopDynamics:
        """Return the same loops of a tree with other parameters."""
        width = self.tree.friction_width if friction_width is None else friction_width
        return ClosedLoopDynamics(model, self.loops, start=self._assembly.home,
                                  friction_width=width)

    def warm_up(self, *names: str) -> None:
        """Compile what these methods need, as those of `Dynamics`."""
        for name in names:
            if name in ('inverse_dynamics', 'forward_dynamics', 'motion'):
                self._function(name)
            elif name == 'wrenches':
                self.tree.warm_up(name)
            else:
                self._function('terms')

    # kinematics -----------------------------------------------------------------------------

    def positions(self, q: ArrayLike) -> Array:
        """Return the positions of all joints, shape (b,) or (N, b), for the independent ones.

        Newton's method, in small steps from the last solution: the branch is kept.

        Raises
        ------
        ValueRangeError
            The loops cannot be closed there; names the cut.
        """
        goal = self._array('q', q)
        full, closed = self._assembly.reach(np.atleast_2d(goal))
        if not closed.all():
            bad = int(np.argmin(closed))
            self._refuse(np.atleast_2d(goal)[bad], full[bad])
        return full[0] if goal.ndim == 1 else full

    def reachable(self, q: ArrayLike) -> NDArray[np.bool_]:
        """Return in which poses, shape (N, n), the loops close on this branch; shape (N,).

        With all joints that follow within their own limits.
        """
        full, closed = self._assembly.reach(np.atleast_2d(self._array('q', q)))
        bound, model = full[:, self._bound], self.model
        inside = (bound >= model.lower[self._bound]) & (bound <= model.upper[self._bound])
        return closed & inside.all(axis=1)

    def motion(self, q: ArrayLike, qd: ArrayLike) -> FullMotion:
        """Return the motion of all joints.

        Parameters
        ----------
        q, qd : array-like, shape (n,) or (N, n)
            Of the independent joints.
        """
        full, table = self._at('motion', q, qd)
        return FullMotion(full, *(np.ascontiguousarray(part) for part in (
            table[..., -2], table[..., :-2], table[..., -1])))

    def motion_matrix(self, q: ArrayLike) -> Array:
        """Return G, shape (b, n) or (N, b, n): velocities of all joints are ``G qd``."""
        return self.motion(q, np.zeros_like(np.asarray(q, np.float64))).matrix

    def velocities(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return the velocities of all joints, shape (b,) or (N, b)."""
        return self.motion(q, qd).qd

    def accelerations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return the accelerations of all joints, shape (b,) or (N, b)."""
        return self.motion(q, qd).qdd(self._array('qdd', qdd))

    def singularity(self, q: ArrayLike) -> Any:
        """Return how far the loops are from a singularity: 1 far, 0 there; a float or (N,).

        Smallest over largest singular value of the dependent joints' part of the loops' Jacobian.
        """
        values = np.linalg.svd(self._jacobian(self.positions(q))[..., self._bound],
                               compute_uv=False)
        ratio = values[..., len(self._bound) - 1] / values[..., 0]
        return float(ratio) if ratio.ndim == 0 else ratio

    # dynamics -------------------------------------------------------------------------------

    def terms(self, q: ArrayLike, qd: ArrayLike) -> Terms:
        """Return reduced M, C qd, g and friction."""
        (_, table), n = self._at('terms', q, qd), self.n
        return Terms(table[..., :n], table[..., n], table[..., n + 1], table[..., n + 2])

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Return the reduced M, shape (n, n) or (N, n, n)."""
        return self.terms(q, np.zeros_like(np.asarray(q, np.float64))).mass_matrix

    def gravity(self, q: ArrayLike) -> Array:
        """Return the reduced gravity torque, shape of q, N m or N."""
        return self.terms(q, np.zeros_like(np.asarray(q, np.float64))).gravity

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return the reduced Coriolis and centrifugal torque, shape of q."""
        return self.terms(q, qd).coriolis

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return ``C = G' (C_tree G + M dG/dt)``, shape (n, n): ``dM/dt - 2 C`` is skew.

        One state at a time.
        """
        motion, n = self.motion(q, qd), self.n
        bilinear = np.zeros((self.model.n, n))
        own = self._table(motion.q, motion.qd)
        inverse = np.linalg.pinv(own[:, 1:-1][:, self._bound], rcond=SINGULAR)
        for k, column in enumerate(motion.matrix.T):  # the drift is a quadratic form: polarise it
            both = self._table(motion.q, motion.qd + column)[:, -1]
            alone = self._table(motion.q, column)[:, -1]
            bilinear[self._bound, k] = -inverse @ (both - own[:, -1] - alone) / 2
        tree = self.tree.terms(motion.q, motion.qd)
        return np.asarray(motion.matrix.T @ (
            self.tree.coriolis_matrix(motion.q, motion.qd) @ motion.matrix
            + tree.mass_matrix @ bilinear))

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Return the friction of all joints as the independent ones feel it, shape of qd."""
        if q is None:
            raise ShapeError('q', 'None', f'({self.n},): friction of loops depends on the pose')
        return self.terms(q, qd).friction

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return the torques of the independent joints, shape of q; friction of all counts."""
        return self._at('inverse_dynamics', q, qd, qdd)[1]

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, torque: ArrayLike) -> Array:
        """Return the independent accelerations, shape of q, under torques on these joints."""
        return self._at('forward_dynamics', q, qd, torque)[1]

    def constraint_forces(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return force (N) and moment (N m) at each cut on its second link, shape (cuts, 6).

        Root axes, about the cut's first point; one state, or (N, cuts, 6). The torques are those
        of `inverse_dynamics`, on the independent joints alone. What the loops leave open (forces
        across a plane mechanism) is as small as can be.
        """
        motion = self.motion(q, qd)
        need = self.tree.inverse_dynamics(motion.q, motion.qd,
                                          motion.qdd(self._array('qdd', qdd)))
        torque = np.zeros_like(need)
        torque[..., self._free] = motion.reduce(need)
        across = np.swapaxes(np.linalg.pinv(self._jacobian(motion.q), rcond=SINGULAR), -1, -2)
        forces = -_times(across, need - torque)
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

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return Y, (n, 17 b) or (N, n, 17 b): torques are ``Y @ model.standard_parameters``."""
        motion = self.motion(q, qd)
        tree = self.tree.regressor(motion.q, motion.qd, motion.qdd(self._array('qdd', qdd)))
        return np.asarray(np.swapaxes(motion.matrix, -1, -2) @ tree)

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Return kinetic and potential energy, J."""
        motion = self.motion(q, qd)
        return self.tree.energy(motion.q, motion.qd)

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return what the robot exerts on its mounting, see `Dynamics.base_wrench`."""
        motion = self.motion(q, qd)
        return self.tree.base_wrench(motion.q, motion.qd, motion.qdd(self._array('qdd', qdd)))

    # the loops ------------------------------------------------------------------------------

    def _first(self, start: ArrayLike | None) -> Array:
        names = self.model.joint_names
        if start is None:
            return np.array([self.loops.start.get(name, 0.0) for name in names])
        first = np.array(start, np.float64)
        if first.shape != (self.model.n,):
            raise ShapeError('start', f'shape {first.shape}', f'({self.model.n},), all joints')
        return first

    def _refuse(self, q: Array, full: Array) -> None:
        gaps = np.linalg.norm(self._table(full, np.zeros_like(full))[:, 0].reshape(-1, 3), axis=1)
        worst = self._pairs[int(np.argmax(gaps))]
        where = ', '.join(f'{name} {x:.4g}' for name, x in zip(self.joint_names, q, strict=True))
        raise ValueRangeError(f'pose {where}', f'leaves {gaps.max():.3g} m between '
                              f'{worst[0][0]} and {worst[1][0]}',
                              'one in which the loops close')

    def _jacobian(self, full: Array) -> Array:
        """Derivative of the gaps by all joints, shape (..., 3 pairs, b)."""
        return np.asarray(self._table(full, np.zeros_like(full))[..., 1:-1])

    def _function(self, name: str) -> Callable[..., Array]:
        if name not in self._functions:
            self._functions[name] = self._closure.kernel(name).single
        return self._functions[name]

    def _table(self, full: Array, speed: Array) -> Array:
        return self._function('table')(full, speed)

    def _full(self, q: ArrayLike) -> Array:
        """`positions`, found before for one pose."""
        goal = self._array('q', q)
        last = self._assembly.last
        if goal.ndim == 1 and np.array_equal(goal, last[self._free]):
            return last.copy()
        return self.positions(goal)

    def _at(self, name: str, q: ArrayLike, *others: ArrayLike) -> tuple[Array, Array]:
        """Return the closed pose, and a function of it; refuse what is singular."""
        arrays = [self._array(what, x) for what, x in zip(('qd', 'qdd'), others, strict=False)]
        goal = self._array('q', q)
        full = self._full(goal)
        result = self._function(name)(full, *arrays)
        if not np.isfinite(result).all() and all(np.isfinite(x).all() for x in arrays):
            raise ValueRangeError('pose', goal.tolist() if goal.ndim == 1 else 'of the batch',
                                  'one away from singularities of the loops')
        return full, result

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = np.asarray(values, np.float64)
        if array.ndim not in (1, 2) or array.shape[-1] != self.n:
            raise ShapeError(name, f'shape {array.shape}',
                             f'({self.n},) or (N, {self.n}): {", ".join(self.joint_names)}')
        return array


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])
