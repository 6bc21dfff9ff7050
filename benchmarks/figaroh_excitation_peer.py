"""figaroh's optimal trajectory for a robot; run by a separate interpreter, prints JSON.

Usage: PYTHON figaroh_excitation_peer.py robot.urdf segment_seconds waypoints iterations
"""

import json
import logging
import sys
import time
import warnings

import numpy as np


def main():
    warnings.simplefilter('ignore')
    logging.disable(logging.WARNING)
    from figaroh.optimal.base_optimal_trajectory import (
        BaseOptimalTrajectory,
        BaseTrajectoryIPOPTProblem,
    )
    from figaroh.optimal.config import COLLISION_DEFAULTS
    from figaroh.tools.robot import Robot

    urdf, seconds, waypoints, iterations = (sys.argv[1], float(sys.argv[2]), int(sys.argv[3]),
                                            int(sys.argv[4]))
    np.random.seed(0)  # noqa: NPY002 (figaroh uses the global generator)
    robot = Robot(urdf, package_dirs='.')
    history = []

    class Trajectory(BaseOptimalTrajectory):
        def __init__(self):
            self.robot, self.model = robot, robot.model
            self.active_joints = [str(name) for name in robot.model.names][1:]
            self.logger = logging.getLogger('peer')
            self.trajectory_config = {
                'n_wps': waypoints, 'freq': 50, 't_s': seconds, 'soft_lim': 0.05,
                'max_attempts': 1000, 'max_iterations': iterations, 'segment_attempts': 1,
                **COLLISION_DEFAULTS}
            self.identif_config = {
                'has_friction': True, 'has_actuator_inertia': True, 'has_joint_offset': True,
                'is_joint_torques': True, 'is_external_wrench': False, 'force_torque': None,
                'has_coupled_wrist': False, 'act_idxv': list(range(robot.model.nv)),
                'act_idxq': list(range(robot.model.nq)), 'active_joints': self.active_joints,
                **{key: [0.1] * robot.model.nv for key in ('fv', 'fs', 'Ia', 'offset', 'off')},
                'Iam6': 0.0, 'fvm6': 0.0, 'fsm6': 0.0, 'N': [1.0] * robot.model.nv}
            self.results = {'T_F': [], 'P_F': [], 'V_F': [], 'A_F': [], 'iteration_data': [],
                            'final_regressor_shape': None}

        def create_ipopt_problem(self, *arguments):
            return BaseTrajectoryIPOPTProblem(self, *arguments)

        def objective_function(self, *arguments, **options):
            value = super().objective_function(*arguments, **options)
            history.append((time.perf_counter() - start, float(value)))
            return value

    trajectory = Trajectory()
    trajectory.initialize()
    start = time.perf_counter()
    results = trajectory.solve(stack_reps=1)
    elapsed = time.perf_counter() - start
    final = None
    if results['P_F']:
        w = trajectory._stack_base_regressors(results['P_F'][-1], results['V_F'][-1],
                                              results['A_F'][-1])
        final = float(np.linalg.cond(w))
    print(json.dumps({'condition': final, 'seconds': elapsed, 'evaluations': len(history),
                      'parameters': len(trajectory.idx_b)}))


if __name__ == '__main__':
    main()
