"""Closed forms of the equations of motion of small arms, through SymPy.

M is the sum ``m J_v' J_v + J_w' I J_w`` over the links and their rotors (Velagić 4.34), C follows
from the Christoffel symbols (Velagić 4.47-4.48), g from the potential energy (Velagić 4.42). The
numbers of the description become named symbols: ``m1`` for the mass of link 1, ``l1`` for the
distance of its centre of mass from its joint, ``a1`` for the distance of the next joint, ``I1``
for its inertia about the centre of mass, ``k1``, ``Im1`` and ``mm1`` for gear ratio, inertia and
mass of the rotor that drives joint 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.description.robot import Joint
from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.errors import UnknownNameError, ValueRangeError, check_type
from robodyn_ros.export.symbolic_loops import (
    Constraints,
    Coordinates,
    constraints_of,
    linear_coordinates,
    tree_coordinates,
)
from robodyn_ros.export.symbolic_values import Values, rotation_about, sympy
from robodyn_ros.model import A_MODEL, Model
from robodyn_ros.packages import package

MOST_JOINTS = 4  # the closed forms of larger arms are too long to be read
TERMS = ('M', 'C', 'c', 'g')


@dataclass(frozen=True)
class Equations:
    """Closed forms of ``M qdd + C qd + g = tau``; c is ``C qd``.

    Attributes
    ----------
    joint_names : tuple of str
        Names of the joints, whose positions are the symbols ``q``.
    q, qd : list of sympy.Symbol
        Positions and velocities.
    M, C, c, g : sympy.Matrix
        The terms.
    values : dict of sympy.Symbol to float
        The symbols of the description, with their values in SI units.
    definitions : dict of sympy.Symbol to sympy.Expr
        What the symbols of lumped parameters stand for; empty without them.
    link_names : tuple of str
        Names of the links with the numbers 1, 2 and so on in the symbols.
    constraints : Constraints or None
        The constraints of closed loops whose dependent joints are not linear functions of the
        others; M, C, c and g are then those of the tree.
    """

    joint_names: tuple[str, ...]
    q: list[Any]
    qd: list[Any]
    M: Any
    C: Any
    c: Any
    g: Any
    values: dict[Any, float]
    definitions: dict[Any, Any]
    link_names: tuple[str, ...] = ()
    constraints: Constraints | None = None

    def lumped(self, name: str = 'p') -> Equations:
        """Return the same equations in lumped parameters, ``p1``, ``p2`` and so on.

        The coefficient of each function of positions and velocities becomes one symbol;
        coefficients that differ only by a number share a symbol. These are the parameters that
        torques determine (Kolyubin 2.2.3).
        """
        found: dict[Any, Any] = {}

        def lump(entry: Any) -> Any:
            total = sympy().Integer(0)
            for function, coefficient in _by_functions(entry, (*self.q, *self.qd)).items():
                number, rest = coefficient.as_content_primitive()
                if rest.is_number:
                    total += coefficient * function
                    continue
                total += number * symbol_of(rest) * function
            return total

        def symbol_of(coefficient: Any) -> Any:
            for symbol, definition in found.items():
                for sign in (1, -1):
                    if (definition - sign * coefficient).expand() == 0:
                        return sign * symbol
            symbol = sympy().Symbol(f'{name}{len(found) + 1}')
            found[symbol] = sympy().factor_terms(coefficient)
            return symbol

        parts = {term: getattr(self, term).applyfunc(lump) for term in ('M', 'c', 'g')}
        return replace(self, **parts, C=self.C.applyfunc(lump), definitions=found)


def equations(model: Model, *, names: Mapping[str, str] | None = None,
              loops: Loops | str | Path | Mapping[str, Any] | None = None) -> Equations:
    """Derive the closed forms of the equations of motion of a small arm.

    Friction is left out. Numbers of the description that are zero get no symbol, and the angles
    between joints stay numbers, so the closed forms are valid for this robot only.

    Parameters
    ----------
    model : Model
        The robot, with a fixed base and at most four moving joints.
    names : mapping of str to str, optional
        Other names of symbols, for example ``{'q1': 'theta', 'a1': 'l1', 'l1': 'd1'}``.
    loops : Loops, str, Path or mapping, optional
        Closed loops, see `read_loops`. Where all joints are linear functions of the independent
        ones, as in a parallelogram, the equations are those of the independent joints; otherwise
        those of the tree, with ``constraints``.

    Raises
    ------
    ValueRangeError
        The robot has too many joints, or a gearbox that couples joints; or the loops cannot be
        closed.
    UnknownNameError
        A symbol that is renamed does not exist.
    MissingPackageError
        SymPy is not installed.
    """
    check_type('model', model, Model, A_MODEL)
    model.require_fixed_base('symbolic equations')
    if not 1 <= model.n <= MOST_JOINTS:
        raise ValueRangeError('number of joints', model.n, f'1 to {MOST_JOINTS} for readable '
                              'closed forms; lock the others, or write the recursion')
    if model.description.gear_matrix is not None:
        raise ValueRangeError('gear_matrix', 'given', 'a robot without coupled gears')
    if model.ripple.any():
        raise ValueRangeError('ripple', 'given', 'a robot without torque ripple')
    if model.spring.any():
        raise ValueRangeError('spring', 'given', 'a robot without springs at its joints')
    robot = None if loops is None else ClosedLoopDynamics(model, loops)
    linear = tree_coordinates(model) if robot is None else linear_coordinates(robot)
    derivation = _Derivation(model, linear or tree_coordinates(model))
    found = derivation.run()
    if robot is not None and linear is None:
        found = replace(found, constraints=derivation.constraints(robot))
        found = replace(found, values=dict(derivation.values.found))
    return _renamed(found, derivation.values.short(found), names or {})


class _Derivation:
    """Sums the energies of the links, parents first."""

    def __init__(self, model: Model, coordinates: Coordinates):
        self.model, self.description, self.coordinates = model, model.description, coordinates
        self.values = Values()
        s, n = sympy(), len(coordinates.names)
        self.q = [s.Symbol(f'q{k + 1}', real=True) for k in range(n)]
        self.qd = [s.Symbol(f'qd{k + 1}', real=True) for k in range(n)]
        size = float(np.linalg.norm(model.gravity))
        self.gravity = self.values.symbol('g', size) * self.values.exact(
            model.gravity / size) if size else s.zeros(3, 1)
        self.mass, self.potential = s.zeros(n, n), s.Integer(0)
        # rotation, origin and angular Jacobian of each link in the root frame
        self.frames = {model.description.root: (s.eye(3), s.zeros(3, 1), s.zeros(3, n))}
        self.numbers = {model.description.root: 0}

    def run(self) -> Equations:
        """Return the equations of the tree in the chosen coordinates."""
        s = sympy()
        description = self.description
        links = {link.name: link for link in description.links}
        frames, numbers = self.frames, self.numbers
        for joint, _ in joints_parent_first(description.root, description.joints):
            numbers[joint.child] = len(numbers)
            frames[joint.child] = self._moved(joint, *frames[joint.parent],
                                              self.values.origin(joint, numbers[joint.parent]))
            inertial = links[joint.child].inertial
            if inertial is not None:
                self._add_body(frames[joint.child],
                               *self.values.body(inertial, numbers[joint.child]))
        for joint, _ in joints_parent_first(description.root, description.joints):
            if joint.name in description.motors and joint.type != 'fixed':
                self._add_rotor(joint, frames, numbers)
        mass = self.mass.applyfunc(simplified)
        gravity = s.Matrix([self.potential]).jacobian(self.q).T.applyfunc(simplified)
        coriolis_matrix = self._coriolis_matrix(mass)
        coriolis = (coriolis_matrix * s.Matrix(self.qd)).applyfunc(simplified)
        return Equations(self.coordinates.names, self.q, self.qd, mass, coriolis_matrix, coriolis,
                         gravity, dict(self.values.found), {}, tuple(numbers)[1:])

    def _coriolis_matrix(self, mass: Any) -> Any:
        """Return C by the Christoffel symbols of the mass matrix (Velagić 4.47-4.48)."""
        n = len(self.q)
        matrix = sympy().zeros(n, n)
        for k in range(n):
            for j in range(n):
                matrix[k, j] = simplified(sum(
                    (mass[k, j].diff(self.q[i]) + mass[k, i].diff(self.q[j])
                     - mass[i, j].diff(self.q[k])) * self.qd[i] / 2 for i in range(n)))
        return matrix

    def constraints(self, robot: ClosedLoopDynamics) -> Constraints:
        """Return the constraints of loops, after `run`."""
        return constraints_of(robot, self.frames, self.numbers, self.q, self.qd, self.values,
                              simplified)

    def _position(self, joint: Joint) -> tuple[Any, Any]:
        """Position of a joint, and its derivative w.r.t. q as a row."""
        s = sympy()
        leader = joint.mimic.joint if joint.mimic else joint.name
        k = self.model.joint_names.index(leader)
        factor = self.values.number(joint.mimic.multiplier) if joint.mimic else s.Integer(1)
        offset = self.values.number(joint.mimic.offset) if joint.mimic else s.Integer(0)
        row = factor * self.coordinates.matrix[k, :]
        own = (row * s.Matrix(self.q))[0] + factor * self.coordinates.offset[k]
        return own + offset, row

    def _moved(self, joint: Joint, rotation: Any, origin: Any, angular: Any, shift: Any) -> Any:
        """Return rotation, origin and angular Jacobian of a joint's child link."""
        origin = origin + rotation * shift
        rotation = rotation * self.values.exact(joint.rotation)
        if joint.type == 'fixed' or joint.name not in self.model.body_joints:
            return rotation, origin, angular
        axis, (position, row) = self.values.exact(joint.axis), self._position(joint)
        if joint.type == 'prismatic':
            return rotation, origin + rotation * axis * position, angular
        return (rotation * rotation_about(axis, position), origin,
                angular + rotation * axis * row)

    def _add_body(self, frame: Any, mass: Any, centre: Any, inertia: Any) -> None:
        """Add the energies of a link (Velagić 4.34 and 4.36)."""
        rotation, origin, angular = frame
        point = (origin + rotation * centre).applyfunc(simplified)
        linear = point.jacobian(self.q)
        turning = (rotation.T * angular).applyfunc(simplified)
        self.mass += mass * linear.T * linear + turning.T * inertia * turning
        self.potential -= mass * (self.gravity.T * point)[0]

    def _add_rotor(self, joint: Joint, frames: Mapping[str, Any],
                   numbers: Mapping[str, int]) -> None:
        """Add the energies of a spinning rotor (Velagić 4.23-4.32)."""
        motor = self.description.motors[joint.name]
        carrier = motor.carrier or joint.parent
        (rotation, origin, angular), number = frames[carrier], numbers[joint.child]
        _, row = self._position(joint)
        if motor.armature is not None and motor.spin_axis is None:
            self.mass += self.values.symbol(f'Ia{number}', motor.armature) * row.T * row
            return
        ratio = self.values.symbol(f'k{number}', motor.gear_ratio)
        inertia = self.values.symbol(
            f'Im{number}', motor.reflected_inertia / motor.gear_ratio**2)
        spin = ratio * row
        if motor.spin_axis is None:
            self.mass += inertia * spin.T * spin
            return
        axis = rotation * self.values.exact(motor.spin_axis)
        carried = (axis.T * angular).applyfunc(simplified)
        self.mass += inertia * (spin.T * spin + spin.T * carried + carried.T * spin)
        if not motor.rotor_in_link:
            self.mass += inertia * carried.T * carried
            where = self.values.rotor(motor.rotor_position, joint, carrier, number,
                                      numbers[joint.parent])
            point = (origin + rotation * where).applyfunc(simplified)
            linear = point.jacobian(self.q)
            rotor_mass = self.values.symbol(f'mm{number}', motor.rotor_mass)
            self.mass += rotor_mass * linear.T * linear
            self.potential -= rotor_mass * (self.gravity.T * point)[0]


