"""From a URDF to identified parameters, with a robot in the embedded simulator.

Run: python examples/03_excite_and_identify.py
"""

from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.control import Gains, feedforward_pd
from robodyn_ros.simulation import Sensors, Simulation

URDF = Path(__file__).parent.parent / 'urdf/articulated_3r.urdf.xacro'
nominal = rd.load_model(URDF)
limits = rd.Limits(torque_margin=0.3)

# the true robot differs from its URDF
truth = {'links': {'link2': {'mass': 1.2, 'com': [0.03, 0.0, 0.01]}, 'link3': {'mass': 0.8}},
         'joints': {'waist': {'armature': 0.2, 'damping': 1.0, 'friction': 1.5},
                    'shoulder': {'armature': 0.3, 'damping': 1.2, 'friction': 2.0},
                    'elbow': {'armature': 0.1, 'damping': 0.5, 'friction': 0.8}}}
sensors = Sensors(position_noise=1e-5, effort_noise=[0.3, 0.3, 0.15], position_step=2e-5)
robot = Simulation(nominal.description.urdf, truth=truth, sensors=sensors)
dynamics = rd.Dynamics(nominal)
gains = Gains.of(3, [400.0, 400.0, 150.0], [40.0, 40.0, 15.0])


def record(motion):
    """Play an excitation with the nominal model; return what was measured."""
    t, reference = motion.samples(1000)
    robot.reset(reference.q[0])
    rows = []
    for state in zip(*reference[:3], strict=True):
        robot.step(feedforward_pd(dynamics, robot.position, robot.velocity, *state, gains))
        rows.append(robot.measure())
    return rd.Log([m.time for m in rows], [m.position for m in rows], [m.effort for m in rows],
                  joint_names=nominal.joint_names, source='simulated')


excitation = rd.optimise_excitation(nominal, limits, budget=8.0)
other = rd.optimise_excitation(nominal, limits, rd.validation_plan(
    excitation, rd.Plan(budget=8.0)))
print(f'condition {excitation.facts["condition"]:.2f}, {excitation.period:.3g} s')

result = rd.identify(nominal, record(excitation))
check = rd.validate(result, record(other))
print(result.to_text())
print(check.to_text())

true = rd.Dynamics(robot.true_model)
q = np.array([0.3, 0.4, -0.6])
print('gravity, true:      ', true.gravity(q))
print('gravity, identified:', rd.Dynamics(result.model).gravity(q))
print('gravity, nominal:   ', dynamics.gravity(q))
