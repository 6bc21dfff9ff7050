"""Capsules around the links that have collision geometry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robodyn_ros.description.solids import solid_of, together
from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics
from robodyn_ros.errors import DescriptionError
from robodyn_ros.identification.closed_poses import closed_motions
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

ALWAYS_TOUCHING = 0.3  # a pair that touches in more random poses than this is close by design
CHECKED_POSES = 300


@dataclass(frozen=True)
class Capsule:
    """A segment in a link's frame with a radius, m."""

    link: str
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float


def capsules_of(model: Model, folders: tuple[Path, ...] = ()) -> tuple[list[Capsule], list[str]]:
    """Return a capsule for each link with collision geometry, and why a link got none.

    Parameters
    ----------
    model : Model
        The robot.
    folders : tuple of Path
        Folders that are searched for meshes.
    """
    found, left = [], []
    for link in model.description.links:
        if not link.collision:
            continue
        try:
            points = together([solid_of(shape, folders) for shape in link.collision]).points
        except DescriptionError as error:
            left.append(f'{link.name}: {error}')
            continue
        found.append(_around(link.name, points))
    return found, left


def _around(link: str, points: Array) -> Capsule:
    """Return a capsule along the longest direction that contains all points."""
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    _, _, directions = np.linalg.svd(points - centre, full_matrices=False)
    axis = directions[0]
    along = (points - centre) @ axis
    across = points - centre - np.outer(along, axis)
    radius = float(np.linalg.norm(across, axis=1).max())
    # the caps extend beyond the ends of the segment, which is therefore as short as possible
    reach = np.sqrt(np.maximum(radius**2 - (across**2).sum(axis=1), 0))
    low, high = float((along + reach).min()), float((along - reach).max())
    low, high = min(low, (low + high) / 2), max(high, (low + high) / 2)
    start, end = centre + low * axis, centre + high * axis
    return Capsule(link, _three(start), _three(end), radius)


def _three(values: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def pairs_to_watch(model: Model, dynamics: Dynamics | ClosedLoopDynamics,
                   capsules: list[Capsule], gap: float) -> list[tuple[int, int]]:
    """Return pairs of capsules that can collide: neither neighbours nor close by design."""
    rng = np.random.default_rng(0)
    q = closed_motions(dynamics, rng, np.zeros((CHECKED_POSES, dynamics.n)))[1].q \
        if dynamics.cuts else model.joints.sample_poses(rng, CHECKED_POSES)
    bodies = [model.link_frames[capsule.link].body for capsule in capsules]
    candidates = [(i, j) for j in range(len(capsules)) for i in range(j)
                  if bodies[i] != bodies[j] and model.parent[bodies[j]] != bodies[i]
                  and not (bodies[i] >= 0 and model.parent[bodies[i]] == bodies[j])]
    if not candidates:
        return []
    ends = dynamics.tree.points(q, end_points(capsules)).reshape(len(q), len(capsules), 2, 3)
    touching = []
    for i, j in candidates:
        distance, _, _ = segment_distance(ends[:, i], ends[:, j])
        touching.append(float((
            distance < capsules[i].radius + capsules[j].radius + gap).mean()))
    return [pair for pair, ratio in zip(candidates, touching, strict=True)
            if ratio < ALWAYS_TOUCHING]


def end_points(capsules: list[Capsule]) -> tuple[tuple[str, tuple[float, float, float]], ...]:
    """Return both ends of every capsule as points of links."""
    return tuple((capsule.link, end) for capsule in capsules
                 for end in (capsule.start, capsule.end))


def segment_distance(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return the distance between segments, and the nearest point on each.

    Parameters
    ----------
    a, b : ndarray, shape (N, 2, 3)
        The two ends of each segment, m.

    Returns
    -------
    distance : ndarray, shape (N,)
        Distance, m.
    on_a, on_b : ndarray, shape (N,)
        Position of the nearest point: 0 at the first end, 1 at the second.
    """
    u, v, w = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0], a[:, 0] - b[:, 0]
    uu, vv, uv = (u * u).sum(1), (v * v).sum(1), (u * v).sum(1)
    uw, vw = (u * w).sum(1), (v * w).sum(1)
    tiny = 1e-12
    flat = uu * vv - uv**2
    s = np.where(flat > tiny, (uv * vw - vv * uw) / np.maximum(flat, tiny), 0.0)
    s = np.clip(s, 0, 1)
    t = np.where(vv > tiny, (uv * s + vw) / np.maximum(vv, tiny), 0.0)
    t = np.clip(t, 0, 1)
    s = np.where(uu > tiny, (uv * t - uw) / np.maximum(uu, tiny), 0.0)
    s = np.clip(s, 0, 1)
    gap = w + s[:, None] * u - t[:, None] * v
    return np.linalg.norm(gap, axis=1), s, t
