"""`Simulation`: a robot in MuJoCo, in lock-step: torques in, measured joint states out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.building import build_model
from robodyn_ros.description import Array
from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics
from robodyn_ros.errors import RobodynError, ShapeError, ValueRangeError
from robodyn_ros.model import Model
from robodyn_ros.rigid_body import is_inertia
from robodyn_ros.simulation.truth import perturbed_urdf
from robodyn_ros.urdf import parse_urdf

MOTOR = 'motor of '  # before the name of an elastic joint
MAX_SPEED = 1e4  # rad/s or m/s: beyond, the simulation has diverged


class SimulationError(RobodynError):
    """The simulation cannot go on."""


@dataclass(frozen=True)
class Sensors:
    """What stands between the true state and the measured one.

    Attributes
    ----------
    position_noise, velocity_noise, effort_noise : float or sequence of float
        Standard deviation, rad or m, and per s; N m or N.
    position_step : float or sequence of float
        Resolution of the encoders, rad or m; velocities are not quantised.
    delay : float
        s, until a measurement arrives.
    dropped : float
        Probability that a measurement is lost.
    motors : bool
        Positions and velocities are those of the motors (behind their gears), as most arms have
        them; of rigid joints there is no difference.
    seed : int
        Of all that is random.
    """

    position_noise: Any = 0.0
    velocity_noise: Any = 0.0
    effort_noise: Any = 0.0
    position_step: Any = 0.0
    delay: float = 0.0
    dropped: float = 0.0
    motors: bool = False
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Measurement:
    """A measured state; shape (n,) each, joints as in `Simulation.joint_names`."""

    time: float
    position: Array
    velocity: Array
    effort: Array


class Simulation:
    """A robot on a fixed base under gravity, driven by joint torques.

    Parameters
    ----------
    urdf : str or bytes
        URDF text of the nominal robot.
    truth : mapping, str or Path, optional
        Where the true robot differs, see `perturbed_urdf`.
    motors : str, Path or mapping, optional
        Motor data of the nominal robot.
    timestep : float
        s, of the physics.
    gravity : array-like, shape (3,)
        m/s^2 in the root frame.
    sensors : Sensors
        What measurements suffer.
    limit_efforts : bool
        Clip commands to the URDF's effort limits, as a drive does.
    loops : str, Path or mapping, optional
        What closes the tree to loops: torques act on the independent joints alone, and they alone
        are measured. The engine closes them with constraints of its own.

    Notes
    -----
    Joints with a stiffness in the motor data are elastic: a motor on its own, with the rotor's
    inertia and the joint's friction, and a spring to the link. Torques act on the motors, measured
    are the links. The engine reads the URDF with its own parser and has its own equations of
    motion: rigid bodies, armature, damping, Coulomb friction, joint limits. There is no contact.
    """

    def __init__(self, urdf: str | bytes, *, truth: Mapping[str, Any] | str | Path | None = None,
                 motors: str | Path | Mapping[str, Any] | None = None,
                 timestep: float = 0.001, gravity: ArrayLike = (0.0, 0.0, -9.80665),
                 sensors: Sensors | None = None, limit_efforts: bool = True,
                 loops: str | Path | Mapping[str, Any] | None = None):
        import mujoco

        if not 1e-5 <= timestep <= 0.1:
            raise ValueRangeError('timestep', timestep, '1e-5 to 0.1 s')
        self._mujoco = mujoco
        text = perturbed_urdf(urdf, truth, motors=motors)
        nominal = build_model(parse_urdf(urdf, motors=motors))
        self._elastic = {joint: (float(k), float(d)) for joint, k, d in zip(
            nominal.body_joints, nominal.stiffness, nominal.stiffness_damping, strict=True)
            if np.isfinite(k)}
        self.true_model: Model = build_model(parse_urdf(text), gravity=gravity)
        self.loops = None if loops is None else ClosedLoopDynamics(self.true_model, loops)
        if self.loops is not None and self._elastic:
            raise SimulationError(f'{next(iter(self._elastic))} is elastic, and the robot has '
                                  'closed loops; valid: one of the two')
        self.joints = self.true_model.joints if self.loops is None else self.loops.joints
        self.joint_names = self.joints.joint_names
        self.sensors = sensors or Sensors()
        if self.sensors.delay < 0 or not 0 <= self.sensors.dropped < 1:
            raise ValueRangeError('delay, dropped', (self.sensors.delay, self.sensors.dropped),
                                  'a delay >= 0 s, a probability below 1')
        self._limits = self.joints.effort_limit if limit_efforts else np.full(
            self.n, np.inf)
        self._engine = self._compile(text, timestep, np.asarray(gravity, np.float64))
        self._state = mujoco.MjData(self._engine)
        ids = [self._id(name) for name in self.joint_names]
        every = [self._id(name) for name in self.true_model.joint_names]
        self._all_q, self._all_v = self._engine.jnt_qposadr[every], self._engine.jnt_dofadr[every]
        self._q = self._engine.jnt_qposadr[ids]
        self._v = self._engine.jnt_dofadr[ids]
        motors_ids = [self._id(MOTOR + name) if name in self._elastic else place
                      for name, place in zip(self.joint_names, ids, strict=True)]
        self._motor_q = self._engine.jnt_qposadr[motors_ids]
        self._motor_v = self._engine.jnt_dofadr[motors_ids]
        self._mimics = self._find_mimics()
        self._bare = tuple(array.copy() for array in self._bodies())
        self._loaded: int | None = None  # the body with the payload
        self.reset()

    @property
    def n(self) -> int:
        """Joints that move on their own."""
        return len(self.joint_names)

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return float(self._state.time)

    @property
    def timestep(self) -> float:
        """Of the physics, s."""
        return float(self._engine.opt.timestep)

    @property
    def position(self) -> Array:
        """True joint positions, rad or m."""
        return np.array(self._state.qpos[self._q])

    @property
    def velocity(self) -> Array:
        """True joint velocities."""
        return np.array(self._state.qvel[self._v])

    @property
    def motor_position(self) -> Array:
        """True motor positions behind their gears; of rigid joints the joints' own."""
        return np.array(self._state.qpos[self._motor_q])

    @property
    def motor_velocity(self) -> Array:
        """True motor velocities behind their gears."""
        return np.array(self._state.qvel[self._motor_v])

    @property
    def effort(self) -> Array:
        """Torques that act, after the limits, N m or N."""
        return self._effort.copy()

    def reset(self, position: ArrayLike | None = None, velocity: ArrayLike | None = None) -> None:
        """Begin again at time 0, at a state; default: zero, within the joint range."""
        start = np.clip(0.0, self.joints.lower, self.joints.upper) if position is None else \
            self._array('position', position)
        speed = np.zeros(self.n) if velocity is None else self._array('velocity', velocity)
        self._mujoco.mj_resetData(self._engine, self._state)
        self._state.qpos[self._motor_q], self._state.qvel[self._motor_v] = start, speed
        if self._elastic:  # at rest the springs carry the links
            weight = Dynamics(self.true_model).gravity(start)
            lead = [weight[k] / self._elastic[name][0] if name in self._elastic else 0.0
                    for k, name in enumerate(self.joint_names)]
            self._state.qpos[self._motor_q] += lead
        if self.loops is not None:
            motion = self.loops.motion(start, speed)
            start, speed = motion.q, motion.qd
        self._state.qpos[self._all_q], self._state.qvel[self._all_v] = start, speed
        for place, of, factor, offset in self._mimics:
            self._state.qpos[place] = factor * self._state.qpos[of] + offset
        self._effort = np.zeros(self.n)
        self._random = np.random.default_rng(self.sensors.seed)
        self._late: deque[Measurement] = deque()
        self._mujoco.mj_forward(self._engine, self._state)

    def step(self, torque: ArrayLike, steps: int = 1) -> None:
        """Advance the physics under constant torques.

        Parameters
        ----------
        torque : array-like, shape (n,)
            N m or N; what is not finite is refused.
        steps : int
            How many time steps.

        Raises
        ------
        ShapeError, ValueRangeError
            Torques of another shape, or not finite: nothing moves.
        SimulationError
            The motion has diverged.
        """
        command = self._array('torque', torque)
        self._effort = np.clip(command, -self._limits, self._limits)
        self._state.qfrc_applied[self._motor_v] = self._effort
        for _ in range(steps):
            self._mujoco.mj_step(self._engine, self._state)
        speed = np.abs(self._state.qvel).max(initial=0.0)
        if not np.isfinite(speed) or speed > MAX_SPEED or self._state.warning[
                self._mujoco.mjtWarning.mjWARN_BADQACC].number:
            raise SimulationError(f'the motion has diverged at {self.time:.4g} s: check torques, '
                                  'time step and inertias')

    def rest(self, steps: int = 1) -> None:
        """Let time pass with the brakes on: nothing moves, no torque acts."""
        self._effort = np.zeros(self.n)
        self._state.qvel[:] = 0.0
        self._state.time += steps * self.timestep

    def measure(self) -> Measurement | None:
        """Take a measurement now; return what arrives now, None where nothing does."""
        sensors, random = self.sensors, self._random
        where, speed = (self.motor_position, self.motor_velocity) if sensors.motors else (
            self.position, self.velocity)
        position = where + random.normal(size=self.n) * sensors.position_noise
        resolution = np.broadcast_to(np.asarray(sensors.position_step, np.float64), (self.n,))
        rough = resolution > 0
        position[rough] = np.round(position[rough] / resolution[rough]) * resolution[rough]
        velocity = speed + random.normal(size=self.n) * sensors.velocity_noise
        effort = self._effort + random.normal(size=self.n) * sensors.effort_noise
        if random.random() >= sensors.dropped:
            self._late.append(Measurement(self.time, position, velocity, effort))
        arrived = None
        while self._late and self._late[0].time <= self.time - sensors.delay + 1e-12:
            arrived = self._late.popleft()
        return arrived

    def attach(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
               inertia: ArrayLike | None = None) -> None:
        """Fix a body to a link while running; it replaces the one before.

        Parameters
        ----------
        link : str
            That carries it.
        mass : float
            kg; 0 takes it off.
        com : array-like, shape (3,)
            m, in the link's frame.
        inertia : array-like, shape (3, 3), optional
            About its centre of mass in the link's axes, kg m^2; default: a point mass.
        """
        frame = self.true_model.link_frame(link)
        if not (np.isfinite(mass) and mass >= 0):
            raise ValueRangeError('mass', mass, 'a finite mass >= 0 kg')
        own = np.zeros((3, 3)) if inertia is None or not mass else np.asarray(inertia, np.float64)
        if own.shape != (3, 3) or not (is_inertia(own) or not own.any()):
            raise ValueRangeError('inertia', own.tolist(), 'one that a body can have, or zero')
        if not np.isfinite(np.asarray(com, np.float64)).all() or np.shape(com) != (3,):
            raise ValueRangeError('com', com, 'three finite numbers, m')
        if frame.body < 0:
            return
        mujoco, engine = self._mujoco, self._engine
        joint = self.true_model.body_joints[frame.body]
        body = engine.jnt_bodyid[mujoco.mj_name2id(engine, mujoco.mjtObj.mjOBJ_JOINT, joint)]
        if self._loaded not in (None, body):
            for array, bare in zip(self._bodies(), self._bare, strict=True):
                array[self._loaded] = bare[self._loaded]
        self._loaded = body
        mass0, com0, quat0, moments0 = (array[body] for array in self._bare)
        point = frame.rotation @ np.asarray(com, np.float64) + frame.translation
        flat = np.zeros(9)
        mujoco.mju_quat2Mat(flat, quat0)
        axes = flat.reshape(3, 3)
        total = mass0 + mass
        centre = (mass0 * com0 + mass * point) / total
        tensor = axes * moments0 @ axes.T + frame.rotation @ own @ frame.rotation.T
        for m, p in ((mass0, com0), (mass, point)):
            d = p - centre
            tensor = tensor + m * (d @ d * np.eye(3) - np.outer(d, d))
        moments, vectors = np.linalg.eigh(tensor)
        vectors[:, 0] *= np.sign(np.linalg.det(vectors))
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, vectors.ravel())
        engine.body_mass[body], engine.body_ipos[body] = total, centre
        engine.body_inertia[body], engine.body_iquat[body] = moments, quat
        mujoco.mj_setConst(engine, mujoco.MjData(engine))
        mujoco.mj_forward(engine, self._state)

    def show(self) -> Any:
        """Open the engine's viewer on a display; its ``sync()`` draws, ``close()`` ends it."""
        import mujoco.viewer

        return mujoco.viewer.launch_passive(self._engine, self._state, show_left_ui=False,
                                            show_right_ui=False)

    def _bodies(self) -> tuple[Array, ...]:
        engine = self._engine
        return engine.body_mass, engine.body_ipos, engine.body_iquat, engine.body_inertia

    def _id(self, joint: str) -> int:
        return int(self._mujoco.mj_name2id(self._engine, self._mujoco.mjtObj.mjOBJ_JOINT, joint))

    def _array(self, name: str, values: ArrayLike) -> Array:
        array = np.asarray(values, np.float64)
        if array.shape != (self.n,):
            raise ShapeError(name, f'shape {array.shape}', f'({self.n},)')
        if not np.isfinite(array).all():
            joint = self.joint_names[int(np.argmin(np.isfinite(array)))]
            raise ValueRangeError(f'{name} of {joint}', array.tolist(), 'finite numbers')
        return array

    def _compile(self, text: str, timestep: float, gravity: Array) -> Any:
        mujoco = self._mujoco
        try:
            spec = mujoco.MjSpec.from_string(text)
            spec.compiler.fusestatic = False
            spec.compiler.balanceinertia = False
            spec.option.timestep = timestep
            spec.option.gravity = gravity
            spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
            model = self.true_model
            armature = dict(zip(model.body_joints, model.armature, strict=True))
            for joint in spec.joints:
                joint.armature = float(armature.get(joint.name, 0.0))
                # dry friction that hardly creeps: the engine's usual one is soft
                joint.solref_friction = [4 * timestep, 1.0]
                joint.solimp_friction = [0.9999, 0.9999, 0.001, 0.5, 2.0]
            _add_skeleton(spec)
            for joint in list(spec.joints):
                if joint.name in self._elastic:
                    _add_motor(spec, joint, *self._elastic[joint.name])
            anchors = [] if self.loops is None else _close(spec, self.loops, timestep)
            for i, name in enumerate(model.body_joints):
                place = int(np.flatnonzero(model.row[i])[0])
                if name not in model.joint_names:
                    equality = spec.add_equality()
                    equality.type = mujoco.mjtEq.mjEQ_JOINT
                    equality.name1, equality.name2 = name, model.joint_names[place]
                    equality.data[:2] = model.offset[i], model.row[i, place]
            engine = spec.compile()
            for place, anchor in enumerate(anchors):  # or it is where the bodies are at zero
                engine.eq_data[place, 3:6] = anchor
            return engine
        except (ValueError, mujoco.FatalError) as error:
            raise SimulationError(f'the engine cannot read this robot: {error}') from None

    def _find_mimics(self) -> list[tuple[int, int, float, float]]:
        """(position, of which, factor, offset) of every joint that follows another."""
        model = self.true_model
        found = []
        for i, name in enumerate(model.body_joints):
            if name in model.joint_names:
                continue
            place = int(np.flatnonzero(model.row[i])[0])
            joint = self._id(name)
            found.append((int(self._engine.jnt_qposadr[joint]), int(self._all_q[place]),
                          float(model.row[i, place]), float(model.offset[i])))
        return found


