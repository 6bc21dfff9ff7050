"""The node `gazebo_bridge`: a robot in Gazebo on the same topics as `simulator`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.robot_world import RobotWorld, declare_world_parameters
from robodyn_ros.nodes.running import run
from robodyn_ros.simulation import SimulationError
from robodyn_ros.simulation.gazebo import WORLD, GazeboRobot
from robodyn_ros.simulation.gazebo_bindings import GazeboError, load_bindings
from robodyn_ros.simulation.gazebo_world import GazeboWorld
from robodyn_ros.simulation.watchdog import BRAKES_OPEN

CHECK_PERIOD = 0.5  # s of the wall clock between two checks whether Gazebo is there
# s of the wall clock without joint states after which Gazebo counts as lost, without and with
# lock_step. Gazebo sends them in pauses as well; in lock-step nothing moves while it is slow.
LOST = {False: 1.0, True: 10.0}


class GazeboBridge(RobotWorld):
    """A robot in a world of Gazebo, which runs already or starts later.

    The robot is spawned from its description, which needs no tags for Gazebo. In real time the
    world runs on its own, and commands act as soon as they come; in lock-step the world is paused,
    and each command advances it by the physics steps of one cycle. Without commands, when this
    node ends and even when it is killed, the torque is zero. When Gazebo ends and comes back, or
    is reset from its window, the robot is spawned again.
    """

    def __init__(self, **options: Any):
        self._gazebo: GazeboWorld | None = None  # the robot, even before it is in its world
        self._broken = False  # whether the connection to Gazebo must be made anew
        self._applied = np.zeros(0)
        self._restarted = 0.0  # s of time.monotonic
        super().__init__('gazebo_bridge', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare_world_parameters(self)
        declare(self, 'gazebo_world', WORLD, 'name of the world in Gazebo', read_only=True)
        declare(self, 'gazebo_name', '', 'name of the robot in Gazebo; empty: the name in its '
                'description', read_only=True)
        declare(self, 'gazebo_shapes', False, 'whether Gazebo gets the visual shapes of the '
                'links, whose meshes it must find', read_only=True)

    def set_up(self) -> None:
        """Create the interfaces; begin to look for Gazebo."""
        self.report('info', f'Gazebo through {load_bindings().version}')
        super().set_up()
        self._made.append(self._close)
        self.pace(self._check_gazebo, 1 / CHECK_PERIOD)

    def waits_for_commands(self) -> bool:
        """Return whether nothing moves in the world before the first command."""
        return bool(self.value('lock_step') or self.value('brakes'))

    def on_model(self, running: Running) -> None:
        """Prepare the robot for Gazebo; it is spawned when Gazebo is there."""
        try:
            if self.value('loops_file'):
                raise SimulationError('Gazebo cannot close the loops of loops_file; valid: the '
                                      'node simulator')
            self.put_drives(running)
            robot = GazeboRobot.of(
                running.text, truth=self.value('truth_file') or None,
                motors=self.value('motors_file') or None, gravity=running.model.gravity,
                shapes=self.value('gazebo_shapes'))
            timestep = self.value('timestep')
            gazebo = GazeboWorld(
                robot, timestep=timestep, steps=self.steps_of_cycle(timestep),
                world=self.value('gazebo_world'), name=self.value('gazebo_name'),
                sensors=self.sensors(),
                on_state=None if self.value('lock_step') else self._on_state)
        except (RobodynError, ValueError) as error:
            self.report('error', f'the robot is not simulated: {error}')
            return
        for sentence in robot.left_out:
            self.report('warning', sentence)
        with self.lock:
            self._close()
            self._gazebo = gazebo

    def level(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        if self._gazebo is not None and self.robot is None:
            return DiagnosticStatus.WARN, (
                f'waiting for the world {self._gazebo.world!r} of Gazebo, in the partition of '
                'this process (GZ_PARTITION)')
        return super().level()

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin; the world runs in real time."""
        result = super().on_activate(state)
        with self.lock:
            self._let_run()
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop: the torque is zero, and the world is paused."""
        with self.lock:
            try:
                self._apply(None)
                if isinstance(self.robot, GazeboWorld):
                    self.robot.run(False)
            except GazeboError as error:
                self.on_simulation_error(error)
        return super().on_deactivate(state)

    def more_diagnostics(self) -> dict[str, Any]:
        """Return the delay of the control loop, and which Gazebo it is."""
        gazebo = self._gazebo
        return {**super().more_diagnostics(), 'gazebo': gazebo.version if gazebo else '',
                'gazebo_world': self.value('gazebo_world')}

    # real time ------------------------------------------------------------------------------

    def on_command(self) -> None:
        """Let a command act at once; the first one releases the brakes."""
        if not self.active or time.monotonic() - self._restarted < BRAKES_OPEN:
            return
        with self.lock:
            robot = self.robot
            if not isinstance(robot, GazeboWorld) or self.held:
                return
            try:
                self._apply(self.watchdog.command)
                if not robot.running:
                    self._let_run()
            except SimulationError as error:
                self.on_simulation_error(error)

    def on_pause(self, held: bool) -> None:
        """Pause the world or let it run, in real time."""
        self._let_run()

    def on_reset(self) -> None:
        """Begin again, in real time."""
        self._applied = np.zeros(0)
        self._restarted = time.monotonic()
        self.answered = self.answered and not self.value('brakes')
        self._let_run()

    def _let_run(self) -> None:
        """Run or pause the world as it should be, in real time."""
        robot = self.robot
        if self.value('lock_step') or not isinstance(robot, GazeboWorld) or not self.active:
            return
        running = not self.held and (self.answered or not self.value('brakes'))
        try:
            robot.run(running)
        except GazeboError as error:
            self.on_simulation_error(error)

    def _on_state(self) -> None:
        """Publish a state; on a thread of Gazebo Transport, which must neither wait nor raise."""
        robot = self.robot
        if not isinstance(robot, GazeboWorld) or not self.active or not robot.running:
            return
        if not self.lock.acquire(blocking=False):  # a reset, for example, is under way
            return
        try:
            torque = self.torque_now(robot)
            if torque is not None:
                self._apply(torque)
            self.publish(robot)
        except SimulationError as error:
            self.on_simulation_error(error)
        except Exception as error:
            self.on_failure('joint state', error)
        finally:
            self.lock.release()

    def _apply(self, torque: Any) -> None:
        """Send torques that differ from those that act already; None: zeros."""
        robot = self.robot
        if not isinstance(robot, GazeboWorld):
            return
        torque = np.zeros(robot.n) if torque is None else torque
        if not np.array_equal(torque, self._applied):
            robot.apply(torque)
            self._applied = torque

    # Gazebo comes and goes ------------------------------------------------------------------

    def _check_gazebo(self) -> None:
        """Spawn the robot where Gazebo is there and has none; notice when it is gone."""
        gazebo = self._gazebo
        if gazebo is None or self.ending:
            return
        try:
            if self._broken:
                with self.lock:
                    gazebo.reconnect()
                    self._broken = False
            if self.robot is None:
                if gazebo.serves():
                    with self.lock:
                        self._appear(gazebo)
                return
            with self.lock:
                gazebo.check_connection()
                patience = LOST[self.value('lock_step')]
                if gazebo.silence > patience:
                    raise GazeboError(f'Gazebo has sent nothing for {patience:g} s')
        except GazeboError as error:
            self.on_simulation_error(error)

    def _appear(self, gazebo: GazeboWorld) -> None:
        factor = 0.0 if self.value('lock_step') else 1.0  # in lock-step the node keeps the pace
        gazebo.appear(self.start_position(gazebo), real_time_factor=factor)
        self.report('info', f'{gazebo.name} is in the world {gazebo.world!r} of Gazebo')
        self.put_robot(gazebo)
        self.on_reset()

    def on_simulation_error(self, error: SimulationError) -> None:
        """Look for Gazebo again where it does not answer; else pause."""
        if not isinstance(error, GazeboError):
            return super().on_simulation_error(error)
        if self.ending:  # an interrupt ends Gazebo at the same time
            return None
        self.robot, self._broken = None, True
        self.warn('gazebo_lost', f'{error}; the robot is spawned again when Gazebo answers')
        return None

    def before_shutdown(self) -> None:
        """Send zeros."""
        gazebo = self._gazebo
        if gazebo is not None:
            gazebo.interrupt()  # the lock may wait for Gazebo
        with self.lock:
            self._close()

    def _close(self) -> None:
        """Leave Gazebo; the robot stays there, without torque."""
        self.robot = None
        if self._gazebo is not None:
            self._gazebo.close()
            self._gazebo = None


def main(arguments: list[str] | None = None) -> int:
    """Run the node."""
    return run(GazeboBridge, arguments)


if __name__ == '__main__':
    raise SystemExit(main())
