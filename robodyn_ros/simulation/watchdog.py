"""`TorqueWatchdog`: selects the torque that acts on a simulated robot."""

from __future__ import annotations

import math

import numpy as np

from robodyn_ros.spatial import Array

BRAKES_OPEN = 0.05  # s; earlier commands may belong to the previous motion and open no brakes


class TorqueWatchdog:
    """Stores the last command; the torque is zero if this command is too old.

    All times are simulated times, so that a command does not age while the world is paused.
    """

    def __init__(self) -> None:
        self.restart(0)

    def restart(self, n: int) -> None:
        """Forget all commands.

        Parameters
        ----------
        n : int
            Number of joints.
        """
        self.command: Array = np.zeros(n)
        self._time = -math.inf

    def take(self, command: Array, now: float) -> None:
        """Store a command, shape (n,), that arrives now."""
        self.command, self._time = command, now

    def torque(self, now: float, timeout: float, brakes: bool = False) -> Array | None:
        """Return the torque that acts now.

        Parameters
        ----------
        now : float
            Simulated time, s.
        timeout : float
            Time after which a command is no longer valid, s.
        brakes : bool
            Whether brakes hold the robot from the start until a command arrives.

        Returns
        -------
        ndarray, shape (n,), or None
            Torque, N m or N; None if the brakes hold the robot.
        """
        if brakes and self._time < BRAKES_OPEN:
            return None
        # a command from the future means that the time has jumped back
        if 0 <= now - self._time <= timeout:
            return self.command
        return np.zeros_like(self.command)
