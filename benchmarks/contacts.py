"""Contacts of an identified Panda and UR10 in simulation: delay, false alarms, smallest force.

The true robots differ from their descriptions in masses, rotors and friction, and their sensors
are noisy; identification, validation and thresholds come from simulated logs. Beside them, in the
same run and on the same residuals: constant thresholds as in the examples of libfranka. Then the
measured logs of a UR10 and a TX40, whose second halves are free motions as well.

    python benchmarks/contacts.py [SECONDS of free motion, default 600] [Panda] [UR10] [measured]
"""

import sys
from dataclasses import replace
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
)
from robodyn_ros.observation.fitting import fit_thresholds, residuals_of
from robodyn_ros.simulation import Simulation
from robodyn_ros.simulation.sensors import Sensors

sys.path.insert(0, str(Path(__file__).parent.parent / 'test'))
STEP, FIT, FREE = 0.001, 20.0, 60.0  # s: sampling, log of the fit, log of the validation
PUSH, EVERY = 0.3, 2.5  # s: a sudden push; from one sudden push to the next
RAMP, FAST = 2.0, 0.9  # s of a slow push; fraction of the speed limits in logs and free motion
INSIDE = 12.59  # 95 % quantile of chi-squared with the 6 degrees of freedom of a wrench
FORCES = (2.0, 5.0, 10.0, 20.0, 50.0)  # N
TRIALS = 12  # pushes of each force and link
LIBFRANKA = np.array([20.0, 20.0, 18.0, 18.0, 16.0, 14.0, 12.0])  # N m: those of its examples
# URDF; links that are pushed; torque noise and friction (N m) of a joint with a limit of 87 N m;
# constant thresholds (N m)
ROBOTS = {
    'Panda': ('panda_description/urdf/panda.urdf', 'panda_link8', 'panda_link4', 0.15, 0.3,
              LIBFRANKA),
    'UR10': ('ur_description/urdf/ur10_robot.urdf', 'tool0', 'forearm_link', 0.5, 1.5,
             np.array([50.0, 50.0, 30.0, 10.0, 10.0, 10.0])),
}


class Motion:
    """An endless random Fourier series within the limits of a robot."""

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
    """A true robot under computed torque of its description, with roughly known rotors."""

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
                                  position_noise=1e-6, velocity_noise=1e-3))
        self.rng, self.noise = rng, noise * size
        self.place = [self.sim.joint_names.index(j) for j in self.model.joint_names]
        self.dynamics = rd.Dynamics(replace(self.model.without_friction(), armature=0.25 * size),
                                    friction_width=0.01)

    def start(self, motion):
        """Put the robot at the start of a motion."""
        whole, speed = np.zeros(self.sim.n), np.zeros(self.sim.n)
        whole[self.place], speed[self.place] = (x for x in motion.at(0.0)[:2])
        self.sim.reset(whole, speed)

    def cycle(self, reference):
        """Return t, q, qd and tau as measured, and step the simulation."""
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
    logs = [plant.record(Motion(plant.model, rng, speed=FAST), s) for s in (FIT, FREE)]
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
        """Return the state of contact that each detector finds after a sample."""
        t, q, qd, tau = row
        self.residual = self.observer.update(t, q, qd, tau)
        return [detector.update(t, qd, self.residual, self.observer.rate).state
                for detector in self.detectors]

    def reset(self):
        """Forget the past."""
        self.observer.reset()
        for detector in self.detectors:
            detector.reset()


def false_alarms(plant, watcher, rng, seconds):
    """Print the number of false alarms in fast free motion."""
    part, alarms = 60.0, {state: np.zeros(2, int) for state in ('accidental', 'intended')}
    for _ in range(round(seconds / part)):
        motion = Motion(plant.model, rng, speed=FAST)
        plant.start(motion)
        watcher.reset()
        before = ['none', 'none']
        for row in zip(*motion.at(np.arange(round(part / STEP)) * STEP), strict=True):
            now = watcher.states(plant.cycle(row))
            for state, count in alarms.items():
                count += [a == state != b for a, b in zip(now, before, strict=True)]
            before = now
    for state, (ours, constant) in alarms.items():
        print(f'  false {state} contacts in {seconds / 3600:.2f} h of fast free motion: '
              f'identified thresholds {ours}, constant ones {constant}', flush=True)


def pushes(plant, watcher, rng, link, force, speed, time, wave):
    """Push in random directions; return for each detector the delays, s, and their states."""
    motion, cycle = Motion(plant.model, rng, speed=speed), round((EVERY - PUSH + time) / STEP)
    plant.start(motion)
    watcher.reset()
    start, before, found = cycle - round(time / STEP), ['none', 'none'], [[], []]
    for k, row in enumerate(zip(*motion.at(np.arange(TRIALS * cycle) * STEP), strict=True)):
        phase = k % cycle
        if phase == start:
            vector = rng.normal(size=3)
            vector *= force / np.linalg.norm(vector)
            known = [state != 'none' for state in before]  # contacts that still last do not count
        if phase >= start:
            part = (phase - start + 1) / (cycle - start)
            plant.sim.push(link, [*(vector * wave(part)), 0, 0, 0])
        elif phase == 0:
            plant.sim.push(link, np.zeros(6))
        before = watcher.states(plant.cycle(row))
        for one, state in enumerate(before):
            if phase >= start and state != 'none' and not known[one]:
                known[one] = True
                found[one].append(((phase - start) * STEP, state))
    plant.sim.push(link, np.zeros(6))
    return found


