"""The report of a fleet: a single HTML page without external files."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros._version import __version__
from robodyn_ros.fleet.findings import FALSE_ALARMS, Findings
from robodyn_ros.report.html import template_of
from robodyn_ros.report.pictures import svg_element, svg_of
from robodyn_ros.report.tables import percent

MOST_ROWS = 200  # largest number of rows of a table; the Parquet files contain all results
MOST_STEPS = 12  # changes that are drawn
COLOURS = ('#0072b2', '#d55e00')  # estimates; means before and after


def save_fleet_report(results: Any, findings: Findings, path: str | Path, *,
                      false_alarms: float = FALSE_ALARMS) -> None:
    """Write the report.

    Parameters
    ----------
    results : DataFrame
        What `read_results` returned.
    findings : Findings
        What `find` found in them.
    path : str or Path
        The file to write.
    false_alarms : float
        The value with which `find` was called.
    """
    logs = results.drop_duplicates(['robot', 'log', 'date'])
    page = template_of('robodyn_ros.fleet', 'fleet.html.jinja').render(
        robots=results.robot.nunique(), logs=len(logs), version=__version__,
        first=_day(results.date.min()), last=_day(results.date.max()),
        date=datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
        false_alarms=percent(false_alarms),
        facts=[(len(findings.changes.drop_duplicates(['robot', 'joint'])), 'joints changed'),
               (len(findings.outliers), 'logs are outliers'),
               (len(findings.bad), 'logs cannot be used'),
               (len(findings.differences), 'parameters differ between robots')],
        steps=svg_element(svg_of(lambda: _steps(results, findings.changes)))
        if len(findings.changes) else '',
        **{name: _table(getattr(findings, name))
           for name in ('ranking', 'changes', 'outliers', 'bad', 'differences')})
    Path(path).write_text(page, encoding='utf-8')


def _day(moment: Any) -> str:
    return str(moment.strftime('%Y-%m-%d'))


def _table(frame: Any) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of a data frame as texts."""
    rows = [[_cell(name, value) for name, value in zip(frame.columns, row, strict=True)]
            for row in frame.head(MOST_ROWS).itertuples(index=False)]
    if len(frame) > MOST_ROWS:
        rows.append([f'and {len(frame) - MOST_ROWS} more'])
    return [str(name).replace('_', ' ') for name in frame.columns], rows


def _cell(name: str, value: Any) -> str:
    if hasattr(value, 'strftime'):
        return _day(value)
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if np.isnan(value):
        return ''
    if 'change' in name:
        return f'{value:+.1%}'
    return percent(float(value)) if name in ('error', 'usual') else f'{value:.4g}'


def _steps(results: Any, changes: Any) -> Any:
    """Return a drawing of the most significant changes, with the estimate of every log."""
    from matplotlib.figure import Figure as Drawing

    shown = changes.head(MOST_STEPS)
    rows = -(-len(shown) // 2)
    drawing = Drawing(figsize=(9.5, 2.1 * rows), layout='constrained')
    axes = np.atleast_1d(drawing.subplots(rows, 2, squeeze=False)).ravel()
    for axis in axes[len(shown):]:
        axis.set_visible(False)
    for axis, change in zip(axes, shown.itertuples(), strict=False):
        own = results[(results.robot == change.robot) & (results.parameter == change.parameter)]
        axis.errorbar(own.date, own.estimate, 1.96 * own.standard_deviation, fmt='o', ms=3, lw=1,
                      color=COLOURS[0])
        axis.hlines([change.before, change.after], [own.date.min(), change.date],
                    [change.date, own.date.max()], color=COLOURS[1])
        axis.set_title(f'{change.robot}: {change.parameter}', fontsize=9)
        axis.set_ylabel('SI units', fontsize=8)
        axis.tick_params(labelsize=7)
        axis.tick_params(axis='x', rotation=20)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    return drawing
