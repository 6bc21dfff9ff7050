"""Base parameters: the combinations of standard parameters that torques determine (Kolyubin 5.3).

Parameters whose columns vanish are dropped, and dependent ones are regrouped into those that are
kept. Parameters that are independent only because of a rounded angle in the URDF count as
dependent.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.errors import IdentificationError, UnknownNameError
from robodyn_ros.identification.closed_poses import closed_motions
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.keywords import checked_keywords
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

TOLERANCE = 1e-4  # relative to the largest column of its kind; rounding pi/2 to 1.5708 causes 4e-6
STATES = 40  # random states for each parameter of the linear model, over all joints
LEAST_STATES = 60  # fewest random states
SPEED, ACCELERATION = 2.0, 5.0  # standard deviations, rad/s or m/s and per s^2
WARMTH = 5.0  # standard deviation of the temperatures, K
# proximal bodies come first, and in each body the parameters that the literature keeps
_ORDER = {name: k for k, name in enumerate((
    'Ixx', 'Ixy', 'Ixz', 'Iyz', 'Izz', 'mx', 'my', 'mz', 'Iyy', 'm', 'Ia'))}
_TYPES = {'I': 'inertia', 'm': 'mass', 'mx': 'moment', 'my': 'moment', 'mz': 'moment'}


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The parameters that a robot's torques determine, and what is regrouped into each.

    Attributes
    ----------
    names : tuple of str
        Names of the b parameters that are kept, as ``PARAMETER:JOINT``.
    expressions : tuple of str
        Their definitions with the regrouped parameters, for example ``Ixx:j2 - Iyy:j2``.
    kept : tuple of int
        Their columns in the linear model.
    matrix : ndarray, shape (b, p)
        The base parameters are ``matrix @ theta`` of all p parameters.
    without_effect : tuple of str
        Parameters without effect on any torque.
    regrouped : tuple of str
        Parameters that act only in combination with those that are kept.
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
        """Return the base parameters and their definitions as a table."""
        width = max(map(len, self.names))
        lines = [f'{self.count} base parameters, {len(self.regrouped)} regrouped, '
                 f'{len(self.without_effect)} without effect']
        lines += [textwrap.fill(f'{name:{width}} = {expression}', 80, initial_indent='  ',
                                subsequent_indent=' ' * (width + 5), break_on_hyphens=False)
                  for name, expression in zip(self.names, self.expressions, strict=True)]
        without = f'without effect: {", ".join(self.without_effect) or "none"}'
        return '\n'.join([*lines, textwrap.fill(without, 80, initial_indent='  ',
                                                subsequent_indent=' ' * 4)])


@checked_keywords
def base_parameters(model: Model | RobotDynamics | LinearModel, kind: str = 'lumped', *,
                    payload: str | None = None, torques_of: Sequence[str] | None = None,
                    tolerance: float = TOLERANCE) -> BaseParameters:
    """Find the base parameters of a robot.

    Parameters
    ----------
    model : Model, RobotDynamics or LinearModel
        The robot, or its linear model.
    kind, payload
        See `LinearModel`.
    torques_of : sequence of str, optional
        Joints whose torques are measured; default: all.
    tolerance : float
        A column counts as dependent if the norm of its part that is orthogonal to the others,
        relative to the largest column of its kind (inertias, first moments, masses, friction), is
        below this value.

    Raises
    ------
    IdentificationError
        No parameter has an effect on the torques.
    UnknownNameError
        A joint of ``torques_of`` does not exist.
    """
    linear = model if isinstance(model, LinearModel) else LinearModel(
        dynamics_of(model), kind, payload=payload)
    factor, scale = _random_states(linear, _rows(linear, torques_of))
    order = sorted(range(len(linear.columns)), key=lambda k: (
        _distance(linear, k), _ORDER.get(linear.columns[k].term, -1)))
    kept = _independent(factor, order, tolerance)
    kept.sort(key=lambda k: (_distance(linear, k), k))
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


def _rows(linear: LinearModel, torques_of: Sequence[str] | None) -> list[int]:
    """Return the rows of the torques of some joints."""
    if torques_of is None:
        return list(range(linear.rows))
    linear.model.require_fixed_base('torques_of')
    names = linear.joints.joint_names
    for name in torques_of:
        if name not in names:
            raise UnknownNameError('joint', name, names)
    return [row for row in range(linear.rows) if names[row % len(names)] in torques_of]


def _random_states(linear: LinearModel, rows: list[int]) -> tuple[Array, Array]:
    """Return R of some rows of the regressor at random states, and the scales of its columns.

    The columns of one kind have the same scale.
    """
    rng = np.random.default_rng(0)
    n, p = linear.whole.n, len(linear.columns)
    count = max(LEAST_STATES, STATES * p // max(1, len(rows)))
    factor = np.zeros((0, p))
    for loaded in ((False, True) if linear.payload else (False,)):
        qd, qdd = (size * rng.normal(size=(count, n)) for size in (SPEED, ACCELERATION))
        if linear.loops is None:
            q, motion = _poses(linear, rng, count), None
        else:
            q, motion = closed_motions(linear.loops, rng, qd)
        friction = None
        if len(linear.friction.reference):  # random temperatures as well
            warm = linear.friction.reference + WARMTH * rng.normal(size=qd.shape)
            friction = linear.gears.states(qd, temperature=warm)
        if linear.friction.presliding:  # and a random past
            friction = friction or linear.gears.states(qd)
            friction = replace(friction, bristle=rng.uniform(-1, 1, friction.bristle.shape))
        w = linear.regressor(q, qd, qdd, loaded=loaded, motion=motion, friction=friction)
        if motion is not None:  # states near singularities, with fast joints, must not dominate
            fast = np.abs(motion.qdd(qdd)).max(axis=1) / ACCELERATION
            w /= np.maximum(fast, 1.0)[:, None, None]
        used = w[:, rows].reshape(-1, p) / np.sqrt(count)
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, used]), mode='r'))
    norms = np.linalg.norm(factor, axis=0)
    kinds = [_kind_of(column.term) for column in linear.columns]
    largest = {kind: max(norms[k] for k, s in enumerate(kinds) if s == kind) for kind in kinds}
    scale = np.array([largest[kind] or 1.0 for kind in kinds])
    return factor / scale, scale


def _poses(linear: LinearModel, rng: np.random.Generator, count: int) -> Array:
    """Return random poses of a tree, shape (count, n), with revolute joints over a full turn."""
    model, joints = linear.model, linear.joints
    turns = ~np.array([any(model.prismatic[b] and model.row[b, model.joint_names.index(name)]
                           for b in range(len(model.parent))) for name in joints.joint_names])
    bounded = np.isfinite(joints.lower) & np.isfinite(joints.upper)
    lower = np.where(turns, -np.pi, np.where(bounded, joints.lower, -1.0))
    upper = np.where(turns, np.pi, np.where(bounded, joints.upper, 1.0))
    poses = rng.uniform(lower, upper, (count, joints.n))
    if not model.floating:
        return poses
    quaternions = rng.normal(size=(count, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1)[:, None]
    return np.concatenate([np.zeros((count, 3)), quaternions, poses], axis=1)


def _distance(linear: LinearModel, column: int) -> int:
    """Order of the bodies: a floating base, then joint by joint, and the payload last."""
    body = linear.columns[column].body
    if linear.model.floating and body == len(linear.model.body_joints):
        return -1
    return body if body >= 0 else 10**6


def _kind_of(term: str) -> str:
    """Return the kind of a parameter; columns of one kind have comparable sizes."""
    if term.startswith('I') and term != 'Ia':
        return 'inertia'
    return _TYPES.get(term, term.rstrip('lm') if term.startswith(('F', 'off')) else term)


def _independent(factor: Array, order: list[int], tolerance: float) -> list[int]:
    """Return the columns that, taken in order, are independent of the previous ones."""
    rank = _rank(factor, tolerance)
    basis = np.zeros((factor.shape[0], 0))
    chosen: list[int] = []
    for k in order:
        column = factor[:, k].copy()
        for _ in range(2):  # the second sweep removes the round-off of the first
            column -= basis @ (basis.T @ column)
        apart = float(np.linalg.norm(column))
        if apart > tolerance and len(chosen) < rank:
            basis = np.column_stack([basis, column / apart])
            chosen.append(k)
    if len(chosen) < rank:  # small parts add up to a dimension: use the pivots instead
        _, _, pivots = scipy.linalg.qr(factor, mode='economic', pivoting=True)
        return sorted(int(k) for k in pivots[:rank])
    return sorted(chosen)


def _rank(factor: Array, tolerance: float) -> int:
    diagonal = np.abs(np.diag(scipy.linalg.qr(factor, mode='r', pivoting=True)[0]))
    return int((diagonal > tolerance * diagonal[0]).sum())


def _expression(names: tuple[str, ...], kept: int, row: Array) -> str:
    parts = [names[kept]]
    for k in np.flatnonzero(np.abs(row) > 1e-5):
        if k == kept:
            continue
        value = float(row[k])
        size = '' if abs(abs(value) - 1) < 1e-5 else f'{abs(value):.5g} '
        parts.append(f'{"-" if value < 0 else "+"} {size}{names[k]}')
    return ' '.join(parts)
