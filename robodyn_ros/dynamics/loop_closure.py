"""Functions of closed loops, traced for kernels: gaps, Newton step, G, reduced equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robodyn_ros.description.robot import Cut
from robodyn_ros.dynamics.assembly import RULES
from robodyn_ros.dynamics.catalogue import MOVING, Catalogue
from robodyn_ros.dynamics.forward_dynamics import SingularMassMatrixError, solve_symmetric
from robodyn_ros.dynamics.kinematics import link_drift, link_jacobian, link_pose
from robodyn_ros.dynamics.least_squares import LeastSquares
from robodyn_ros.dynamics.tree import cross
from robodyn_ros.kernels import ContinuationKernel, Kernel, KernelSpec, pullback
from robodyn_ros.spatial import Array

FRAME = 3  # number of pairs of points in a cut that makes two frames coincide
ARGUMENTS = {'motion_pullback': ('q', 'qd', 'qdd', 'of_qd', 'of_qdd', 'of_matrix'),
             'regularity_pullback': ('q', 'cotangent')}
Points = tuple[tuple[str, tuple[float, ...]], tuple[str, tuple[float, ...]]]


class LoopClosure:
    """The functions of one tree in which pairs of points are held together.

    The dependent joints are found by least squares, since the constraints may be redundant.

    Parameters
    ----------
    catalogue : Catalogue
        Functions of the tree.
    cuts : sequence of Cut
        Links, and pairs of points that coincide.
    free, bound : sequence of int
        Indices of the independent and of the dependent joints.
    """

    def __init__(self, catalogue: Catalogue, cuts: Sequence[Cut], free: Sequence[int],
                 bound: Sequence[int]):
        self._of, self._cuts = catalogue, tuple(cuts)
        self._pairs = pairs_of(cuts)
        self._free, self._bound = list(free), list(bound)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of one of the functions below."""
        b, n, k, m = self._of.model.n, len(self._free), len(self._bound), 3 * len(self._pairs)
        sizes, shape = {
            'table': ((b, b), (m, b + 2)),
            'newton': ((b,), (m + k,)),
            'closing': ((b,), (m + 2 * k + 1,)),
            'full_motion': ((b, n), (b, n + 3)),
            'motion_pullback': ((b, n, n, b, b, b * n), (b + 2 * n,)),
            'regularity': ((b,), (k,)),
            'regularity_pullback': ((b, k), (b,)),
            'inverse_dynamics': ((b, n, n), (n,)),
            'moving_inverse_dynamics': ((b, n, n, 9), (n,)),
            'forward_dynamics': ((b, n, n), (n,)),
            'moving_forward_dynamics': ((b, n, n, 9), (n,)),
            'terms': ((b, n), (n, n + 3)),
        }[name]
        function: Callable[..., Any] = getattr(self, name.removeprefix(MOVING))
        counts = [len(cut.points) for cut in self._cuts]
        key = f'{self._of.fingerprint}|loops {name} {self._pairs} {counts} {self._free}'
        arguments = ARGUMENTS.get(name, ('q', 'qd', 'qdd', 'base'))[:len(sizes)]
        return Kernel(KernelSpec(key, arguments, sizes, shape, function))

    def solved(self, name: str = '') -> ContinuationKernel:
        """Return the kernel that closes the loops, and computes one of the functions below.

        Without a name, it returns where the search has ended, see `ContinuationKernel`.
        """
        return ContinuationKernel(self.kernel('closing'), self.kernel(name) if name else None,
                                  self._free, self._bound, RULES)

    def table(self, q: Any, qd: Any) -> Any:
        """Gap of each pair, its derivative w.r.t. q, and its second time derivative for qdd = 0.

        The gap is the first point minus the second, in root axes; shape (3 pairs, b + 2).
        """
        return np.concatenate([
            self._point(*first, q, qd) - self._point(*second, q, qd)
            for first, second in self._pairs])

    def _point(self, link: str, point: tuple[float, ...], q: Any, qd: Any) -> Any:
        """Position, Jacobian and drift of a point of a link, as columns; shape (3, b + 2)."""
        tree, frame = self._of.tree, self._of.model.link_frame(link)
        pose = link_pose(tree, frame, q)
        jacobian, drift = link_jacobian(tree, frame, q), link_drift(tree, frame, q, qd)
        arm, turn = pose[:3, :3] @ np.array(point), jacobian[3:] @ qd
        columns = [pose[:3, 3] + arm]
        columns += [column[:3] + cross(column[3:], arm) for column in jacobian.T]
        columns.append(drift[:3] + cross(drift[3:], arm) + cross(turn, cross(turn, arm)))
        return np.array(columns, dtype=object).T

    def constraints(self, q: Any, qd: Any) -> Any:
        """Equations of the loops, as columns like those of `table`, shape (rows, b + 2).

        Where two frames coincide, they are the gap of the origins and the turn between the frames
        times a length, six in place of the nine gaps of three points. Elsewhere they are the gaps.
        """
        return np.concatenate([
            self._frame_rows(cut, q, qd) if len(cut.points) == FRAME else np.concatenate(
                [self._point(*first, q, qd) - self._point(*second, q, qd)
                 for first, second in pairs_of([cut])])
            for cut in self._cuts])

    def _frame_rows(self, cut: Cut, q: Any, qd: Any) -> Any:
        """Equations of two frames that coincide, see `constraints`."""
        tree, turns, angular = self._of.tree, [], []
        for k, link in enumerate(cut.links):
            frame = self._of.model.link_frame(link)
            arms = np.diff(cut.points[:, k], axis=0)
            turns.append(link_pose(tree, frame, q)[:3, :3] @ _axes(*arms))
            angular.append(np.column_stack([link_jacobian(tree, frame, q)[3:],
                                            link_drift(tree, frame, q, qd)[3:]]))
        turn = sum(cross(other, one) for one, other in zip(turns[0].T, turns[1].T, strict=True))
        (first, second), *_ = pairs_of([cut])
        length = float(np.linalg.norm(cut.points[1, 0] - cut.points[0, 0]))
        return np.concatenate([
            self._point(*first, q, qd) - self._point(*second, q, qd),
            length * np.column_stack([0.5 * turn, angular[0] - angular[1]])])

    def newton(self, q: Any) -> Any:
        """Gaps, and the Newton step of the dependent joints that closes them."""
        return self.closing(q)[:-len(self._bound) - 1]

    def closing(self, q: Any) -> Any:
        """Gaps, Newton step, squared gap after it to first order, and distance from singularities.

        This distance has one element for each dependent joint: the squared sine of the angle
        between the motion of the gaps by this joint and that by the joints that are eliminated
        before it. It vanishes in a singularity.
        """
        still = np.zeros(len(q))
        equations = self.constraints(q, still)
        gap, jacobian = equations[:, 0], equations[:, 1:-1][:, self._bound]
        solver = LeastSquares(jacobian)
        step = solver.approximate(gap)
        left = gap @ gap - (gap @ jacobian) @ step
        return np.concatenate([self.table(q, still)[:, 0], step, [left], solver.sines])

    def full_motion(self, q: Any, qd: Any) -> Any:
        """`motion` with one more column, the positions of all joints."""
        return np.column_stack([self.motion(q, qd), q])

    def motion(self, q: Any, qd: Any) -> Any:
        """G, velocities and drift of all joints in a closed pose, as columns; shape (b, n + 2).

        G is the derivative of all positions w.r.t. the independent ones; the drift consists of the
        accelerations of all joints while those of the independent joints are zero.
        """
        b, n = len(q), len(qd)
        solver, by_free = self._solver(q)
        matrix = np.zeros((b, n), dtype=object)
        matrix[self._free] = np.eye(n)
        for k in range(n):
            matrix[self._bound, k] = -solver.solve(by_free[:, k])
        speed = matrix @ qd
        drift = np.zeros(b, dtype=object)
        drift[self._bound] = -solver.solve(self.constraints(q, speed)[:, -1])
        return np.column_stack([matrix, speed, drift])

    def _solver(self, q: Any) -> tuple[LeastSquares, Any]:
        """Return the equations of the dependent joints, and the Jacobian of the others."""
        jacobian = self.constraints(q, np.zeros(len(q)))[:, 1:-1]
        return LeastSquares(jacobian[:, self._bound]), jacobian[:, self._free]

    def motion_pullback(self, q: Any, qd: Any, qdd: Any, of_qd: Any, of_qdd: Any,
                        of_matrix: Any) -> Any:
        """Gradient, with respect to q, qd and qdd, of a function of the motion of all joints.

        The last three arguments are its gradients with respect to the velocities and accelerations
        of all joints, and with respect to G, row by row.
        """
        motion = self.motion(q, qd)
        g, speed, drift = motion[:, :-2], motion[:, -2], motion[:, -1]
        return pullback(np.concatenate([speed, g @ qdd + drift, g.ravel()]),
                        np.concatenate([of_qd, of_qdd, of_matrix]), (q, qd, qdd))

    def regularity(self, q: Any) -> Any:
        """The squared sine of each dependent joint, see `closing`."""
        return self.closing(q)[-len(self._bound):]

    def regularity_pullback(self, q: Any, cotangent: Any) -> Any:
        """Gradient of ``cotangent . regularity`` by the positions of all joints."""
        return pullback(self.regularity(q), cotangent, (q,))

    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any, base: Any = None) -> Any:
        """Torques of the independent joints; base as in `Catalogue.inverse_dynamics`."""
        solver, by_free = self._solver(q)
        speed = self._joined(qd, -solver.solve(by_free @ qd))
        drift = self.constraints(q, speed)[:, -1]
        tau = self._of.inverse_dynamics(
            q, speed, self._joined(qdd, -solver.solve(by_free @ qdd + drift)), base)
        return tau[self._free] - solver.solve_transposed(tau[self._bound]) @ by_free

    def _joined(self, free: Any, bound: Any) -> Any:
        """Return the values of all joints."""
        values = np.zeros(len(free) + len(bound), dtype=object)
        values[self._free], values[self._bound] = free, bound
        return values

    def terms(self, q: Any, qd: Any) -> Any:
        """Reduced M, c, g and friction, as columns."""
        motion = self.motion(q, qd)
        g, speed, drift = motion[:, :-2], motion[:, -2], motion[:, -1]
        mass = self._of.mass_matrix(q)
        return np.column_stack([
            g.T @ mass @ g, g.T @ (mass @ drift + self._of.coriolis(q, speed)),
            g.T @ self._of.gravity(q), g.T @ self._of.friction(speed)])

    def forward_dynamics(self, q: Any, qd: Any, tau: Any, base: Any = None) -> Any:
        """Independent accelerations under torques of the independent joints."""
        motion = self.motion(q, qd)
        g, speed, drift = motion[:, :-2], motion[:, -2], motion[:, -1]
        bias = g.T @ self._of.inverse_dynamics(q, speed, drift, base)
        try:
            return solve_symmetric(g.T @ self._of.mass_matrix(q) @ g, tau - bias,
                                   range(len(tau)))
        except SingularMassMatrixError as error:
            joint = self._of.model.joint_names[self._free[error.coordinate]]
            raise SingularMassMatrixError(error.coordinate, joint) from None


def pairs_of(cuts: Sequence[Cut]) -> tuple[Points, ...]:
    """Return the pairs of (link, point in its frame) that coincide."""
    return tuple(((cut.links[0], tuple(map(float, one))), (cut.links[1], tuple(map(float, other))))
                 for cut in cuts for one, other in cut.points)


def _axes(one: Array, other: Array) -> Array:
    """Return orthogonal unit vectors, the first two in the plane of two arms, as columns."""
    first = one / np.linalg.norm(one)
    third = np.cross(one, other) / np.linalg.norm(np.cross(one, other))
    return np.column_stack([first, np.cross(third, first), third])
