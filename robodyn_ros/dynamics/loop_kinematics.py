"""Positions and velocities of the dependent joints of closed loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dynamics.assembly import FARTHEST, ROUGH, Assembly
from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.catalogue import MOVING, Catalogue
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.forward_dynamics import SingularMassMatrixError
from robodyn_ros.dynamics.loop_closure import LoopClosure
from robodyn_ros.dynamics.loop_freedom import choose_independent, close_loops
from robodyn_ros.dynamics.loops import Cut, Loops, read_loops
from robodyn_ros.dynamics.quantities import FullMotion
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array

SINGULAR = 1e-6  # smallest over largest singular value of the dependent joints' Jacobian


class LoopKinematics:
    """The part of `ClosedLoopDynamics` for positions and velocities.

    For parameters, attributes and errors see `ClosedLoopDynamics`.
    """

    def __init__(self, model: Model, loops: Loops | str | Path | Mapping[str, Any], *,
                 start: ArrayLike | None = None, friction_width: float = 0.0):
        model.require_fixed_base('ClosedLoopDynamics')
        if model.friction_follows_load:
            raise ValueRangeError('friction_curve', 'load', 'no load-dependent friction in '
                                  'closed loops, whose gears share the load')
        self.model = model
        self.tree = Dynamics(model, friction_width=friction_width)
        self.loops = loops if isinstance(loops, Loops) else read_loops(loops)
        for cut in self.loops.cuts:
            for link in cut.links:
                if link not in model.link_frames:
                    raise UnknownNameError('link of a cut', link, model.link_frames)
        for name in (*self.loops.independent, *self.loops.driven, *self.loops.start):
            if name not in model.joint_names:
                raise UnknownNameError('joint of the loops', name, model.joint_names)
        self._pairs = tuple(
            ((cut.links[0], tuple(map(float, one))), (cut.links[1], tuple(map(float, other))))
            for cut in self.loops.cuts for one, other in cut.points)
        first = self._first(start)
        if not self.loops.independent:
            first = self._choose_independent(first)
        self._divide(self.loops.independent)
        self.joints = model.joints.take(self._free)
        self.dependent_names = tuple(model.joint_names[k] for k in self._bound)
        if not self._bound:
            raise ValueRangeError('independent joints', len(self._free), f'fewer than {model.n}: '
                                  'if no joint depends on others, there is no closed loop')
        try:
            newton = self._function('newton')
        except SingularMassMatrixError as error:
            raise ValueRangeError(
                'dependent joint', self.dependent_names[error.coordinate],
                'one whose motion the cuts determine, otherwise name it as independent') from None
        self._assembly = Assembly(newton, self._free, self._bound, first)
        home = self._assembly.home
        if not self._assembly.closed:
            near = close_loops(self._table, first)
            if self._is_closed(near):  # the count is valid only if the loops are closed
                self._check_count(near)
            self._refuse(first[self._free], home)
        self._check_count(home)

    def _divide(self, independent: Sequence[str]) -> None:
        """Divide the joints into independent and dependent ones."""
        names = self.model.joint_names
        self._free = [k for k, name in enumerate(names) if name in independent]
        self._bound = [k for k in range(self.model.n) if k not in self._free]
        self._closure = self.closure_of(self.tree.catalogue)
        self._functions: dict[str, Callable[..., Array]] = {}

    def _choose_independent(self, first: Array) -> Array:
        """Choose passive joints; return a closed pose."""
        names = self.model.joint_names
        self._divide(names)
        home = close_loops(self._table, first)
        if not self._is_closed(home):
            self._refuse(first[self._free], home)
        driven = [k for k, name in enumerate(names) if name in self.loops.driven]
        chosen = choose_independent(self._jacobian(home), driven, names)
        self.loops = replace(self.loops, independent=tuple(names[k] for k in chosen))
        return home

    def _is_closed(self, pose: Array) -> bool:
        """Return whether the loops are closed in a pose of all joints; False for NaN."""
        gaps = self._table(pose, np.zeros_like(pose))[:, 0]
        return bool(np.abs(gaps).max() < ROUGH)

    def _check_count(self, pose: Array) -> None:
        """Raise an error if the number of independent joints is wrong."""
        rank = int(np.linalg.matrix_rank(self._jacobian(pose), tol=SINGULAR))
        if rank != len(self._bound):
            raise ValueRangeError('independent joints', len(self._free),
                                  f'{self.model.n - rank}: the cuts constrain {rank} of the '
                                  f'{self.model.n} joints')

    def __repr__(self) -> str:
        """Name and independent joints."""
        return f'<{type(self).__name__} of {self.model.name!r}, {", ".join(self.joint_names)}>'

    @property
    def n(self) -> int:
        """Number of independent joints."""
        return len(self._free)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints."""
        return self.joints.joint_names

    @property
    def driven_names(self) -> tuple[str, ...]:
        """Names of the independent joints that have a motor."""
        return tuple(name for name in self.joint_names
                     if not self.loops.driven or name in self.loops.driven)

    @property
    def passive_names(self) -> tuple[str, ...]:
        """Names of the independent joints that no motor drives."""
        return tuple(name for name in self.joint_names if name not in self.driven_names)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cuts, at which the loops are held together."""
        return self.loops.cuts

    def closure_of(self, catalogue: Catalogue) -> LoopClosure:
        """Return the functions of the loops for a catalogue of the same tree."""
        return LoopClosure(catalogue, self._pairs, self._free, self._bound)

    @property
    def friction_width(self) -> float:
        """Width of the smooth sign of Coulomb friction, rad/s or m/s."""
        return self.tree.friction_width

    @property
    def home(self) -> Array:
        """The pose of all joints, shape (b,), in which the loops were first closed; read-only."""
        return self._assembly.home

    def positions(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the positions of all joints for given positions of the independent joints.

        They are found by Newton's method, in small steps along a straight line from ``near``, so
        that the robot stays in the assembly mode of ``near``.

        Parameters
        ----------
        q : array-like, shape (n,) or (N, n)
            Positions of the independent joints, rad or m.
        near : array-like, shape (b,), optional
            A pose of all joints to start from, for example the last result of this method;
            default: `home`.

        Returns
        -------
        ndarray, shape (b,) or (N, b)

        Raises
        ------
        ValueRangeError
            A position is not finite, or the loops cannot be closed there. The message names the
            cut.
        """
        goal = self._array('q', q)
        goals = np.atleast_2d(goal)
        full, closed = self._assembly.reach(goals, self._near(near))
        if not closed.all():
            bad = int(np.argmin(closed))
            self._refuse(goals[bad], full[bad])
        return full[0] if goal.ndim == 1 else full

    def reachable(self, q: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the loops close with every dependent joint within its limits.

        Parameters
        ----------
        q : array-like, shape (N, n)
            Positions of the independent joints, which are approached from `home`.

        Returns
        -------
        ndarray of bool, shape (N,)
        """
        full, closed = self._assembly.reach(np.atleast_2d(self._array('q', q)))
        bound, model = full[:, self._bound], self.model
        inside = (bound >= model.lower[self._bound]) & (bound <= model.upper[self._bound])
        return closed & inside.all(axis=1)

    def motion(self, q: ArrayLike, qd: ArrayLike, *,
               near: ArrayLike | None = None) -> FullMotion:
        """Return the motion of all joints.

        Parameters
        ----------
        q, qd : array-like, shape (n,) or (N, n)
            Positions and velocities of the independent joints.
        near : array-like, shape (b,), optional
            See `positions`.
        """
        full, table = self._at('motion', near, q, qd)
        return FullMotion(full, *(np.ascontiguousarray(part) for part in (
            table[..., -2], table[..., :-2], table[..., -1])))

    def motion_matrix(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return G, shape (b, n) or (N, b, n): velocities of all joints are ``G qd``."""
        return self.motion(q, np.zeros_like(self._array('q', q)), near=near).matrix

    def velocities(self, q: ArrayLike, qd: ArrayLike, *,
                   near: ArrayLike | None = None) -> Array:
        """Return the velocities of all joints, shape (b,) or (N, b)."""
        return self.motion(q, qd, near=near).qd

    def accelerations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                      near: ArrayLike | None = None) -> Array:
        """Return the accelerations of all joints, shape (b,) or (N, b)."""
        return self.motion(q, qd, near=near).qdd(self._array('qdd', qdd))

    def singularity(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Any:
        """Return the distance of the loops from a singularity, 0 to 1; a float or (N,).

        It is the ratio of the smallest to the largest singular value of the loops' Jacobian with
        respect to the dependent joints, and 0 in a singularity.
        """
        values = np.linalg.svd(self._jacobian(self.positions(q, near=near))[..., self._bound],
                               compute_uv=False)
        ratio = values[..., len(self._bound) - 1] / values[..., 0]
        return float(ratio) if ratio.ndim == 0 else ratio

    # helpers ----------------------------------------------------------------------------------

    def _first(self, start: ArrayLike | None) -> Array:
        names = self.model.joint_names
        if start is None:
            return np.array([self.loops.start.get(name, 0.0) for name in names])
        return self._all_joints('start', start)

    def _near(self, near: ArrayLike | None) -> Array | None:
        return None if near is None else self._all_joints('near', near)

    def _all_joints(self, name: str, values: ArrayLike) -> Array:
        pose = real_numbers(name, values)
        if pose.shape != (self.model.n,):
            raise ShapeError(name, f'shape {pose.shape}', f'({self.model.n},), all joints')
        return pose

    def _refuse(self, q: Array, full: Array) -> None:
        """Raise the reason why the loops do not close for q; `full` is where the search ended."""
        names = [self.model.joint_names[k] for k in self._free]
        where = ', '.join(f'{name} {x:.4g}' for name, x in zip(names, q, strict=True))
        if not np.isfinite(q).all():
            raise ValueRangeError('pose', where, 'finite numbers')
        if not np.abs(q - full[self._free]).max(initial=0.0) < FARTHEST:
            raise ValueRangeError('pose', where, f'less than {FARTHEST:g} rad or m from the pose '
                                  'from which the loops are closed')
        gaps = np.linalg.norm(self._table(full, np.zeros_like(full))[:, 0].reshape(-1, 3), axis=1)
        if not np.isfinite(gaps).all():
            raise ValueRangeError(f'pose {where}', 'singular', 'one away from singularities of '
                                  'the loops, for example reached from another start')
        worst = self._pairs[int(np.argmax(gaps))]
        raise ValueRangeError(f'pose {where}', f'leaves {gaps.max():.3g} m between '
                              f'{worst[0][0]} and {worst[1][0]}',
                              'one in which the loops close')

    def _jacobian(self, full: Array) -> Array:
        """Return the derivative of the gaps by all joints, shape (..., 3 pairs, b)."""
        return np.asarray(self._table(full, np.zeros_like(full))[..., 1:-1])

    def _function(self, name: str) -> Callable[..., Array]:
        if name not in self._functions:
            self._functions[name] = self._closure.kernel(name).single
        return self._functions[name]

    def _table(self, full: Array, speed: Array) -> Array:
        return self._function('table')(full, speed)

    def _still(self, full: Array) -> FullMotion:
        """Return the motion matrix of a closed pose of all joints, without velocity."""
        table = self._function('motion')(full, np.zeros((*full.shape[:-1], self.n)))
        return FullMotion(full, table[..., -2], table[..., :-2], table[..., -1])

    def _at(self, name: str, near: ArrayLike | None, q: ArrayLike, *others: ArrayLike,
            base: BaseMotion | None = None) -> tuple[Array, Array]:
        """Return the closed pose and a function of it; raise an error for a singular pose."""
        arrays = [self._array(what, x) for what, x in zip(('qd', 'qdd'), others, strict=False)]
        full = self.positions(q, near=near)
        if base is not None:
            name, arrays = MOVING + name, [*arrays, base.values(self.model)]
        result = self._function(name)(full, *arrays)
        if not np.isfinite(result).all() and all(np.isfinite(x).all() for x in arrays):
            raise ValueRangeError('pose', np.asarray(q).tolist() if full.ndim == 1 else
                                  'of the batch', 'one away from singularities of the loops')
        return full, result

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = real_numbers(name, values)
        if array.ndim not in (1, 2) or array.shape[-1] != self.n:
            raise ShapeError(name, f'shape {array.shape}',
                             f'({self.n},) or (N, {self.n}): {", ".join(self.joint_names)}')
        return array
