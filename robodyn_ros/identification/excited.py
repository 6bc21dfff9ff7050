"""What the motion of a log excites: base parameters without those of which it tells nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.base_parameters import BaseParameters
from robodyn_ros.identification.friction import is_friction
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.signals import Segment
from robodyn_ros.spatial import Array

UNEXCITED = 1e-9  # relative to the longest column; shorter columns are round-off
LEAST_MOTION = 1e-3  # rad or m, or of the joint's range; a smaller motion is noise


def of_joints_at_rest(linear: LinearModel, segments: Sequence[Segment]) -> NDArray[np.bool_]:
    """Return which columns are the noise of a joint at rest, shape (p,).

    These are friction that depends on its velocity, and the inertia of its rotor, unless the
    rotor's turn in space matters. Joints of closed loops have none.

    Parameters
    ----------
    linear : LinearModel
        The linear model with p columns.
    segments : sequence of Segment
        The motions.
    """
    model, found = linear.model, np.zeros(len(linear.columns), bool)
    if linear.loops is not None:
        return found
    least = LEAST_MOTION * np.minimum(linear.joints.upper - linear.joints.lower, 1.0)
    moves = np.max([np.ptp(segment.q, axis=0) for segment in segments], axis=0) > least
    for k, column in enumerate(linear.columns):
        if column.term == 'Ia':
            if not np.isnan(model.spin_axis[column.body]).all():
                continue
            row = model.motor_row[column.body]
        elif is_friction(column.term) and not column.term.startswith('off'):
            row = (model.motor_row if column.term.endswith('m') else model.row)[column.body]
        else:
            continue
        found[k] = not moves[row != 0].any()
    return found


def excited(base: BaseParameters, factors: Array, known: Mapping[int, float],
            notes: list[str]) -> BaseParameters:
    """Return the base parameters that a motion excites, without known ones.

    Parameters
    ----------
    base : BaseParameters
        The base parameters.
    factors : ndarray, shape (rows, p + 1, p + 1)
        Triangular factors of ``[W, tau]``.
    known : mapping of int to float
        Known parameters by their columns.
    notes : list of str
        A remark on those that are not excited is added.

    Raises
    ------
    IdentificationError
        Nothing is excited.
    """
    norms = np.sqrt((factors[:, :, list(base.kept)] ** 2).sum(axis=(0, 1)))
    still = [k for k, norm in enumerate(norms) if norm <= UNEXCITED * norms.max()]
    if not still:
        return base
    if len(still) == base.count:
        raise IdentificationError('no sample can be used, or the robot does not move; valid: a '
                                  'lower slow or guard, or a longer log')
    unknown = [base.names[k] for k in still if base.kept[k] not in known]
    if unknown:
        notes.append(f'not excited at all by this motion: {", ".join(unknown)}')
    return only(base, [k for k in range(base.count) if k not in still])


def only(base: BaseParameters, stay: Sequence[int]) -> BaseParameters:
    """Return some of the base parameters."""
    return replace(base, names=tuple(base.names[k] for k in stay),
                   expressions=tuple(base.expressions[k] for k in stay),
                   kept=tuple(base.kept[k] for k in stay), matrix=base.matrix[list(stay)])
