"""Payloads on an identified Panda and UR10 in simulation: errors, and coverage of the intervals.

The true robots differ from their descriptions in masses, rotors and friction, and their sensors
are noisy, see `contacts.Plant`. The robots are identified from one simulated log. Then 20 bodies
of 1 to 5 kg are estimated from 20 poses, by the small motion of the action `identify_payload`:
with the identified model alone, with a log of the same motion without the body, and from a few
still poses.

    python benchmarks/payload.py [RUNS] [JOINTS that move] [SECONDS] [AMPLITUDE in rad]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from contacts import FIT, ROBOTS, Motion, Plant

import robodyn_ros as rd
from robodyn_ros.excitation import payload_motion, payload_poses
from robodyn_ros.spatial import inertia_components

SPEED = 0.5  # of the velocity limits


class Arm(Plant):
    """A plant that plays small motions."""

    def play(self, motion):
        """Return the log of a small motion, of which `record` needs q, qd and qdd alone."""
        played = type('Played', (), {'at': lambda self, t: motion.at(t)[:3]})()
        return self.record(played, motion.duration)


def body(rng):
    """Return a random body of 1 to 5 kg on the flange, a box of 4 to 20 cm."""
    mass, box = rng.uniform(1, 5), rng.uniform(0.04, 0.2, 3)
    com = np.append(rng.uniform(-0.05, 0.05, 2), rng.uniform(0.03, 0.15))
    return rd.Inertial(mass, com, mass / 12 * np.diag((box**2).sum() - box**2))


def somewhere(plant, rng, joints, plan, **bounds):
    """Return a small motion around a random pose in which it is possible."""
    dynamics = rd.Dynamics(plant.model)
    while True:
        here = Motion(plant.model, rng).at(rng.uniform(0, 10))[0]
        try:
            return plan(dynamics, here, joints, **bounds)
        except rd.ValueRangeError:
            continue


def report(what, bodies, found):
    """Print errors and coverage of some estimates."""
    true = np.array([[b.mass, *b.com, *inertia_components(b.inertia)] for b in bodies])
    values = np.array([f.values for f in found])
    wrong = values - true
    inside = np.array([(f.interval[:, 0] <= t) & (t <= f.interval[:, 1])
                       for f, t in zip(found, true, strict=True)])
    determined = np.array([f.determined for f in found])
    mass, com = 100 * wrong[:, 0] / true[:, 0], 1e3 * np.linalg.norm(wrong[:, 1:4], axis=1)
    known = determined[:, 4:]
    inertia = (f'; inertia {np.sqrt((wrong[:, 4:][known]**2).mean()):.4f} kg m^2, '
               f'{known.mean():.0%} determined' if known.any() else '; inertia not determined')
    print(f'  {what}: mass {np.sqrt((mass**2).mean()):.2f} % (most {np.abs(mass).max():.2f} %), '
          f'centre {np.sqrt((com**2).mean()):.2f} mm (most {com.max():.2f} mm){inertia}; '
          f'95 % intervals hold {inside[:, :4].mean():.0%} of masses and centres, '
          f'{inside[:, 4:].mean():.0%} of inertias')


def main():
    runs, joints, seconds, amplitude = (float(word) for word in (
        sys.argv[1:] + ['20', '4', '15', '0.4'][len(sys.argv) - 1:]))
    for name in ROBOTS:
        rng = np.random.default_rng(7)
        plant = Arm(name, rng)
        result = rd.identify(plant.model, plant.record(Motion(plant.model, rng), FIT),
                             friction='coulomb')
        uncertainty = rd.ModelUncertainty.of(result)
        moving = plant.model.joint_names[-int(joints):]
        print(f'{name}: {", ".join(moving)} move by {amplitude:g} rad for {seconds:g} s')
        bodies, alone, beside, still, empty = [], [], [], [], []
        for _ in range(int(runs)):
            motion = somewhere(plant, rng, moving, payload_motion, amplitude=amplitude,
                               speed=SPEED, duration=seconds)
            poses = somewhere(plant, rng, moving, payload_poses, amplitude=amplitude,
                              speed=SPEED, duration=20.0)
            bare = plant.play(motion)
            bodies.append(body(rng))
            plant.sim.attach(plant.flange, bodies[-1].mass, bodies[-1].com, bodies[-1].inertia)
            logs = plant.play(motion), plant.play(poses)
            plant.sim.attach(plant.flange, 0.0)
            for some, log, without in ((alone, logs[0], ()), (beside, logs[0], bare),
                                       (still, logs[1], ()), (empty, bare, ())):
                some.append(rd.identify_payload(result.model, log, plant.flange, without=without,
                                                uncertainty=uncertainty))
        report('with the model alone', bodies, alone)
        report('with a log without the body', bodies, beside)
        report('still poses', bodies, still)
        print(f'  empty hand: {sum(f.state == "empty" for f in empty)} of {len(empty)} reported '
              f'as empty, mass within {max(abs(f.mass) for f in empty) * 1e3:.0f} g')


if __name__ == '__main__':
    main()
