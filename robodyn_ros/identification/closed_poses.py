"""Random poses of a robot with closed loops, all assembled the way it starts."""

from __future__ import annotations

from typing import cast

import numpy as np

from robodyn_ros.dynamics import ClosedLoopDynamics, FullMotion, RobotDynamics
from robodyn_ros.errors import IdentificationError, ValueRangeError
from robodyn_ros.spatial import Array

STOPS = 4  # on the way to a random target
STEP = 0.2  # rad or m between stops, at most
TRIES = 30  # times as many stops may be tried as poses are needed
SINGULAR = 0.1  # smallest singularity on a way; beyond zero lies another assembly


def closed_motions(loops: RobotDynamics, rng: np.random.Generator, qd: Array,
                   ) -> tuple[Array, FullMotion]:
    """Return random poses that a motion from the start reaches, with the motion of all joints.

    The poses follow one another: towards random targets within the limits, and back where the
    loops do not close, a dependent joint leaves its range, or a singularity comes near. Behind
    a singularity the robot could be assembled in another way, which it cannot be on a real one.

    Parameters
    ----------
    loops : RobotDynamics
        The robot with closed loops.
    rng : numpy.random.Generator
        Source of the targets.
    qd : ndarray, shape (N, n)
        Velocities of the independent joints for the poses.

    Returns
    -------
    q : ndarray, shape (N, n)
        Positions of the independent joints.
    motion : FullMotion
        Positions and velocities of all joints.

    Raises
    ------
    IdentificationError
        If too few poses can be reached.
    """
    names = list(loops.model.joint_names)
    places = [names.index(name) for name in loops.joint_names]
    full = loops.positions(_middle(loops, places))
    here = full[places]
    least = min(SINGULAR, 0.5 * loops.singularity(here, near=full))
    joints = loops.joints
    lower = np.where(np.isfinite(joints.lower), joints.lower, here - np.pi)
    upper = np.where(np.isfinite(joints.upper), joints.upper, here + np.pi)
    found: list[FullMotion] = []
    poses: list[Array] = []
    for _ in range(TRIES * len(qd)):
        way = rng.uniform(lower, upper) - here
        way *= min(1.0, STOPS * STEP / max(float(np.abs(way).max()), STEP))
        start = here
        for stop in range(1, STOPS + 1):
            goal = start + way * stop / STOPS
            reached = _reached(loops, goal, full, least)
            if reached is None:
                break
            here, full = goal, reached
            poses.append(goal)
            found.append(loops.motion(goal, qd[len(found)], near=full))
            if len(found) == len(qd):
                return np.array(poses), FullMotion(*map(np.array, zip(*found, strict=True)))
    raise IdentificationError(f'the loops close in {len(found)} of the {len(qd)} random poses '
                              'that are needed; valid: wider limits of the joints')


def _middle(loops: RobotDynamics, places: list[int]) -> Array:
    """Return the independent positions of the pose in which the robot was assembled."""
    return np.asarray(cast(ClosedLoopDynamics, loops).home)[places]


def _reached(loops: RobotDynamics, goal: Array, near: Array, least: float) -> Array | None:
    """Return the pose of all joints at a goal, or None where the way to it ends."""
    try:
        full = loops.positions(goal, near=near)
        singularity = loops.singularity(goal, near=near)
    except ValueRangeError:
        return None
    limits = loops.model
    inside = (full >= limits.lower) & (full <= limits.upper)
    return full if inside.all() and singularity > least else None
