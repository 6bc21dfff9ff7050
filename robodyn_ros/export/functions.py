"""Selects the exported functions: their arguments, traced functions and references for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.dynamics import BaseMotion, Dynamics, RobotDynamics
from robodyn_ros.dynamics.catalogue import MOVING, Catalogue
from robodyn_ros.dynamics.loop_closure import LoopClosure
from robodyn_ros.dynamics.parametric import with_symbols
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.model import Model

DEFAULT_TERMS = ('gravity', 'coriolis', 'friction', 'mass_matrix', 'inverse_dynamics',
                 'forward_dynamics')
BASE_TERMS = (MOVING + 'inverse_dynamics', MOVING + 'forward_dynamics')
TERMS = (*DEFAULT_TERMS, *BASE_TERMS, 'coriolis_matrix', 'center_of_mass',
         'centroidal_momentum', 'regressor', 'observer')
LINK_TERMS = ('pose', 'jacobian')

MEANINGS = {
    'gravity': 'Torques that hold the robot at rest, N m or N.',
    'coriolis': 'Coriolis, centrifugal and gyroscopic torques, N m or N; gravity is not included.',
    'friction': 'Friction of links and motors, N m or N.',
    'mass_matrix': 'Mass matrix, rotor inertia included; row-major.',
    'coriolis_matrix': 'Matrix C of Christoffel symbols, for which dM/dt - 2 C is skew; '
                       'row-major.',
    'inverse_dynamics': 'Torques of a motion, N m or N: M qdd + C qd + gravity + friction.',
    'forward_dynamics': 'Accelerations that torques cause, rad/s^2 or m/s^2; friction is '
                        'included.',
    'moving_inverse_dynamics': 'The same as inverse_dynamics for a base that moves, such as that '
                               'of a vehicle or a ship.',
    'moving_forward_dynamics': 'The same as forward_dynamics for a base that moves.',
    'center_of_mass': 'Centre of mass of the robot in the root frame, m.',
    'centroidal_momentum': 'Momentum about the centre of mass in the axes of the root frame: '
                           'linear, kg m/s, then angular, kg m^2/s.',
    'regressor': 'Matrix Y with inverse_dynamics = Y * parameters; row-major, a column for each '
                 'standard parameter.',
    'pose': 'Homogeneous transform of the frame of link {link} in the root frame; 4 x 4, '
            'row-major.',
    'jacobian': 'Jacobian of link {link}: velocity of its origin, m/s, then angular velocity, '
                'rad/s; axes of the root; 6 rows, row-major.',
    'observer': 'One step of a momentum observer of first order. The first elements of the result '
                'are the external torques, N m or N; all of it is the argument `observer` of the '
                'next step, and may be the same array. The first step takes zeros as `observer` '
                'and as `timing`.',
    'newton': 'Gaps of the closed loops, m, then the step of the dependent joints that closes '
              'them to first order.',
}


@dataclass(frozen=True)
class Function:
    """One exported function.

    Attributes
    ----------
    name : str
        Name without the prefix.
    meaning : str
        One sentence for the header.
    arguments : tuple of (str, int)
        Name and length of each array that is read.
    shape : tuple of int
        Shape of the result.
    trace : callable
        Takes an array of symbols for each argument and returns the result.
    reference : callable, optional
        The corresponding function of the dynamics, for the self-test.
    """

    name: str
    meaning: str
    arguments: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    trace: Callable[..., Any]
    reference: Callable[..., Any] | None

    @property
    def size(self) -> int:
        """Number of elements of the result."""
        return int(np.prod(self.shape))


def exported_functions(dynamics: RobotDynamics, terms: Sequence[str], *,
                       parametric: bool = False) -> list[Function]:
    """Return the functions to export for a list of terms.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.
    terms : sequence of str
        Names in `TERMS`, or ``pose:LINK`` and ``jacobian:LINK``.
    parametric : bool
        Whether the standard parameters are the first argument of every function that depends on
        them.

    Raises
    ------
    UnknownNameError
        A term or a link does not exist.
    """
    if dynamics.cuts:
        dynamics.model.require_fixed_base('the export of closed loops')
    maker = _Loops if dynamics.cuts else _Tree
    if parametric:  # the parameters hold plain friction
        dynamics = dynamics.with_model(dynamics.model.with_plain_friction())
    functions = maker(dynamics, parametric)
    return [*functions.always(), *(functions.function(term) for term in dict.fromkeys(terms))]


class _Tree:
    """The functions of a robot without closed loops."""

    def __init__(self, dynamics: Any, parametric: bool):
        self.dynamics, self.parametric = dynamics, parametric
        self.tree: Dynamics = dynamics.tree
        self.model = self.tree.model

    def always(self) -> list[Function]:
        return []

    def function(self, term: str) -> Function:
        kind, _, link = term.partition(':')
        if kind in LINK_TERMS and link:
            return self.link_function(kind, link)
        valid = [name for name in TERMS if not (self.model.floating and name in BASE_TERMS)]
        if term not in valid:
            raise UnknownNameError('term', term, (*valid, *(f'{kind}:LINK'
                                                            for kind in LINK_TERMS)))
        function = self.term(term)
        if not self.parametric or term == 'regressor':
            return function
        count = len(self.model.parameter_names)
        return replace(
            function, arguments=(('parameters', count), *function.arguments),
            trace=lambda parameters, *arrays: self.traced(
                term, with_symbols(self.tree.catalogue, parameters))(*arrays),
            reference=lambda parameters, *arrays: self.with_parameters(parameters).function(
                term).reference(*arrays))  # type: ignore[misc]

    def with_parameters(self, parameters: Any) -> _Tree:
        """Return the functions of the same robot with other parameters, not in parametric form."""
        model = self.model.with_standard_parameters(parameters)
        return type(self)(self.dynamics.with_model(model), False)

    def term(self, term: str) -> Function:
        catalogue, n = self.tree.catalogue, self.model.n
        if term == 'observer':
            return Function(term, MEANINGS[term], (
                ('q', self.model.nq), ('qd', n), ('tau', n), ('timing', 2),
                ('observer', 3 * n)), (3 * n,),
                self.traced(term, catalogue), observer_step(
                    lambda q, qd: np.concatenate(self.tree.momentum_terms(q, qd)),
                    self.tree.friction))
        if term == 'regressor':
            spec = catalogue.regressor_spec(range(len(self.model.parameter_names)))
        else:
            spec = catalogue.spec(term)
        return Function(term, MEANINGS[term], tuple(zip(spec.arguments, spec.sizes, strict=True)),
                        spec.shape, spec.function, self.of_tree(term, len(spec.arguments)))

    def of_tree(self, term: str, arguments: int) -> Callable[..., Any]:
        """Return the method of a term; in exports, load-dependent friction takes q before qd."""
        if term in BASE_TERMS:
            return with_base(getattr(self.tree, term.removeprefix(MOVING)))
        method = getattr(self.tree, term)
        return (lambda q, qd: method(qd, q)) if term == 'friction' and arguments == 2 else method

    def traced(self, term: str, catalogue: Catalogue) -> Callable[..., Any]:
        """Return the function of a term to trace, from another catalogue of the same robot."""
        if term == 'observer':
            return observer_step(catalogue.momentum_terms, catalogue.friction)
        return getattr(catalogue, term.removeprefix(MOVING))  # type: ignore[no-any-return]

    def link_function(self, kind: str, link: str) -> Function:
        spec = getattr(self.tree.catalogue, f'{kind}_spec')(link)
        method = getattr(self.tree, kind)
        return Function(f'{kind}_{link_names(self.model)[link]}', MEANINGS[kind].format(link=link),
                        tuple(zip(spec.arguments, spec.sizes, strict=True)), spec.shape,
                        spec.function, lambda q: method(q, link))


class _Loops(_Tree):
    """The functions of a robot with closed loops, for a pose of all joints that closes them."""

    ARGUMENTS = {'gravity': (), 'mass_matrix': (), 'coriolis': ('qd',), 'friction': ('qd',),
                 'inverse_dynamics': ('qd', 'qdd'), 'forward_dynamics': ('qd', 'tau'),
                 'regressor': ('qd', 'qdd'), 'moving_inverse_dynamics': ('qd', 'qdd', 'base'),
                 'moving_forward_dynamics': ('qd', 'tau', 'base')}

    def __init__(self, dynamics: Any, parametric: bool):
        super().__init__(dynamics, parametric)
        self.free = [self.model.joint_names.index(name) for name in dynamics.joint_names]

    def always(self) -> list[Function]:
        spec = self.closure(self.tree.catalogue).kernel('newton').spec
        return [Function('newton_step', MEANINGS['newton'], (('positions', spec.sizes[0]),),
                         spec.shape, spec.function, None)]

    def closure(self, catalogue: Catalogue) -> LoopClosure:
        return self.dynamics.closure_of(catalogue)  # type: ignore[no-any-return]

    def term(self, term: str) -> Function:
        if term not in self.ARGUMENTS:
            raise UnknownNameError('term of closed loops', term, self.ARGUMENTS)
        n = self.dynamics.n
        shape = {'mass_matrix': (n, n),
                 'regressor': (n, len(self.model.parameter_names))}.get(term, (n,))
        arguments = (('positions', self.model.n),
                     *((name, 9 if name == 'base' else n) for name in self.ARGUMENTS[term]))
        return Function(term, MEANINGS[term], arguments, shape,
                        self.traced(term, self.tree.catalogue), self.reference(term))

    def traced(self, term: str, catalogue: Catalogue) -> Callable[..., Any]:
        closure, n = self.closure(catalogue), self.dynamics.n
        if term.removeprefix(MOVING) in ('inverse_dynamics', 'forward_dynamics'):
            return getattr(closure, term.removeprefix(MOVING))  # type: ignore[no-any-return]
        if term == 'regressor':
            def regressor(q: Any, qd: Any, qdd: Any) -> Any:
                motion = closure.motion(q, qd)
                g, speed, drift = motion[:, :-2], motion[:, -2], motion[:, -1]
                spec = catalogue.regressor_spec(range(len(self.model.parameter_names)))
                return g.T @ spec.function(q, speed, g @ qdd + drift)
            return regressor
        columns = {'mass_matrix': slice(0, n), 'coriolis': n, 'gravity': n + 1,
                   'friction': n + 2}[term]
        at_rest = (np.zeros(n),)
        return lambda q, *qd: closure.terms(q, *(qd or at_rest))[:, columns]

    def reference(self, term: str) -> Callable[..., Any]:
        method, free = getattr(self.dynamics, term.removeprefix(MOVING)), self.free
        if term in BASE_TERMS:
            method = with_base(method)
        if term == 'friction':
            return lambda positions, qd: method(qd, positions[free], near=positions)
        if term == 'regressor':
            return self.regressor
        return lambda positions, *others: method(positions[free], *others, near=positions)

    def regressor(self, positions: Any, qd: Any, qdd: Any) -> Any:
        """Return the reduced regressor near a closed pose, computed from that of the tree."""
        motion = self.dynamics.motion(positions[self.free], qd, near=positions)
        return motion.matrix.T @ self.tree.regressor(motion.q, motion.qd, motion.qdd(qdd))

    def link_function(self, kind: str, link: str) -> Function:
        function = super().link_function(kind, link)
        b, n, closure = self.model.n, self.dynamics.n, self.closure(self.tree.catalogue)
        function = replace(function, arguments=(('positions', b),))
        if kind == 'pose':
            return function
        return replace(
            function, shape=(6, n),
            trace=lambda q: function.trace(q) @ closure.motion(q, np.zeros(n))[:, :n],
            reference=lambda q: self.tree.jacobian(q, link) @ self.dynamics.motion_matrix(
                q[self.free], near=q))


def with_base(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that takes the values of a `BaseMotion` as its last array."""
    def function(*arrays: Any, **options: Any) -> Any:
        *others, base = arrays
        return method(*others, base_motion=BaseMotion(
            base[:3], base[3:6], specific_force=base[6:]), **options)

    return function


