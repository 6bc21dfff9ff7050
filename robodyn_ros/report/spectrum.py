"""Spectra of the measured torque and of the part that the model does not explain."""

from __future__ import annotations

import numpy as np
import scipy

from robodyn_ros.identification import Validation
from robodyn_ros.spatial import Array

LONGEST = 4096  # most samples of a segment in Welch's method


def amplitude_density(validation: Validation) -> tuple[Array, Array, Array]:
    """Return amplitude densities by Welch's method, without the mean.

    Parameters
    ----------
    validation : Validation
        A validation; its longest uninterrupted piece is used.

    Returns
    -------
    frequency : ndarray, shape (F,)
        Hz.
    torque, difference : ndarray, shape (F, n)
        Densities of the measured torque and of its difference from the prediction, N m or N per
        root Hz.
    """
    longest = int(np.argmax([len(t) for t in validation.t]))
    t, measured = validation.t[longest], validation.measured[longest]
    rate = (len(t) - 1) / (t[-1] - t[0])
    f, power = scipy.signal.welch(np.stack([measured, measured - validation.predicted[longest]]),
                                  rate, nperseg=min(len(t), LONGEST), axis=1)
    density = np.sqrt(power[:, 1:])
    return f[1:], density[0], density[1]
