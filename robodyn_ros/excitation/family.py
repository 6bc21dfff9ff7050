"""`Family`: one limit at all samples of a motion, with its derivatives."""

from __future__ import annotations

from dataclasses import dataclass

from robodyn_ros.spatial import Array

# limits whose excess is a fraction of the limit; the excess over all others is a length in m
RELATIVE = ('position', 'velocity', 'acceleration', 'jerk', 'torque', 'regularity',
            'closure')


@dataclass(frozen=True)
class Family:
    """One limit at all samples.

    Attributes
    ----------
    name : str
        Name in messages, for example ``torque of joint2``.
    values : ndarray, shape (N,)
        Excess over the limit, at most zero where it is respected: relative to the limit, or in m.
    joint : int
        Index of the joint, -1 for a limit of points.
    linear : tuple of (int, float), optional
        Order of the derivative of the joint position that is limited, 0 to 3, and its factor.
    torque : ndarray, shape (N,), optional
        Derivatives of the values w.r.t. the torque of the joint.
    points : ndarray, shape (N, k, 3), optional
        Derivatives of the values w.r.t. the points of the tool and of the capsules.
    every : tuple of (int, ndarray), optional
        With closed loops: derivatives of the values w.r.t. the positions (order 0) or velocities
        (order 1) of all joints, shape (N, b).
    """

    name: str
    values: Array
    joint: int = -1
    linear: tuple[int, float] | None = None
    torque: Array | None = None
    points: Array | None = None
    every: tuple[int, Array] | None = None


def unit_of(name: str) -> str:
    """Return the unit of the excess over a limit: '1', relative to the limit, or 'm'."""
    return '1' if name.partition(' of ')[0] in RELATIVE else 'm'


def excess_text(name: str, value: float) -> str:
    """Return the name of a limit with the excess over it."""
    size = f'{value:.3g} m' if unit_of(name) == 'm' else f'{100 * value:.3g} %'
    return f'{name} (by {size})'
