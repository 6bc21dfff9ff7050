"""`TorqueWatchdog`: which torque acts on a simulated robot that runs in real time."""

from __future__ import annotations

import math

import numpy as np

from robodyn_ros.spatial import Array

BRAKES_OPEN = 0.05  # s after the start: torques for the motion before may still be under way


class TorqueWatchdog:
    """Keeps the last command; after a time without a new one the torque is zero.

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
        """Take a command, shape (n,), that comes now."""
        self.command, self._time = command, now

    def torque(self, now: float, timeout: float, brakes: bool = False) -> Array | None:
        """Return the torque that acts now.

        Parameters
        ----------
        now : float
            Simulated time, s.
        timeout : float
            Time after which a command counts no more, s.
        brakes : bool
            Whether brakes hold the robot from the start until a command comes.

        Returns
        -------
        ndarray, shape (n,), or None
            N m or N; None: the brakes hold the robot.
        """
        if brakes and self._time < BRAKES_OPEN:
            return None
        # where time has jumped back, a command is from the future
        if 0 <= now - self._time <= timeout:
            return self.command
        return np.zeros_like(self.command)
