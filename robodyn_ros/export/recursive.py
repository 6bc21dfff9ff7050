"""The Newton-Euler recursion of one robot, symbol by symbol, through SymPy.

It is for arms whose closed forms would fill pages. Each component of Luh-Walker-Paul's recursion
(Velagić 4.89-4.96, Kolyubin 3.3-3.8) becomes one assignment in symbols of the description. There
is no assignment for components that are zero or equal to another symbol, as in the customised
symbolic method of Khalil and Kleinfinger, which SYMORO uses (Kolyubin 5.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.description.robot import Joint
from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.errors import ValueRangeError, check_type
from robodyn_ros.export.symbolic_values import Values, rotation_about, sympy
from robodyn_ros.model import A_MODEL, Model

_AXES = 'xyz'


@dataclass(frozen=True)
class Step:
    """One assignment of the recursion, ``symbol = value``, under a heading."""

    heading: str
    symbol: Any
    value: Any


@dataclass(frozen=True)
class Recursion:
    """Inverse dynamics of a robot as a list of assignments; friction is left out.

    Attributes
    ----------
    joint_names : tuple of str
        Names of the joints.
    q, qd, qdd : list of sympy.Symbol
        Their positions, velocities and accelerations.
    steps : tuple of Step
        The assignments in their order; the last ones are the torques ``tau1``, ``tau2`` ...
    values : dict of sympy.Symbol to float
        The symbols of the description, with their values in SI units.
    """

    joint_names: tuple[str, ...]
    q: list[Any]
    qd: list[Any]
    qdd: list[Any]
    steps: tuple[Step, ...]
    values: dict[Any, float]

    @property
    def operations(self) -> tuple[int, int]:
        """Number of multiplications and of additions."""
        s, times, plus = sympy(), 0, 0
        for step in self.steps:
            for part in s.preorder_traversal(step.value):
                if part.is_Add:
                    plus += len(part.args) - 1
                elif part.is_Mul:
                    times += sum(1 for x in part.args if x != -1) - 1
        return times, plus


def recursion(model: Model) -> Recursion:
    """Write the Newton-Euler recursion of a robot in symbols.

    Parameters
    ----------
    model : Model
        The robot, with a fixed base.

    Raises
    ------
    ValueRangeError
        The robot has a gearbox that couples joints.
    MissingPackageError
        SymPy is not installed.
    """
    check_type('model', model, Model, A_MODEL)
    model.require_fixed_base('symbolic equations')
    if model.description.gear_matrix is not None:
        raise ValueRangeError('gear_matrix', 'given', 'a robot without coupled gears')
    if model.ripple.any():
        raise ValueRangeError('ripple', 'given', 'a robot without torque ripple')
    if model.spring.any():
        raise ValueRangeError('spring', 'given', 'a robot without springs at its joints')
    return _Writer(model).run()


@dataclass
class _Link:
    """Motion of a link, and the force and moment that it needs so far, in its own frame."""

    number: int
    w: Any
    dw: Any
    dv: Any  # acceleration of the origin, minus gravity
    force: Any
    moment: Any  # about the origin

    def acceleration(self, point: Any) -> Any:
        """Acceleration of a point of the link, minus gravity (Velagić 4.92)."""
        return self.dv + self.dw.cross(point) + self.w.cross(self.w.cross(point))


@dataclass
class _Move:
    """A joint: the pose of its child in its parent, its axis, velocity and acceleration."""

    joint: Joint
    rotation: Any
    origin: Any
    axis: Any
    leader: int  # index of the joint that it follows, or of itself; -1 for a fixed joint
    factor: Any  # on the motion of the leader
    speed: Any
    acceleration: Any


class _Writer:
    """Writes the forward pass over the links, then the backward pass."""

    def __init__(self, model: Model):
        s, n = sympy(), model.n
        self.model, self.description, self.values = model, model.description, Values()
        self.q, self.qd, self.qdd = ([s.Symbol(f'{name}{k + 1}', real=True) for k in range(n)]
                                     for name in ('q', 'qd', 'qdd'))
        self.steps: list[Step] = []
        self.heading = ''
        self.tau = [s.Integer(0)] * n
        zero = s.zeros(3, 1)
        size = float(np.linalg.norm(model.gravity))
        up = -self.values.symbol('g', size) * self.values.exact(model.gravity / size) \
            if size else zero
        self.links = {model.description.root: _Link(0, zero, zero, up, zero, zero)}

    def run(self) -> Recursion:
        root, joints = self.description.root, self.description.joints
        inertials = {link.name: link.inertial for link in self.description.links}
        moves = []
        for joint, _ in joints_parent_first(root, joints):
            moves.append(self._forward(joint))
            if (inertial := inertials[joint.child]) is not None:
                link = self.links[joint.child]
                self._add_body(link, *self.values.body(inertial, link.number))
        for move in moves:
            if move.joint.name in self.description.motors and move.joint.type != 'fixed':
                self._add_rotor(move)
        for move in reversed(moves):
            self._backward(move)
        self.heading = 'torques of the joints'
        s = sympy()
        for k, torque in enumerate(self.tau):
            self.steps.append(Step(self.heading, s.Symbol(f'tau{k + 1}', real=True),
                                   s.expand(torque)))
        steps = _used(self.steps, self.model.n)
        shown = set().union(*(step.value.free_symbols for step in steps))
        return Recursion(self.model.joint_names, self.q, self.qd, self.qdd, steps, {
            symbol: value for symbol, value in self.values.found.items() if symbol in shown})

    def _named(self, name: str, value: Any) -> Any:
        """Assign the components of a vector to symbols; return the vector of these symbols."""
        s, found = sympy(), []
        for axis, entry in zip(_AXES, value, strict=True):
            entry = s.factor_terms(s.expand(entry))
            if (-entry if entry.could_extract_minus_sign() else entry).is_Atom:
                found.append(entry)
                continue
            symbol = s.Symbol(f'{name}{axis}', real=True)
            self.steps.append(Step(self.heading, symbol, entry))
            found.append(symbol)
        return s.Matrix(found)

    def _move(self, joint: Joint, parent: _Link, number: int) -> _Move:
        s = sympy()
        rotation = self.values.exact(joint.rotation)
        origin = self.values.origin(joint, parent.number)
        axis, nothing = self.values.exact(joint.axis), s.Integer(0)
        if joint.type == 'fixed' or joint.name not in self.model.body_joints:
            return _Move(joint, rotation, origin, axis, -1, nothing, nothing, nothing)
        mimic = joint.mimic
        leader = self.model.joint_names.index(mimic.joint if mimic else joint.name)
        factor = self.values.number(mimic.multiplier) if mimic else s.Integer(1)
        position = factor * self.q[leader] + (self.values.number(mimic.offset) if mimic else 0)
        if joint.type == 'prismatic':
            origin = origin + rotation * axis * position
        else:
            angle, (c, sine) = s.Symbol('angle'), s.symbols(f'c{number} s{number}', real=True)
            self.steps += [Step(self.heading, c, s.cos(position)),
                           Step(self.heading, sine, s.sin(position))]
            rotation = rotation * rotation_about(axis, angle).xreplace(
                {s.cos(angle): c, s.sin(angle): sine})
        return _Move(joint, rotation, origin, axis, leader, factor, factor * self.qd[leader],
                     factor * self.qdd[leader])

    def _forward(self, joint: Joint) -> _Move:
        """Angular velocity and accelerations of a joint's child (Velagić 4.89-4.91)."""
        parent, number = self.links[joint.parent], len(self.links)
        self.heading = f'forward, link {number} ({joint.child})'
        move = self._move(joint, parent, number)
        back, axis = move.rotation.T, move.axis
        w, dw = back * parent.w, back * parent.dw
        dv = back * self._named(f'do{number}', parent.acceleration(move.origin))
        swing = w.cross(axis * move.speed)
        if joint.type == 'prismatic':
            dv = dv + axis * move.acceleration + 2 * swing
        elif move.leader >= 0:
            w, dw = w + axis * move.speed, dw + axis * move.acceleration + swing
        w, dw, dv = (self._named(f'{name}{number}', value) for name, value in
                     (('w', w), ('dw', dw), ('dv', dv)))
        zero = sympy().zeros(3, 1)
        self.links[joint.child] = _Link(number, w, dw, dv, zero, zero)
        return move

    def _add_body(self, link: _Link, mass: Any, centre: Any, inertia: Any, of: str = '') -> None:
        """Add the force and moment that accelerate a body (Velagić 4.86-4.87) to its link."""
        where = of or str(link.number)
        force = self._named(f'F{where}', mass * self._named(f'dc{where}',
                                                            link.acceleration(centre)))
        moment = self._named(f'N{where}', inertia * link.dw + link.w.cross(inertia * link.w))
        link.force = link.force + force
        link.moment = link.moment + moment + centre.cross(force)

    def _add_rotor(self, move: _Move) -> None:
        """Add the moments of a spinning rotor to its carrier and its joint (Velagić 4.85-4.88)."""
        joint, motor = move.joint, self.description.motors[move.joint.name]
        carrier = self.links[motor.carrier or joint.parent]
        number = self.links[joint.child].number
        self.heading = f'rotor of joint {joint.name}'
        own = move.factor
        if motor.armature is not None and motor.spin_axis is None:
            self.tau[move.leader] += own * self.values.symbol(
                f'Ia{number}', motor.armature) * move.acceleration
            return
        ratio = self.values.symbol(f'k{number}', motor.gear_ratio)
        inertia = self.values.symbol(f'Im{number}', motor.reflected_inertia / motor.gear_ratio**2)
        self.tau[move.leader] += own * ratio**2 * inertia * move.acceleration
        if motor.spin_axis is None:
            return
        axis = self.values.exact(motor.spin_axis)
        self.tau[move.leader] += own * ratio * inertia * axis.dot(carrier.dw)
        carrier.moment = carrier.moment + ratio * inertia * (
            axis * move.acceleration + move.speed * carrier.w.cross(axis))
        if not motor.rotor_in_link:
            parent = self.links[joint.parent].number
            where = self.values.rotor(motor.rotor_position, joint,
                                      motor.carrier or joint.parent, number, parent)
            self._add_body(carrier, self.values.symbol(f'mm{number}', motor.rotor_mass), where,
                           inertia * axis * axis.T, of=f'm{number}')

    def _backward(self, move: _Move) -> None:
        """Force and moment through a joint (Velagić 4.94-4.95), and its torque (4.96)."""
        link, parent = self.links[move.joint.child], self.links[move.joint.parent]
        self.heading = f'backward, link {link.number} ({move.joint.child})'
        force = self._named(f'f{link.number}', link.force)
        moment = self._named(f'n{link.number}', link.moment)
        if move.leader >= 0:
            through = force if move.joint.type == 'prismatic' else moment
            self.tau[move.leader] += move.factor * move.axis.dot(through)
        force = move.rotation * force
        parent.force = parent.force + force
        parent.moment = parent.moment + move.rotation * moment + move.origin.cross(force)


