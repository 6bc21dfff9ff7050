"""Positions and velocities of the dependent joints of closed loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.description.robot import Cut
from robodyn_ros.dynamics.assembly import SINGULAR
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.forward_dynamics import SingularMassMatrixError
from robodyn_ros.dynamics.loop_closure import LoopClosure, pairs_of
from robodyn_ros.dynamics.loop_freedom import choose_independent, close_loops, closed_start
from robodyn_ros.dynamics.loop_search import LoopSearch
from robodyn_ros.dynamics.loops import Loops, read_loops
from robodyn_ros.dynamics.quantities import FullMotion
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError
from robodyn_ros.kernels import Kernel
from robodyn_ros.model import Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array


class LoopKinematics(LoopSearch):
    """The part of `ClosedLoopDynamics` for positions and velocities.

    For parameters, attributes and errors see `ClosedLoopDynamics`.
    """

    def __init__(self, model: Model, loops: Loops | str | Path | Mapping[str, Any], *,
                 start: ArrayLike | None = None, friction_width: float | None = None):
        model.require_fixed_base('ClosedLoopDynamics (FloatingLoopDynamics supports it)')
        if model.friction_follows_load:
            raise ValueRangeError('friction_curve', 'load', 'no load-dependent friction in '
                                  'closed loops, whose gears share the load')
        self.model = model
        self.tree = Dynamics(model, friction_width=friction_width)
        self.loops = loops if isinstance(loops, Loops) else read_loops(
            loops, model.description.cuts)
        self.loops = replace(self.loops, cuts=tuple(
            replace(cut, links=(_link(model, cut.links[0]), _link(model, cut.links[1])))
            for cut in self.loops.cuts))
        for name in (*self.loops.independent, *self.loops.driven, *self.loops.start):
            if name not in model.joint_names:
                raise UnknownNameError('joint of the loops', name, model.joint_names)
        self._pairs = pairs_of(self.loops.cuts)
        first = self._first(start)
        if start is None and not self.loops.start:
            first = self._own_start(first)
        if not self.loops.independent:
            first = self._choose_independent(first)
        self._divide(self.loops.independent)
        self.joints = model.joints.take(self._free)
        self.dependent_names = tuple(model.joint_names[k] for k in self._bound)
        if not self._bound:
            raise ValueRangeError('independent joints', len(self._free), f'fewer than {model.n}: '
                                  'if no joint depends on others, there is no closed loop')
        near = close_loops(self._table, first)
        known = [near] if self._is_closed(near) else self._around(first)
        for pose in known[:1]:  # the count is known only where the loops are closed
            self._check_count(pose)
        try:
            self._home, closed = self._search(first, first[self._free])
        except SingularMassMatrixError as error:
            raise ValueRangeError(
                'dependent joint', self.dependent_names[error.coordinate],
                'one whose motion the cuts determine, otherwise name it as independent') from None
        self._home.setflags(write=False)
        if not closed:
            self._refuse_open(first, self._home, known)
        self._check_count(self._home)

    def _divide(self, independent: Sequence[str]) -> None:
        """Divide the joints into independent and dependent ones."""
        names = self.model.joint_names
        self._free = [k for k, name in enumerate(names) if name in independent]
        self._bound = [k for k in range(self.model.n) if k not in self._free]
        self._closure = self.closure_of(self.tree.catalogue)
        self._kernels: dict[str, Kernel] = {}
        self._solvers: dict[str, tuple[Callable[..., Array], int]] = {}

    def _own_start(self, first: Array) -> Array:
        """Return a pose from which the loops can be closed: the given one if possible.

        Raises
        ------
        ValueRangeError
            No such pose is found.
        """
        names = self.model.joint_names
        wanted = self.loops.independent or self.loops.driven
        self._divide(wanted if self.loops.independent else names)
        if self._is_closed(first) or len(wanted) == self.model.n:
            return first
        with suppress(SingularMassMatrixError):
            if self._bound and self._search(first, first[self._free])[1]:
                return first
        found = closed_start(self._table, first, (self.model.lower, self.model.upper),
                             [names.index(name) for name in wanted])
        if not self._is_closed(found):
            gap, one, other = self._widest(found)
            raise ValueRangeError(
                'loops', 'open in every pose that was tried; in the best one, the gap between '
                f'{one} and {other} is {gap:.3g} m', "cuts that can close, or 'start' with joint "
                'positions near a pose in which they do')
        return found

    def _choose_independent(self, first: Array) -> Array:
        """Choose passive joints; return a closed pose."""
        names = self.model.joint_names
        self._divide(names)
        home = close_loops(self._table, first)
        if not self._is_closed(home):
            self._refuse_open(first, home, self._around(first))
        self._check_regular(home)
        driven = [k for k, name in enumerate(names) if name in self.loops.driven]
        chosen = choose_independent(self._jacobian(home), driven, names)
        self.loops = replace(self.loops, independent=tuple(names[k] for k in chosen))
        return home

    def _check_count(self, pose: Array) -> None:
        """Raise an error if a closed pose is singular, or if there are too many or few cuts."""
        wanted, rank = len(self._bound), self._check_regular(pose)
        if rank != wanted:
            raise ValueRangeError('independent joints', len(self._free),
                                  f'{self.model.n - rank}: the cuts constrain {rank} of the '
                                  f'{self.model.n} joints')
        jacobian = self._jacobian(pose)
        if _rank(jacobian[:, self._bound]) == wanted:
            return
        others = choose_independent(jacobian, (), self.model.joint_names)
        names = ', '.join(self.model.joint_names[k] for k in others)
        if any(_rank(self._jacobian(one)[:, self._bound]) == wanted
               for one in self._around(pose)):
            self._refuse_start(pose, 'the independent joints do not determine the motion of the '
                               f'others there, as {names} would')
        raise ValueRangeError(
            'independent joints', ', '.join(self.model.joint_names[k] for k in self._free),
            f'{names}, for example: those given do not determine the motion of the others')

    def _check_regular(self, pose: Array) -> int:
        """Return how many joints the cuts constrain; raise an error for a singular pose."""
        rank = _rank(self._jacobian(pose))
        usual = max((_rank(self._jacobian(one)) for one in self._around(pose)), default=rank)
        if rank < usual:
            self._refuse_start(pose, f'the cuts constrain {rank} of the {self.model.n} joints '
                               f'there, and {usual} in the poses around it')
        return rank

    def _refuse_start(self, pose: Array, why: str) -> None:
        raise ValueRangeError('start pose', f'{self._where_all(pose)}, which is singular',
                              f'another start; {why}')

    def _refuse_open(self, first: Array, end: Array, closed: Sequence[Array]) -> None:
        """Raise an error for a start from which the loops are not closed."""
        if closed:
            raise ValueRangeError('start pose', f'{self._where_all(first)}, from which the loops '
                                  'are not closed', 'one nearer to a pose that closes them, for '
                                  f'example {self._where_all(closed[0])}')
        self._refuse(first[self._free], first, end)

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
        return LoopClosure(catalogue, self.loops.cuts, self._free, self._bound)

    @property
    def friction_width(self) -> float | None:
        """Width of the smooth sign of dry friction, rad/s or m/s; None: those of the model."""
        return self.tree.friction_width

    @property
    def home(self) -> Array:
        """The pose of all joints, shape (b,), in which the loops were first closed; read-only."""
        return self._home

    def positions(self, q: ArrayLike, *, near: ArrayLike | None = None) -> Array:
        """Return the positions of all joints for given positions of the independent joints.

        They are found by Newton's method, in small steps along a straight line from ``near``, so
        that the robot stays in the assembly mode of ``near``.

        Parameters
        ----------
        q : array-like, shape (n,) or (N, n)
            Positions of the independent joints, rad or m.
        near : array-like, shape (b,) or (N, b), optional
            A pose of all joints to start from, for example the last result of this method;
            default: `home`. In a batch, the search starts from an earlier result if that is
            nearer.

        Returns
        -------
        ndarray, shape (b,) or (N, b)

        Raises
        ------
        ValueRangeError
            A position is not finite, or the loops cannot be closed there. The message names the
            cut.
        """
        return self._closed(near, q)

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
        full, closed = self._search(None, np.atleast_2d(self._array('q', q)))
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
        return self._motion_of(self._at('full_motion', near, q, qd))

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

    def position_rates(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Time derivative of q, shape of q: qd itself."""
        return self._array('qd', qd)

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

    def _all_joints(self, name: str, values: ArrayLike) -> Array:
        pose = real_numbers(name, values)
        if pose.shape != (self.model.n,):
            raise ShapeError(name, f'shape {pose.shape}', f'({self.model.n},), all joints')
        return pose

    def _jacobian(self, full: Array) -> Array:
        """Return the derivative of the gaps by all joints, shape (..., 3 pairs, b)."""
        return np.asarray(self._table(full, np.zeros_like(full))[..., 1:-1])

    def _still(self, full: Array) -> FullMotion:
        """Return the motion matrix of a closed pose of all joints, without velocity."""
        return self._motion_of(self._function('full_motion')(
            full, np.zeros((*full.shape[:-1], self.n))))

    @staticmethod
    def _motion_of(table: Array) -> FullMotion:
        return FullMotion(*(np.ascontiguousarray(part) for part in (
            table[..., -1], table[..., -3], table[..., :-3], table[..., -2])))


def _rank(jacobian: Array) -> int:
    return int(np.linalg.matrix_rank(jacobian, tol=SINGULAR))


def _link(model: Model, name: str) -> str:
    """Return a link, or the link that a joint moves."""
    if name in model.link_frames:
        return name
    for joint in model.description.joints:
        if joint.name == name:
            return joint.child
    raise UnknownNameError('link of a cut', name, model.link_frames)
