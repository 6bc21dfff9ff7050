"""Chooses the friction model by the error on data that the fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.description import Array
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.base_parameters import base_parameters
from robodyn_ros.identification.estimation import least_squares
from robodyn_ros.identification.linear_model import FRICTION_TERMS, FrictionShape, LinearModel
from robodyn_ros.identification.observations import Block, Observations, factors_of, merge

CANDIDATES = ('coulomb', 'asymmetric', 'stribeck', 'root')  # simple ones first
WIDTHS = (0.0, 0.01, 0.03, 0.1)  # of a joint's fast speed
FOLDS = 5
NEGLIGIBLE = 1e-4  # of the torque


@dataclass(frozen=True)
class FrictionChoice:
    """What was tried, and what was taken.

    Attributes
    ----------
    shape : FrictionShape
        The choice.
    errors : dict
        ``(model, width)``: relative torque error on samples left out of the fit, as a fraction.
    """

    shape: FrictionShape
    errors: dict[tuple[str, float], float]


def fast_speeds(velocities: list[Array]) -> Array:
    """A fast speed of each joint: the 95th percentile; 1 where it does not move."""
    fast = np.quantile(np.abs(np.concatenate(velocities)), 0.95, axis=0)
    return np.where(fast > 1e-6, fast, 1.0)


def choose_friction(observations: Observations, speed: Array,
                    models: tuple[str, ...] = CANDIDATES,
                    widths: tuple[float, ...] = WIDTHS) -> FrictionChoice:
    """Try friction models and widths of sign(s) on contiguous folds left out of the fit.

    Parameters
    ----------
    observations : Observations
        With plain friction; the rigid part is taken from them.
    speed : ndarray, shape (n,)
        See `fast_speeds`.
    """
    linear = observations.linear
    rigid = [k for k, column in enumerate(linear.columns) if not _is_friction(column.term)]
    kept = base_parameters(linear).kept
    rigid_kept = [k for k in rigid if k in kept]
    wrong: dict[tuple[str, float], Array] = {}
    for width in widths:
        rich = _Friction(linear, speed, width)
        folds = []
        for k in range(len(observations)):
            block = observations.block(k)
            w = np.concatenate([block.w[:, :, rigid_kept], rich.columns(observations, k)], axis=2)
            folds += _folds(replace(block, w=w), max(2, FOLDS // len(observations)))
        for model in models:
            columns = (*range(len(rigid_kept)), *(len(rigid_kept) + k
                                                  for k in rich.places(model)))
            wrong[model, width] = _left_out_errors(folds, columns)
    errors = {key: float(np.sqrt(values.mean())) for key, values in wrong.items()}
    if not any(map(np.isfinite, errors.values())):
        raise IdentificationError('no friction model can be fitted: the log is too short')
    best = min(errors, key=lambda key: errors[key])
    # the simplest that is not worse than the best beyond one standard error, fold by fold
    for model in models:
        key = min(((model, width) for width in widths), key=lambda one: errors[one])
        worse = wrong[key] - wrong[best]
        doubt = worse.std(ddof=1) / np.sqrt(len(worse)) if len(worse) > 1 else 0.0
        if worse.mean() <= doubt or errors[key] <= errors[best] + NEGLIGIBLE:
            break
    return FrictionChoice(FrictionShape(key[0], key[1], speed), errors)


def _is_friction(term: str) -> bool:
    return term.startswith(('F', 'off'))


class _Friction:
    """Friction columns of all models at once, for one width."""

    def __init__(self, linear: LinearModel, speed: Array, width: float):
        self._linear = LinearModel(linear.whole, linear.kind,
                                   friction=FrictionShape('rich', width, speed),
                                   joints=[linear.model.body_joints[b] for b in linear.bodies])
        self._columns = [k for k, c in enumerate(self._linear.columns) if _is_friction(c.term)]

    def places(self, model: str) -> list[int]:
        """Which of the columns a model has."""
        foreign = set(FRICTION_TERMS['rich']) - set(FRICTION_TERMS[model])
        return [place for place, k in enumerate(self._columns)
                if self._linear.columns[k].term[:2] not in foreign]

    def columns(self, observations: Observations, k: int) -> Array:
        """The columns of segment k, decimated as the regressor is; shape (M, rows, f)."""
        return observations.filtered(
            k, lambda q, qd: self._linear.friction_regressor(q, qd)[:, :, self._columns])


def _folds(block: Block, count: int) -> list[tuple[Array, Array]]:
    """(factors, samples) of contiguous parts of a block."""
    edges = np.linspace(0, len(block.t), count + 1).astype(int)
    return [(factors_of(block, slice(a, b)), block.used[a:b].sum(axis=0).astype(float))
            for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]


def _left_out_errors(folds: list[tuple[Array, Array]], columns: tuple[int, ...]) -> Array:
    """Squared relative error of each fold, predicted by a fit on the others."""
    errors = np.full(len(folds), np.inf)
    if len(folds) < 2:
        return errors
    for out, (factor, _) in enumerate(folds):
        others = [fold for k, fold in enumerate(folds) if k != out]
        try:
            fit = least_squares(merge([f for f, _ in others]), columns,
                                np.sum([c for _, c in others], axis=0), sweeps=3)
        except IdentificationError:
            return np.full(len(folds), np.inf)
        inside = factor[:, :, [*columns, -1]]
        residual = inside[:, :, :-1] @ fit.values - inside[:, :, -1]
        total = float(((inside[:, :, -1] / fit.sigma[:, None]) ** 2).sum())
        errors[out] = float(((residual / fit.sigma[:, None]) ** 2).sum()) / max(total, 1e-300)
    return errors
