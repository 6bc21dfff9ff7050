"""`LagrangeEuler`: the equations of motion from the energies of the bodies, without a recursion.

The second formulation of the texts (Velagić 4.1-4.53, Kolyubin 2.20-2.30, Luh-Walker-Paul
4.1-4.29). Each formula is written as it is printed, so it is slow and easy to follow. Nothing of
the recursions, of their compiler or of their regrouped parameters is used, so that a comparison
with `Dynamics` checks both (`compare_formulations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.joint_terms import (
    armature_matrix,
    friction_torque,
    friction_widths,
)
from robodyn_ros.dynamics.lagrange_bodies import Pose, RigidBodies
from robodyn_ros.dynamics.quantities import Energy, Terms
from robodyn_ros.dynamics.reactions import wrenches_by_link
from robodyn_ros.errors import check_type
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.model import A_MODEL, Model
from robodyn_ros.spatial import Array

SWEEPS = 6  # iterations for friction that depends on the transmitted torque, as in `Dynamics`


class VelocityTerms(NamedTuple):
    """The two parts of ``C(q, qd) qd``, shape of qd each, N m or N."""

    centrifugal: Array
    coriolis: Array


class LagrangeEuler:
    """The equations of motion of one robot with a fixed base, from Lagrange's equation.

    Kinetic energy gives M, the partial derivatives of M give the Christoffel symbols, and the
    potential energy gives g. All derivatives are exact. A call takes milliseconds, where
    `Dynamics` takes less than a microsecond; use this class to check, to teach, and to look at
    single coefficients.

    Methods that `Dynamics` has too take the same arguments and return the same arrays: one state,
    shape (n,), or a batch, shape (N, n).

    Parameters
    ----------
    model : Model
        The robot. Its base must be fixed; closed loops are left open.
    friction_width : float, optional
        Width of the smooth sign of Coulomb friction, see `Dynamics`.
    """

    def __init__(self, model: Model, *, friction_width: float | None = None):
        check_type('model', model, Model, A_MODEL)
        model.require_fixed_base('LagrangeEuler')
        self.model, self.friction_width = model, friction_width
        self._bodies = RigidBodies(model)
        self._armature = np.asarray(armature_matrix(model), np.float64)

    def __repr__(self) -> str:
        """Name and joints."""
        return f'<LagrangeEuler of {self.model!r}>'

    @property
    def n(self) -> int:
        """Number of independent joints."""
        return self.model.n

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of these joints, in the order of all arrays."""
        return self.model.joint_names

    # from the kinetic energy ------------------------------------------------------------------

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q), shape (n, n) or (N, n, n): ``sum J_i' I_i J_i`` of the bodies and their rotors.

        Kolyubin 2.27, Velagić 4.34.
        """
        return self._each(lambda pose: pose.mass_matrix() + self._armature, q)

    def mass_matrix_derivatives(self, q: ArrayLike) -> Array:
        """``dM_ij / dq_k`` at [k, i, j], shape (n, n, n) or (N, n, n, n)."""
        return self._each(Pose.mass_matrix_derivatives, q)

    def christoffel_symbols(self, q: ArrayLike) -> Array:
        """Christoffel symbols of the first kind c_ijk at [i, j, k], shape (n, n, n).

        ``c_ijk = (dM_kj/dq_i + dM_ki/dq_j - dM_ij/dq_k) / 2`` (Kolyubin 2.30). The last index is
        the equation: joint k feels the torque ``sum c_ijk qd_i qd_j``. Velagić 4.48 writes the
        index of the equation first. For N states, shape (N, n, n, n).
        """
        d = self.mass_matrix_derivatives(q)  # d[k, i, j]
        return 0.5 * (np.einsum('...ikj->...ijk', d) + np.einsum('...jki->...ijk', d)
                      - np.einsum('...kij->...ijk', d))

    def velocity_coefficients(self, q: ArrayLike) -> Array:
        """``h_ijk = dM_ij/dq_k - dM_jk/dq_i / 2`` at [i, j, k], shape (n, n, n) or (N, n, n, n).

        The first index is the equation: joint i feels ``sum h_ijk qd_j qd_k`` (Velagić 4.43-4.44,
        Luh-Walker-Paul 4.28-4.29). Unlike c_ijk, single h_ijk are not symmetric in j and k; the
        sums over both orders agree.
        """
        d = self.mass_matrix_derivatives(q)
        return np.asarray(np.einsum('...kij->...ijk', d) - 0.5 * np.einsum('...ijk->...ijk', d))

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd) with ``C_kj = sum_i c_ijk qd_i``, shape (n, n) or (N, n, n).

        With this choice ``dM/dt - 2 C`` is skew-symmetric (Kolyubin 2.29-2.30, Velagić 4.47-4.53).
        """
        qd = check_array(qd, self.n, 'qd')
        return np.asarray(np.einsum('...ijk,...i->...kj', self.christoffel_symbols(q), qd))

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd) qd, shape of qd, N m or N."""
        qd = check_array(qd, self.n, 'qd')
        return np.asarray(np.einsum('...ijk,...i,...j->...k', self.christoffel_symbols(q), qd, qd))

    def velocity_terms(self, q: ArrayLike, qd: ArrayLike) -> VelocityTerms:
        """Centrifugal and Coriolis torques, whose sum is `coriolis`; shape of qd each.

        ``h_ijj qd_j^2`` is the centrifugal torque that the velocity of joint j causes at joint i;
        ``h_ijk qd_j qd_k`` with different j and k is a Coriolis torque (Velagić 4.43,
        Luh-Walker-Paul 4.28).
        """
        qd = check_array(qd, self.n, 'qd')
        h = self.velocity_coefficients(q)
        centrifugal = np.einsum('...ijj,...j->...i', h, qd**2)
        return VelocityTerms(np.asarray(centrifugal), np.asarray(
            np.einsum('...ijk,...j,...k->...i', h, qd, qd) - centrifugal))

    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Generalised momentum M qd, shape of qd."""
        return np.asarray(np.einsum('...ij,...j->...i', self.mass_matrix(q),
                                    check_array(qd, self.n, 'qd')))

    # from the potential energy ------------------------------------------------------------------

    def gravity(self, q: ArrayLike) -> Array:
        """``g_i = dP/dq_i = -sum m_j g0' J_vj,i``, shape of q, N m or N (Velagić 4.42)."""
        return self._each(Pose.gravity, q) + self._springs(q)[0]

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Kinetic energy ``qd' M qd / 2`` and potential energy, J; floats or shape (N,)."""
        kinetic = 0.5 * np.einsum('...i,...i->...', check_array(qd, self.n, 'qd'),
                                  self.momentum(q, qd))
        potential = self._each(Pose.potential_energy, q) + self._springs(q)[1]
        if kinetic.ndim or potential.ndim:
            return Energy(kinetic, potential)
        return Energy(float(kinetic), float(potential))

    def _springs(self, q: ArrayLike) -> tuple[Array, Array]:
        """Return torque and potential energy of springs and torque ripple at the joints."""
        row, (linear, sine, cosine) = self.model.row, self.model.spring.T
        position = check_array(q, self.n, 'q') @ row.T + self.model.offset
        s, c = np.sin(position), np.cos(position)
        torque = linear * position + sine * s + cosine * c
        energy = (0.5 * linear * position**2 - sine * c + cosine * s).sum(axis=-1)
        harmonic, sine, cosine = np.moveaxis(self.model.ripple, -1, 0)
        turn = harmonic * position[..., None]
        s, c = np.sin(turn), np.cos(turn)
        torque = torque + (sine * s + cosine * c).sum(axis=-1)
        ripple = (cosine * s - sine * c) / np.maximum(harmonic, 1)
        return torque @ row, energy + ripple.sum(axis=(-2, -1))

    # the equations of motion --------------------------------------------------------------------

    def friction(self, qd: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Friction of links and motors, shape of qd; see `Dynamics.friction`."""
        qd = check_array(qd, self.n, 'qd')
        loads = np.zeros_like(qd) if q is None else self.coriolis(q, qd) + self.gravity(q)
        return self._friction(qd, loads)

    def terms(self, q: ArrayLike, qd: ArrayLike) -> Terms:
        """M, C qd, g and friction."""
        return Terms(self.mass_matrix(q), self.coriolis(q, qd), self.gravity(q),
                     self.friction(qd, q))

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                         f_ext: Mapping[str, ArrayLike] | None = None) -> Array:
        """``tau = M qdd + C qd + g + friction - sum J' F``, shape of q; see `Dynamics`."""
        qd, qdd = check_array(qd, self.n, 'qd'), check_array(qdd, self.n, 'qdd')
        links = np.einsum('...ij,...j->...i', self.mass_matrix(q) - self._armature, qdd)
        loads = links + self.coriolis(q, qd) + self.gravity(q)
        return np.asarray(loads + qdd @ self._armature + self._friction(qd, loads)
                          - self._external(q, f_ext or {}))

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike,
                         f_ext: Mapping[str, ArrayLike] | None = None) -> Array:
        """The solution qdd of ``M qdd = tau + sum J' F - C qd - g - friction``, shape of q."""
        tau = check_array(tau, self.n, 'tau') + self._external(q, f_ext or {})
        qd, mass = check_array(qd, self.n, 'qd'), self.mass_matrix(q)
        bias = self.coriolis(q, qd) + self.gravity(q)
        loads = bias
        qdd = np.zeros_like(bias)
        for _ in range(1 + SWEEPS * self.model.friction_follows_load):
            right = tau - bias - self._friction(qd, loads)
            qdd = np.asarray(np.linalg.solve(mass, right[..., None])[..., 0], np.float64)
            loads = bias + np.einsum('...ij,...j->...i', mass - self._armature, qdd)
        return qdd

    def jacobian(self, q: ArrayLike, link: str) -> Array:
        """Jacobian of a link, shape (6, n) or (N, 6, n); see `Dynamics.jacobian`."""
        frame = self.model.link_frame(link)
        return self._each(lambda pose: pose.jacobian(frame.body, frame.translation), q)

    # helpers ------------------------------------------------------------------------------------

    def _each(self, function: Callable[[Pose], Any], q: ArrayLike) -> Array:
        """Return the values of a function of one pose, for one state or for a batch."""
        q = check_array(q, self.n, 'q')
        if q.ndim == 1:
            return np.asarray(function(self._bodies.pose(q)), np.float64)
        if not len(q):  # the shape of the values follows from any pose
            shape = np.shape(function(self._bodies.pose(np.zeros(self.n))))
            return np.zeros((0, *shape))
        return np.array([function(self._bodies.pose(one)) for one in q], np.float64)

    def _friction(self, qd: Array, loads: Array) -> Array:
        qd, loads = np.broadcast_arrays(qd, loads)
        if qd.ndim == 1:
            return np.asarray(friction_torque(self.model, qd, friction_widths(
                self.model, self.friction_width), loads), np.float64)
        return np.array([self._friction(*one) for one in zip(qd, loads, strict=True)]
                        ).reshape(qd.shape)

    def _external(self, q: ArrayLike, f_ext: Mapping[str, ArrayLike]) -> Array:
        total: Any = np.zeros(self.n)
        for link, wrench in wrenches_by_link(f_ext):
            total = total + np.einsum('...ij,...i->...j', self.jacobian(q, link),
                                      check_array(wrench, 6, f'f_ext[{link!r}]'))
        return np.asarray(total, np.float64)
