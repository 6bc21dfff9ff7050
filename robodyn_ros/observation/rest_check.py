"""`RestCheck`: compares torques at rest with gravity to check the setting of efforts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robodyn_ros.spatial import Array

SLOW = 0.01  # rad/s or m/s, largest velocity at rest
LASTS = 100  # consecutive states at rest, of which the last is used
APART = 0.2  # rad or m, smallest distance of a pose from those used before
POSES = 50  # largest number of poses
FEWEST = 3  # smallest number of poses for which a contradiction is reported
WRONG = 0.5  # largest distance of the slope from 1 that is accepted


class RestCheck:
    """Compares torques at rest in different poses with gravity.

    Parameters
    ----------
    n : int
        Number of joints.
    """

    def __init__(self, n: int):
        self._poses: list[Array] = []
        self._still, self._products, self._squares = 0, np.zeros(n), np.zeros(n)

    def add(self, q: Array, qd: Array, torque: Array,
            gravity: Callable[[Array], Array]) -> None:
        """Take a state with its complete torque into account."""
        self._still = self._still + 1 if np.abs(qd).max() < SLOW else 0
        if self._still != LASTS or len(self._poses) >= POSES or any(
                np.abs(q - pose).max() < APART for pose in self._poses):
            return
        g = gravity(q)
        self._poses.append(q)
        self._products += g * torque
        self._squares += g * g

    @property
    def slope(self) -> float:
        """Torque at rest over gravity, of all joints; 1 if the setting is right."""
        total = float(self._squares.sum())
        return float(self._products.sum()) / total if total > 1e-6 else float('nan')

    def contradiction(self, what: str = 'measured torques', key: str = 'effort') -> str:
        """Return how the torques contradict the setting; empty if they do not.

        Parameters
        ----------
        what, key : str
            The torques, and the setting, for the text.
        """
        slope = self.slope
        if len(self._poses) < FEWEST or not abs(slope - 1) > WRONG:
            return ''
        return (f'at rest in {len(self._poses)} poses, {what} are {slope:.2f} times those of '
                f'gravity: the setting `{key}` is wrong, or a load is not described '
                '(robodyn effort tells from a log what efforts mean)')

    def to_text(self) -> str:
        """Return the slope and the number of poses."""
        return f'{self.slope:.3f} in {len(self._poses)} poses' if self._poses else 'no pose yet'
