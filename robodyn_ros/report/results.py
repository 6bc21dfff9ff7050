"""The whole way of an identification: estimate, proof, and everything that is written of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from robodyn_ros.dynamics import ClosedLoopDynamics
from robodyn_ros.errors import LogError, ValueRangeError
from robodyn_ros.identification import Log, Result, Settings, Validation, identify, validate
from robodyn_ros.identification.writing import motors_of
from robodyn_ros.model import Model
from robodyn_ros.report.html import save_report
from robodyn_ros.report.plots import save_plots

PARAMETERS, URDF, MOTORS, REPORT = ('parameters.yaml', 'identified.urdf', 'motors.yaml',
                                    'report.html')


PHASES = ('reading and filtering', 'friction', 'base parameters', 'observation matrices',
          'estimate', 'statistics', 'physical consistency', 'proof on other data', 'writing')


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out, and where it is written."""

    result: Result
    proof: Validation
    consistent: Validation
    files: tuple[Path, ...]


def identify_and_write(model: Model | ClosedLoopDynamics, logs: Sequence[Log],
                       proof: Sequence[Log], settings: Settings, folder: str | Path, *,
                       command: str = '',
                       progress: Callable[[str], None] | None = None) -> Outcome:
    """Identify from logs, prove on others, write all of it.

    Parameters
    ----------
    model : Model or ClosedLoopDynamics
        The nominal robot.
    logs, proof : sequence of Log
        For the fit, and for the proof.
    settings : Settings
        How.
    folder : str or Path
        Of the results.
    command : str
        That makes this again, for the report.
    progress : callable, optional
        Told each of `PHASES`; what it raises ends the work.

    Raises
    ------
    RobodynError
        The logs cannot be used, or nothing can be written.
    """
    tell = progress or (lambda phase: None)
    result = identify(model, list(logs), settings, progress=tell)
    tell(PHASES[-2])
    proven = validate(result, list(proof))
    consistent = validate(result, list(proof), consistent=True)
    tell(PHASES[-1])
    files = write_results(result, proven, consistent, folder, command=command,
                          proven_on=[log.source for log in proof])
    return Outcome(result, proven, consistent, tuple(files))


def shares(logs: Sequence[Log], share: float) -> tuple[list[Log], list[Log]]:
    """Split logs: the first share of each for the fit, the rest for the proof.

    Raises
    ------
    ValueRangeError
        The share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueRangeError('share', share, 'between 0 and 1')
    parts = [log.split(share) for log in logs]
    return [first for first, _ in parts], [second for _, second in parts]


def write_results(result: Result, proof: Validation, consistent: Validation,
                  folder: str | Path, *, proven_on: Sequence[str] = (),
                  command: str = '') -> list[Path]:
    """Write everything to a folder, whole files or none; return their paths.

    Parameters
    ----------
    result, proof, consistent, proven_on, command
        As of `save_report`.
    folder : str or Path
        Made where it does not exist.

    Raises
    ------
    LogError
        Something cannot be written.
    """
    folder = Path(folder)
    fresh = folder / '.writing'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        result.save(fresh / PARAMETERS, proof)
        if result.model.description.urdf:
            result.write_urdf(fresh / URDF)
        (fresh / MOTORS).write_text(yaml.safe_dump(motors_of(result.model), sort_keys=False),
                                    encoding='utf-8')
        save_plots(result, proof, fresh)
        save_report(result, proof, consistent, fresh / REPORT, proven_on=proven_on,
                    command=command)
        written = [path.replace(folder / path.name) for path in sorted(fresh.iterdir())]
        fresh.rmdir()
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise LogError(f'cannot be written: {error.strerror or error}',
                       source=str(folder)) from None
    return written
