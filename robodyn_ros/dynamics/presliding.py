"""Presliding friction after Dahl: after a reversal, friction builds up over a distance.

Its state z is between -1 and 1, and ``dz = (1 - z sign(dq)) dq / distance`` along the positions q
(P. Dahl 1968; see C. Canudas de Wit and others 1995, `10.1109/9.376053`).
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.description.robot import CURVE
from robodyn_ros.dynamics.joint_terms import friction_widths
from robodyn_ros.dynamics.protocol import RobotDynamics
from robodyn_ros.kernels import smooth_sign
from robodyn_ros.spatial import Array


def bristles(moves: Array, distance: float) -> Array:
    """Return the state of Dahl's model along a motion, which begins in steady sliding.

    Between two reversals, ``z = s - (s - z0) exp(-x / distance)`` with the direction s, the
    travelled distance x and the state z0 at the reversal, so that steps of any size are exact.

    Parameters
    ----------
    moves : ndarray, shape (N,)
        Change of the position before each sample, rad or m.
    distance : float
        Distance of the model, rad or m.

    Returns
    -------
    ndarray, shape (N,)
        From -1 to 1; zero if there is no motion.
    """
    travelled = np.cumsum(np.abs(moves))
    places = np.flatnonzero(moves)
    if not len(places):
        return np.zeros(len(moves))
    ways = np.sign(moves[places])
    reversals = places[1:][ways[1:] != ways[:-1]]  # the first sample after each one
    way = np.concatenate([ways[:1], np.sign(moves[reversals])])
    since = np.concatenate([[0.0], travelled[reversals - 1]])
    keep = np.exp(-np.diff(since) / distance)
    begin = [float(way[0])]
    for s, factor in zip(way[:-1].tolist(), keep.tolist(), strict=True):
        begin.append(s - (s - begin[-1]) * factor)
    run = np.searchsorted(reversals, np.arange(len(moves)), side='right')
    return np.asarray(way[run] - (way[run] - np.array(begin)[run])
                      * np.exp((since[run] - travelled) / distance))


def presliding_shape(state: Array, direction: Array) -> Array:
    """Return what presliding of size one adds to friction in the plain direction, same shape.

    Parameters
    ----------
    state, direction : ndarray
        The state z and the direction d of friction, from -1 to 1; the result is ``z |d| - d``.
    """
    return np.asarray(state * np.abs(direction) - direction)


class Presliding:
    """What presliding adds to the friction in the equations of motion.

    The equations of motion have no memory: all dry friction has the direction d of the present
    velocity. The part `presliding` of a friction curve follows Dahl's state z instead, which adds
    ``presliding (z |d| - d)``. If d is a smooth sign, all dry friction vanishes at rest. Robots
    with closed loops or a floating base have no presliding.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.

    Attributes
    ----------
    size, distance : ndarray, shape (s,)
        Torque (N m or N) and distance (rad or m) of each of the s joints that have presliding.
    row : ndarray, shape (s, n)
        Each maps the joint velocities to the velocity at which one of these s joints moves.
    """

    def __init__(self, dynamics: RobotDynamics):
        model = dynamics.model
        curve = np.nan_to_num(model.friction_curve)
        size, distance = (curve[:, CURVE.index(name)] for name in (
            'presliding', 'presliding_distance'))
        some = (size > 0) & (distance > 0) & (not dynamics.cuts) & (not model.floating)
        self.size, self.distance, self.row = size[some], distance[some], model.row[some]
        self._widths = friction_widths(model, dynamics.friction_width).link[some]

    def __bool__(self) -> bool:
        """Whether some joint has presliding friction."""
        return len(self.size) > 0

    def moved(self, state: Array | None, move: Array, qd: Array) -> Array:
        """Return the state after a move, shape (s,).

        Parameters
        ----------
        state : ndarray, shape (s,), optional
            The state before it, from -1 to 1. By default it is not known, and steady sliding is
            assumed.
        move : ndarray, shape (n,)
            Change of the positions, rad or m.
        qd : ndarray, shape (n,)
            Velocities, rad/s or m/s; they give the direction of sliding if no state is given.
        """
        moves, ways = self.row @ move, np.sign(self.row @ qd)
        way = np.sign(moves)
        known = ways if state is None else state
        begin = np.where(known == 0, way, known)
        return np.where(moves == 0, known,
                        way - (way - begin) * np.exp(-np.abs(moves) / self.distance))

    def torque(self, state: Array, qd: Array) -> Array:
        """Return what presliding adds to the plain friction, shape (..., n), N m or N.

        Parameters
        ----------
        state : ndarray, shape (..., s)
            From -1 to 1.
        qd : ndarray, shape (..., n)
            Velocities, rad/s or m/s.
        """
        direction = smooth_sign(qd @ self.row.T, self._widths)
        return np.asarray((self.size * presliding_shape(state, direction)) @ self.row)

    def along(self, q: Array, qd: Array) -> Array:
        """Return what presliding adds to the plain friction along a motion, shape (N, n)."""
        moves = np.diff(q, axis=0, prepend=q[:1]) @ self.row.T
        state = np.column_stack([bristles(moves[:, k], float(distance))
                                 for k, distance in enumerate(self.distance)])
        return self.torque(np.where(moves.any(axis=0), state, np.sign(qd @ self.row.T)), qd)
