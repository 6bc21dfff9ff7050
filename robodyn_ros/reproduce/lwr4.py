"""The experiment of Kolyubin 2017, section 5.8: plan, play, identify, reduce, validate.

The robot is simulated: it has the parameters of table 5.3 (``lwr4_robot.py``) and follows its
reference exactly, as under stiff position control. The measurements are noisy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.excitation import (
    Excitation,
    Motion,
    Trapezoid,
    optimise_excitation,
    point_to_point,
)
from robodyn_ros.excitation.criteria import Criterion
from robodyn_ros.excitation.fourier import Basis
from robodyn_ros.excitation.plan import SIGN_WIDTH
from robodyn_ros.identification import FilterSettings, Log, Result, Validation, identify, reduce
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.validate import validate
from robodyn_ros.model import Model
from robodyn_ros.reproduce.lwr4_robot import CARRIER, FLANGE, TrueRobot, limits, tables, true_robot
from robodyn_ros.spatial import Array, inertial_of

KIND = 'links_and_drives'  # model 2 of the text
MOTIONS = ('trapezoid', 'A', 'B')
LOADED_MORE = ('joint6', 'joint7')  # joints whose mean torque motion B increases
CONDITION_RATE = 20.0  # Hz, of the samples for condition numbers and largest values
SETTLING = 500  # samples after which the filtered noise has its final variance


@dataclass(frozen=True, eq=False)
class Run:
    """One motion: what was planned, measured and identified.

    Attributes
    ----------
    motion : Excitation or Trapezoid
        The motion.
    condition, scaled_condition : float
        Condition number of the base observation matrix as it is, and with columns of equal length.
    mean_torque : ndarray, shape (7,)
        Mean absolute joint torques with the load, N m.
    largest : dict of str to ndarray, shape (7,)
        Largest absolute position, velocity and torque with the load.
    distance, height : float
        Smallest distance of the flange from the axis of the base, and its smallest height, m.
    logs : list of Log
        The logs without and with the load.
    result, reduced : Result
        The identification with all base parameters, and with the significant ones.
    """

    motion: Excitation | Trapezoid
    condition: float
    scaled_condition: float
    mean_torque: Array
    largest: dict[str, Array]
    distance: float
    height: float
    logs: list[Log] = field(repr=False)
    result: Result = field(repr=False)
    reduced: Result = field(repr=False)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The reproduced experiment.

    Attributes
    ----------
    robot : TrueRobot
        The simulated robot.
    runs : dict of str to Run
        The motions by their names: ``trapezoid``, ``A`` and ``B``.
    validation : Validation or None
        Errors of the reduced model of the last motion on the loaded logs of the others.
    seconds : float
        Run time, s.
    """

    robot: TrueRobot
    runs: dict[str, Run]
    validation: Validation | None
    seconds: float


def reproduce_lwr4(*, budget: float = 30.0, seed: int = 0, motions: Sequence[str] = MOTIONS,
                   duration: float | None = None, rate: float | None = None,
                   progress: Callable[[str], None] = lambda step: None) -> Reproduction:
    """Run the published experiment.

    Parameters
    ----------
    budget : float
        Time for the search of each optimised motion, s.
    seed : int
        Seed of the motions and of the noise.
    motions : sequence of str
        Names of the motions to run.
    duration, rate : float, optional
        Duration of each log (s) and its rate (Hz); default: those of the text.
    progress : callable
        Called with the name of each step as it begins.
    """
    started = time.monotonic()
    experiment = tables()['experiment'] | {
        key: value for key, value in (('duration', duration), ('rate', rate)) if value is not None}
    progress('robot with the parameters of table 5.3')
    robot = true_robot()
    criteria = _criteria(robot)
    rng = np.random.default_rng(seed)
    runs: dict[str, Run] = {}
    for name in motions:
        progress(f'motion {name}')
        if name == 'B' and 'A' in runs:  # goals follow from the first criterion (remark 5.6)
            published = tables()['table_5_2']['A']['condition']
            experiment['condition_goal'] *= runs['A'].condition / published
        motion = _motion(name, robot, experiment, budget, seed)
        progress(f'experiment {name}')
        logs = [_measure(motion, robot, experiment, name, loaded, rng) for loaded in (False, True)]
        progress(f'identification {name}')
        runs[name] = _identified(motion, logs, robot, experiment, criteria)
    progress('validation')
    *others, fit = runs.values()
    validation = validate(fit.reduced, [run.logs[-1] for run in others]) if others else None
    return Reproduction(robot, runs, validation, time.monotonic() - started)


