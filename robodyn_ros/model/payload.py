"""`payload_inertial`: the inertial of a payload, checked."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.numerics import real_array
from robodyn_ros.spatial import Inertial, is_inertia

# Limits that detect wrong units (grams, millimetres); the strongest industrial arms carry 2300 kg.
HEAVIEST = 1e5  # kg, mass of a payload
FARTHEST = 1e3  # m, distance of a payload's centre of mass


def payload_inertial(mass: float, com: ArrayLike, inertia: ArrayLike | None) -> Inertial:
    """Return the inertial of a payload; for parameters and errors see `Model.with_payload`."""
    centre = real_array('com', com, (3,))
    tensor = np.zeros((3, 3)) if inertia is None else real_array('inertia', inertia, (3, 3))
    if isinstance(mass, bool) or not isinstance(mass, Real) or not 0 <= mass <= HEAVIEST:
        raise ValueRangeError('payload mass', mass, f'0 to {HEAVIEST:g} kg')
    if not np.abs(centre).max() <= FARTHEST:
        raise ValueRangeError('payload com', centre.tolist(),
                              f'finite numbers of at most {FARTHEST:g} m')
    if not is_inertia(tensor):
        raise ValueRangeError('payload inertia', tensor.tolist(),
                              'symmetric, principal moments >= 0, each at most the sum of the '
                              'other two')
    return Inertial(float(mass), centre, tensor)
