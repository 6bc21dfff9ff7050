"""Describes every figure of an identification once, independently of the plotting library.

`robodyn_ros.report.interactive` draws the figures for the HTML report, and
`robodyn_ros.report.pictures` writes them as SVG files, for the printed report as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.identification import Result, Validation
from robodyn_ros.identification.friction import is_friction
from robodyn_ros.numerics import safe_divide
from robodyn_ros.report.spectrum import amplitude_density
from robodyn_ros.spatial import Array

# palette of Okabe and Ito, whose colours colour-blind readers can distinguish
MEASURED, PREDICTED, RESIDUAL, NOMINAL = '#8895a3', '#0072b2', '#d55e00', '#e69f00'
FILTERED = '#56b4e9'
JOINTS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000')
DASHES = ('-', '--', ':', '-.')  # line styles, if there are more joints than colours
SCATTERED = 400  # most points of a scatter plot
BINS = 60  # number of velocity bins of a friction curve
PHASES = 24  # number of bins of a period of torque ripple
POINTS = 3000  # most points of a line, which keeps the lowest and highest value of each bin
WIDEST = 3.0  # relative to a parameter's size; nominal values beyond are drawn at the edge


@dataclass(frozen=True)
class Trace:
    """One line, or one set of markers or bars.

    Attributes
    ----------
    name : str
        Name in the legend; traces of the same name share a colour and an entry.
    x, y : ndarray, shape (N,), or list of str
        Coordinates; NaN separates pieces of a line.
    colour : str
        Colour as ``#rrggbb``.
    style : str
        ``line``, ``dots``, ``crosses``, ``points`` (small) or ``bars``.
    half_width : ndarray, shape (N,), optional
        Half the length of a horizontal interval around each marker.
    labels : list of str, optional
        Text of each point that is shown when the pointer hovers over it.
    """

    name: str
    x: Any
    y: Any
    colour: str
    style: str = 'line'
    half_width: Array | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its traces."""

    title: str
    traces: tuple[Trace, ...]
    y_label: str = ''
    logarithmic_x: bool = False
    logarithmic_y: bool = False


@dataclass(frozen=True)
class Figure:
    """Stacked panels that share their horizontal axis.

    Attributes
    ----------
    panels : tuple of Panel
        The panels from top to bottom.
    x_label : str
        Label of the horizontal axis.
    height : int
        Height in pixels.
    x_range : tuple of float, optional
        Lowest and highest x.
    """

    panels: tuple[Panel, ...]
    x_label: str
    height: int
    x_range: tuple[float, float] | None = None


