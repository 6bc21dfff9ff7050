"""Identifies what a robot holds, beside a model of the robot that is already known.

The torque that the known model leaves unexplained is linear in the payload's ten inertial
parameters. Errors of the model and changes of its friction under the load are further unknowns
with normal priors: the covariance of the identification, and a fraction of the friction. Logs
without the payload refine the model in the same estimate. The uncertainty therefore contains the
noise with its correlation in time, the uncertainty of the model and that of the friction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import NoneType
from typing import NamedTuple

import numpy as np
import scipy.linalg

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.errors import IdentificationError, ValueRangeError, check_type
from robodyn_ros.identification.consistency import (
    body_coordinates,
    consistent_body,
    pseudo_inertia,
)
from robodyn_ros.identification.estimation import Estimate, counts_of
from robodyn_ros.identification.identify import measured_pieces
from robodyn_ros.identification.log import Log, logs_of
from robodyn_ros.identification.model_uncertainty import ModelUncertainty
from robodyn_ros.identification.observations import factors_of, merge, triangular
from robodyn_ros.identification.payload_equations import Equations, equations_of
from robodyn_ros.identification.payload_result import IdentifiedPayload, body_of, deviations_of
from robodyn_ros.identification.settings import Settings
from robodyn_ros.identification.statistics import uncertainty_of_blocks
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

RADIUS = 0.15  # m, radius of gyration of the prior's reference body
WIDTH = 2.0  # standard deviation of the prior in each of the `body_coordinates`
LIGHTEST = 0.2  # kg, smallest mass of the prior's reference body
FRICTION_CHANGE = 0.3  # standard deviation of the change of friction, as a fraction of it
OFFSET_CHANGE = 0.1  # standard deviation of the change of its offset, as the same fraction
UNIDENTIFIED = 0.05  # fraction of a joint's torque that an unidentified parameter may explain
UNKNOWN_MODEL = 1.0  # the same if no parameter is identified, but logs without the payload exist
SWEEPS = 6  # iterations of the weights and of the prior's reference body


def identify_payload(model: Model | RobotDynamics, logs: Log | Sequence[Log], link: str, *,
                     without: Log | Sequence[Log] = (),
                     uncertainty: ModelUncertainty | None = None,
                     progress: Callable[[str], None] | None = None) -> IdentifiedPayload:
    """Estimate mass, centre of mass and inertia of a payload from logs with it.

    Parameters
    ----------
    model : Model or RobotDynamics
        The robot without the payload: identified, with friction, and with what its efforts mean.
    logs : Log or sequence of Log
        Logs with the payload: a motion, or some poses in which the robot rests. The latter
        determine mass and centre of mass alone.
    link : str
        The link that carries the payload; the result refers to its frame.
    without : Log or sequence of Log
        Logs without the payload, preferably of the same motion. They refine the model; with them,
        it need not be an identified one.
    uncertainty : ModelUncertainty, optional
        Uncertainty of the model. Without it and without logs of the bare robot, the model is
        taken to be exact except for its friction.
    progress : callable, optional
        Called with the name of each phase as it begins.

    Returns
    -------
    IdentifiedPayload
        The estimate, its uncertainty, and whether there is a payload at all.

    Raises
    ------
    LogError
        A log cannot be used.
    UnknownNameError
        The link or a joint does not exist.
    IdentificationError
        The logs contain no sample that could be used.
    ValueRangeError
        The measured efforts are external torques, or the base floats.
    """
    check_type('uncertainty', uncertainty, (ModelUncertainty, NoneType), 'a ModelUncertainty')
    report_progress = progress or (lambda phase: None)
    robot = dynamics_of(model)
    robot.model.require_fixed_base('identify a payload')
    robot.model.link_frame(link)
    if robot.model.effort.measured == 'external_torque':
        raise ValueRangeError('measured efforts', 'external torques', 'torque or current')
    notes: list[str] = []
    report_progress('reading and filtering')
    bare, loaded = ([replace(log, loaded=carries) for log in logs_of(some)]
                    for some, carries in ((without, False), (logs, True)))
    pieces = measured_pieces(robot, loaded + bare, Settings(payload=link), notes)
    report_progress('observation matrices')
    equations = equations_of(robot, pieces, link, notes=notes,
                             with_errors=uncertainty is not None or bool(bare))
    report_progress('estimate')
    found = _estimate(equations, _prior(equations, uncertainty))
    if uncertainty is None and not bare:
        notes.append('the accuracy of the model is not known: apart from its friction, it is '
                     'taken to be exact, and the intervals do not contain its errors')
    consistent = consistent_body(found.parameters, found.covariance, found.reference)
    return IdentifiedPayload.of(link, found.parameters, consistent, found.covariance,
                      deviations_of(found.reference, found.prior), tuple(notes))


class _Found(NamedTuple):
    """Inertial parameters (10,) and their covariance (10, 10) after and before the measurement.

    ``reference`` is the pseudo-inertia of the prior's reference body, shape (4, 4), and ``prior``
    the covariance of the prior around it, shape (10, 10).
    """

    parameters: Array
    covariance: Array
    reference: Array
    prior: Array


def _prior(equations: Equations, uncertainty: ModelUncertainty | None) -> Array:
    """Return the prior covariance of all unknowns except the payload's, (u - 10, u - 10)."""
    b = equations.errors
    friction = np.array([size * (OFFSET_CHANGE if term.startswith('off') else FRICTION_CHANGE)
                         for term, size in zip(equations.changes, equations.friction,
                                               strict=True)])
    if not b:
        return np.diag(friction**2)
    # an error of a parameter that was not identified may explain a part of the torque
    size = np.sqrt(sum((np.where(block.used[:, :, None], block.w[:, :, :b], 0.0)**2
                        / np.maximum(equations.torque, 1e-9)[:, None]**2).sum(axis=(0, 1))
                       for block in equations.blocks)
                   / max(counts_of(list(equations.blocks)).sum(), 1.0))
    part = UNKNOWN_MODEL if uncertainty is None else UNIDENTIFIED
    unknown = part / np.maximum(size, 1e-6)
    errors = np.diag(unknown**2) if uncertainty is None else uncertainty.of_parameters(
        equations.names[:b], unknown)
    return scipy.linalg.block_diag(errors, np.diag(friction**2))


