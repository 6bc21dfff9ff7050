"""Identifies drive gains from currents, with a payload of known mass (Kolyubin remark 5.2).

The current of joint j is ``h_j W_j theta``, where h_j is the inverse of its drive gain. Logs
without and with a payload determine the gains up to a common factor, which the known mass fixes.
The centre of mass and the inertia of the payload are estimated together with the gains, since
assumed values would bias them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import scipy.stats

from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import IdentificationError, ValueRangeError, check_type
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.filter_choice import DECIMATED_PER_BAND, first_shape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.noise import Row, noise_order
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.pieces import pieces_of
from robodyn_ros.identification.settings import FilterSettings
from robodyn_ros.identification.signals import Filtering, design, motion_spectrum, segments_of
from robodyn_ros.identification.statistics import (
    CONFIDENCE,
    correlated_information,
    freedom_of,
)
from robodyn_ros.model import Model
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array, Inertial

SWEEPS = 30  # maximum number of Gauss-Newton steps
SETTLED = 1e-10  # relative change of the gains at which the iteration stops
WORST = 0.25  # largest relative standard deviation of a gain that is accepted
RIDGE = 1e-14  # regularisation relative to each column's square, for unexcited parameters


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Drive gains, and the payload with which they were identified.

    Attributes
    ----------
    joint_names : tuple of str
        The n joints.
    values, deviation : ndarray, shape (n,)
        Joint torque per unit of current, and its standard deviation, N m/A or N/A. The deviation
        takes the correlation of the residuals in time into account.
    interval : ndarray, shape (n, 2)
        95 % confidence intervals of the gains.
    payload : dict of str to float
        Estimated inertial parameters of the payload by name, in the frame of the joint that
        carries it.
    """

    joint_names: tuple[str, ...]
    values: Array
    deviation: Array
    interval: Array
    payload: dict[str, float]


def identify_drive_gains(model: Model, logs: Sequence[Log], payload: Inertial | float, link: str,
                         *, kind: str = 'lumped') -> DriveGains:
    """Identify drive gains from logs whose ``tau`` are currents.

    Parameters
    ----------
    model : Model
        The robot.
    logs : sequence of Log
        Logs with the payload (``loaded``) and logs without it; the motions must excite each joint.
    payload : float or Inertial
        Mass of the payload, kg; only the mass of an inertial is used.
    link : str
        The link that carries it.
    kind : str
        See `LinearModel`.

    Raises
    ------
    IdentificationError
        There is no log with the payload or none without it, or the logs do not determine the gain
        of a joint to 25 % of its value.
    ValueRangeError
        The mass is not positive.
    """
    check_type('payload', payload, (Inertial, Real), 'a mass in kg, or an Inertial')
    mass = payload.mass if isinstance(payload, Inertial) else float(payload)
    if not mass > 0:
        raise ValueRangeError('mass of the payload', mass, 'above 0 kg')
    if {log.loaded for log in logs} != {False, True}:
        raise IdentificationError('drive gains need logs with and without the payload')
    observations, columns, known, band = _equations(model, logs, mass, link, kind)
    w, current = _rows(observations)
    if any(not values.any() for values in current):
        raise IdentificationError('the current of a joint is always zero; valid: logs in which '
                                  'every joint has a measured current')
    theta, h, sigma = _start(w, current, columns, known)
    for _ in range(SWEEPS):
        normal, right, sigma = _normal(w, current, columns, known, theta, h)
        step = _solve(normal, right)
        theta, change = theta + step[:len(columns)], step[len(columns):]
        h = h + change
        if np.abs(safe_divide(change, h)).max() < SETTLED:
            break
    normal, _, sigma = _normal(w, current, columns, known, theta, h)
    deviation, interval = _uncertainty(observations, columns, known, theta, h, sigma, normal, band)
    values = safe_divide(1.0, h, at_zero=np.inf)
    poor = [joint for joint, value, spread in zip(model.joint_names, values, deviation,
                                                  strict=True)
            if not spread < WORST * abs(value)]
    if poor:
        raise IdentificationError(
            f'these logs do not determine the drive gains of {", ".join(poor)}; valid: motions '
            'in which the weight of the payload acts on these joints in different directions')
    names = observations.linear.names
    found = {names[k]: float(value) for k, value in zip(columns, theta, strict=True)
             if names[k].endswith(':payload')}
    return DriveGains(model.joint_names, values, deviation, interval, {'m:payload': mass, **found})


def _equations(model: Model, logs: Sequence[Log], mass: float, link: str, kind: str,
               ) -> tuple[Observations, list[int], Array, float]:
    """Return observations, columns to estimate, known parameters and the motion's band, Hz."""
    notes: list[str] = []
    pieces = [piece for log in logs for piece in pieces_of(log.for_model(model), notes)]
    spectrum = motion_spectrum(pieces)
    cutoff, order = design(pieces, spectrum, FilterSettings())
    # averaged periods have usable spectral lines up to a band of their own
    band = max([spectrum.band, *(p.average.band for p in pieces if p.average is not None)])
    decimation = DECIMATED_PER_BAND * band
    segments = segments_of(pieces, Filtering(spectrum.band, cutoff, order, decimation,
                                             decimation), notes)
    dynamics = Dynamics(model)
    linear = LinearModel(dynamics, kind, payload=link,
                         friction=first_shape(dynamics, segments, spectrum, cutoff))
    place = linear.names.index('m:payload')
    known = np.zeros(len(linear.columns))
    known[place] = mass
    columns = [k for k in base_parameters(linear).kept if k != place]
    return Observations(linear, segments, decimation=decimation), columns, known, band


