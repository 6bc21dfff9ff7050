"""The regressor of robots with many joints, from a kernel that grows only linearly.

The straight-line code of the regressor has a block of operations for each body and each joint that
carries it. Beyond `MANY_PAIRS` of these, it would take long to compile. There, a kernel computes
the twists of the joints and the wrenches of unit parameters, and NumPy multiplies them. Gradients
are pulled back through these products, and then through that kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.dynamics.regressor import STANDARD
from robodyn_ros.dynamics.tree import Tree
from robodyn_ros.kernels import Kernel, KernelSpec, pullback, result_memory
from robodyn_ros.model import RIGID
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from robodyn_ros.dynamics.compiled_model import CompiledModel

MANY_PAIRS = 1000  # of a body and a joint that carries it; so many compile in about 3 s
BLOCK_BYTES = 1 << 22  # size of the part of the result that is computed at a time


def is_large(tree: Tree) -> bool:
    """Whether the regressor of a robot is computed by `LargeRegressor`."""
    own = 6 if tree.floating else 0
    return sum(len(tree.ancestors(body)) + own for body in range(tree.bodies)) > MANY_PAIRS


class LargeRegressor:
    """Some columns of the regressor, with the methods of a `Kernel`.

    Parameters
    ----------
    compiled : CompiledModel
        The robot.
    columns : sequence of int
        Indices into ``model.parameter_names``.
    moving : bool
        Whether the motion of the base is the last argument.
    """

    def __init__(self, compiled: CompiledModel, columns: Sequence[int], moving: bool = False):
        tree, model = compiled.catalogue.tree, compiled.model
        self._factors = compiled.kernel(('moving_' if moving else '') + 'regressor_factors')
        self._bodies, self._base, self.shape = tree.bodies, model.first_joint, (
            model.n, len(columns))
        pairs = [divmod(column, STANDARD) for column in columns]
        inertial = [place for place, (_, parameter) in enumerate(pairs) if parameter in RIGID]
        rest = [place for place in range(len(columns)) if place not in set(inertial)]
        self._inertial, self._rest = np.array(inertial, int), np.array(rest, int)
        # the root link, whose parameters follow those of the bodies, is carried by no joint
        self._wrench = np.array([10 * pairs[place][0] + pairs[place][1] for place in inertial],
                                int) + tree.bodies
        carries = np.zeros((tree.bodies + 1, tree.bodies))
        for body in range(tree.bodies):
            carries[body, tree.ancestors(body)] = 1.0
        self._carries = carries[[pairs[place][0] for place in inertial]].T
        self._rows = tree.row[:tree.bodies]
        self._plain = np.array_equal(self._rows[:, self._base:], np.eye(tree.bodies))
        self._compiled, self._rest_columns = compiled, [columns[place] for place in rest]
        self._other = compiled.regressor_code(self._rest_columns, moving) if rest else None

    @property
    def nonzero(self) -> NDArray[np.bool_]:
        """Which elements of the result can be nonzero, shape (n, p)."""
        found = np.zeros(self.shape, bool)
        found[:, self._inertial] = (self._rows.T != 0).astype(float) @ self._carries > 0
        found[:self._base, self._inertial] = True
        if self._other is not None:
            found[:, self._rest] = self._other.nonzero
        return found

    def warm_up(self, *forms: str) -> None:
        """Compile the kernels, see `Kernel.warm_up`."""
        for kernel in (self._factors, self._other):
            if kernel is not None:
                kernel.warm_up(*forms)

    @property
    def single(self) -> LargeRegressor:
        """The function of one sample or of a batch: the object itself."""
        return self

    def __call__(self, *arguments: ArrayLike) -> Array:
        """Compute the regressor of one sample or of a batch."""
        return self.general(*arguments)

    def general(self, *arguments: ArrayLike, out: Array | None = None) -> Array:
        """Compute the regressor of one sample or of a batch, see `Kernel.general`."""
        factors = self._factors.general(*arguments)
        if out is None:
            out = result_memory.empty((*factors.shape[:-2], *self.shape))
        if factors.ndim == 2:
            self._multiply(factors, out)
        else:
            block = max(1, BLOCK_BYTES // (8 * self.shape[0] * self.shape[1]))
            for start in range(0, len(factors), block):
                self._multiply(factors[start:start + block], out[start:start + block])
        if self._other is not None:
            out[..., self._rest] = self._other.general(*arguments)
        return out

    def pullback(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, cotangent: Array) -> Array:
        """Return the gradient of ``sum(cotangent * regressor)``, see `Dynamics`.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion; the base is fixed.
        cotangent : ndarray, shape (n, p) or (N, n, p)
            Factors of the regressor, held constant.

        Returns
        -------
        ndarray, shape (3, n) or (N, 3, n)
        """
        factors, known = self._factors.general(q, qd, qdd), np.isfinite(cotangent)
        cotangent = np.where(known, cotangent, np.nan)
        torques = cotangent[..., self._inertial]
        if not self._plain:
            torques = self._rows @ torques
        torques = torques * self._carries
        shape = np.broadcast_shapes(factors.shape[:-2], torques.shape[:-2])
        pulled = np.zeros((*shape, *factors.shape[-2:]))
        pulled[..., :self._bodies] = factors[..., self._wrench] @ np.swapaxes(torques, -1, -2)
        np.add.at(pulled, (..., self._wrench),  # type: ignore[arg-type]  # columns may repeat
                  factors[..., :self._bodies] @ torques)
        found = self._pullback_of(self._factors.spec, None).general(
            q, qd, qdd, pulled.reshape(*shape, -1))
        if self._other is not None:
            used = self._other.nonzero
            found = found + self._pullback_of(self._other.spec, used).general(
                q, qd, qdd, np.ascontiguousarray(cotangent[..., self._rest][..., used]))
        return np.asarray(found + np.where(known.all(axis=(-2, -1), keepdims=True), 0.0, np.nan))

    def _pullback_of(self, spec: KernelSpec, used: NDArray[np.bool_] | None) -> Kernel:
        """Return the gradient of some elements of a kernel's result; None: of all of them."""
        chosen = np.ones(spec.shape, bool) if used is None else used

        def function(q: Any, qd: Any, qdd: Any, g: Any) -> Any:
            return pullback(np.asarray(spec.function(q, qd, qdd))[chosen], g, (q, qd, qdd))

        key = f'{spec.key} pullback'
        return self._compiled._kernel_of(key, lambda: KernelSpec(
            key, (*spec.arguments, 'cotangent'), (*spec.sizes, int(chosen.sum())),
            (3, spec.sizes[0]), function))

    def _multiply(self, factors: Array, out: Array) -> None:
        """Write the inertial columns, products of twists and wrenches."""
        wrenches = factors[..., self._wrench]
        forces = np.swapaxes(factors[..., :self._bodies], -1, -2) @ wrenches
        forces *= self._carries
        if not self._plain:
            forces = self._rows[:, self._base:].T @ forces
        out[..., self._base:, self._inertial] = forces
        out[..., :self._base, self._inertial] = wrenches[..., :self._base, :]
