"""The report of an identification: one HTML page that needs nothing else."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import resources
from pathlib import Path

import jinja2
import numpy as np
import yaml
from plotly.offline import get_plotlyjs

from robodyn_ros import __version__
from robodyn_ros.identification import Result, Validation
from robodyn_ros.identification.result import settings_mapping
from robodyn_ros.identification.writing import inertial_of, plain
from robodyn_ros.report import charts

CONTENTS = (('errors', 'Errors'), ('torque', 'Torque'), ('spectrum', 'Spectrum'),
            ('parameters', 'Parameters'), ('told', 'What the motion tells'),
            ('consistency', 'Consistency'), ('reproduce', 'Reproduce'))


def save_report(result: Result, proof: Validation, consistent: Validation, path: str | Path, *,
                proven_on: Sequence[str] = (), command: str = '') -> None:
    """Write the report.

    Parameters
    ----------
    result : Result
        Of `identify`.
    proof, consistent : Validation
        Of `validate`: the estimate, and the physically consistent parameters.
    path : str or Path
        Of the page.
    proven_on : sequence of str
        Names of the logs of the proof.
    command : str
        That makes this again.
    """
    base, u = result.base_, result.uncertainty_
    nominal = base.matrix @ result.linear.nominal()
    training = result.training_
    rows = [[joint, _percent(training.relative_error[k]), _percent(proof.relative_error[k]),
             _percent(proof.relative_error_filtered[k]), _percent(proof.nominal[k]),
             _number(proof.rms[k]), _number(proof.largest[k]), f'{u.durbin_watson[k]:.2f}']
            for k, joint in enumerate(proof.joint_names)]
    parameters = [
        {'name': name, 'expression': base.expressions[k],
         'significant': name in result.significant_,
         'numbers': [_number(x) for x in (result.estimate_.values[k], u.deviation[k],
                                          *u.interval[k], nominal[k])]}
        for k, name in enumerate(base.names)]
    weak = [name for name in base.names if name not in result.significant_]
    figures = {'errors': charts.error_chart(proof), 'torque': charts.torque_chart(proof),
               'spectrum': charts.spectrum_chart(proof),
               'parameters': charts.parameter_chart(result),
               'singular': charts.singular_chart(result)}
    page = _template().render(
        robot=result.model.name, verdict=proof.verdict, reasons=proof.reasons,
        sources=[source for source, _ in result.sources],
        proof=', '.join(proven_on) or 'other data',
        date=datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC'), contents=CONTENTS,
        facts=[(_percent(proof.total), 'unexplained on the proof'),
               (_percent(proof.total_filtered), 'without noise'),
               (_percent(proof.nominal_total), 'by the description as it is'),
               (f'{len(result.significant_)} of {base.count}', 'base parameters significant'),
               (f'{u.condition:.3g}', 'condition number')],
        charts={name: figure.to_html(
            full_html=False, include_plotlyjs=False, div_id=f'{name}-chart',
            config={'displaylogo': False, 'responsive': True})
            for name, figure in figures.items()},
        joints=rows, parameters=parameters, condition=f'{u.condition:.4g}',
        regrouped=base.regrouped, without_effect=base.without_effect, weak=weak,
        apart=u.poorly_told_apart, consistency=_consistency(result, consistent),
        bodies=_bodies(result), command=command or 'robodyn identify LOG --urdf ROBOT.urdf',
        provenance=_provenance(result), notes=result.notes, plotly=get_plotlyjs())
    Path(path).write_text(page, encoding='utf-8')


def _template() -> jinja2.Template:
    text = (resources.files('robodyn_ros.report') / 'report.html.jinja').read_text('utf-8')
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined,
                              trim_blocks=True).from_string(text)


def _consistency(result: Result, consistent: Validation) -> str:
    bad = result.inconsistent_bodies_
    first = (f'The unconstrained estimate holds bodies that cannot exist: {", ".join(bad)}. '
             if bad else 'Every body of the unconstrained estimate could exist. ')
    return first + (f'The parameters that are written are those of real bodies; on the proof they '
                    f'leave {consistent.total:.2%} unexplained '
                    f'({consistent.total_filtered:.2%} without noise).')


def _bodies(result: Result) -> list[list[str]]:
    model, rows = result.model, []
    for body, joint in enumerate(model.body_joints):
        if not model.rigid[body, 6]:
            continue
        one = inertial_of(model.rigid[body])
        friction = model.link_friction[body] + model.motor_friction[body]
        rows.append([joint, *(_number(x) for x in (
            one.mass, *one.com, *np.diag(one.inertia), model.armature[body], *friction[:2]))])
    return rows


def _provenance(result: Result) -> list[tuple[str, str]]:
    rows = [('robodyn_ros', __version__), ('Python, numpy', f'{platform.python_version()}, '
                                                            f'{np.__version__}')]
    rows += [(f'log {source}', f'sha256 {digest}') for source, digest in result.sources]
    settings = settings_mapping(result.settings)
    text = yaml.safe_dump(plain(settings), default_flow_style=True, width=10_000).strip()
    return [*rows, ('settings', text if settings else 'usual')]


def _number(value: float) -> str:
    return f'{value:.4g}'


def _percent(value: float) -> str:
    return f'{100 * value:.2f} %'
