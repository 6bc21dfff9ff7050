"""Validation on data that were not used for the fit (Kolyubin 5.26)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robodyn_ros.dynamics.residual_torque import ResidualTorque
from robodyn_ros.html_table import html_table
from robodyn_ros.identification.observations import Observations
from robodyn_ros.identification.rollout import Rollout
from robodyn_ros.identification.verdict import (
    Criterion,
    Errors,
    Evidence,
    Judgement,
    Thresholds,
    judge,
)
from robodyn_ros.lazy import cached_property
from robodyn_ros.numerics import safe_divide
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array


def no_rollout() -> None:
    """Simulate nothing."""


@dataclass(frozen=True, eq=False)
class WithResidual:
    """Errors of the raw torque of predictions with a residual model, as fractions.

    Attributes
    ----------
    relative_error : ndarray, shape (rows,)
        Of each joint, as `Validation.relative_error`.
    total : float
        Of all joints together.
    predicted : list of ndarray
        Predictions of each uninterrupted piece, N m or N.
    """

    relative_error: Array
    total: float
    predicted: list[Array] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Validation:
    """Torque errors on some logs, as fractions.

    Attributes
    ----------
    joint_names : tuple of str
        Names of the rows: the joints, twice if motor torques are predicted as well.
    relative_error : ndarray, shape (rows,)
        ``||tau - tau_hat|| / ||tau||`` of each joint, with the raw measured torque tau, which
        includes known extra torques.
    total : float
        The same for all joints together.
    rms, largest : ndarray, shape (rows,)
        Root mean square and largest error of the raw torque, N m or N.
    relative_error_filtered, total_filtered, rms_filtered
        The same after a low-pass filter at three times the band of the motion, for the samples
        that a fit would use.
    nominal, nominal_total
        Raw errors of the nominal model.
    gravity_only : float
        Raw total error of the gravity torque of the nominal model.
    coverage : float
        Fraction of the positions and velocities within the range of the fit.
    implausible : tuple of str
        Reasons why the result cannot be the described robot; empty if it can.
    t, q, qd, measured, predicted : list of ndarray
        Times, filtered motion, raw torque and prediction of each uninterrupted piece.
    slides : tuple of bool
        Which rows belong to prismatic joints: N and m instead of N m and rad.
    sources : tuple of (str, str)
        Name and SHA-256 of each log.
    errors : Errors
        The errors on which the verdict rests.
    evidence : Evidence, optional
        Facts about the fit on which it rests.
    thresholds : Thresholds, optional
        Its thresholds; default: those of `robodyn_ros.identification.verdict`.
    simulate : callable
        Computes `rollout`.
    with_residual : WithResidual or None
        Errors with the residual model, if there is one. All other errors and the verdict are those
        of the rigid model with friction.
    """

    joint_names: tuple[str, ...]
    relative_error: Array
    total: float
    rms: Array
    largest: Array
    relative_error_filtered: Array
    total_filtered: float
    rms_filtered: Array
    nominal: Array
    nominal_total: float
    gravity_only: float
    coverage: float
    implausible: tuple[str, ...]
    t: list[Array] = field(repr=False)
    q: list[Array] = field(repr=False)
    qd: list[Array] = field(repr=False)
    measured: list[Array] = field(repr=False)
    predicted: list[Array] = field(repr=False)
    slides: tuple[bool, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    errors: Errors = field(kw_only=True, repr=False)
    evidence: Evidence | None = field(default=None, kw_only=True, repr=False)
    thresholds: Thresholds | None = field(default=None, kw_only=True, repr=False)
    simulate: Callable[[], Rollout | None] = field(default=no_rollout, kw_only=True, repr=False)
    with_residual: WithResidual | None = field(default=None, kw_only=True)

    @cached_property
    def rollout(self) -> Rollout | None:
        """Position errors of simulations along the logs, see `roll_out`; computed when first used.

        None where there are none: for robots with closed loops, for kinds and settings that do
        not explain the torques of all joints, and for logs shorter than 0.1 s.
        """
        return self.simulate()

    @cached_property
    def judgement(self) -> Judgement:
        """Verdict, reasons and criteria; computed when first used, because of the rollout."""
        rollout = self.rollout
        return judge(self.errors, self.evidence, self.coverage, self.thresholds,
                     None if rollout is None else rollout.worst())

    @property
    def verdict(self) -> str:
        """``good``, ``doubtful`` or ``bad``, see `robodyn_ros.identification.verdict`."""
        return self.judgement.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for the verdict."""
        return self.judgement.reasons

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """What the verdict rests on, with the thresholds."""
        return self.judgement.criteria

    @property
    def applicable(self) -> bool:
        """Whether the result may be applied to a controller without an explicit override."""
        return self.verdict == 'good' and not self.implausible

    def _repr_html_(self) -> str:
        """Return verdict and criteria, for notebooks."""
        return html_table(f'verdict: {self.verdict}',
                          ('criterion', 'found', 'required', 'result'),
                          [(one.name, one.value, one.limit, one.result) for one in self.criteria],
                          self.reasons)

    def plot_torque(self) -> Any:
        """Return a matplotlib figure of measured and predicted torques."""
        return drawn('torque_figure', self)

    def plot_errors(self) -> Any:
        """Return a matplotlib figure of the errors of each joint."""
        return drawn('error_figure', self)

    def plot_spectrum(self) -> Any:
        """Return a matplotlib figure of the spectra of torques and differences."""
        return drawn('spectrum_figure', self)

    def to_text(self) -> str:
        """Return the errors and the verdict as a table."""
        width = max(len('in total'), *map(len, self.joint_names))
        lines = [f'  {"":{width}}  relative  filtered   nominal       rms   largest']
        for k, joint in enumerate(self.joint_names):
            lines.append(f'  {joint:{width}} {self.relative_error[k]:9.2%} '
                         f'{self.relative_error_filtered[k]:9.2%} {self.nominal[k]:9.2%} '
                         f'{self.rms[k]:9.4g} {self.largest[k]:9.4g}')
        lines.append(f'  {"in total":{width}} {self.total:9.2%} {self.total_filtered:9.2%} '
                     f'{self.nominal_total:9.2%}')
        if self.with_residual is not None:
            lines.append(f'  with the residual model: {self.with_residual.total:.2%} in total; '
                         + ', '.join(f'{joint} {error:.2%}' for joint, error in zip(
                             self.joint_names, self.with_residual.relative_error, strict=True)))
        if self.rollout is not None:
            lines.append(self.rollout.to_text())
        return '\n'.join([*lines, f'  verdict: {self.verdict}',
                          *(textwrap.fill(reason, 80, initial_indent='  - ',
                                          subsequent_indent='    ')
                            for reason in self.reasons)])