def simplified(entry: Any) -> Any:
    """Return an expression with masses and inertias in front of short factors."""
    s = sympy()
    flat = s.expand(entry)
    heavy = sorted((x for x in flat.free_symbols if x.name[0] in 'mI'), key=str)
    if not heavy:
        return _shortest(flat)
    parts = s.collect(flat, heavy, evaluate=False)
    factored = [mass * _shortest(factor) for mass, factor in parts.items()]
    return s.factor_terms(sum(factored)) if len(factored) == 1 else sum(factored)


def _shortest(entry: Any) -> Any:
    """Return the shortest of several forms: sums of angles, and powers of sines and cosines."""
    s = sympy()
    if not entry.has(s.sin, s.cos):
        return s.factor_terms(entry)
    rules = package('sympy.simplify.fu')
    sums = s.expand(rules.TR8(s.expand(entry)))
    halves = s.expand(sums.replace(_doubled, lambda x: 2 * s.cos(x.args[0] / 2) ** 2 - 1))
    forms = [s.factor_terms(form) for form in (sums, halves, rules.TR6(halves))]
    squares = s.expand(halves.subs({s.cos(x) ** 2: 1 - s.sin(x) ** 2 for x in {
        one.args[0] for one in halves.atoms(s.cos)}}))
    return min((*forms, s.factor_terms(squares)), key=s.count_ops)


