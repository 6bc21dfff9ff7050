"""Contacts of an identified Panda and UR10 in simulation: delay, false alarms, smallest force.

The true robots differ from their descriptions in masses, rotors and friction, and their sensors
are noisy; identification, validation and thresholds come from simulated logs. Beside them, in the
same run and on the same residuals: constant thresholds as in the examples of libfranka. Then the
measured logs of a UR10 and a TX40, whose second halves are free motions as well.

    python benchmarks/contacts.py [SECONDS of free motion, default 600]
"""

import sys
from pathlib import Path

import numpy as np

import robodyn_ros as rd
from robodyn_ros.description.examples import example_robots
from robodyn_ros.experiment.results import contact_section
from robodyn_ros.observation import (
    ContactDetector,
    ContactThresholds,
    MomentumObserver,
    constant_thresholds,
    external_wrench,
    thresholds_of,
)
from robodyn_ros.simulation import Simulation
from robodyn_ros.simulation.sensors import Sensors

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
STEP, FIT, PUSH, EVERY = 0.001, 20.0, 0.3, 2.5  # s
FORCES = (2.0, 5.0, 10.0, 20.0, 50.0)  # N
TRIALS = 6  # pushes of each force and link
LIBFRANKA = np.array([20.0, 20.0, 18.0, 18.0, 16.0, 14.0, 12.0])  # N m, its examples
ROBOTS = {
    'Panda': ('panda_description/urdf/panda.urdf', 'panda_link8', 'panda_link4', 0.08, 0.3,
              LIBFRANKA),
    'UR10': ('ur_description/urdf/ur10_robot.urdf', 'tool0', 'forearm_link', 0.5, 1.5,
             np.array([50.0, 50.0, 30.0, 10.0, 10.0, 10.0])),
}


class Motion:
    """A random Fourier series within the limits of a robot, without an end."""

    def __init__(self, model, rng, speed=0.7, base=0.1, harmonics=5):
        n = model.n
        self.w = 2 * np.pi * base * np.arange(1, harmonics + 1) * (1 + 0.1 * rng.random(harmonics))
        self.a, self.b = rng.normal(size=(2, harmonics, n)) / np.arange(1, harmonics + 1)[:, None]
        wide = np.isfinite(model.lower + model.upper) & (model.upper - model.lower < 2 * np.pi)
        lower, upper = np.where(wide, model.lower, -np.pi), np.where(wide, model.upper, np.pi)
        self.middle, self.scale = (lower + upper) / 2, np.ones(n)
        t = np.arange(0, 200, 0.01)
        q, qd, _ = self.at(t)
        limit = np.where(np.isfinite(model.velocity_limit), model.velocity_limit, 2.0)
        self.scale = np.minimum(0.35 * (upper - lower) / np.abs(q - self.middle).max(axis=0),
                                speed * limit / np.abs(qd).max(axis=0))

    def at(self, t):
        """Return q, qd and qdd at times, s."""
        c, s = (f(np.multiply.outer(t, self.w)) for f in (np.cos, np.sin))
        w = self.w
        return (self.middle + (c @ self.a + s @ self.b) * self.scale,
                ((c * w) @ self.b - (s * w) @ self.a) * self.scale,
                -((c * w**2) @ self.a + (s * w**2) @ self.b) * self.scale)


