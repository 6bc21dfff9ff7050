"""Limits of the dependent joints of closed loops, and the distance from their singularities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.excitation.fourier import Motion
from robodyn_ros.spatial import Array

# Smallest sine of `LoopClosure.closing` that an excitation keeps: its value, and its fraction of
# the sine in the pose in which the loops were first closed. The smaller of the two bounds holds.
SINE, PART = 0.1, 0.5
# Fraction of the least regularity below which a search rejects a motion. In a singularity, the
# excess over the limit has its maximum and its slope is zero: nothing leads back from there to
# motions that do not pass the singularity.
REJECTED = 0.25


class LoopLimits:
    """What closed loops add to the limits of a motion.

    Parameters
    ----------
    dynamics : ClosedLoopDynamics
        The robot; every independent joint has a motor.

    Raises
    ------
    ValueRangeError
        An independent joint is passive, so that it cannot follow a motion.
    """

    def __init__(self, dynamics: ClosedLoopDynamics):
        if dynamics.passive_names:
            raise ValueRangeError('passive joints', ', '.join(dynamics.passive_names), 'none: '
                                  'an excitation commands every independent joint')
        self.dynamics, model = dynamics, dynamics.model
        self._names = dynamics.dependent_names
        self._places = [model.joint_names.index(name) for name in self._names]
        self._lower, self._upper = model.lower[self._places], model.upper[self._places]
        self._speed = model.velocity_limit[self._places]
        at_home = dynamics.regularity(np.array(dynamics.home)[None])[0]
        self._least = np.minimum(SINE**2, PART**2 * at_home)

    def close(self, q: Array) -> bool:
        """Return whether the loops close in all of these poses."""
        return self._closed(q) is not None

    def stay(self, q: Array) -> bool:
        """Return whether the loops close in all of these poses and stay in their assembly mode.

        They stay there if no pose comes much closer to a singularity than the limit allows; a
        little closer is allowed, as for other limits during a search.
        """
        full = self._closed(q)
        return full is not None and bool(
            (self.dynamics.regularity(full) > REJECTED * self._least).all())

    def _closed(self, q: Array) -> Array | None:
        """Return the positions of all joints, or None if the loops do not close."""
        try:
            return self.dynamics.motion(q, np.zeros_like(q)).q
        except ValueRangeError:
            return None

    def limits(self, q: Array, qd: Array) -> Iterator[tuple[str, Array, int, Array]]:
        """Yield name, values, and the order and slopes of `Family.every` of each limit."""
        motion = self.dynamics.motion(q, qd)
        regularity = self.dynamics.regularity(motion.q)
        for k, (name, place) in enumerate(zip(self._names, self._places, strict=True)):
            half = (self._upper[k] - self._lower[k]) / 2
            if np.isfinite(half):
                away = motion.q[:, place] - (self._upper[k] + self._lower[k]) / 2
                half = max(half, 1e-9)
                yield (f'position of {name}', np.abs(away) / half - 1, 0,
                       self._of(place, np.sign(away) / half))
            if np.isfinite(self._speed[k]):
                speed = motion.qd[:, place]
                yield (f'velocity of {name}', np.abs(speed) / self._speed[k] - 1, 1,
                       self._of(place, np.sign(speed) / self._speed[k]))
            unit = np.zeros_like(regularity)
            unit[:, k] = -1 / self._least[k]
            yield (f'regularity of {name}',
                   1 - regularity[:, k] / self._least[k], 0,
                   self.dynamics.regularity_pullback(motion.q, unit))

    def _of(self, place: int, slope: Array) -> Array:
        """Return slopes with respect to all joints; they are zero for all but one."""
        slopes = np.zeros((len(slope), self.dynamics.model.n))
        slopes[:, place] = slope
        return slopes

    def pull(self, motion: Motion, order: int, slopes: Array) -> tuple[Array, Array, Array]:
        """Return gradients w.r.t. q, qd and qdd of the independent joints from those of all."""
        full = self.dynamics.motion(motion.q, motion.qd)
        zero = np.zeros_like(slopes)
        by_q, by_qd = (slopes, zero) if order == 0 else (zero, slopes)
        pulled = self.dynamics.motion_pullback(full, motion.qd, motion.qdd, by_q, by_qd, zero,
                                               np.zeros_like(full.matrix))
        return pulled[:, 0], pulled[:, 1], pulled[:, 2]
