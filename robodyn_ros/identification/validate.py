"""Validation of a result on logs that were not used for the fit: `validate` and `roll_out`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from robodyn_ros.dynamics.efforts import measured_model
from robodyn_ros.errors import IdentificationError, check_type
from robodyn_ros.identification.identify import (
    digest_of,
    measured_pieces,
    sample_options,
)
from robodyn_ros.identification.log import Log, logs_of
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.rollout import HORIZONS, Rollout, roll_out_along
from robodyn_ros.identification.settings import known_parameters
from robodyn_ros.identification.signals import Segment, segments_of
from robodyn_ros.identification.validation import Validation, validate_on
from robodyn_ros.identification.verdict import Thresholds
from robodyn_ros.keywords import checked_keywords

KINDS = ('rigid', 'lumped', 'links')  # kinds of identification that explain the joints' torques


@checked_keywords
def validate(result: Result, logs: Log | Sequence[Log], *, consistent: bool = False,
             thresholds: Thresholds | None = None) -> Validation:
    """Compare predicted with measured torques, and simulated with measured motions.

    Parameters
    ----------
    result : Result
        The result of `identify`.
    logs : Log or sequence of Log
        Other logs than those of the fit, or other parts of the same logs.
    consistent : bool
        Whether to predict torques by the physically consistent parameters. Simulations always use
        them.
    thresholds : Thresholds, optional
        Thresholds of the verdict.

    Raises
    ------
    IdentificationError
        If one of the logs was used for the fit.
    """
    check_type('result', result, Result, 'a Result, as identify returns it')
    every = logs_of(logs)
    seen = {digest for _, digest in result.sources}
    for log in every:
        if digest_of(log) in seen:
            raise IdentificationError(f'{log.source} was used for the fit and cannot validate it; '
                                      'valid: other logs, or other parts of this one')
    settings, segments = result.settings, _segments(result, every)
    observations = Observations(result.linear, segments, decimation=result.filtering.judged,
                                known=known_parameters(settings),
                                **sample_options(result.linear.whole, settings))
    found = validate_on(observations, result.consistent_ if consistent else result.theta_,
                        result.evidence_, thresholds, result.residual_)
    return replace(found, sources=tuple((log.source, digest_of(log)) for log in every),
                   simulate=partial(_rollout, result, segments))


def roll_out(result: Result, logs: Log | Sequence[Log], *,
             horizons: Sequence[float] = HORIZONS) -> Rollout:
    """Simulate the identified model along logs, and compare positions.

    The model is the physically consistent one, ``result.model``. Coulomb friction changes its sign
    over 0.01 rad/s or m/s, and is integrated implicitly in steps of 2 ms. The controller of the
    closed loop has the gains of `automatic_gains`.

    Parameters
    ----------
    result : Result
        What `identify` returned.
    logs : Log or sequence of Log
        Logs that the fit has not seen.
    horizons : sequence of float
        Times after the start at which positions are compared, s.

    Raises
    ------
    IdentificationError
        If the robot has closed loops, the kind or the settings leave torques of joints
        unexplained, or the logs are shorter than the shortest horizon.
    """
    return _simulated(result, _segments(result, logs_of(logs)), horizons)


def _segments(result: Result, logs: Sequence[Log]) -> list[Segment]:
    """Return the motions and torques of other logs, filtered like those of the fit."""
    pieces = measured_pieces(result.linear.whole, logs, result.settings, [])
    return segments_of(pieces, result.filtering, [])


def _simulated(result: Result, segments: Sequence[Segment], horizons: Sequence[float]) -> Rollout:
    if result.linear.kind not in KINDS or result.settings.torques_of is not None:
        raise IdentificationError('a rollout needs the torques of all joints; valid: the kinds '
                                  f'{", ".join(KINDS)}, without torques_of')
    return roll_out_along(result.linear.whole, measured_model(result.model),
                          [s for s in segments if not s.loaded], horizons=horizons)


def _rollout(result: Result, segments: Sequence[Segment]) -> Rollout | None:
    """Return the rollout along segments; None for robots, kinds and logs that have none."""
    try:
        return _simulated(result, segments, HORIZONS)
    except IdentificationError:
        return None