class Plant:
    """A true robot under computed torque of its description."""

    def __init__(self, name, rng):
        path, self.flange, self.elbow, noise, friction, self.constant = ROBOTS[name]
        text = (example_robots() / path).read_text().replace('"prismatic"', '"fixed"')
        self.model = rd.load_model(text)  # the fingers of a gripper do not move
        links = {link.name: {'mass': float(1 + 0.1 * rng.uniform(-1, 1)), 'com': (
            0.01 * rng.uniform(-1, 1, 3)).tolist()} for link in self.model.description.links
            if link.inertial is not None and link.inertial.mass > 0.3}
        size = np.where(np.isfinite(self.model.effort_limit), self.model.effort_limit, 50) / 87
        joints = {joint: {'armature': float(0.3 * s), 'damping': float(friction * s),
                          'friction': float(friction * s)}
                  for joint, s in zip(self.model.joint_names, size, strict=True)}
        self.sim = Simulation(text, truth={'links': links, 'joints': joints}, timestep=STEP,
                              limit_efforts=False, sensors=Sensors(
                                  position_noise=1e-6, velocity_noise=5e-4))
        self.rng, self.noise = rng, noise * size
        self.place = [self.sim.joint_names.index(j) for j in self.model.joint_names]
        self.dynamics = rd.Dynamics(self.model.without_friction(), friction_width=0.01)

    def start(self, motion):
        """Put the robot at the start of a motion."""
        whole, speed = np.zeros(self.sim.n), np.zeros(self.sim.n)
        whole[self.place], speed[self.place] = (x for x in motion.at(0.0)[:2])
        self.sim.reset(whole, speed)

    def cycle(self, reference):
        """Return t, q, qd, tau as measured, and move on."""
        q_r, qd_r, qdd_r = reference
        measured = self.sim.measure()
        q, qd = measured.position[self.place], measured.velocity[self.place]
        tau = self.dynamics.inverse_dynamics(q, qd, qdd_r + 900 * (q_r - q) + 60 * (qd_r - qd))
        whole = np.zeros(self.sim.n)
        whole[self.place] = tau
        self.sim.step(whole)
        return measured.time, q, qd, tau + self.noise * self.rng.normal(size=len(tau))

    def record(self, motion, seconds):
        """Return the log of a motion."""
        self.start(motion)
        count = round(seconds / STEP)
        references = motion.at(np.arange(count) * STEP)
        rows = [self.cycle(row) for row in zip(*references, strict=True)]
        t, q, qd, tau = (np.array(x) for x in zip(*rows, strict=True))
        return rd.Log(t, q, tau, qd=qd, joint_names=self.model.joint_names,
                      source=f'simulated {seconds:g} s')


def identified(plant, rng):
    """Return the identified dynamics and thresholds."""
    logs = [plant.record(Motion(plant.model, rng), FIT) for _ in range(2)]
    result = rd.identify(plant.model, logs[0], friction='coulomb')
    validation = rd.validate(result, logs[1], consistent=True)
    print(f'  validation: {validation.total:.2%} of the torque unexplained')
    contact = contact_section(result, [logs[1]])
    return rd.Dynamics(result.model, friction_width=0.01), ContactThresholds.read(
        {'contact': contact}, plant.model.joint_names)


class Watcher:
    """The observer and a detector with each set of thresholds."""

    def __init__(self, dynamics, thresholds, constant):
        self.observer = MomentumObserver(dynamics, thresholds.bandwidth)
        self.detectors = [ContactDetector(dynamics.model, one) for one in (
            thresholds, constant_thresholds(thresholds.joint_names, constant))]

    def states(self, row):
        """Return whether each detector sees an accidental contact."""
        t, q, qd, tau = row
        self.residual = self.observer.update(t, q, qd, tau)
        return [detector.update(t, qd, self.residual).state == 'accidental'
                for detector in self.detectors]


def false_alarms(plant, watcher, rng, seconds):
    """Print the number of false alarms in fast free motion."""
    alarms, part = np.zeros(2, int), 60.0
    for _ in range(round(seconds / part)):
        motion = Motion(plant.model, rng, speed=0.9)
        plant.start(motion)
        watcher.observer.reset()
        for detector in watcher.detectors:
            detector.reset()
        before = [False, False]
        for row in zip(*motion.at(np.arange(round(part / STEP)) * STEP), strict=True):
            now = watcher.states(plant.cycle(row))
            alarms += [a and not b for a, b in zip(now, before, strict=True)]
            before = now
    print(f'  false alarms in {seconds / 3600:.2f} h of fast free motion: identified thresholds '
          f'{alarms[0]}, constant ones {alarms[1]}')


def detection(plant, watcher, rng, link):
    """Print how often and how late pushes are found."""
    model = plant.model
    for force in FORCES:
        delays = [[], []]
        motion = Motion(model, rng)
        plant.start(motion)
        watcher.observer.reset()
        for detector in watcher.detectors:
            detector.reset()
        cycle, before = round(EVERY / STEP), [False, False]
        references = motion.at(np.arange(TRIALS * cycle) * STEP)
        for k, row in enumerate(zip(*references, strict=True)):
            phase = k % cycle
            if phase == round((EVERY - PUSH) / STEP):
                way = rng.normal(size=3)
                plant.sim.push(link, [*(force * way / np.linalg.norm(way)), 0, 0, 0])
                found, pushed = list(before), k  # a contact that goes on finds nothing
            elif phase == 0:
                plant.sim.push(link, np.zeros(6))
            before = states = watcher.states(plant.cycle(row))
            if phase >= round((EVERY - PUSH) / STEP):
                for one in range(2):
                    if states[one] and not found[one]:
                        found[one] = True
                        delays[one].append((k - pushed) * STEP * 1e3)
        cells = [f'{len(d)}/{TRIALS}' + (f', {np.median(d):.0f} ms (most {max(d):.0f})' if d
                                         else '') for d in delays]
        print(f'  {force:4.0f} N at {link}: identified {cells[0]}; constant {cells[1]}')