def _close(spec: Any, loops: ClosedLoopDynamics, timestep: float) -> list[Array]:
    """Hold the points of all cuts together; return where they are on the second bodies."""
    import mujoco

    anchors = []
    for cut in loops.loops.cuts:
        for first, second in cut.points:
            equality = spec.add_equality()
            equality.type, equality.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
            equality.name1, equality.name2 = (
                link if spec.body(link) is not None else 'world' for link in cut.links)
            equality.data[:3] = first
            equality.solref = [2 * timestep, 1.0]
            equality.solimp = [0.9999, 0.9999, 0.001, 0.5, 2.0]
            anchors.append(second)
    return anchors


def _add_motor(spec: Any, joint: Any, stiffness: float, damping: float) -> None:
    """Give a joint a motor of its own, and a spring and damper between the two."""
    body = spec.worldbody.add_body(name=MOTOR + joint.name, mass=1e-6, inertia=[1e-9] * 3,
                                   gravcomp=1.0)
    body.explicitinertial = True
    motor = body.add_joint(name=MOTOR + joint.name, type=joint.type, axis=[0.0, 0.0, 1.0],
                           armature=joint.armature, damping=joint.damping,
                           frictionloss=joint.frictionloss)
    motor.solref_friction, motor.solimp_friction = joint.solref_friction, joint.solimp_friction
    joint.armature, joint.frictionloss = 0.0, 0.0
    joint.damping = np.zeros_like(joint.damping)
    spring = spec.add_tendon(name=MOTOR + joint.name, stiffness=stiffness, damping=damping,
                             springlength=[0.0, 0.0])
    spring.wrap_joint(MOTOR + joint.name, 1.0)
    spring.wrap_joint(joint.name, -1.0)


def _add_skeleton(spec: Any) -> None:
    """Draw a bar from each body to the next; it weighs nothing and touches nothing."""
    import mujoco

    for body in spec.bodies:
        if body.name == 'world' or body.parent is None:
            continue
        length = float(np.linalg.norm(body.pos))
        if length < 1e-3:
            continue
        body.parent.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=[0.0, 0.0, 0.0, *body.pos],
            size=[min(0.03, length / 6), 0.0, 0.0], mass=0.0, contype=0, conaffinity=0,
            rgba=[0.3, 0.45, 0.7, 1.0])
