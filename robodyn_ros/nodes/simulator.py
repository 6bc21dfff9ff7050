"""The node `simulator`: a robot in the embedded engine, in real time or in lock-step."""

from __future__ import annotations

from typing import Any

from robodyn_ros.errors import RobodynError
from robodyn_ros.nodes.model_keeper import Running
from robodyn_ros.nodes.parameters import declare
from robodyn_ros.nodes.robot_world import RobotWorld, declare_world_parameters
from robodyn_ros.nodes.running import run
from robodyn_ros.simulation import Simulation


class Simulator(RobotWorld):
    """A robot in the embedded engine.

    In real time the physics keeps up with the wall clock, ``rate`` cycles a second; in lock-step
    it is at most ``real_time_factor`` times as fast as the wall clock.
    """

    packages = ('mujoco',)

    def __init__(self, **options: Any):
        self._viewer: Any = None
        super().__init__('simulator', **options)

    def declare_parameters_of_node(self) -> None:
        """Declare the node's own parameters."""
        declare_world_parameters(self)
        declare(self, 'viewer', False, "whether the engine's window shows the robot",
                read_only=True)
        declare(self, 'motor_encoders', False, 'whether joint_states are those of the motors '
                'at the output of their gears instead of the links; for elastic joints',
                read_only=True)

    def set_up(self) -> None:
        """Create the interfaces; in real time, start the cycle."""
        super().set_up()
        if not self.value('lock_step'):
            self.pace(self._tick, self.value('rate'))

    def on_model(self, running: Running) -> None:
        """Put the robot into the engine."""
        try:
            self.put_drives(running)
            simulation = Simulation(
                running.text, truth=self.value('truth_file') or None,
                motors=self.value('motors_file') or None,
                loops=self.value('loops_file') or None, timestep=self.value('timestep'),
                gravity=running.model.gravity,
                sensors=self.sensors(motors=self.value('motor_encoders')))
            simulation.reset(self.start_position(simulation))
        except (RobodynError, ValueError) as error:
            self.report('error', f'the robot is not simulated: {error}')
            return
        self.put_robot(simulation)
        if self.value('viewer'):
            self._show(simulation)

    def _tick(self) -> None:
        if not self.active or self.held or self.robot is None:
            return
        with self.lock:
            self.cycle(self.torque_now(self.robot))

    def _show(self, simulation: Simulation) -> None:
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        try:
            self._viewer = simulation.show()
        except Exception as error:  # without a display or OpenGL, the simulation continues
            self.report('error', f'there is no window: {error}')
            return
        self.keep(self.create_timer, self.destroy_timer, 1 / 30, self._draw)

    def _draw(self) -> None:
        if self._viewer is not None and self._viewer.is_running():
            with self.lock:
                self._viewer.sync()


def main(arguments: list[str] | None = None) -> int:
    """Run the node."""
    return run(Simulator, arguments)


if __name__ == '__main__':
    raise SystemExit(main())