def _used(steps: list[Step], torques: int) -> tuple[Step, ...]:
    """Return the steps on which the torques, the last steps, depend."""
    needed = {step.symbol for step in steps[-torques:]}
    kept = []
    for step in reversed(steps):
        if step.symbol in needed:
            needed |= step.value.free_symbols
            kept.append(step)
    return tuple(reversed(kept))


_LATEX = {'w': r'\omega', 'dw': r'\dot{\omega}', 'dv': r'\dot{v}', 'dc': r'\dot{v}^{C}',
          'dcm': r'\dot{v}^{m}', 'do': r'\dot{v}^{O}', 'tau': r'\tau'}


def recursion_text(found: Recursion, form: str = 'markdown') -> str:
    """Return a recursion as ``markdown``, ``latex`` or ``python``."""
    return {'markdown': _markdown, 'latex': _latex, 'python': _python}[form](found)


def _markdown(found: Recursion) -> str:
    times, plus = found.operations
    lines = ['tau = M(q) qdd + c(q, qd) + g(q) by the Newton-Euler recursion: '
             f'{len(found.steps)} steps, {times} multiplications, {plus} additions, with '
             + ', '.join(f'{q} of {name}' for q, name in zip(
                 found.q, found.joint_names, strict=True)), '', '```text']
    heading = ''
    for step in found.steps:
        if step.heading != heading:
            heading = step.heading
            lines.append(f'# {heading}')
        lines.append(f'{step.symbol} = {step.value}')
    lines += ['```', '', '## Symbols', '', '| symbol | value, SI units |', '|---|---|']
    lines += [f'| {symbol} | {value:.6g} |' for symbol, value in found.values.items()]
    return '\n'.join(lines)


