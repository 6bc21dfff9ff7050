"""Chooses filters by cross-validation on the raw torque."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import LogError
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.choice_errors import FOLDS, Coarse
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.pieces import Piece, Spectrum
from robodyn_ros.identification.settings import Settings
from robodyn_ros.identification.signals import (
    HIGHEST,
    Filtering,
    Segment,
    design,
    segments_of,
)
from robodyn_ros.identification.torque_delay import torque_delay
from robodyn_ros.model.kinds import JOINT_TORQUE_KINDS
from robodyn_ros.spatial import Array

# Cutoffs of the position filter, relative to the automatic one: from 1 on, upwards and downwards
# as long as the error falls
UPWARDS, DOWNWARDS = (2.0, 4.0, 8.0), (0.7, 0.5, 0.35, 0.25, 0.18, 0.125)
# cutoff of the parallel filter over the motion's band (Kolyubin 5.5.2: 2 to 5)
DECIMATED_PER_BAND = 3.0
DECIMATIONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # relative to that cutoff
BETTER = 0.002  # relative reduction of the error for which a filter is replaced by another
BETTER_BELOW = 0.02  # the same for each step downwards, which loses a part of the motion
LEAST_INDEPENDENT = 2  # samples in a part that is left out, for a cutoff below the automatic one
NOISE_WIDTH = 5.0  # standard deviations of velocity noise, within which a joint may be at rest
LARGEST_FLOOR = 0.02  # largest of these velocities, relative to the fast speed
FAST_QUANTILE = 0.95  # quantile of the speeds that counts as fast
STANDING = 1e-6  # rad/s or m/s; a joint whose fast speed is lower does not move


@dataclass
class FilterChoice:
    """The chosen filters, and the errors of all candidates by ``(cutoff, decimation)`` in Hz.

    ``words`` is a remark on a delay of the torques; it is empty without one.
    """

    filtering: Filtering
    errors: dict[tuple[float, float], float] = field(default_factory=dict)
    words: str = ''


def fast_speeds(velocities: Sequence[Array]) -> Array:
    """Return a fast speed of each joint, shape (n,): 95th percentile, or 1 if it does not move."""
    fast = np.quantile(np.abs(np.concatenate(velocities)), FAST_QUANTILE, axis=0)
    return np.where(fast > STANDING, fast, 1.0)


def choose_filters(linear: LinearModel, pieces: Sequence[Piece], spectrum: Spectrum,
                   settings: Settings, options: dict[str, Any]) -> FilterChoice:
    """Choose the filters, and the delay of the torques if the settings leave it open.

    See `torque_delay`; the filters are chosen again after a delay was found. Nothing is chosen if
    the settings fix both cutoffs.

    Parameters
    ----------
    linear, pieces, spectrum, settings, options
        See `filters_for_delay`.
    """
    found, equations = filters_for_delay(linear, pieces, spectrum, settings, options)
    if equations is None or settings.torque_delay is not None \
            or linear.kind not in JOINT_TORQUE_KINDS:
        return found
    delay = torque_delay(*equations, found.filtering.decimation)
    if delay is None:
        return found
    found, _ = filters_for_delay(linear, pieces, spectrum, replace(
        settings, torque_delay=delay.seconds), options)
    return replace(found, words=delay.words)


def filters_for_delay(linear: LinearModel, pieces: Sequence[Piece], spectrum: Spectrum,
                      settings: Settings, options: dict[str, Any],
                      ) -> tuple[FilterChoice, tuple[Coarse, list[int]] | None]:
    """Choose the cutoffs of the position filter and of the parallel filter.

    The equations with the least error, and the columns of W that were fitted, are returned as
    well, if there was a choice.

    Samples that are too slow for the fit do not count: the torque of a joint that sticks is
    arbitrary, and a low cutoff, which blurs each reversal, would seem to explain it.

    Parameters
    ----------
    linear : LinearModel
        The linear model with plain friction.
    pieces : sequence of Piece
        The logs.
    spectrum : Spectrum
        The spectrum of their motion.
    settings : Settings
        The settings; cutoffs that they give are kept.
    options : dict
        Further arguments of `Observations`.
    """
    cutoff, order = design(pieces, spectrum, settings.filter)
    decimation = DECIMATED_PER_BAND * spectrum.band
    periodic = all(piece.average is not None for piece in pieces)
    rate = min(piece.rate for piece in pieces)
    if settings.decimation is not None:
        decimation = settings.decimation
    automatic = Filtering(spectrum.band, np.inf if periodic else cutoff, order, decimation,
                          decimation, settings.torque_delay or 0.0)
    fixed = periodic or settings.filter.cutoff is not None or settings.filter.corridor is not None
    decimations = [automatic.decimation] if settings.decimation is not None else [
        decimation * factor for factor in DECIMATIONS
        if decimation * factor < HIGHEST * rate or factor <= 1]
    found = FilterChoice(automatic)
    if fixed and len(decimations) == 1:
        return found, None
    kept = list(base_parameters(linear).kept)
    independent: dict[float, float] = {}  # samples that a cutoff leaves
    least_error, equations = np.inf, None  # those with the least error
    near = decimations  # for further cutoffs, those next to the best one

    def least(factor: float) -> float:
        """Return the least error with a cutoff; that of each parallel filter is kept."""
        nonlocal least_error, equations, near
        segments = segments_of(pieces, replace(automatic, cutoff=automatic.cutoff * factor), [],
                               smooth=False)
        seconds = sum(len(segment.t) / segment.rate for segment in segments)
        independent[factor] = 2 * automatic.cutoff * factor * seconds
        coarse = Coarse(Observations(linear, segments, **options),
                        max(decimations))
        means = [w[:, :, kept] for w in coarse.means]
        raw = coarse.raw(means, slow=False)
        errors = {}
        for other in near:
            with contextlib.suppress(LogError):  # too short for this one
                folds = coarse.folds(means, other, raw)
                errors[automatic.cutoff * factor, other] = float(np.sqrt(
                    folds.errors(list(range(len(kept)))).mean()))
        found.errors.update(errors)
        error = min(errors.values(), default=np.inf)
        if error < least_error:
            least_error, equations = error, (coarse, kept)
            place = decimations.index(min(errors, key=lambda key: errors[key])[1])
            near = decimations[max(place - 1, 0):place + 2]
        return error

    first, accepted = least(1.0), [automatic.cutoff]
    for factors, gain in () if fixed else ((UPWARDS, BETTER), (DOWNWARDS, BETTER_BELOW)):
        before = first
        for factor in factors:
            if automatic.cutoff * factor >= HIGHEST * rate:
                break
            error = least(factor)
            few = factor < 1 and independent[factor] < LEAST_INDEPENDENT * FOLDS
            if few or error > (1 - gain) * before:
                break
            before = error
            accepted.append(automatic.cutoff * factor)
    candidates = [key for key in found.errors if key[0] in accepted]
    if not candidates:
        return found, None
    best = min(candidates, key=lambda key: found.errors[key])
    usual = automatic.cutoff, automatic.decimation
    if found.errors[best] < (1 - BETTER) * found.errors.get(usual, np.inf):
        found.filtering = replace(automatic, cutoff=best[0], decimation=best[1])
    return found, equations


def first_shape(dynamics: RobotDynamics, segments: Sequence[Segment], spectrum: Spectrum,
                cutoff: float) -> FrictionShape:
    """Return plain friction with the fast speeds of a log and the noise of its velocities."""
    speed = fast_speeds([dynamics.velocities(s.q, s.qd) for s in segments])
    floor = np.zeros(len(speed))
    if np.isfinite(cutoff):
        names = list(dynamics.model.joint_names)
        places = [names.index(name) for name in dynamics.joints.joint_names]
        floor[places] = NOISE_WIDTH * spectrum.velocity_noise(cutoff)
        floor = np.minimum(floor, LARGEST_FLOOR * speed)
    return FrictionShape('coulomb', 0.0, speed, floor)
