"""All methods of estimation by the protocol of BIRDy, on simulated robots: `python birdy.py 25`.

Protocol, robots and noise: Q. Leboutet, J. Roux, A. Janot, J. R. Guadarrama-Olvera, G. Cheng,
Inertial parameter identification in robotics: a survey, Applied Sciences 11(9), 2021, 4303, doi
10.3390/app11094303, and the files of github.com/TUM-ICS/BIRDy (MIT licence). The repetitions are
shared among Dask workers, see `parallel.py`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / 'test'))  # which also has a closed_loop.py

from parallel import each  # noqa: E402
from synthetic import fourier_motion  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.control.laws import automatic_gains  # noqa: E402
from robodyn_ros.identification.simulate import simulate_along  # noqa: E402
from robodyn_ros.kernels import Kernel  # noqa: E402
from robodyn_ros.model.kinds import METHODS  # noqa: E402
from robodyn_ros.spatial import Inertial, skew  # noqa: E402

RATE = 1000.0  # Hz
SECONDS = 10.0
SPREAD = 0.15  # relative standard deviation of the initial parameters
WIDTH = 1e-3  # rad/s, over which friction of the simulated robot changes its sign
NOISE = {  # of positions in degrees, and of torques in N m
    'low position noise': (1e-4, 0.05), 'standard noise': (1e-3, 0.05),
    'high torque noise': (1e-3, 0.1), 'high position noise': (1e-2, 0.05),
    'high position and torque noise': (1e-2, 0.1)}
DEFAULT = ('standard noise', 'high position noise')
HALF = np.pi / 2

# modified Denavit-Hartenberg table: a (m), alpha, d (m), theta; then of each link the mass (kg),
# the first moments (kg m), and Ixx Ixy Ixz Iyy Iyz Izz (kg m^2) about its frame or its centre of
# mass; then of each joint armature and friction (SI), positions (degrees) and speed (degrees/s)
TX40 = {
    'table': [(0, 0, 0, 0), (0, -HALF, 0, -HALF), (0.225, 0, 0.035, HALF),
              (0, HALF, 0.225, 0), (0, -HALF, 0, 0), (0, HALF, 0, np.pi)],
    'mass': [8.61, 4.85, 4.07, 3.62, 1.02, 0.2],
    'moment': [(0, 0, -0.4305), (0.392, -7.2e-3, 0.162), (3.26e-2, 2.44e-2, 0.265),
               (1.45e-2, -7.24e-3, -0.586), (0, -3.06e-3, -1.02e-3), (0, 0, 8.4e-3)],
    'about the frame': True,
    'inertia': [(0.424, 0, 0, 0.424, 0, 0.352),
                (1.63e-2, 7.85e-4, -1.57e-2, 8.81e-2, 3.24e-4, 8.28e-2),
                (2.23e-2, -1.95e-4, -1.16e-3, 2.24e-2, -2.22e-3, 4.41e-3),
                (0.109, 2.9e-5, 1.35e-3, 0.108, -1.17e-3, 4.07e-3),
                (1.01e-3, 0, 0, 1e-3, -3.06e-6, 1.01e-3), (3.53e-3, 0, 0, 3.53e-3, 0, 3.53e-4)],
    'armature': [0.362, 0.507, 8.29e-2, 3.41e-2, 3.61e-2, 1.14e-2],
    'viscous': [7.9379, 5.6948, 1.9804, 1.1141, 1.60, 0.6894],
    'coulomb': [6.9822, 7.8301, 6.1939, 2.4063, 3.4092, 1.8313],
    'lower': [-180, -125, -138, -270, -120, -270], 'upper': [180, 125, 138, 270, 133.5, 270],
    'speed': [287, 287, 430, 410, 320, 700]}
RV2SQ = {
    'table': [(0, 0, 0.295, 0), (0, -HALF, 0, -HALF), (0.23, 0, 0, HALF),
              (-0.05, HALF, 0.27, 0), (0, -HALF, 0, 0), (0, HALF, 0.07, 0)],
    'mass': [4, 5.3, 4.1, 2.8, 0.8, 0.7],
    'moment': [(0, 0, -0.2), (0.318, -0.04028, 0), (0, -0.1845, 0), (0.028, 0, -0.364),
               (-8e-4, -8e-4, 8e-4), (7e-4, 0, 3.5e-4)],
    'about the frame': False,
    'inertia': [(0.0424, 0, 0, 0.0424, 0, 0.0152), (0.45, 2.03e-3, -2.03e-4, 0.5, -5.56e-3, 0.85),
                (0.177, -0.017, 0.001, 0.105, 0.006, 0.239),
                (0.0492, -0.0013, 0.0042, 0.0424, 0.0003, 0.0457),
                (0.0676, 0.0001, 0, 0.0274, 0, 0.0718), (0.0076, 0, 0, 0.0074, 0, 0.0018)],
    'armature': [0.01, 0.5, 0.3253, 0.0416, 0.0939, 0.0317],
    'viscous': [4.7618, 13.4593, 4.1019, 1.3165, 1.4242, 0.9244],
    'coulomb': [2.8503, 7.7407, 3.3459, 1.6581, 2.7170, 2.0284],
    'lower': [-240, -120, 0, -200, -90, -360], 'upper': [240, 120, 160, 200, 90, 360],
    'speed': [225, 150, 275, 412, 450, 720]}
ROBOTS = {'TX40': TX40, 'RV2SQ': RV2SQ}
KINDS = (*METHODS, 'consistent')


def model_of(data):
    """Return a robot of the benchmark."""
    bodies = []
    for mass, moment, six in zip(data['mass'], data['moment'], data['inertia'], strict=True):
        xx, xy, xz, yy, yz, zz = six
        tensor, com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), np.array(moment) / mass
        if data['about the frame']:
            tensor = tensor + mass * skew(com) @ skew(com)
        bodies.append(Inertial(mass, com, tensor))
    motors = {'joints': {f'joint{k + 1}': {
        'armature': data['armature'][k],
        'link_friction': {'viscous': data['viscous'][k], 'coulomb': data['coulomb'][k]}}
        for k in range(6)}}
    model = rd.model_from_dh(data['table'], bodies, convention='modified', motors=motors,
                             lower=np.deg2rad(data['lower']), upper=np.deg2rad(data['upper']))
    return replace(model, velocity_limit=np.deg2rad(data['speed']))


class SideBySide:
    """Robots of equal structure, each of which is one of the robots that are simulated at once."""

    def __init__(self, models):
        specs = [rd.Dynamics(model, friction_width=WIDTH, shared_code=True)
                 .kernel('velocity_change').spec for model in models]
        if len({spec.key for spec in specs}) > 1:
            raise ValueError('the robots differ in more than their parameters')
        values = zip(*(spec.constants for spec in specs), strict=True)
        self.n = models[0].n
        self.change = Kernel(replace(specs[0], constants=tuple(np.stack(v) for v in values)))

    def velocity_change(self, q, qd, tau, damping, step):
        """See `Dynamics.velocity_change`; one row for each robot."""
        return self.change.general(q, qd, tau, damping, np.array([step]))


def run(models, known, motion, noise=(0.0, 0.0), rng=None):
    """Return the logs of simulated robots under PD control with feed-forward and noisy feedback.

    The controller of all of them is designed for one `known` robot.
    """
    t, q, qd, qdd = motion
    gains = automatic_gains(rd.Dynamics(known), 30.0)
    feedforward = rd.Dynamics(known, friction_width=WIDTH).inverse_dynamics(q, qd, qdd)
    wrong = np.zeros_like(q) if rng is None else np.deg2rad(noise[0]) * rng.normal(size=q.shape)
    reference = np.concatenate([q + wrong, qd, feedforward], axis=1)[:, None]
    states = np.array(list(simulate_along(
        SideBySide(models), np.repeat(reference, len(models), axis=1), 1 / RATE, gains.kp,
        gains.kd)))
    middle, n = 0.5 * (reference[1:] + reference[:-1]), known.n
    tau = middle[:, :, 2 * n:] + gains.kp * (middle[:, :, :n] - states[:-1, 0]) \
        + gains.kd * (middle[:, :, n:2 * n] - states[1:, 1])
    if rng is not None:
        tau = tau + noise[1] * rng.normal(size=tau.shape)
    seen = 0.5 * (states[1:, 0] + states[:-1, 0]) - wrong[:-1, None]
    return [rd.Log(t[:-1] + 0.5 / RATE, seen[:, k], tau[:, k], joint_names=known.joint_names)
            for k in range(len(models))]


def errors(model, found, motion, consistent=False):
    """Return BIRDy's errors of parameters and torques of a result, relative, in per cent."""
    _, q, qd, qdd = motion
    want = rd.Dynamics(model, friction_width=WIDTH).inverse_dynamics(q, qd, qdd)
    got = found.predict(q, qd, qdd, consistent=consistent)
    chi = {column.name: model.standard_parameters[column.standard]
           for column in found.linear.columns}
    true = found.base_.matrix @ np.array([chi[name] for name in found.linear.names])
    values = found.base_.matrix @ found.consistent_ if consistent else found.estimate_.values
    return (100 * np.linalg.norm(values - true) / np.linalg.norm(true), _mean(got - want, want))


