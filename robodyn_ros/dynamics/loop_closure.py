"""Functions of closed loops, traced for kernels: gaps, Newton step, G, reduced equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robodyn_ros.dynamics.assembly import RULES
from robodyn_ros.dynamics.catalogue import MOVING, Catalogue
from robodyn_ros.dynamics.forward_dynamics import (
    SingularMassMatrixError,
    is_zero,
    solve_symmetric,
    solve_with_pivots,
)
from robodyn_ros.dynamics.kinematics import link_drift, link_jacobian, link_pose
from robodyn_ros.dynamics.tree import cross
from robodyn_ros.kernels import ContinuationKernel, Kernel, KernelSpec, pullback

ARGUMENTS = {'motion_pullback': ('q', 'qd', 'qdd', 'of_qd', 'of_qdd', 'of_matrix'),
             'regularity_pullback': ('q', 'cotangent')}
Pairs = tuple[tuple[tuple[str, tuple[float, ...]], tuple[str, tuple[float, ...]]], ...]


class LoopClosure:
    """The functions of one tree in which pairs of points are held together.

    The dependent joints are found by least squares, since the constraints of the pairs may be
    redundant.

    Parameters
    ----------
    catalogue : Catalogue
        Functions of the tree.
    pairs : tuple
        Pairs of (link, point in its frame) that coincide.
    free, bound : sequence of int
        Indices of the independent and of the dependent joints.
    """

    def __init__(self, catalogue: Catalogue, pairs: Pairs, free: Sequence[int],
                 bound: Sequence[int]):
        self._of, self._pairs = catalogue, pairs
        self._free, self._bound = list(free), list(bound)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of one of the functions below."""
        b, n, k, m = self._of.model.n, len(self._free), len(self._bound), 3 * len(self._pairs)
        sizes, shape = {
            'table': ((b, b), (m, b + 2)),
            'newton': ((b,), (m + k,)),
            'closing': ((b,), (m + 2 * k,)),
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
        key = f'{self._of.fingerprint}|loops {name} {self._pairs} {self._free}'
        arguments = ARGUMENTS.get(name, ('q', 'qd', 'qdd', 'base'))[:len(sizes)]
        return Kernel(KernelSpec(key, arguments, sizes, shape, function))

    def solved(self, name: str = '') -> ContinuationKernel:
        """Return the kernel that closes the loops, and computes one of the functions below.

        Without a name, it returns where the search has ended, see `ContinuationKernel`.
        """
        return ContinuationKernel(self.kernel('closing'), self.kernel(name) if name else None,
                                  self._free, self._bound, RULES)

    def table(self, q: Any, qd: Any) -> Any:
        """Gap of each pair, its derivative by q, and its second time derivative for qdd = 0.

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

    def _solve(self, jacobian: Any, right: Any) -> Any:
        """Solve for the dependent joints in the least-squares sense.

        The normal equations square the condition number; a step of refinement corrects this. Both
        solutions share one factorisation, since equal expressions are computed once.
        """
        j = jacobian[:, self._bound]
        order = _order(j)
        first = solve_symmetric(j.T @ j, j.T @ right, order)
        return first + solve_symmetric(j.T @ j, j.T @ (right - j @ first), order)

    def newton(self, q: Any) -> Any:
        """Gaps, and the Newton step of the dependent joints that closes them."""
        return self.closing(q)[:-len(self._bound)]

    def closing(self, q: Any) -> Any:
        """Gaps, Newton step, and the pivot of each dependent joint over its column's square.

        The last is the square of the sine between the motion of the gaps by this joint and that by
        the joints that are eliminated before it; it vanishes in a singularity.
        """
        table = self.table(q, np.zeros(len(q)))
        j = table[:, 1:-1][:, self._bound]
        square = j.T @ j
        step, pivots = solve_with_pivots(square, j.T @ table[:, 0], _order(j))
        return np.concatenate([table[:, 0], step, pivots / np.diag(square)])

    def full_motion(self, q: Any, qd: Any) -> Any:
        """`motion` with one more column, the positions of all joints."""
        return np.column_stack([self.motion(q, qd), q])

    def motion(self, q: Any, qd: Any) -> Any:
        """G, velocities and drift of all joints in a closed pose, as columns; shape (b, n + 2).

        G is the derivative of all positions by the independent ones; the drift consists of the
        accelerations of all joints while those of the independent joints are zero.
        """
        b, n = len(q), len(qd)
        still = self.table(q, np.zeros(b))[:, 1:-1]
        matrix = np.zeros((b, n), dtype=object)
        for k, place in enumerate(self._free):
            matrix[place, k] = 1.0
            matrix[self._bound, k] = -self._solve(still, still[:, place])
        speed = matrix @ qd
        moving = self.table(q, speed)
        drift = np.zeros(b, dtype=object)
        drift[self._bound] = -self._solve(moving[:, 1:-1], moving[:, -1])
        return np.column_stack([matrix, speed, drift])

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
        motion = self.motion(q, qd)
        g, speed, drift = motion[:, :-2], motion[:, -2], motion[:, -1]
        return g.T @ self._of.inverse_dynamics(q, speed, g @ qdd + drift, base)

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


def _order(jacobian: Any) -> list[int]:
    """Return the order of elimination: joints that move few gaps first, which fills in least."""
    moved = [sum(not is_zero(entry) for entry in column) for column in jacobian.T]
    return sorted(range(len(moved)), key=moved.__getitem__)
