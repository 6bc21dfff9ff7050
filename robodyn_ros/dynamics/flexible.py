"""Arms with elastic gears: motor and link of a joint move apart (Kolyubin 2.3.3).

``M(q) qdd + c + g + friction = K (theta - q) + D (theta' - qd)`` for the links, and
``I_m theta'' + motor friction + K (theta - q) + D (theta' - qd) = tau`` for the motors, theta and
I_m as felt behind the gear. Motors couple with no other joint than their own (Spong's reduced
model).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.errors import ShapeError, ValueRangeError, check_type
from robodyn_ros.model import A_MODEL, MOTOR_FRICTION, PARAMETER_NAMES, ROTOR, Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

_NODES = 9  # samples of the gears' torque, through which a polynomial in time is laid
_WINDOW = 0.02  # s to either side of the state, in which they are taken
_SETTLING = 50  # iterations in which the links' deflection under gravity must converge
_SETTLED = 1e-12  # rad, change of the deflection in the last iteration
_SETTLED_ROUGHLY = 1e-6  # rad, accepted where it converges slowly


class ElasticTorque(NamedTuple):
    """Motor torque and motion that a link motion needs; shape (n,) each.

    Torque in N m; motor positions behind the gear in rad, and their derivatives in rad/s, rad/s^2.
    """

    torque: Array
    theta: Array
    theta_d: Array
    theta_dd: Array


class FlexibleDynamics:
    """Dynamics of a robot some joints of which are elastic.

    Parameters
    ----------
    model : Model
        The robot; a joint is elastic where `Model.stiffness` is finite, and its `Model.armature`
        is above 0 then.
    friction_width : float
        Width of the smooth sign of Coulomb friction, see `Dynamics`.

    Raises
    ------
    ValueRangeError
        No joint is elastic; an elastic joint has no rotor inertia, or follows another.
    """

    def __init__(self, model: Model, *, friction_width: float = 0.0):
        check_type('model', model, Model, A_MODEL)
        if model.body_joints != model.joint_names and set(model.body_joints) != set(
                model.joint_names):
            raise ValueRangeError('joints', 'some mimic others', 'joints that move on their own')
        order = [model.body_joints.index(name) for name in model.joint_names]
        stiffness = model.stiffness[order]
        self.elastic = np.flatnonzero(np.isfinite(stiffness))
        if not len(self.elastic):
            raise ValueRangeError('stiffness', 'infinite at every joint',
                                  'a stiffness in the motor YAML, N m/rad')
        self.model = model
        self.stiffness = stiffness[self.elastic]
        self.damping = model.stiffness_damping[order][self.elastic]
        self.motor_inertia = model.armature[order][self.elastic]
        if not (self.motor_inertia > 0).all():
            joint = model.joint_names[self.elastic[int(np.argmin(self.motor_inertia))]]
            raise ValueRangeError(f'rotor inertia of {joint}', 0.0,
                                  'above 0: the motor of an elastic joint moves on its own')
        chi = model.standard_parameters.reshape(-1, len(PARAMETER_NAMES)).copy()
        bodies = np.array(order)[self.elastic]
        self._motor_friction = chi[bodies][:, MOTOR_FRICTION]
        self._width = friction_width
        for parameter in (ROTOR, *MOTOR_FRICTION):
            chi[bodies, parameter] = 0.0
        self.links = Dynamics(model.with_standard_parameters(chi.ravel()),
                              friction_width=friction_width)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.model.n

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike,
                         qdddd: ArrayLike) -> ElasticTorque:
        """Return the motors' torque and motion that a motion of the links needs.

        Parameters
        ----------
        q, qd, qdd, qddd, qdddd : array-like, shape (n,)
            Link positions and four derivatives, rad or m and per s, s^2, s^3, s^4.

        Notes
        -----
        The gears' torque and its derivatives come from the links' inverse dynamics along the
        motion with these derivatives; nothing measured is differentiated. The gears' damping is
        left out: with it the motion of the motors depends on their past.
        """
        motion = [self._array(name, x) for name, x in zip(
            ('q', 'qd', 'qdd', 'qddd', 'qdddd'), (q, qd, qdd, qddd, qdddd), strict=True)]
        torque = self.links.inverse_dynamics(motion[0], motion[1], motion[2])
        rate, curve = self._torque_derivatives(motion)
        e = self.elastic
        theta, theta_d, theta_dd = (x.copy() for x in motion[:3])
        theta[e] += torque[e] / self.stiffness
        theta_d[e] += rate[e] / self.stiffness
        theta_dd[e] += curve[e] / self.stiffness
        result = torque.copy()
        result[e] += self.motor_inertia * theta_dd[e] + self._friction(theta_d[e])
        return ElasticTorque(result, theta, theta_d, theta_dd)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, theta: ArrayLike, theta_d: ArrayLike,
                         torque: ArrayLike) -> tuple[Array, Array]:
        """Return link and motor accelerations, shape (n,) both; rigid joints have the same.

        Parameters
        ----------
        q, qd, theta, theta_d : array-like, shape (n,)
            Positions and velocities of links and motors; those of a rigid joint's motor are not
            used.
        torque : array-like, shape (n,)
            Torques of the motors, N m or N.
        """
        q_, qd_, theta_, theta_d_, tau = (self._array(name, x) for name, x in zip(
            ('q', 'qd', 'theta', 'theta_d', 'torque'), (q, qd, theta, theta_d, torque),
            strict=True))
        e = self.elastic
        gear = self.stiffness * (theta_ - q_)[e] + self.damping * (theta_d_ - qd_)[e]
        felt = tau.copy()
        felt[e] = gear
        qdd = self.links.forward_dynamics(q_, qd_, felt)
        theta_dd = qdd.copy()
        theta_dd[e] = (tau[e] - gear - self._friction(theta_d_[e])) / self.motor_inertia
        return qdd, theta_dd

    def deflection(self, q: ArrayLike) -> Array:
        """Return ``theta - q``, shape (n,), for which the springs hold the links at rest at q."""
        result = np.zeros(self.n)
        gravity = self.links.gravity(self._array('q', q))
        result[self.elastic] = gravity[self.elastic] / self.stiffness
        return result

    def links_at_rest(self, theta: ArrayLike) -> Array:
        """Return the link positions, shape (n,), at rest while the motors are held at theta.

        Raises
        ------
        ValueRangeError
            The springs are too soft to hold the links against gravity.
        """
        held = self._array('theta', theta)
        q = held
        for _ in range(_SETTLING):
            before, q = q, held - self.deflection(q)
            if np.abs(q - before).max() < _SETTLED:
                return q
        if np.abs(q - before).max() < _SETTLED_ROUGHLY:
            return q
        raise ValueRangeError('stiffness', self.stiffness.tolist(),
                              'springs that hold the links against gravity')

    def natural_frequencies(self, q: ArrayLike, *, motors_locked: bool = False) -> Array:
        """Return the natural frequencies at a pose at rest, Hz, lowest first.

        Parameters
        ----------
        q : array-like, shape (n,)
            Pose of the links.
        motors_locked : bool
            Whether the motors are held, as by stiff position control; otherwise they move freely,
            and there is a frequency of about 0 for every motor. A mode that gravity makes
            unstable counts as 0.
        """
        q_, e = self._array('q', q), self.elastic
        eigh = package('scipy.linalg').eigh
        mass = self.links.mass_matrix(q_)
        stiffness = self._gravity_stiffness(q_)
        stiffness[e, e] += self.stiffness
        if motors_locked:
            free = e  # rigid joints are held as well
            squares = eigh(stiffness[np.ix_(free, free)], mass[np.ix_(free, free)],
                           eigvals_only=True)
        else:
            size = self.n + len(e)
            m, k = np.zeros((size, size)), np.zeros((size, size))
            m[:self.n, :self.n], k[:self.n, :self.n] = mass, stiffness
            motors = np.arange(self.n, size)
            m[motors, motors], k[motors, motors] = self.motor_inertia, self.stiffness
            k[e, motors] = k[motors, e] = -self.stiffness
            squares = eigh(k, m, eigvals_only=True)
        return np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)

    def _gravity_stiffness(self, q: Array) -> Array:
        """Derivative of gravity with respect to the positions, symmetric, shape (n, n)."""
        zero, rows = np.zeros_like(q), []
        for i in range(self.n):
            pulled = self.links.inverse_dynamics_pullback(
                q[None], zero[None], zero[None], np.eye(self.n)[i][None])
            rows.append(pulled[0, 0])
        matrix = np.array(rows)
        return np.asarray((matrix + matrix.T) / 2)

    def _torque_derivatives(self, motion: list[Array]) -> tuple[Array, Array]:
        """First and second derivative in time of the gears' torque along a motion."""
        s = _WINDOW * np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))
        powers = np.vander(s, 5, increasing=True) / np.array([1, 1, 2, 6, 24])
        q = powers @ np.array(motion)
        qd = powers[:, :4] @ np.array(motion[1:])
        qdd = powers[:, :3] @ np.array(motion[2:])
        torque = self.links.inverse_dynamics(q, qd, qdd)
        fit = np.linalg.solve(np.vander(s / _WINDOW, increasing=True), torque)
        return fit[1] / _WINDOW, 2 * fit[2] / _WINDOW**2

    def _friction(self, speed: Array) -> Array:
        viscous, coulomb, offset = self._motor_friction.T
        sign = np.sign(speed) if not self._width else speed / np.sqrt(
            speed**2 + self._width**2)
        return viscous * speed + coulomb * sign + offset

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = real_numbers(name, values)
        if array.shape != (self.n,):
            raise ShapeError(name, f'shape {array.shape}', f'({self.n},)')
        if not np.isfinite(array).all():
            raise ValueRangeError(name, array.tolist(), 'finite numbers')
        return array
