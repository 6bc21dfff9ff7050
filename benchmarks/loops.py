"""Cost of a closed loop: its independent joints compared with the cut-open tree, in one process.

The states are a smooth motion, as a controller or a log has it. Contenders take turns; the best
round counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import robodyn_ros as rd

ROOT = Path(__file__).parent.parent
ROUNDS, CALLS, BATCH = 15, 400, 4096


def _best(contenders: list[Callable[[], object]]) -> list[float]:
    best = [np.inf] * len(contenders)
    for _ in range(ROUNDS):
        for k, one in enumerate(contenders):
            begin = time.perf_counter()
            one()
            best[k] = min(best[k], time.perf_counter() - begin)
    return best


def _calls(function: Callable[..., object], arrays: tuple[np.ndarray, ...]) -> None:
    for row in zip(*(array[:CALLS] for array in arrays), strict=True):
        function(*row)


def loops() -> list[str]:
    """Return the table's lines."""
    lines = ['| robot | term | tree, us | loops, us | ratio | batch: tree, us | loops, us | '
             'ratio |',
             '|---|---|---|---|---|---|---|---|']
    for name, urdf, cuts in (
            *((name, f'urdf/{name}.urdf.xacro', f'config/robots/{name}_loops.yaml')
              for name in ('five_bar', 'palletiser')),
            ('delta', 'examples/delta/delta.urdf.xacro', 'examples/delta/loops.yaml')):
        closed = rd.ClosedLoopDynamics(rd.load_model(ROOT / urdf), ROOT / cuts)
        middle = closed.positions([closed.loops.start.get(j, 0.0) for j in closed.joint_names])
        start = middle[[closed.model.joint_names.index(j) for j in closed.joint_names]]
        t = np.arange(BATCH)[:, None] * 1e-3
        phase = np.arange(closed.n)
        q = start + 0.2 * np.sin(2 * t + phase)
        qd, qdd = 0.4 * np.cos(2 * t + phase), -0.8 * np.sin(2 * t + phase)
        motion = closed.motion(q, qd)
        full = motion.q, motion.qd, motion.qdd(qdd)
        for term in ('inverse_dynamics', 'forward_dynamics'):
            tree, loop = getattr(closed.tree, term), getattr(closed, term)
            single = _best([partial(_calls, tree, full), partial(_calls, loop, (q, qd, qdd))])
            batch = _best([partial(tree, *full), partial(loop, q, qd, qdd)])
            a, b = (1e6 * x / CALLS for x in single)
            c, d = (1e6 * x / BATCH for x in batch)
            lines.append(f'| {name} | {term} | {a:.2f} | {b:.1f} | {b / a:.0f} | {c:.3f} | '
                         f'{d:.2f} | {d / c:.0f} |')
    return lines


if __name__ == '__main__':
    print('\n'.join(loops()))
