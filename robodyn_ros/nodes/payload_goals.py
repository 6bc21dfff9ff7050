"""Converts between messages of the action `IdentifyPayload` and its goal, status and outcome."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from robodyn_interfaces.action import IdentifyPayload
from robodyn_interfaces.srv import SetPayload
from robodyn_ros.experiment.payload_goal import PayloadGoal
from robodyn_ros.experiment.payload_procedure import PayloadOutcome
from robodyn_ros.experiment.procedure import Status
from robodyn_ros.identification import IdentifiedPayload
from robodyn_ros.identification.payload_result import FOUND


def goal_of(message: IdentifyPayload.Goal) -> PayloadGoal:
    """Return the goal of a message."""
    values: dict[str, Any] = {}
    for field in fields(PayloadGoal):
        value = getattr(message, field.name)
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return PayloadGoal(**values)


def feedback_of(status: Status, joint_names: tuple[str, ...]) -> IdentifyPayload.Feedback:
    """Return a status as a message."""
    return IdentifyPayload.Feedback(phase=status.phase, progress=float(status.progress),
                                    tracking_error=[float(x) for x in status.tracking])


def request_of(found: IdentifiedPayload) -> SetPayload.Request:
    """Return the request that sets a payload."""
    request = SetPayload.Request(link=found.link)
    body, inertia = request.inertia, found.usable_inertia
    body.m = found.mass
    body.com.x, body.com.y, body.com.z = (float(x) for x in found.com)
    for row, column in zip(*np.triu_indices(3), strict=True):
        setattr(body, f'i{"xyz"[row]}{"xyz"[column]}', float(inertia[row, column]))
    return request


def fill(message: IdentifyPayload.Result, outcome: PayloadOutcome) -> None:
    """Write the outcome into a result message."""
    found = outcome.payload
    message.state, message.summary = found.state, found.summary()
    message.notes, message.requests = list(found.notes), outcome.requests
    if found.state == FOUND:
        message.inertia = request_of(found).inertia
    rows = found.rows()
    message.parameter = [row['parameter'] for row in rows]
    for name in ('value', 'standard_deviation', 'interval_lower', 'interval_upper', 'determined'):
        setattr(message, name, [row[name] for row in rows])
