"""A gentle motion within a robot's limits, to look at a robot that has nothing to do."""

from __future__ import annotations

import numpy as np

from robodyn_ros.description import Array
from robodyn_ros.model import Model

RAMP = 2.0  # s from rest to the full motion


class SmoothMotion:
    """Each joint swings about the middle of its range, from rest: ``c + a s(t) sin(w t)``.

    Amplitude and frequency stay within a third of the range and half of the velocity limit.

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
        # |qd| <= a (w + largest slope of the ramp, 1.875 / RAMP)
        self.amplitude = np.minimum(
            reach, 0.5 * model.velocity_limit / (self.rate + 1.875 / RAMP))

    def sample(self, time: float) -> tuple[Array, Array, Array]:
        """Return q, qd, qdd at a time, shape (n,) each; at rest before 0."""
        s = min(max(time / RAMP, 0.0), 1.0)
        e = s**3 * (10 - 15 * s + 6 * s * s)
        de = 30 * s * s * (1 - s) ** 2 / RAMP
        dde = 60 * s * (1 - s) * (1 - 2 * s) / RAMP**2
        sine, cosine = np.sin(self.rate * time), np.cos(self.rate * time)
        w, a = self.rate, self.amplitude
        return (self.centre + a * e * sine, a * (de * sine + e * w * cosine),
                a * (dde * sine + 2 * de * w * cosine - e * w * w * sine))
