"""`EnergyMonitor`: compares the change of energy with the work of motors and friction.

The equations of motion are passive: the energy changes by the work of the torques, less the work
of friction, ``d(K + P)/dt = qd' (tau - friction)`` (Kolyubin 4.5-4.7). What is left over is the
power of forces from outside, or an error of the model or of the measured torques.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.efforts import sensed_model
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.spatial import Array

LONGEST_GAP = 0.1  # s between two states, after which the sums begin again
FILLED = 0.5  # fraction of the window that is needed for a mean
ROUND_OFF = 1e-9  # relative; a window may be a whole number of sampling times
TOLERANCE = 0.05  # fraction of the work that all joints exchange, for errors of measurement


class EnergyBalance(NamedTuple):
    """Energies and powers of a robot.

    Attributes
    ----------
    kinetic, potential : float
        J; the potential energy is that of `Dynamics.energy`.
    supplied, dissipated : float
        Power of the torques, ``qd' tau``, and of friction, W.
    unexplained : float
        Mean over the window of the power that changes the energy beyond these, W; above 0 if the
        robot gains energy. NaN while the window is less than half full.
    passive : bool
        Whether the energy rose in the window by no more than the work of the torques plus a
        twentieth of the work that all joints exchange, which is the sum of the magnitudes of
        their work. True while the window is less than half full.
    """

    kinetic: float
    potential: float
    supplied: float
    dissipated: float
    unexplained: float
    passive: bool


class EnergyMonitor:
    """Balances the energy of a robot against the measured torques, while it runs.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot, with closed loops or without. The work of contacts of a floating base is not
        measured, and appears as unexplained.
    window : float
        Time over which the balance is taken, s.

    Raises
    ------
    ValueRangeError
        The window is not a positive number.
    """

    def __init__(self, dynamics: RobotDynamics, window: float = 1.0):
        if not (np.isfinite(window) and window > 0):
            raise ValueRangeError('window', window, 'a time > 0 s')
        sensed = sensed_model(dynamics.model)
        self._dynamics = dynamics if sensed is dynamics.model else dynamics.with_model(sensed)
        self._window = window
        self.reset()

    def reset(self) -> None:
        """Begin again with the next state."""
        self._last: tuple[float, Array] | None = None  # time and powers
        self._sums = np.zeros(3)  # work supplied, dissipated and exchanged
        self._past: deque[tuple[float, float, Array]] = deque()  # time, energy, sums

    def update(self, t: float, q: Array, qd: Array, torque: Array, *,
               near: Array | None = None) -> EnergyBalance:
        """Add a measured state and return the balance.

        Parameters
        ----------
        t : float
            Time of the state, s. A step back, or a gap of more than 0.1 s, begins a new window.
        q, qd, torque : ndarray, shape (n,)
            State, and complete torques on the links' side (see `complete_torque`), N m or N.
        near : ndarray, shape (b,), optional
            Pose of all joints near which closed loops are closed.
        """
        each = qd * torque
        powers = np.array([each.sum(), qd @ self._dynamics.friction(qd, q, near=near),
                           np.abs(each).sum()])
        if self._last is not None and 0 < t - self._last[0] <= LONGEST_GAP:
            self._sums = self._sums + (powers + self._last[1]) * (0.5 * (t - self._last[0]))
        elif self._last is not None:
            self.reset()
        self._last = t, powers
        kinetic, potential = self._dynamics.energy(q, qd, near=near)
        past, now = self._past, (t, kinetic + potential, self._sums)
        past.append(now)
        while len(past) > 2 and t - past[1][0] >= self._window * (1 - ROUND_OFF):
            past.popleft()
        since = past[0]
        elapsed, gained = t - since[0], now[1] - since[1]
        work, lost, exchanged = self._sums - since[2]
        filled = elapsed > FILLED * self._window
        return EnergyBalance(
            kinetic, potential, float(powers[0]), float(powers[1]),
            float(gained - work + lost) / elapsed if filled else np.nan,
            not filled or bool(gained <= work + TOLERANCE * exchanged))