def wrenches(plant, watcher, dynamics, thresholds, rng):
    """Print the error of the force at the flange, at rest and in motion."""
    for what, speed in (('at rest', 1e-6), ('in motion', 0.7)):
        wrong = []
        motion = Motion(plant.model, rng, speed=speed)
        plant.start(motion)
        watcher.observer.reset()
        references = motion.at(np.arange(4000) * STEP)
        wrench = np.array([0.0, 12.0, -16.0, 0.0, 0.0, 0.0])
        for k, row in enumerate(zip(*references, strict=True)):
            if k == 500:
                plant.sim.push(plant.flange, wrench)
            measured = plant.cycle(row)
            watcher.states(measured)
            if k > 1000 and k % 20 == 0:
                jacobian = dynamics.jacobian(measured[1], plant.flange)
                found = external_wrench(jacobian, watcher.residual, thresholds.deviation())
                wrong.append(found.values - wrench)
        wrong = np.array(wrong)
        print(f'  20 N at the flange {what}: error {np.sqrt((wrong[:, :3]**2).mean()):.2f} N, '
              f'{np.sqrt((wrong[:, 3:]**2).mean()):.2f} N m (rms of a component)')
        plant.sim.push(plant.flange, np.zeros(6))


def measured(name, model, log, in_sample):
    """Print the contacts in the second half of a measured free motion.

    Model and thresholds come from the first half: from different parts, or both from all of it.
    """
    first, rest = log.part(0, 0.5), log.part(0.5, 1)
    fit, threshold_part = (first, first) if in_sample else first.split(0.6)
    result = rd.identify(model, fit)
    dynamics = rd.Dynamics(result.model)
    whole = rd.validate(result, rest, consistent=True)
    if log.qd is None:  # without measured velocities, those of the validation's filter
        before = result.training_ if in_sample else rd.validate(result, threshold_part,
                                                                consistent=True)
        thresholds = thresholds_of(dynamics, zip(before.t, before.q, before.qd, before.measured,
                                                 strict=True))
        motions = list(zip(whole.t, whole.q, whole.qd, whole.measured, strict=True))
    else:
        thresholds = ContactThresholds.read(
            {'contact': contact_section(result, [threshold_part])}, model.joint_names)
        ready = rest.for_model(model)
        motions = [(ready.t, ready.q, ready.qd, ready.tau)]
    for t, q, qd, tau in motions:
        observer = MomentumObserver(dynamics, thresholds.bandwidth)
        detector = ContactDetector(result.model, thresholds)
        contacts = [detector.update(*row) for row in zip(
            t, qd, observer.run(t, q, qd, tau), strict=True)]
        states = [one.state for one in contacts]
        counts = {state: sum(a == state != b for a, b in zip(states[1:], states[:-1],
                                                             strict=True))
                  for state in ('accidental', 'intended')}
        worst = max(one.magnitude / one.threshold for one in contacts[len(contacts) // 50:])
        source = 'all' if in_sample else 'separate parts'
        print(f'{name}, second half, {np.ptp(t):.1f} s, by {source} of the first: '
              f'{counts["accidental"]} accidental, {counts["intended"]} intended; '
              f'largest residual {worst:.2f} of its threshold')


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    for name in ROBOTS:
        rng = np.random.default_rng(7)
        print(name)
        plant = Plant(name, rng)
        dynamics, thresholds = identified(plant, rng)
        watcher = Watcher(dynamics, thresholds, plant.constant)
        wrenches(plant, watcher, dynamics, thresholds, rng)
        for link in (plant.flange, plant.elbow):
            detection(plant, watcher, rng, link)
        false_alarms(plant, watcher, rng, seconds)
    from measured_logs import tx40, ur10

    for name, robot in (('UR10, measured', ur10), ('TX40, measured', tx40)):
        for in_sample in (False, True):
            measured(name, *robot(), in_sample)


if __name__ == '__main__':
    main()
