"""Plots of an identification: torques, residual spectra, parameters with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.identification import Result, Validation
from robodyn_ros.report.spectrum import amplitude_density

MEASURED, PREDICTED, RESIDUAL = '#9aa5b1', '#0b6e99', '#c2410c'


def save_plots(result: Result, validation: Validation, folder: str | Path) -> list[Path]:
    """Write ``torque.png``, ``residual_spectrum.png`` and ``parameters.png``; return the paths.

    Parameters
    ----------
    result : Result
        Of `identify`.
    validation : Validation
        Of `validate`.
    folder : str or Path
        Where to; it must exist.
    """
    import matplotlib

    matplotlib.use('Agg')
    folder = Path(folder)
    figures = {'torque.png': torque_figure(validation),
               'residual_spectrum.png': spectrum_figure(validation),
               'parameters.png': parameter_figure(result)}
    paths = []
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=110)
        paths.append(folder / name)
        figure.clear()
    return paths


def torque_figure(validation: Validation) -> Any:
    """Measured and predicted torque and their difference, a row for each joint."""
    figure, axes = _rows(len(validation.joint_names))
    for k, (axis, joint) in enumerate(zip(axes, validation.joint_names, strict=True)):
        for t, measured, predicted in zip(validation.t, validation.measured,
                                          validation.predicted, strict=True):
            step = max(1, len(t) // 4000)
            part = slice(None, None, step)
            first = t is validation.t[0]
            axis.plot(t[part], measured[part, k], color=MEASURED, lw=0.8,
                      label='measured' if first else None)
            axis.plot(t[part], predicted[part, k], color=PREDICTED, lw=1.0,
                      label='predicted' if first else None)
            axis.plot(t[part], (measured - predicted)[part, k], color=RESIDUAL, lw=0.5,
                      label='difference' if first else None)
        axis.set_title(f'{joint}: {validation.relative_error[k]:.1%} raw, '
                       f'{validation.relative_error_filtered[k]:.1%} filtered', fontsize=9,
                       loc='left')
        axis.set_ylabel('N m, N', fontsize=8)
    axes[0].legend(loc='upper right', fontsize=8, ncols=3, frameon=False)
    axes[-1].set_xlabel('time, s')
    return figure


def spectrum_figure(validation: Validation) -> Any:
    """Spectrum of the difference beside that of the torque, a row for each joint."""
    figure, axes = _rows(len(validation.joint_names))
    f, measured, difference = amplitude_density(validation)
    for k, (axis, joint) in enumerate(zip(axes, validation.joint_names, strict=True)):
        axis.loglog(f, measured[:, k], color=MEASURED, lw=0.9, label='measured')
        axis.loglog(f, difference[:, k], color=RESIDUAL, lw=0.9, label='difference')
        axis.set_title(joint, fontsize=9, loc='left')
        axis.set_ylabel('per √Hz', fontsize=8)
    axes[0].legend(loc='upper right', fontsize=8, ncols=2, frameon=False)
    axes[-1].set_xlabel('frequency, Hz')
    return figure


def parameter_figure(result: Result) -> Any:
    """Base parameters with 95 % intervals and their nominal values, each on its own scale."""
    from matplotlib.figure import Figure

    base, u = result.base_, result.uncertainty_
    nominal = base.matrix @ result.linear.nominal()
    scale = np.maximum(np.abs(result.estimate_.values), 2 * u.deviation)
    columns = 3
    rows = -(-base.count // columns)
    figure = Figure(figsize=(12, 0.24 * rows + 1.2), layout='constrained')
    axes = np.atleast_1d(figure.subplots(1, columns, sharex=True))
    for column, axis in enumerate(axes):
        part = range(column * rows, min(base.count, (column + 1) * rows))
        for place, k in enumerate(part):
            low, high = u.interval[k] / scale[k]
            significant = base.names[k] in result.significant_
            axis.plot([low, high], [place, place], lw=3, solid_capstyle='butt',
                      color=PREDICTED if significant else MEASURED)
            axis.plot(result.estimate_.values[k] / scale[k], place, 'o', ms=3, color='black')
            axis.plot(nominal[k] / scale[k], place, 'x', ms=5, color=RESIDUAL)
        axis.set_yticks(range(len(part)), [base.names[k] for k in part], fontsize=7)
        axis.set_xlim(-2.5, 2.5)
        axis.set_ylim(len(part) - 0.4, -0.6)
        axis.axvline(0, color='black', lw=0.5)
    figure.suptitle('estimate (dot) with 95 % interval (grey: not significant) and nominal value '
                    '(cross), each relative to its size', fontsize=9)
    return figure


def _rows(count: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.5 * count + 0.8), layout='constrained')
    axes = np.atleast_1d(figure.subplots(count, 1, sharex=True))
    for axis in axes:
        axis.tick_params(labelsize=8)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    return figure, axes
