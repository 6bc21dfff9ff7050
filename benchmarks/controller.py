"""The controller of robodyn_controllers at 1 kHz, beside others under the same controller manager.

The others are one that computes nothing (empty_controller), forward_command_controller without a
command, and, where it is installed, joint_trajectory_controller with effort interfaces. They run
one after the other on a KUKA LWR 4+ that MuJoCo simulates (MujocoSystem). Needs ros2_control
(docs/howto/dynamics_controller.md). Prints what the controller manager measures: the time of an
update, and how regular its cycles are. The first argument is the time of each run, s; the others
are names of controllers: empty, forward_command, joint_trajectory, and the modes of ours.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'test'))

from ros2_control_world import (  # noqa: E402
    ControllerManager,
    build,
    description,
    export_and_build,
    has,
    why_no_ros2_control,
)
from ros_world import World, trajectory  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402

START = np.array([0.3, 0.5, -0.4, -1.2, 0.2, 0.7, 0.0])
GAINS = {'library': 'arm_dynamics', 'kp': [400.0], 'kd': [40.0], 'damping': [1.0]}
MODES = ('gravity_compensation', 'feedforward_pd', 'computed_torque')
MOVING = ('joint_trajectory', *MODES[1:])
NUMBERS = re.compile(r'Avg: ([-\d.e+]+) \[([-\d.e+]+) - ([-\d.e+]+)\] (\S+), StdDev: ([-\d.e+]+)')


def controllers(names: tuple[str, ...]) -> dict[str, tuple[str, dict[str, object]]]:
    """Return the type and the parameters of each controller."""
    joints = {'joints': list(names)}
    found: dict[str, tuple[str, dict[str, object]]] = {
        'empty': ('empty_controller/EmptyController', joints),
        'forward_command': ('forward_command_controller/ForwardCommandController',
                            joints | {'interface_name': 'effort'})}
    if has('joint_trajectory_controller'):
        found['joint_trajectory'] = (
            'joint_trajectory_controller/JointTrajectoryController',
            joints | {'command_interfaces': ['effort'],
                      'state_interfaces': ['position', 'velocity'],
                      'gains': {name: {'p': 400.0, 'd': 40.0, 'i': 0.0} for name in names}})
    return found | {mode: ('robodyn_controllers/DynamicsController', GAINS | {'mode': mode})
                    for mode in MODES}


def measure(world: World, urdf: str, names: tuple[str, ...], name: str, prefix: Path,
            seconds: float) -> None:
    """Run one controller, in motion if it can follow a trajectory, and print its statistics."""
    manager = ControllerManager(world, urdf, controllers(names), prefix)
    try:
        manager.start(name)
        if name in MOVING:
            still = np.zeros(len(names))
            points = [(2.0 * k, START + (0.4 if k % 2 else 0.0), still, still)
                      for k in range(1, int(seconds / 2) + 1)]
            world.publish(JointTrajectory, f'/{name}/joint_trajectory',
                          trajectory(names, points))
        world.spin(seconds)
        for status, values in world.diagnostics.items():
            for key, value in values.items():
                found = NUMBERS.search(str(value))
                if found and 'controller_manager' in status:
                    mean, least, most, unit, deviation = found.groups()
                    print(f'{name:22} {key:45} mean {float(mean):9.2f} {unit}, deviation '
                          f'{float(deviation):8.2f}, {float(least):.2f} to {float(most):.2f}')
                elif key.startswith('periodicity'):
                    print(f'{name:22} {key:45} {value} Hz')
        world.diagnostics.clear()
    finally:
        manager.stop()
    for line in manager.output().splitlines():
        if 'scheduling' in line:
            print(f'{name:22} {line.partition("]: ")[2]}')
    print(flush=True)


def main() -> None:
    """Build everything, then run all controllers in turn, twice."""
    why = why_no_ros2_control()
    if why:
        sys.exit(why)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    model = rd.load_model(ROOT / 'urdf/kuka_lwr4.urdf.xacro')
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        export_and_build(model, folder, folder / 'install')
        build(ROOT / 'robodyn_controllers', folder / 'controllers', folder / 'install')
        build(ROOT / 'benchmarks/empty_controller', folder / 'empty', folder / 'install')
        for _ in range(2):
            for name in sys.argv[2:] or controllers(model.joint_names):
                world = World()
                measure(world, description(model, START), model.joint_names, name,
                        folder / 'install', seconds)
                world.close()


if __name__ == '__main__':
    main()