def _identified(motion: Excitation | Trapezoid, logs: list[Log], robot: TrueRobot,
                experiment: dict[str, Any], criteria: list[Criterion]) -> Run:
    """Return what a motion reaches and what is identified from its logs."""
    result = identify(_links(robot.bare), logs, kind=KIND, payload=CARRIER, friction='coulomb',
                      filter=FilterSettings(experiment['cutoff'], experiment['order']),
                      decimation=experiment['decimation'])
    samples = motion.at(np.arange(0, experiment['duration'], 1 / CONDITION_RATE))
    condition, scaled_condition = (criterion.condition(samples) for criterion in criteria)
    carrying = Dynamics(_links(robot.loaded))
    torque = np.abs(carrying.inverse_dynamics(*samples[:3]))
    flange = carrying.points(samples.q, ((FLANGE, (0.0, 0.0, 0.0)),))[:, 0]
    return Run(
        motion, condition, scaled_condition, torque.mean(axis=0),
        {'position': np.abs(samples.q).max(axis=0), 'velocity': np.abs(samples.qd).max(axis=0),
         'torque': torque.max(axis=0)},
        float(np.hypot(flange[:, 0], flange[:, 1]).min()), float(flange[:, 2].min()), logs, result,
        reduce(result))


def _criteria(robot: TrueRobot) -> list[Criterion]:
    """Return condition numbers of the observation matrix: as it is, and with scaled columns."""
    linear = LinearModel(Dynamics(_links(robot.bare)), KIND, payload=CARRIER,
                         friction=FrictionShape('coulomb', SIGN_WIDTH,
                                                np.asarray(limits().velocity)))
    base, unused = base_parameters(linear), Basis(1.0, 2, 8)  # the samples are given
    return [Criterion(linear, base, unused, 'condition', scaling, np.ones(linear.rows))
            for scaling in ('none', 'columns')]


def _links(model: Model) -> Model:
    """Return a robot without drives and friction; tables 5.1 and 5.2 refer to its torques."""
    return model.without_motors().without_friction()


def _motion(name: str, robot: TrueRobot, experiment: dict[str, Any], budget: float,
            seed: int) -> Excitation | Trapezoid:
    """Return one of the three motions."""
    if name == 'trapezoid':
        return point_to_point(_links(robot.loaded), limits(), duration=experiment['duration'],
                              seed=seed)
    links, body, table = _links(robot.bare), inertial_of(robot.load), tables()
    periods = int(np.ceil(experiment['duration'] / experiment['period']))
    goals: dict[str, Any] = {}
    if name == 'B':  # F - gamma Psi <= Lambda with Psi = Lambda (Kolyubin 5.16)
        k = experiment['torque_goal']
        largest = dict(zip(links.joint_names, table['table_5_1']['torque'], strict=True))
        goals = {'mean_torque': {joint: (1 - k) * largest[joint] for joint in LOADED_MORE},
                 'mean_torque_unit': {joint: k * largest[joint] for joint in LOADED_MORE},
                 'condition_goal': experiment['condition_goal']}
    return optimise_excitation(
        links, limits(), kind=KIND, payload=CARRIER, payload_mass=body.mass,
        payload_com=body.com, period=experiment['period'], periods=periods,
        harmonics=table['assumed']['harmonics'], scaling='none', starts=2, budget=budget,
        seed=seed, **goals)


def _measure(motion: Excitation | Trapezoid, robot: TrueRobot, experiment: dict[str, Any],
             name: str, loaded: bool, rng: np.random.Generator) -> Log:
    """Return the log of a motion: noisy positions and torques of joint sensors and motors."""
    rate, assumed = experiment['rate'], tables()['assumed']
    t = np.arange(round(experiment['duration'] * rate)) / rate
    true: Motion = motion.at(t)
    joint, motor = robot.torques(true.q, true.qd, true.qdd, loaded=loaded)
    memory = float(np.exp(-1 / (rate * assumed['noise_memory'])))
    noisy = [torque + assumed['torque_noise'] * np.sqrt((torque**2).mean(axis=0))
             * _coloured(torque.shape, memory, rng) for torque in (joint, motor)]
    return Log(t, true.q + assumed['position_noise'] * rng.normal(size=true.q.shape), noisy[0],
               tau_motor=noisy[1], joint_names=robot.bare.joint_names, loaded=loaded,
               source=f'{name}, {"with" if loaded else "without"} load')


def _coloured(shape: tuple[int, ...], memory: float, rng: np.random.Generator) -> Array:
    """Return autoregressive noise of order 1 and unit variance, column by column."""
    white = rng.normal(size=(SETTLING + shape[0], *shape[1:]))
    coloured = scipy.signal.lfilter([np.sqrt(1 - memory**2)], [1, -memory], white, axis=0)
    return np.asarray(coloured[SETTLING:])
