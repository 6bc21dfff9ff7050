"""Sensor models: noise, resolution, delay and loss of measurements."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.spatial import Array


@dataclass(frozen=True)
class Sensors:
    """Errors of the sensors of a simulated robot.

    Attributes
    ----------
    position_noise, velocity_noise, effort_noise : float or sequence of float
        Standard deviations of the noise; rad or m, rad/s or m/s, N m or N.
    position_step : float or sequence of float
        Resolution of the encoders, rad or m; velocities are not quantised.
    delay : float
        Time between measuring a state and its arrival, s.
    dropped : float
        Probability that a measurement is lost, at least 0 and below 1.
    motors : bool
        Whether positions and velocities are those of the motors at the output of their gears, as
        in most arms. This makes a difference for elastic joints only.
    seed : int
        Seed of the random numbers.
    """

    position_noise: Any = 0.0
    velocity_noise: Any = 0.0
    effort_noise: Any = 0.0
    position_step: Any = 0.0
    delay: float = 0.0
    dropped: float = 0.0
    motors: bool = False
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Measurement:
    """A measured state of n joints.

    Attributes
    ----------
    time : float
        Simulated time at which it was measured, s.
    position, velocity, effort : ndarray, shape (n,)
        rad or m, rad/s or m/s, N m or N.
    """

    time: float
    position: Array
    velocity: Array
    effort: Array


class MeasuredStates:
    """Turns true states into measurements; the same seed gives the same measurements.

    Parameters
    ----------
    sensors : Sensors
        Errors of the sensors.
    n : int
        Number of joints.

    Raises
    ------
    ValueRangeError
        The delay is negative, or ``dropped`` is not a probability below 1.
    """

    def __init__(self, sensors: Sensors, n: int):
        if not sensors.delay >= 0:
            raise ValueRangeError('delay', sensors.delay, 'a time >= 0 s')
        if not 0 <= sensors.dropped < 1:
            raise ValueRangeError('dropped', sensors.dropped, 'a probability below 1')
        self._sensors, self._n = sensors, n
        self.restart()

    def restart(self) -> None:
        """Forget all measurements and begin again with the seed."""
        self._random = np.random.default_rng(self._sensors.seed)
        self._late: deque[Measurement] = deque()

    def measure(self, time: float, position: Array, velocity: Array,
                effort: Array) -> Measurement | None:
        """Measure a true state at the current time.

        Parameters
        ----------
        time : float
            Simulated time, s.
        position, velocity, effort : ndarray, shape (n,)
            The true state.

        Returns
        -------
        Measurement or None
            The newest measurement that has arrived by now, or None if there is no new one.
        """
        sensors, random, n = self._sensors, self._random, self._n
        position = position + random.normal(size=n) * sensors.position_noise
        resolution = np.broadcast_to(np.asarray(sensors.position_step, np.float64), (n,))
        rough = resolution > 0
        position[rough] = np.round(position[rough] / resolution[rough]) * resolution[rough]
        velocity = velocity + random.normal(size=n) * sensors.velocity_noise
        effort = effort + random.normal(size=n) * sensors.effort_noise
        if random.random() >= sensors.dropped:
            self._late.append(Measurement(time, position, velocity, effort))
        arrived = None
        while self._late and self._late[0].time <= time - sensors.delay + 1e-12:
            arrived = self._late.popleft()
        return arrived
