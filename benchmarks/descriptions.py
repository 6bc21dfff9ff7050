"""Reading and writing descriptions beside Pinocchio and MuJoCo: `python descriptions.py`.

Mass matrices are compared with those of both peers; times are medians of a few calls. No peer
computes dynamics from SDF here, so that SDF is left out; its tests compare it with MuJoCo.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

import robodyn_ros as rd
from robodyn_ros.description.examples import example_robots

ROBOTS = {'UR10': 'ur_description/urdf/ur10_robot.urdf',
          'Solo 12': 'solo_description/robots/solo12.urdf',
          'Talos': 'talos_data/robots/talos_reduced.urdf'}
CALLS = 7


def median(call: Callable[[], object]) -> float:
    """Return the median time of a call in ms."""
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times)


def difference(value: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference relative to the largest element."""
    return float(np.abs(value - expected).max() / np.abs(expected).max())


def of_pinocchio(model: rd.Model, text: str, q: np.ndarray) -> float:
    """Return the difference of the mass matrix from Pinocchio's; these robots have no armature."""
    peer = pin.buildModelFromXML(text)
    order = [list(model.joint_names).index(name) for name in peer.names[1:]]
    place, parts = pin.neutral(peer), zip(peer.joints[1:], order, strict=True)
    for joint, k in parts:
        at = q[k] if joint.nq == 1 else [np.cos(q[k]), np.sin(q[k])]
        place[joint.idx_q:joint.idx_q + joint.nq] = at
    mass = pin.crba(peer, peer.createData(), place)
    mass = np.triu(mass) + np.triu(mass, 1).T
    return difference(rd.Dynamics(model).mass_matrix(q)[np.ix_(order, order)], mass)


def of_mujoco(path: Path, q: np.ndarray) -> float:
    """Return the difference of the mass matrix from MuJoCo's for the same file."""
    engine = mujoco.MjModel.from_xml_path(str(path))
    engine.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    engine.dof_damping[:], engine.dof_frictionloss[:] = 0.0, 0.0
    data, mass = mujoco.MjData(engine), []
    for a in (np.zeros(engine.nv), *np.eye(engine.nv)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, 0.0, a
        mujoco.mj_inverse(engine, data)
        mass.append(data.qfrc_inverse.copy())
    found = rd.Dynamics(rd.load_model(path)).mass_matrix(q)
    return difference(found, np.array(mass[1:]) - mass[0])


def main() -> None:
    """Print a row for each robot."""
    print('| robot | difference from Pinocchio | load_model | Pinocchio | difference from MuJoCo '
          '| load_model, MJCF | MuJoCo | write_urdf | write_mjcf |\n|' + '---|' * 9)
    with tempfile.TemporaryDirectory() as folder:
        for name, file in ROBOTS.items():
            path, mjcf = example_robots() / file, Path(folder) / f'{name}.xml'
            text, model = path.read_text(), rd.load_model(path)
            q = np.random.default_rng(0).uniform(-1, 1, model.n)
            rd.write_mjcf(model, mjcf)
            cells = [f'{of_pinocchio(model, text, q):.0e}',
                     f'{median(partial(rd.load_model, path)):.1f} ms',
                     f'{median(partial(pin.buildModelFromXML, text)):.1f} ms',
                     f'{of_mujoco(mjcf, q):.0e}',
                     f'{median(partial(rd.load_model, mjcf)):.1f} ms',
                     f'{median(partial(mujoco.MjModel.from_xml_path, str(mjcf))):.1f} ms',
                     f'{median(partial(rd.write_urdf, model, Path(folder) / "a.urdf")):.1f} ms',
                     f'{median(partial(rd.write_mjcf, model, Path(folder) / "a.xml")):.1f} ms']
            print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)


if __name__ == '__main__':
    main()
