"""Closes loops of which only the driven joints are known, and chooses independent joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.spatial import Array

CLOSED = 1e-12  # m, gap that counts as closed
LARGEST = 0.3  # rad or m, largest step of a joint in one iteration
ITERATIONS = 200  # most iterations to close the loops
SINGULAR = 1e-6  # singular values of the loops' Jacobian below this count as zero, m/rad


def close_loops(table: Callable[[Array, Array], Array], first: Array) -> Array:
    """Close the loops by moving all joints as little as possible.

    Parameters
    ----------
    table : callable
        Returns gaps, their Jacobian and their drift, as columns, for positions and velocities.
    first : ndarray, shape (b,)
        The pose to start from.

    Returns
    -------
    ndarray, shape (b,)
        A pose; the loops may still be open if no closed pose is near.
    """
    pose, before = first, np.inf
    for _ in range(ITERATIONS):
        found = table(pose, np.zeros_like(pose))
        gap = found[:, 0]
        size = float(np.abs(gap).max())
        if not np.isfinite(size) or size < CLOSED or (size < 1e-9 and size >= before / 2):
            break
        before = size
        step = np.linalg.pinv(found[:, 1:-1], rcond=SINGULAR) @ gap
        pose = pose - step * min(1.0, LARGEST / max(float(np.abs(step).max()), 1e-300))
    return pose


def choose_independent(jacobian: Array, driven: Sequence[int], names: Sequence[str]) -> list[int]:
    """Return the driven joints, and passive ones that complete the degrees of freedom.

    The passive joints whose motion is determined least by the other chosen joints are taken.

    Parameters
    ----------
    jacobian : ndarray, shape (m, b)
        Derivative of the gaps with respect to all joints, in a closed pose.
    driven : sequence of int
        Indices of the driven joints.
    names : sequence of str
        Names of all joints.

    Raises
    ------
    ValueRangeError
        The loops do not allow the driven joints to move independently of each other.
    """
    _, values, rows = np.linalg.svd(jacobian)
    rank = int((values > SINGULAR).sum())
    motions = rows[rank:].T  # (b, degrees of freedom): the motions that keep the loops closed
    freedom = motions.shape[1]
    if np.linalg.matrix_rank(motions[list(driven)], tol=SINGULAR) < len(driven):
        raise ValueRangeError(
            'driven joints', ', '.join(names[k] for k in driven),
            f'joints that can move independently of each other; the cuts leave {freedom} degrees '
            'of freedom in this pose, and in a singular pose some joints cannot move')
    chosen = list(driven)
    while len(chosen) < freedom:
        known = motions[chosen]
        rest = motions - motions @ np.linalg.pinv(known, rcond=SINGULAR) @ known if chosen \
            else motions
        chosen.append(int(np.argmax(np.linalg.norm(rest, axis=1))))
    return sorted(chosen)
