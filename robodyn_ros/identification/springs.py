"""Springs and counterbalances at joints as columns of the linear model, see `SpringTorque`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

SPRING_TERMS = ('Kl', 'Ks', 'Kc')  # linear, sine and cosine, in the order of `Model.spring`


class SpringTerm(NamedTuple):
    """One parameter: the index of its body in ``model.body_joints``, and its name."""

    body: int
    name: str


class Springs:
    """The columns of a robot's springs in the linear model.

    Parameters
    ----------
    model : Model
        The robot, with its loops cut open. The springs of this model are always estimated.
    bodies : tuple of int
        Bodies whose parameters are estimated.
    chosen : mapping of int to tuple of str
        Names of further spring parameters to estimate, by body.

    Attributes
    ----------
    terms : tuple of SpringTerm
        The parameters.
    """

    def __init__(self, model: Model, bodies: tuple[int, ...],
                 chosen: Mapping[int, tuple[str, ...]]):
        self.model = model
        self.terms = tuple(
            SpringTerm(body, name) for body in bodies for k, name in enumerate(SPRING_TERMS)
            if model.spring[body, k] or name in chosen.get(body, ()))

    def columns(self, q: Array, rows: int) -> Array:
        """Return the columns at positions of all joints of the tree, shape (N, rows, terms).

        Parameters
        ----------
        q : ndarray, shape (N, n)
            rad or m.
        rows : int
            Number of rows: n, or 2 n for joint torques and motor torques, since springs act on
            both.
        """
        found = np.zeros((len(q), rows, len(self.terms)))
        for k, (row, values, _) in enumerate(self._values(q)):
            found[:, :, k] = values[:, None] * np.tile(row, rows // len(row))
        return found

    def pullback(self, q: Array, g: Array) -> Array:
        """Return the gradient of ``sum(g * columns)`` with respect to the positions, (N, n).

        Parameters
        ----------
        q : ndarray, shape (N, n)
            rad or m.
        g : ndarray, shape (N, rows, terms)
            Constant weights.
        """
        gradient = np.zeros_like(q)
        for k, (row, _, slope) in enumerate(self._values(q)):
            weight = g[:, :, k] @ np.tile(row, g.shape[1] // len(row))
            gradient += (weight * slope)[:, None] * row
        return gradient

    def nominal(self) -> list[float]:
        """Return the spring parameters of the model itself, one for each term."""
        return [float(self.model.spring[body, SPRING_TERMS.index(name)])
                for body, name in self.terms]

    def _values(self, q: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the row of the joint, the values and their derivatives w.r.t. q, by term."""
        for body, name in self.terms:
            row = self.model.row[body]
            coordinates = q[:, 1:] if self.model.floating else q
            position = coordinates @ row + self.model.offset[body]
            if name == 'Kl':
                yield row, position, np.ones_like(position)
            elif name == 'Ks':
                yield row, np.sin(position), np.cos(position)
            else:
                yield row, np.cos(position), -np.sin(position)


def is_spring(term: str) -> bool:
    """Return whether a parameter belongs to a spring."""
    return term in SPRING_TERMS
