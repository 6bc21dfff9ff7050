"""Terms of robots with many joints, whose kernels grow only linearly with the number of joints.

The compiled kernels are straight-line code. That of the mass matrix grows with the square of the
number of joints, and that of its elimination with the cube, so beyond `LARGE` joints they would
take minutes to compile. There, a kernel computes the twist of each body for a unit velocity of its
joint, and the wrench that gives what the body carries a unit acceleration; products of matrices in
NumPy make the mass matrix of them. Where the articulated-body algorithm is impossible (mimic
joints, rotors that spin as bodies of their own), LAPACK solves for the accelerations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.catalogue import SLOPE
from robodyn_ros.dynamics.forward_dynamics import SingularMassMatrixError
from robodyn_ros.dynamics.joint_terms import armature_matrix
from robodyn_ros.dynamics.mass_solver import require_regular, uses_articulated
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from robodyn_ros.dynamics.compiled_model import CompiledModel

LARGE = 64  # velocities; a chain of so many joints compiles its mass matrix in about 10 s


class LargeRobot:
    """Functions of a large robot, with the signatures of the kernels that they replace.

    Parameters
    ----------
    compiled : CompiledModel
        The robot.

    Attributes
    ----------
    names : tuple of str
        The functions that it replaces.
    """

    names: tuple[str, ...] = ('mass_matrix', 'terms', 'coriolis_matrix')
    solved = ('forward_dynamics', 'moving_forward_dynamics', 'velocity_change')

    def __init__(self, compiled: CompiledModel):
        self._compiled, self._model = compiled, compiled.model
        tree = compiled.catalogue.light
        if not uses_articulated(self._model, tree):  # else the kernels of `solved` grow linearly
            self.names += self.solved
        base = np.eye(6, tree.n) if tree.floating else np.zeros((0, tree.n))
        first = len(base)
        self._rows = np.concatenate([base, tree.row])
        # which bodies carry each body, itself included: they have smaller numbers
        self._carried_by = np.zeros((len(self._rows),) * 2)
        self._carried_by[:, :first] = 1.0
        for body in range(len(tree.row)):
            self._carried_by[first + body, [first + i for i in tree.ancestors(body)]] = 1.0
        self._carried_by = np.tril(self._carried_by)
        self._plain = np.array_equal(self._rows, np.eye(tree.n))
        self._armature = np.asarray(armature_matrix(self._model), np.float64)

    def function(self, name: str) -> Callable[..., Array]:
        """Return one of the functions in `names`."""
        if name == 'forward_dynamics':
            require_regular(self._model)
        found: Callable[..., Array] = getattr(self, name)
        return found

    def warm_up(self, name: str) -> None:
        """Compile the kernels of a function."""
        pose = np.ones(self._model.nq)
        still = np.zeros(self._model.n)
        name = 'terms' if name == 'velocity_change' else name  # which needs the same kernels
        self.function(name)(*(pose, still, still, np.zeros(9))[:{
            'mass_matrix': 1, 'forward_dynamics': 3, 'moving_forward_dynamics': 4}.get(name, 2)])

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q), shape (n, n) or (N, n, n)."""
        factors = self._compiled.kernel('mass_factors').single(q)
        lower = np.swapaxes(factors[..., 1, :, :], -1, -2) @ factors[..., 0, :, :]
        lower = lower * self._carried_by
        whole = lower + np.swapaxes(np.tril(lower, -1), -1, -2)
        if not self._plain:
            whole = self._rows.T @ whole @ self._rows
        return np.asarray(whole + self._armature)

    def terms(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """g, c, friction and M, one after the other; shape (3 n + n^2,) or (N, 3 n + n^2)."""
        kernel = self._compiled.kernel
        q, qd = check_array(q, self._model.nq, 'q'), check_array(qd, self._model.n, 'qd')
        coriolis = kernel('coriolis').single(q, qd)
        friction = kernel('friction').single(
            *(q, qd) if self._model.friction_follows_load else (qd,))
        parts = [kernel('gravity').single(q), coriolis, friction,
                 self.mass_matrix(q).reshape(*q.shape[:-1], -1)]
        return np.concatenate([np.broadcast_to(part, (*coriolis.shape[:-1], part.shape[-1]))
                               for part in parts], axis=-1)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Array:
        """The solution qdd of ``M qdd = tau - c - g - friction``."""
        bias = self._compiled.kernel('inverse_dynamics').single(q, qd, np.zeros(self._model.n))
        return self._accelerations(q, tau, bias)

    def moving_forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike,
                                base: ArrayLike) -> Array:
        """The same for a base whose motion is given."""
        bias = self._compiled.kernel('moving_inverse_dynamics').single(
            q, qd, np.zeros(self._model.n), base)
        return self._accelerations(q, tau, bias)

    def velocity_change(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, damping: ArrayLike,
                        step: ArrayLike) -> Array:
        """The solution of ``(M + step D) dv = step (tau - c - g - friction)``, see `Catalogue`."""
        kernel, seconds = self._compiled.kernel('friction').single, np.asarray(step)[..., None]
        places = (q,) if self._model.friction_follows_load else ()
        friction, above, below = (kernel(*places, np.asarray(qd) + change)
                                  for change in (0.0, SLOPE, -SLOPE))
        slope = np.maximum((above - below) / (2 * SLOPE), 0.0) + damping
        bias = self._compiled.kernel('coriolis').single(q, qd) \
            + self._compiled.kernel('gravity').single(q)
        matrix = self.mass_matrix(q) + seconds * slope[..., None] * np.eye(self._model.n)
        force = np.asarray(step) * (np.asarray(tau) - bias - friction)
        change = np.linalg.solve(matrix, force[..., None])[..., 0]
        return np.asarray(np.where(np.isfinite(matrix).all(axis=(-2, -1))[..., None], change,
                                   np.nan))

    def _accelerations(self, q: ArrayLike, tau: ArrayLike, bias: Array) -> Array:
        tau = check_array(tau, self._model.n, 'tau')
        mass = self.mass_matrix(q)
        massless = np.argwhere(np.diagonal(mass, axis1=-2, axis2=-1) == 0.0)
        if len(massless):
            place = int(massless[0, -1])
            raise SingularMassMatrixError(place, self._model.velocity_names[place])
        return np.asarray(np.linalg.solve(mass, (tau - bias)[..., None])[..., 0])

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd), column by column from the bilinear form of the velocity terms."""
        q, qd = check_array(q, self._model.nq, 'q'), check_array(qd, self._model.n, 'qd')
        if q.ndim == qd.ndim == 1:
            columns = self._compiled.kernel('velocity_terms').single(
                q, qd, np.eye(self._model.n))
            return np.asarray(columns.T)
        count = max(len(array) for array in (q, qd) if array.ndim == 2)
        states = (np.broadcast_to(array, (count, array.shape[-1])) for array in (q, qd))
        return np.array([self.coriolis_matrix(*map(np.ascontiguousarray, one))
                         for one in zip(*states, strict=True)])
