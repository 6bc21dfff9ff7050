"""The task of a worker: it identifies a robot from one log and returns the result as rows."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from robodyn_ros._version import __version__
from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.errors import RobodynError
from robodyn_ros.experiment.results import split_logs
from robodyn_ros.files import sha256_of
from robodyn_ros.fleet.catalogue import FleetLog, FleetRobot
from robodyn_ros.identification import Settings, identify, read_log, validate
from robodyn_ros.identification.merging import LogFactors, log_factors
from robodyn_ros.model import load_model
from robodyn_ros.packages import package

MOST_ROBOTS = 8  # robots whose compiled dynamics a worker keeps

Row = dict[str, Any]
_ROBOTS: dict[str, RobotDynamics] = {}


@dataclass(frozen=True)
class Task:
    """One log of a robot, and how to identify the robot from it."""

    robot: FleetRobot
    log: FleetLog
    settings: Settings
    fit_fraction: float

    def about(self) -> Row:
        """Return the columns that tell which robot and which log a row belongs to."""
        return {'robot': self.robot.name, 'type': self.robot.type, 'log': self.log.url,
                'date': self.log.date, 'version': __version__}


@dataclass(frozen=True)
class Done:
    """The outcome of a task.

    Attributes
    ----------
    key : str
        SHA-256 of everything that the result depends on: the content of the log and of the
        robot's files, the settings and the version of this package.
    rows : list of dict or None
        One row for each base parameter, or a single row with the reason why there are none; None
        if the result of this key is known already.
    factors : LogFactors, optional
        What a fit of all logs of the robot needs of this one; None where there is no estimate.
    """

    key: str
    rows: list[Row] | None
    factors: LogFactors | None = None


def work(task: Task, known: frozenset[str]) -> Done:
    """Identify a robot from one log, unless the result is known.

    A fault of the log or of the robot's files raises no error: the result is a row with the
    reason.

    Parameters
    ----------
    task : Task
        What to do.
    known : frozenset of str
        Keys of the existing results.
    """
    with tempfile.TemporaryDirectory(prefix='robodyn_fleet_') as folder:
        hashes: dict[str, str] = {}
        factors = None
        try:
            files = {kind: _local(url, Path(folder) / kind) for kind, url in task.robot.files}
            log = _local(task.log.url, Path(folder) / 'log')
            hashes = {kind: hash_of(path) for kind, path in files.items()}
            hashes['log'] = hash_of(log)
            key = _key(task, hashes)
            if key in known:
                return Done(key, None)
            rows, factors = _identified(task, files, log, hashes)
        except Exception as error:  # readers of damaged files raise errors of any kind
            words = str(error) if isinstance(error, RobodynError) else \
                f'{type(error).__name__}: {error}'
            key = _key(task, hashes)
            rows = [{'status': 'bad', 'reason': words[:2000]}]
    about = task.about() | {'key': key, 'log_sha256': hashes.get('log', ''),
                            'urdf_sha256': hashes.get('urdf', '')}
    return Done(key, [about | row for row in rows], factors)


def lost(task: Task, reason: str) -> Done:
    """Return the outcome of a task whose workers died."""
    key = _key(task, {})
    return Done(key, [task.about() | {'key': key, 'status': 'bad', 'reason': reason}])


def _key(task: Task, hashes: dict[str, str]) -> str:
    facts = [task.robot.name, task.log.url, task.log.date, sorted(hashes.items()),
             asdict(task.settings), task.fit_fraction, __version__]
    return hashlib.sha256(json.dumps(facts, default=list).encode()).hexdigest()


def _local(url: str, target: Path) -> Path:
    """Return the path of a file on this machine; a file at a URL is copied."""
    if '://' not in url:
        return Path(url)
    files, path = package('fsspec').core.url_to_fs(url)
    place = target / Path(path).name
    target.mkdir()
    files.get(path, str(place), recursive=True)
    return place


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names."""
    if not path.is_dir():
        return sha256_of(path)
    inner = [(str(file.relative_to(path)), sha256_of(file))
             for file in sorted(path.rglob('*')) if file.is_file()]
    return hashlib.sha256(json.dumps(inner).encode()).hexdigest()


def _robot(files: dict[str, Path], hashes: dict[str, str]) -> RobotDynamics:
    """Return the robot of some files; its compiled dynamics are kept for the next log."""
    key = ' '.join(f'{kind} {hashes[kind]}' for kind in files)
    if key not in _ROBOTS:
        while len(_ROBOTS) >= MOST_ROBOTS:
            del _ROBOTS[next(iter(_ROBOTS))]
        _ROBOTS[key] = dynamics_of(load_model(files['urdf'], motors=files.get('motors')),
                                   files.get('loops'))
    return _ROBOTS[key]


def _identified(task: Task, files: dict[str, Path], log: Path, hashes: dict[str, str],
                ) -> tuple[list[Row], LogFactors]:
    """Return the rows and factors of one log, from the same steps as in `robodyn identify`."""
    robot = _robot(files, hashes)
    measured = read_log(log, robot, files.get('format'))
    fit, held_out = split_logs([measured], task.fit_fraction)
    result = identify(robot, fit, task.settings)
    validation = validate(result, held_out)
    joints: Sequence[str] = validation.joint_names
    errors = dict(zip(joints, validation.relative_error.tolist(), strict=True))
    common = {'status': 'ok', 'verdict': validation.verdict, 'reason': '; '.join(
        validation.reasons), 'total_error': float(validation.total),
        'condition': float(result.uncertainty_.condition)}
    rows = []
    for row in result.rows():
        name = row['parameter']
        joint = name.partition(':')[2]
        rows.append(common | {
            'parameter': name, 'joint': joint, 'estimate': row['estimate'],
            'standard_deviation': row['standard_deviation'],
            'interval_lower': row['interval_lower'], 'interval_upper': row['interval_upper'],
            'nominal': row['nominal'], 'significant': row['significant'],
            'expression': row['expression'], 'joint_error': errors.get(joint)})
    return rows, log_factors(result)