def detection(plant, watcher, rng, link):
    """Print how often and how late sudden pushes are found."""
    for force in FORCES:
        cells = []
        for found in pushes(plant, watcher, rng, link, force, 0.7, PUSH, lambda part: 1.0):
            late = [1e3 * delay for delay, state in found if state == 'accidental']
            slow = len(found) - len(late)
            cells.append(f'{len(late)}/{TRIALS}' + (
                f', {np.median(late):.0f} ms (most {max(late):.0f})' if late else '') + (
                f', {slow} as intended' if slow else ''))
        print(f'  {force:4.0f} N at {link}: identified {cells[0]}; constant {cells[1]}',
              flush=True)


def separation(plant, watcher, rng, link):
    """Print whether slowly growing forces count as intended or accidental, at rest and moving."""
    for what, speed in (('at rest', 1e-6), ('in motion', 0.3)):
        for force in FORCES:
            found = pushes(plant, watcher, rng, link, force, speed, RAMP, lambda part: part)[0]
            states = [state for _, state in found]
            print(f'  {force:4.0f} N in {RAMP:g} s at {link} {what}: {states.count("intended")} '
                  f'intended, {states.count("accidental")} accidental, of {TRIALS}', flush=True)


def wrenches(plant, watcher, dynamics, rng):
    """Print the error of the force at the flange, at rest and in motion, and its coverage."""
    for what, speed in (('at rest', 1e-6), ('in motion', 0.7)):
        wrong, inside = [], []
        wrench = np.array([0.0, 12.0, -16.0, 0.0, 0.0, 0.0])
        for _ in range(5):
            motion = Motion(plant.model, rng, speed=speed)
            plant.start(motion)
            watcher.reset()
            plant.sim.push(plant.flange, wrench)
            references = motion.at(np.arange(2500) * STEP)
            for k, row in enumerate(zip(*references, strict=True)):
                measured = plant.cycle(row)
                watcher.states(measured)
                if k > 500 and k % 20 == 0:
                    jacobian = dynamics.jacobian(measured[1], plant.flange)
                    found = external_wrench(jacobian, watcher.residual,
                                            watcher.detectors[0].deviation)
                    wrong.append(found.values - wrench)
                    inside.append(wrong[-1] @ np.linalg.solve(found.covariance, wrong[-1]))
            plant.sim.push(plant.flange, np.zeros(6))
        wrong = np.array(wrong)
        print(f'  20 N at the flange {what}: error {np.sqrt((wrong[:, :3]**2).mean()):.2f} N, '
              f'{np.sqrt((wrong[:, 3:]**2).mean()):.2f} N m (rms of a component), '
              f'{np.mean(np.array(inside) < INSIDE):.0%} inside the 95 % ellipsoid', flush=True)


def motions_of(result, log):
    """Return motions of a log: as measured, or without measured velocities those of the filter."""
    if log.qd is not None:
        ready = log.for_model(result.model)
        return [(ready.t, ready.q, ready.qd, ready.tau)]
    whole = rd.validate(result, log, consistent=True)
    return list(zip(whole.t, whole.q, whole.qd, whole.measured, strict=True))


def measured(name, model, log):
    """Print the contacts in the second half of a measured free motion.

    Model and thresholds come from the first half alone: each part of it gives a model, whose
    residuals in the other part give the thresholds; the model is then that of the whole half.
    """
    first, rest = log.part(0, 0.5), log.part(0.5, 1)
    parts, residuals = first.split(0.5), []
    for fit, other in (parts, parts[::-1]):
        result = rd.identify(model, fit)
        residuals += [residuals_of(rd.Dynamics(result.model), *motion)
                      for motion in motions_of(result, other)]
    thresholds = fit_thresholds(model.joint_names, residuals, bandwidth=20.0, separation=1.0)
    result = rd.identify(model, first)
    for t, q, qd, tau in motions_of(result, rest):
        observer = MomentumObserver(rd.Dynamics(result.model), thresholds.bandwidth)
        detector = ContactDetector(result.model, thresholds)
        contacts = [detector.update(row[0], row[2], observer.update(*row), observer.rate)
                    for row in zip(t, q, qd, tau, strict=True)]
        states = ['none'] + [one.state for one in contacts]
        counts = {state: sum(a == state != b for a, b in zip(states[1:], states[:-1],
                                                             strict=True))
                  for state in ('accidental', 'intended')}
        worst = max(one.magnitude / one.threshold for one in contacts[len(contacts) // 50:])
        print(f'{name}, second half, {np.ptp(t):.1f} s, model and thresholds of the first half: '
              f'{counts["accidental"]} accidental, {counts["intended"]} intended; '
              f'largest residual {worst:.2f} of its threshold; fast thresholds at half speed '
              f'{thresholds.at(thresholds.speed.max(axis=1) / 2)[0].round(2)}', flush=True)


def simulated(name, seconds):
    """Print all figures of a simulated robot."""
    rng = np.random.default_rng(7)
    print(name)
    plant = Plant(name, rng)
    dynamics, thresholds = identified(plant, rng)
    watcher = Watcher(dynamics, thresholds, plant.constant)
    wrenches(plant, watcher, dynamics, rng)
    for link in (plant.flange, plant.elbow):
        detection(plant, watcher, rng, link)
    separation(plant, watcher, rng, plant.flange)
    false_alarms(plant, watcher, rng, seconds)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    wanted = sys.argv[2:] or [*ROBOTS, 'measured']
    for name in ROBOTS:
        if name in wanted:
            simulated(name, seconds)
    if 'measured' in wanted:
        from measured_logs import tx40, ur10

        for name, robot in (('UR10, measured', ur10), ('TX40, measured', tx40)):
            measured(name, *robot())


if __name__ == '__main__':
    main()
