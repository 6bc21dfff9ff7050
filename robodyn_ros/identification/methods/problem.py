"""What a method of estimation gets: the data, and the weighted least squares that it improves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.identification.estimation import Estimate, least_squares
from robodyn_ros.identification.observations import Observations, merge
from robodyn_ros.lazy import cached_property
from robodyn_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of an estimate.

    Attributes
    ----------
    observations : Observations
        Equations of all samples.
    kept : tuple of int
        The b columns of the base parameters.
    folds : sequence of ndarray, shape (rows, p + 1, p + 1)
        Triangular factors of ``[W, tau]``, one for each contiguous part of the data.
    count : ndarray, shape (rows,)
        Number of samples of each row.
    """

    observations: Observations
    kept: tuple[int, ...]
    folds: Sequence[Array]
    count: Array

    @cached_property
    def factors(self) -> Array:
        """Triangular factors of all data, shape (rows, p + 1, p + 1)."""
        return merge(list(self.folds))

    @cached_property
    def start(self) -> Estimate:
        """Weighted least squares."""
        names = self.observations.linear.names
        return least_squares(self.factors, self.kept, self.count,
                             names=[names[k] for k in self.kept])

    @cached_property
    def low_noise(self) -> Observations:
        """The observations of the motion with little noise, see `Segment.smooth`."""
        return self.observations.changed([
            replace(s, q=s.smooth[0], qd=s.smooth[1], qdd=s.smooth[2])
            for s in self.observations.segments])

    def around(self, estimate: Estimate) -> list[Array]:
        """Return the folds with torques shifted so that an estimate is their least squares."""
        change = estimate.values - self.start.values
        found = [fold.copy() for fold in self.folds]
        for fold in found:
            fold[:, :, -1] += fold[:, :, self.kept] @ change
        return found

    def with_values(self, values: Array) -> Estimate:
        """Return an estimate with other values and the standard deviations of their residuals."""
        small = self.factors[:, :, [*self.kept, -1]]
        squares = ((small[:, :, :-1] @ values - small[:, :, -1]) ** 2).sum(axis=1)
        sigma = np.sqrt(squares / np.maximum(self.count, 1.0))
        return replace(self.start, values=values, sigma=np.maximum(
            sigma, 1e-9 * (float(sigma.max()) or 1.0)))
