"""Produces the results of a run from its logs: estimate, validation, and all result files."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.dynamics.efforts import effort_factors, measured_model
from robodyn_ros.errors import LogError, ValueRangeError
from robodyn_ros.identification import (
    Log,
    Result,
    Settings,
    Thresholds,
    Validation,
    identify,
    reduce,
    save_motors,
    save_parameters,
    validate,
    write_urdf,
)
from robodyn_ros.model import Model
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.observation.fitting import thresholds_of
from robodyn_ros.observation.health import expected_residual
from robodyn_ros.report.figures import figures_of
from robodyn_ros.report.html import save_report
from robodyn_ros.report.pictures import pictures_of, save_pictures
from robodyn_ros.report.record import Record
from robodyn_ros.spatial import Array

PARAMETERS, URDF, MOTORS, REPORT = ('parameters.yaml', 'identified.urdf', 'motors.yaml',
                                    'report.html')
SIGNIFICANT = 'significant.yaml'  # the estimate of the significant parameters alone
LOOPS = 'loops.yaml'  # the cuts of a description with closed loops
RESIDUAL = 'residual.npz'  # the residual model
Motion = tuple[Array, Array, Array, Array]  # t, q, qd, tau
FIT_FRACTION = 0.7  # first part of a log that is used for the fit if the rest validates it
PHASES = ('reading and filtering', 'filters', 'friction', 'base parameters',
          'observation matrices', 'estimate', 'statistics', 'torque ripple',
          'physical consistency',
          'residual model', 'validation on other data', 'writing')


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a run, its validation, and the files that were written.

    Attributes
    ----------
    result : Result
        The identified robot.
    validation, consistent : Validation
        Its validation with the unconstrained and with the physically consistent parameters.
    files : tuple of Path
        The files.
    reduced : Result or None
        The estimate of the significant parameters alone, on request.
    """

    result: Result
    validation: Validation
    consistent: Validation
    files: tuple[Path, ...]
    reduced: Result | None = None

    def why_not_apply(self, force: bool = False) -> str:
        """Return why the model must not be applied to running nodes; empty if it may.

        Parameters
        ----------
        force : bool
            Apply a model regardless of its validation.
        """
        if URDF not in (path.name for path in self.files):
            return 'there is no URDF of the identified model'
        if self.validation.verdict != 'good' and not force:
            return f'the verdict of the validation is {self.validation.verdict}'
        return ''

    def text(self, name: str) -> str:
        """Return the content of one of the files."""
        return next(path for path in self.files if path.name == name).read_text(encoding='utf-8')


def identify_and_write(model: Model | RobotDynamics, logs: Sequence[Log],
                       held_out: Sequence[Log], settings: Settings, folder: str | Path, *,
                       command: str = '', thresholds: Thresholds | None = None,
                       record: Record | None = None, reduced: bool = False,
                       progress: Callable[[str], None] | None = None) -> Outcome:
    """Identify from logs, validate on others, and write everything to a folder.

    Parameters
    ----------
    model : Model or RobotDynamics
        The nominal robot.
    logs, held_out : sequence of Log
        Logs for the fit, and logs for the validation.
    settings : Settings
        Settings of the identification.
    folder : str or Path
        Folder for the results.
    command : str
        The command that repeats the run, for the report.
    thresholds : Thresholds, optional
        Thresholds of the verdict.
    record : Record, optional
        Facts about the robot and the measurement for the report.
    reduced : bool
        Whether the significant parameters are also estimated alone (Kolyubin 5.24).
    progress : callable, optional
        Called with each of `PHASES` as it begins; an exception that it raises ends the run.

    Raises
    ------
    RobodynError
        The logs cannot be used, or the results cannot be written.
    """
    report_progress = progress or logging.getLogger(__name__).info
    result = identify(model, list(logs), settings, progress=report_progress)
    report_progress(PHASES[-2])
    validation = validate(result, list(held_out), thresholds=thresholds)
    consistent = validate(result, list(held_out), consistent=True, thresholds=thresholds)
    report_progress(PHASES[-1])
    fewer = reduce(result) if reduced else None
    motions = free_motions(result, held_out)
    files = write_results(result, validation, consistent, folder, command=command,
                          record=record, contact=contact_section(result, motions),
                          residual=residual_section(result, motions), reduced=fewer)
    return Outcome(result, validation, consistent, tuple(files), fewer)