def observer_step(momentum_terms: Callable[..., Any],
                  friction: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step of the momentum observer of first order as a function without a state.

    ``r (1 + k h) = r' + k (p - p' - h (u + u') / 2)``, where ' marks the last step: the observer
    of De Luca and Mattone (ICRA 2003), implicit in r and without its integral.
    """
    def step(q: Any, qd: Any, tau: Any, timing: Any, observer: Any) -> Any:
        n = len(qd)
        terms, (period, bandwidth) = momentum_terms(q, qd), timing
        last, momentum, rate = observer[:n], observer[n:2 * n], observer[2 * n:]
        p, u = terms[:n], terms[n:] + tau - friction(qd, q)
        k = 2 * np.pi * bandwidth
        r = (last + k * (p - momentum - 0.5 * period * (u + rate))) / (1 + k * period)
        return np.concatenate([r, p, u])

    return step


def link_names(model: Model) -> dict[str, str]:
    """Return a unique C name for every link; a number is appended where names would coincide."""
    names: dict[str, str] = {}
    for link in model.link_frames:
        name = plain = c_name(link)
        count = 1
        while name in names.values():
            count += 1
            name = f'{plain}_{count}'
        names[link] = name
    return names


def c_name(text: str) -> str:
    """Return a name valid in C: letters, digits and underscores, not starting with a digit.

    Raises
    ------
    UnknownNameError
        The text has no letter or digit.
    """
    name = ''.join(c if c.isascii() and c.isalnum() else '_' for c in text).strip('_').lower()
    if not name:
        raise UnknownNameError('name for C', text, ('one with a letter',))
    return name if not name[0].isdigit() else f'r{name}'
