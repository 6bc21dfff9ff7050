"""`PoseSearch`: searches the joint range for the pose in which a cost is smallest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

UNLIMITED = 1.0  # m, range of prismatic joints without limits, to either side


class PoseSearch:
    """Evaluates random poses, then takes ever smaller random steps around the best one.

    Joints without limits are searched over a full turn, or over 1 m in each direction.

    Parameters
    ----------
    model : Model
        The robot.
    samples, refinements : int
        Number of random poses, and number of refinements, each with a tenth as many poses.
    seed : int
        Seed of the random numbers.

    Attributes
    ----------
    poses : ndarray, shape (samples, n)
        The random poses.
    evaluations : int
        Number of poses so far.
    """

    def __init__(self, model: Model, samples: int, refinements: int, seed: int):
        self._rng = np.random.default_rng(seed)
        reach = np.array([UNLIMITED if model.prismatic[model.body_joints.index(name)] else np.pi
                          for name in model.joint_names])
        self._lower, self._upper = model.joints.position_range(reach)
        self._refinements, self._tries = refinements, max(samples // 10, 8)
        self.poses = model.joints.sample_poses(self._rng, samples, reach)
        self.evaluations = samples

    def smallest(self, cost: Callable[[Array], Array], values: Array) -> tuple[float, Array]:
        """Return the smallest cost that was found, and its pose.

        Parameters
        ----------
        cost : callable
            Takes poses, shape (N, n), and returns their costs, shape (N,).
        values : ndarray, shape (samples,)
            The costs of `poses`.
        """
        best, value = self.poses[values.argmin()], float(values.min())
        spread = (self._upper - self._lower) / 4
        for _ in range(self._refinements):
            steps = self._rng.uniform(-1, 1, (self._tries, len(best)))
            tries = np.clip(best + spread * steps, self._lower, self._upper)
            values = cost(tries)
            self.evaluations += len(tries)
            if values.min() < value:
                best, value = tries[values.argmin()], float(values.min())
            spread = spread * 0.6
        return value, best
