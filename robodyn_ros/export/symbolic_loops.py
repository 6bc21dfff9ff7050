"""Closed loops in the closed forms of small arms (Kolyubin 2.3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.export.symbolic_values import Values, sympy
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

POSES, REACH = 6, 0.1  # number of random poses; largest distance from home, rad or m
SAME = 1e-7  # largest difference of numbers that count as equal
FINEST_TURN = 12  # a position near a multiple of pi / k is replaced by it for k up to this


@dataclass(frozen=True)
class Coordinates:
    """The positions of all joints of a tree, ``matrix @ q + offset``.

    Attributes
    ----------
    names : tuple of str
        Names of the coordinates q.
    matrix, offset : sympy.Matrix
        One row for each joint of the model.
    """

    names: tuple[str, ...]
    matrix: Any
    offset: Any


@dataclass(frozen=True)
class Constraints:
    """Constraints of closed loops whose dependent joints have no closed solution.

    Attributes
    ----------
    independent : tuple of int
        Indices of the independent joints; the others depend on them.
    N, J, D : sympy.Matrix
        ``N(q) = 0``, its Jacobian, and the derivative of the Jacobian with respect to time.
    """

    independent: tuple[int, ...]
    N: Any
    J: Any
    D: Any


def tree_coordinates(model: Model) -> Coordinates:
    """Return the joints of a tree as its coordinates."""
    s = sympy()
    return Coordinates(model.joint_names, s.eye(model.n), s.zeros(model.n, 1))


def linear_coordinates(robot: ClosedLoopDynamics) -> Coordinates | None:
    """Return the positions of all joints as linear functions of the independent ones.

    They are linear for parallelograms, for example; None for other loops.
    """
    rng = np.random.default_rng(0)
    places = [robot.model.joint_names.index(name) for name in robot.joints.joint_names]
    home = robot.home[places]
    q = home + REACH * rng.uniform(-1, 1, (POSES, len(home)))
    q = q[robot.reachable(q)]
    matrices = robot.motion_matrix(q)
    if len(q) < 2 or float(np.ptp(matrices, axis=0).max()) > SAME:
        return None
    s, matrix = sympy(), matrices[0]
    offset = robot.home - matrix @ home
    return Coordinates(
        robot.joints.joint_names,
        s.Matrix(*matrix.shape, [_exact(x) for x in matrix.ravel()]),
        s.Matrix([_turn(x) for x in offset]))


def constraints_of(robot: ClosedLoopDynamics, frames: Mapping[str, Any],
                   numbers: Mapping[str, int], q: Sequence[Any], qd: Sequence[Any],
                   values: Values, shorten: Any) -> Constraints:
    """Return the constraints of the cuts, one for each dependent joint.

    Parameters
    ----------
    robot : ClosedLoopDynamics
        The robot.
    frames : mapping
        Rotation, origin and angular Jacobian of each link.
    numbers : mapping
        Numbers of the links in the names of symbols.
    q, qd : sequence of sympy.Symbol
        Positions and velocities of all joints.
    values : Values
        The symbols of the robot.
    shorten : callable
        Simplifies an expression.

    Raises
    ------
    ValueRangeError
        The constraints do not determine the dependent joints.
    """
    s = sympy()
    gaps = [shorten(entry) for entry in _gaps(robot, frames, numbers, values)]
    full = s.Matrix([gap for gap in gaps if gap != 0])
    jacobian = full.jacobian(list(q))
    at_home: dict[Any, float] = dict(values.found) | dict(zip(q, robot.home, strict=True))
    numbers_at_home = np.array(jacobian.subs(at_home).evalf(), float)
    independent = tuple(robot.model.joint_names.index(name) for name in robot.joints.joint_names)
    bound = [k for k in range(len(q)) if k not in independent]
    # some constraints repeat others; those that determine the dependent joints best are kept
    _, r, order = scipy.linalg.qr(numbers_at_home[:, bound].T, mode='economic', pivoting=True)
    if len(order) < len(bound) or np.abs(np.diag(r)).min() < SAME:
        raise ValueRangeError('loops', f'{len(full)} constraints', f'{len(bound)} independent '
                              'ones, which determine the dependent joints at the start pose')
    kept = sorted(order[:len(bound)])
    n, j = full.extract(kept, [0]), jacobian.extract(kept, list(range(len(q))))
    rate = s.zeros(*j.shape)
    for position, speed in zip(q, qd, strict=True):
        rate += j.diff(position) * speed
    return Constraints(independent, n, j, rate.applyfunc(shorten))


def _gaps(robot: ClosedLoopDynamics, frames: Mapping[str, Any], numbers: Mapping[str, int],
          values: Values) -> list[Any]:
    """Return the components of the gaps between the points that the cuts hold together."""
    gaps: list[Any] = []
    for cut in robot.cuts:
        for pair in cut.points:
            ends = []
            for link, point in zip(cut.links, pair, strict=True):
                rotation, origin, _ = frames[link]
                name, k = f'b{numbers[link]}', 0
                while any(str(symbol).startswith(name) for symbol in values.found):
                    k += 1
                    name = f'b{numbers[link]}_{k}'
                ends.append(origin + rotation * values.vector(name, point))
            gaps += list(ends[0] - ends[1])
    return gaps


def _exact(value: float) -> Any:
    """Return a rational number near a float, or the float itself."""
    rational = sympy().nsimplify(round(float(value), 7), rational=True)
    return rational if rational.q <= 1000 else sympy().Float(float(value))


def _turn(value: Array | float) -> Any:
    """Return zero or a multiple of pi near a position, or the position itself."""
    part = sympy().nsimplify(round(float(value) / np.pi, 7), rational=True)
    return part * sympy().pi if part.q <= FINEST_TURN else sympy().Float(float(value))
