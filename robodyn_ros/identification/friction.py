"""Friction models that are linear in their parameters, and the direction of friction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robodyn_ros.errors import UnknownNameError
from robodyn_ros.model.kinds import FRICTION_TERMS
from robodyn_ros.spatial import Array

STRIBECK_SPEED = 0.1  # Stribeck velocity, as a fraction of each joint's fast speed
REST = 0.05  # s, shortest time for which a joint is slow if it is at rest
_SIGN_TERMS = ('Fc', 'Fs', 'Fr')  # terms that change their sign with the direction


@dataclass(frozen=True)
class FrictionShape:
    """The friction model, and how its direction changes at standstill.

    The direction is a number between -1 and 1. With a width it is
    ``tanh(s / max(width * speed, floor))`` of the joint's speed s. Without a width it is sign(s),
    and it keeps its last value while the joint is at rest, that is, while its speed stays below
    the floor for longer than during a reversal.

    Attributes
    ----------
    model : str
        ``none``; ``coulomb``: viscous, Coulomb and offset (an asymmetric Coulomb friction is the
        last two together); ``asymmetric``: the viscous friction differs by direction,
        ``Fa |s|``; ``stribeck``: ``Fs d exp(-|s| / v)`` with the direction d; ``root``:
        ``Fr d sqrt|s|``; ``rich``: all of them.
    width : float
        Width of the change of direction, as a fraction of each joint's fast speed.
    speed : ndarray, shape (n,)
        A fast speed of each joint, rad/s or m/s, to which width and Stribeck velocity refer.
    floor : ndarray, shape (n,)
        Speeds that the noise of the velocity may reach at rest, rad/s or m/s. Empty: zero.
    """

    model: str = 'coulomb'
    width: float = 0.0
    speed: Array = field(default_factory=lambda: np.ones(0))
    floor: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Check the name of the friction model."""
        if self.model not in FRICTION_TERMS:
            raise UnknownNameError('friction model', self.model, FRICTION_TERMS)

    def fast(self, row: Array) -> float:
        """Return the fast speed of ``row @ qd``, rad/s or m/s."""
        return float(np.abs(row) @ self.speed)

    def noise(self, row: Array) -> float:
        """Return the speed ``row @ qd`` that noise may reach at rest, rad/s or m/s."""
        return float(np.abs(row) @ self.floor) if len(self.floor) else 0.0

    def direction(self, speed: Array, row: Array) -> Array:
        """Return the direction of friction at single speeds.

        Parameters
        ----------
        speed : ndarray, shape (N,)
            Speeds ``row @ qd``, rad/s or m/s.
        row : ndarray, shape (n,)
            The joints' part in the speed.
        """
        if not self.width:
            return np.sign(speed)
        return np.tanh(speed / max(self.width * self.fast(row), self.noise(row)))

    def directions(self, speed: Array, row: Array, rate: float) -> Array:
        """Return the direction of friction along a motion of consecutive samples.

        Parameters
        ----------
        speed, row
            See `direction`.
        rate : float
            Samples a second, Hz.
        """
        direction = self.direction(speed, row)
        if self.width:
            return direction
        slow = np.abs(speed) <= self.noise(row)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], slow, [False]])))
        for first, end in edges.reshape(-1, 2):
            if end - first >= REST * rate:  # a shorter time is a reversal
                direction[first:end] = direction[max(first - 1, 0)]
        return direction

    def values(self, term: str, speed: Array, row: Array, direction: Array) -> Array:
        """Return a friction term for a parameter of one, shape (N,).

        Parameters
        ----------
        term : str
            Name of the parameter, for example ``Fcl`` or ``Fs``.
        speed, direction : ndarray, shape (N,)
            Speeds (rad/s or m/s) and the direction of friction.
        row : ndarray, shape (n,)
            The joints' part in the speed.
        """
        kind = term.rstrip('lm')
        if kind == 'Fv':
            return speed
        if kind == 'off':
            return np.ones_like(speed)
        if kind == 'Fa':
            return np.abs(speed)
        if kind == 'Fc':
            return direction
        if kind == 'Fs':
            return direction * np.exp(-np.abs(speed) / (STRIBECK_SPEED * self.fast(row)))
        return direction * np.sqrt(np.abs(speed))  # Fr

    def slope(self, term: str, speed: Array, row: Array) -> Array:
        """Return the derivative of a term by the speed; at a jump, it is taken as zero."""
        jumps = not self.width and term[:2] in _SIGN_TERMS
        step: Any = 1e-6 * self.fast(row)
        if jumps:
            step = np.minimum(step, 0.5 * np.abs(speed))
            step = np.where(step > 0, step, 1.0)
        high, low = (self.values(term, s, row, self.direction(s, row))
                     for s in (speed + step, speed - step))
        return np.asarray((high - low) / (2 * step) * (speed != 0 if jumps else 1.0))


def is_friction(term: str) -> bool:
    """Return whether a parameter belongs to friction, which includes the offset."""
    return term.startswith(('F', 'off'))
