"""Names of the terms beyond plain friction, and the terms that may be added to a joint."""

from __future__ import annotations

from typing import NamedTuple

from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.model import Model

NAMES = {'Fs': 'Stribeck friction', 'Ft': 'load-dependent friction', 'Kl': 'spring',
         'Ks': 'sine of a spring at a crank', 'Kc': 'cosine of a spring at a crank',
         'Fw': 'viscous friction by temperature', 'Fk': 'Coulomb friction by temperature',
         'Fz': 'presliding friction', 'Fa': 'asymmetric viscous friction',
         'Fr': 'friction by the root of the speed'}

Key = tuple[int, str]


class Candidate(NamedTuple):
    """A term that may be added: the key of its source, its name and its scale.

    The scale of ``Fs`` is the Stribeck velocity over the fast speed, that of ``Fz`` the presliding
    distance over the fast speed, s. The key of a spring is its body and ``k``.
    """

    key: Key
    term: str
    scale: float = 0.0

    def distance(self, model: Model, shape: FrictionShape) -> float:
        """Return the presliding distance, rad or m."""
        return self.scale * shape.fast(model.row[self.key[0]])

    def words(self, model: Model, shape: FrictionShape) -> str:
        """Return the name of the term and its joint for messages."""
        joint = model.body_joints[self.key[0]]
        text = f'{NAMES[self.term]} of {joint}'
        if self.term == 'Fs':
            return f'{text} (velocity {self.scale:g} of the fast speed)'
        if self.term == 'Fz':
            unit = 'm' if model.prismatic[self.key[0]] else 'rad'
            return f'{text} (over {self.distance(model, shape):.2g} {unit})'
        return text
