"""Model health of an identified Panda and UR10: false alarms, and how soon drift is reported.

The true robots differ from their descriptions in masses, centres, rotors and friction, have noisy
sensors, and a torque ripple and Stribeck friction that the identified model lacks. They are
identified from 20 s of a simulated log at 1 kHz; the expected residual comes from the validation
with another one. Then hours of motion pass in fast-forward: ten states a second, as the means over
windows of 0.1 s, whose noise is that of the sensors after the mean. The task, a random periodic
motion, changes every ten minutes.

    python benchmarks/health.py [HOURS of unchanged free motion, default 24]
"""

import sys
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import example_robots
from robodyn_ros.experiment.results import free_motions
from robodyn_ros.observation.health import KINDS, ModelHealth, expected_residual
from robodyn_ros.observation.windows import SLOWEST, WINDOW, Window
from robodyn_ros.simulation.truth import perturbed_urdf

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
from synthetic import fourier_motion

STEP, FIT, TASK, JUDGE = 0.001, 20.0, 600.0, 10.0  # s
VELOCITY_NOISE = 5e-4  # rad/s
ROBOTS = {  # torque noise, friction (N m) and ripple (N m) of a joint with a limit of 87 N m
    'Panda': ('panda_description/urdf/panda.urdf', 'panda_link8', 0.08, 1.0, 0.1),
    'UR10': ('ur_description/urdf/ur10_robot.urdf', 'tool0', 0.5, 4.0, 0.5),
}


class Plant:
    """A true robot, as far as torques along a motion are concerned."""

    def __init__(self, name, rng):
        path, self.flange, noise, friction, ripple = ROBOTS[name]
        text = (example_robots() / path).read_text().replace('"prismatic"', '"fixed"')
        self.model, self.rng = rd.load_model(text), rng
        size = np.where(np.isfinite(self.model.effort_limit), self.model.effort_limit, 50) / 87
        links = {link.name: {'mass': float(1 + 0.1 * rng.uniform(-1, 1)), 'com': (
            0.01 * rng.uniform(-1, 1, 3)).tolist()} for link in self.model.description.links
            if link.inertial is not None and link.inertial.mass > 0.3}
        joints = {joint: {'armature': float(0.3 * s), 'damping': 0.0, 'friction': 0.0}
                  for joint, s in zip(self.model.joint_names, size, strict=True)}
        true = rd.load_model(perturbed_urdf(text, {'links': links, 'joints': joints}))
        self.dynamics = rd.Dynamics(true)
        self.coulomb, self.viscous = friction * size, 0.5 * friction * size
        self.ripple, self.noise = ripple * size, noise * size
        q = np.zeros(self.model.n)
        self.inertia = np.diag(self.dynamics.mass_matrix(q))

    def loaded(self, mass):
        """Return the dynamics with an unknown mass on the flange."""
        return rd.Dynamics(self.dynamics.model.with_payload(
            self.flange, mass, (0.0, 0.0, 0.05), np.zeros((3, 3))))

    def torque(self, motion, factor=1.0, dynamics=None):
        """Return the torques along a motion; ``factor`` scales the friction."""
        _, q, qd, qdd = motion
        stribeck = 1 + 0.2 * np.exp(-np.abs(qd) / 0.1)
        friction = (self.coulomb * stribeck * np.sign(qd) + self.viscous * qd) * factor
        return ((dynamics or self.dynamics).inverse_dynamics(q, qd, qdd) + friction
                + self.ripple * np.sin(20 * q))

    def motion(self, speed):
        """Return ten minutes of a random motion of 10 s, at a fraction of the speed limits."""
        _, q, qd, qdd = fourier_motion(self.model, self.rng, 10.0, 1 / WINDOW / speed)
        rows = np.arange(round(TASK / WINDOW)) % len(q)
        return None, q[rows], speed * qd[rows], speed**2 * qdd[rows]

    def log(self):
        """Return a log at 1 kHz with the noise of the sensors."""
        motion = fourier_motion(self.model, self.rng, FIT, round(1 / STEP))
        tau = self.torque(motion) + self.noise * self.rng.normal(size=motion[1].shape)
        qd = motion[2] + VELOCITY_NOISE * self.rng.normal(size=tau.shape)
        return rd.Log(motion[0], motion[1], tau, qd=qd, joint_names=self.model.joint_names,
                      source='simulated')


