"""A real Go1 that stands: `python go1_log.py FILE`.

FILE is example_py/go1_full_data_log.csv or go1_full_data_log_0.csv of the public repository
https://github.com/Lhumd/go1_datasets; the data are no part of this repository. Each row has the
orientation of the trunk, and position, velocity and torque of the twelve motors. Where all motors
stand still with loaded legs, the torques give the forces at the feet, and these the weight that
the robot has according to its motors. The other equations, six in each pose, must hold for any
forces at the feet; the last column says how much of the torques they leave unexplained.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import example_robots
from robodyn_ros.spatial import Array, quaternion_of, rotation_from_rpy

LEGS, JOINTS = ('FR', 'FL', 'RR', 'RL'), ('hip', 'thigh', 'calf')
STILL = 0.15  # rad/s, velocity of a motor that counts as standing still; the noise is below
APART = 0.05  # rad, change of orientation or joints after which a pose counts as another one
LOADED = 1.0  # N m, least torque of each calf while a leg carries weight
UNITREE = 'go1_description/urdf/go1.urdf'


def poses(file: Path) -> list[tuple[Array, Array, Array]]:
    """Return different poses at rest: roll, pitch and yaw, positions and torques of the motors."""
    found: list[tuple[Array, Array, Array]] = []
    with file.open(newline='') as text:
        for row in csv.DictReader(text):
            turn = np.array([float(row[f'imu_{axis}']) for axis in 'rpy'])
            q, qd, tau = (np.array([float(row[f'm{k}_{name}']) for k in range(12)])
                          for name in ('q', 'dq', 'tau'))
            if np.abs(qd).max() > STILL or tau[2::3].min() < LOADED:
                continue
            if all(max(np.abs(turn - one).max(), np.abs(q - other).max()) > APART
                   for one, other, _ in found):
                found.append((turn, q, tau))
    return found


def main(file: Path) -> None:
    """Print a row for each pose."""
    robot = rd.load_model(example_robots() / UNITREE, base='floating').without_friction()
    dynamics, gravity = rd.Dynamics(robot), float(np.linalg.norm(robot.gravity))
    names = [f'{leg}_{joint}_joint' for leg in LEGS for joint in JOINTS]
    order = [robot.joint_names.index(name) for name in names]
    mass = sum(value for name, value in zip(robot.parameter_names, robot.standard_parameters,
                                            strict=True) if name.startswith('m:'))
    print(f'| roll, pitch | mass (description {mass:.2f} kg) | unexplained |\n|---|---|---|')
    masses = []
    for turn, positions, torques in poses(file):
        q, tau = dynamics.home, np.zeros(robot.n)
        q[3:7] = quaternion_of(rotation_from_rpy(turn))
        q[7 + np.array(order)], tau[6 + np.array(order)] = positions, torques
        feet = np.vstack([dynamics.jacobian(q, f'{leg}_foot')[:3] for leg in LEGS]).T
        need = dynamics.gravity(q) - tau
        forces = np.linalg.solve(feet[6:], need[6:])
        masses.append(forces[2::3].sum() / gravity)
        left = need - feet @ np.linalg.lstsq(feet, need, rcond=None)[0]
        print(f'| {turn[0]:.2f}, {turn[1]:.2f} | {masses[-1]:.2f} kg '
              f'| {np.linalg.norm(left) / np.linalg.norm(need):.1%} |')
    print(f'mean of {len(masses)}: {np.mean(masses):.2f} kg, from {min(masses):.1f} to '
          f'{max(masses):.1f}')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
