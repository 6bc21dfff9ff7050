"""Writes what an identification found: parameters, URDF, motor data, pictures, report."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from robodyn_ros.errors import LogError
from robodyn_ros.identification import Result, Validation
from robodyn_ros.identification.writing import motors_of
from robodyn_ros.report.html import save_report
from robodyn_ros.report.plots import save_plots

PARAMETERS, URDF, MOTORS, REPORT = ('parameters.yaml', 'identified.urdf', 'motors.yaml',
                                    'report.html')


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
