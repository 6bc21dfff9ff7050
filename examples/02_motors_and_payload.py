"""What rotors and a payload change: mass matrix, gravity, eigenvalue bounds."""

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import PANDA, example_robots

np.set_printoptions(precision=3, suppress=True, linewidth=110)
path = example_robots() / PANDA
motors = {'joints': {f'panda_joint{i}': {'gear_ratio': 100, 'rotor_inertia': 2e-5,
                                         'spin_axis': 'joint'} for i in range(1, 8)}}
bare, driven = rd.load_model(path), rd.load_model(path, motors=motors)
loaded = driven.with_payload('panda_hand', 3.0, com=(0, 0, 0.1), inertia=0.01 * np.eye(3))
for finding in driven.findings[:3]:
    print(finding)

q = np.zeros(bare.n)
for name, model in (('bare', bare), ('with motors', driven), ('with 3 kg in the hand', loaded)):
    dynamics = rd.Dynamics(model)
    bounds = rd.inertia_bounds(model, samples=1000)
    print(f'\n{name}\n  diag M   {np.diag(dynamics.mass_matrix(q))}\n'
          f'  gravity  {dynamics.gravity(q)}\n'
          f'  {bounds.lambda_min:.4f} <= eigenvalues of M <= {bounds.lambda_max:.3f}')
