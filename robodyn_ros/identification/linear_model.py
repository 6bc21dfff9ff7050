"""The model that is linear in its parameters, ``tau = W theta``, for each kind of identification.

Kolyubin 5.4-5.10. Rigid bodies and rotors come from the compiled regressor; friction is added
here, since its shape is chosen by the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robodyn_ros.description import Array
from robodyn_ros.dynamics import AnyDynamics, ClosedLoopDynamics, FullMotion
from robodyn_ros.errors import IdentificationError, UnknownNameError
from robodyn_ros.model import PARAMETER_NAMES

STANDARD = len(PARAMETER_NAMES)
RIGID, ROTOR = tuple(range(10)), 13
LINK_FRICTION, MOTOR_FRICTION = (10, 11, 12), (14, 15, 16)
# what friction adds to viscous + Coulomb + offset, for each friction model
FRICTION_TERMS: dict[str, tuple[str, ...]] = {
    'none': (), 'coulomb': (), 'asymmetric': ('Fa',), 'stribeck': ('Fs',), 'root': ('Fr',),
    'rich': ('Fa', 'Fs', 'Fr')}
KINDS = ('rigid', 'lumped', 'model1', 'model2', 'model3')
STRIBECK_SHARE = 0.1  # Stribeck velocity, of each joint's fast speed


@dataclass(frozen=True)
class FrictionShape:
    """What sign(s) and the friction beyond it look like.

    Attributes
    ----------
    model : str
        ``none``; ``coulomb``: viscous, Coulomb, offset (an asymmetric Coulomb friction is these
        two); ``asymmetric``: viscous friction differs by direction, ``Fa |s|``; ``stribeck``:
        ``Fs sign(s) exp(-|s| / v)``; ``root``: ``Fr sign(s) sqrt|s|``; ``rich``: all of them.
    width : float
        sign(s) is ``tanh(s / (width * speed))``, 0 is the sign itself.
    speed : ndarray, shape (n,)
        A fast speed of each joint, rad/s or m/s, that width and Stribeck velocity refer to.
    """

    model: str = 'coulomb'
    width: float = 0.0
    speed: Array = field(default_factory=lambda: np.ones(0))

    def __post_init__(self) -> None:
        """Refuse an unknown friction model."""
        if self.model not in FRICTION_TERMS:
            raise UnknownNameError('friction model', self.model, FRICTION_TERMS)

    def values(self, term: str, speed: Array, fast: float) -> Array:
        """Value of a friction term at joint speeds, for a unit parameter."""
        kind = term.rstrip('lm')
        if kind == 'Fv':
            return speed
        if kind == 'off':
            return np.ones_like(speed)
        if kind == 'Fa':
            return np.abs(speed)
        sign = np.tanh(speed / (self.width * fast)) if self.width else np.sign(speed)
        if kind == 'Fc':
            return sign
        if kind == 'Fs':
            return sign * np.exp(-np.abs(speed) / (STRIBECK_SHARE * fast))
        return sign * np.sqrt(np.abs(speed))  # Fr


    def slope(self, term: str, speed: Array, fast: float) -> Array:
        """Derivative of `values` by the speed; that of a jump counts as 0."""
        step: Any = 1e-6 * fast
        if not self.width and term[:2] in ('Fc', 'Fs', 'Fr'):
            step = np.minimum(step, 0.5 * np.abs(speed))
            step = np.where(step > 0, step, 1.0)
        return np.asarray((self.values(term, speed + step, fast)
                           - self.values(term, speed - step, fast)) / (2 * step)
                          * (speed != 0 if not self.width and term[:2] in ('Fc', 'Fs', 'Fr')
                             else 1.0))


@dataclass(frozen=True)
class Column:
    """One parameter of the linear model.

    Attributes
    ----------
    name : str
        ``PARAMETER:JOINT``.
    standard : int
        Its place in ``model.standard_parameters``, -1 for friction terms beyond those.
    term : str
        Parameter, for example ``Ixx``, ``Fvl``, ``Fs``.
    body : int
        Of ``model.body_joints``; -1 for the payload.
    """

    name: str
    standard: int
    term: str
    body: int


class LinearModel:
    """``tau = W(q, qd, qdd) theta`` of a robot.

    Parameters
    ----------
    dynamics : Dynamics or ClosedLoopDynamics
        Of the nominal robot; with loops, rows are of the independent joints.
    kind : str
        ``rigid``; ``lumped``: rigid, rotors and friction of both sides in one torque; ``model1``:
        links with their friction, from joint torque sensors; ``model2``: links and drives, from
        joint torques and motor torques together; ``model3``: drives alone, from the difference.
    friction : FrictionShape
        Of every joint.
    joints : sequence of str, optional
        Estimate the parameters of these alone, the rest stays nominal.
    payload : str, optional
        A link that carries an unknown payload in some of the logs: ten columns more.

    Attributes
    ----------
    columns : tuple of Column
    rows : int
        n, or 2 n for ``model2``: joint torques, then motor torques.
    model : Model
        The robot, its loops cut open.
    joints : Joints
        The n joints whose torques are explained.
    """

    def __init__(self, dynamics: AnyDynamics, kind: str = 'lumped', *,
                 friction: FrictionShape | None = None, joints: Sequence[str] | None = None,
                 payload: str | None = None):
        if kind not in KINDS:
            raise UnknownNameError('kind', kind, KINDS)
        self.whole, self.model, self.joints = dynamics, dynamics.model, dynamics.joints
        self.loops = dynamics if isinstance(dynamics, ClosedLoopDynamics) else None
        self.dynamics = dynamics.tree
        self.kind = kind
        self.friction = friction or FrictionShape(speed=np.ones(self.model.n))
        self.payload = payload
        self.bodies = self._bodies(joints)
        self._sides = 2 if kind == 'model2' else 1
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
        """(body, side, row) of everything that rubs: side l or m, speed ``row @ qd``."""
        if self.kind == 'rigid' or self.friction.model == 'none':
            return []
        found = []
        for body in self.bodies:
            own, motor = self.model.row[body], self.model.motor_row[body]
            coupled = not np.array_equal(own, motor)
            if self.kind != 'model3':
                found.append((body, 'l', own))
            if self.kind in ('model2', 'model3') or (self.kind == 'lumped' and coupled):
                found.append((body, 'm', motor))
        return found

    def _make_columns(self) -> Iterable[Column]:
        joints = self.model.body_joints
        rotors = self.kind in ('lumped', 'model2', 'model3')
        standard = [] if self.kind == 'model3' else list(RIGID)
        for body in self.bodies:  # bodies and rotors first, as one block of the kernel
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
        coupled = side == 'm' and self.kind == 'lumped'
        for parameter in places[:2] if coupled else places:  # a second offset tells nothing new
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

    def regressor(self, q: Array, qd: Array, qdd: Array, *, loaded: bool = False) -> Array:
        """W at a batch of states, shape (N, rows, p).

        Parameters
        ----------
        q, qd, qdd : ndarray, shape (N, n)
            rad or m, and their derivatives.
        loaded : bool
            The payload is on.
        """
        if self.loops is None:
            return self._of_tree(q, qd, qdd, loaded)
        motion = self.loops.motion(q, qd)
        return self._reduce(motion, self._of_tree(motion.q, motion.qd, motion.qdd(qdd), loaded))

    def _reduce(self, motion: FullMotion, columns: Array) -> Array:
        """Columns of all joints' torques as the independent joints feel them."""
        sides = columns.reshape(len(columns), self._sides, self.model.n, -1)
        return np.einsum('tji,tsjp->tsip', motion.matrix, sides).reshape(
            len(columns), self.rows, -1)

    def _of_tree(self, q: Array, qd: Array, qdd: Array, loaded: bool) -> Array:
        n, size = self.model.n, len(q)
        rows = self._sides * n
        result = np.zeros((size, rows, len(self.columns)))
        links, drives = slice(0, n), slice(rows - n, rows)
        if self._compiled:
            block = self.dynamics.regressor(q, qd, qdd, self._compiled)
            result[:, drives, :len(self._compiled)] = block
            if rows > n:  # a motor feels the links as well, a link's sensor no rotor
                result[:, links, :len(self._compiled)] = block
                result[:, links, self._rotors] = 0.0
        self._add_friction(result, qd, links, drives)
        if self._load and loaded:
            body = self.dynamics.regressor(q, qd, qdd, self._load)
            result[:, links, -10:] = body
            result[:, drives, -10:] = body
        return result

    def warm_up(self) -> None:
        """Compile now what `regressor` needs."""
        still = np.zeros((2, self.model.n))
        self._of_tree(still, still, still, loaded=self.payload is not None)
        if self.loops is not None:
            self.loops.warm_up('motion')

    def pullback(self, q: Array, qd: Array, qdd: Array, g: Array) -> tuple[Array, Array, Array]:
        """Gradient of ``sum(g * regressor)`` by q, qd and qdd, shape (N, n) each.

        Parameters
        ----------
        q, qd, qdd : ndarray, shape (N, n)
            Motion; without a payload.
        g : ndarray, shape (N, rows, p)
            Held constant.

        Raises
        ------
        IdentificationError
            The robot has closed loops.
        """
        if self.loops is not None:
            raise IdentificationError('gradients of robots with closed loops are not known')
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
            speed, fast = qd @ row, float(np.abs(row) @ self.friction.speed)
            total = np.zeros(len(q))
            for column in self._friction_columns(body, side):
                position = place[column.name]
                felt = g[:, drives, position] @ row
                if self.rows > n:
                    felt = (felt if side == 'm' else felt + g[:, :n, position] @ row)
                total += felt * self.friction.slope(column.term, speed, fast)
            gradients[1] += total[:, None] * row
        return gradients[0], gradients[1], gradients[2]

    def friction_regressor(self, q: Array, qd: Array) -> Array:
        """The friction columns alone, the others zero; shape (N, rows, p)."""
        n, rows = self.model.n, self._sides * self.model.n
        motion = None if self.loops is None else self.loops.motion(q, qd)
        result = np.zeros((len(qd), rows, len(self.columns)))
        self._add_friction(result, qd if motion is None else motion.qd, slice(0, n),
                           slice(rows - n, rows))
        return result if motion is None else self._reduce(motion, result)

    def _add_friction(self, result: Array, qd: Array, links: slice, drives: slice) -> None:
        place = {column.name: k for k, column in enumerate(self.columns)}
        for body, side, row in self.friction_sources:
            speed = qd @ row
            fast = float(np.abs(row) @ self.friction.speed)
            for column in self._friction_columns(body, side):
                value = self.friction.values(column.term, speed, fast)
                position = place[column.name]
                for joint in np.flatnonzero(row):
                    if side == 'l':
                        result[:, links.start + joint, position] = row[joint] * value
                    if side == 'm' or self._sides > 1:
                        result[:, drives.start + joint, position] = row[joint] * value

    def nominal(self) -> Array:
        """Parameters of the nominal model, shape (p,); 0 for what it does not have."""
        chi = self.model.standard_parameters
        values = np.array([chi[c.standard] if c.standard >= 0 else 0.0 for c in self.columns])
        if self.kind in ('lumped',):  # one torque feels the friction of both sides
            for k, column in enumerate(self.columns):
                side = column.standard % STANDARD if column.standard >= 0 else -1
                if side in LINK_FRICTION and not self.coupled(column.body):
                    values[k] += chi[column.standard + 4]
        return values

    def coupled(self, body: int) -> bool:
        """Whether a gearbox couples the body's motor with other joints."""
        return not np.array_equal(self.model.row[body], self.model.motor_row[body])

    def rest(self) -> AnyDynamics | None:
        """The nominal dynamics of what is not estimated; None where everything is."""
        if len(self.bodies) == len(self.model.body_joints):
            return None
        chi = self.model.standard_parameters.copy().reshape(-1, STANDARD)
        chi[list(self.bodies)] = 0.0
        return self.whole.with_model(self.model.with_standard_parameters(chi.ravel()))


def joint_speeds(dynamics: AnyDynamics, q: Array, qd: Array) -> Array:
    """Return the velocities of all joints, those that close loops included; shape (N, b)."""
    return dynamics.velocities(q, qd) if isinstance(dynamics, ClosedLoopDynamics) else qd