def _latex(found: Recursion) -> str:
    s = sympy()
    names: dict[Any, str] = {step.symbol: _latex_name(str(step.symbol)) for step in found.steps}
    for rates, dots in ((found.qd, r'\dot'), (found.qdd, r'\ddot')):
        names |= {rate: rf'{dots}{{q}}_{{{k + 1}}}' for k, rate in enumerate(rates)}
    return '\n'.join([r'\begin{align*}', *(
        rf'{names[step.symbol]} &= {s.latex(step.value, symbol_names=names)} \\'
        for step in found.steps), r'\end{align*}'])


def _latex_name(name: str) -> str:
    """Return a symbol of a step for LaTeX: letters, then the number of the link and the axis."""
    letters = name.rstrip('0123456789' + _AXES)
    return f'{_LATEX.get(letters, letters)}_{{{name[len(letters):]}}}'


def _python(found: Recursion) -> str:
    code = sympy().printing.pycode
    lines = ['"""Newton-Euler recursion of one robot, written by `robodyn equations`."""', '',
             'import math', '', 'import numpy as np', '',
             *(f'{symbol} = {value!r}' for symbol, value in found.values.items()), '', '',
             'def inverse_dynamics(q, qd, qdd):',
             '    """Return the torques of the joints without friction, N m or N."""']
    for name, symbols in (('q', found.q), ('qd', found.qd), ('qdd', found.qdd)):
        lines.append(f'    {", ".join(map(str, symbols))}, = {name}')
    heading = ''
    for step in found.steps:
        if step.heading != heading:
            heading = step.heading
            lines.append(f'    # {heading}')
        lines.append(f'    {step.symbol} = {code(step.value)}')
    torques = ', '.join(str(step.symbol) for step in found.steps[-len(found.q):])
    return '\n'.join([*lines, f'    return np.array([{torques}])'])
