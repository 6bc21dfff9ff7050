"""Drive gains from currents, with a known payload (Kolyubin remark 5.2).

``g_j i_j = W_j theta`` fixes the gains up to one common factor; a payload of known mass, centre
and inertia, on in some of the logs, fixes that too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.description import Array, Inertial
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.linear_model import FrictionShape, LinearModel
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.observations import Observations, factors_of, merge
from robodyn_ros.identification.signals import FilterSettings, segments_of
from robodyn_ros.model import Model
from robodyn_ros.rigid_body import rigid_parameters, transform_rigid

SWEEPS = 10


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Joint torque per unit of current, shape (n,), N m/A; and their standard deviations."""

    joint_names: tuple[str, ...]
    values: Array
    deviation: Array


def identify_drive_gains(model: Model, logs: list[Log], payload: Inertial, link: str, *,
                         kind: str = 'lumped') -> DriveGains:
    """Identify drive gains from logs whose ``tau`` are currents.

    Parameters
    ----------
    model : Model
        The robot.
    logs : list of Log
        Some with the payload (``loaded``), some without; the motions must excite each joint.
    payload : Inertial
        Of the payload, in the frame of ``link``.
    link : str
        What carries it.
    kind : str
        See `LinearModel`.

    Raises
    ------
    IdentificationError
        No log with, or none without the payload; a joint whose gain the logs do not tell.
    """
    if {log.loaded for log in logs} != {False, True}:
        raise IdentificationError('drive gains need logs with and without the payload')
    notes: list[str] = []
    segments = [segment for log in logs
                for segment in segments_of(log.for_model(model), FilterSettings(), notes)]
    shape = FrictionShape('coulomb', 0.0, np.ones(model.n))
    linear = LinearModel(Dynamics(model), kind, friction=shape, payload=link)
    load = [k for k, column in enumerate(linear.columns) if column.body < 0]
    kept = [k for k in base_parameters(LinearModel(linear.dynamics, kind, friction=shape)).kept]
    observations = Observations(linear, segments)
    factors = merge([factors_of(block) for block in observations.blocks()])
    frame = model.link_frame(link)
    known = transform_rigid(rigid_parameters(payload), frame.rotation, frame.translation)
    n, b = model.n, len(kept)
    sigma = np.ones(n)
    counts = np.sum([block.used.sum(axis=0) for block in observations.blocks()], axis=0)
    solution, covariance = np.zeros(b + n), np.zeros((b + n, b + n))
    for _ in range(SWEEPS):
        rows, right = [], []
        for j in range(n):
            gain = np.zeros((len(factors[j]), n))
            gain[:, j] = -factors[j][:, -1]
            rows.append(np.concatenate([factors[j][:, kept], gain], axis=1) / sigma[j])
            right.append(-factors[j][:, load] @ known / sigma[j])
        w, target = np.concatenate(rows), np.concatenate(right)
        scale = np.linalg.norm(w, axis=0)
        if (scale == 0).any():
            raise IdentificationError('a joint whose current is zero throughout')
        solution = np.linalg.lstsq(w / scale, target, rcond=1e-10)[0] / scale
        residual = (w @ solution - target).reshape(n, -1) * sigma[:, None]
        # in units of torque: the residual of each joint
        sigma = np.sqrt((residual**2).sum(axis=1) / np.maximum(counts, 1))
        sigma = np.maximum(sigma, 1e-9 * sigma.max())
        inverse = np.linalg.pinv(w / scale) / scale[:, None]
        covariance = inverse @ inverse.T
    return DriveGains(model.joint_names, solution[b:], np.sqrt(np.diag(covariance)[b:]))
