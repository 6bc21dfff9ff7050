"""Random poses of a robot with closed loops, all in its initial assembly mode."""

from __future__ import annotations

import numpy as np

from robodyn_ros.dynamics import FullMotion, RobotDynamics
from robodyn_ros.errors import IdentificationError, ValueRangeError
from robodyn_ros.spatial import Array

STOPS = 4  # poses on the way to a random target
STEP = 0.2  # rad or m, largest distance between these poses
TRIES = 30  # maximum number of targets per required pose
SINGULAR = 0.1  # smallest allowed distance from a singularity; beyond it is another assembly mode


def closed_motions(loops: RobotDynamics, rng: np.random.Generator, qd: Array,
                   ) -> tuple[Array, FullMotion]:
    """Return random poses that can be reached from `home`, with the motion of all joints.

    Each pose is reached from the previous one, on the way to a random target within the limits. A
    new target is drawn if the loops do not close, a dependent joint leaves its range, or a
    singularity is near, since the robot could leave its assembly mode there.

    Parameters
    ----------
    loops : RobotDynamics
        The robot with closed loops.
    rng : numpy.random.Generator
        Source of the targets.
    qd : ndarray, shape (N, n)
        Velocities of the independent joints in these poses.

    Returns
    -------
    q : ndarray, shape (N, n)
        Positions of the independent joints.
    motion : FullMotion
        Positions and velocities of all joints.

    Raises
    ------
    IdentificationError
        Too few poses can be reached.
    """
    names = list(loops.model.joint_names)
    places = [names.index(name) for name in loops.joint_names]
    full = loops.positions(loops.home[places])
    here = full[places]
    least = min(SINGULAR, 0.5 * loops.singularity(here, near=full))
    joints = loops.joints
    lower = np.where(np.isfinite(joints.lower), joints.lower, here - np.pi)
    upper = np.where(np.isfinite(joints.upper), joints.upper, here + np.pi)
    found: list[FullMotion] = []
    poses: list[Array] = []
    for _ in range(TRIES * len(qd)):
        travel = rng.uniform(lower, upper) - here
        travel *= min(1.0, STOPS * STEP / max(float(np.abs(travel).max()), STEP))
        start = here
        for stop in range(1, STOPS + 1):
            goal = start + travel * stop / STOPS
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


def _reached(loops: RobotDynamics, goal: Array, near: Array, least: float) -> Array | None:
    """Return the pose of all joints at a goal, or None if it cannot be reached."""
    try:
        full = loops.positions(goal, near=near)
        singularity = loops.singularity(goal, near=near)
    except ValueRangeError:
        return None
    limits = loops.model
    inside = (full >= limits.lower) & (full <= limits.upper)
    return full if inside.all() and singularity > least else None
