"""What goes into a controller and what comes out of it."""

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
        Its stamp, ns.
    arrived : float
        When it arrived, s of the monotonic clock.
    """

    q: Array
    qd: Array
    stamp: int
    arrived: float


@dataclass(frozen=True, eq=False)
class Answer:
    """A command.

    Attributes
    ----------
    torque : ndarray, shape (n,)
        N m or N; finite, within the effort limits.
    stamp : int
        Its stamp, ns.
    """

    torque: Array
    stamp: int
