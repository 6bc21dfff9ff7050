"""Physically consistent estimates by a semidefinite program with a prior on the nominal model.

The 4 x 4 pseudo-inertia of every body is positive definite (Wensing and others 2018), and rotor
inertias and friction are not negative. Parameters that the log does not determine stay close to
the nominal model. The distance between two bodies does not depend on units or frames: it is the
second-order form of the log-determinant divergence, ``tr((P0^-1 dP)^2)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.excited import UNEXCITED
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import triangular
from robodyn_ros.model import PARAMETER_NAMES, Model
from robodyn_ros.numerics import safe_divide
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array, inertia_components, inertia_tensor

MARGIN = 1e-3  # P is at least this fraction of the nominal P0
PRIORS = (1.0, 1e-2, 1e-4, 1e-6)  # at 1, one standard deviation of the prior is a factor of e
LOSS = 0.0005  # relative increase of the cross-validation error accepted for a stronger prior
ROUND_OFF = 1e-12  # eigenvalue that is round-off, relative to the largest one
HOLD = 1e-4  # weight of nominal values where the torques say nothing, relative to the largest
SMALLEST_RADIUS = 0.01  # m, smallest radius of gyration of a nominal body
GUESSED_RADIUS = 0.1  # m, of bodies without a nominal mass if all joints are in one place
SMALLEST_GUESS = 0.1  # kg, of such a body
SMALLEST_MASS = 0.05  # smallest mass of a nominal body, relative to the median mass
NONNEGATIVE = ('Ia', 'Fvl', 'Fcl', 'Fvm', 'Fcm', 'Ftl', 'Ftm', 'Fzl')
_ROOT2 = np.sqrt(2.0)
TRIANGLE = [(i, j) for j in range(4) for i in range(j + 1)]  # columns of the upper triangle


def pseudo_inertia(inertial: Array) -> Array:
    """Return the 4 x 4 pseudo-inertia of ``Ixx Ixy Ixz Iyy Iyz Izz m mx my mz``."""
    tensor, (m, *h) = inertia_tensor(inertial), inertial[6:]
    p = np.zeros((4, 4))
    p[:3, :3] = np.trace(tensor) / 2 * np.eye(3) - tensor
    p[:3, 3] = p[3, :3] = h
    p[3, 3] = m
    return p


def inertial_parameters_of(p: Array) -> Array:
    """Return the ten inertial parameters of a pseudo-inertia."""
    tensor = np.trace(p[:3, :3]) * np.eye(3) - p[:3, :3]
    return np.array([*inertia_components(tensor), p[3, 3], *p[:3, 3]])


def consistent_bodies(inertial: Array) -> Array:
    """Return which bodies are physically consistent, shape (b,).

    The pseudo-inertia of such a body is positive definite.
    """
    return np.array([np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0 for body in inertial])


def is_consistent(model: Model) -> bool:
    """Return whether bodies with mass are consistent, and rotor inertias and friction are >= 0."""
    heavy = model.inertial_parameters[:, 6] != 0
    return bool(consistent_bodies(model.inertial_parameters[heavy]).all()
                and (model.armature >= 0).all() and (model.link_friction[:, :2] >= 0).all()
                and (model.motor_friction[:, :2] >= 0).all())


def consistent_estimate(linear: LinearModel, folds: Sequence[Array], sigma: Array, *,
                        prior: float | None = None,
                        known: dict[int, float] | None = None) -> Array:
    """Estimate all parameters of the linear model under the conditions of physical consistency.

    Parameters
    ----------
    linear : LinearModel
        The model with p columns.
    folds : sequence of ndarray, shape (rows, p + 1, p + 1)
        Triangular factors of ``[W, tau]``, one for each contiguous part of the data.
    sigma : ndarray, shape (rows,)
        Standard deviation of each row's residual, from which its weight follows; N m or N.
    prior : float, optional
        Weight of the distance to the nominal model. The default is chosen by cross-validation.
    known : dict of int to float, optional
        Values of known parameters by their columns.

    Returns
    -------
    ndarray, shape (p,)
        The parameters, SI units.

    Raises
    ------
    IdentificationError
        The solver finds no solution.
    """
    p = len(linear.columns)
    known = known or {}
    parts = [triangular((fold / sigma[:, None, None]).reshape(-1, p + 1)) for fold in folds]
    everything = triangular(np.concatenate(parts))
    coordinates = _coordinates(linear, everything)
    if prior is None:
        prior = PRIORS[0] if len(parts) < 2 else _choose_prior(coordinates, parts, known)
    return _solve(coordinates, everything, prior, known)


def _choose_prior(coordinates: _Coordinates, parts: list[Array], known: dict[int, float]) -> float:
    errors = []
    for prior in PRIORS:
        wrong = 0.0
        for out, part in enumerate(parts):
            others = triangular(np.concatenate([q for k, q in enumerate(parts) if k != out]))
            wrong += _squared_error(part, _solve(coordinates, others, prior, known))
        errors.append(np.sqrt(wrong))
    return next(prior for prior, error in zip(PRIORS, errors, strict=True)
                if error <= min(errors) * (1 + LOSS))


def _squared_error(triangle: Array, theta: Array) -> float:
    return float(((triangle[:, :-1] @ theta - triangle[:, -1]) ** 2).sum())


def _solve(coordinates: _Coordinates, triangle: Array, prior: float,
           known: dict[int, float]) -> Array:
    """Solve the least squares of a triangular factor of ``[W, tau]`` under all conditions."""
    clarabel = package('clarabel')

    shift, spread = coordinates.shift, coordinates.spread
    p = len(shift)
    w, target = triangle[:, :p], triangle[:, p]
    a = w @ spread
    residual = target - w @ shift
    ridge = np.zeros(p)
    for places in coordinates.bodies:
        ridge[places] = prior
    quadratic = a.T @ a
    quadratic += _hold(quadratic, coordinates)
    quadratic += np.diag(ridge + 1e-12 * np.diag(quadratic).max())
    matrices, right_sides, cones = _conditions(coordinates, known)
    if not cones:
        return np.asarray(shift + spread @ np.linalg.solve(quadratic, a.T @ residual))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    scale = float(np.abs(np.diag(quadratic)).max()) or 1.0
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(quadratic / scale)), -(a.T @ residual) / scale,
        scipy.sparse.csc_matrix(np.concatenate(matrices)), np.concatenate(right_sides), cones,
        settings)
    solution = solver.solve()
    if str(solution.status) not in ('Solved', 'AlmostSolved', 'InsufficientProgress'):
        raise IdentificationError(f'there is no physically consistent estimate: {solution.status}')
    theta = shift + spread @ np.array(solution.x)
    for k in coordinates.nonnegative:  # the solver may return -1e-9 instead of zero
        theta[k] = max(theta[k], 0.0)
    return np.asarray(theta)


def _hold(quadratic: Array, coordinates: _Coordinates) -> Array:
    """Return what holds friction and drives at their nominal values where the torques say nothing.

    These are combinations of parameters about which the torques say less than a standard deviation
    of one, shape (p, p).
    """
    held = np.zeros_like(quadratic)
    drives = np.setdiff1d(np.arange(len(quadratic)), np.concatenate(coordinates.bodies or [[]]))
    if len(drives):
        squares, vectors = np.linalg.eigh(quadratic[np.ix_(drives, drives)])
        unknown = vectors[:, squares <= max(1.0, ROUND_OFF * squares[-1])]
        held[np.ix_(drives, drives)] = HOLD * squares[-1] * unknown @ unknown.T
    return held


def _conditions(coordinates: _Coordinates, known: dict[int, float]
                ) -> tuple[list[Array], list[Array], list[Any]]:
    """Return matrices, right sides and cones of the conditions ``right - matrix @ y in cone``."""
    clarabel = package('clarabel')

    shift, spread, bodies, nonnegative = coordinates
    p = len(shift)
    matrices, right_sides, cones = [], [], []
    for k, value in known.items():
        matrices.append(spread[[k]])
        right_sides.append(np.array([value - shift[k]]))
        cones.append(clarabel.ZeroConeT(1))
    if nonnegative:
        matrices.append(-np.eye(p)[nonnegative])
        right_sides.append(shift[nonnegative] / spread[nonnegative, nonnegative])
        cones.append(clarabel.NonnegativeConeT(len(nonnegative)))
    for places in bodies:
        matrices.append(-np.eye(p)[places])
        right_sides.append(_svec((1 - MARGIN) * np.eye(4)))
        cones.append(clarabel.PSDTriangleConeT(4))
    return matrices, right_sides, cones


class _Coordinates(NamedTuple):
    """Coordinates y with ``theta = shift + spread @ y``.

    The length of a body's y is its distance to the nominal body; the y of another parameter
    changes by about 1 where the parameter alone explains the torque, and not at all where it has
    no effect. ``bodies`` has the ten places of each body's parameters, ``nonnegative`` those of
    parameters that cannot be negative.
    """

    shift: Array
    spread: Array
    bodies: list[list[int]]
    nonnegative: list[int]


def _coordinates(linear: LinearModel, triangle: Array) -> _Coordinates:
    p = len(linear.columns)
    w, size = triangle[:, :p], float(np.linalg.norm(triangle[:, p]))
    shift, spread = linear.nominal(), np.zeros((p, p))
    nonnegative: list[int] = []
    nominal = nominal_bodies(linear) if linear.model.inertial_parameters[:, 6].any() \
        else _guessed_bodies(linear, triangle)
    bodies: dict[int, list[int]] = {}
    norms = np.linalg.norm(w, axis=0)
    for k, column in enumerate(linear.columns):
        if column.term[0] in 'Im' and column.term != 'Ia':
            bodies.setdefault(column.body, []).append(k)
            continue
        if norms[k] <= UNEXCITED * norms.max():
            continue  # it keeps its nominal value
        spread[k, k] = size / norms[k] if size > 0 else 1.0
        if column.term in NONNEGATIVE:
            nonnegative.append(k)
    for body, places in bodies.items():
        shift[places], spread[np.ix_(places, places)] = body_coordinates(nominal[body])
    return _Coordinates(shift, spread, list(bodies.values()), nonnegative)


def body_coordinates(reference: Array) -> tuple[Array, Array]:
    """Return the coordinates of a body around a reference.

    The length of y in ``parameters = shift + spread @ y`` is the distance of the two bodies; at 1,
    the mass, the squares of the lengths or both differ by about a factor of e.

    Parameters
    ----------
    reference : ndarray, shape (4, 4)
        Pseudo-inertia of the reference body, positive definite.

    Returns
    -------
    shift : ndarray, shape (10,)
        Inertial parameters of the reference body.
    spread : ndarray, shape (10, 10)
        Their changes along the coordinates.
    """
    values, vectors = np.linalg.eigh(reference)
    root = vectors * np.sqrt(values) @ vectors.T
    spread = np.zeros((10, 10))
    for position, (i, j) in enumerate(TRIANGLE):
        unit = np.zeros((4, 4))
        unit[i, j] = unit[j, i] = 1.0 if i == j else 1 / _ROOT2
        spread[:, position] = inertial_parameters_of(root @ unit @ root)
    return inertial_parameters_of(reference), spread


def consistent_body(parameters: Array, covariance: Array, reference: Array) -> Array:
    """Return the physically consistent body that is the most probable one, given an estimate.

    Parameters
    ----------
    parameters, covariance : ndarray, shape (10,), (10, 10)
        The estimate of the inertial parameters and its covariance, SI units.
    reference : ndarray, shape (4, 4)
        Pseudo-inertia of a body of about this mass and size. The smallest eigenvalue of the
        result, relative to this body, is at least 0.001.

    Raises
    ------
    IdentificationError
        The solver finds no solution.
    """
    if np.linalg.eigvalsh(pseudo_inertia(parameters) - MARGIN * reference)[0] >= 0:
        return parameters
    shift, spread = body_coordinates(reference)
    inverse = np.linalg.inv(spread)
    scaled = inverse @ covariance @ inverse.T
    weight = np.linalg.cholesky(np.linalg.inv((scaled + scaled.T) / 2)).T @ inverse
    return _solve(_Coordinates(shift, spread, [list(range(10))], []),
                  np.column_stack([weight, weight @ parameters]), 0.0, {})


def nominal_bodies(linear: LinearModel) -> dict[int, Array]:
    """Return pseudo-inertias of the nominal bodies, made physically consistent where needed."""
    inertial, bodies = linear.model.inertial_parameters, [-1, *linear.bodies]
    if linear.model.floating:
        bodies.append(len(inertial))
        inertial = np.vstack([inertial, linear.model.base_inertial_parameters])
    typical = max(float(np.median(inertial[:, 6])), 1e-2)
    found = {}
    for body in bodies:
        p = pseudo_inertia(inertial[body]) if body >= 0 else np.zeros((4, 4))
        if body < 0 and linear.payload is None:
            continue
        mass = max(float(p[3, 3]), SMALLEST_MASS * typical)
        p[3, 3] = mass
        com = p[:3, 3] / mass
        central = p[:3, :3] - mass * np.outer(com, com)
        values, vectors = np.linalg.eigh(central)
        values = np.maximum(values, mass * SMALLEST_RADIUS**2)
        p[:3, :3] = vectors * values @ vectors.T + mass * np.outer(com, com)
        p[:3, 3] = p[3, :3] = mass * com
        found[body] = p
    return found


def _guessed_bodies(linear: LinearModel, triangle: Array) -> dict[int, Array]:
    """Return pseudo-inertias for a robot without any nominal mass: equal bodies at the joints.

    Their size is half of a typical distance between joints. Their mass explains as much of the
    torque as such bodies can.
    """
    lengths = np.linalg.norm(linear.model.translation, axis=1)
    lengths = lengths[lengths > SMALLEST_RADIUS]
    radius = 0.5 * float(np.median(lengths)) if len(lengths) else GUESSED_RADIUS
    one = np.diag([radius**2] * 3 + [1.0])
    values = dict(zip(PARAMETER_NAMES, inertial_parameters_of(one), strict=False))
    unit = np.array([values.get(column.term, 0.0) for column in linear.columns])
    explained = triangle[:, :-1] @ unit
    mass = safe_divide(float(explained @ triangle[:, -1]), float(explained @ explained))
    bodies = (-1, *linear.bodies) if linear.payload is not None else linear.bodies
    return {body: max(mass, SMALLEST_GUESS) * one for body in bodies}


def _svec(matrix: Array) -> Array:
    return np.array([matrix[i, j] * (1.0 if i == j else _ROOT2) for i, j in TRIANGLE])


def inconsistent_bodies(linear: LinearModel, theta: Array) -> Sequence[str]:
    """Return the joints of bodies with physically inconsistent parameters."""
    bad = []
    for body in linear.bodies:
        inertial = np.array([theta[k] for k, c in enumerate(linear.columns)
                          if c.body == body and c.term[0] in 'Im' and c.term != 'Ia'])
        if len(inertial) == 10 and np.linalg.eigvalsh(pseudo_inertia(inertial))[0] <= 0:
            bad.append(linear.model.body_joints[body])
    return bad
