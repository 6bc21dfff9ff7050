"""`DriftMemory`: how friction, offset and gravity differ from the model, estimated recursively.

The torque that joint k needs beyond its model is explained as ``a d + b qd + o + f g_k(q)``: d is
the direction of motion, a and b are changes of Coulomb and viscous friction, o of the offset, and
f the relative change of gravity. The estimate is that of least squares with exponential
forgetting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.description.section import Section
from robodyn_ros.spatial import Array

TERMS = ('friction', 'offset', 'gravity')  # the changes that are judged
REGRESSORS = 4  # direction, velocity, 1, gravity
RIDGE = 1e-6  # fraction of a regressor's power; directions with less excitation stay undetermined
LEAST = 1e-9  # rms of a regressor, in its own unit, that counts as zero
MEANS: dict[str, tuple[int, ...]] = {  # the means that a memory keeps, with the shape for a joint
    'gram': (REGRESSORS, REGRESSORS), 'moment': (REGRESSORS,), 'power': (), 'friction': ()}


@dataclass(frozen=True, eq=False)
class Drift:
    """The estimate of a `DriftMemory`.

    Attributes
    ----------
    coefficients : ndarray, shape (n, 4)
        a, b, o and f of each joint.
    values : ndarray, shape (n, 3)
        Change of the mean friction torque at the present speeds (N m or N), offset (N m or N),
        and relative change of gravity.
    sensitivity : ndarray, shape (n, 3)
        Largest error of these values for each N m (N) of the rms of a residual, whatever its form:
        by the inequality of Cauchy and Schwarz, ``sqrt(c' inv(G) c)`` with the mean squares G of
        the regressors. Large where the motion does not determine the value.
    friction : ndarray, shape (n,)
        Mean friction torque of the model at the present speeds, N m or N.
    rms, unexplained : ndarray, shape (n,)
        Rms of the residual, and of what the terms do not explain, N m or N.
    weight : ndarray, shape (n,)
        Effective number of samples.
    """

    coefficients: Array
    values: Array
    sensitivity: Array
    friction: Array
    rms: Array
    unexplained: Array
    weight: Array


class DriftMemory:
    """Weighted means over the last samples of each joint; older ones are forgotten exponentially.

    Parameters
    ----------
    n : int
        Number of joints.
    samples : float
        Number of samples of a joint after which the weight of a sample has fallen to 1/e.
    """

    def __init__(self, n: int, samples: float):
        self.n, self._keep = n, float(np.exp(-1 / samples))
        self.weight: Array = np.zeros(n)
        self.means: dict[str, Array] = {name: np.zeros((n, *shape))
                                        for name, shape in MEANS.items()}

    def add(self, regressors: Array, torque: Array, friction: Array, weight: Array) -> None:
        """Add a sample of each joint.

        Parameters
        ----------
        regressors : ndarray, shape (n, 4)
            Direction, velocity, 1, gravity.
        torque : ndarray, shape (n,)
            Torque that the joint needs beyond its model, N m or N.
        friction : ndarray, shape (n,)
            Friction of the model against the motion, N m or N.
        weight : ndarray, shape (n,)
            Weight of the sample, at most 1. At 0 the joint is left out, and forgets nothing.
        """
        self.weight = np.where(weight > 0, self._keep, 1.0) * self.weight + weight
        part = weight / np.where(self.weight > 0, self.weight, 1.0)
        for name, value in (('gram', regressors[:, :, None] * regressors[:, None, :]),
                            ('moment', regressors * torque[:, None]),
                            ('power', torque * torque), ('friction', friction)):
            before = self.means[name]
            rows = part.reshape(-1, *(1,) * (value.ndim - 1))
            self.means[name] = before + rows * (value - before)

    def estimate(self) -> Drift:
        """Return the present estimate; joints without samples have a weight of 0."""
        gram, moment, power, friction = (self.means[name] for name in MEANS)
        size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
        size = np.where(size > LEAST, size, 1.0)
        both = size[:, :, None] * size[:, None, :]
        inverse = np.linalg.inv(gram / both + RIDGE * np.eye(REGRESSORS)) / both
        found = np.einsum('kij,kj->ki', inverse, moment)
        combine = np.zeros((self.n, len(TERMS), REGRESSORS))
        combine[:, 0, 0] = combine[:, 1, 2] = combine[:, 2, 3] = 1.0
        combine[:, 0, 1] = gram[:, 0, 1]  # the mean speed
        unexplained = power - 2 * np.einsum('ki,ki->k', found, moment) + np.einsum(
            'ki,kij,kj->k', found, gram, found)
        return Drift(
            found, np.einsum('kti,ki->kt', combine, found),
            np.sqrt(np.einsum('kti,kij,ktj->kt', combine, inverse, combine)),
            friction.copy(), np.sqrt(power), np.sqrt(np.maximum(unexplained, 0.0)),
            self.weight.copy())

    def to_dict(self) -> dict[str, Any]:
        """Return weights and means as lists."""
        return {'weight': self.weight.tolist()} | {
            name: values.tolist() for name, values in self.means.items()}

    def restore(self, section: Section) -> None:
        """Take over weights and means from `to_dict`.

        Raises
        ------
        DescriptionError
            They are not those of such a memory. This one then stays as it is.
        """
        weight = section.array('weight', (self.n,))
        most = 1 / (1 - self._keep)
        if not ((weight >= 0) & (weight <= 1.001 * most)).all():
            raise section.fail('weight', 'is not a sum of weights',
                               f'numbers between 0 and {most:.0f}')
        means = {name: section.array(name, (self.n, *shape)) for name, shape in MEANS.items()}
        gram, power = means['gram'], means['power']
        least = np.linalg.eigvalsh(gram)[:, 0]
        size = np.abs(gram).max(axis=(1, 2), initial=0.0)
        if not (np.allclose(gram, gram.transpose(0, 2, 1), rtol=1e-9, atol=0.0)
                and (least >= -1e-9 * size).all() and (power >= 0).all()):
            raise section.fail('gram', 'or power is not a mean of squares',
                               'positive semidefinite matrices, and numbers >= 0')
        self.weight, self.means = weight, means
