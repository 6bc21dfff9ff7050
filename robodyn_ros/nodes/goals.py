"""Converts between messages of the action `IdentifyDynamics` and `Goal`, `Status`, `Outcome`."""

from __future__ import annotations

from array import array
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_interfaces.action import IdentifyDynamics
from robodyn_ros.experiment.goal import Goal
from robodyn_ros.experiment.procedure import Status
from robodyn_ros.experiment.results import URDF, Outcome


def goal_of(message: IdentifyDynamics.Goal) -> Goal:
    """Return the goal of a message."""
    values: dict[str, Any] = {}
    for field in fields(Goal):
        value = getattr(message, field.name)
        values[field.name] = tuple(value) if isinstance(value, (list, array)) else value
    return Goal(**values)


def feedback_of(status: Status, joint_names: tuple[str, ...]) -> IdentifyDynamics.Feedback:
    """Return a status as a message."""
    return IdentifyDynamics.Feedback(
        phase=status.phase, progress=float(status.progress), samples=status.samples,
        condition=float(status.condition) if np.isfinite(status.condition) else 0.0,
        joint=list(joint_names) if len(status.unexplained) else [],
        residual=[float(x) for x in status.unexplained],
        tracking_error=[float(x) for x in status.tracking])


def fill(message: IdentifyDynamics.Result, outcome: Outcome) -> None:
    """Write the outcome of an identification into a result message."""
    found, validation = outcome.result, outcome.validation
    base, u = found.base_, found.uncertainty_
    message.verdict, message.reasons = validation.verdict, list(validation.reasons)
    message.notes = list(found.notes)
    message.base_parameter = list(base.names)
    message.value = found.estimate_.values.tolist()
    message.standard_deviation = u.deviation.tolist()
    message.nominal = (base.matrix @ found.linear.nominal()).tolist()
    message.significant = [name in found.significant_ for name in base.names]
    message.condition = float(u.condition)
    message.joint = list(validation.joint_names)
    message.identification_error = found.training_.relative_error.tolist()
    message.validation_error = validation.relative_error.tolist()
    message.validation_error_filtered = validation.relative_error_filtered.tolist()
    message.validation_error_nominal = validation.nominal.tolist()
    message.durbin_watson = u.durbin_watson.tolist()
    message.physically_consistent = any(path.name == URDF for path in outcome.files)
    message.inconsistent_bodies = list(found.inconsistent_bodies_)
    if outcome.reduced is not None:
        fewer = outcome.reduced
        message.reduced_parameter = list(fewer.base_.names)
        message.reduced_value = fewer.estimate_.values.tolist()
        message.reduced_standard_deviation = fewer.uncertainty_.deviation.tolist()


def list_files(message: Any, folder: Path, recordings: list[str]) -> None:
    """Write into the result of a run what its folder contains, and which logs can be used."""
    message.folder = str(folder)
    message.files = sorted(str(path.relative_to(folder))
                           for path in folder.rglob('*') if path.is_file())
    if not message.success and recordings:
        message.reasons = [*message.reasons, 'the recordings can be used as log '
                           + ', '.join(recordings)]
