"""Torque ripple of gears and motors, by the angle of the joint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robodyn_ros.spatial import Array


class RippleLine(NamedTuple):
    """One line of a joint's torque ripple: ``sine sin(n q) + cosine cos(n q)``.

    This is the torque that the motor must give beyond that of all other terms.

    Attributes
    ----------
    harmonic : int
        Periods n a turn of the joint: an integer multiple of the motor's or the wave generator's
        turns for one turn of the joint.
    sine, cosine : float
        N m.
    """

    harmonic: int
    sine: float = 0.0
    cosine: float = 0.0

    def torque(self, q: Array) -> Array:
        """Return the torque at positions q of the joint, N m."""
        return np.asarray(self.sine * np.sin(self.harmonic * q)
                          + self.cosine * np.cos(self.harmonic * q))


LINES = 3  # largest number of lines of a joint
MOST_PERIODS = 10000  # a turn; more than any gear has
