"""Chooses filters by cross-validation on the raw torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import LogError
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.friction import FrictionShape
from robodyn_ros.identification.left_out import Coarse
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
from robodyn_ros.spatial import Array

CUTOFFS = (1.0, 2.0, 4.0, 8.0)  # relative to the automatic cutoff of the position filter
# cutoff of the parallel filter over the motion's band (Kolyubin 5.5.2: 2 to 5)
DECIMATED_PER_BAND = 3.0
DECIMATIONS = (1.0, 2.0, 4.0, 8.0)  # relative to that cutoff
BETTER = 0.002  # relative reduction of the error for which the automatic filter is replaced
NOISE_WIDTH = 5.0  # standard deviations of velocity noise, within which a joint may be at rest
LARGEST_FLOOR = 0.02  # largest of these velocities, relative to the fast speed
FAST_QUANTILE = 0.95  # quantile of the speeds that counts as fast
STANDING = 1e-6  # rad/s or m/s; a joint whose fast speed is lower does not move


@dataclass
class FilterChoice:
    """The chosen filters, and the errors of all candidates by ``(cutoff, decimation)`` in Hz."""

    filtering: Filtering
    errors: dict[tuple[float, float], float] = field(default_factory=dict)


def fast_speeds(velocities: Sequence[Array]) -> Array:
    """Return a fast speed of each joint, shape (n,): 95th percentile, or 1 if it does not move."""
    fast = np.quantile(np.abs(np.concatenate(velocities)), FAST_QUANTILE, axis=0)
    return np.where(fast > STANDING, fast, 1.0)


def choose_filters(linear: LinearModel, pieces: Sequence[Piece], spectrum: Spectrum,
                   settings: Settings, options: dict[str, object]) -> FilterChoice:
    """Choose the cutoffs of the position filter and of the parallel filter.

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
                          decimation)
    given = settings.filter.cutoff is not None or settings.filter.corridor is not None
    cutoffs = [automatic.cutoff] if given or periodic else [
        cutoff * factor for factor in CUTOFFS if cutoff * factor < HIGHEST * rate or factor == 1]
    decimations = [automatic.decimation] if settings.decimation is not None else [
        decimation * factor for factor in DECIMATIONS
        if decimation * factor < HIGHEST * rate or factor == 1]
    found = FilterChoice(automatic)
    if len(cutoffs) * len(decimations) == 1:
        return found
    kept = list(base_parameters(linear).kept)
    for one in cutoffs:
        segments = segments_of(pieces, replace(automatic, cutoff=one), [])
        observations = Observations(linear, segments, **options)  # type: ignore[arg-type]
        coarse = Coarse(observations, max(decimations))
        raw = coarse.raw(coarse.means)
        for other in decimations:
            try:
                folds = coarse.folds(coarse.means, other, raw)
            except LogError:
                continue
            found.errors[one, other] = float(np.sqrt(folds.errors(kept).mean()))
    if not found.errors:
        return found
    best = min(found.errors, key=lambda key: found.errors[key])
    usual = automatic.cutoff, automatic.decimation
    if found.errors[best] < (1 - BETTER) * found.errors.get(usual, np.inf):
        found.filtering = replace(automatic, cutoff=best[0], decimation=best[1])
    return found


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