class Observed:
    """A plant with its identified model, which is observed in fast-forward."""

    def __init__(self, plant):
        self.plant = plant
        logs = [plant.log() for _ in range(2)]
        result = rd.identify(plant.model, logs[0], friction='coulomb')
        error = rd.validate(result, logs[1], consistent=True).total
        self.dynamics = rd.Dynamics(result.model)
        self.expected = expected_residual(self.dynamics, free_motions(result, [logs[1]]))
        print(f'  validation: {error:.2%} of the torque unexplained; expected residual '
              f'{np.array2string(self.expected, precision=3)} N m')
        inertia, self.time = plant.inertia, 1.7e9
        self.noise = np.hypot(plant.noise * np.sqrt(STEP / WINDOW),
                              inertia * VELOCITY_NOISE * np.sqrt(2) / WINDOW)

    def health(self):
        """Return the health at the start of the application."""
        return ModelHealth(self.dynamics, self.expected)

    def task(self, health, factor=1.0, dynamics=None, speed=None):
        """Let ten minutes pass; ``factor`` scales friction: a number, or shape (N, n)."""
        plant = self.plant
        motion = plant.motion(plant.rng.uniform(0.3, 1.0) if speed is None else speed)
        tau = plant.torque(motion, factor, dynamics)
        _, q, qd, _ = motion
        residual = self.dynamics.inverse_dynamics(*motion[1:]) - tau
        residual += self.noise * plant.rng.normal(size=q.shape)
        for k, row in enumerate(zip(q, qd, residual, np.abs(qd) > SLOWEST, strict=True)):
            health.add(Window(*row, False))
            if k % round(JUDGE / WINDOW) == 0:
                self.time += JUDGE
                health.judge(self.time)
                yield {(one.joint, one.kind) for one in health.changes}


def false_alarms(observed, hours):
    """Print what is reported although nothing changes."""
    health, begun = observed.health(), observed.time
    found, before, most = {}, set(), np.zeros(4)
    while observed.time - begun < hours * 3600:
        for changes in observed.task(health):
            for one in changes - before:
                found[one[1]] = found.get(one[1], 0) + 1
            before = changes
        rows = health.excesses(health.memories['minutes'].estimate())
        most = np.maximum(most, [max(abs(value) / bound for _, kind, value, bound in rows
                                     if kind == wanted) for wanted in KINDS])
    print(f'  {hours:g} h without a change: {found or "nothing"} reported; most of the bound: '
          f'friction {most[0]:.2f}, offset {most[1]:.2f}, gravity {most[2]:.2f}, residual '
          f'{most[3]:.2f}')


def drift(observed, name, wanted, **change):
    """Print after how long a change is reported that begins after half an hour."""
    health = observed.health()
    for _ in range(3):
        for _ in observed.task(health):
            pass
    begun, found, others = observed.time, None, set()
    for _ in range(6):
        for changes in observed.task(health, **change):
            others |= {one for one in changes if one[0] != wanted[0]}
            if wanted in changes and found is None:
                found = observed.time - begun
    when = 'not reported within an hour' if found is None else f'after {found / 60:.1f} min'
    now = [health.sentence(one, observed.time) for one in health.changes if one.joint == wanted[0]]
    print(f'  {name}: {when}; after an hour: {"; ".join(now)}; other joints: {len(others)}')


def warm_up(observed):
    """Print how the health reports friction that is first 30 % higher and falls in 20 minutes."""
    health, begun = observed.health(), observed.time
    for part in range(12):
        time = TASK * part + WINDOW * np.arange(round(TASK / WINDOW))
        for _ in observed.task(health, factor=1 + 0.3 * np.exp(-time / 1200)[:, None]):
            pass
    for one in [*health.ended, *health.changes]:
        until = f'{(one.until - begun) / 60:.0f} min' if one.until else 'the end (2 h)'
        print(f'  warming up: {one.joint}: {one.kind}, at most {one.largest:.3g} N m, from '
              f'{(one.since - begun) / 60:.0f} min to {until}')


def wear(observed):
    """Print when friction is reported that grows by 2 % an hour."""
    health, begun, first = observed.health(), observed.time, {}
    for part in range(60):
        time = TASK * part + WINDOW * np.arange(round(TASK / WINDOW))
        for changes in observed.task(health, factor=1 + 0.02 * time[:, None] / 3600):
            for one in changes:
                first.setdefault(one, (observed.time - begun) / 3600)
    print('  friction + 2 % an hour: ' + ', '.join(
        f'{joint} {kind} after {at:.1f} h' for (joint, kind), at in first.items()))


def main():
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 24.0
    for name in ROBOTS:
        print(name)
        rng = np.random.default_rng(7)
        observed = Observed(Plant(name, rng))
        n, joints = observed.plant.model.n, observed.plant.model.joint_names
        for k in range(n):
            factor = np.ones(n)
            factor[k] = 1.2
            drift(observed, f'friction of {joints[k]} + 20 %', (joints[k], 'friction'),
                  factor=factor)
        drift(observed, '1 kg in the hand', (joints[1], 'gravity'),
              dynamics=observed.plant.loaded(1.0))
        warm_up(observed)
        wear(observed)
        false_alarms(observed, hours)


if __name__ == '__main__':
    main()
