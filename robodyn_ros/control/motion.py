"""A gentle motion within a robot's limits, for demonstrations."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.reference import PEAK_SPEED, Reference
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

RAMP = 2.0  # s from rest to the full motion


class SmoothMotion:
    """A motion ``c + a s(t) sin(w t)`` of each joint about the middle of its range, from rest.

    The factor s rises smoothly from 0 to 1 within 2 s. The motion covers at most a third of the
    range, and its velocity is at most half of the limit.

    Parameters
    ----------
    model : Model
        The robot.
    slowest, fastest : float
        Frequencies of the first and the last joint, Hz.
    """

    def __init__(self, model: Model, slowest: float = 0.1, fastest: float = 0.3):
        bounded = np.isfinite(model.lower) & np.isfinite(model.upper)
        lower = np.where(bounded, model.lower, -1.5)
        upper = np.where(bounded, model.upper, 1.5)
        self.centre = (lower + upper) / 2
        self.rate = 2 * np.pi * np.linspace(slowest, fastest, model.n)
        reach = np.minimum((upper - lower) / 6, 1.0)
        # |qd| <= a (w + largest slope of the ramp)
        self.amplitude = np.minimum(
            reach, 0.5 * model.velocity_limit / (self.rate + PEAK_SPEED / RAMP))
        self._ramp = Reference([0.0, RAMP], [[0.0], [1.0]], [[0.0], [0.0]], [[0.0], [0.0]])

    def sample(self, time: float) -> tuple[Array, Array, Array]:
        """Return q, qd, qdd at a time, shape (n,) each; at rest before 0."""
        e, de, dde = self._ramp.sample(time)
        sine, cosine = np.sin(self.rate * time), np.cos(self.rate * time)
        w, a = self.rate, self.amplitude
        return (self.centre + a * e * sine, a * (de * sine + e * w * cosine),
                a * (dde * sine + 2 * de * w * cosine - e * w * w * sine))
