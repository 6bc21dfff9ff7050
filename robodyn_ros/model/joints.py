"""`Joints`: names and limits of the independent joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class Joints:
    """The independent joints and their limits.

    Attributes
    ----------
    joint_names : tuple of str
    lower, upper, velocity_limit, effort_limit : ndarray, shape (n,)
        Limits in rad or m, rad/s or m/s, N m or N; infinite where there are none.
    """

    joint_names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity_limit: Array
    effort_limit: Array

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    def position_range(self, unlimited: ArrayLike = np.pi) -> tuple[Array, Array]:
        """Return lower and upper limits, shape (n,) each, all finite.

        Parameters
        ----------
        unlimited : float or array-like, shape (n,)
            Replaces infinite limits, rad or m; by default, half a turn to either side.
        """
        return (np.where(np.isfinite(self.lower), self.lower, -np.asarray(unlimited)),
                np.where(np.isfinite(self.upper), self.upper, np.asarray(unlimited)))

    def sample_poses(self, rng: np.random.Generator, count: int,
                     unlimited: ArrayLike = np.pi) -> Array:
        """Return random poses, uniformly distributed within the limits, (count, n), rad or m.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of random numbers.
        count : int
            Number of poses.
        unlimited : float or array-like, shape (n,)
            As in `position_range`.
        """
        lower, upper = self.position_range(unlimited)
        return rng.uniform(lower, upper, (count, self.n))

    def take(self, indices: Sequence[int]) -> Joints:
        """Return the joints at these indices."""
        return Joints(tuple(self.joint_names[k] for k in indices), *(
            limit[list(indices)] for limit in (self.lower, self.upper, self.velocity_limit,
                                              self.effort_limit)))
