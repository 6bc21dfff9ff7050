"""Excitation of robots with closed loops: the search beside random motions for the same CPU time.

Both have the same limits and the same number of harmonics. They are judged by the condition number
of the regressor of the base parameters, whose columns are not scaled. A random motion that exceeds
a limit is made smaller until it exceeds none; the best motion counts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.excitation import Limits
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.excitation.plan import SIGN_WIDTH, Progress, smooth_constraints
from robodyn_ros.excitation.starts import Starts
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.spatial import Array

ROOT = Path(__file__).parent.parent
# description, loops, number of harmonics, and budget: s of CPU time, so that other programs on the
# machine do not matter; the Delta has many parameters for each motor
ROBOTS = {'five_bar': ('urdf/five_bar.urdf.xacro', 'config/robots/five_bar_loops.yaml', 4, 10.0),
          'palletiser': ('urdf/palletiser.urdf.xacro', 'config/robots/palletiser_loops.yaml', 4,
                         10.0),
          'delta': ('examples/delta/delta.urdf.xacro', 'examples/delta/loops.yaml', 13, 30.0)}
PERIOD, SHRINKINGS = 5.0, 20
LONGEST = 3600.0  # s


class Judge:
    """Limits and condition number of motions of one robot."""

    def __init__(self, robot: rd.ClosedLoopDynamics, harmonics: int):
        self.constraints = smooth_constraints(robot, Limits())
        self.linear = LinearModel(robot, friction=FrictionShape(
            'coulomb', SIGN_WIDTH, self.constraints.speeds()))
        self.base = rd.base_parameters(self.linear)
        self.basis = Basis(PERIOD, harmonics, 40 * harmonics)

    def condition(self, x: Array) -> float:
        """Return the condition number of a motion."""
        motion = self.basis.motion(x)
        w = self.linear.regressor(motion.q, motion.qd, motion.qdd)[:, :, self.base.kept]
        return float(np.linalg.cond(w.reshape(-1, self.base.count)))

    def within(self, x: Array) -> bool:
        """Return whether a motion keeps all limits."""
        return max(self.constraints.worst(self.basis.motion(x)).values()) <= 0.0


def random_search(judge: Judge, budget: float) -> tuple[float, int]:
    """Return the best condition number of random motions, and how many were within the limits."""
    span = np.ptp(judge.constraints.position, axis=1) / 2
    starts = Starts(judge.constraints, judge.basis, np.where(np.isfinite(span), span, np.pi))
    rng, end = np.random.default_rng(0), time.process_time() + budget
    best, count = np.inf, 0
    while time.process_time() < end:
        x = starts.draw(rng)
        for _ in range(SHRINKINGS):
            if judge.within(x):
                best, count = min(best, judge.condition(x)), count + 1
                break
            x[1:] *= 0.8
    return best, count


def excitation_loops(names: list[str]) -> None:
    """Print a row for each robot."""
    print('| robot | joints | base parameters | condition, CPU time | time to that of random '
          'motions | random motions |\n|---|---|---|---|---|---|')
    for name in names or ROBOTS:
        urdf, loops, harmonics, budget = ROBOTS[name]
        robot = rd.ClosedLoopDynamics(rd.load_model(ROOT / urdf), ROOT / loops)
        judge = Judge(robot, harmonics)
        best, count = random_search(judge, budget)
        reached: list[tuple[float, float]] = []

        def watch(state: Progress, reached: list[tuple[float, float]] = reached,
                  budget: float = budget) -> None:
            at = time.process_time()
            reached.append((at, state.condition))
            if at - reached[0][0] > budget:
                raise KeyboardInterrupt  # returns the best motion so far

        found = rd.optimise_excitation(
            robot, period=PERIOD, harmonics=harmonics, scaling='none', budget=LONGEST,
            progress=watch)
        motion = found.at(np.arange(500) * found.period / 500)
        w = judge.linear.regressor(*motion[:3])[:, :, judge.base.kept]
        ours = float(np.linalg.cond(w.reshape(-1, judge.base.count)))
        first = next((f'{at - reached[0][0]:.1f} s' for at, value in reached
                      if value <= best), 'not reached')
        print(f'| {name} | {robot.n} of {robot.model.n} | {judge.base.count} '
              f'| {ours:.1f}, {budget:g} s | {first} | {best:.1f}, best of {count} |', flush=True)


if __name__ == '__main__':
    excitation_loops(sys.argv[1:])
