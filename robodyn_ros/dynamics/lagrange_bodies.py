"""The rigid bodies and rotors of a robot in one pose, for Lagrange's equation.

All vectors are in the axes of the root frame. The velocity of joint a of body a is s_a, so the
twist of body i is ``J_i s``; joints that mimic others move by ``s = row @ qd``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.spatial import Array, axis_rotation, inertia_tensor, skew


class RigidBodies:
    """The bodies of a model.

    Parameters
    ----------
    model : Model
        The robot; its base is fixed.
    """

    def __init__(self, model: Model):
        self.model = model
        count = len(model.parent)
        # carries[i, a]: whether joint a moves body i
        self.carries = np.zeros((count, count), bool)
        for i, parent in enumerate(model.parent):
            if parent >= 0:
                self.carries[i] = self.carries[parent]
            self.carries[i, i] = True

    def pose(self, q: Array) -> Pose:
        """Return the bodies at joint positions q, shape (n,)."""
        model = self.model
        rotations: list[Array] = []
        origins: list[Array] = []
        for i, parent in enumerate(model.parent):
            rotation, origin = ((rotations[parent], origins[parent]) if parent >= 0
                                else (np.eye(3), np.zeros(3)))
            origin = origin + rotation @ model.translation[i]
            rotation = rotation @ model.rotation[i]
            position = model.row[i] @ q + model.offset[i]
            if model.prismatic[i]:
                origin = origin + rotation @ model.axis[i] * position
            else:
                rotation = rotation @ axis_rotation(model.axis[i], position)
            rotations.append(rotation)
            origins.append(origin)
        return Pose(self, np.array(rotations), np.array(origins))


@dataclass(frozen=True, eq=False)
class Pose:
    """The bodies in one pose.

    Attributes
    ----------
    bodies : RigidBodies
        The bodies.
    rotation, origin : ndarray, shape (b, 3, 3), (b, 3)
        Axes and origins (m) of the body frames in the root frame.
    """

    bodies: RigidBodies
    rotation: Array
    origin: Array

    def twists(self, body: int, point: Array) -> tuple[Array, Array]:
        """Jacobians of a point and of the rotation of a body, shape (3, b) each.

        ``J_v,a = z_a x (p - p_a)`` and ``J_w,a = z_a`` for a revolute joint, ``J_v,a = z_a`` and
        ``J_w,a = 0`` for a prismatic one, if joint a moves the body (Velagić 4.19-4.21).

        Parameters
        ----------
        body : int
            The body; -1 is the root, which does not move.
        point : ndarray, shape (3,)
            A point of this body in the root frame, m.
        """
        model = self.bodies.model
        linear, angular = np.zeros((2, 3, len(model.parent)))
        if body >= 0:
            for a in np.flatnonzero(self.bodies.carries[body]):
                axis = self.rotation[a] @ model.axis[a]
                if model.prismatic[a]:
                    linear[:, a] = axis
                else:
                    linear[:, a] = np.cross(axis, point - self.origin[a])
                    angular[:, a] = axis
        return linear, angular

    def twist_derivatives(self, body: int, c: int) -> tuple[Array, Array]:
        """Derivatives of `twists` of a body's origin w.r.t. joint position c, (3, b) each."""
        model, carries = self.bodies.model, self.bodies.carries
        linear, angular = np.zeros((2, 3, len(model.parent)))
        if body < 0 or not carries[body, c]:
            return linear, angular
        moved = self.twists(body, self.origin[body])[0][:, c]
        for a in np.flatnonzero(carries[body]):
            axis = self.rotation[a] @ model.axis[a]
            axis_moved, origin_moved = np.zeros((2, 3))
            if carries[a, c]:  # joint c moves joint a
                shift, turn = self.twists(int(a), self.origin[a])
                axis_moved, origin_moved = np.cross(turn[:, c], axis), shift[:, c]
            if model.prismatic[a]:
                linear[:, a] = axis_moved
            else:
                linear[:, a] = (np.cross(axis_moved, self.origin[body] - self.origin[a])
                                + np.cross(axis, moved - origin_moved))
                angular[:, a] = axis_moved
        return linear, angular

    def inertia(self, body: int) -> tuple[float, Array, Array]:
        """Mass, first moment (3,) and inertia tensor (3, 3) about the body frame's origin."""
        parameters, turn = self.bodies.model.inertial_parameters[body], self.rotation[body]
        return (float(parameters[6]), turn @ parameters[7:],
                turn @ inertia_tensor(parameters) @ turn.T)

    def mass_matrix(self) -> Array:
        """M of bodies and spinning rotors, shape (n, n).

        The kinetic energy of a body is ``m v'v / 2 + v'(w x h) + w' I w / 2`` for the velocity v
        of its frame's origin, where h is its first moment and I its tensor about this origin. If
        the origin is the centre of mass, h is zero and the sum is that of Velagić 4.34.
        """
        model = self.bodies.model
        total = np.zeros((len(model.parent), len(model.parent)))
        for i in range(len(model.parent)):
            (v, w), (m, h, inertia) = self.twists(i, self.origin[i]), self.inertia(i)
            coupling = -v.T @ skew(h) @ w
            total += m * v.T @ v + coupling + coupling.T + w.T @ inertia @ w
        result = model.row.T @ total @ model.row
        for i in self._rotors():
            ratio, spin, _, carried = self._rotor(i)
            coupling = np.outer(spin, carried) * ratio
            result += model.armature[i] / ratio**2 * (
                ratio**2 * np.outer(spin, spin) + coupling + coupling.T)
        return np.asarray(result, np.float64)

    def mass_matrix_derivatives(self) -> Array:
        """Derivatives of M, shape (n, n, n); entry k is the derivative with respect to q_k."""
        model = self.bodies.model
        by_joint = np.array([model.row.T @ self._derivative(c) @ model.row
                             for c in range(len(model.parent))]).reshape(-1, model.n, model.n)
        for i in self._rotors():
            ratio, spin, axis, _ = self._rotor(i)
            w = self.twists(model.carrier[i], np.zeros(3))[1]
            for c in range(len(model.parent)):
                turned = (np.cross(w[:, c], axis) @ w
                          + axis @ self.twist_derivatives(model.carrier[i], c)[1]) @ model.row
                coupling = np.outer(spin, turned) * ratio
                by_joint[c] += model.armature[i] / ratio**2 * (coupling + coupling.T)
        return np.asarray(np.einsum('ck,cij->kij', model.row, by_joint))

    def _derivative(self, c: int) -> Array:
        """Derivative of the bodies' part of M in s with respect to joint position c, (b, b)."""
        model = self.bodies.model
        total = np.zeros((len(model.parent), len(model.parent)))
        for i in np.flatnonzero(self.bodies.carries[:, c]).tolist():
            (v, w), (m, h, inertia) = self.twists(i, self.origin[i]), self.inertia(i)
            dv, dw = self.twist_derivatives(i, c)
            turn = skew(w[:, c])  # dR/ds_c = S(w_c) R
            half = (m * v.T @ dv - dv.T @ skew(h) @ w - v.T @ skew(h) @ dw
                    - v.T @ skew(turn @ h) @ w + dw.T @ inertia @ w + w.T @ turn @ inertia @ w)
            total += half + half.T
        return total

    def _rotors(self) -> list[int]:
        """Return the joints whose rotor spins about a known axis."""
        return [i for i, axis in enumerate(self.bodies.model.spin_axis) if not np.isnan(axis[0])]

    def _rotor(self, i: int) -> tuple[float, Array, Array, Array]:
        """Gear ratio, row of the motor, spin axis, and the carrier's turning about it, (n,).

        A rotor turns by ``w_m = w + k_r qd_m z_m`` (Velagić 4.25). Its carrier's inertia includes
        the rotor at rest, so what the spinning adds is
        ``I_m (k_r^2 qd_m^2 + 2 k_r qd_m z_m'w) / 2``.
        """
        model, carrier = self.bodies.model, self.bodies.model.carrier[i]
        axis = (self.rotation[carrier] if carrier >= 0 else np.eye(3)) @ model.spin_axis[i]
        angular = self.twists(carrier, np.zeros(3))[1]
        return float(model.gear_ratio[i]), model.motor_row[i], axis, axis @ angular @ model.row

    def gravity(self) -> Array:
        """``dP/dq``, shape (n,): ``-sum g0'(m_i J_v + J_w x h_i)`` (Velagić 4.42)."""
        model = self.bodies.model
        total = np.zeros(len(model.parent))
        for i in range(len(model.parent)):
            (v, w), (m, h, _) = self.twists(i, self.origin[i]), self.inertia(i)
            total -= model.gravity @ (m * v - skew(h) @ w)
        return np.asarray(total @ model.row)

    def potential_energy(self) -> float:
        """``P = -sum g0'(m_i p_i + h_i)``, J (Velagić 4.36)."""
        model = self.bodies.model
        total = 0.0
        for i in range(len(model.parent)):
            m, h, _ = self.inertia(i)
            total -= float(model.gravity @ (m * self.origin[i] + h))
        return total

    def jacobian(self, body: int, point: Array) -> Array:
        """Jacobian of a point given in the frame of a body, shape (6, n)."""
        if body < 0:
            return np.zeros((6, self.bodies.model.n))
        twists = self.twists(body, self.origin[body] + self.rotation[body] @ point)
        return np.asarray(np.concatenate(twists) @ self.bodies.model.row)