def _rows(observations: Observations) -> tuple[list[Array], list[Array]]:
    """Return W, shape (N, p), and the currents, shape (N,), of every joint."""
    blocks = list(observations.blocks())
    return ([np.concatenate([b.w[b.used[:, j], j] for b in blocks])
             for j in range(observations.linear.rows)],
            [np.concatenate([b.tau[b.used[:, j], j] for b in blocks])
             for j in range(observations.linear.rows)])


def _start(w: list[Array], current: list[Array], columns: list[int], known: Array,
           ) -> tuple[Array, Array, Array]:
    """Solve ``i_j / h_j = W_j theta`` with currents i_j, linear in 1 / h_j and theta.

    The solution is biased by the noise of the currents.
    """
    n, b = len(w), len(columns)
    gram, right = np.zeros((b + n, b + n)), np.zeros(b + n)
    for j in range(n):
        rows = np.concatenate([w[j][:, columns], np.zeros((len(w[j]), n))], axis=1)
        rows[:, b + j] = -current[j]
        rows = rows / max(float(np.linalg.norm(current[j])), np.finfo(float).tiny)
        target = -(w[j] @ known) / float(np.linalg.norm(current[j]))
        gram += rows.T @ rows
        right += rows.T @ target
    solution = _solve(gram, right)
    return solution[:b], safe_divide(1.0, solution[b:], at_zero=1.0), np.ones(n)


def _normal(w: list[Array], current: list[Array], columns: list[int], known: Array, theta: Array,
            h: Array) -> tuple[Array, Array, Array]:
    """Return the normal equations of a Gauss-Newton step, and the residuals' deviations."""
    n, b = len(w), len(columns)
    gram, right, sigma = np.zeros((b + n, b + n)), np.zeros(b + n), np.zeros(n)
    for j in range(n):
        slope, residual = _slope(w[j], current[j], columns, known, theta, h, j)
        sigma[j] = np.sqrt(residual @ residual / max(len(residual), 1))
    sigma = np.maximum(sigma, 1e-9 * sigma.max())
    for j in range(n):
        slope, residual = _slope(w[j], current[j], columns, known, theta, h, j)
        places = [*range(b), b + j]
        gram[np.ix_(places, places)] += slope.T @ slope / sigma[j] ** 2
        right[places] += slope.T @ residual / sigma[j] ** 2
    return gram, right, sigma


def _slope(w: Array, current: Array, columns: list[int], known: Array, theta: Array, h: Array,
           j: int) -> tuple[Array, Array]:
    """Return the derivatives of the current of joint j, shape (N, b + 1), and the residual."""
    torque = w[:, columns] @ theta + w @ known
    return np.column_stack([h[j] * w[:, columns], torque]), current - h[j] * torque


def _uncertainty(observations: Observations, columns: list[int], known: Array, theta: Array,
                 h: Array, sigma: Array, normal: Array, band: float) -> tuple[Array, Array]:
    """Return standard deviations of the gains and 95 % intervals, shape (n,) and (n, 2).

    The noise of the currents is modelled as that of torques, see `uncertainty_of_blocks`.
    """
    n, b = len(h), len(columns)
    plain = _solve(normal, np.eye(b + n))
    blocks = list(observations.blocks())
    order, rows = noise_order(blocks, band), []
    for j in range(n):
        pieces = []
        for block in blocks:
            slope, residual = _slope(block.w[:, j], block.tau[:, j], columns, known, theta, h, j)
            use, x = block.used[:, j], np.zeros((len(block.t), b + n + 1))  # no delay: the last
            x[:, [*range(b), b + j]] = slope * use[:, None] / sigma[j]
            pieces.append((x, residual * use, use))
        rows.append(Row(j, float(sigma[j]), pieces, order))
    middle = correlated_information(rows, np.zeros((b + n + 1, b + n + 1)), plain)
    variance = np.diag(plain @ middle[:-1, :-1] @ plain)[b:]
    values = safe_divide(1.0, h, at_zero=np.inf)
    deviation = np.sqrt(np.maximum(variance, 0.0)) * values**2
    half = scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, freedom_of(rows, plain)[b:]) * deviation
    return deviation, np.column_stack([values - half, values + half])


def _solve(matrix: Array, right: Array) -> Array:
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = matrix / np.outer(scale, scale) + RIDGE * np.eye(len(matrix))
    solution = np.linalg.solve(scaled, (right.T / scale).T)
    return np.asarray((solution.T / scale).T)