def _doubled(entry: Any) -> bool:
    """Return whether an expression is the cosine of a doubled angle."""
    s = sympy()
    return bool(entry.func == s.cos and all(
        factor.is_even for factor in s.expand(entry.args[0]).as_coefficients_dict().values()))


def _by_functions(entry: Any, variables: tuple[Any, ...]) -> dict[Any, Any]:
    """Return the coefficients of the functions of some variables in a sum."""
    s = sympy()
    found: dict[Any, Any] = {}
    for term in s.Add.make_args(s.expand(entry)):
        coefficient, function = term.as_independent(*variables)
        found[function] = found.get(function, 0) + coefficient
    return {function: s.expand(value) for function, value in found.items()
            if s.expand(value) != 0}


def _renamed(found: Equations, short: Mapping[Any, Any], names: Mapping[str, str]) -> Equations:
    """Return equations with other names of their symbols."""
    s = sympy()
    every = {str(x): x for x in (*found.q, *found.qd, *(short.get(v, v) for v in found.values))}
    for name in names:
        if name not in every:
            raise UnknownNameError('symbol', name, every)
    other = {every[old]: s.Symbol(new, real=True) for old, new in names.items()}

    def change(entry: Any) -> Any:
        return entry.xreplace(dict(short)).xreplace(other)

    parts = {term: getattr(found, term).applyfunc(change) for term in TERMS}
    rules = found.constraints
    if rules is not None:
        rules = replace(rules, N=change(rules.N), J=change(rules.J), D=change(rules.D))
    every_part = [*parts.values(), *((rules.N,) if rules is not None else ())]
    shown = set().union(*(part.free_symbols for part in every_part))
    values = {change(symbol): value for symbol, value in found.values.items()}
    return replace(found, **parts, constraints=rules, q=[change(x) for x in found.q],
                   qd=[change(x) for x in found.qd],
                   values={x: v for x, v in values.items() if x in shown})
