"""Finds a motion within all limits; if there is none, names the limits that are exceeded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize

from robodyn_ros.errors import IdentificationError
from robodyn_ros.excitation.constraints import Constraints
from robodyn_ros.excitation.family import excess_text
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.spatial import Array

OPEN = 1e6  # value of the objective, a sum of squared excesses, if the loops open or turn singular
RESERVE = 0.01  # fraction of each limit that the search keeps in reserve if it can


def feasible_motion(constraints: Constraints, basis: Basis, width: Array,
                    starts: Sequence[Array]) -> Array:
    """Return the variables of a motion within every limit, shape (1 + free, n).

    Parameters
    ----------
    constraints : Constraints
        The limits.
    basis : Basis
        The basis of the motion, with samples that are dense enough for the limits.
    width : ndarray, shape (n,)
        Half the range of each joint, by which its variables are scaled.
    starts : sequence of ndarray, shape (1 + free, n)
        Motions from which the search starts.

    Raises
    ------
    IdentificationError
        No motion is within every limit; the message names the limits that are exceeded.
    """
    shape = starts[0].shape
    scale = np.tile(width, shape[0])
    least, where, worst = np.inf, starts[0], {}

    def broken(z: Array) -> tuple[float, Array]:
        x = (z * scale).reshape(shape)
        motion = basis.motion(x)
        if not constraints.stay(motion):
            return OPEN, np.zeros_like(z)
        values, slopes = constraints.smooth(basis, motion)
        over = np.maximum(values + RESERVE, 0.0)
        return float((over**2).sum()), (2 * np.tensordot(over, slopes, 1)).ravel() * scale

    for start in starts:
        found = scipy.optimize.minimize(broken, (start / width).ravel(), jac=True,
                                        method='L-BFGS-B', options={'maxiter': 200})
        x = (found.x * scale).reshape(shape)
        tried = constraints.worst(basis.motion(x))
        if max(tried.values()) < least:
            least, where, worst = max(tried.values()), x, tried
        if least <= 0:
            break
    if least > 0:
        names = sorted((name for name, value in worst.items() if value > 0),
                       key=lambda name: -worst[name])
        raise IdentificationError(
            'no motion was found within every limit; the closest one exceeds '
            + ', '.join(excess_text(name, worst[name]) for name in names[:5])
            + '; valid: wider limits, a longer period or fewer harmonics')
    return where
