"""A walking Solo 12 from a public log: `python quadruped_log.py FOLDER`.

FOLDER is a clone of https://github.com/ShahramKhorshidi/system_identification with its history
(Khorshidi and others 2024, arXiv 2409.09850); the data are no part of this repository. The first
motion is simulated, as the message of its commit says; where the other three, in one file, come
from is not stated. Each has torques of the joints and flags of the contacts at 100 Hz. The first
three quarters of each motion serve the fit, the last one the errors.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.spatial import Array

WALK = '519ca705f34adfd2bf643d0ac54436e8cd9f84ed'
OTHERS = '88426de0d6265cb035ec79b93ad08cd2834d4d32'
URDF = 'files/solo_description/solo12.urdf'
NAMES = ('q', 'dq', 'tau', 'contact')  # of the files
FEET = ('FL_FOOT', 'FR_FOOT', 'HL_FOOT', 'HR_FOOT')
STEP = 0.01  # s
# commit and samples of each motion; between those of the second file, the base jumps
MOTIONS = {'walking, simulated': (WALK, slice(0, 2000)),
           'on four feet': (OTHERS, slice(0, 2000)),
           'trotting': (OTHERS, slice(2000, 3200)),
           'all feet or none': (OTHERS, slice(3200, 4400))}


def stored(folder: Path, commit: str, path: str) -> bytes:
    """Return a file of a commit."""
    ran = subprocess.run(['git', '-C', str(folder), 'show', f'{commit}:{path}'],
                         capture_output=True, check=False)
    if ran.returncode:
        sys.exit(f'{folder} has no {path} of commit {commit[:7]}: '
                 f'{ran.stderr.decode().strip()[:200]}\nvalid: a clone of https://github.com/'
                 'ShahramKhorshidi/system_identification with its whole history')
    return ran.stdout


def recorded(folder: Path, robot: rd.Model, commit: str, samples: slice) -> rd.FloatingBaseLog:
    """Return a motion."""
    q, qd, tau, contact = (
        np.array([line.split() for line in stored(
            folder, commit, f'data/solo_robot_{name}.dat').splitlines()], float).T[samples]
        for name in NAMES)
    return rd.FloatingBaseLog(
        STEP * np.arange(len(q)), q[:, :7], q[:, 7:], robot.joint_names, twist=qd[:, :6],
        tau=tau, contacts=dict(zip(FEET, contact.T, strict=True)))


def mass(robot: rd.Model) -> float:
    """Return the total mass, kg."""
    parameters: Array = robot.standard_parameters
    return float(sum(value for name, value in zip(robot.parameter_names, parameters, strict=True)
                     if name.startswith('m:')))


def main(folder: Path) -> None:
    """Print a row for each motion and cutoff frequency."""
    with tempfile.NamedTemporaryFile(suffix='.urdf') as file:
        file.write(stored(folder, OTHERS, URDF))
        file.flush()
        robot = rd.load_model(file.name, base='floating')
    print('| motion | cutoff | description | identified | mass (description '
          f'{mass(robot):.2f} kg) |\n|---|---|---|---|---|')
    for name, (commit, samples) in MOTIONS.items():
        log = recorded(folder, robot, commit, samples)
        for cutoff in (None, 10.0):
            motion = rd.floating_base_motion(robot, log, cutoff=cutoff)
            found = rd.identify_floating_base(robot, motion.q, motion.qd, motion.qdd,
                                              torques=motion.torques, contacts=motion.contacts)
            print(f'| {name} | {motion.cutoff:.0f} Hz | {found.nominal_error:.1%} '
                  f'| {found.error:.1%} | {mass(found.model):.2f} kg |', flush=True)


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
