"""Dynamics of robots with elastic gears, whose motors and links move separately (Kolyubin 2.3.3).

``M(q) qdd + c + g + friction = K (theta - q) + D (theta' - qd)`` for the links, and
``I_m theta'' + motor friction + K (theta - q) + D (theta' - qd) = tau`` for the motors, with theta
and I_m seen from the output side of the gear. A motor is coupled only with its own joint (Spong's
reduced model).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.dynamics import Dynamics
from robodyn_ros.dynamics.joint_terms import friction_widths
from robodyn_ros.dynamics.reactions import Wrenches
from robodyn_ros.errors import ShapeError, UnknownNameError, ValueRangeError, check_type
from robodyn_ros.kernels import smooth_sign
from robodyn_ros.model import A_MODEL, MOTOR_FRICTION, PARAMETER_NAMES, ROTOR, Model
from robodyn_ros.numerics import real_numbers
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

_NODES = 9  # samples of the gears' torque that a polynomial in time interpolates
_WINDOW = 0.02  # s, time before and after the state in which the samples are taken
_SETTLING = 100  # iterations in which the links must come to rest
_SETTLED = 1e-11  # rad or m, step that ends the iterations
_LARGEST_STEP = 0.3  # rad or m
_DIFFERENCE = 1e-5  # rad or m, for the derivative of gravity
_SOFTEST = 1e-6  # smallest stiffness that is used, relative to the largest one
# methods of the links that each method calls
_NEEDED = {'inverse_dynamics': ('inverse_dynamics',), 'forward_dynamics': ('forward_dynamics',),
           'deflection': ('gravity',), 'links_at_rest': ('gravity',),
           'natural_frequencies': ('mass_matrix', 'inverse_dynamics_pullback')}


class ElasticTorque(NamedTuple):
    """Motor torque and motor motion that a link motion requires; shape (n,) each.

    The torque is in N m. Motor positions are seen from the output side of the gear, in rad, with
    their derivatives in rad/s and rad/s^2.
    """

    torque: Array
    theta: Array
    theta_d: Array
    theta_dd: Array


class FlexibleDynamics:
    """Dynamics of a robot with elastic joints.

    Parameters
    ----------
    model : Model
        The robot. A joint is elastic if its `Model.stiffness` is finite; its `Model.armature` must
        then be above 0.
    friction_width : float, optional
        Width of the smooth sign of Coulomb friction, see `Dynamics`.

    Raises
    ------
    ValueRangeError
        No joint is elastic, an elastic joint has no rotor inertia, or a joint mimics another.
    """

    def __init__(self, model: Model, *, friction_width: float | None = None):
        check_type('model', model, Model, A_MODEL)
        model.require_fixed_base('FlexibleDynamics')
        if model.body_joints != model.joint_names and set(model.body_joints) != set(
                model.joint_names):
            raise ValueRangeError('joints', 'some mimic others', 'joints without <mimic>')
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
        self._widths = friction_widths(model, friction_width).motor[bodies]
        for parameter in (ROTOR, *MOTOR_FRICTION):
            chi[bodies, parameter] = 0.0
        self.links = Dynamics(model.with_standard_parameters(chi.ravel()),
                              friction_width=friction_width)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.model.n

    def warm_up(self, *names: str) -> None:
        """Compile the kernels of these methods now instead of at their first call.

        Kernels for wrenches on links and for a moving base are compiled when they are needed.

        Raises
        ------
        UnknownNameError
            There is no such method.
        """
        for name in names:
            if name not in _NEEDED:
                raise UnknownNameError('method', name, _NEEDED)
            self.links.warm_up(*_NEEDED[name])
            if name == 'inverse_dynamics':  # of samples in time
                self.links.kernel(name).warm_up('batch')

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike,
                         qdddd: ArrayLike, *,
                         f_ext: Wrenches | Callable[[float], Wrenches] | None = None,
                         base_motion: BaseMotion | Callable[[float], BaseMotion] | None = None,
                         ) -> ElasticTorque:
        """Return the torque and motion of the motors that a motion of the links requires.

        Parameters
        ----------
        q, qd, qdd, qddd, qdddd : array-like, shape (n,)
            Link positions and their first four time derivatives, rad or m, s.
        f_ext : mapping of str to array-like, or callable, optional
            Wrenches that the environment exerts on links, see `Dynamics.inverse_dynamics`. Motors
            must follow their changes: a function of the time after this state, s, returns the
            wrenches from 0.02 s before it to 0.02 s after it. A mapping means constant wrenches.
        base_motion : BaseMotion or callable, optional
            Motion of the base; again, a function of the time after this state if it changes.

        Notes
        -----
        The time derivatives of the gears' torque are computed from the inverse dynamics of the
        links along the given motion; measurements are not differentiated. The damping of the gears
        is neglected, because with it the motion of the motors would depend on its history.
        """
        motion = [self._array(name, x) for name, x in zip(
            ('q', 'qd', 'qdd', 'qddd', 'qdddd'), (q, qd, qdd, qddd, qdddd), strict=True)]
        torque, rate, curve = self._torque_derivatives(motion, f_ext, base_motion)
        e = self.elastic
        theta, theta_d, theta_dd = (x.copy() for x in motion[:3])
        theta[e] += torque[e] / self.stiffness
        theta_d[e] += rate[e] / self.stiffness
        theta_dd[e] += curve[e] / self.stiffness
        result = torque.copy()
        result[e] += self.motor_inertia * theta_dd[e] + self._friction(theta_d[e])
        return ElasticTorque(result, theta, theta_d, theta_dd)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, theta: ArrayLike, theta_d: ArrayLike,
                         torque: ArrayLike, *, f_ext: Wrenches | None = None,
                         base_motion: BaseMotion | None = None) -> tuple[Array, Array]:
        """Return link and motor accelerations, shape (n,) each; in rigid joints they are equal.

        Parameters
        ----------
        q, qd, theta, theta_d : array-like, shape (n,)
            Positions and velocities of links and motors; those of the motors of rigid joints are
            ignored.
        torque : array-like, shape (n,)
            Torques of the motors, N m or N.
        f_ext, base_motion
            Wrenches on links and motion of the base, see `Dynamics.inverse_dynamics`.
        """
        q_, qd_, theta_, theta_d_, tau = (self._array(name, x) for name, x in zip(
            ('q', 'qd', 'theta', 'theta_d', 'torque'), (q, qd, theta, theta_d, torque),
            strict=True))
        e = self.elastic
        gear = self.stiffness * (theta_ - q_)[e] + self.damping * (theta_d_ - qd_)[e]
        on_links = tau.copy()
        on_links[e] = gear
        qdd = self.links.forward_dynamics(q_, qd_, on_links, f_ext, base_motion=base_motion)
        theta_dd = qdd.copy()
        theta_dd[e] = (tau[e] - gear - self._friction(theta_d_[e])) / self.motor_inertia
        return qdd, theta_dd

    def deflection(self, q: ArrayLike, *, f_ext: Wrenches | None = None,
                   base_motion: BaseMotion | None = None) -> Array:
        """Return ``theta - q``, shape (n,), with which the springs hold the links at rest at q.

        Parameters
        ----------
        q : array-like, shape (n,)
            Pose of the links.
        f_ext, base_motion
            Wrenches on links and a steady motion of the base, see `Dynamics.inverse_dynamics`.
        """
        result, pose, still = np.zeros(self.n), self._array('q', q), np.zeros(self.n)
        load = self.links.gravity(pose)
        if f_ext is not None or base_motion is not None:
            load = load - self.links.inverse_dynamics(pose, still, still) + \
                self.links.inverse_dynamics(pose, still, still, f_ext, base_motion=base_motion)
        result[self.elastic] = load[self.elastic] / self.stiffness
        return result

    def links_at_rest(self, theta: ArrayLike, *, f_ext: Wrenches | None = None,
                      base_motion: BaseMotion | None = None) -> Array:
        """Return the link positions at rest, shape (n,), for motors that are held at theta.

        ``f_ext`` and ``base_motion`` are those of `deflection`.

        Raises
        ------
        ValueRangeError
            The springs are too soft to hold the links against gravity.

        Notes
        -----
        Newton's method, which goes downhill in the potential energy where it is not convex, so
        that it finds stable poses only.
        """
        held = self._array('theta', theta)

        def torque(bent: Array) -> Array:
            """Return the torque that disturbs the rest of links whose springs are bent so far."""
            q = held.copy()
            q[self.elastic] += bent
            load = self.deflection(q, f_ext=f_ext, base_motion=base_motion)[self.elastic]
            return self.stiffness * (bent + load)

        bent = np.zeros(len(self.elastic))
        steps = _DIFFERENCE * np.eye(len(bent))
        for _ in range(_SETTLING):
            slope = np.array([torque(bent + step) - torque(bent - step) for step in steps])
            values, axes = np.linalg.eigh((slope + slope.T) / (4 * _DIFFERENCE))
            firmness = np.maximum(np.abs(values), _SOFTEST * np.abs(values).max())
            step = axes @ (axes.T @ torque(bent) / firmness)
            bent = bent - step * min(1.0, _LARGEST_STEP / max(np.abs(step).max(), _SETTLED))
            if np.abs(step).max() < _SETTLED:
                q = held.copy()
                q[self.elastic] += bent
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
            Whether the motors are held, for example by stiff position control. Otherwise they
            move freely, which gives a frequency of about 0 for every motor. The frequency of a
            mode that gravity makes unstable is 0.
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
        """Return the derivative of gravity w.r.t. the positions, a symmetric matrix, (n, n)."""
        zero, rows = np.zeros_like(q), []
        for i in range(self.n):
            pulled = self.links.inverse_dynamics_pullback(
                q[None], zero[None], zero[None], np.eye(self.n)[i][None])
            rows.append(pulled[0, 0])
        matrix = np.array(rows)
        return np.asarray((matrix + matrix.T) / 2)

    def _torque_derivatives(self, motion: list[Array],
                            f_ext: Wrenches | Callable[[float], Wrenches] | None,
                            base_motion: BaseMotion | Callable[[float], BaseMotion] | None,
                            ) -> tuple[Array, Array, Array]:
        """Return the gears' torque and its first two time derivatives along a motion."""
        s = _WINDOW * np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))
        s[_NODES // 2] = 0.0  # exactly, so that a velocity of zero stays zero
        powers = np.vander(s, 5, increasing=True) / np.array([1, 1, 2, 6, 24])
        q = powers @ np.array(motion)
        qd = powers[:, :4] @ np.array(motion[1:])
        qdd = powers[:, :3] @ np.array(motion[2:])
        wrenches = _stacked_wrenches([f_ext(t) for t in s]) if callable(f_ext) else f_ext
        moved = (BaseMotion.stack([base_motion(t) for t in s], self.model)
                 if callable(base_motion) else base_motion)
        torque = self.links.inverse_dynamics(q, qd, qdd, wrenches, base_motion=moved)
        fit = np.linalg.solve(np.vander(s / _WINDOW, increasing=True), torque)
        return torque[len(s) // 2], fit[1] / _WINDOW, 2 * fit[2] / _WINDOW**2

    def _friction(self, speed: Array) -> Array:
        viscous, coulomb, offset = self._motor_friction.T
        direction = smooth_sign(speed, self._widths)
        return np.asarray(viscous * speed + coulomb * direction + offset, np.float64)

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = real_numbers(name, values)
        if array.shape != (self.n,):
            raise ShapeError(name, f'shape {array.shape}', f'({self.n},)')
        if not np.isfinite(array).all():
            raise ValueRangeError(name, array.tolist(), 'finite numbers')
        return array


def _stacked_wrenches(each: Sequence[Wrenches]) -> Wrenches:
    """Return wrenches at several times as one mapping of arrays, shape (N, 6)."""
    zero = np.zeros(6)
    links = dict.fromkeys(link for wrenches in each for link in wrenches)
    return {link: np.array([real_numbers(f'f_ext[{link!r}]', wrenches.get(link, zero))
                            for wrenches in each]) for link in links}