def _mean(wrong, size):
    """Return the mean of the samples' relative errors in per cent, as BIRDy defines it."""
    return 100 * float(np.mean(np.linalg.norm(wrong, axis=1) / np.linalg.norm(size, axis=1)))


@cache
def motions(name):
    """Return a robot, the motion of the fit, another motion, and its log without noise."""
    model, rng = model_of(ROBOTS[name]), np.random.default_rng(0)
    motion, other = (fourier_motion(model, rng, SECONDS, RATE) for _ in range(2))
    return model, motion, other, run([model], model, other)[0]


def repetition(name, level, seed):
    """Return (d_theta, d_tau, d_q, seconds) of every method, for one log and one description."""
    model, motion, other, clean = motions(name)
    rng = np.random.default_rng(1 + seed)
    log, = run([model], model, motion, NOISE[level], rng)
    scale = 1 + SPREAD * rng.normal(size=(model.n, 1)).clip(-2, 2)
    chi = model.standard_parameters.reshape(model.n, -1) * scale
    nominal = model.with_standard_parameters(chi.ravel())
    results, seconds = [], []
    for method in METHODS:
        start = time.process_time()
        results.append(rd.identify(nominal, log, friction='coulomb', method=method))
        seconds.append(time.process_time() - start)
    played = run([found.model for found in results], model, other)
    away = [_mean(one.q - clean.q, clean.q) for one in played]
    rows = [(*errors(model, found, other), *rest)
            for found, *rest in zip(results, away, seconds, strict=True)]
    # the simulated robot always has the physically consistent parameters
    weighted = METHODS.index('weighted')
    return [*rows, (*errors(model, results[weighted], other, True), *rows[weighted][2:])]


def birdy(repetitions=1, levels=DEFAULT):
    """Print a table for each robot and noise level."""
    cases = [(name, level) for name in ROBOTS for level in levels]
    every = each(repetition, [(name, level, seed) for name, level in cases
                              for seed in range(repetitions)])
    for k, (name, level) in enumerate(cases):
        print(f'\n{name}, {level}: {repetitions} repetitions, medians\n')
        print('| method | d_theta | d_tau | d_q | time |\n|---|---|---|---|---|')
        medians = np.median(every[k * repetitions:(k + 1) * repetitions], axis=0)
        for method, (theta, tau, q, seconds) in zip(KINDS, medians, strict=True):
            print(f'| {method} | {theta:.2f} % | {tau:.3f} % | {q:.4f} % | {seconds:.1f} s |',
                  flush=True)


if __name__ == '__main__':
    birdy(int(sys.argv[1]) if len(sys.argv) > 1 else 1, sys.argv[2:] or DEFAULT)
