"""Base parameters: what torques can tell of the standard parameters (Kolyubin 5.3).

Parameters whose columns vanish are dropped, dependent ones are regrouped into those kept. What
would be told apart only by a rounded angle in the URDF counts as dependent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from robodyn_ros.description import Array
from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.model import Model

TOLERANCE = 1e-4  # of the largest column of its sort: 1.5708 for a right angle makes 4e-6
STATES = 40  # random states for each parameter of the linear model, over all joints
# proximal bodies first, and in each body the parameters that the literature keeps
_ORDER = {name: k for k, name in enumerate((
    'Ixx', 'Ixy', 'Ixz', 'Iyz', 'Izz', 'mx', 'my', 'mz', 'Iyy', 'm', 'Ia'))}
_SORTS = {'I': 'inertia', 'm': 'mass', 'mx': 'moment', 'my': 'moment', 'mz': 'moment'}


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Which parameters a robot's torques determine, and what is regrouped into each.

    Attributes
    ----------
    names : tuple of str
        Of the b parameters kept, ``PARAMETER:JOINT``.
    expressions : tuple of str
        The same with what is regrouped into them, for example ``Ixx:j2 - 1 Iyy:j2``.
    kept : tuple of int
        Their places among the columns of the linear model.
    matrix : ndarray, shape (b, p)
        Base parameters are ``matrix @ theta`` of all p columns.
    without_effect : tuple of str
        Parameters that never act.
    regrouped : tuple of str
        Parameters that act through others.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    kept: tuple[int, ...]
    matrix: Array
    without_effect: tuple[str, ...]
    regrouped: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.names)

    def to_text(self) -> str:
        """A table for people."""
        width = max(map(len, self.names))
        lines = [f'{self.count} base parameters, {len(self.regrouped)} regrouped, '
                 f'{len(self.without_effect)} without effect']
        lines += [f'  {name:{width}} = {expression}' for name, expression in
                  zip(self.names, self.expressions, strict=True)]
        return '\n'.join([*lines, f'  without effect: {", ".join(self.without_effect) or "none"}'])


def base_parameters(model: Model | ClosedLoopDynamics | LinearModel, kind: str = 'lumped', *,
                    payload: str | None = None, tolerance: float = TOLERANCE) -> BaseParameters:
    """Find the base parameters of a robot.

    Parameters
    ----------
    model : Model, ClosedLoopDynamics or LinearModel
        The robot, or what was made of it already.
    kind, payload
        As `LinearModel` takes them.
    tolerance : float
        A column whose part apart from the others is smaller than this, relative to the largest
        column of its sort (inertias, moments, masses, friction), is dependent.

    Raises
    ------
    IdentificationError
        Nothing is left.
    """
    linear = model if isinstance(model, LinearModel) else LinearModel(
        model if isinstance(model, ClosedLoopDynamics) else Dynamics(model), kind, payload=payload)
    factor, scale = _random_states(linear)
    order = sorted(range(len(linear.columns)), key=lambda k: (
        linear.columns[k].body if linear.columns[k].body >= 0 else 10**6,
        _ORDER.get(linear.columns[k].term, -1)))
    kept = _independent(factor, order, tolerance)
    kept.sort(key=lambda k: (linear.columns[k].body % 10**6, k))  # joint by joint, payload last
    if not kept:
        raise IdentificationError('no parameter has an effect on the torques')
    rest = [k for k in range(factor.shape[1]) if k not in kept]
    matrix = np.zeros((len(kept), factor.shape[1]))
    matrix[range(len(kept)), kept] = 1.0
    largest = np.linalg.norm(factor, axis=0)
    dead = [k for k in rest if largest[k] < tolerance]
    if rest:
        betas = np.linalg.lstsq(factor[:, kept], factor[:, rest], rcond=None)[0]
        betas *= scale[rest] / scale[kept][:, None]
        matrix[:, rest] = np.where(np.abs(betas) > 1e-10, betas, 0.0)
        matrix[:, dead] = 0.0
    names = linear.names
    return BaseParameters(
        tuple(names[k] for k in kept),
        tuple(_expression(names, k, row) for k, row in zip(kept, matrix, strict=True)),
        tuple(kept), matrix, tuple(names[k] for k in dead),
        tuple(names[k] for k in rest if k not in dead))


def _random_states(linear: LinearModel) -> tuple[Array, Array]:
    """R of the regressor at random states, its columns scaled by sort; and the scales."""
    rng = np.random.default_rng(0)
    model, joints, p = linear.model, linear.joints, len(linear.columns)
    count = max(60, STATES * p // max(1, linear.rows))
    bounded = np.isfinite(joints.lower) & np.isfinite(joints.upper)
    turns = ~np.array([any(model.prismatic[b] and model.row[b, model.joint_names.index(name)]
                           for b in range(len(model.parent))) for name in joints.joint_names])
    if linear.loops is not None:
        turns = turns & ~bounded  # a loop closes within the joints' range, if anywhere
    lower = np.where(turns, -np.pi, np.where(bounded, joints.lower, -1.0))
    upper = np.where(turns, np.pi, np.where(bounded, joints.upper, 1.0))
    factor = np.zeros((0, p))
    for loaded in ((False, True) if linear.payload else (False,)):
        q = _poses(linear, rng, lower, upper, count)
        qd, qdd = rng.normal(size=(2, count, joints.n)) * np.array([2.0, 5.0])[:, None, None]
        rows = linear.regressor(q, qd, qdd, loaded=loaded).reshape(-1, p) / np.sqrt(count)
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, rows]), mode='r'))
    norms = np.linalg.norm(factor, axis=0)
    sorts = [_sort(column.term) for column in linear.columns]
    largest = {sort: max(norms[k] for k, s in enumerate(sorts) if s == sort) for sort in sorts}
    scale = np.array([largest[sort] or 1.0 for sort in sorts])
    return factor / scale, scale


def _poses(linear: LinearModel, rng: np.random.Generator, lower: Array, upper: Array,
           count: int) -> Array:
    """Random poses, shape (count, n), in which all loops close."""
    if linear.loops is None:
        return rng.uniform(lower, upper, (count, len(lower)))
    found = np.zeros((0, len(lower)))
    for _ in range(20):
        q = rng.uniform(lower, upper, (count, len(lower)))
        found = np.concatenate([found, q[linear.loops.reachable(q)]])
        if len(found) >= count:
            return found[:count]
    raise IdentificationError(f'the loops close in {len(found)} of {20 * count} random poses; '
                              'valid: narrower limits of the independent joints')


def _sort(term: str) -> str:
    if term.startswith('I') and term != 'Ia':
        return 'inertia'
    return _SORTS.get(term, term.rstrip('lm') if term.startswith(('F', 'off')) else term)


def _independent(factor: Array, order: list[int], tolerance: float) -> list[int]:
    """Columns chosen in order, each where it has a part apart from those before."""
    rank = _rank(factor, tolerance)
    basis = np.zeros((factor.shape[0], 0))
    parts = []
    chosen: list[int] = []
    for k in order:
        column = factor[:, k].copy()
        for _ in range(2):  # the second sweep removes what rounding left
            column -= basis @ (basis.T @ column)
        apart = float(np.linalg.norm(column))
        parts.append(apart)
        if apart > tolerance and len(chosen) < rank:
            basis = np.column_stack([basis, column / apart])
            chosen.append(k)
    if len(chosen) < rank:  # in this order some columns hide behind others: take the pivots
        _, _, pivots = scipy.linalg.qr(factor, mode='economic', pivoting=True)
        return sorted(int(k) for k in pivots[:rank])
    return sorted(chosen)


def _rank(factor: Array, tolerance: float) -> int:
    diagonal = np.abs(np.diag(scipy.linalg.qr(factor, mode='r', pivoting=True)[0]))
    return int((diagonal > tolerance * max(diagonal[0], 1e-300)).sum())


def _expression(names: tuple[str, ...], kept: int, row: Array) -> str:
    parts = [names[kept]]
    for k in np.flatnonzero(np.abs(row) > 1e-5):
        if k == kept:
            continue
        value = float(row[k])
        size = '' if abs(abs(value) - 1) < 1e-5 else f'{abs(value):.5g} '
        parts.append(f'{"-" if value < 0 else "+"} {size}{names[k]}')
    return ' '.join(parts)