def line(joint: int) -> dict[str, Any]:
    """Return colour and style of a joint's line, as matplotlib takes them."""
    return {'color': JOINTS[joint % len(JOINTS)],
            'linestyle': DASHES[joint // len(JOINTS) % len(DASHES)]}


def figures_of(result: Result, validation: Validation) -> dict[str, Figure]:
    """Return all figures of an identification by their names."""
    return {'errors': error_figure(validation), 'coverage': coverage_figure(result, validation),
            'torque': torque_figure(validation), 'friction': friction_figure(result),
            'spectrum': spectrum_figure(validation, fitted_band(result)),
            'parameters': parameter_figure(result), 'singular': singular_figure(result),
            **({'ripple': ripple_figure(result)} if result.linear.friction.ripple else {})}


def torque_figure(validation: Validation) -> Figure:
    """Measured and predicted torque and their difference, one panel for each joint."""
    difference = [m - p for m, p in zip(validation.measured, validation.predicted, strict=True)]
    series = (('measured', MEASURED, validation.measured),
              ('predicted', PREDICTED, validation.predicted),
              ('difference', RESIDUAL, difference))
    panels = []
    for k, joint in enumerate(validation.joint_names):
        traces = [Trace(name, *_joined(validation.t, [piece[:, k] for piece in pieces]), colour)
                  for name, colour, pieces in series]
        panels.append(Panel(f'{joint}: {validation.relative_error[k]:.1%} raw, '
                            f'{validation.relative_error_filtered[k]:.1%} filtered',
                            tuple(traces), f'torque, {effort_unit(validation, k)}'))
    return Figure(tuple(panels), 'time, s', _height(len(panels)))


def fitted_band(result: Result) -> float:
    """Return the highest frequency that the fit has seen, Hz; inf where nothing was filtered."""
    filtering = result.filtering
    return min(filtering.cutoff, filtering.judged or np.inf)


def spectrum_figure(validation: Validation, highest: float = np.inf) -> Figure:
    """Amplitude density of the torque and of the difference up to a frequency, by joint."""
    f, measured, difference = amplitude_density(validation)
    kept = f <= highest
    f, measured, difference = f[kept], measured[kept], difference[kept]
    panels = [Panel(joint, (Trace('measured', f, measured[:, k], MEASURED),
                            Trace('difference', f, difference[:, k], RESIDUAL)),
                    f'{effort_unit(validation, k)}/√Hz', logarithmic_x=True, logarithmic_y=True)
              for k, joint in enumerate(validation.joint_names)]
    return Figure(tuple(panels), 'frequency, Hz', _height(len(panels)))


def parameter_figure(result: Result) -> Figure:
    """Estimates with 95 % intervals and nominal values, each relative to its size."""
    base, u = result.base_, result.uncertainty_
    nominal, values = result.nominal_, result.estimate_.values
    scale = np.maximum(np.abs(values), 2 * u.deviation)
    traces = []
    for kept, colour, name in ((True, PREDICTED, 'significant'),
                               (False, MEASURED, 'not significant')):
        these = [k for k, p in enumerate(base.names) if (p in result.significant_) == kept]
        traces.append(Trace(
            name, safe_divide(values[these], scale[these]), [base.names[k] for k in these],
            colour, 'dots', safe_divide(u.interval[these, 1] - values[these], scale[these]),
            tuple(f'{base.names[k]}: {values[k]:.5g} ± {u.deviation[k]:.2g}' for k in these)))
    traces.append(Trace(
        'description', np.clip(safe_divide(nominal, scale), -WIDEST, WIDEST), list(base.names),
        NOMINAL, 'crosses', labels=tuple(f'{name}: in the description {value:.5g}' for name, value
                                         in zip(base.names, nominal, strict=True))))
    return Figure((Panel('', tuple(traces)),),
                  'value over the larger of its size and two standard deviations',
                  120 + 17 * base.count, (-WIDEST - 0.1, WIDEST + 0.1))


def error_figure(validation: Validation) -> Figure:
    """Unexplained fraction of each joint's torque, for the nominal and the identified model."""
    joints = list(validation.joint_names)
    traces = tuple(Trace(name, joints, 100 * values, colour, 'bars') for name, colour, values in (
        ('description', MEASURED, validation.nominal),
        ('identified', PREDICTED, validation.relative_error),
        ('identified, filtered', FILTERED, validation.relative_error_filtered)))
    return Figure((Panel('', traces, 'unexplained torque, % (logarithmic)', logarithmic_y=True),),
                  'joint', 320)


def singular_figure(result: Result) -> Figure:
    """Singular values of the weighted observation matrix with columns of equal norm."""
    values = singular_values(result)
    trace = Trace('singular values', np.arange(1, len(values) + 1), values, PREDICTED, 'bars')
    return Figure((Panel('', (trace,), 'singular value (logarithmic)', logarithmic_y=True),),
                  'number of the singular value', 280)


def coverage_figure(result: Result, validation: Validation) -> Figure:
    """Velocities over positions of the fit and of the validation, one panel for each joint."""
    segments = result.observations.segments
    clouds = [('fit', MEASURED, np.concatenate([s.q for s in segments]),
               np.concatenate([s.qd for s in segments])),
              ('validation', PREDICTED, np.concatenate(validation.q),
               np.concatenate(validation.qd))]
    panels = []
    for k, joint in enumerate(result.linear.joints.joint_names):
        traces = []
        for name, colour, q, qd in clouds:
            some = slice(None, None, max(1, len(q) // SCATTERED))
            traces.append(Trace(name, np.round(q[some, k], 4), np.round(qd[some, k], 4), colour,
                                'points'))
        unit = 'm/s' if validation.slides[k] else 'rad/s'
        panels.append(Panel(joint, tuple(traces), f'velocity, {unit}'))
    return Figure(tuple(panels), 'position, rad or m', _height(len(panels)))


def friction_figure(result: Result) -> Figure:
    """Friction torque over the velocity of each joint: measured, nominal and identified.

    The measured friction torque is the measured torque minus all other terms of the identified
    model.
    """
    observations, columns = result.observations, result.linear.columns
    friction = np.array([is_friction(column.term) for column in columns])
    theta, nominal = result.theta_, result.linear.nominal()
    pieces = range(len(observations))
    speed = np.concatenate([segment.qd for segment in observations.segments])
    rest = np.concatenate([observations.torque(k) - observations.prediction(
        k, np.where(friction, 0.0, theta)) for k in pieces])
    curves = [(name, colour, np.concatenate([observations.prediction(
        k, np.where(friction, values, 0.0)) for k in pieces]))
        for name, colour, values in (('description', NOMINAL, nominal),
                                     ('identified', PREDICTED, theta))]
    panels = []
    joints = result.linear.joints.joint_names
    for k, joint in enumerate(joints):
        qd = speed[:, k]
        some = slice(None, None, max(1, len(qd) // SCATTERED))
        traces = [Trace('measured, without the rest of the model', np.round(qd[some], 4),
                        np.round(rest[some, k], 4), MEASURED, 'points')]
        traces += [Trace(name, *_curve(qd, torque[:, k]), colour)
                   for name, colour, torque in curves]
        panels.append(Panel(joint, tuple(traces), 'friction, N m or N'))
    return Figure(tuple(panels), 'velocity, rad/s or m/s', _height(len(panels)))


def ripple_figure(result: Result) -> Figure:
    """Torque ripple over the phase of each line: the mean of what the rest leaves, and the line.

    The phase is the part of a period of the ripple, from 0 to 1.
    """
    observations, model = result.observations, result.model
    pieces = range(len(observations))
    residual = np.concatenate([observations.torque(k) - observations.prediction(
        k, result.theta_) for k in pieces])
    q = np.concatenate([segment.q for segment in observations.segments])
    panels = []
    for body, lines in result.linear.friction.ripple.items():
        row = model.row[body]
        angle, left = q @ row, residual[:, int(np.flatnonzero(row)[0])]
        for one in lines:
            phase = one.harmonic * angle / (2 * np.pi) % 1
            bins = (phase * PHASES).astype(int)
            filled = [k for k in range(PHASES) if (bins == k).any()]
            mean = [np.mean((left + one.torque(angle))[bins == k]) for k in filled]
            x = np.linspace(0, 1, 4 * PHASES + 1)
            panels.append(Panel(
                f'{model.body_joints[body]}: {one.harmonic} periods a turn, '
                f'{np.hypot(one.sine, one.cosine):.3g} N m',
                (Trace('mean of what the rest of the model leaves',
                       np.round((np.array(filled) + 0.5) / PHASES, 4), np.round(mean, 5),
                       MEASURED, 'dots'),
                 Trace('identified', np.round(x, 4), np.round(one.torque(
                     2 * np.pi * x / one.harmonic), 5), PREDICTED)), 'torque, N m'))
    return Figure(tuple(panels), 'part of a period of the ripple', _height(len(panels)))


def _curve(speed: Array, torque: Array) -> tuple[Array, Array]:
    """Return the median velocity and torque of each velocity bin; zero separates two bins."""
    edge = float(np.abs(speed).max()) or 1.0
    edges = np.linspace(-edge, edge, 2 * (BINS // 2) + 1)  # zero is an edge
    place = np.clip(np.searchsorted(edges, speed) - 1, 0, len(edges) - 2)
    filled = [k for k in range(len(edges) - 1) if (place == k).any()]
    return (np.round([np.median(speed[place == k]) for k in filled], 4),
            np.round([np.median(torque[place == k]) for k in filled], 4))


def effort_unit(validation: Validation, row: int) -> str:
    """Return the unit of a row's torque."""
    return 'N' if validation.slides[row] else 'N m'


def singular_values(result: Result) -> Array:
    """Return the singular values of `singular_figure`, the largest first."""
    kept = list(result.base_.kept)
    gram = np.zeros((len(kept), len(kept)))
    sigma = result.estimate_.sigma
    for block in result.observations.blocks():
        for row in np.flatnonzero(sigma > 0):
            w = block.w[:, row][:, kept][block.used[:, row]] / sigma[row]
            gram += w.T @ w
    length = np.sqrt(np.diag(gram))
    return np.sqrt(np.maximum(np.linalg.eigvalsh(
        safe_divide(gram, np.outer(length, length)))[::-1], 0))


def _height(panels: int) -> int:
    return 150 * panels + 100


def _joined(times: list[Array], pieces: list[Array]) -> tuple[Array, Array]:
    """Return one line with gaps between the pieces, thinned to the extremes of each bin."""
    x: list[Any] = []
    y: list[Any] = []
    each = max(200, POINTS // len(pieces))
    for t, values in zip(times, pieces, strict=True):
        size = max(1, -(-len(t) // (each // 2)))
        if size > 1:
            whole = len(t) // size * size
            bins = values[:whole].reshape(-1, size)
            low = np.arange(len(bins)) * size + bins.argmin(axis=1)
            high = np.arange(len(bins)) * size + bins.argmax(axis=1)
            places = np.unique(np.concatenate([low, high, [0, len(t) - 1]]))
            t, values = t[places], values[places]
        x += [t, [np.nan]]
        y += [values, [np.nan]]
    return np.round(np.concatenate(x[:-1]), 5), np.round(np.concatenate(y[:-1]), 5)
