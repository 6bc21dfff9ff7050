"""All functions of the equations of motion, in the form from which kernels are traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robodyn_ros.dynamics.composite_rigid_body import composite_mass_matrix, mass_factors
from robodyn_ros.dynamics.fingerprint import fingerprint
from robodyn_ros.dynamics.joint_terms import (
    armature_matrix,
    armature_torque,
    friction_torque,
    friction_widths,
    spring_energy,
    spring_torque,
)
from robodyn_ros.dynamics.kinematics import (
    center_of_mass,
    centroidal_momentum,
    link_drift,
    link_jacobian,
    link_pose,
    potential_energy,
)
from robodyn_ros.dynamics.mass_solver import mass_solver
from robodyn_ros.dynamics.newton_euler import (
    Motion,
    backward_pass,
    base_motion,
    forward_pass,
    given_motion,
    newton_euler,
)
from robodyn_ros.dynamics.regressor import regressor_factors, standard_regressor
from robodyn_ros.dynamics.tree import (
    Tree,
    body_poses,
    build_tree,
    cross,
    joint_transforms,
    quaternion_guards,
    regroup,
)
from robodyn_ros.errors import UnknownNameError
from robodyn_ros.kernels import KernelSpec, pullback, sign
from robodyn_ros.model import Model

MOVING = 'moving_'  # prefix of terms that take the motion of the base as their last argument
SLOPE = 1e-3  # rad/s or m/s, change of velocity for the slope of friction
LOAD_SWEEPS = 6  # iterations; if friction is a tenth of the load, each divides the error by ten

Points = tuple[tuple[str, tuple[float, float, float]], ...]  # link, and position in its frame, m


class Catalogue:
    """The functions of one model.

    Parameters
    ----------
    model : Model
        The robot.
    friction_width : float, optional
        Width of the smooth sign of dry friction, rad/s or m/s; default: those of the model.
    """

    def __init__(self, model: Model, friction_width: float | None = None):
        self.model, self.widths = model, friction_widths(model, friction_width)
        self.tree: Tree = build_tree(model)
        self.light: Tree = regroup(self.tree)  # same generalised forces with fewer parameters
        self.fingerprint = fingerprint(model, self.widths)

    def _spec(self, name: str, arguments: Sequence[str], shape: tuple[int, ...],
              function: Callable[..., Any]) -> KernelSpec:
        special = {'q': self.model.nq, 'base': 9, 'step': 1}
        sizes = tuple(special.get(name, self.model.n) for name in arguments)
        return KernelSpec(f'{self.fingerprint}|{name}', tuple(arguments), sizes, shape, function,
                          guards=self._guards(arguments))

    def _guards(self, arguments: Sequence[str]) -> Callable[..., list[Any]] | None:
        """Return the guards of kernels, see `KernelSpec`: the quaternion must have a direction."""
        if not self.model.floating or 'q' not in arguments:
            return None
        place = tuple(arguments).index('q')
        return lambda *inputs: quaternion_guards(inputs[place])

    # the terms, as functions of arrays of floats or symbols ----------------------------------

    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any, base: Any = None) -> Any:
        """``M qdd + c + g + friction``, with rotor inertia in M and c, and springs in g.

        ``base``, shape (9,), is the motion of the root, see `BaseMotion.values`; default: at rest.
        """
        rigid = newton_euler(self.light, q, qd, qd, qdd, self.tree.gravity, self._root(base))
        return (rigid + armature_torque(self.model, qdd) + spring_torque(self.model, q)
                + friction_torque(self.model, qd, self.widths, rigid))

    @staticmethod
    def _root(base: Any) -> Motion | None:
        return None if base is None else given_motion(base)

    def gravity(self, q: Any) -> Any:
        """G = NE(q, 0, 0), and the springs at the joints."""
        zero = np.zeros(self.model.n)
        return (newton_euler(self.light, q, zero, zero, zero, self.tree.gravity)
                + spring_torque(self.model, q))

    def coriolis(self, q: Any, qd: Any) -> Any:
        """C qd = NE(q, qd, 0) without gravity."""
        return newton_euler(self.light, q, qd, qd, np.zeros(self.model.n), np.zeros(3))

    def coriolis_matrix(self, q: Any, qd: Any) -> Any:
        """C from Christoffel symbols: column j is the bilinear form at (qd, e_j)."""
        return np.array([self.velocity_terms(q, qd, unit) for unit in np.eye(self.model.n)]).T

    def velocity_terms(self, q: Any, u: Any, v: Any) -> Any:
        """The symmetric bilinear form of which C qd is the value at (qd, qd); column of C."""
        forces = newton_euler(self.light, q, u, v, np.zeros(self.model.n), np.zeros(3))
        return forces + self._bracket(q, u, v) if self.model.floating else forces

    def _bracket(self, q: Any, u: Any, v: Any) -> Any:
        """M times half the Lie bracket of two twists of a floating base.

        The twist is no derivative of coordinates; with this, dM/dt - 2 C is skew-symmetric.
        """
        half = np.zeros(self.model.n, dtype=object)
        half[:3] = 0.5 * (cross(u[3:6], v[:3]) + cross(u[:3], v[3:6]))
        half[3:6] = 0.5 * cross(u[3:6], v[3:6])
        return self.momentum(q, half)

    def mass_factors(self, q: Any) -> Any:
        """Twists and wrenches of the joints in the root frame, see `LargeRobot`."""
        return mass_factors(self.light, q)

    def regressor_factors(self, q: Any, qd: Any, qdd: Any, base: Any = None) -> Any:
        """Twists of the joints and wrenches of unit parameters, see `LargeRegressor`."""
        return regressor_factors(self.tree, q, qd, qdd, self._root(base))

    def friction(self, qd: Any, q: Any = None) -> Any:
        """Link- and motor-side friction; a pose adds the load of gravity and Coriolis torques."""
        if q is None or not self.model.friction_follows_load:
            return friction_torque(self.model, qd, self.widths)
        return friction_torque(self.model, qd, self.widths, newton_euler(
            self.light, q, qd, qd, np.zeros(self.model.n), self.tree.gravity))

    def mass_matrix(self, q: Any) -> Any:
        """M, rotor inertia included."""
        return composite_mass_matrix(self.light, q) + armature_matrix(self.model)

    def terms(self, q: Any, qd: Any) -> Any:
        """g, c, friction and M, one after the other."""
        return np.concatenate([self.gravity(q), self.coriolis(q, qd), self.friction(qd, q),
                               self.mass_matrix(q).ravel()])

    def forward_dynamics(self, q: Any, qd: Any, tau: Any, base: Any = None) -> Any:
        """The solution qdd of ``M qdd = tau - c - g - friction``; base as above."""
        still = np.zeros(self.model.n)
        solve = mass_solver(self.model, self.tree, self.light, q)
        qdd = solve(tau - self.inverse_dynamics(q, qd, still, base))
        if self.model.friction_follows_load:  # which depends on the acceleration
            root = self._root(base)

            def loads(rates: Any) -> Any:
                return newton_euler(self.light, q, qd, qd, rates, self.tree.gravity, root)

            rigid = loads(still) + spring_torque(self.model, q)
            for _ in range(LOAD_SWEEPS):
                friction = friction_torque(self.model, qd, self.widths, loads(qdd))
                qdd = solve(tau - rigid - friction)
        return qdd

    def velocity_change(self, q: Any, qd: Any, tau: Any, damping: Any, step: Any) -> Any:
        """The solution of ``(M + step D) dv = step (tau - c - g - friction)``.

        D is diagonal: a damping, and the slope of friction where it is positive. Light joints with
        much friction need far smaller steps without it.
        """
        terms = [self.friction(qd + change, q) for change in (SLOPE, -SLOPE)]
        slope = (terms[0] - terms[1]) / (2 * SLOPE)
        positive = np.array([(x + x * sign(x)) * 0.5 for x in slope])
        force = tau - self.coriolis(q, qd) - self.gravity(q) - self.friction(qd, q)
        solve = mass_solver(self.model, self.tree, self.light, q, (positive + damping) * step[0])
        return solve(force * step[0])

    def momentum(self, q: Any, qd: Any) -> Any:
        """M qd = NE(q, 0, qd) without gravity."""
        zero = np.zeros(self.model.n)
        return (newton_euler(self.light, q, zero, zero, qd, np.zeros(3))
                + armature_torque(self.model, qd))

    def momentum_terms(self, q: Any, qd: Any) -> Any:
        """Momentum M qd, then ``C' qd - g``: its rate without joint torques and friction.

        ``C' qd`` is the gradient of the kinetic energy with respect to q; for the twist of a
        floating base, Kirchhoff's equations take its place.
        """
        p = self.momentum(q, qd)
        gradient = pullback(np.array([(qd @ p) * 0.5]), np.ones(1), (q,))
        if self.model.floating:  # its momentum is given in axes that turn with the base
            v, w = qd[:3], qd[3:6]
            gradient = np.concatenate([cross(p[:3], w), cross(p[3:6], w) + cross(p[:3], v),
                                       gradient[7:]])
        return np.concatenate([p, gradient - self.gravity(q)])

    def energy(self, q: Any, qd: Any) -> Any:
        """Kinetic ``qd' M qd / 2`` and potential energy."""
        return np.array([(qd @ self.momentum(q, qd)) * 0.5,
                         potential_energy(self.tree, q) + spring_energy(self.model, q)])

    def wrenches(self, q: Any, qd: Any, qdd: Any, base: Any = None) -> Any:
        """Force and moment through the joint of every body, then those of the base on the root."""
        placements = joint_transforms(self.tree, q)
        root = self._root(base) or base_motion(self.tree, q, qd, qd, qdd, self.tree.gravity)
        motions = forward_pass(self.tree, placements, qd, qd, qdd, root)
        joints, on_root = backward_pass(self.tree, placements, motions, root)
        return np.array([np.concatenate(wrench) for wrench in [
            *joints[:self.tree.bodies], on_root]])

    def body_poses(self, q: Any) -> Any:
        """Rotation and origin of every body in the root frame, (b + 1, 3, 4); root link last."""
        *poses, base = body_poses(self.tree, q)
        return np.array([np.column_stack(pose) for pose in [*poses[:self.tree.bodies], base]])

    def center_of_mass(self, q: Any) -> Any:
        """Centre of mass of the whole robot in the root frame."""
        return center_of_mass(self.tree, q)

    def centroidal_momentum(self, q: Any, qd: Any) -> Any:
        """Linear and angular momentum about the centre of mass, root axes."""
        return centroidal_momentum(self.tree, q, qd)

    # specifications of kernels ------------------------------------------------------------------

    def spec(self, name: str) -> KernelSpec:
        """Return the specification of a term above.

        Raises
        ------
        UnknownNameError
            There is no such term.
        """
        shapes = self._shapes()
        if name not in shapes:
            raise UnknownNameError('term', name, shapes)
        return self._spec(name, *shapes[name], self.function_of(name))

    def function_of(self, name: str) -> Callable[..., Any]:
        """Return the function of a term, with its arguments in the order of the kernels."""
        if name == 'friction' and self.model.friction_follows_load:
            return lambda q, qd: self.friction(qd, q)
        return getattr(self, name.removeprefix(MOVING))  # type: ignore[no-any-return]

    def _shapes(self) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
        """Names of the terms, their arguments and the shape of their result."""
        n, motion = self.model.n, ('q', 'qd', 'qdd')
        wrenches, factors = (self.tree.bodies + 1, 6), (6, 11 * self.tree.bodies + 10)
        return {
            'inverse_dynamics': (motion, (n,)),
            'moving_inverse_dynamics': ((*motion, 'base'), (n,)),
            'gravity': (('q',), (n,)),
            'coriolis': (('q', 'qd'), (n,)),
            'coriolis_matrix': (('q', 'qd'), (n, n)),
            'friction': (('q', 'qd') if self.model.friction_follows_load else ('qd',), (n,)),
            'mass_matrix': (('q',), (n, n)),
            'mass_factors': (('q',), (2, 6, len(self.tree.parent) + self.model.first_joint)),
            'regressor_factors': (motion, factors),
            'moving_regressor_factors': ((*motion, 'base'), factors),
            'velocity_terms': (('q', 'u', 'v'), (n,)),
            'terms': (('q', 'qd'), (3 * n + n * n,)),
            'forward_dynamics': (('q', 'qd', 'tau'), (n,)),
            'moving_forward_dynamics': (('q', 'qd', 'tau', 'base'), (n,)),
            'velocity_change': (('q', 'qd', 'tau', 'damping', 'step'), (n,)),
            'momentum': (('q', 'qd'), (n,)),
            'momentum_terms': (('q', 'qd'), (2 * n,)),
            'energy': (('q', 'qd'), (2,)),
            'center_of_mass': (('q',), (3,)),
            'centroidal_momentum': (('q', 'qd'), (6,)),
            'wrenches': (motion, wrenches),
            'moving_wrenches': ((*motion, 'base'), wrenches),
            'body_poses': (('q',), (self.tree.bodies + 1, 3, 4)),
        }

    def pose_spec(self, link: str) -> KernelSpec:
        """Return the specification of a link's pose, shape (4, 4)."""
        frame = self.model.link_frame(link)
        return self._spec(f'pose {link}', ('q',), (4, 4),
                          lambda q: link_pose(self.tree, frame, q))

    def jacobian_spec(self, link: str) -> KernelSpec:
        """Return the specification of a link's Jacobian, shape (6, n)."""
        frame = self.model.link_frame(link)
        return self._spec(f'jacobian {link}', ('q',), (6, self.model.n),
                          lambda q: link_jacobian(self.tree, frame, q))

    def drift_spec(self, link: str) -> KernelSpec:
        """Return the specification of ``dJ/dt qd`` of a link, shape (6,)."""
        frame = self.model.link_frame(link)
        return self._spec(f'drift {link}', ('q', 'qd'), (6,),
                          lambda q, qd: link_drift(self.tree, frame, q, qd))

    def regressor_spec(self, columns: Sequence[int], moving: bool = False) -> KernelSpec:
        """Return the specification of chosen columns of the regressor, shape (n, columns)."""
        chosen = tuple(columns)
        name, more = (MOVING, ('base',)) if moving else ('', ())
        return self._spec(
            f'{name}regressor {chosen}', ('q', 'qd', 'qdd', *more), (self.model.n, len(chosen)),
            lambda q, qd, qdd, base=None: standard_regressor(
                self.model, self.tree, q, qd, qdd, self.widths, chosen, self._root(base)))

    def regressor_pullback_spec(self, columns: Sequence[int]) -> KernelSpec:
        """Gradient of ``sum(G * Y)`` with respect to q, qd and qdd, G constant; shape (3, n)."""
        chosen, n = tuple(columns), self.model.n
        self.model.require_fixed_base('the gradients of the dynamics')

        def function(q: Any, qd: Any, qdd: Any, g: Any) -> Any:
            y = standard_regressor(self.model, self.tree, q, qd, qdd, self.widths, chosen)
            return pullback(y, g, (q, qd, qdd))

        return KernelSpec(f'{self.fingerprint}|regressor pullback {chosen}',
                          ('q', 'qd', 'qdd', 'cotangent'), (n, n, n, n * len(chosen)), (3, n),
                          function)

    def inverse_dynamics_pullback_spec(self) -> KernelSpec:
        """Gradient of ``g . inverse_dynamics`` by q, qd and qdd, g constant; shape (3, n)."""
        self.model.require_fixed_base('the gradients of the dynamics')
        return self._spec('inverse dynamics pullback', ('q', 'qd', 'qdd', 'cotangent'),
                          (3, self.model.n), lambda q, qd, qdd, g: pullback(
                              self.inverse_dynamics(q, qd, qdd), g, (q, qd, qdd)))

    def points_spec(self, points: Points) -> KernelSpec:
        """Positions of points fixed to links, in the root frame; shape (k, 3)."""
        return self._spec(f'points {points}', ('q',), (len(points), 3),
                          lambda q: self._points(points, q))

    def points_pullback_spec(self, points: Points) -> KernelSpec:
        """Gradient of ``sum(G * points)`` with respect to q, G constant; shape (n,)."""
        nq = self.model.nq
        return KernelSpec(f'{self.fingerprint}|points pullback {points}', ('q', 'cotangent'),
                          (nq, 3 * len(points)), (nq,),
                          lambda q, g: pullback(self._points(points, q), g, (q,)),
                          guards=self._guards(('q',)))

    def _points(self, points: Points, q: Any) -> Any:
        poses = {link: link_pose(self.tree, self.model.link_frame(link), q)
                 for link in dict.fromkeys(link for link, _ in points)}
        return np.array([(poses[link] @ np.array([*point, 1.0]))[:3] for link, point in points],
                        dtype=object)
