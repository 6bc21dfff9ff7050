"""Simulated fleets: robots of one type, some with a worn joint, and their weekly logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import OutputError, ValueRangeError
from robodyn_ros.excitation import sample_motion
from robodyn_ros.model import Model, load_model
from robodyn_ros.simulation.truth import perturbed_urdf
from robodyn_ros.spatial import Array

FIRST = date(2026, 1, 5)
RATE = 100.0  # Hz
SPREAD = 0.1  # relative standard deviation of friction and armature between the robots
MASS_SPREAD = 0.03  # relative standard deviation of the masses of the links
FROM_LOG_TO_LOG = 0.02  # relative standard deviation of a robot's friction from log to log
NOISE = 0.01  # standard deviation of the torque noise, relative to the largest torque
WEAR = 1.2  # factor on the friction of a worn joint
NOMINAL = {'damping': 2.0, 'friction': 4.0, 'armature': 0.3}  # where the description has zero


@dataclass(frozen=True)
class Wear:
    """The wear of one robot of the fleet.

    Attributes
    ----------
    robot, joint : str
        Names of the robot and of its worn joint.
    since : str
        Date of the first log with the wear.
    """

    robot: str
    joint: str
    since: str


def simulate_fleet(folder: str | Path, urdf: str | Path, *, robots: int = 10, logs: int = 12,
                   worn: int = 1, seconds: float = 10.0, seed: int = 0) -> tuple[Wear, ...]:
    """Write the logs of a simulated fleet, one log a week for each robot.

    The folder holds ``catalogue.yaml``, ``robot.urdf``, a folder of logs for each robot, and
    ``truth.yaml``, which names the worn joints and the dates from which their friction is 20 %
    higher.

    Parameters
    ----------
    folder : str or Path
        The folder; it must be empty or absent.
    urdf : str or Path
        The robot. Joints without friction or rotor inertia get the values of ``NOMINAL``.
    robots, logs, worn : int
        Number of robots, of logs of each, and of robots with a worn joint.
    seconds : float
        Duration of a log, s.
    seed : int
        Seed of the random numbers.

    Raises
    ------
    OutputError
        The folder exists and is not empty.
    ValueRangeError
        ``worn`` exceeds the number of robots.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise OutputError('it exists already', path=folder, valid='another name')
    if not 0 <= worn <= robots:
        raise ValueRangeError('worn', worn, f'0 to {robots}, the number of robots')
    rng = np.random.default_rng(seed)
    text, nominal = _nominal(urdf)
    dynamics = Dynamics(nominal)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'robot.urdf').write_text(text, encoding='utf-8')
    names = [f'robot_{k + 1:0{len(str(robots))}d}' for k in range(robots)]
    days = [(FIRST + timedelta(weeks=week)).isoformat() for week in range(logs)]
    wear = tuple(Wear(names[k], str(rng.choice(nominal.joint_names)),
                      days[int(rng.integers(logs // 3, 2 * logs // 3 + 1))])
                 for k in sorted(rng.choice(robots, worn, replace=False)))
    for name in names:
        parameters = _truth(nominal, rng)
        for day in days:
            worn_joint = next((one.joint for one in wear
                               if one.robot == name and one.since <= day), None)
            truth = perturbed_urdf(text, _on_one_day(parameters, worn_joint, rng))
            _write_log(folder / name / day, dynamics,
                       load_model(truth).standard_parameters, seconds, rng)
    _write_yaml(folder / 'truth.yaml', {'worn': [vars(one) for one in wear]})
    _write_yaml(folder / 'catalogue.yaml', {
        'robots': [{'name': name, 'urdf': 'robot.urdf', 'logs': f'{name}/*/*.npz'}
                   for name in names],
        'identify': {'friction': 'coulomb'}})
    return wear


def _nominal(urdf: str | Path) -> tuple[str, Model]:
    """Return the URDF of the robot with friction and rotors in every joint."""
    model = load_model(urdf)
    friction = model.link_friction + model.motor_friction
    truth = {'joints': {joint: {
        'damping': float(friction[k, 0]) or NOMINAL['damping'],
        'friction': float(friction[k, 1]) or NOMINAL['friction'],
        'armature': float(model.armature[k]) or NOMINAL['armature']}
        for k, joint in enumerate(model.body_joints)}}
    text = perturbed_urdf(model.description.urdf, truth)
    return text, load_model(text)


def _truth(model: Model, rng: np.random.Generator) -> dict[str, Any]:
    """Return random parameters of one robot, around those of its type."""
    joints = {joint: {'damping': float(model.link_friction[k, 0]),
                      'friction': float(model.link_friction[k, 1]),
                      'armature': float(model.armature[k])}
              for k, joint in enumerate(model.body_joints)}
    for values in joints.values():
        for key in values:
            values[key] *= float(np.exp(SPREAD * rng.normal()))
    links = {link.name: {'mass': link.inertial.mass * float(np.exp(MASS_SPREAD * rng.normal()))}
             for link in model.description.links if link.inertial and link.inertial.mass > 0}
    return {'joints': joints, 'links': links}


def _on_one_day(parameters: Mapping[str, Any], worn: str | None, rng: np.random.Generator,
                ) -> dict[str, Any]:
    """Return the parameters on one day: friction varies, and that of a worn joint is higher."""
    joints = {}
    for joint, values in parameters['joints'].items():
        factor = float(np.exp(FROM_LOG_TO_LOG * rng.normal())) * (WEAR if joint == worn else 1.0)
        joints[joint] = values | {key: values[key] * factor for key in ('damping', 'friction')}
    return {'joints': joints, 'links': parameters['links']}


def _write_log(folder: Path, dynamics: Dynamics, parameters: Array, seconds: float,
               rng: np.random.Generator) -> None:
    """Write a log of a random motion.

    The torques come from the regressor, so that no kernel is compiled for the parameters.
    """
    model = dynamics.model
    motion = sample_motion(model, seed=int(rng.integers(1 << 30)), period=seconds, harmonics=5)
    t, (q, qd, qdd, _) = motion.samples(RATE)
    tau = dynamics.regressor(q, qd, qdd) @ parameters
    tau += NOISE * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    folder.mkdir(parents=True)
    np.savez_compressed(folder / 'log.npz', t=t, q=q, tau=tau,
                        names=np.array(model.joint_names))


def _write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding='utf-8')