def validate_on(observations: Observations, theta: Array, evidence: Evidence | None = None,
                thresholds: Thresholds | None = None,
                residual: ResidualTorque | None = None) -> Validation:
    """Compare predicted torques with measured ones.

    Parameters
    ----------
    observations : Observations
        The logs.
    theta : ndarray, shape (p,)
        Parameters of the linear model.
    evidence : Evidence, optional
        Further facts about the fit, for the verdict.
    thresholds : Thresholds, optional
        Thresholds of the verdict.
    residual : ResidualTorque, optional
        A residual model, whose errors are given as well.
    """
    linear, segments = observations.linear, observations.segments
    n = linear.joints.n
    names = linear.joints.joint_names * (linear.rows // n)
    slides = dict(zip(linear.model.body_joints, linear.model.prismatic, strict=True))
    pieces = range(len(observations))
    ripple = [np.tile(observations.ripple(k), linear.rows // n) for k in pieces]
    measured = [observations.torque(k) + ripple[k] for k in pieces]
    predicted = [observations.prediction(k, theta) + ripple[k] for k in pieces]
    real = np.concatenate([segment.measured for segment in segments])
    explained = np.concatenate(measured)[real]
    wrong = explained - np.concatenate(predicted)[real]
    total = np.concatenate([observations.measured(k) for k in pieces])[real]
    nominal, gravity = (x[real] for x in _nominal(observations))
    blocks = list(observations.blocks())
    filtered_wrong = np.concatenate([(b.tau - b.w @ theta) * b.used for b in blocks])
    filtered = np.concatenate([b.measured * b.used for b in blocks])
    counts = np.concatenate([b.used for b in blocks]).sum(axis=0)
    used = np.tile(observations.torques_of, linear.rows // n)
    relative_filtered = _relative(filtered_wrong, filtered)
    errors = Errors({name: float(error) for name, error, use in zip(
        names, relative_filtered, used, strict=True) if use},
        *(_total(a[:, used], b[:, used]) for a, b in (
            (filtered_wrong, filtered), (wrong, total), (explained - nominal, total),
            (explained - gravity, total))))
    coverage = 1.0 if evidence is None else evidence.coverage(
        np.concatenate([s.q for s in segments]), np.concatenate([s.qd for s in segments]))
    beyond = None
    if residual is not None:
        richer = [p + residual.torque(s.q, s.qd) for p, s in zip(predicted, segments, strict=True)]
        left = explained - np.concatenate(richer)[real]
        beyond = WithResidual(_relative(left, total), _total(left[:, used], total[:, used]),
                              richer)
    return Validation(
        tuple(names), _relative(wrong, total), errors.raw, np.sqrt((wrong**2).mean(axis=0)),
        np.abs(wrong).max(axis=0), relative_filtered, errors.filtered,
        np.sqrt((filtered_wrong**2).sum(axis=0) / np.maximum(counts, 1)),
        _relative(explained - nominal, total), errors.nominal, errors.gravity, coverage,
        () if evidence is None else evidence.implausible, [segment.t for segment in segments],
        [segment.q for segment in segments], [segment.qd for segment in segments], measured,
        predicted, tuple(slides[name] for name in names), errors=errors, evidence=evidence,
        thresholds=thresholds, with_residual=beyond)


def _relative(wrong: Array, total: Array) -> Array:
    size = np.linalg.norm(total, axis=0)
    return np.linalg.norm(wrong, axis=0) / np.where(size > 0, size, np.nan)


def _total(wrong: Array, total: Array) -> float:
    return float(safe_divide(np.linalg.norm(wrong), np.linalg.norm(total), at_zero=np.inf))


def _nominal(observations: Observations) -> tuple[Array, Array]:
    """Return torques of the nominal model, and its gravity torques; shape (M, rows) each."""
    linear = observations.linear
    nominal = linear.nominal()
    theta = np.array([value if column.term in ('m', 'mx', 'my', 'mz') else 0.0
                      for value, column in zip(nominal, linear.columns, strict=True)])
    predicted, gravity = [], []
    for k, segment in enumerate(observations.segments):
        predicted.append(observations.prediction(k, nominal))
        still = np.zeros_like(segment.q)
        gravity.append(np.concatenate([linear.regressor(
            segment.q[a:a + 4096], still[a:a + 4096], still[a:a + 4096],
            loaded=segment.loaded) @ theta for a in range(0, len(still), 4096)]))
    return np.concatenate(predicted), np.concatenate(gravity)


def drawn(name: str, *arguments: object) -> Any:
    """Return a figure of `robodyn_ros.report.figures` as a matplotlib figure."""
    figure = getattr(package('robodyn_ros.report.figures'), name)(*arguments)
    return package('robodyn_ros.report.pictures').draw(figure)
