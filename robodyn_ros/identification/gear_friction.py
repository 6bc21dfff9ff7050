"""The friction columns of the linear model: where friction acts, and the value of each term."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from robodyn_ros.identification.friction import FrictionShape, FrictionStates, Source
from robodyn_ros.model import LINK_FRICTION, MOTOR_FRICTION, PARAMETER_NAMES, Model
from robodyn_ros.spatial import Array

STANDARD = len(PARAMETER_NAMES)
LOAD_KINDS = ('lumped', 'links')  # where transmitted torques depend only on the links


class Term(NamedTuple):
    """One friction parameter.

    Attributes
    ----------
    source : int
        Index of the source.
    name : str
        The parameter with its side, for example ``Fcl``.
    standard : int
        Index in ``model.standard_parameters``; -1 if it is none of them.
    """

    source: int
    name: str
    standard: int


class GearFriction:
    """The friction of all joints and motors in one kind of identification.

    Parameters
    ----------
    model : Model
        The robot, with its loops cut open.
    kind : str
        Kind of the identification, see `LinearModel`.
    shape : FrictionShape
        The friction model.
    bodies : tuple of int
        Bodies whose parameters are estimated.

    Attributes
    ----------
    sources : tuple of Source
        Where friction acts.
    terms : tuple of Term
        The parameters, source by source.
    """

    def __init__(self, model: Model, kind: str, shape: FrictionShape, bodies: tuple[int, ...]):
        self.model, self.kind, self.shape = model, kind, shape
        self._sides = 2 if kind == 'links_and_drives' else 1
        self.sources = tuple(self._sources(bodies))
        self.terms = tuple(self._terms())

    def _sources(self, bodies: tuple[int, ...]) -> Iterator[Source]:
        if self.kind == 'rigid' or self.shape.model == 'none':
            return
        for body in bodies:
            own, motor = self.model.row[body], self.model.motor_row[body]
            coupled = not np.array_equal(own, motor)
            if self.kind != 'drives':
                yield Source(body, 'l', own)
            if self.kind in ('links_and_drives', 'drives') or (self.kind == 'lumped' and coupled):
                yield Source(body, 'm', motor)

    def _terms(self) -> Iterator[Term]:
        for place, (body, side, _) in enumerate(self.sources):
            standard = LINK_FRICTION if side == 'l' else MOTOR_FRICTION
            # a second offset of a coupled joint could not be distinguished from the first
            coupled = side == 'm' and self.kind == 'lumped'
            for parameter in standard[:2] if coupled else standard:
                yield Term(place, PARAMETER_NAMES[parameter], STANDARD * body + parameter)
            for term in self.shape.terms_of(body, side):
                if term != 'Ft' or self.carries_load(self.sources[place]):
                    yield Term(place, term + side, -1)

    def carries_load(self, source: Source) -> bool:
        """Whether the torque that a source's gear transmits depends only on the links."""
        return self.kind in LOAD_KINDS and np.count_nonzero(source.row) == 1

    def rows_of(self, source: Source) -> list[tuple[int, float]]:
        """Return the rows in which a source appears, with its factors."""
        found = []
        for joint in np.flatnonzero(source.row):
            if source.side == 'l':
                found.append((int(joint), float(source.row[joint])))
            if self._sides > 1 or source.side == 'm':
                found.append((int(joint) + (self._sides - 1) * self.model.n,
                              float(source.row[joint])))
        return found

    def states(self, qd: Array, rate: float | None = None, temperature: Array | None = None,
               q: Array | None = None) -> FrictionStates:
        """Return direction, temperature and presliding of each source.

        Parameters
        ----------
        qd : ndarray, shape (N, n)
            Velocities of all joints of the tree, rad/s or m/s.
        rate : float, optional
            Sampling rate of the samples, Hz, if they are consecutive: friction then keeps its
            direction at rest, and the state of presliding is computed along the motion. By
            default the directions are those of the velocities, without presliding.
        temperature : ndarray, shape (N, n), optional
            Temperatures of the joints, degrees Celsius; default: the reference temperatures.
        q : ndarray, shape (N, n), optional
            Positions along the motion, rad or m; needed if a joint has presliding friction.
        """
        direction = np.array([
            self.shape.direction(qd @ s.row, s.row) if rate is None
            else self.shape.directions(qd @ s.row, s.row, rate)
            for s in self.sources]).reshape(-1, len(qd)).T
        bristle = np.sign(direction)
        if rate is not None and q is not None and self.shape.presliding:
            for place, source in enumerate(self.sources):
                if source.key in self.shape.presliding:
                    bristle[:, place] = self.shape.bristles(
                        q @ source.row, qd @ source.row, source, rate)
        warmth = np.zeros_like(direction)
        if temperature is not None and len(self.shape.reference):
            joints = [int(np.flatnonzero(s.row)[0]) for s in self.sources]
            warmth = (temperature - self.shape.reference)[:, joints]
        return FrictionStates(direction, warmth, bristle)

    def values(self, qd: Array, states: FrictionStates, loads: Array | None,
               ) -> Iterator[tuple[int, list[tuple[int, float]], Array]]:
        """Yield (index of the term, its rows with their factors, its values).

        Parameters
        ----------
        qd : ndarray, shape (N, n)
            Velocities of all joints of the tree, rad/s or m/s.
        states : FrictionStates
            See `states`.
        loads : ndarray, shape (N, n), optional
            Torques that the gears transmit; required for load-dependent friction.
        """
        for place, source in enumerate(self.sources):
            speed, rows = qd @ source.row, self.rows_of(source)
            for index, term in enumerate(self.terms):
                if term.source == place:
                    load = source.load(loads) if loads is not None and term.name[:2] == 'Ft' \
                        else 0.0
                    yield index, rows, self.shape.values(
                        term.name, source, speed, states.direction[:, place], load,
                        states.warmth[:, place], states.bristle[:, place])

    def pullback(self, qd: Array, g: Array) -> Array:
        """Return the gradient of ``sum(g * columns)`` with respect to velocities, shape (N, n).

        Parameters
        ----------
        qd : ndarray, shape (N, n)
            Velocities, rad/s or m/s.
        g : ndarray, shape (N, rows, terms)
            The weights, which are constant.
        """
        gradient = np.zeros_like(qd)
        for place, source in enumerate(self.sources):
            speed, total = qd @ source.row, np.zeros(len(qd))
            for index, term in enumerate(self.terms):
                if term.source == place:
                    weight = sum(factor * g[:, row, index] for row, factor in self.rows_of(source))
                    total += weight * self.shape.slope(term.name, source, speed)
            gradient += total[:, None] * source.row
        return gradient
