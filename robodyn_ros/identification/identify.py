"""The one path from logs to an identified robot: `identify` and `validate`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from robodyn_ros.description import Array
from robodyn_ros.dynamics import AnyDynamics, ClosedLoopDynamics, Dynamics
from robodyn_ros.errors import IdentificationError, UnknownNameError
from robodyn_ros.identification.base_parameters import BaseParameters, base_parameters
from robodyn_ros.identification.consistency import (
    consistent_estimate,
    free_bodies,
)
from robodyn_ros.identification.estimation import (
    Estimate,
    counts_of,
    huber,
    instrumental_variables,
    least_squares,
)
from robodyn_ros.identification.friction_choice import (
    WIDTHS,
    FrictionChoice,
    choose_friction,
    fast_speeds,
)
from robodyn_ros.identification.linear_model import (
    STANDARD,
    FrictionShape,
    LinearModel,
    joint_speeds,
)
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.observations import Observations, factors_of, merge
from robodyn_ros.identification.result import Result, Settings
from robodyn_ros.identification.signals import Segment, segments_of
from robodyn_ros.identification.statistics import Uncertainty, significant, uncertainty_of
from robodyn_ros.identification.validation import Validation, validate_on
from robodyn_ros.model import Model

FOLDS = 3  # of the data, to choose the prior
BIAS = 1e-4  # of the torque: what changes less is no bias
METHODS = ('weighted', 'ordinary', 'huber')


def identify(model: Model | ClosedLoopDynamics, logs: Log | Sequence[Log],
             settings: Settings | None = None, *,
             progress: Callable[[str], None] | None = None, **options: Any) -> Result:
    """Identify a robot from measured logs.

    Parameters
    ----------
    model : Model or ClosedLoopDynamics
        The nominal robot; with loops, the logs are of its independent joints.
    logs : Log or sequence of Log
        For the fit alone; prove the result on others with `validate`.
    settings : Settings, optional
        How; or the same as keywords.
    progress : callable, optional
        Told each phase.

    Raises
    ------
    LogError, IdentificationError, UnknownNameError
        The logs cannot be used, or do not determine anything.
    """
    chosen = replace(settings or Settings(), **options)
    if chosen.method not in METHODS:
        raise UnknownNameError('method', chosen.method, METHODS)
    tell = progress or (lambda phase: None)
    notes: list[str] = []
    every = [logs] if isinstance(logs, Log) else list(logs)
    tell('reading and filtering')
    dynamics = model if isinstance(model, ClosedLoopDynamics) else Dynamics(model)
    segments = _segments(dynamics, every, chosen, notes)
    speed = fast_speeds([joint_speeds(dynamics, s.q, s.qd) for s in segments])
    tell('friction')
    shape, choice = _friction(dynamics, segments, speed, chosen, notes)
    tell('base parameters')
    linear = LinearModel(dynamics, chosen.kind, friction=shape, joints=chosen.joints,
                         payload=chosen.payload)
    base = base_parameters(linear)
    tell('observation matrices')
    observations = _observations(linear, segments, chosen)
    blocks = list(observations.blocks())
    folds = [factors_of(block, part) for block in blocks
             for part in _parts(len(block.t), max(1, -(-FOLDS // len(blocks))))]
    factors = merge(folds)
    base = _excited(base, factors, notes)
    tell('estimate')
    count = counts_of(blocks)
    estimate = least_squares(factors, base.kept, count, weighted=chosen.method != 'ordinary')
    if chosen.method == 'huber':
        estimate = huber(observations, base.kept, estimate)
    tell('statistics')
    found = _judged(observations, base, estimate)
    tell('physical consistency')
    consistent = consistent_estimate(linear, folds, estimate.sigma, prior=chosen.prior,
                                     known=observations.known)
    _remark(found.uncertainty_, base, found.estimate_, found.bias_, notes)
    return Result(chosen, linear, base, *found, consistent,
                  tuple(free_bodies(linear, found.theta_)),
                  _identified(linear, consistent, observations), choice, observations,
                  tuple((log.source, _digest(log)) for log in every), tuple(notes))


def validate(result: Result, logs: Log | Sequence[Log], *, consistent: bool = False,
             ) -> Validation:
    """Compare predicted with measured torques on logs that the fit has not seen.

    Parameters
    ----------
    result : Result
        Of `identify`.
    logs : Log or sequence of Log
        Other logs, or other parts of the same.
    consistent : bool
        Judge the physically consistent parameters.

    Raises
    ------
    IdentificationError
        One of the logs was used for the fit.
    """
    every = [logs] if isinstance(logs, Log) else list(logs)
    seen = {digest for _, digest in result.sources}
    for log in every:
        if _digest(log) in seen:
            raise IdentificationError(f'{log.source} was used for the fit: that is no validation')
    segments = _segments(result.linear.whole, every, result.settings, [])
    observations = _observations(result.linear, segments, result.settings)
    return validate_on(observations, result.consistent_ if consistent else result.theta_)


def reduce(result: Result, *, relative: float | None = None) -> Result:
    """Keep the significant base parameters alone and estimate them again (Kolyubin 5.24).

    Parameters
    ----------
    result : Result
        Of `identify`.
    relative : float, optional
        Keep what has a standard deviation below this share of its value; default: what an F test
        keeps, ``result.significant_``.

    Returns
    -------
    Result
        With fewer base parameters; the physically consistent model is the same.
    """
    if relative is None:
        keep = [k for k, name in enumerate(result.base_.names) if name in result.significant_]
    else:
        if not relative > 0:
            raise IdentificationError(f'relative is {relative}; valid: a number > 0')
        keep = list(significant(result.estimate_.values, result.uncertainty_.covariance,
                                relative=relative))
    base = _only(result.base_, keep)
    blocks = list(result.observations.blocks())
    estimate = least_squares(merge([factors_of(block) for block in blocks]), base.kept,
                             counts_of(blocks),
                             weighted=result.settings.method != 'ordinary')
    found = _judged(result.observations, base, estimate)
    note = f'reduced from {result.base_.count} to {base.count} significant base parameters'
    return replace(result, base_=base, **found._asdict(), notes=(*result.notes, note))


# steps ----------------------------------------------------------------------------------------


class _Judged(NamedTuple):
    """What statistics make of an estimate; fields as those of `Result`, in its order."""

    estimate_: Estimate
    uncertainty_: Uncertainty
    significant_: tuple[str, ...]
    instrumental_: Array
    bias_: Array
    theta_: Array


def _judged(observations: Observations, base: BaseParameters, estimate: Estimate) -> _Judged:
    uncertainty = uncertainty_of(observations, base.kept, base.names, estimate)
    instrumental = instrumental_variables(observations, base.kept, estimate)
    bias = (instrumental - estimate.values) / np.maximum(uncertainty.deviation, 1e-300)
    estimate = replace(estimate, values=estimate.values + uncertainty.shift)
    kept = significant(estimate.values, uncertainty.covariance)
    theta = np.zeros(len(observations.linear.columns))
    theta[list(base.kept)] = estimate.values
    for place, value in observations.known.items():
        theta[place] = value
    return _Judged(estimate, uncertainty.selected(kept), tuple(base.names[k] for k in kept),
                   instrumental, bias, theta)


def _segments(dynamics: AnyDynamics, logs: Sequence[Log], settings: Settings,
              notes: list[str]) -> list[Segment]:
    if not logs:
        raise IdentificationError('no log')
    found = []
    for log in logs:
        ready = log.for_model(dynamics.model, joints=dynamics.joints.joint_names,
                              used=settings.torques_of)
        found += segments_of(ready, settings.filter, notes)
        notes += ready.notes
    return found


def _observations(linear: LinearModel, segments: list[Segment],
                  settings: Settings) -> Observations:
    n, names = linear.joints.n, linear.joints.joint_names
    slow = np.broadcast_to(np.asarray(0.0 if settings.slow is None else settings.slow,
                                      np.float64), (n,)).copy()
    counts = None
    if settings.torques_of is not None:
        for name in settings.torques_of:
            if name not in names:
                raise UnknownNameError('joint', name, names)
        counts = np.array([name in settings.torques_of for name in names])
    return Observations(linear, segments, cutoff=settings.decimation, slow=slow,
                        guard=settings.guard,
                        torques_of=counts, known=_known(settings))


def _parts(size: int, count: int) -> list[slice]:
    edges = np.linspace(0, size, count + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _known(settings: Settings) -> dict[str, float]:
    if settings.payload_mass is None:
        return {}
    if settings.payload is None or not settings.payload_mass > 0:
        raise IdentificationError(f'payload_mass is {settings.payload_mass}; valid: a number > 0 '
                                  'with the link that carries the payload')
    return {'m:payload': settings.payload_mass}


def _friction(dynamics: AnyDynamics, segments: list[Segment], speed: Array,
              settings: Settings, notes: list[str]) -> tuple[FrictionShape, FrictionChoice | None]:
    width = settings.friction_width
    if settings.friction != 'auto' or settings.kind == 'rigid':
        model = 'coulomb' if settings.friction == 'auto' else settings.friction
        return FrictionShape(model, width or 0.0, speed), None
    linear = LinearModel(dynamics, settings.kind, friction=FrictionShape('coulomb', 0.0, speed),
                         joints=settings.joints)
    observations = _observations(linear, segments, replace(settings, payload_mass=None))
    choice = choose_friction(observations, speed,
                             widths=WIDTHS if width is None else (width,))
    error = choice.errors[choice.shape.model, choice.shape.width]
    notes.append(f'friction: {choice.shape.model}, sign(s) {choice.shape.width:g} of the fast '
                 f'speed wide: {error:.2%} on data left out of the fit; plain Coulomb friction '
                 f'has {choice.errors.get(("coulomb", 0.0), np.nan):.2%}')
    return choice.shape, choice


def _excited(base: BaseParameters, factors: Array, notes: list[str]) -> BaseParameters:
    """Leave out base parameters that this motion does not excite at all."""
    norms = np.sqrt((factors[:, :, list(base.kept)] ** 2).sum(axis=(0, 1)))
    still = [k for k, norm in enumerate(norms) if norm < 1e-9 * max(norms.max(), 1e-300)]
    if not still:
        return base
    if len(still) == base.count:
        raise IdentificationError('no sample counts, or nothing moves; valid: a lower slow or '
                                  'guard, or a longer log')
    notes.append('not excited at all by this motion: '
                 + ', '.join(base.names[k] for k in still))
    return _only(base, [k for k in range(base.count) if k not in still])


def _only(base: BaseParameters, stay: list[int]) -> BaseParameters:
    return replace(base, names=tuple(base.names[k] for k in stay),
                   expressions=tuple(base.expressions[k] for k in stay),
                   kept=tuple(base.kept[k] for k in stay), matrix=base.matrix[stay])


def _identified(linear: LinearModel, theta: Array, observations: Observations) -> Model:
    """The robot with the consistent parameters; friction beyond Coulomb is projected on it."""
    chi = linear.model.standard_parameters.copy()
    if linear.kind == 'lumped':  # link-side friction holds both sides now
        motor = chi.reshape(-1, STANDARD)[:, 14:]
        motor[[b for b in linear.bodies if not linear.coupled(b)]] = 0.0
    samples = np.concatenate([joint_speeds(linear.whole, s.q[::7], s.qd[::7])
                              for s in observations.segments])
    shape, model = linear.friction, linear.model
    for k, column in enumerate(linear.columns):
        if column.standard >= 0:
            chi[column.standard] = theta[k]
    for body, side, row in linear.friction_sources:
        speed, fast = samples @ row, float(np.abs(row) @ shape.speed)
        columns = [(k, c) for k, c in enumerate(linear.columns)
                   if c.body == body and c.term[0] in 'Fo' and c.term.endswith(side)]
        curve = sum((theta[k] * shape.values(c.term, speed, fast) for k, c in columns),
                    np.zeros(len(speed)))
        standard = [(k, c) for k, c in columns if c.standard >= 0]
        if len(standard) == len(columns):
            continue  # how wide sign(s) is does not change how high it is
        plain = FrictionShape('coulomb', shape.width, shape.speed)
        w = np.column_stack([plain.values(c.term, speed, fast) for _, c in standard])
        offsets = [i for i, (_, c) in enumerate(standard) if c.term.startswith('off')]
        bounds = [-np.inf if i in offsets else 0.0 for i in range(len(standard))]
        values = lsq_linear(w, curve, (bounds, np.inf)).x
        for (_, column), value in zip(standard, values, strict=True):
            chi[column.standard] = value
    return model.with_standard_parameters(chi)


def _remark(uncertainty: Uncertainty, base: BaseParameters, estimate: Estimate, bias: Array,
            notes: list[str]) -> None:
    notes.append(f'{base.count} base parameters, condition {uncertainty.condition:.4g}')
    notes += uncertainty.poorly_told_apart
    with np.errstate(divide='ignore', invalid='ignore'):
        relative = uncertainty.deviation / np.abs(estimate.values)
    vague = int((relative > 1).sum())
    if vague > base.count / 3:
        notes.append(f'{vague} of {base.count} base parameters have a standard deviation above '
                     'their value: this motion excites the robot badly')
    if abs(uncertainty.delay) > 2 * uncertainty.delay_deviation:
        notes.append(f'torques are {1e3 * uncertainty.delay:.3g} ms older than positions (with a '
                     f'deviation of {1e3 * uncertainty.delay_deviation:.2g} ms): counted')
    watson = uncertainty.durbin_watson
    if np.nanmin(watson) < 1 or np.nanmax(watson) > 3:
        notes.append(f'Durbin-Watson from {np.nanmin(watson):.2f} to {np.nanmax(watson):.2f}: '
                     'residuals are correlated; standard deviations take that into account')
    # a bias counts where it is seen in the torques, too
    felt = np.linalg.norm(estimate.factor, axis=0) * uncertainty.deviation * np.abs(bias)
    seen = felt > BIAS * np.linalg.norm(estimate.factor @ estimate.values)
    biased = [name for name, value, there in zip(base.names, bias, seen, strict=True)
              if abs(value) > 2 and there]
    if biased:
        notes.append('noise in the motion has biased (against instrumental variables): '
                     + ', '.join(biased[:8]) + (', ...' if len(biased) > 8 else ''))


def _digest(log: Log) -> str:
    digest = hashlib.sha256()
    for values in (log.t, log.q, log.tau):
        digest.update(np.ascontiguousarray(np.asarray(values)).tobytes())
    return digest.hexdigest()
