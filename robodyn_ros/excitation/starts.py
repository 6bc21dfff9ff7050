"""Random motions from which the search for an excitation starts."""

from __future__ import annotations

import numpy as np

from robodyn_ros.excitation.constraints import Constraints
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.spatial import Array

TRIES = 6  # random motions for each start
HALVINGS = 8  # of a motion along which closed loops open or turn singular


class Starts:
    """Random motions of one robot.

    Parameters
    ----------
    constraints : Constraints
        The limits.
    basis : Basis
        The basis of the motions.
    width : ndarray, shape (n,)
        Half the range of each joint.
    poses : ndarray, shape (N, n), optional
        Poses of a motion within the limits; the starts are drawn around the one nearest the middle
        of the range. By default, they are drawn around that middle, or around the home position of
        a robot with closed loops.
    """

    def __init__(self, constraints: Constraints, basis: Basis, width: Array,
                 poses: Array | None = None):
        self._constraints, self._basis, self._width = constraints, basis, width
        robot = constraints.dynamics
        low, high = constraints.position.T
        bounded = np.isfinite(low) & np.isfinite(high)
        middle = np.where(bounded, low, 0.0) / 2 + np.where(bounded, high, 0.0) / 2
        self._centre = middle
        if constraints.loops is not None:
            names = robot.model.joint_names
            self._centre = robot.home[[names.index(name) for name in robot.joint_names]]
        if poses is not None:
            self._centre = poses[np.argmin(np.linalg.norm((poses - middle) / width, axis=1))]

    def draw(self, rng: np.random.Generator) -> Array:
        """Return the one of several random motions that exceeds the limits least."""
        tries = [self._random(rng) for _ in range(TRIES)]
        return min(tries, key=lambda x: max(
            self._constraints.worst(self._basis.motion(x)).values(), default=0.0))

    def _random(self, rng: np.random.Generator) -> Array:
        """Return a random motion within position and velocity limits."""
        n, width = len(self._width), self._width
        x = np.zeros((1 + self._basis.free, n))
        x[0] = self._centre + 0.2 * width * rng.uniform(-1, 1, n)
        x[1:] = rng.normal(size=(self._basis.free, n))
        motion = self._basis.motion(x)
        fraction = rng.uniform(0.3, 0.7)
        room = fraction * width / np.maximum(np.abs(motion.q - x[0]).max(axis=0), 1e-12)
        fast = fraction * self._constraints.velocity / np.maximum(
            np.abs(motion.qd).max(axis=0), 1e-12)
        x[1:] *= np.minimum(room, fast)
        for _ in range(HALVINGS):
            if self._constraints.stay(self._basis.motion(x)):
                break
            x[0] = (x[0] + self._centre) / 2
            x[1:] /= 2
        return x
