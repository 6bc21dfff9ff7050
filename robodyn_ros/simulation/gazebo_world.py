"""`GazeboWorld`: a robot in a world of Gazebo, driven in lock-step or while the world runs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.model import payload_inertial
from robodyn_ros.simulation.gazebo import WORLD, GazeboRobot
from robodyn_ros.simulation.gazebo_bindings import GazeboError
from robodyn_ros.simulation.gazebo_listener import PATIENCE, GazeboListener
from robodyn_ros.simulation.gazebo_writer import GazeboWriter
from robodyn_ros.simulation.sensors import MeasuredStates, Measurement, Sensors
from robodyn_ros.simulation.world import SimulationError, checked_joint_values
from robodyn_ros.spatial import Array, Inertial

QUIET = 0.03  # s without joint states, after which no old one can still arrive
UNLIMITED = 1e6  # real-time factor; Gazebo ignores a request for 0
TRIALS = 3  # attempts to spawn, because Gazebo's answer does not tell whether it succeeded
LATE = 1.5  # s, after which the confirmation of the first forces counts as lost


class GazeboWorld:
    """A robot on a fixed base in a world of Gazebo, driven by joint torques.

    The world must exist; `appear` spawns the robot in it.

    Parameters
    ----------
    robot : GazeboRobot
        The robot, with friction and damping.
    timestep : float
        Time step of the physics, s, which is set in the world.
    steps : int
        Physics steps in a control cycle: Gazebo publishes a joint state for each cycle.
    world : str
        Name of the world in Gazebo.
    name : str
        Name of the robot in Gazebo; if empty, the name in its description.
    sensors : Sensors
        Noise, delay and other errors of the sensors.
    limit_efforts : bool
        Whether torques are clipped to the effort limits of the URDF, as a drive does.
    on_state : callable, optional
        Called on a thread of Gazebo Transport for the first joint state of each cycle.

    Raises
    ------
    GazeboError
        Gazebo's Python bindings are not installed.
    """

    def __init__(self, robot: GazeboRobot, *, timestep: float = 0.001, steps: int = 1,
                 world: str = WORLD, name: str = '', sensors: Sensors | None = None,
                 limit_efforts: bool = True, on_state: Callable[[], None] | None = None):
        self.robot, self.true_model = robot, robot.model
        self.joints = robot.model.joints
        self.joint_names = self.joints.joint_names
        self.sensors = sensors or Sensors()
        self.running = False  # whether the world runs on its own
        self.world, self.name = world, name or robot.model.name
        self._timestep, self._step_ns = timestep, int(timestep * 1e9)  # Gazebo truncates it
        self._cycle = steps
        self._limits = self.joints.effort_limit if limit_efforts else np.full(self.n, np.inf)
        self._measured = MeasuredStates(self.sensors, self.n)
        self._start = np.clip(np.zeros(self.n), self.joints.lower, self.joints.upper)
        self._effort = np.zeros(self.n)
        self._payload: tuple[str, Inertial] | None = None
        self._listener = GazeboListener(world, self.name, self.joint_names, on_state,
                                        steps * self._step_ns)
        self._writer = GazeboWriter(world, self.name, self.joint_names)

    @property
    def n(self) -> int:
        """Number of joints that are driven and measured."""
        return len(self.joint_names)

    @property
    def time(self) -> float:
        """Gazebo's simulated time, s."""
        return self._listener.stamp * 1e-9

    @property
    def timestep(self) -> float:
        """Time step of the physics, s."""
        return self._timestep

    @property
    def position(self) -> Array:
        """True joint positions, rad or m."""
        return self._listener.position + self._start

    @property
    def velocity(self) -> Array:
        """True joint velocities."""
        return self._listener.velocity

    @property
    def effort(self) -> Array:
        """Applied torques, after clipping to the limits, N m or N; Gazebo cannot measure them."""
        return self._effort.copy()

    @property
    def version(self) -> str:
        """Names of the modules of Gazebo's Python bindings."""
        return self._listener.version

    @property
    def silence(self) -> float:
        """Time since the last joint state, s of wall time; a paused Gazebo sends them too."""
        return self._listener.silence

    def serves(self) -> bool:
        """Return whether the world exists."""
        return bool(self._writer.ask('serves'))

    def check_connection(self) -> None:
        """Check that the process that writes to Gazebo reacts.

        Raises
        ------
        GazeboError
            The process has ended or is suspended.
        """
        self._writer.check()

    def reconnect(self) -> None:
        """Start a new process that writes to Gazebo; `appear` must be called next.

        Raises
        ------
        GazeboError
            The connection was closed with `close`.
        """
        if self._listener.interrupted:
            raise GazeboError('the connection to Gazebo is closed')
        self._writer.close()
        self._writer = GazeboWriter(self.world, self.name, self.joint_names)

    def appear(self, position: ArrayLike, *, real_time_factor: float = 0.0) -> None:
        """Spawn the robot in the world, at rest, with the world paused.

        Parameters
        ----------
        position : array-like, shape (n,)
            Joint positions, rad or m.
        real_time_factor : float
            Largest ratio of simulated time to wall time; 0: as fast as possible.

        Raises
        ------
        GazeboError
            Gazebo does not answer, or the robot cannot be spawned.
        """
        self.running = False
        self._writer.ask('control', pause=True)
        self._writer.ask('physics', timestep=self._timestep,
                         real_time_factor=real_time_factor or UNLIMITED)
        self._replace(position)

    def reset(self, position: ArrayLike | None = None) -> None:
        """Restart at time 0, at rest; default: at zero or the nearest limit."""
        if position is None:
            position = np.clip(np.zeros(self.n), self.joints.lower, self.joints.upper)
        self._replace(position, rewind=True)
        self._measured.restart()

    def hold(self, steps: int = 1) -> None:
        """Advance time while the robot stays in its pose; it is out of the world meanwhile."""
        self._replace(self.position, steps=steps)

    def step(self, torque: ArrayLike, steps: int = 1) -> None:
        """Advance the physics under constant torques, and wait for its completion.

        Parameters
        ----------
        torque : array-like, shape (n,)
            N m or N.
        steps : int
            Number of time steps.

        Raises
        ------
        ShapeError, ValueRangeError
            The torques have the wrong shape or are not finite; the world does not advance.
        GazeboError
            Gazebo does not answer.
        SimulationError
            The motion has diverged.
        """
        self._effort = self._clipped(torque)
        target = self._listener.stamp + steps * self._step_ns
        self._send_and_confirm()
        self._writer.ask('control', pause=True, steps=steps)
        self._listener.wait(lambda: self._listener.stamp >= target, f'{steps} physics steps')
        self.running = False
        self._check_motion()

    def apply(self, torque: ArrayLike) -> None:
        """Apply torques from now on while the world runs.

        Raises
        ------
        ShapeError, ValueRangeError
            The torques have the wrong shape or are not finite.
        GazeboError
            The process that writes to Gazebo has ended.
        """
        self._effort = self._clipped(torque)
        self._writer.send(self._effort.tolist())

    def run(self, running: bool) -> None:
        """Let the world run on its own, or pause it."""
        self._writer.ask('control', pause=not running)
        self.running = running

    def measure(self) -> Measurement | None:
        """Take a measurement; return the newest one that has arrived by now, or None."""
        self._check_motion()
        return self._measured.measure(self.time, self.position, self.velocity, self._effort)

    def attach(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
               inertia: ArrayLike | None = None) -> None:
        """Fix a payload to a link; it replaces the previous payload.

        Gazebo cannot change the inertia of a link, so the robot is spawned again in its pose, at
        rest.

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
        self.true_model.link_frame(link)
        payload = payload_inertial(mass, com, inertia)
        self._payload = (link, payload) if mass else None
        if self._listener.count:
            self._replace(self.position)

    def interrupt(self) -> None:
        """Send zeros, and end all waits for Gazebo on other threads with a `GazeboError`.

        Only `close` may be called afterwards.
        """
        self._listener.interrupt()
        self._writer.close()

    def close(self) -> None:
        """Send zeros and stop listening; the robot stays in the world."""
        self._listener.close()
        self._writer.close()

    # Gazebo ---------------------------------------------------------------------------------

    def _replace(self, position: ArrayLike, *, rewind: bool = False, steps: int = 0) -> None:
        """Spawn the robot again, at rest, optionally after rewinding or advancing the time."""
        start = checked_joint_values('position', position, self.joint_names)
        text = self.robot.spawn_text(start, self.name, payload=self._payload,
                                     update_rate=1e9 / (self._cycle * self._step_ns))
        ask, running = self._writer.ask, self.running
        ask('control', pause=True)
        self._writer.send([0.0] * self.n)
        if ask('exists'):
            ask('remove')
            self._listener.until(lambda: not ask('exists'), 'the robot to be removed')
            self._listener.until(lambda: self.silence > QUIET and not ask('connected'),
                                 'the robot to leave')
        if rewind:
            self._listener.change_time(lambda: ask('control', pause=True, rewind=True),
                                       lambda now: 0)
        elif 0 < self._listener.clock() < self._cycle * self._step_ns:
            steps = steps or self._cycle  # joint states with a rate begin after one period
        if steps:
            self._listener.change_time(lambda: ask('control', pause=True, steps=steps),
                                       lambda now: now + steps * self._step_ns)
        self._effort, self._start = np.zeros(self.n), start
        self._listener.forget()
        self._spawn(text)
        if running:
            self.run(True)

    def _spawn(self, text: str) -> None:
        listener = self._listener
        for trial in range(1, TRIALS + 1):
            try:
                self._writer.ask('create', text=text)
                listener.wait(lambda: listener.count > 0, 'the joint states of the robot')
                break
            except GazeboError as error:  # the world may have been reset meanwhile
                if listener.interrupted:
                    raise
                if trial == TRIALS:
                    raise GazeboError(f'{error}; if Gazebo has refused the robot, its own output '
                                      'says why') from None
        if listener.missing:
            raise GazeboError(f'Gazebo has left out the joints {", ".join(listener.missing)}; '
                              'valid: links with a mass after every moving joint')
        listener.until(lambda: self._writer.ask('connected'), 'the robot to take forces')
        for trial in range(1, TRIALS + 1):  # the way back may not be connected yet
            try:
                self._send_and_confirm(LATE)
                break
            except GazeboError:
                if trial == TRIALS or listener.interrupted:
                    raise
        if trial > 1:
            time.sleep(LATE)  # so that no late confirmation is taken for that of other forces

    def _send_and_confirm(self, patience: float = PATIENCE) -> None:
        """Send the forces, and wait until Gazebo has confirmed all of them."""
        taken = self._listener.taken
        self._writer.send(self._effort.tolist(), confirm=True)
        self._listener.wait(lambda: self._listener.taken > taken,
                            'the confirmation of the forces', patience)

    def _clipped(self, torque: ArrayLike) -> Array:
        command = checked_joint_values('torque', torque, self.joint_names)
        return np.clip(command, -self._limits, self._limits)

    def _check_motion(self) -> None:
        if not np.isfinite(self.velocity).all():
            raise SimulationError(f'the motion has diverged at {self.time:.4g} s: check torques, '
                                  'time step and inertias')
