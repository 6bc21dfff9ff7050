"""Dynamics from Python, side by side with Pinocchio and MuJoCo in one process.

Contenders take turns, many short rounds each, and the best round counts: the machine's own noise
(other tenants, clock changes) then hits all of them alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

import robodyn_ros as rd
from robodyn_ros.description.examples import PANDA, example_robots

# file, and joints that are locked; in ours, finger 2 follows finger 1 and is not locked itself
ROBOTS = {
    'Panda': (PANDA, ('panda_finger_joint1', 'panda_finger_joint2')),
    'UR10': ('ur_description/urdf/ur10_robot.urdf', ()),
    'Talos': ('talos_data/robots/talos_reduced.urdf', ()),
}
BATCH = 4096
COLD = '''
import time; start = time.perf_counter()
import sys, robodyn_ros as rd
imported = time.perf_counter() - start
model = rd.load_model(sys.argv[1], locked_joints=eval(sys.argv[2]))
dynamics = rd.Dynamics(model)
import numpy as np
zeros = np.zeros(model.n)
first = time.perf_counter()
dynamics.inverse_dynamics(zeros, zeros, zeros)
one = time.perf_counter() - first
total_one = time.perf_counter() - start
slowest = one
for name in ('gravity', 'coriolis', 'mass_matrix', 'terms', 'forward_dynamics', 'momentum',
             'energy', 'coriolis_matrix', 'wrenches', 'friction'):
    begin = time.perf_counter(); dynamics.kernel(name).single
    slowest = max(slowest, time.perf_counter() - begin)
begin = time.perf_counter(); dynamics.regressor_kernel().single
slowest = max(slowest, time.perf_counter() - begin)
print(imported, one, total_one, time.perf_counter() - first, slowest)
'''
PEAK = '''
import sys
import numpy as np, robodyn_ros as rd
model = rd.load_model(sys.argv[1], locked_joints=eval(sys.argv[2]))
states = np.zeros((3, 1_000_000, model.n))
dynamics = rd.Dynamics(model)
dynamics.inverse_dynamics(*states[:, :8])
states += 0.1
peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])
open('/proc/self/clear_refs', 'w').write('5')
before = peak()
dynamics.inverse_dynamics(*states)
print((peak() - before) / 1024, 8e6 * model.n / 2**20)
'''


def in_turns(contenders: dict[str, Callable[[], Any]], seconds: float = 1.5) -> dict[str, float]:
    """Return the best time of one call of each contender, s; they take turns in short rounds."""
    loops = {}
    for name, call in contenders.items():
        call()
        begin = time.perf_counter()
        call()
        loops[name] = max(1, int(2e-3 / max(time.perf_counter() - begin, 1e-8)))
    best = dict.fromkeys(contenders, np.inf)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in contenders.items():
            repeat = range(loops[name])
            begin = time.perf_counter()
            for _ in repeat:
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / loops[name])
    return best


class Peers:
    """One robot in all libraries, with a state and a batch of states."""

    def __init__(self, file: str, locked: tuple[str, ...]):
        path = example_robots() / file
        text = path.read_text()
        held = {name: 0.0 for name in locked if '2' not in name}
        self.model = rd.load_model(path, locked_joints=held).without_friction()
        self.dynamics = rd.Dynamics(self.model)
        full = pin.buildModelFromXML(text)
        self.pin = pin.buildReducedModel(full, [full.getJointId(j) for j in locked],
                                         pin.neutral(full))
        self.data = self.pin.createData()
        self.pool = pin.ModelPool(self.pin, 1)
        # MuJoCo reads plain URDF only; meshes are not needed for dynamics
        self.mujoco = _mujoco_model(path, locked)
        self.mujoco_data = mujoco.MjData(self.mujoco)
        n = self.model.n
        rng = np.random.default_rng(1)
        self.q, self.v, self.a = (np.ascontiguousarray(x) for x in rng.uniform(-1, 1, (3, n)))
        self.many = [np.ascontiguousarray(x) for x in rng.uniform(-1, 1, (3, BATCH, n))]
        order = [self.model.joint_names.index(name) for name in self.pin.names[1:]]
        self.columns = [np.asfortranarray(x[:, order].T) for x in self.many]
        self.out = np.asfortranarray(np.empty((n, BATCH)))
        self.order = order

    def check(self) -> None:
        """Check that all libraries compute the same, so that their times are comparable."""
        o = self.order
        expected = pin.rnea(self.pin, self.data, self.q[o], self.v[o], self.a[o])
        scaled = self.dynamics.inverse_dynamics(self.q, self.v, self.a)[o]
        gravity = self.dynamics.gravity(self.q)[o]
        # Pinocchio's gravity is 9.81, ours 9.80665
        np.testing.assert_allclose(scaled + gravity * (9.81 / 9.80665 - 1), expected, rtol=1e-9,
                                   atol=1e-9 * np.abs(expected).max())

    def mujoco_inverse(self) -> None:
        """Write a state into MuJoCo and run its inverse dynamics."""
        data = self.mujoco_data
        data.qpos[:] = self.q
        data.qvel[:] = self.v
        data.qacc[:] = self.a
        mujoco.mj_inverse(self.mujoco, data)

    def mujoco_terms(self) -> None:
        """Positions, velocities, bias and the dense mass matrix of MuJoCo."""
        data = self.mujoco_data
        data.qpos[:] = self.q
        data.qvel[:] = self.v
        mujoco.mj_forward(self.mujoco, data)


def _mujoco_model(path: Path, locked: tuple[str, ...]) -> Any:
    from lxml import etree

    root = etree.parse(str(path)).getroot()
    for element in list(root.iter('visual', 'collision', 'gazebo', 'transmission', 'mimic')):
        element.getparent().remove(element)
    for joint in root.iter('joint'):
        if joint.get('name') in locked:
            joint.set('type', 'fixed')
    compiler = etree.SubElement(etree.SubElement(root, 'mujoco'), 'compiler')
    compiler.set('balanceinertia', 'true')
    compiler.set('discardvisual', 'true')
    model = mujoco.MjModel.from_xml_string(etree.tostring(root).decode())
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(
        mujoco.mjtDisableBit.mjDSBL_LIMIT)
    return model


def speed(name: str) -> list[str]:
    """Time one robot; return the lines of its table."""
    peers = Peers(*ROBOTS[name])
    peers.check()
    d, q, v, a = peers.dynamics, peers.q, peers.v, peers.a
    p, data = peers.pin, peers.data
    # the parameters of the bodies: the first 10 of each joint's 17
    rigid = tuple(i for i in range(len(peers.model.parameter_names)) if i % 17 < 10)
    small = [x[:512] for x in peers.many]
    tau_all = d.inverse_dynamics(*peers.many)
    two = rd.Dynamics(peers.model, threads=2)
    rows = [f'{name}: {peers.model.n} joints, {d.kernel("inverse_dynamics").operations()} '
            'operations of inverse dynamics',
            f'{"":34} {"here":>12} {"Pinocchio":>12} {"ratio":>7} {"MuJoCo":>12}']

    def row(label: str, per: int, ours: Callable[[], Any], theirs: Callable[[], Any],
            mj: Callable[[], Any] | None = None) -> None:
        calls = {'ours': ours, 'theirs': theirs} | ({'mj': mj} if mj else {})
        best = in_turns(calls)
        other = f'{best["mj"] / per * 1e9:9.0f} ns' if mj else ''
        rows.append(f'{label:34} {best["ours"] / per * 1e9:9.1f} ns '
                    f'{best["theirs"] / per * 1e9:9.1f} ns '
                    f'{best["theirs"] / best["ours"]:6.1f}x {other:>12}')

    row('inverse dynamics, one call', 1, lambda: d.inverse_dynamics(q, v, a),
        lambda: pin.rnea(p, data, q, v, a), peers.mujoco_inverse)
    row('M, c and g, one call', 1, lambda: d.terms(q, v),
        lambda: pin.computeAllTerms(p, data, q, v), peers.mujoco_terms)
    row('mass matrix, one call', 1, lambda: d.mass_matrix(q), lambda: pin.crba(p, data, q))
    row('forward dynamics, one call', 1, lambda: d.forward_dynamics(q, v, a),
        lambda: pin.aba(p, data, q, v, a))
    row(f'inverse dynamics, batch of {BATCH}', BATCH, lambda: d.inverse_dynamics(*peers.many),
        lambda: pin.rneaInParallel(1, peers.pool, *peers.columns, peers.out))
    large = [np.tile(x, (32, 1)) for x in peers.many]
    wide = [np.asfortranarray(np.tile(x, (1, 32))) for x in peers.columns]
    wide_out = np.asfortranarray(np.empty((peers.model.n, 32 * BATCH)))
    pools = pin.ModelPool(p, 2)
    row(f'batch of {32 * BATCH}, two threads each', 32 * BATCH,
        lambda: two.inverse_dynamics(*large),
        lambda: pin.rneaInParallel(2, pools, *wide, wide_out))
    row('regressor (rigid), one call', 1, lambda: d.regressor(q, v, a, rigid),
        lambda: pin.computeJointTorqueRegressor(p, data, q, v, a))
    row('regressor (rigid), batch of 512', 512, lambda: d.regressor(*small, rigid),
        lambda: [pin.computeJointTorqueRegressor(p, data, x, y, z)
                 for x, y, z in zip(*small, strict=True)])
    row(f'normal equations, batch of {BATCH}', BATCH,
        lambda: d.normal_equations(*peers.many, tau_all, columns=rigid),
        lambda: _pinocchio_normal(p, data, peers.many, tau_all))
    rows.append(f'first calls of {name}: {_cold(name)}')
    return rows


def _pinocchio_normal(p: Any, data: Any, batch: Any, tau: Any) -> Any:
    rows = [pin.computeJointTorqueRegressor(p, data, x, y, z).copy()
            for x, y, z in zip(*batch, strict=True)]
    w = np.concatenate(rows)
    return w.T @ w, w.T @ tau.ravel()


def _cold(name: str) -> str:
    file, locked = ROBOTS[name]
    path = str(example_robots() / file)
    held = repr({joint: 0.0 for joint in locked if '2' not in joint})
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, 'ROBODYN_CACHE_DIR': cache}
        lines = []
        for label in ('cold', 'from cache'):
            imported, one, total, everything, slowest = map(float, subprocess.run(
                [sys.executable, '-c', COLD, path, held], env=environment, check=True,
                capture_output=True, text=True).stdout.split())
            lines.append(f'{label}: one kernel {one:.2f} s ({total:.2f} s with the import), '
                         f'all 12 {everything:.2f} s, the slowest {slowest:.2f} s')
    peak = subprocess.run([sys.executable, '-c', PEAK, path, held], check=True,
                          capture_output=True, text=True).stdout.split()
    return '; '.join(lines) + (f'; a batch of 10^6 adds {float(peak[0]):.0f} MiB of memory '
                               f'(its result has {float(peak[1]):.0f})')


if __name__ == '__main__':
    for robot in sys.argv[1:] or ROBOTS:
        print('\n'.join(speed(robot)), end='\n\n')
