"""Closes loops of which only the driven joints are known, and chooses independent joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.spatial import Array

CLOSED = 1e-12  # m, gap that counts as closed
LARGEST = 0.3  # rad or m, largest step of a joint in one iteration
ITERATIONS = 200  # most iterations to close the loops
DAMPING = 0.1  # a step is halved if (singular value)^2 = DAMPING * (gap)^2, 1/rad^2
SAMPLES = 20  # poses from which the loops are closed if no start is given
REGULAR = 0.01  # least motion of the driven joints in a start pose, if all joints move by 1
SINGULAR = 1e-6  # singular values of the loops' Jacobian below this count as zero, m/rad


def close_loops(table: Callable[[Array, Array], Array], first: Array) -> Array:
    """Close the loops by moving all joints as little as possible.

    The steps are those of Levenberg and Marquardt: large gaps damp motions that hardly close them.

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
        left, values, right = np.linalg.svd(found[:, 1:-1], full_matrices=False)
        values = np.where(values > SINGULAR * values[0], values, np.inf)
        inverse = 1 / (values + DAMPING * gap @ gap / values)  # 0 for singular values of zero
        step = right.T @ (inverse * (left.T @ gap))
        pose = pose - step * min(1.0, LARGEST / max(float(np.abs(step).max()), 1e-300))
    return pose


def closed_start(table: Callable[[Array, Array], Array], first: Array, limits: tuple[Array, Array],
                 wanted: Sequence[int]) -> Array:
    """Close the loops from a pose and from others around it, the nearest first.

    Parameters
    ----------
    table : callable
        See `close_loops`.
    first : ndarray, shape (b,)
        The pose to start from.
    limits : tuple of ndarray, shape (b,)
        Lower and upper limits of the joints.
    wanted : sequence of int
        Joints that are to move independently of each other.

    Returns
    -------
    ndarray, shape (b,)
        The first pose within the limits in which the wanted joints move by `REGULAR` or more when
        all joints move by 1; else the best of all. If no pose closes the loops, that with the
        smallest gaps.
    """
    lower, upper = (np.clip(limit, -np.pi, np.pi) for limit in limits)
    free = ~(lower < upper)  # joints without limits
    lower, upper = np.where(free, -np.pi, lower), np.where(free, np.pi, upper)
    rng, best, most = np.random.default_rng(0), first, (-np.inf, False, -np.inf)
    for spread in np.linspace(0.0, 1.0, SAMPLES):
        pose = close_loops(table, first + spread * (rng.uniform(lower, upper) - first))
        found = table(pose, np.zeros_like(pose))
        gap = float(np.abs(found[:, 0]).max())
        within = bool(((pose >= lower) & (pose <= upper) | free).all())
        regular = _regular(found[:, 1:-1], wanted) if gap < CLOSED else 0.0
        if within and regular > REGULAR:
            return pose
        merit = (-max(gap, CLOSED), within, regular)
        if merit > most:
            best, most = pose, merit
    return best


def _regular(jacobian: Array, wanted: Sequence[int]) -> float:
    """Return how far some joints move, at least, in a motion of all joints of length 1."""
    _, values, rows = np.linalg.svd(jacobian)
    motions = rows[int((values > SINGULAR).sum()):].T[list(wanted)]
    return float(np.linalg.svd(motions, compute_uv=False).min(initial=np.inf))


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
