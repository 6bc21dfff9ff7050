"""`State` and `Answer`: the input and the output of a controller."""

from __future__ import annotations

from dataclasses import dataclass

from robodyn_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class State:
    """A measured state.

    Attributes
    ----------
    q, qd : ndarray, shape (n,)
        Positions and velocities, rad or m, and per second.
    stamp : int
        Stamp of the state, ns.
    arrived : float
        Time of its arrival, s of the monotonic clock.
    """

    q: Array
    qd: Array
    stamp: int
    arrived: float


@dataclass(frozen=True, eq=False)
class Answer:
    """A command of a controller.

    Attributes
    ----------
    torque : ndarray, shape (n,)
        Torque, N m or N; finite and within the effort limits.
    stamp : int
        Stamp of the command, ns.
    """

    torque: Array
    stamp: int
