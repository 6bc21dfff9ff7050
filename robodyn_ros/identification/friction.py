"""Friction models that are linear in their parameters, and the direction of friction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.description.ripple import RippleLine
from robodyn_ros.dynamics.joint_terms import stribeck_decay
from robodyn_ros.dynamics.presliding import bristles, presliding_shape
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.kernels import smooth_sign
from robodyn_ros.model.kinds import FRICTION_TERMS
from robodyn_ros.spatial import Array

STRIBECK_SPEED = 0.1  # default of the Stribeck velocity, relative to each joint's fast speed
REST = 0.05  # s, shortest time for which a joint is slow if it is at rest
_SIGN_TERMS = ('Fc', 'Fs', 'Fr', 'Ft', 'Fk')  # terms that change their sign with the direction


class Source(NamedTuple):
    """A place where friction acts; its speed is ``row @ qd``.

    Attributes
    ----------
    body : int
        Index in ``model.body_joints``.
    side : str
        ``l`` (link) or ``m`` (motor).
    row : ndarray, shape (n,)
        Factors of the joint velocities.
    """

    body: int
    side: str
    row: Array

    @property
    def key(self) -> tuple[int, str]:
        """Body and side, which identify the source."""
        return self.body, self.side

    def load(self, loads: Array) -> Array:
        """Return the magnitude of the torque that the gear transmits, shape (N,).

        Parameters
        ----------
        loads : ndarray, shape (N, n)
            Torque that each joint's gear transmits to the links, N m or N.
        """
        joint = int(np.flatnonzero(self.row)[0])
        return np.abs(loads[:, joint])


@dataclass(frozen=True, eq=False)
class FrictionStates:
    """What friction depends on along a motion, besides velocities and loads.

    Attributes
    ----------
    direction : ndarray, shape (N, sources)
        Direction of each source of friction, from -1 to 1.
    warmth : ndarray, shape (N, sources)
        Temperature above the reference temperature, K; zero where it was not measured.
    bristle : ndarray, shape (N, sources)
        State of Dahl's presliding friction, from -1 to 1; that of steady sliding where there is no
        presliding distance or the past is not known.
    """

    direction: Array
    warmth: Array
    bristle: Array

    def __getitem__(self, part: slice | NDArray[np.int_]) -> FrictionStates:
        """Return a part of the samples."""
        return FrictionStates(self.direction[part], self.warmth[part], self.bristle[part])


@dataclass(frozen=True)
class FrictionShape:
    """The friction model, and how its direction changes at standstill.

    The direction is a number between -1 and 1. With a width it is the `smooth_sign` of the joint's
    speed s that `Dynamics` uses, and its width is ``max(width * speed, floor)``, which becomes the
    `friction_width` of the identified `Model`. Without a width it is sign(s), and it keeps its
    last value while the joint is at rest, that is, while its speed stays below the floor for
    longer than during a reversal.

    Attributes
    ----------
    model : str
        ``none``; ``coulomb``: viscous, Coulomb and offset (an asymmetric Coulomb friction is the
        last two together); ``asymmetric``: the viscous friction differs by direction,
        ``Fa |s|``; ``stribeck``: ``Fs d exp(-|s| / v)`` with the direction d; ``root``:
        ``Fr d sqrt|s|``; ``load``: ``Ft d |tau|`` with the torque tau that the gear transmits to
        the link; ``rich``: all velocity-dependent terms; ``chosen``: those in `terms`, which may
        also be ``Fw w s`` and ``Fk w d`` with the temperature w above the reference, and
        ``Fz (z |d| - d)`` with the state z of Dahl's presliding friction; with a width it
        vanishes at rest, where the friction torque may be anywhere below Coulomb friction.
    width : float
        Width of the change of direction, as a fraction of each joint's fast speed.
    speed : ndarray, shape (n,)
        A fast speed of each joint, rad/s or m/s, to which width and Stribeck velocity refer.
    floor : ndarray, shape (n,)
        Speeds that the noise of the velocity may reach at rest, rad/s or m/s. Empty: zero.
    terms : mapping of (int, str) to tuple of str
        With the model ``chosen``: the terms beyond Coulomb friction of each source, by body and
        side.
    stribeck : mapping of (int, str) to float
        Stribeck velocities of sources, as fractions of the fast speed; the default is 0.1.
    presliding : mapping of (int, str) to float
        Distances of sources over which ``Fz`` builds up after a reversal, rad or m.
    load : ndarray, shape (17 b,)
        Standard parameters of the links, from which the transmitted torque is computed. Empty:
        no load-dependent friction.
    springs : mapping of int to tuple of str
        Terms of the springs at joints, by body, see `Springs`; they are chosen with the friction.
    ripple : mapping of int to tuple of RippleLine
        Torque ripple, by body. It is found in what the other terms leave, and kept as it is.
    reference : ndarray, shape (n,)
        Reference temperature of each joint, degrees Celsius. Empty: none was measured.
    """

    model: str = 'coulomb'
    width: float = 0.0
    speed: Array = field(default_factory=lambda: np.ones(0))
    floor: Array = field(default_factory=lambda: np.zeros(0))
    terms: Mapping[tuple[int, str], tuple[str, ...]] = field(default_factory=dict)
    stribeck: Mapping[tuple[int, str], float] = field(default_factory=dict)
    presliding: Mapping[tuple[int, str], float] = field(default_factory=dict)
    load: Array = field(default_factory=lambda: np.zeros(0))
    springs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    ripple: Mapping[int, tuple[RippleLine, ...]] = field(default_factory=dict)
    reference: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Check the name of the friction model."""
        if self.model not in FRICTION_TERMS:
            raise UnknownNameError('friction model', self.model, FRICTION_TERMS)

    def terms_of(self, body: int, side: str) -> tuple[str, ...]:
        """Return the terms of a source beyond viscous and Coulomb friction and the offset."""
        if self.model != 'chosen':
            return FRICTION_TERMS[self.model]
        return self.terms.get((body, side), ())

    def stribeck_velocity(self, source: Source) -> float:
        """Return the Stribeck velocity of a source, rad/s or m/s."""
        return self.stribeck.get(source.key, STRIBECK_SPEED) * self.fast(source.row)

    def fast(self, row: Array) -> float:
        """Return the fast speed of ``row @ qd``, rad/s or m/s."""
        return float(np.abs(row) @ self.speed)

    def noise(self, row: Array) -> float:
        """Return the speed ``row @ qd`` that noise may reach at rest, rad/s or m/s."""
        return float(np.abs(row) @ self.floor) if len(self.floor) else 0.0

    def change(self, row: Array) -> float:
        """Return the speed ``row @ qd`` over which friction changes its direction, rad/s or m/s.

        It is 0 without a width.
        """
        if not self.width:
            return 0.0
        floor = self.floor if len(self.floor) else 0.0
        return float(np.abs(row) @ np.maximum(self.width * self.speed, floor))

    def direction(self, speed: Array, row: Array) -> Array:
        """Return the direction of friction at single speeds.

        Parameters
        ----------
        speed : ndarray, shape (N,)
            Speeds ``row @ qd``, rad/s or m/s.
        row : ndarray, shape (n,)
            The joints' part in the speed.
        """
        if not self.width:
            return np.sign(speed)
        return np.asarray(smooth_sign(speed, self.change(row)))

    def directions(self, speed: Array, row: Array, rate: float) -> Array:
        """Return the direction of friction along a motion of consecutive samples.

        Parameters
        ----------
        speed, row
            See `direction`.
        rate : float
            Samples a second, Hz.
        """
        direction = self.direction(speed, row)
        if self.width:
            return direction
        for rest in self._rests(speed, row, rate):
            direction[rest] = direction[max(rest.start - 1, 0)]
        return direction

    def bristles(self, position: Array, speed: Array, source: Source, rate: float) -> Array:
        """Return the state of Dahl's presliding friction along a motion, shape (N,).

        At rest, where positions change by their noise alone, it keeps its value.

        Parameters
        ----------
        position, speed : ndarray, shape (N,)
            Positions and speeds of consecutive samples; rad or m, and per s.
        source : Source
            A source that has a presliding distance.
        rate : float
            Samples a second, Hz.
        """
        moves = np.diff(position, prepend=position[:1])
        for rest in self._rests(speed, source.row, rate):
            moves[rest] = 0.0
        return bristles(moves, self.presliding[source.key])

    def _rests(self, speed: Array, row: Array, rate: float) -> Iterator[slice]:
        """Yield the parts of a motion that are slow for longer than a reversal."""
        slow = np.abs(speed) <= self.noise(row)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], slow, [False]])))
        for first, end in edges.reshape(-1, 2).tolist():
            if end - first >= REST * rate:
                yield slice(first, end)

    def values(self, term: str, source: Source, speed: Array, direction: Array,
               load: Array | float = 0.0, warmth: Array | float = 0.0,
               bristle: Array | None = None) -> Array:
        """Return a friction term for a parameter of one, shape (N,).

        Parameters
        ----------
        term : str
            Name of the parameter, for example ``Fcl`` or ``Fs``.
        source : Source
            Place where the friction acts.
        speed, direction : ndarray, shape (N,)
            Speeds (rad/s or m/s) and the direction of friction.
        load : ndarray, shape (N,)
            Magnitude of the transmitted torque, N m or N.
        warmth : ndarray, shape (N,)
            Temperature above the reference temperature, K.
        bristle : ndarray, shape (N,), optional
            State of Dahl's presliding friction; default: that of steady sliding.
        """
        kind = term.rstrip('lm')
        if kind == 'Fv':
            return speed
        if kind == 'Fw':
            return speed * warmth
        if kind == 'Fk':
            return np.asarray(direction * warmth)
        if kind == 'Fz':
            steady = np.sign(direction)
            return presliding_shape(steady if bristle is None else bristle, direction)
        if kind == 'off':
            return np.ones_like(speed)
        if kind == 'Fa':
            return np.abs(speed)
        if kind == 'Fc':
            return direction
        if kind == 'Fs':
            return direction * stribeck_decay(
                np.abs(speed) / self.stribeck_velocity(source))
        if kind == 'Ft':
            return np.asarray(direction * load)
        return direction * np.sqrt(np.abs(speed))  # Fr

    def slope(self, term: str, source: Source, speed: Array) -> Array:
        """Return the derivative of a term w.r.t. the speed, shape (N,); at a jump, it is zero."""
        row = source.row
        jumps = not self.width and term[:2] in _SIGN_TERMS
        step: Any = 1e-6 * self.fast(row)
        if jumps:
            step = np.minimum(step, 0.5 * np.abs(speed))
            step = np.where(step > 0, step, 1.0)
        high, low = (self.values(term, source, s, self.direction(s, row))
                     for s in (speed + step, speed - step))
        return np.asarray((high - low) / (2 * step) * (speed != 0 if jumps else 1.0))


def is_friction(term: str) -> bool:
    """Return whether a parameter belongs to friction, which includes the offset."""
    return term.startswith(('F', 'off'))
