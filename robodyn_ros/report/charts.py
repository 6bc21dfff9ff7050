"""The report's charts, interactive (plotly)."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from robodyn_ros.description import Array
from robodyn_ros.identification import Result, Validation
from robodyn_ros.report.spectrum import amplitude_density

MEASURED, PREDICTED, RESIDUAL, NOMINAL = '#8895a3', '#0b6e99', '#c2410c', '#a16207'
POINTS = 3000  # of a line, between which nothing higher or lower is left out
FONT = {'family': 'system-ui, sans-serif', 'size': 12, 'color': '#1f2933'}


def torque_chart(validation: Validation) -> go.Figure:
    """Measured, predicted, difference, a row for each joint; all rows zoom together."""
    figure = _rows(validation.joint_names)
    for k in range(len(validation.joint_names)):
        for name, color, values in (
                ('measured', MEASURED, validation.measured),
                ('predicted', PREDICTED, validation.predicted),
                ('difference', RESIDUAL, [m - p for m, p in zip(
                    validation.measured, validation.predicted, strict=True)])):
            x, y = _joined(validation.t, [piece[:, k] for piece in values])
            figure.add_trace(go.Scattergl(
                x=x, y=y, name=name, legendgroup=name, showlegend=k == 0, mode='lines',
                line={'color': color, 'width': 1.2}), row=k + 1, col=1)
        figure.update_yaxes(title_text='N m, N', row=k + 1, col=1)
    figure.update_xaxes(title_text='time, s', row=len(validation.joint_names), col=1)
    return figure


def spectrum_chart(validation: Validation) -> go.Figure:
    """Amplitude density of torque and difference, a row for each joint."""
    figure = _rows(validation.joint_names)
    f, measured, difference = amplitude_density(validation)
    for k in range(len(validation.joint_names)):
        for name, color, values in (('measured', MEASURED, measured[:, k]),
                                    ('difference', RESIDUAL, difference[:, k])):
            figure.add_trace(go.Scatter(
                x=f, y=values, name=name, legendgroup=name, showlegend=k == 0,
                mode='lines', line={'color': color, 'width': 1.2}), row=k + 1, col=1)
        figure.update_yaxes(type='log', exponentformat='power', title_text='per √Hz', row=k + 1,
                            col=1)
        figure.update_xaxes(type='log', row=k + 1, col=1)
    figure.update_xaxes(title_text='frequency, Hz', row=len(validation.joint_names), col=1)
    return figure


def parameter_chart(result: Result) -> go.Figure:
    """Estimates with 95 % intervals and nominal values, each relative to its size."""
    base, u = result.base_, result.uncertainty_
    nominal = base.matrix @ result.linear.nominal()
    values = result.estimate_.values
    scale = np.maximum(np.maximum(np.abs(values), 2 * u.deviation), 1e-300)
    figure = go.Figure()
    for kept, color, name in ((True, PREDICTED, 'significant'),
                              (False, MEASURED, 'not significant')):
        these = [k for k, p in enumerate(base.names) if (p in result.significant_) == kept]
        figure.add_trace(go.Scatter(
            x=values[these] / scale[these], y=[base.names[k] for k in these], mode='markers',
            name=name, marker={'color': color, 'size': 7},
            error_x={'type': 'data', 'array': (u.interval[these, 1] - values[these])
                     / scale[these], 'color': color, 'thickness': 3, 'width': 0},
            customdata=np.column_stack([values[these], u.deviation[these]]),
            hovertemplate='%{y}: %{customdata[0]:.5g} ± %{customdata[1]:.2g}<extra></extra>'))
    figure.add_trace(go.Scatter(
        x=np.clip(nominal / scale, -3, 3), y=list(base.names), mode='markers', name='nominal',
        marker={'symbol': 'x', 'color': NOMINAL, 'size': 7}, customdata=nominal,
        hovertemplate='%{y}: %{customdata:.5g} nominally<extra></extra>'))
    _style(figure, 120 + 17 * base.count)
    figure.update_yaxes(autorange='reversed', tickfont={'size': 10},
                        categoryorder='array', categoryarray=list(base.names))
    figure.update_xaxes(range=[-3.1, 3.1], title_text='relative to the parameter\'s size')
    return figure


def error_chart(validation: Validation) -> go.Figure:
    """Each joint's share of unexplained torque, nominal and identified."""
    figure = go.Figure()
    for name, color, values in (
            ('nominal', MEASURED, validation.nominal),
            ('identified', PREDICTED, validation.relative_error),
            ('identified, without noise', '#7cc4de', validation.relative_error_filtered)):
        figure.add_trace(go.Bar(x=list(validation.joint_names), y=100 * values, name=name,
                                marker_color=color, hovertemplate='%{y:.2f} %'))
    _style(figure, 320)
    figure.update_yaxes(type='log', title_text='unexplained torque, %', dtick=1)
    return figure


def singular_chart(result: Result) -> go.Figure:
    """Singular values of the weighted observation matrix with columns of equal length."""
    values = singular_values(result)
    figure = go.Figure(go.Bar(x=list(range(1, len(values) + 1)), y=values,
                              marker_color=PREDICTED))
    _style(figure, 280)
    figure.update_yaxes(type='log', title_text='singular value', exponentformat='power')
    figure.update_xaxes(title_text='number')
    return figure


def singular_values(result: Result) -> Array:
    """Return them, largest first."""
    kept = list(result.base_.kept)
    gram = np.zeros((len(kept), len(kept)))
    sigma = result.estimate_.sigma
    for block in result.observations.blocks():
        for row in range(block.w.shape[1]):
            w = block.w[:, row][:, kept][block.used[:, row]]
            gram += w.T @ w / max(float(sigma[row]) ** 2, 1e-300)
    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram / np.outer(length, length))[::-1], 0))


def _rows(joints: tuple[str, ...]) -> go.Figure:
    figure = make_subplots(len(joints), 1, shared_xaxes=True, subplot_titles=joints,
                           vertical_spacing=0.28 / len(joints) / 2)
    _style(figure, 150 * len(joints) + 100)
    figure.update_annotations(font_size=12, xanchor='left', x=0)
    return figure


def _style(figure: go.Figure, height: int) -> None:
    figure.update_layout(
        template='plotly_white', height=height, font=FONT, hovermode='closest',
        margin={'l': 70, 'r': 20, 't': 40, 'b': 50},
        legend={'orientation': 'h', 'y': 1.0, 'yanchor': 'bottom', 'x': 0.5, 'xanchor': 'center'})


def _joined(times: list[Array], pieces: list[Array]) -> tuple[Array, Array]:
    """One line with gaps between the pieces, thinned to lowest and highest of each bin."""
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
