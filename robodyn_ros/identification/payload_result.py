"""`IdentifiedPayload`: a payload, its uncertainty, and which values the logs determine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.consistency import inertial_parameters_of
from robodyn_ros.identification.statistics import CONFIDENCE
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array, inertia_components, inertia_tensor

DETERMINED = 0.5  # largest standard deviation of a determined value, as a fraction of the prior's
NAMES = ('mass', 'com x', 'com y', 'com z', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
UNITS = ('kg', *['m'] * 3, *['kg m^2'] * 6)
SIGNIFICANT = 3.0  # standard deviations of the mass; about one empty hand in 400 exceeds them
STEP = 1e-6  # relative to the mass, for derivatives
FOUND, EMPTY, NEGATIVE = 'found', 'empty', 'negative'


@dataclass(frozen=True, eq=False)
class IdentifiedPayload:
    """An identified payload; the ten values are ``mass``, three of ``com``, six of ``inertia``.

    Attributes
    ----------
    link : str
        The link that carries it.
    state : str
        ``found``; ``empty``: its mass does not differ significantly from zero; or ``negative``:
        something is missing that the model contains, such as a tool.
    mass : float
        kg.
    com : ndarray, shape (3,)
        Centre of mass in the link's frame, m; nan where there is no payload.
    inertia : ndarray, shape (3, 3)
        Inertia about the centre of mass in the axes of the link's frame, kg m^2. Components that
        the logs do not determine come from the prior.
    deviation : ndarray, shape (10,)
        Standard deviations of the ten values.
    interval : ndarray, shape (10, 2)
        Their 95 % confidence intervals.
    determined : ndarray of bool, shape (10,)
        Which of them the logs determine; the others come mostly from the prior.
    notes : tuple of str
        Remarks on the logs.
    """

    link: str
    state: str
    mass: float
    com: Array
    inertia: Array
    deviation: Array
    interval: Array
    determined: NDArray[np.bool_]
    notes: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, link: str, parameters: Array, consistent: Array, covariance: Array,
           before: Array, notes: tuple[str, ...]) -> IdentifiedPayload:
        """Return the payload of an estimate.

        Parameters
        ----------
        link : str
            The link that carries it.
        parameters, covariance : ndarray, shape (10,), (10, 10)
            Inertial parameters in the link's frame, and their covariance.
        consistent : ndarray, shape (10,)
            The physically consistent estimate.
        before : ndarray, shape (10,)
            Standard deviations of the ten values in the prior.
        notes : tuple of str
            Remarks on the logs.
        """
        half = float(scipy.stats.norm.ppf(0.5 + CONFIDENCE / 2))
        spread = float(np.sqrt(covariance[6, 6]))
        state = FOUND if parameters[6] > SIGNIFICANT * spread else (
            NEGATIVE if parameters[6] < -SIGNIFICANT * spread else EMPTY)
        if state != FOUND:
            nothing = np.full(10, np.nan)
            nothing[0] = spread
            mass = float(parameters[6])
            interval = np.full((10, 2), np.nan)
            interval[0] = mass - half * spread, mass + half * spread
            return cls(link, state, mass, np.full(3, np.nan), np.full((3, 3), np.nan), nothing,
                       interval, np.arange(10) == 0, notes)
        mass, com, inertia = body_of(consistent)
        values = _values(consistent)
        slope = _slopes(consistent)
        deviation = np.sqrt(np.maximum(np.diag(slope @ covariance @ slope.T), 0.0))
        return cls(link, state, mass, com, inertia, deviation,
                   np.column_stack([values - half * deviation, values + half * deviation]),
                   deviation < DETERMINED * before, notes)

    @property
    def values(self) -> Array:
        """The ten values, in the order of `NAMES`, shape (10,)."""
        return np.array([self.mass, *self.com, *inertia_components(self.inertia)])

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of the values that the logs do not determine."""
        return tuple(name for name, known in zip(NAMES, self.determined, strict=True)
                     if not known) if self.state == FOUND else ()

    @property
    def usable_inertia(self) -> Array:
        """The inertia, or zeros (a point mass) unless the logs determine all of it."""
        return self.inertia if self.determined[4:].all() else np.zeros((3, 3))

    def in_frame(self, model: Model, link: str) -> tuple[float, Array, Array]:
        """Return mass, centre of mass and usable inertia in the frame of another link.

        Raises
        ------
        UnknownNameError
            There is no such link.
        IdentificationError
            It is not fixed to the link that carries the payload, or there is no payload.
        """
        if self.state != FOUND:
            raise IdentificationError(f'there is no payload on {self.link}: its mass is '
                                      f'{self.mass:.3g} kg')
        own, other = model.link_frame(self.link), model.link_frame(link)
        if own.body != other.body:
            fixed = [name for name, frame in model.link_frames.items() if frame.body == own.body]
            raise IdentificationError(f'{link} moves relative to {self.link}, which carries the '
                                      f'payload; valid: {", ".join(fixed)}')
        rotation = other.rotation.T @ own.rotation
        centre = rotation @ self.com + other.rotation.T @ (own.translation - other.translation)
        return self.mass, centre, rotation @ self.usable_inertia @ rotation.T

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each of the ten values; SI units."""
        return [{'parameter': name, 'unit': unit, 'value': float(value),
                 'standard_deviation': float(deviation), 'interval_lower': float(interval[0]),
                 'interval_upper': float(interval[1]), 'determined': bool(determined)}
                for name, unit, value, deviation, interval, determined in zip(
                    NAMES, UNITS, self.values, self.deviation, self.interval, self.determined,
                    strict=True)]

    def summary(self) -> str:
        """Return the result in one sentence."""
        low, high = self.interval[0]
        if self.state == EMPTY:
            return (f'Nothing is on {self.link}: the mass is {self.mass:.3g} kg, with 95 % '
                    f'confidence at most {max(high, 0):.3g} kg.')
        if self.state == NEGATIVE:
            return (f'{self.link} carries less than the model says, by {-self.mass:.3g} kg '
                    f'({-high:.3g} to {-low:.3g} kg): the model contains something, for example '
                    'a tool, that was not there.')
        x, y, z = 1e3 * self.com
        return (f'{self.link} carries {self.mass:.4g} kg at ({x:.0f}, {y:.0f}, {z:.0f}) mm.')

    def to_text(self) -> str:
        """Return the summary, a table, and what the logs do not determine."""
        lines = [self.summary()]
        if self.state == FOUND:
            lines.append(f'  {"":6}{"value":>11}{"std":>10}   {"95 % interval":<23}unit')
            for row in self.rows():
                if not row['determined']:
                    lines.append(f'  {row["parameter"]:6}{"not determined":>24}')
                    continue
                low, high = row['interval_lower'], row['interval_upper']
                lines.append(f'  {row["parameter"]:6}{row["value"]:11.4g}'
                             f'{row["standard_deviation"]:10.2g}   '
                             f'{f"{low:.4g} to {high:.4g}":<23}{row["unit"]}')
            lines.append(f'  The centre of mass (com) is in the frame of {self.link}, the inertia '
                         'about it\n  in the axes of this frame.')
            if self.undetermined and not self.determined[4:].all():
                lines.append('  The payload is taken as a point mass: a larger or faster motion '
                             'would\n  determine its inertia.')
        return '\n'.join(lines)


def body_of(parameters: Array) -> tuple[float, Array, Array]:
    """Return mass, centre of mass and inertia about it of ten inertial parameters."""
    mass = float(parameters[6])
    com = parameters[7:] / mass if mass else np.zeros(3)
    tensor = inertia_tensor(parameters) - mass * (com @ com * np.eye(3) - np.outer(com, com))
    return mass, com, tensor


def _values(parameters: Array) -> Array:
    mass, com, inertia = body_of(parameters)
    return np.array([mass, *com, *inertia_components(inertia)])


def _slopes(parameters: Array) -> Array:
    """Return the derivatives of the ten values w.r.t. the inertial parameters, (10, 10)."""
    step = STEP * max(float(parameters[6]), 1e-3)
    return np.array([(_values(parameters + step * unit) - _values(parameters - step * unit))
                     / (2 * step) for unit in np.eye(10)]).T


def deviations_of(reference: Array, covariance: Array) -> Array:
    """Return the standard deviations of the ten values of a body, shape (10,).

    Parameters
    ----------
    reference : ndarray, shape (4, 4)
        Pseudo-inertia of the body.
    covariance : ndarray, shape (10, 10)
        Covariance of its inertial parameters.
    """
    slope = _slopes(inertial_parameters_of(reference))
    return np.sqrt(np.maximum(np.diag(slope @ covariance @ slope.T), 0.0))
