"""The spectrum of what was measured, and of what the model leaves of it."""

from __future__ import annotations

import numpy as np
import scipy.signal

from robodyn_ros.description import Array
from robodyn_ros.identification import Validation

LONGEST = 4096  # samples of a segment


def amplitude_density(validation: Validation) -> tuple[Array, Array, Array]:
    """Return frequencies (Hz), and densities (N m or N per root Hz) of torque and difference.

    Of the longest piece, by Welch; without the mean. Shapes (F,), (F, n) and (F, n).
    """
    longest = int(np.argmax([len(t) for t in validation.t]))
    t, measured = validation.t[longest], validation.measured[longest]
    rate = (len(t) - 1) / (t[-1] - t[0])
    f, power = scipy.signal.welch(np.stack([measured, measured - validation.predicted[longest]]),
                                  rate, nperseg=min(len(t), LONGEST), axis=1)
    density = np.sqrt(power[:, 1:])
    return f[1:], density[0], density[1]
