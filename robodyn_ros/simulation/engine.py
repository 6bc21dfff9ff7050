"""`Simulation`: a robot in the embedded MuJoCo engine, driven by torques."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.dynamics import ClosedLoopDynamics, Dynamics
from robodyn_ros.dynamics.joint_terms import spring_torque
from robodyn_ros.errors import ValueRangeError
from robodyn_ros.model import LinkFrame, Model, build_model, payload_inertial
from robodyn_ros.numerics import real_array
from robodyn_ros.packages import package
from robodyn_ros.simulation.mujoco_model import MOTOR, compile_robot
from robodyn_ros.simulation.sensors import MeasuredStates, Measurement, Sensors
from robodyn_ros.simulation.truth import perturbed_urdf
from robodyn_ros.simulation.world import SimulationError, checked_joint_values
from robodyn_ros.spatial import (
    Array,
    Inertial,
    inertial_of,
    inertial_parameters,
    transform_inertial,
)

MAX_SPEED = 1e4  # rad/s or m/s; a faster motion has diverged


class Simulation:
    """A robot on a fixed base under gravity, driven by joint torques.

    Parameters
    ----------
    urdf : str or bytes
        URDF text of the nominal robot.
    truth : mapping, str or Path, optional
        Differences of the true robot from its description, see `perturbed_urdf`.
    motors : str, Path or mapping, optional
        Motor data of the nominal robot.
    timestep : float
        Time step of the physics, s.
    gravity : array-like, shape (3,)
        Gravitational acceleration in the root frame, m/s^2.
    sensors : Sensors
        Noise, delay and other errors of the sensors.
    limit_efforts : bool
        Whether commands are clipped to the effort limits of the URDF, as a drive does.
    loops : str, Path or mapping, optional
        Definition of closed loops, see `read_loops`. Only the independent joints are driven and
        measured; the engine closes the loops by its own constraints.

    Raises
    ------
    RobodynError
        The description or an argument cannot be used, or the engine is not installed.

    Notes
    -----
    A joint with a stiffness in the motor data is elastic: its motor is a separate body with the
    inertia of the rotor and the friction of the joint, and a spring connects motor and link.
    Torques act on the motors, and the links are measured. The engine uses its own URDF parser and
    its own equations of motion with rigid bodies, armature, damping, Coulomb friction and joint
    limits. Contacts are not simulated.
    """

    def __init__(self, urdf: str | bytes, *, truth: Mapping[str, Any] | str | Path | None = None,
                 motors: str | Path | Mapping[str, Any] | None = None,
                 timestep: float = 0.001, gravity: ArrayLike = (0.0, 0.0, -9.80665),
                 sensors: Sensors | None = None, limit_efforts: bool = True,
                 loops: str | Path | Mapping[str, Any] | None = None):
        mujoco = package('mujoco')
        if not 1e-5 <= timestep <= 0.1:
            raise ValueRangeError('timestep', timestep, '1e-5 to 0.1 s')
        self._mujoco = mujoco
        text = perturbed_urdf(urdf, truth, motors=motors)
        known = build_model(parse_urdf(urdf, motors=motors))
        self._elastic = {joint: (float(k), float(d)) for joint, k, d in zip(
            known.body_joints, known.stiffness, known.stiffness_damping, strict=True)
            if np.isfinite(k)}
        self._springs = known if known.spring.any() or known.ripple.any() else None
        self.true_model: Model = build_model(parse_urdf(text), gravity=gravity)
        self.true_model.require_fixed_base('the engine (rd.simulate supports it)')
        self.loops = None if loops is None else ClosedLoopDynamics(self.true_model, loops)
        if self.loops is not None and self._elastic:
            raise SimulationError(f'{next(iter(self._elastic))} is elastic, and the robot has '
                                  'closed loops; valid: one of the two')
        self.joints = self.true_model.joints if self.loops is None else self.loops.joints
        self.joint_names = self.joints.joint_names
        self.sensors = sensors or Sensors()
        self._measured = MeasuredStates(self.sensors, self.n)
        self._limits = self.joints.effort_limit if limit_efforts else np.full(self.n, np.inf)
        self._engine = compile_robot(
            text, self.true_model, timestep=timestep, gravity=np.asarray(gravity, np.float64),
            elastic=self._elastic, loops=self.loops)
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
        self._pushes: dict[str, tuple[int, LinkFrame, Array]] = {}  # by link
        self.reset()

    @property
    def n(self) -> int:
        """Number of joints that are driven and measured."""
        return len(self.joint_names)

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return float(self._state.time)

    @property
    def timestep(self) -> float:
        """Time step of the physics, s."""
        return float(self._engine.opt.timestep)

    @property
    def position(self) -> Array:
        """True joint positions, rad or m."""
        return np.array(self._state.qpos[self._q])

    @property
    def velocity(self) -> Array:
        """True joint velocities, rad/s or m/s."""
        return np.array(self._state.qvel[self._v])

    @property
    def motor_position(self) -> Array:
        """True motor positions at the output of the gears, rad or m; `position` if rigid."""
        return np.array(self._state.qpos[self._motor_q])

    @property
    def motor_velocity(self) -> Array:
        """True motor velocities at the output of the gears, rad/s or m/s."""
        return np.array(self._state.qvel[self._motor_v])

    @property
    def effort(self) -> Array:
        """Applied torques, after clipping to the limits, N m or N."""
        return self._effort.copy()

    def reset(self, position: ArrayLike | None = None, velocity: ArrayLike | None = None) -> None:
        """Restart at time 0 in a state; default: at rest at zero or the nearest limit."""
        start = np.clip(0.0, self.joints.lower, self.joints.upper) if position is None else \
            checked_joint_values('position', position, self.joint_names)
        speed = np.zeros(self.n) if velocity is None else checked_joint_values(
            'velocity', velocity, self.joint_names)
        self._mujoco.mj_resetData(self._engine, self._state)
        self._state.qpos[self._motor_q], self._state.qvel[self._motor_v] = start, speed
        if self._elastic:  # springs deflect under the weight of the links
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
        self._pushes = {}
        self._state.xfrc_applied[:] = 0.0
        self._measured.restart()
        self._mujoco.mj_forward(self._engine, self._state)

    def step(self, torque: ArrayLike, steps: int = 1) -> None:
        """Advance the physics under constant torques.

        Parameters
        ----------
        torque : array-like, shape (n,)
            N m or N.
        steps : int
            Number of time steps.

        Raises
        ------
        ShapeError, ValueRangeError
            The torques have the wrong shape or are not finite; the simulation does not advance.
        SimulationError
            The motion has diverged.
        """
        command = checked_joint_values('torque', torque, self.joint_names)
        self._effort = np.clip(command, -self._limits, self._limits)
        self._state.qfrc_applied[self._motor_v] = self._effort
        for _ in range(steps):
            if self._pushes:
                self._apply_pushes()
            self._apply_springs()
            self._mujoco.mj_step(self._engine, self._state)
        speed = np.abs(self._state.qvel).max(initial=0.0)
        if not np.isfinite(speed) or speed > MAX_SPEED or self._state.warning[
                self._mujoco.mjtWarning.mjWARN_BADQACC].number:
            raise SimulationError(f'the motion has diverged at {self.time:.4g} s: check torques, '
                                  'time step and inertias')

    def hold(self, steps: int = 1) -> None:
        """Advance time while brakes hold the robot, without motion or torque."""
        self._effort = np.zeros(self.n)
        self._state.qvel[:] = 0.0
        self._state.time += steps * self.timestep

    def measure(self) -> Measurement | None:
        """Take a measurement; return the newest one that has arrived by now, or None."""
        motors = self.sensors.motors
        return self._measured.measure(
            self.time, self.motor_position if motors else self.position,
            self.motor_velocity if motors else self.velocity, self._effort)

    def attach(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
               inertia: ArrayLike | None = None) -> None:
        """Fix a payload to a link while the robot moves; it replaces the previous payload.

        Parameters
        ----------
        link : str
            The link that carries it.
        mass : float
            Mass, kg; 0 removes the payload.
        com : array-like, shape (3,)
            Centre of mass in the link's frame, m.
        inertia : array-like, shape (3, 3), optional
            Inertia tensor about the centre of mass in the link's axes, kg m^2; default: a point
            mass.
        """
        frame = self.true_model.link_frame(link)
        payload = payload_inertial(mass, com, inertia)
        if frame.body < 0:
            return
        body = self._body_of(frame)
        if self._loaded not in (None, body):
            for array, bare in zip(self._bodies(), self._bare, strict=True):
                array[self._loaded] = bare[self._loaded]
        self._loaded = body
        parameters = self._bare_parameters(body)
        if mass:
            parameters += transform_inertial(inertial_parameters(payload), frame.rotation,
                                             frame.translation)
        self._set_inertial(body, inertial_of(parameters))
        self._mujoco.mj_setConst(self._engine, self._mujoco.MjData(self._engine))
        self._mujoco.mj_forward(self._engine, self._state)

    def _bare_parameters(self, body: int) -> Array:
        """Return the inertial parameters of one of the engine's bodies without the payload."""
        mass, com, quaternion, moments = (array[body] for array in self._bare)
        flat = np.zeros(9)
        self._mujoco.mju_quat2Mat(flat, quaternion)
        axes = flat.reshape(3, 3)
        return inertial_parameters(Inertial(float(mass), com, axes * moments @ axes.T))

    def _set_inertial(self, body: int, inertial: Inertial) -> None:
        """Give one of the engine's bodies another mass, centre of mass and inertia."""
        moments, axes = np.linalg.eigh(inertial.inertia)
        axes[:, 0] *= np.sign(np.linalg.det(axes))  # a rotation, not a reflection
        quaternion = np.zeros(4)
        self._mujoco.mju_mat2Quat(quaternion, axes.ravel())
        masses, centres, quaternions, all_moments = self._bodies()
        masses[body], centres[body] = inertial.mass, inertial.com
        quaternions[body], all_moments[body] = quaternion, moments

    def push(self, link: str, wrench: ArrayLike) -> None:
        """Exert a wrench on a link until it is set to zero, or until `reset`.

        Parameters
        ----------
        link : str
            The link.
        wrench : array-like, shape (6,)
            Force, N, and moment about the origin of the link, N m, in the root's axes.

        Raises
        ------
        UnknownNameError, ShapeError
            There is no such link, or the wrench is not six finite numbers.
        """
        frame = self.true_model.link_frame(link)
        values = real_array('wrench', wrench, (6,))
        if not np.isfinite(values).all():
            raise ValueRangeError('wrench', values.tolist(), 'finite numbers')
        if frame.body < 0:
            return
        self._pushes[link] = self._body_of(frame), frame, values
        if not values.any():
            del self._pushes[link]
            self._state.xfrc_applied[:] = 0.0

    def _apply_springs(self) -> None:
        if self._springs is not None:
            self._state.qfrc_applied[self._motor_v] = 0.0
            self._state.qfrc_applied[self._all_v] = -spring_torque(
                self._springs, self._state.qpos[self._all_q])
            self._state.qfrc_applied[self._motor_v] += self._effort

    def _apply_pushes(self) -> None:
        """Convert all wrenches to the centres of mass of the bodies on which they act."""
        state = self._state
        state.xfrc_applied[:] = 0.0
        for body, frame, wrench in self._pushes.values():
            origin = state.xpos[body] + state.xmat[body].reshape(3, 3) @ frame.translation
            state.xfrc_applied[body, :3] += wrench[:3]
            state.xfrc_applied[body, 3:] += wrench[3:] + np.cross(
                origin - state.xipos[body], wrench[:3])

    def show(self) -> Any:
        """Open the engine's viewer on a display; its ``sync()`` draws, ``close()`` ends it."""
        import mujoco.viewer

        return mujoco.viewer.launch_passive(self._engine, self._state, show_left_ui=False,
                                            show_right_ui=False)

    def _body_of(self, frame: LinkFrame) -> int:
        """Return the engine's body that carries a link which moves."""
        joint = self._id(self.true_model.body_joints[frame.body])
        return int(self._engine.jnt_bodyid[joint])

    def _bodies(self) -> tuple[Array, ...]:
        """Return masses, centres of mass, axes (quaternions) and moments of inertia."""
        engine = self._engine
        return engine.body_mass, engine.body_ipos, engine.body_iquat, engine.body_inertia

    def _id(self, joint: str) -> int:
        return int(self._mujoco.mj_name2id(self._engine, self._mujoco.mjtObj.mjOBJ_JOINT, joint))

    def _find_mimics(self) -> list[tuple[int, int, float, float]]:
        """Return (position, position that it follows, factor, offset) of each mimic joint."""
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
