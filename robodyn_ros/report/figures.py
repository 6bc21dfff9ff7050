"""Every figure of an identification, described once, independent of what draws it.

`robodyn_ros.report.interactive` draws the figures for the HTML report, and
`robodyn_ros.report.pictures` writes them as PNG files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.identification import Result, Validation
from robodyn_ros.numerics import safe_divide
from robodyn_ros.report.spectrum import amplitude_density
from robodyn_ros.spatial import Array

MEASURED, PREDICTED, RESIDUAL, NOMINAL = '#8895a3', '#0b6e99', '#c2410c', '#a16207'
FILTERED = '#7cc4de'
POINTS = 3000  # of a line; the lowest and the highest value of each bin are kept
WIDEST = 3.0  # of a parameter's size: nominal values beyond are drawn at the edge


@dataclass(frozen=True)
class Trace:
    """One line, or one set of markers or bars.

    Attributes
    ----------
    name : str
        Name in the legend; traces of one name share a colour and an entry.
    x, y : ndarray, shape (N,), or list of str
        Coordinates; NaN separates pieces of a line.
    colour : str
        As ``#rrggbb``.
    style : str
        ``line``, ``dots``, ``crosses`` or ``bars``.
    half_width : ndarray, shape (N,), optional
        Half the length of a horizontal interval around each marker.
    labels : list of str, optional
        What is shown of each point where the pointer rests on it.
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
    """Panels above each other that share their horizontal axis.

    Attributes
    ----------
    panels : tuple of Panel
        From top to bottom.
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


def figures_of(result: Result, validation: Validation) -> dict[str, Figure]:
    """Return all figures of an identification by their names."""
    return {'errors': error_figure(validation), 'torque': torque_figure(validation),
            'spectrum': spectrum_figure(validation), 'parameters': parameter_figure(result),
            'singular': singular_figure(result)}


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
        panels.append(Panel(f'{joint}: error of {validation.relative_error[k]:.1%} raw, '
                            f'{validation.relative_error_filtered[k]:.1%} filtered',
                            tuple(traces), 'N m, N'))
    return Figure(tuple(panels), 'time, s', _height(len(panels)))


def spectrum_figure(validation: Validation) -> Figure:
    """Amplitude density of the torque and of the difference, one panel for each joint."""
    f, measured, difference = amplitude_density(validation)
    panels = [Panel(joint, (Trace('measured', f, measured[:, k], MEASURED),
                            Trace('difference', f, difference[:, k], RESIDUAL)),
                    'per √Hz', logarithmic_x=True, logarithmic_y=True)
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
        'nominal', np.clip(safe_divide(nominal, scale), -WIDEST, WIDEST), list(base.names),
        NOMINAL, 'crosses', labels=tuple(f'{name}: nominal value {value:.5g}' for name, value
                                         in zip(base.names, nominal, strict=True))))
    return Figure((Panel('', tuple(traces)),), "relative to the parameter's size",
                  120 + 17 * base.count, (-WIDEST - 0.1, WIDEST + 0.1))


def error_figure(validation: Validation) -> Figure:
    """Fraction of each joint's torque that stays unexplained, nominal and identified."""
    joints = list(validation.joint_names)
    traces = tuple(Trace(name, joints, 100 * values, colour, 'bars') for name, colour, values in (
        ('nominal', MEASURED, validation.nominal),
        ('identified', PREDICTED, validation.relative_error),
        ('identified, filtered', FILTERED, validation.relative_error_filtered)))
    return Figure((Panel('', traces, 'unexplained torque, %', logarithmic_y=True),), '', 320)


def singular_figure(result: Result) -> Figure:
    """Singular values of the weighted observation matrix with columns of equal length."""
    values = singular_values(result)
    trace = Trace('singular values', np.arange(1, len(values) + 1), values, PREDICTED, 'bars')
    return Figure((Panel('', (trace,), 'singular value', logarithmic_y=True),), 'number', 280)


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
