"""Draws the figures of an identification as vector graphics (matplotlib)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.report.figures import Figure, Panel

WIDTH = 11.0  # inches
# inches: margins beside the axes, between two panels, a line of text, a letter of a small label
LEFT, RIGHT, BOTTOM, GAP, LINE, LETTER = 0.9, 0.1, 0.5, 0.3, 0.2, 0.065
LEGEND_COLUMNS = 3
FILES = {'torque.svg': 'torque', 'residual_spectrum.svg': 'spectrum',
         'parameters.svg': 'parameters'}


def pictures_of(figures: Mapping[str, Figure]) -> dict[str, str]:
    """Return figures as texts of SVG files whose words can be searched and selected."""
    return {name: svg_of(partial(draw, figure)) for name, figure in figures.items()}


def save_pictures(pictures: Mapping[str, str], folder: str | Path) -> list[Path]:
    """Write ``torque.svg``, ``residual_spectrum.svg`` and ``parameters.svg``.

    Parameters
    ----------
    pictures : mapping of str to str
        All figures of an identification, see `pictures_of`.
    folder : str or Path
        An existing folder.

    Returns
    -------
    list of Path
        The files.
    """
    paths = []
    for file, name in FILES.items():
        paths.append(Path(folder) / file)
        paths[-1].write_text(pictures[name], encoding='utf-8')
    return paths


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

    drawing = Drawing(figsize=(WIDTH, figure.height / 100))
    axes = np.atleast_1d(drawing.subplots(len(figure.panels), 1, sharex=True))
    for axis, panel in zip(axes, figure.panels, strict=True):
        _draw_panel(axis, panel)
        axis.tick_params(labelsize=8)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    if figure.x_range is not None:
        axes[-1].set_xlim(*figure.x_range)
    entries = len(axes[0].get_legend_handles_labels()[1])
    if entries > 1:
        axes[0].legend(loc='lower right', bbox_to_anchor=(1, 1), fontsize=8, ncols=LEGEND_COLUMNS,
                       frameon=False)
    axes[-1].set_xlabel(figure.x_label)
    _set_margins(drawing, figure, -(-entries // LEGEND_COLUMNS))
    return drawing


def _set_margins(drawing: Any, figure: Figure, legend_lines: int) -> None:
    """Leave room for titles, labels and the legend.

    matplotlib's own layouts measure every text, which takes longer than to draw the figure.
    """
    names = [name for panel in figure.panels for trace in panel.traces
             if isinstance(trace.y, list) for name in trace.y]
    left = 0.2 + LETTER * max(map(len, names)) if names else LEFT
    height, count = figure.height / 100, len(figure.panels)
    top = LINE * max(legend_lines, 1) + 0.1
    each = (height - top - BOTTOM - GAP * (count - 1)) / count
    drawing.subplots_adjust(left=left / WIDTH, right=1 - RIGHT / WIDTH, bottom=BOTTOM / height,
                            top=1 - top / height, hspace=GAP / each)


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
    # with a given y, matplotlib need not measure all texts
    axis.set_title(panel.title, fontsize=9, loc='left', y=1.0)
    axis.set_ylabel(panel.y_label, fontsize=8)
