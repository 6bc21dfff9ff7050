"""`LinearModel`: torques as a linear function of parameters, for each kind of identification.

See Kolyubin 5.4-5.10. The columns of rigid bodies and rotors come from the compiled regressor.
Those of friction are added here, because the friction model is chosen from the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np

from robodyn_ros.dynamics import ClosedLoopDynamics, FullMotion, RobotDynamics
from robodyn_ros.errors import IdentificationError, UnknownNameError
from robodyn_ros.identification.column import Column
from robodyn_ros.identification.friction import FrictionShape, FrictionStates, is_friction
from robodyn_ros.identification.gear_friction import LOAD_KINDS, GearFriction
from robodyn_ros.identification.springs import Springs
from robodyn_ros.model import LINK_FRICTION, MOTOR_FRICTION, PARAMETER_NAMES, RIGID, ROTOR
from robodyn_ros.model.kinds import ROTOR_KINDS, kind_of
from robodyn_ros.spatial import Array

STANDARD = len(PARAMETER_NAMES)


class LinearModel:
    """``tau = W(q, qd, qdd) theta`` of a robot.

    Parameters
    ----------
    dynamics : RobotDynamics
        The nominal robot. With closed loops the rows are those of the independent joints.
    kind : str
        ``rigid``: bodies only; ``lumped``: bodies, rotors and the sum of both sides' friction,
        from one torque; ``links`` (Kolyubin's model 1): bodies and link-side friction, from joint
        torque sensors; ``links_and_drives`` (model 2): bodies, rotors and friction of each side,
        from joint torques and motor torques; ``drives`` (model 3): rotors and motor-side friction,
        from the difference of the two.
    friction : FrictionShape
        The friction model of every joint.
    joints : sequence of str, optional
        Joints whose parameters are estimated; the others keep their nominal values.
    payload : str, optional
        A link that carries an unknown payload in some of the logs, which adds ten columns.

    Attributes
    ----------
    columns : tuple of Column
        The p parameters.
    rows : int
        n, or 2 n for ``links_and_drives``: the joint torques, then the motor torques.
    model : Model
        The robot, with its loops cut open.
    joints : Joints
        The n joints whose torques are explained.
    """

    def __init__(self, dynamics: RobotDynamics, kind: str = 'lumped', *,
                 friction: FrictionShape | None = None, joints: Sequence[str] | None = None,
                 payload: str | None = None):
        if dynamics.cuts:
            dynamics.model.require_fixed_base('base parameters of closed loops')
        self.whole, self.model, self.joints = dynamics, dynamics.model, dynamics.joints
        self.loops = dynamics if dynamics.cuts else None
        self.dynamics = dynamics.tree
        self.kind = kind = kind_of(kind)
        self.friction = friction or FrictionShape(speed=np.ones(self.model.n))
        self.payload = payload
        self.bodies = self._bodies(joints)
        self._sides = 2 if kind == 'links_and_drives' else 1
        self.rows = self._sides * dynamics.n
        self.gears = GearFriction(self.model, kind, self.friction, self.bodies)
        self.springs = Springs(self.model, () if kind == 'drives' else self.bodies,
                               self.friction.springs)
        self.columns = tuple(self._make_columns())
        end = len(self.columns) - (0 if payload is None else len(RIGID))
        self._spring_columns = slice(end - len(self.springs.terms), end)
        self._compiled = [c.standard for c in self.columns if c.standard >= 0
                          and c.standard % STANDARD not in (*LINK_FRICTION, *MOTOR_FRICTION)]
        self._rotors = [k for k, c in enumerate(self.columns) if c.term == 'Ia']
        self._load = [] if payload is None else self._payload_columns(payload)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def _bodies(self, joints: Sequence[str] | None) -> tuple[int, ...]:
        names = self.model.body_joints
        if joints is None:
            return tuple(range(len(names)))
        for name in joints:
            if name not in names:
                raise UnknownNameError('joint', name, names)
        return tuple(i for i, name in enumerate(names) if name in joints)

    def _make_columns(self) -> Iterable[Column]:
        joints = self.model.body_joints
        rotors = self.kind in ROTOR_KINDS
        standard = [] if self.kind == 'drives' else list(RIGID)
        for body in self.bodies:  # bodies and rotors come first, as one block of the kernel
            for parameter in [*standard, ROTOR] if rotors else standard:
                term = PARAMETER_NAMES[parameter]
                yield Column(f'{term}:{joints[body]}', STANDARD * body + parameter, term, body)
        if self.model.floating and standard:
            for parameter in RIGID:
                name = self.model.parameter_names[STANDARD * len(joints) + parameter]
                yield Column(name, STANDARD * len(joints) + parameter,
                             PARAMETER_NAMES[parameter], len(joints))
        for friction in self.gears.terms:
            body = self.gears.sources[friction.source].body
            yield Column(f'{friction.name}:{joints[body]}', friction.standard, friction.name,
                         body)
        for spring in self.springs.terms:
            yield Column(f'{spring.name}:{joints[spring.body]}', -1, spring.name, spring.body)
        if self.payload is not None:
            for parameter in RIGID:
                term = PARAMETER_NAMES[parameter]
                yield Column(f'{term}:payload', -1, term, -1)

    def _payload_columns(self, link: str) -> list[int]:
        frame = self.model.link_frame(link)
        if frame.body < 0:
            raise UnknownNameError('link that moves', link, [
                name for name, f in self.model.link_frames.items() if f.body >= 0])
        return [STANDARD * frame.body + parameter for parameter in RIGID]

    def regressor(self, q: Array, qd: Array, qdd: Array, *, loaded: bool = False,
                  friction: FrictionStates | None = None, motion: FullMotion | None = None,
                  extra: Array | None = None) -> Array:
        """Return W at a batch of states, shape (N, rows, p).

        Parameters
        ----------
        q, qd, qdd : ndarray, shape (N, n)
            rad or m, and their derivatives.
        loaded : bool
            Whether the payload is attached.
        friction : FrictionStates, optional
            Directions and temperatures of friction, see `friction_states`. By default directions
            follow from the velocities alone, and temperatures are those of the reference.
        motion : FullMotion, optional
            The motion of all joints, if it is known already; for robots with closed loops.
        extra : ndarray, shape (N, n), optional
            Known torques that the gears transmit besides those of the links, see `Log`.
        """
        if self.loops is None:
            return self._of_tree(q, qd, qdd, loaded, friction, extra)
        if motion is None:
            motion = self.loops.motion(q, qd)
        return self._reduce(motion, self._of_tree(motion.q, motion.qd, motion.qdd(qdd), loaded,
                                                  friction))

    def friction_states(self, q: Array, qd: Array, rate: float,
                        temperature: Array | None = None) -> FrictionStates:
        """Return what friction depends on along a motion, besides velocities and loads.

        Parameters
        ----------
        q, qd : ndarray, shape (N, n)
            Consecutive samples; rad or m, and per s.
        rate : float
            Samples a second, Hz.
        temperature : ndarray, shape (N, n), optional
            Measured temperatures of the joints, degrees Celsius.
        """
        if self.loops is not None:
            qd, temperature = self.loops.velocities(q, qd), None
        return self.gears.states(qd, rate, temperature, q)

    def _reduce(self, motion: FullMotion, columns: Array) -> Array:
        """Project the columns of all joints' torques onto the independent joints."""
        sides = columns.reshape(len(columns), self._sides, self.model.n, -1)
        return np.einsum('tji,tsjp->tsip', motion.matrix, sides).reshape(
            len(columns), self.rows, -1)

    def _of_tree(self, q: Array, qd: Array, qdd: Array, loaded: bool,
                 friction: FrictionStates | None = None, extra: Array | None = None) -> Array:
        n, size = self.model.n, len(q)
        rows = self._sides * n
        result = np.zeros((size, rows, len(self.columns)))
        links, drives = slice(0, n), slice(rows - n, rows)
        if self._compiled:
            block = self.dynamics.regressor(q, qd, qdd, self._compiled)
            result[:, drives, :len(self._compiled)] = block
            if rows > n:  # motor torques move links and rotors, joint torques the links alone
                result[:, links, :len(self._compiled)] = block
                result[:, links, self._rotors] = 0.0
        if self.gears.terms:
            self._add_friction(result[:, :, self.friction_columns()[0]:], qd, friction,
                               self.loads(result, extra))
        result[:, :, self._spring_columns] = self.springs.columns(q, rows)
        if self._load and loaded:
            body = self.dynamics.regressor(q, qd, qdd, self._load)
            result[:, links, -10:] = body
            result[:, drives, -10:] = body
        return result

    def warm_up(self) -> None:
        """Compile the kernels of `regressor` now instead of at its first call."""
        still = np.zeros((2, self.model.n))
        self._of_tree(still, still, still, loaded=self.payload is not None)
        if self.loops is not None:
            self.loops.warm_up('motion')

    def pullback(self, q: Array, qd: Array, qdd: Array, g: Array, *,
                 loaded: bool = False) -> tuple[Array, Array, Array]:
        """Return the gradients of ``sum(g * regressor)`` w.r.t. q, qd and qdd, (N, n) each.

        Parameters
        ----------
        q, qd, qdd : ndarray, shape (N, n)
            The motion.
        g : ndarray, shape (N, rows, p)
            The weights, which are held constant.
        loaded : bool
            Whether the payload is attached.

        Raises
        ------
        IdentificationError
            The robot has closed loops on a floating base.
        """
        if self.loops is None:
            return self._pullback_of_tree(q, qd, qdd, g, loaded)
        if self.loops.model.floating:
            raise IdentificationError('gradients of closed loops need a fixed base')
        loops = cast('ClosedLoopDynamics', self.loops)
        motion = loops.motion(q, qd)
        every, size, n = motion.qdd(qdd), len(q), self.model.n
        sides = g.reshape(size, self._sides, self.whole.n, -1)
        of_tree = np.einsum('tji,tsip->tsjp', motion.matrix, sides)
        gradients = self._pullback_of_tree(
            motion.q, motion.qd, every, of_tree.reshape(size, self._sides * n, -1), loaded)
        columns = self._of_tree(motion.q, motion.qd, every, loaded)
        of_matrix = np.einsum('tsjp,tsip->tji', columns.reshape(size, self._sides, n, -1), sides)
        by = loops.motion_pullback(motion, qd, qdd, *gradients, of_matrix)
        return by[:, 0], by[:, 1], by[:, 2]

    def _pullback_of_tree(self, q: Array, qd: Array, qdd: Array, g: Array,
                          loaded: bool) -> tuple[Array, Array, Array]:
        n, block = self.model.n, len(self._compiled)
        rows = self._sides * n
        drives = slice(rows - n, rows)
        gradients = np.zeros((3, *q.shape))
        if block:
            inner = g[:, drives, :block].copy()
            if rows > n:
                links = g[:, :n, :block].copy()
                links[:, :, self._rotors] = 0.0
                inner += links
            pulled = self.dynamics.regressor_pullback(q, qd, qdd, inner, self._compiled)
            gradients += np.moveaxis(pulled, 1, 0)
        if self._load and loaded:
            inner = g[:, drives, -10:] + (g[:, :n, -10:] if rows > n else 0.0)
            pulled = self.dynamics.regressor_pullback(q, qd, qdd, inner, self._load)
            gradients += np.moveaxis(pulled, 1, 0)
        gradients[1] += self.gears.pullback(qd, g[:, :, self.friction_columns()])
        gradients[0] += self.springs.pullback(q, g[:, :, self._spring_columns])
        return gradients[0], gradients[1], gradients[2]

    def friction_columns(self) -> list[int]:
        """Return the columns of friction."""
        return [k for k, column in enumerate(self.columns) if is_friction(column.term)]

    @property
    def follows_load(self) -> bool:
        """Whether some friction is proportional to the torque that a gear transmits."""
        return any(column.term[:2] == 'Ft' for column in self.columns)

    @property
    def can_follow_load(self) -> bool:
        """Whether the fit determines transmitted torques: for trees, if it has all bodies."""
        return self.loops is None and self.kind in LOAD_KINDS \
            and len(self.bodies) == len(self.model.body_joints)

    def loads(self, w: Array, extra: Array | None = None,
              parameters: Array | None = None) -> Array | None:
        """Return the torques that gears transmit, shape (N, n); None where they do not matter.

        Parameters
        ----------
        w : ndarray, shape (N, rows, p)
            Regressor; its columns of the links suffice.
        extra : ndarray, shape (N, n), optional
            Known torques besides those of the links.
        parameters : ndarray, shape (17 b,), optional
            Standard parameters of the links; default: those of the friction model.
        """
        chosen = self.friction.load if parameters is None else parameters
        if parameters is None and not (self.follows_load and len(chosen)):
            return None
        rigid = [k for k in range(len(self._compiled)) if self.columns[k].term != 'Ia']
        found = w[:, :self.model.n, rigid] @ chosen[[self._compiled[k] for k in rigid]]
        return np.asarray(found if extra is None else found + extra)

    def friction_regressor(self, q: Array, qd: Array, states: FrictionStates,
                           loads: Array | None = None) -> Array:
        """Return the friction columns, shape (N, rows, terms of friction)."""
        motion = None if self.loops is None else self.loops.motion(q, qd)
        result = np.zeros((len(qd), self._sides * self.model.n, len(self.gears.terms)))
        self._add_friction(result, qd if motion is None else motion.qd, states, loads)
        return result if motion is None else self._reduce(motion, result)

    def spring_regressor(self, q: Array, qd: Array) -> Array:
        """Return the columns of the springs, shape (N, rows, springs)."""
        if self.loops is None:
            return self.springs.columns(q, self.rows)
        motion = self.loops.motion(q, qd)
        return self._reduce(motion, self.springs.columns(motion.q, self._sides * self.model.n))

    def friction_terms(self, qd: Array, states: FrictionStates, loads: Array | None = None,
                       ) -> Iterator[tuple[int, list[tuple[int, float]], Array]]:
        """Yield (column, its rows with their factors, values), see `GearFriction.values`."""
        first = self.friction_columns()[0] if self.gears.terms else 0
        for index, felt, values in self.gears.values(qd, states, loads):
            yield first + index, felt, values

    def _add_friction(self, columns: Array, qd: Array, states: FrictionStates | None,
                      loads: Array | None) -> None:
        for index, felt, values in self.gears.values(qd, states or self.gears.states(qd), loads):
            for row, factor in felt:
                columns[:, row, index] = factor * values

    def nominal(self) -> Array:
        """Return the nominal parameters, shape (p,); those that a model does not have are zero."""
        chi = self.model.standard_parameters
        values = np.array([chi[c.standard] if c.standard >= 0 else 0.0 for c in self.columns])
        if self.kind == 'lumped':  # one torque contains the friction of both sides
            for k, column in enumerate(self.columns):
                side = column.standard % STANDARD if column.standard >= 0 else -1
                if side in LINK_FRICTION and not self.coupled(column.body):
                    values[k] += chi[column.standard + 4]
        values[self._spring_columns] = self.springs.nominal()
        return values

    def coupled(self, body: int) -> bool:
        """Return whether a gearbox couples the motor of a body with other joints."""
        return not np.array_equal(self.model.row[body], self.model.motor_row[body])

    def not_estimated(self) -> RobotDynamics | None:
        """Return the nominal dynamics of what is not estimated; None if everything is."""
        if len(self.bodies) == len(self.model.body_joints):
            return None
        chi = self.model.standard_parameters.copy().reshape(-1, STANDARD)
        chi[list(self.bodies)] = 0.0
        rest = self.model.with_standard_parameters(chi.ravel())
        return self.whole.with_model(rest.without_springs_of(self.bodies))
