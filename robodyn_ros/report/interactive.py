"""Draws the figures of an identification for the HTML report (plotly)."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from robodyn_ros.report.figures import Figure, Trace

FONT = {'family': 'system-ui, sans-serif', 'size': 12, 'color': '#1f2933'}
MARGIN = {'l': 70, 'r': 20, 't': 60, 'b': 50}
GRID = {'gridcolor': 'rgba(128,128,128,0.25)', 'zerolinecolor': 'rgba(128,128,128,0.5)'}
LEGEND = {'orientation': 'h', 'yref': 'container', 'y': 1.0, 'yanchor': 'top', 'x': 1.0,
          'xanchor': 'right', 'itemsizing': 'constant'}


def interactive(figure: Figure) -> go.Figure:
    """Return a figure whose panels zoom together."""
    count = len(figure.panels)
    chart = make_subplots(count, 1, shared_xaxes=True,
                          subplot_titles=[panel.title for panel in figure.panels],
                          vertical_spacing=0.14 / count)
    seen: set[str] = set()
    for row, panel in enumerate(figure.panels, start=1):
        for trace in panel.traces:
            chart.add_trace(_drawn(trace, first=trace.name not in seen), row=row, col=1)
            seen.add(trace.name)
        chart.update_yaxes(title_text=panel.y_label, row=row, col=1)
        for axis, logarithmic in ((chart.update_yaxes, panel.logarithmic_y),
                                  (chart.update_xaxes, panel.logarithmic_x)):
            if logarithmic:
                axis(type='log', exponentformat='power', row=row, col=1)
    chart.update_layout(
        template='plotly_white', height=figure.height, font=FONT, hovermode='closest',
        paper_bgcolor='rgba(0,0,0,0)', plot_bgcolor='rgba(0,0,0,0)',
        margin=MARGIN, legend=LEGEND, showlegend=len(seen) > 1)
    chart.update_annotations(font_size=12, xanchor='left', x=0)
    chart.update_xaxes(automargin=True, **GRID)
    chart.update_yaxes(automargin=True, **GRID)
    chart.update_xaxes(title_text=figure.x_label, row=count, col=1)
    if figure.x_range is not None:
        chart.update_xaxes(range=list(figure.x_range))
    names = _names(figure)
    if names:
        chart.update_yaxes(autorange='reversed', tickfont={'size': 10}, categoryorder='array',
                           categoryarray=names)
    return chart


def _names(figure: Figure) -> list[str]:
    """Return the names on the vertical axis; an empty list if it has numbers."""
    last = figure.panels[0].traces[-1]
    return list(last.y) if isinstance(last.y, list) else []


def _drawn(trace: Trace, first: bool) -> Any:
    common: dict[str, Any] = {'x': trace.x, 'y': trace.y, 'name': trace.name,
                              'legendgroup': trace.name, 'showlegend': first}
    if trace.labels:
        common |= {'customdata': trace.labels, 'hovertemplate': '%{customdata}<extra></extra>'}
    if trace.style == 'bars':
        return go.Bar(marker_color=trace.colour, **common)
    if trace.style == 'line':
        kind = go.Scattergl if len(trace.x) > 1000 else go.Scatter
        return kind(mode='lines', line={'color': trace.colour, 'width': 1.2}, **common)
    if trace.style == 'points':
        return go.Scattergl(mode='markers', marker={'color': trace.colour, 'size': 3,
                                                    'opacity': 0.6}, **common)
    marker = {'color': trace.colour, 'size': 7,
              'symbol': 'x' if trace.style == 'crosses' else 'circle'}
    if trace.half_width is not None:
        common['error_x'] = {'type': 'data', 'array': trace.half_width, 'color': trace.colour,
                             'thickness': 3, 'width': 0}
    return go.Scatter(mode='markers', marker=marker, **common)
