"""Chooses filters and friction models by cross-validation on the raw torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import LogError
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.friction import FrictionShape, is_friction
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
from robodyn_ros.model.kinds import FRICTION_TERMS
from robodyn_ros.spatial import Array

CANDIDATES = ('coulomb', 'asymmetric', 'stribeck', 'root')  # simple ones first
WIDTHS = (0.0, 0.01, 0.03, 0.1)  # relative to a joint's fast speed
CUTOFFS = (1.0, 2.0, 4.0, 8.0)  # relative to the automatic cutoff of the position filter
DECIMATED_PER_BAND = 3.0  # cutoff of the parallel filter over the motion's band (5.5.2: 2 to 5)
DECIMATIONS = (1.0, 2.0, 4.0, 8.0)  # relative to that cutoff
BETTER = 0.002  # relative reduction of the error for which the automatic filter is replaced
NEGLIGIBLE = 1e-4  # error, relative to the torque, by which a richer friction model must be better
NOISE_WIDTH = 5.0  # standard deviations of velocity noise, within which a joint may be at rest
LARGEST_FLOOR = 0.02  # largest of these velocities, relative to the fast speed
FAST_QUANTILE = 0.95  # quantile of the speeds that counts as fast
STANDING = 1e-6  # rad/s or m/s; a joint whose fast speed is lower does not move


@dataclass(frozen=True)
class FrictionChoice:
    """The chosen friction model, and the errors of all that were tried.

    Attributes
    ----------
    shape : FrictionShape
        The choice.
    errors : dict
        Relative error of the raw torque on samples left out of the fit, as a fraction, by
        ``(model, width)``.
    """

    shape: FrictionShape
    errors: dict[tuple[str, float], float]

    def to_text(self) -> str:
        """Return the choice in a sentence."""
        if not self.errors:
            return f'friction model {self.shape.model!r}, given by the settings'
        chosen = min(error for (model, _), error in self.errors.items()
                     if model == self.shape.model)
        direction = 'the sign of the velocity as its direction' if not self.shape.width else \
            f'a direction that changes over {self.shape.width:g} of the fast speed'
        return (f'friction model {self.shape.model!r} with {direction}: error of {chosen:.2%} of '
                'the raw torque on data left out of the fit; plain Coulomb friction has '
                f'{self.errors.get(("coulomb", 0.0), np.nan):.2%}')


@dataclass
class FilterChoice:
    """The chosen filters, and the errors of all candidates by ``(cutoff, decimation)`` in Hz."""

    filtering: Filtering
    errors: dict[tuple[float, float], float] = field(default_factory=dict)


def fast_speeds(velocities: Sequence[Array]) -> Array:
    """Return a fast speed of each joint: the 95th percentile, or 1 where it does not move."""
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
        raw = coarse.raw(coarse.matrices)
        for other in decimations:
            try:
                folds = coarse.folds(coarse.matrices, other, raw)
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


def choose_friction(observations: Observations, shape: FrictionShape, widest: float,
                    models: tuple[str, ...] = CANDIDATES,
                    widths: tuple[float, ...] = WIDTHS) -> FrictionChoice:
    """Choose the friction model and the width over which its direction changes.

    Parameters
    ----------
    observations : Observations
        Observations with plain friction, whose columns of rigid bodies are reused.
    shape : FrictionShape
        Fast speeds and noise of the velocities.
    widest : float
        Frequency up to which torque errors are compared, Hz.
    models : tuple of str
        Friction models, simple ones first.
    widths : tuple of float
        Widths of the direction, as fractions of the fast speed.
    """
    linear = observations.linear
    cutoff = observations.decimation
    rate = min(segment.rate for segment in observations.segments)
    times = max(1, int(min(widest, HIGHEST * rate) / cutoff)) if cutoff else 0
    coarse = Coarse(observations, cutoff * times)
    rigid = [k for k in base_parameters(linear).kept
             if not is_friction(linear.columns[k].term)]
    wrong: dict[tuple[str, float], Array] = {}
    for width in widths:
        one = replace(shape, model='rich', width=width)
        rich = LinearModel(linear.whole, linear.kind, friction=one,
                           joints=[linear.model.body_joints[b] for b in linear.bodies])
        added = coarse.friction(rich)
        terms = [rich.columns[k].term for k in rich.friction_columns()]
        folds = coarse.folds([np.concatenate([w[:, :, rigid], f], axis=2)
                              for w, f in zip(coarse.matrices, added, strict=True)],
                             cutoff)
        for model in models:
            foreign = set(FRICTION_TERMS['rich']) - set(FRICTION_TERMS[model])
            columns = [*range(len(rigid)), *(len(rigid) + k for k, term in enumerate(terms)
                                             if term[:2] not in foreign)]
            wrong[model, width] = folds.errors(columns)
    errors = {key: float(np.sqrt(values.mean())) for key, values in wrong.items()}
    best = min(errors, key=lambda key: errors[key])
    # the simplest model that is, fold by fold, within one standard error of the best
    for model in models:
        chosen = min(((model, width) for width in widths), key=lambda one: errors[one])
        worse = wrong[chosen] - wrong[best]
        deviation = worse.std(ddof=1) / np.sqrt(len(worse)) if len(worse) > 1 else 0.0
        if worse.mean() <= deviation or errors[chosen] <= errors[best] + NEGLIGIBLE:
            break
    return FrictionChoice(replace(shape, model=chosen[0], width=chosen[1]), errors)


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
