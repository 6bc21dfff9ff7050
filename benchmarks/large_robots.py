"""Chains of many joints: the first call, which compiles, and later ones, beside Pinocchio.

The first call runs without cached machine code.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pinocchio as pin

COUNTS = (100, 200)
ROUNDS = 20


def chain(count: int) -> str:
    """Return the URDF of a chain of revolute joints with skew axes."""
    body = ('<inertial><origin xyz="0.05 0.01 0.02"/><mass value="1"/><inertia ixx="0.01" '
            'ixy="0.001" ixz="0.002" iyy="0.02" iyz="0.001" izz="0.015"/></inertial>')
    parts = ['<link name="l0"/>']
    for i in range(count):
        parts.append(f'<link name="l{i + 1}">{body}</link><joint name="j{i + 1}" '
                     f'type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>'
                     '<origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><axis xyz="0 0 1"/></joint>')
    return f'<robot name="chain">{"".join(parts)}</robot>'


def _time(call: Callable[[], object], rounds: int = 1) -> float:
    best = np.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def large_robots() -> list[str]:
    """Return the table's lines."""
    os.environ['ROBODYN_CACHE_DIR'] = ''
    import robodyn_ros as rd

    lines = ['| joints | | first call, s | later calls, us | Pinocchio, us |',
             '|---|---|---|---|---|']
    for count in COUNTS:
        text = chain(count)
        q, qd, u = np.random.default_rng(0).normal(size=(3, count))
        model = pin.buildModelFromXML(text)
        data = model.createData()
        pose = np.stack([np.cos(q), np.sin(q)], axis=1).ravel()
        robot = rd.load_model(text)
        inertial = tuple(k for k in range(len(robot.parameter_names)) if k % 17 < 10)
        for name, arguments, peer in (
                ('mass_matrix', (q,), partial(pin.crba, model, data, pose)),
                ('forward_dynamics', (q, qd, u), partial(pin.aba, model, data, pose, qd, u)),
                ('inverse_dynamics', (q, qd, u), partial(pin.rnea, model, data, pose, qd, u)),
                ('regressor', (q, qd, u, inertial), partial(
                    pin.computeJointTorqueRegressor, model, data, pose, qd, u))):
            call = partial(getattr(rd.Dynamics(robot), name), *arguments)
            times = _time(call), 1e6 * _time(call, ROUNDS), 1e6 * _time(peer, ROUNDS)
            lines.append(f'| {count} | {name} | ' + ' | '.join(f'{x:.1f}' for x in times) + ' |')
    return lines


if __name__ == '__main__':
    print('\n'.join(large_robots()))
