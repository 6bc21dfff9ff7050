"""`LinearModel`: torques as a linear function of parameters, for each kind of identification.

See Kolyubin 5.4-5.10. The columns of rigid bodies and rotors come from the compiled regressor.
Those of friction are added here, because the friction model is chosen from the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.dynamics import FullMotion, RobotDynamics
from robodyn_ros.errors import IdentificationError, UnknownNameError
from robodyn_ros.identification.friction import FrictionShape, is_friction
from robodyn_ros.model import LINK_FRICTION, MOTOR_FRICTION, PARAMETER_NAMES, RIGID, ROTOR
from robodyn_ros.model.kinds import FRICTION_TERMS, ROTOR_KINDS, kind_of
from robodyn_ros.spatial import Array

STANDARD = len(PARAMETER_NAMES)


@dataclass(frozen=True)
class Column:
    """One parameter of the linear model.

    Attributes
    ----------
    name : str
        ``PARAMETER:JOINT``.
    standard : int
        Index in ``model.standard_parameters``; -1 for friction terms beyond those.
    term : str
        The parameter, for example ``Ixx``, ``Fvl``, ``Fs``.
    body : int
        Index in ``model.body_joints``; -1 for the payload.
    """

    name: str
    standard: int
    term: str
    body: int


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
        self.whole, self.model, self.joints = dynamics, dynamics.model, dynamics.joints
        self.loops = dynamics if dynamics.cuts else None
        self.dynamics = dynamics.tree
        self.kind = kind = kind_of(kind)
        self.friction = friction or FrictionShape(speed=np.ones(self.model.n))
        self.payload = payload
        self.bodies = self._bodies(joints)
        self._sides = 2 if kind == 'links_and_drives' else 1
        self.rows = self._sides * self.joints.n
        self.friction_sources = self._sources()
        self.columns = tuple(self._make_columns())
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

    def _sources(self) -> list[tuple[int, str, Array]]:
        """Return (body, side, row) of each source of friction; its speed is ``row @ qd``.

        The side is ``l`` (link) or ``m`` (motor).
        """
        if self.kind == 'rigid' or self.friction.model == 'none':
            return []
        found = []
        for body in self.bodies:
            own, motor = self.model.row[body], self.model.motor_row[body]
            coupled = not np.array_equal(own, motor)
            if self.kind != 'drives':
                found.append((body, 'l', own))
            if self.kind in ('links_and_drives', 'drives') or (self.kind == 'lumped' and coupled):
                found.append((body, 'm', motor))
        return found

    def _make_columns(self) -> Iterable[Column]:
        joints = self.model.body_joints
        rotors = self.kind in ROTOR_KINDS
        standard = [] if self.kind == 'drives' else list(RIGID)
        for body in self.bodies:  # bodies and rotors come first, as one block of the kernel
            for parameter in [*standard, ROTOR] if rotors else standard:
                term = PARAMETER_NAMES[parameter]
                yield Column(f'{term}:{joints[body]}', STANDARD * body + parameter, term, body)
        for body, side, _ in self.friction_sources:
            yield from self._friction_columns(body, side)
        if self.payload is not None:
            for parameter in RIGID:
                term = PARAMETER_NAMES[parameter]
                yield Column(f'{term}:payload', -1, term, -1)

    def _friction_columns(self, body: int, side: str) -> Iterable[Column]:
        joint = self.model.body_joints[body]
        places = LINK_FRICTION if side == 'l' else MOTOR_FRICTION
        # in a coupled joint, a second offset could not be distinguished from the first
        coupled = side == 'm' and self.kind == 'lumped'
        for parameter in places[:2] if coupled else places:
            term = PARAMETER_NAMES[parameter]
            yield Column(f'{term}:{joint}', STANDARD * body + parameter, term, body)
        for term in FRICTION_TERMS[self.friction.model]:
            yield Column(f'{term}{side}:{joint}', -1, term + side, body)

    def _payload_columns(self, link: str) -> list[int]:
        frame = self.model.link_frame(link)
        if frame.body < 0:
            raise UnknownNameError('link that moves', link, [
                name for name, f in self.model.link_frames.items() if f.body >= 0])
        return [STANDARD * frame.body + parameter for parameter in RIGID]

    def regressor(self, q: Array, qd: Array, qdd: Array, *, loaded: bool = False,
                  directions: Array | None = None, motion: FullMotion | None = None) -> Array:
        """Return W at a batch of states, shape (N, rows, p).

        Parameters
        ----------
        q, qd, qdd : ndarray, shape (N, n)
            rad or m, and their derivatives.
        loaded : bool
            Whether the payload is attached.
        directions : ndarray, shape (N, sources), optional
            Direction of each source of friction, see `directions`. By default they follow from
            the velocities alone.
        motion : FullMotion, optional
            The motion of all joints, if it is known already; for robots with closed loops.
        """
        if self.loops is None:
            return self._of_tree(q, qd, qdd, loaded, directions)
        if motion is None:
            motion = self.loops.motion(q, qd)
        return self._reduce(motion, self._of_tree(motion.q, motion.qd, motion.qdd(qdd), loaded,
                                                  directions))

    def directions(self, q: Array, qd: Array, rate: float) -> Array:
        """Return the direction of each source of friction along a motion, shape (N, sources).

        Parameters
        ----------
        q, qd : ndarray, shape (N, n)
            Consecutive samples; rad or m, and per s.
        rate : float
            Samples a second, Hz.
        """
        if self.loops is not None:
            qd = self.loops.velocities(q, qd)
        return np.array([self.friction.directions(qd @ row, row, rate)
                         for _, _, row in self.friction_sources]).reshape(-1, len(qd)).T

    def _reduce(self, motion: FullMotion, columns: Array) -> Array:
        """Project the columns of all joints' torques onto the independent joints."""
        sides = columns.reshape(len(columns), self._sides, self.model.n, -1)
        return np.einsum('tji,tsjp->tsip', motion.matrix, sides).reshape(
            len(columns), self.rows, -1)

    def _of_tree(self, q: Array, qd: Array, qdd: Array, loaded: bool,
                 directions: Array | None = None) -> Array:
        n, size = self.model.n, len(q)
        rows = self._sides * n
        result = np.zeros((size, rows, len(self.columns)))
        links, drives = slice(0, n), slice(rows - n, rows)
        if self._compiled:
            block = self.dynamics.regressor(q, qd, qdd, self._compiled)
            result[:, drives, :len(self._compiled)] = block
            if rows > n:  # motor torques include those of the links, joint torques no rotors
                result[:, links, :len(self._compiled)] = block
                result[:, links, self._rotors] = 0.0
        self._add_friction(result, qd, directions)
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

    def pullback(self, q: Array, qd: Array, qdd: Array, g: Array) -> tuple[Array, Array, Array]:
        """Return the gradient of ``sum(g * regressor)`` by q, qd and qdd, shape (N, n) each.

        Parameters
        ----------
        q, qd, qdd : ndarray, shape (N, n)
            The motion, without a payload.
        g : ndarray, shape (N, rows, p)
            The weights, which are held constant.

        Raises
        ------
        IdentificationError
            If the robot has closed loops.
        """
        if self.loops is not None:
            raise IdentificationError('gradients are not available for robots with closed loops')
        n, block = self.model.n, len(self._compiled)
        drives = slice(self.rows - n, self.rows)
        gradients = np.zeros((3, *q.shape))
        if block:
            inner = g[:, drives, :block].copy()
            if self.rows > n:
                links = g[:, :n, :block].copy()
                links[:, :, self._rotors] = 0.0
                inner += links
            pulled = self.dynamics.regressor_pullback(q, qd, qdd, inner, self._compiled)
            gradients += np.moveaxis(pulled, 1, 0)
        place = {column.name: k for k, column in enumerate(self.columns)}
        for body, side, row in self.friction_sources:
            speed = qd @ row
            total = np.zeros(len(q))
            for column in self._friction_columns(body, side):
                position = place[column.name]
                felt = g[:, drives, position] @ row
                if self.rows > n:
                    felt = (felt if side == 'm' else felt + g[:, :n, position] @ row)
                total += felt * self.friction.slope(column.term, speed, row)
            gradients[1] += total[:, None] * row
        return gradients[0], gradients[1], gradients[2]

    def friction_columns(self) -> list[int]:
        """Return the columns of friction."""
        return [k for k, column in enumerate(self.columns) if is_friction(column.term)]

    def friction_regressor(self, q: Array, qd: Array, directions: Array) -> Array:
        """Return the friction columns, with zeros in all others; shape (N, rows, p)."""
        motion = None if self.loops is None else self.loops.motion(q, qd)
        result = np.zeros((len(qd), self._sides * self.model.n, len(self.columns)))
        self._add_friction(result, qd if motion is None else motion.qd, directions)
        return result if motion is None else self._reduce(motion, result)

    def friction_terms(self, qd: Array, directions: Array,
                       ) -> list[tuple[int, list[tuple[int, float]], Array]]:
        """Return (column, its rows with their factors, values) of each term of friction.

        Parameters
        ----------
        qd : ndarray, shape (N, n)
            Velocities of all joints of the tree, rad/s or m/s.
        directions : ndarray, shape (N, sources)
            See `directions`.
        """
        place = {column.name: k for k, column in enumerate(self.columns)}
        n, found = self.model.n, []
        for source, (body, side, row) in enumerate(self.friction_sources):
            speed = qd @ row
            felt = []
            for joint in np.flatnonzero(row):
                if side == 'l':
                    felt.append((int(joint), float(row[joint])))
                if self._sides > 1 or (side == 'm'):
                    felt.append((int(joint) + (self._sides - 1) * n, float(row[joint])))
            for column in self._friction_columns(body, side):
                found.append((place[column.name], felt, self.friction.values(
                    column.term, speed, row, directions[:, source])))
        return found

    def _add_friction(self, result: Array, qd: Array, directions: Array | None) -> None:
        if directions is None:
            directions = np.array([self.friction.direction(qd @ row, row)
                                   for _, _, row in self.friction_sources]
                                  ).reshape(-1, len(qd)).T
        for column, felt, values in self.friction_terms(qd, directions):
            for row, factor in felt:
                result[:, row, column] = factor * values

    def nominal(self) -> Array:
        """Return the nominal parameters, shape (p,); those that a model does not have are zero."""
        chi = self.model.standard_parameters
        values = np.array([chi[c.standard] if c.standard >= 0 else 0.0 for c in self.columns])
        if self.kind == 'lumped':  # one torque contains the friction of both sides
            for k, column in enumerate(self.columns):
                side = column.standard % STANDARD if column.standard >= 0 else -1
                if side in LINK_FRICTION and not self.coupled(column.body):
                    values[k] += chi[column.standard + 4]
        return values

    def coupled(self, body: int) -> bool:
        """Return whether a gearbox couples the motor of a body with other joints."""
        return not np.array_equal(self.model.row[body], self.model.motor_row[body])

    def rest(self) -> RobotDynamics | None:
        """Return the nominal dynamics of what is not estimated; None if everything is."""
        if len(self.bodies) == len(self.model.body_joints):
            return None
        chi = self.model.standard_parameters.copy().reshape(-1, STANDARD)
        chi[list(self.bodies)] = 0.0
        return self.whole.with_model(self.model.with_standard_parameters(chi.ravel()))
