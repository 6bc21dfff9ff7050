"""Draws the figures of an identification as vector graphics (matplotlib)."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.identification import Result, Validation
from robodyn_ros.report.figures import (
    Figure,
    Panel,
    fitted_band,
    parameter_figure,
    spectrum_figure,
    torque_figure,
)

WIDTH = 11.0  # inches


def save_pictures(result: Result, validation: Validation, folder: str | Path) -> list[Path]:
    """Write ``torque.svg``, ``residual_spectrum.svg`` and ``parameters.svg``.

    Parameters
    ----------
    result : Result
        The result of `identify`.
    validation : Validation
        The result of `validate`.
    folder : str or Path
        An existing folder.

    Returns
    -------
    list of Path
        The files.
    """
    figures = {'torque.svg': torque_figure(validation),
               'residual_spectrum.svg': spectrum_figure(validation, fitted_band(result)),
               'parameters.svg': parameter_figure(result)}
    paths = [Path(folder) / name for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        path.write_text(svg(figure), encoding='utf-8')
    return paths


def svg(figure: Figure) -> str:
    """Return a figure as the text of an SVG file whose words can be searched and selected."""
    return svg_of(lambda: draw(figure))


def svg_of(drawn: Callable[[], Any]) -> str:
    """Return the matplotlib figure that a function draws as the text of an SVG file."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({'svg.fonttype': 'none', 'font.family': 'sans-serif',
                                'path.simplify_threshold': 0.3}):
        drawing = drawn()
        drawing.savefig(text, format='svg', metadata={'Date': None})
        drawing.clear()
    return text.getvalue()


def svg_element(text: str) -> str:
    """Return the <svg> element of an SVG file, for use in an HTML page."""
    return text[text.index('<svg'):]


def draw(figure: Figure) -> Any:
    """Return a matplotlib figure."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(WIDTH, figure.height / 100), layout='constrained')
    axes = np.atleast_1d(drawing.subplots(len(figure.panels), 1, sharex=True))
    for axis, panel in zip(axes, figure.panels, strict=True):
        _draw_panel(axis, panel)
        axis.tick_params(labelsize=8)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    if figure.x_range is not None:
        axes[-1].set_xlim(*figure.x_range)
    if len(axes[0].get_legend_handles_labels()[1]) > 1:
        axes[0].legend(loc='lower right', bbox_to_anchor=(1, 1), fontsize=8, ncols=3,
                       frameon=False)
    axes[-1].set_xlabel(figure.x_label)
    return drawing


def _draw_panel(axis: Any, panel: Panel) -> None:
    names = panel.traces[-1].y if isinstance(panel.traces[-1].y, list) else None
    for place, trace in enumerate(panel.traces):
        y = trace.y if names is None else [names.index(name) for name in trace.y]
        if trace.style == 'bars':
            bars = np.arange(len(trace.x)) + 0.25 * (place - (len(panel.traces) - 1) / 2)
            axis.bar(bars, y, 0.25, color=trace.colour, label=trace.name)
            axis.set_xticks(range(len(trace.x)), trace.x)
        elif trace.style == 'line':
            axis.plot(trace.x, y, color=trace.colour, lw=0.9, label=trace.name)
        elif trace.style == 'points':
            axis.plot(trace.x, y, '.', color=trace.colour, ms=2, alpha=0.6, label=trace.name)
        else:
            axis.errorbar(trace.x, y, xerr=trace.half_width, color=trace.colour,
                          fmt='x' if trace.style == 'crosses' else 'o', ms=4, elinewidth=3,
                          label=trace.name)
    if names is not None:
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.axvline(0, color='black', lw=0.5)
    if panel.logarithmic_x:
        axis.set_xscale('log')
    if panel.logarithmic_y:
        axis.set_yscale('log')
    axis.set_title(panel.title, fontsize=9, loc='left')
    axis.set_ylabel(panel.y_label, fontsize=8)
