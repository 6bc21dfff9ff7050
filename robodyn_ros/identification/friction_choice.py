"""Chooses the friction of each joint by the error of the raw torque on data left out of the fit.

Every joint has plain friction (viscous, Coulomb and an offset). The width over which its direction
changes is chosen first. Then further terms, each for one joint, are added one by one as long as
they reduce this error: terms of friction, and springs. With several logs, each is also left out as
a whole, and a new term must not raise the mean of the errors of these logs. A spring, whose torque
grows without limit, must also lower the error at positions that the fit has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.choice_errors import Coarse, Folds
from robodyn_ros.identification.filter_choice import DECIMATED_PER_BAND, DECIMATIONS
from robodyn_ros.identification.friction import STRIBECK_SPEED, FrictionShape, is_friction
from robodyn_ros.identification.friction_candidate import Candidate, Key
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.settings import Settings
from robodyn_ros.identification.signals import HIGHEST, Filtering, Segment
from robodyn_ros.identification.springs import SPRING_TERMS, is_spring
from robodyn_ros.spatial import Array

WIDTHS = (0.0, 0.01, 0.03, 0.1)  # relative to a joint's fast speed
VELOCITIES = (0.02, 0.05, STRIBECK_SPEED, 0.2, 0.5)  # Stribeck velocities over the fast speed
TRAVELS = (0.001, 0.003)  # s at the fast speed, in which a joint travels a presliding distance
NEGLIGIBLE = 0.01  # smallest reduction of the error, relative to it, for which a term is added
# Smallest reduction of the error over its standard error, which follows from the scatter between
# the folds. The best of several terms reduces the error by chance, above all for Stribeck friction
# and springs: their reduction must exceed NEGLIGIBLE by one standard error. Presliding friction
# needs no such margin: it must not be negative, and its distances give similar columns.
CERTAIN = 1.0
CERTAIN_OF_SEVERAL = 1.64  # exceeded by chance in one case of twenty
UNIFORM = ('coulomb', 'asymmetric', 'stribeck', 'root')  # one for all joints, for comparison
REFINEMENTS = 2  # iterations for transmitted torques, which depend on the links' parameters
BY_TEMPERATURE = ('Fw', 'Fk')
LEAST_WARMTH = 1.0  # K, smallest range of a joint's temperature for which these are tried


@dataclass(frozen=True)
class FrictionChoice:
    """The chosen friction model, and the errors of those that were tried.

    Attributes
    ----------
    shape : FrictionShape
        The choice.
    errors : dict
        Relative error of the raw torque on samples left out of the fit, as a fraction, by
        ``(model, width)``; the model ``chosen`` is that of ``shape``.
    steps : tuple of (str, float)
        The added terms in words, in the order in which they were added, with the error after each.
    """

    shape: FrictionShape
    errors: dict[tuple[str, float], float]
    steps: tuple[tuple[str, float], ...] = ()

    def to_text(self) -> str:
        """Return the choice in a sentence."""
        if not self.errors:
            return f'friction model {self.shape.model!r}, as it was set'
        direction = 'the sign of the velocity as its direction' if not self.shape.width else \
            f'a direction that changes over {self.shape.width:g} of the fast speed'
        plain = self.errors.get(('coulomb', self.shape.width), np.nan)
        text = (f'friction with {direction}: plain Coulomb friction has an error of {plain:.2%} '
                'of the raw torque on data left out of the fit')
        if not self.steps:
            return f'{text}, and no further term reduces it'
        added = '; '.join(f'{words}: {error:.2%}' for words, error in self.steps)
        return f'{text}; added terms, with the error after each: {added}'


def friction_for(dynamics: RobotDynamics, segments: list[Segment], shape: FrictionShape,
                 filtering: Filtering, settings: Settings, options: dict[str, Any],
                 notes: list[str]) -> FrictionChoice:
    """Return the friction model that the settings name, or choose it if they say ``auto``."""
    width = settings.friction_width
    warm = [s.temperature for s in segments if s.temperature is not None]
    if warm and len(warm) < len(segments):
        notes.append(f'{len(segments) - len(warm)} of {len(segments)} pieces have no '
                     'temperatures: those of the others are assumed for them on average')
    if warm and dynamics.tree is dynamics:
        shape = replace(shape, reference=np.concatenate(warm).mean(axis=0))
    linear = LinearModel(dynamics, settings.kind, friction=shape, joints=settings.joints)
    observations = Observations(linear, segments, decimation=filtering.decimation, **options)
    if settings.friction != 'auto' or settings.kind == 'rigid':
        model = 'coulomb' if settings.friction == 'auto' else settings.friction
        shape = replace(shape, model=model, width=width or 0.0)
        return FrictionChoice(with_load(observations, shape) if model == 'load' else shape, {})
    widest = DECIMATED_PER_BAND * DECIMATIONS[-1] * filtering.band
    choice = choose_friction(observations, shape, widest,
                             widths=WIDTHS if width is None else (width,))
    notes.append(choice.to_text())
    return choice


def choose_friction(observations: Observations, shape: FrictionShape, widest: float, *,
                    widths: tuple[float, ...] = WIDTHS) -> FrictionChoice:
    """Choose the friction terms of each joint, and the width of the change of direction.

    Parameters
    ----------
    observations : Observations
        Observations with plain friction, from which the rigid-body columns are taken.
    shape : FrictionShape
        Fast speeds, and the noise of the velocities.
    widest : float
        Frequency up to which torque errors are compared, Hz.
    widths : tuple of float
        Widths of the direction, as fractions of the fast speed.
    """
    cutoff = observations.decimation
    rate = min(segment.rate for segment in observations.segments)
    times = max(1, int(min(widest, HIGHEST * rate) / cutoff)) if cutoff else 0
    search = _Search(observations, Coarse(observations, cutoff * times), cutoff)
    errors: dict[tuple[str, float], float] = {}
    best = np.inf
    for width in widths:
        trial = _Trial(search, replace(shape, width=width))
        for model in UNIFORM:
            error = errors[model, width] = trial.error_of(model)
            if error < best:
                best, chosen = error, trial
    selected, steps = chosen.select()
    terms: dict[Key, tuple[str, ...]] = {}
    springs: dict[int, tuple[str, ...]] = {}
    for one in selected:
        if is_spring(one.term):
            springs[one.key[0]] = (*springs.get(one.key[0], ()), one.term)
        else:
            terms[one.key] = (*terms.get(one.key, ()), one.term)
    found = replace(chosen.shape, model='chosen' if terms else 'coulomb', terms=terms,
                    springs=springs,
                    stribeck={one.key: one.scale for one in selected if one.term == 'Fs'},
                    presliding={one.key: one.distance(chosen.search.linear.model, chosen.shape)
                                for one in selected if one.term == 'Fz'})
    errors['chosen', found.width] = steps[-1][1] if steps else errors['coulomb', found.width]
    return FrictionChoice(search.with_load(found), errors, tuple(steps))


def with_load(observations: Observations, shape: FrictionShape) -> FrictionShape:
    """Return a friction model with the link parameters for computing transmitted torques.

    Parameters
    ----------
    observations : Observations
        Observations with plain friction.
    shape : FrictionShape
        A friction model that the user has set.
    """
    search = _Search(observations, Coarse(observations, observations.decimation),
                     observations.decimation)
    return search.with_load(shape)


class _Search:
    """The part of the search that all trials share, above all the rigid-body columns."""

    def __init__(self, observations: Observations, coarse: Coarse, cutoff: float):
        self.linear, self.coarse, self.cutoff = observations.linear, coarse, cutoff
        kept = list(base_parameters(self.linear).kept)
        self.base = [k for k in kept if not is_friction(self.linear.columns[k].term)]
        self.rigid = [w[:, :, self.base] for w in coarse.means]
        self.load = np.zeros(0)
        if self.linear.can_follow_load:
            folds = coarse.folds(coarse.means, cutoff)
            self.load = self.standard(kept, folds.estimate(kept), self.linear)

    def standard(self, columns: Sequence[int], values: Array, linear: LinearModel) -> Array:
        """Return standard parameters with the estimated values, shape (17 b,)."""
        found = np.zeros(len(linear.model.standard_parameters))
        for column, value in zip(columns, values, strict=True):
            if linear.columns[column].standard >= 0:
                found[linear.columns[column].standard] = value
        return found

    def model(self, shape: FrictionShape) -> LinearModel:
        """Return the linear model with another friction model."""
        linear = self.linear
        return LinearModel(linear.whole, linear.kind, friction=shape,
                           joints=[linear.model.body_joints[b] for b in linear.bodies])

    def means(self, friction: list[Array]) -> list[Array]:
        """Return the rigid-body columns and some friction columns of every segment."""
        return [np.concatenate(pair, axis=2) for pair in zip(self.rigid, friction, strict=True)]

    def folds(self, friction: list[Array]) -> Folds:
        """Return the folds with the rigid-body columns and some friction columns."""
        return self.coarse.folds(self.means(friction), self.cutoff)

    def with_load(self, shape: FrictionShape) -> FrictionShape:
        """Return a friction model with the parameters for computing transmitted torques."""
        if not len(self.load):
            return shape
        found = replace(shape, load=self.load)
        linear = self.model(found)
        if not linear.follows_load:
            return shape
        for _ in range(REFINEMENTS):
            linear = self.model(found)
            friction = linear.friction_columns()
            springs = self.coarse.springs(linear)
            folds = self.folds([np.concatenate(pair, axis=2) for pair in zip(
                self.coarse.friction(linear), springs, strict=True)])
            values = folds.estimate(list(range(len(self.base) + len(friction)
                                               + springs[0].shape[2])))
            found = replace(found, load=self.standard(self.base, values[:len(self.base)],
                                                      self.linear))
        return found


class _Trial:
    """A search among friction terms with one width of the change of direction."""

    def __init__(self, search: _Search, shape: FrictionShape):
        self.search, self.shape = search, shape
        linear = search.model(replace(shape, model='rich'))
        self._terms = [linear.columns[k].term for k in linear.friction_columns()]
        self._friction = search.coarse.friction(linear)
        self._folds = search.folds(self._friction)

    def error_of(self, model: str) -> float:
        """Return the error on data left out of the fit with the same model for all joints."""
        extra = self.search.model(replace(self.shape, model=model)).gears.shape.terms_of(0, 'l')
        first = len(self.search.base)
        columns = [*range(first), *(first + k for k, term in enumerate(self._terms)
                                    if term[:2] in ('Fv', 'Fc', 'of', *extra))]
        return float(np.sqrt(self._folds.errors(columns).mean()))

    def select(self) -> tuple[list[Candidate], list[tuple[str, float]]]:
        """Return the terms to add to plain friction, and the error after each."""
        candidates, matrices = self._candidates()
        plain = [k for k, term in enumerate(self._terms) if term[:2] in ('Fv', 'Fc', 'of')]
        means = self.search.means([np.concatenate([f[:, :, plain], m], axis=2) for f, m in zip(
            self._friction, matrices, strict=True)])
        folds = self.search.coarse.folds(means, self.search.cutoff)
        first = len(self.search.base) + len(plain)
        columns, left = list(range(first)), list(range(len(candidates)))
        selected: list[Candidate] = []
        steps: list[tuple[str, float]] = []
        logs = folds.whole_logs()
        while left:
            places = [first + k for k in left]
            positive = np.array([candidates[k].term == 'Fz' for k in left])
            before, after = folds.additions(columns, places, positive)
            gains = before[:, None] - after
            mean, errors = gains.mean(axis=0), after.mean(axis=0)
            deviation = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
            several = np.array([candidates[k].term != 'Ft' for k in left])
            certain = mean > np.where(several, CERTAIN_OF_SEVERAL, CERTAIN) * deviation
            margin = np.where(several & ~positive, deviation, 0.0)
            lower = np.sqrt(errors + margin) < (1 - NEGLIGIBLE) * np.sqrt(before.mean())
            if len(logs.raw) > 1:  # a term may hold in all parts of a motion, but not in another
                one_out = logs.additions(columns, places, positive)
                certain &= one_out[1].mean(axis=0) <= one_out[0].mean()
            if not (certain & lower).any():
                break
            best = int(np.argmax(np.where(certain & lower, mean, -np.inf)))
            one = candidates[left[best]]
            if is_spring(one.term) and not self._extrapolates(means, columns, first + left[best]):
                left.pop(best)
                continue
            columns.append(first + left[best])
            selected.append(one)
            steps.append((one.words(self.search.linear.model, self.shape),
                          float(np.sqrt(errors[best]))))
            left = [k for k in left if candidates[k][:2] != one[:2]]
        return selected, steps

    def _extrapolates(self, means: list[Array], columns: list[int], column: int) -> bool:
        """Return whether a column lowers the error at values that the fit has not seen."""
        folds = self.search.coarse.quarters(means, self.search.cutoff, column)
        before, after = folds.additions(columns, [column])
        return bool(after.mean() <= before.mean())

    def _candidates(self) -> tuple[list[Candidate], list[Array]]:
        """Return the terms that may be added to each source, and their columns by segment."""
        keys = [source.key for source in self.search.linear.gears.sources]
        found: list[Candidate] = []
        parts: list[list[Array]] = []
        warm = self._warm_sources()
        sets = [('Fs', velocity, self._fast_sources(velocity)) for velocity in VELOCITIES]
        sets += [('Ft', 0.0, keys if len(self.search.load) else []),
                 *((term, 0.0, warm) for term in BY_TEMPERATURE),
                 *(('Fz', travel, self._reversing_sources()) for travel in TRAVELS)]
        for term, scale, sources in sets:
            if not sources:
                continue
            linear = self.search.model(replace(
                self.shape, model='chosen', terms=dict.fromkeys(sources, (term,)),
                stribeck=dict.fromkeys(keys, scale if term == 'Fs' else STRIBECK_SPEED),
                presliding={key: Candidate(key, term, scale).distance(
                    self.search.linear.model, self.shape) for key in sources if term == 'Fz'},
                load=self.search.load))
            new = [k for k, one in enumerate(linear.gears.terms) if one.standard < 0]
            parts.append(self.search.coarse.friction(linear, new))
            found += [Candidate(linear.gears.sources[linear.gears.terms[k].source].key,
                                linear.gears.terms[k].name[:2], scale) for k in new]
        every = dict.fromkeys(range(len(self.search.linear.model.body_joints)), SPRING_TERMS)
        linear = self.search.model(replace(self.shape, springs=every))
        parts.append(self.search.coarse.springs(linear))
        found += [Candidate((one.body, 'k'), one.name) for one in linear.springs.terms]
        return found, [np.concatenate(columns, axis=2) for columns in zip(*parts, strict=True)]

    def _fast_sources(self, velocity: float) -> list[Key]:
        """Return the gears whose Stribeck velocity is not among the slow samples left out."""
        linear = self.search.linear
        slow = dict(zip(linear.joints.joint_names, self.search.coarse.observations.slow,
                        strict=True))
        fast = [velocity * speed >= slow.get(name, 0.0) for name, speed in zip(
            linear.model.joint_names, self.shape.speed, strict=True)]
        return [source.key for source in linear.gears.sources
                if all(fast[k] for k in np.flatnonzero(source.row))]

    def _reversing_sources(self) -> list[Key]:
        """Return the gears of trees whose reversals are not among the samples left out."""
        linear = self.search.linear
        if linear.loops is not None:
            return []
        slow = self.search.coarse.observations.slow
        return [source.key for source in linear.gears.sources
                if source.side == 'l' and not slow[np.flatnonzero(source.row)].any()]

    def _warm_sources(self) -> list[Key]:
        """Return the gears of the joints whose temperatures were measured and have changed."""
        if not len(self.shape.reference):
            return []
        measured = np.concatenate([s.temperature for s in self.search.coarse.observations.segments
                                   if s.temperature is not None])
        changed = np.ptp(measured, axis=0) >= LEAST_WARMTH
        return [source.key for source in self.search.linear.gears.sources
                if source.side == 'l' and changed[np.flatnonzero(source.row)[0]]]
