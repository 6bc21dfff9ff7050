"""Torque ripple that an identification has found, see `ripple_choice`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robodyn_ros.description.ripple import RippleLine
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array


def ripple_torque(model: Model, ripple: Mapping[int, tuple[RippleLine, ...]], q: Array) -> Array:
    """Return the torque ripple at positions of the joints, shape (N, n).

    Parameters
    ----------
    model : Model
        The robot.
    ripple : mapping of int to tuple of RippleLine
        The lines of bodies whose joints have ripple.
    q : ndarray, shape (N, n)
        rad or m.
    """
    found = np.zeros_like(q)
    for body, lines in ripple.items():
        for line in lines:
            found += np.outer(line.torque(q @ model.row[body]), model.row[body])
    return found