def split_logs(logs: Sequence[Log], fraction: float) -> tuple[list[Log], list[Log]]:
    """Split logs: the first fraction of each for the fit, the rest for the validation.

    Raises
    ------
    ValueRangeError
        If the fraction is not between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise ValueRangeError('fraction', fraction, 'between 0 and 1')
    parts = [log.split(fraction) for log in logs]
    return [first for first, _ in parts], [second for _, second in parts]


def free_motions(result: Result, logs: Sequence[Log]) -> list[Motion]:
    """Return (t, q, qd, tau) of each log if the model alone must explain all torques, else [].

    This is so for logs with measured velocities, without a payload and known extra torques, of a
    robot without closed loops, and of a kind of identification that explains the torques of all
    joints.
    """
    robot, settings = result.linear.whole, result.settings
    special = any(log.extra is not None or log.loaded or log.qd is None for log in logs)
    if robot.cuts or special or result.linear.kind not in JOINT_TORQUE_KINDS or \
            settings.joints is not None or settings.torques_of is not None:
        return []
    names = robot.joints.joint_names
    ready = [log.for_model(robot.model, joints=names) for log in logs]
    factors = effort_factors(robot.model, names)
    return [(np.asarray(log.t), np.asarray(log.q), np.asarray(log.qd),
             np.asarray(log.tau) @ factors) for log in ready]


def contact_section(result: Result, motions: Sequence[Motion]) -> dict[str, Any] | None:
    """Return thresholds of contacts from `free_motions` of logs outside the fit, or None."""
    try:
        return thresholds_of(_measured(result), motions).to_dict() if motions else None
    except ValueRangeError:  # too short for the filters
        return None


def residual_section(result: Result, motions: Sequence[Motion]) -> dict[str, float] | None:
    """Return the residual of each joint in `free_motions`, see `expected_residual`, or None."""
    found = expected_residual(_measured(result), motions) if motions else None
    return None if found is None else dict(zip(
        result.linear.whole.joints.joint_names, found.tolist(), strict=True))


def _measured(result: Result) -> RobotDynamics:
    """Return the dynamics of the measured torques."""
    return result.linear.whole.with_model(measured_model(result.model))


def write_results(result: Result, validation: Validation, consistent: Validation,
                  folder: str | Path, *, command: str = '',
                  record: Record | None = None,
                  contact: dict[str, Any] | None = None,
                  residual: dict[str, float] | None = None,
                  reduced: Result | None = None) -> list[Path]:
    """Write everything to a folder, either all files or none.

    Parameters
    ----------
    result, validation, consistent, command, record
        See `save_report`.
    folder : str or Path
        The folder; it is created if it does not exist.
    contact : dict, optional
        Thresholds of contacts for the motor file, see `contact_section`.
    residual : dict, optional
        Expected residuals for the motor file, see `residual_section`.
    reduced : Result, optional
        The estimate of the significant parameters alone.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    LogError
        A file cannot be written.
    """
    folder = Path(folder)
    fresh = folder / '.writing'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        save_parameters(result, fresh / PARAMETERS, validation)
        if result.residual_ is not None:
            result.residual_.save(fresh / RESIDUAL)
        if reduced is not None:
            save_parameters(reduced, fresh / SIGNIFICANT)
        if result.model.description.urdf:
            write_urdf(result.model, fresh / URDF,
                       loops=fresh / LOOPS if result.model.description.cuts else None)
        save_motors(result.model, fresh / MOTORS, contact, residual)
        figures = figures_of(result, validation)
        pictures = pictures_of(figures)
        save_pictures(pictures, fresh)
        save_report(result, validation, consistent, fresh / REPORT, figures, pictures,
                    command=command, record=record)
        return [path.replace(folder / path.name) for path in sorted(fresh.iterdir())]
    except OSError as error:
        raise LogError(f'cannot be written: {error.strerror or error}',
                       source=str(folder)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