def _estimate(equations: Equations, prior: Array) -> _Found:
    """Return the estimate of the payload by weighted least squares with the priors."""
    u = len(equations.names)
    blocks = list(equations.blocks)
    count = counts_of(blocks)
    if not count.sum() and not len(equations.rest_values):
        raise IdentificationError('no sample can be used: no joint moves or rests for long '
                                  'enough; valid: a longer log')
    factors = merge([factors_of(block) for block in blocks])
    fixed = np.vstack([
        np.column_stack([_root_of_inverse(prior), np.zeros((u - 10, 11))]),
        np.column_stack([equations.rest_rows, equations.rest_values])
        / equations.rest_deviation[:, None]])
    sigma = np.maximum(1e-2 * equations.torque, 1e-6)
    reference = _sphere(1.0, np.zeros(3))
    for _ in range(SWEEPS):
        shift, spread = body_coordinates(reference)
        body = np.zeros((10, u + 1))
        body[:, -11:-1] = np.linalg.inv(WIDTH * spread)
        body[:, -1] = body[:, -11:-1] @ shift
        known = np.vstack([fixed, body])
        stacked = np.vstack([(factors / sigma[:, None, None]).reshape(-1, u + 1), known])
        triangle = triangular(stacked)
        values = np.linalg.solve(triangle[:u, :u], triangle[:u, u]).astype(np.float64)
        residual = factors[:, :, :u] @ values - factors[:, :, u]
        sigma = np.where(count > 0, np.sqrt((residual**2).sum(axis=1) / np.maximum(count, 1)), 1.0)
        sigma = np.maximum(sigma, 1e-9 + 1e-9 * sigma.max())
        mass, centre, _ = body_of(values[-10:])
        reference = _sphere(max(mass, LIGHTEST), centre if mass > LIGHTEST else np.zeros(3))
    estimate = Estimate(values, sigma, triangle[:u, :u], count)
    statistics = uncertainty_of_blocks(blocks, equations.rate, range(u), equations.names,
                                       estimate, equations.band,
                                       further=known[:, :u].T @ known[:, :u])
    covariance = statistics.covariance[-10:, -10:]
    return _Found(values[-10:] + statistics.shift[-10:], covariance, reference,
                  WIDTH**2 * spread @ spread.T)


def _root_of_inverse(covariance: Array) -> Array:
    """Return R with ``R'R`` the inverse of a covariance.

    Eigenvalues that round-off made negative are raised to a small positive value.
    """
    if not len(covariance):
        return covariance
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0, scale, 1e-12)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    values = np.maximum(values, 1e-9)
    return np.asarray((vectors / np.sqrt(values)).T / scale)


def _sphere(mass: float, centre: Array) -> Array:
    """Return the pseudo-inertia of a sphere with a mass, kg, and a centre of mass, m."""
    tensor = 2 * RADIUS**2 / 3 * np.eye(3) + centre @ centre * np.eye(3) - np.outer(centre, centre)
    return pseudo_inertia(mass * np.array([
        tensor[0, 0], tensor[0, 1], tensor[0, 2], tensor[1, 1], tensor[1, 2], tensor[2, 2], 1.0,
        *centre]))
