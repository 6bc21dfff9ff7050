"""Identification of robots with a floating base.

No motor drives the base, so the first six equations need no joint torques: the wrenches at the
contacts alone must explain the motion (Ayusawa, Venture and Nakamura 2014). Where these wrenches
are not measured, the null space of the contact Jacobian eliminates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import ShapeError, ValueRangeError, check_type
from robodyn_ros.identification.base_parameters import BaseParameters, base_parameters
from robodyn_ros.identification.consistency import consistent_estimate
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import triangular
from robodyn_ros.keywords import checked_keywords
from robodyn_ros.model import A_MODEL, MOTOR_FRICTION, PARAMETER_NAMES, Model
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Array

FOLDS = 4  # contiguous parts; the last one is left out of the fit for validation
BASE = 6  # equations of the base
SMALLEST = 1e-9  # standard deviation of a row relative to the largest, against division by zero


@dataclass(frozen=True, eq=False)
class FloatingBaseResult:
    """What `identify_floating_base` found.

    Attributes
    ----------
    model : Model
        The robot with physically consistent identified parameters. What the data do not determine
        stays close to the description.
    base : BaseParameters
        The base parameters of the equations that were used. Only a motion that excites every
        joint determines all of them.
    error, nominal_error : float
        Root mean square of the unexplained part of all equations, relative to that of the measured
        forces, on the last quarter of the data, which was left out of the fit: of the identified
        robot, and of the description; fractions.
    """

    model: Model
    base: BaseParameters
    error: float
    nominal_error: float

    def __repr__(self) -> str:
        """Errors, and number of base parameters."""
        return (f'<FloatingBaseResult: {self.error:.2%} of the forces unexplained '
                f'(description {self.nominal_error:.2%}), {self.base.count} base parameters>')


@checked_keywords
def identify_floating_base(model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                           torques: ArrayLike | None = None,
                           wrenches: Mapping[str, ArrayLike] | None = None,
                           contacts: Sequence[str] | Mapping[str, ArrayLike] = (),
                           surfaces: Sequence[str] | Mapping[str, ArrayLike] = (),
                           ) -> FloatingBaseResult:
    """Identify a robot with a floating base from a motion.

    Parameters
    ----------
    model : Model
        The description, loaded with ``base='floating'``.
    q, qd, qdd : array-like, shape (N, n + 1), (N, n), (N, n)
        The filtered motion; for the columns see `Dynamics`.
    torques : array-like, shape (N, n - 6), optional
        Torques of the joints, N m or N. Without them, only the equations of the base are used,
        which determine inertial parameters, but neither friction nor rotor inertia.
    wrenches : mapping of str to array-like, shape (N, 6), optional
        Measured wrenches on links, as ``f_ext`` of `Dynamics.inverse_dynamics`.
    contacts, surfaces : sequence of str, or mapping of str to array-like, shape (N,)
        Links on which unknown forces act at the origins of their frames, and links on which
        unknown forces and moments act. These unknowns are eliminated. A mapping tells for each
        sample whether the link is in contact, for example while a robot walks.

    Raises
    ------
    RobodynError
        The base does not float, an array has the wrong shape or values that are not finite, or
        the contacts leave no equation.
    """
    check_type('model', model, Model, A_MODEL)
    if not model.floating:
        raise ValueRangeError('base', 'fixed', "'floating', see load_model; `identify` is for "
                              'robots with a fixed base')
    dynamics = Dynamics(model)
    linear = LinearModel(dynamics, 'rigid' if torques is None else 'lumped')
    motion = [real_array(name, values, (None, size)) for name, values, size in (
        ('q', q, model.nq), ('qd', qd, model.n), ('qdd', qdd, model.n))]
    square = (motion[0][:, 3:7] ** 2).sum(axis=1)
    if (square == 0).any():
        raise ValueRangeError('q', f'row {int(np.argmin(square))} with a quaternion of length 0',
                              'quaternions x, y, z, w of length 1')
    count = len(motion[0])
    target = np.zeros((count, model.n))
    if torques is not None:
        target[:, BASE:] = real_array('torques', torques, (count, model.n - BASE))
    for link, wrench in (wrenches or {}).items():
        force = real_array(f'wrenches[{link!r}]', wrench, (count, 6))
        target += np.einsum('tij,ti->tj', dynamics.jacobian(motion[0], link), force)
    for name, values in zip(('q', 'qd', 'qdd', 'torques or wrenches'), (*motion, target),
                            strict=True):
        if len(values) != count or not np.isfinite(values).all():
            raise ShapeError(name, f'shape {values.shape} or values that are not finite',
                             f'{count} rows of finite numbers')
    w = linear.regressor(*motion)
    rows = slice(0, BASE if torques is None else model.n)
    w, target = w[:, rows], target[:, rows]
    blocked = [_flags(links, link, count) * dynamics.jacobian(motion[0], link)[:, :size, rows]
               for links, size in ((contacts, 3), (surfaces, 6)) for link in links]
    if blocked:
        free = _projectors(np.concatenate(blocked, axis=1))
        w, target = free @ w, (free @ target[..., None])[..., 0]
    fitted = slice(0, count - count // FOLDS)
    theta = _estimate(linear, w[fitted], target[fitted])
    found = _with_parameters(linear, theta)
    rest = slice(fitted.stop, count)
    return FloatingBaseResult(found, base_parameters(linear), *(
        float(np.linalg.norm(target[rest] - w[rest] @ chi) / np.linalg.norm(target[rest]))
        for chi in (theta, linear.nominal())))


def _flags(links: Sequence[str] | Mapping[str, ArrayLike], link: str, count: int) -> Array:
    """Return for each sample whether a link is in contact, 1 or 0, shape (N, 1, 1)."""
    if not isinstance(links, Mapping):
        return np.ones((count, 1, 1))
    flags = np.asarray(links[link])
    if flags.shape != (count,) or flags.dtype.kind not in 'biuf':
        raise ShapeError(f'contacts[{link!r}]', f'shape {flags.shape} of {flags.dtype}',
                         f'({count},) of truth values')
    return (flags != 0).astype(np.float64)[:, None, None]


def _projectors(jacobians: Array) -> Array:
    """Return projectors onto the generalised forces that contacts cannot exert, (N, rows, rows).

    Raises
    ------
    ValueRangeError
        No equation is left.
    """
    rows = jacobians.shape[-1]
    free = np.eye(rows) - np.linalg.pinv(jacobians, rcond=1e-9) @ jacobians
    if np.trace(free, axis1=1, axis2=2).max() < 0.5:  # the number of equations that are left
        raise ValueRangeError('contacts', f'{jacobians.shape[-2]} unknown forces and moments',
                              f'fewer than {rows}, the number of equations, or torques besides '
                              'the equations of the base')
    return np.asarray(free)


def _estimate(linear: LinearModel, w: Array, target: Array) -> Array:
    """Return physically consistent parameters; each row is weighted by its residual."""
    rough = np.linalg.lstsq(w.reshape(-1, w.shape[-1]), target.ravel(), rcond=1e-8)[0]
    sigma = np.sqrt(((target - w @ rough) ** 2).mean(axis=0))
    scale = float(np.sqrt((target**2).mean())) or 1.0
    sigma = np.maximum(sigma, max(float(sigma.max()) * 1e-3, SMALLEST * scale))
    both = np.concatenate([w, target[..., None]], axis=-1)
    parts = np.array_split(np.arange(len(w)), FOLDS - 1)
    folds = [np.array([triangular(both[part, row]) for row in range(w.shape[1])])
             for part in parts]
    return consistent_estimate(linear, folds, sigma)


def _with_parameters(linear: LinearModel, theta: Array) -> Model:
    """Return the robot with other parameters; lumped friction is that of the link side."""
    chi = linear.model.standard_parameters.copy()
    if linear.kind == 'lumped':
        for body in range(len(linear.model.body_joints)):
            chi[[len(PARAMETER_NAMES) * body + k for k in MOTOR_FRICTION]] = 0.0
    for column, value in zip(linear.columns, theta, strict=True):
        chi[column.standard] = value
    return linear.model.with_standard_parameters(chi)
