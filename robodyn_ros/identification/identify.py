"""Identification from logs to an identified robot: `identify` and `reduce`."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.dynamics.efforts import effort_factors, measured_dynamics
from robodyn_ros.errors import IdentificationError, UnknownNameError, check_type
from robodyn_ros.identification.base_parameters import BaseParameters, base_parameters
from robodyn_ros.identification.consistency import consistent_estimate, inconsistent_bodies
from robodyn_ros.identification.effort_test import effort_notes
from robodyn_ros.identification.estimation import (
    Estimate,
    counts_of,
    instrumental_variables,
)
from robodyn_ros.identification.excited import excited, of_joints_at_rest, only
from robodyn_ros.identification.filter_choice import (
    FilterChoice,
    choose_filters,
    first_shape,
)
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.friction_choice import friction_for
from robodyn_ros.identification.identified_model import identified_model
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.log import Log, logs_of
from robodyn_ros.identification.methods import estimate_by
from robodyn_ros.identification.methods.problem import Problem
from robodyn_ros.identification.observations import Observations, factors_of, merge
from robodyn_ros.identification.pieces import Piece, Spectrum, pieces_of
from robodyn_ros.identification.remarks import remarks
from robodyn_ros.identification.residual_model import residual_model
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.ripple import known_ripple, lost_ripple
from robodyn_ros.identification.ripple_choice import with_ripple
from robodyn_ros.identification.settings import SettingOptions, Settings, known_parameters
from robodyn_ros.identification.shrinkage import drawn_estimate
from robodyn_ros.identification.signals import (
    Segment,
    describe,
    motion_spectrum,
    segments_of,
)
from robodyn_ros.identification.statistics import Uncertainty, significant, uncertainty_of
from robodyn_ros.keywords import checked_options
from robodyn_ros.model import Model
from robodyn_ros.numerics import one_blas_thread, safe_divide
from robodyn_ros.spatial import Array

if TYPE_CHECKING:
    from typing_extensions import Unpack

FOLDS = 3  # contiguous parts of the data for the cross-validation of the prior
FIRST_WIDTH = 0.03  # rad/s, width of the smooth sign while the filters are chosen


@checked_options(Settings)
@one_blas_thread
def identify(model: Model | RobotDynamics, logs: Log | Sequence[Log],
             settings: Settings | None = None, *,
             progress: Callable[[str], None] | None = None,
             **single: Unpack[SettingOptions]) -> Result:
    """Identify a robot from measured logs.

    Parameters
    ----------
    model : Model or RobotDynamics
        The nominal robot. With closed loops, the logs hold its independent joints.
    logs : Log or sequence of Log
        Logs for the fit; `validate` evaluates the result on other logs.
    settings : Settings, optional
        Settings of the identification. Single settings can also be given as keywords.
    progress : callable, optional
        Called with the name of each phase as it begins.

    Returns
    -------
    Result
        The parameters with their uncertainty, and the identified model.

    Raises
    ------
    LogError
        If a log cannot be used.
    IdentificationError
        If the logs do not determine any parameter.
    UnknownNameError
        If a joint, link or setting does not exist.
    """
    check_type('settings', settings, (Settings, NoneType), 'a Settings')
    chosen = replace(settings or Settings(), **single)
    report_progress = progress or logging.getLogger(__name__).info
    notes: list[str] = []
    every = logs_of(logs)
    report_progress('reading and filtering')
    dynamics = dynamics_of(model)
    dynamics.model.require_fixed_base('identify (identify_floating_base supports it)')
    nominal, dynamics = dynamics.model, measured_dynamics(dynamics)
    if chosen.friction == 'auto' and nominal.effort.friction == 'removed':
        chosen = replace(chosen, friction='none')
    pieces = measured_pieces(dynamics, every, chosen, notes)
    spectrum = motion_spectrum(pieces)
    report_progress('filters')
    options = sample_options(dynamics, chosen)
    filters, segments = _filters(dynamics, pieces, spectrum, chosen, options, notes)
    whole = dynamics
    if nominal.effort.gravity == 'removed':  # the log may nevertheless contain it
        whole = dynamics.with_model(replace(dynamics.model, gravity=nominal.gravity))
    notes += effort_notes(whole, segments)
    report_progress('friction')
    shape = first_shape(dynamics, segments, spectrum, filters.filtering.cutoff)
    wanted = chosen
    if options['slow'].any() and chosen.friction_width is None:
        wanted = replace(chosen, friction_width=0.0)  # joints that stick would seem to show one
    choice = friction_for(dynamics, segments, shape, filters.filtering, wanted, options, notes)
    report_progress('base parameters')
    linear = LinearModel(dynamics, chosen.kind, friction=choice.shape, joints=chosen.joints,
                         payload=chosen.payload)
    base = base_parameters(linear, torques_of=chosen.torques_of)
    if chosen.torques_of is not None:
        notes += _without_torques(linear, base)
    report_progress('observation matrices')
    observations = Observations(linear, segments, decimation=filters.filtering.decimation,
                                known=known_parameters(chosen), **options)
    if chosen.friction != 'auto':
        observations = observations.with_ripple(known_ripple(linear))
        linear = observations.linear
    blocks = list(observations.blocks())
    folds = [factors_of(block, part) for block in blocks
             for part in _parts(len(block.t), max(1, -(-FOLDS // len(blocks))))]
    at_rest = np.append(of_joints_at_rest(linear, segments), False)
    for fold in folds:
        fold[:, :, at_rest] = 0.0
    base = excited(base, merge(folds), observations.known, notes)
    report_progress('estimate')
    problem = Problem(observations, base.kept, folds, counts_of(blocks))
    estimate = estimate_by(chosen.method, problem)
    report_progress('statistics')
    found = _judged(observations, base, estimate, filters.filtering.band)
    if chosen.friction == 'auto' and chosen.method == 'weighted' and chosen.payload is None:
        drawn = drawn_estimate(observations, base, found.estimate_, found.uncertainty_)
        found.theta_[list(base.kept)] = drawn.values
        notes += drawn.words
    if chosen.friction == 'auto':
        report_progress('torque ripple')
        observations = with_ripple(observations, found.theta_, notes)
        linear = observations.linear
    notes += lost_ripple(linear)
    report_progress('physical consistency')
    consistent = consistent_estimate(linear, problem.around(estimate), estimate.sigma,
                                     prior=chosen.prior, known=observations.known)
    notes += remarks(found.uncertainty_, base, found.estimate_, found.bias_)
    residual = None
    if chosen.residual_model != 'none':
        report_progress('residual model')
        beyond = residual_model(observations, base.kept, found.theta_)
        residual = beyond.torque
        notes.append(beyond.to_text())
    return Result(chosen, linear, base, *found, consistent,
                  tuple(inconsistent_bodies(linear, found.theta_)),
                  _restored(identified_model(linear, consistent, observations), nominal, chosen),
                  filters.filtering, filters, choice, observations,
                  tuple((log.source, digest_of(log)) for log in every), tuple(notes), residual)


def reduce(result: Result, *, relative: float | None = None) -> Result:
    """Keep only the significant base parameters and estimate them again (Kolyubin 5.24).

    Parameters
    ----------
    result : Result
        The result of `identify`.
    relative : float, optional
        Keep the parameters whose standard deviation is below this fraction of their value. By
        default the F test decides, see ``result.significant_``.

    Returns
    -------
    Result
        A result with fewer base parameters and the same physically consistent model.

    Raises
    ------
    IdentificationError
        If ``relative`` is not positive.
    """
    check_type('result', result, Result, 'a Result, as identify returns it')
    if relative is None:
        keep = [k for k, name in enumerate(result.base_.names) if name in result.significant_]
    else:
        if not relative > 0:
            raise IdentificationError(f'relative is {relative}; valid: a number > 0')
        keep = list(significant(result.estimate_.values, result.uncertainty_.covariance,
                                relative=relative))
    base = only(result.base_, keep)
    blocks = list(result.observations.blocks())
    estimate = estimate_by(result.settings.method, Problem(
        result.observations, base.kept, [factors_of(block) for block in blocks],
        counts_of(blocks)))
    found = _judged(result.observations, base, estimate, result.filtering.band)
    note = f'reduced from {result.base_.count} to {base.count} significant base parameters'
    return replace(result, base_=base, **found._asdict(), notes=(*result.notes, note))


# steps ----------------------------------------------------------------------------------------


class _Judged(NamedTuple):
    """An estimate with its statistics; the fields are those of `Result`, in its order."""

    estimate_: Estimate
    uncertainty_: Uncertainty
    significant_: tuple[str, ...]
    instrumental_: Array
    bias_: Array
    theta_: Array


def _judged(observations: Observations, base: BaseParameters, estimate: Estimate,
            band: float) -> _Judged:
    """Return an estimate with its statistics; `band` is that of the motion, Hz."""
    uncertainty = uncertainty_of(observations, base.kept, base.names, estimate, band)
    instrumental = instrumental_variables(observations, base.kept, estimate)
    bias = safe_divide(instrumental - estimate.values, uncertainty.deviation)
    estimate = replace(estimate, values=estimate.values + uncertainty.shift)
    kept = significant(estimate.values, uncertainty.covariance)
    theta = np.zeros(len(observations.linear.columns))
    theta[list(base.kept)] = estimate.values
    for place, value in observations.known.items():
        theta[place] = value
    return _Judged(estimate, uncertainty.selected(kept), tuple(base.names[k] for k in kept),
                   instrumental, bias, theta)


def measured_pieces(dynamics: RobotDynamics, logs: Sequence[Log], settings: Settings,
                    notes: list[str]) -> list[Piece]:
    """Return the uninterrupted pieces of logs; remarks are added to the notes.

    Raises
    ------
    IdentificationError
        There is no log, or one with a payload that no link carries.
    """
    if not logs:
        raise IdentificationError('no log was given; valid: at least one')
    if settings.payload is None and (loaded := [log.source for log in logs if log.loaded]):
        raise IdentificationError(f'{", ".join(loaded)}: loaded, but no link carries the payload; '
                                  'valid: payload, the link (--payload)')
    found = []
    for log in logs:
        ready = log.for_model(dynamics.model, joints=dynamics.joints.joint_names,
                              used=settings.torques_of)
        factors = effort_factors(dynamics.model, tuple(ready.joint_names))
        if not np.array_equal(factors, np.eye(len(factors))):
            ready = replace(ready, tau=np.asarray(ready.tau) @ factors)
        found += pieces_of(ready, notes)
        notes += ready.notes
    return found


def _restored(model: Model, nominal: Model, settings: Settings) -> Model:
    """Return an identified model with what measured torques do not contain."""
    if settings.friction == 'none' and nominal.effort.friction == 'removed':
        model = replace(model, link_friction=nominal.link_friction,
                        motor_friction=nominal.motor_friction,
                        friction_curve=nominal.friction_curve,
                        friction_width=nominal.friction_width)
    if settings.kind == 'links' and nominal.effort.rotors == 'removed':
        model = replace(model, armature=nominal.armature, spin_axis=nominal.spin_axis)
    return replace(model, gravity=nominal.gravity)


def sample_options(dynamics: RobotDynamics, settings: Settings) -> dict[str, Any]:
    """Return the arguments of `Observations` that select the samples.

    Raises
    ------
    UnknownNameError
        A setting names a joint that the robot does not have.
    """
    n, names = dynamics.joints.n, dynamics.joints.joint_names
    slow = np.broadcast_to(np.asarray(0.0 if settings.slow is None else settings.slow,
                                      np.float64), (n,)).copy()
    used = None
    if settings.torques_of is not None:
        for name in settings.torques_of:
            if name not in names:
                raise UnknownNameError('joint', name, names)
        used = np.array([name in settings.torques_of for name in names])
    return {'slow': slow, 'guard': settings.guard, 'torques_of': used}


def _filters(dynamics: RobotDynamics, pieces: Sequence[Piece], spectrum: Spectrum,
             settings: Settings, options: dict[str, Any], notes: list[str],
             ) -> tuple[FilterChoice, list[Segment]]:
    """Return the filters and the filtered segments."""
    width = settings.friction_width  # what the user sets is used from the beginning
    if width is None:
        width = FIRST_WIDTH if settings.friction == 'auto' else 0.0
    shape = FrictionShape('coulomb' if settings.friction == 'auto' else settings.friction,
                          width, np.ones(dynamics.model.n))
    linear = LinearModel(dynamics, settings.kind, friction=shape, joints=settings.joints)
    filters = choose_filters(linear, pieces, spectrum, settings, options)
    notes += describe(pieces, filters.filtering)
    notes += [filters.words] if filters.words else []
    if filters.errors:
        chosen = filters.filtering.cutoff, filters.filtering.decimation
        least = filters.errors.get(chosen, np.nan)
        notes.append(f'filters chosen among {len(filters.errors)} pairs: error of {least:.2%} of '
                     f'the raw torque on data left out of the fit')
    return filters, segments_of(pieces, filters.filtering, notes)


def _parts(size: int, count: int) -> list[slice]:
    edges = np.linspace(0, size, count + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _without_torques(linear: LinearModel, base: BaseParameters) -> list[str]:
    """Return a remark on the parameters that act on torques alone that are not used."""
    always = base_parameters(linear).without_effect
    without = [name for name in base.without_effect if name not in always]
    return [] if not without else [
        f'not excited at all, since they act on torques that are not used: {", ".join(without)}']


def digest_of(log: Log) -> str:
    """Return the SHA-256 of what a log measured."""
    digest = hashlib.sha256()
    for values in (log.t, log.q, log.tau):
        digest.update(np.ascontiguousarray(np.asarray(values)).tobytes())
    return digest.hexdigest()
