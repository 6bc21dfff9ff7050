"""All terms of the equations of motion of an arm, at one state and at a million."""

import sys
import time

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import PANDA, example_robots

np.set_printoptions(precision=4, suppress=True, linewidth=110)
model = rd.load_model(sys.argv[1] if len(sys.argv) > 1 else example_robots() / PANDA)
dynamics = rd.Dynamics(model)
print(model)

q, qd, qdd = np.random.default_rng(0).uniform(-0.5, 0.5, (3, model.n))
print('gravity          ', dynamics.gravity(q))
print('Coriolis         ', dynamics.coriolis(q, qd))
print('friction         ', dynamics.friction(qd))
print('inverse dynamics ', dynamics.inverse_dynamics(q, qd, qdd))
print('mass matrix\n', dynamics.mass_matrix(q))
print('energy           ', dynamics.energy(q, qd))
print('wrench on the mounting', dynamics.base_wrench(q, qd, qdd))

batch = np.random.default_rng(1).uniform(-0.5, 0.5, (3, 1_000_000, model.n))
dynamics.inverse_dynamics(*batch[:, :8])
begin = time.perf_counter()
dynamics.inverse_dynamics(*batch)
print(f'a million inverse dynamics: {time.perf_counter() - begin:.3f} s on one core')
