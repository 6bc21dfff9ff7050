"""The report of an identification: a single HTML page without external files."""

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

from robodyn_ros._version import __version__
from robodyn_ros.identification import Result, Validation
from robodyn_ros.identification.writing import plain
from robodyn_ros.report.figures import figures_of
from robodyn_ros.report.interactive import interactive
from robodyn_ros.spatial import inertial_of

CONTENTS = (('errors', 'Errors'), ('torque', 'Torque'), ('spectrum', 'Spectrum'),
            ('parameters', 'Parameters'), ('excited', 'Excitation'),
            ('consistency', 'Consistency'), ('reproduce', 'Reproduce'))


def save_report(result: Result, validation: Validation, consistent: Validation,
                path: str | Path, *, validated_on: Sequence[str] = (), command: str = '') -> None:
    """Write the report.

    Parameters
    ----------
    result : Result
        What `identify` returned.
    validation, consistent : Validation
        What `validate` returned for the estimate and for the physically consistent parameters.
    path : str or Path
        The file to write.
    validated_on : sequence of str
        Names of the logs for the validation.
    command : str
        The command that repeats the identification.
    """
    base, u = result.base_, result.uncertainty_
    nominal = result.nominal_
    training = result.training_
    rows = [[joint, *map(_percent, errors), *map(_number, sizes), f'{watson:.2f}']
            for joint, errors, sizes, watson in zip(
                validation.joint_names,
                zip(training.relative_error, validation.relative_error,
                    validation.relative_error_filtered, validation.nominal, strict=True),
                zip(validation.rms, validation.largest, strict=True), u.durbin_watson,
                strict=True)]
    parameters = [
        {'name': name, 'expression': base.expressions[k],
         'significant': name in result.significant_,
         'numbers': [_number(x) for x in (result.estimate_.values[k], u.deviation[k],
                                          *u.interval[k], nominal[k])]}
        for k, name in enumerate(base.names)]
    weak = [name for name in base.names if name not in result.significant_]
    page = _template().render(
        robot=result.model.name, verdict=validation.verdict, reasons=validation.reasons,
        sources=[source for source, _ in result.sources],
        validated_on=', '.join(validated_on) or 'other data',
        date=datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC'), contents=CONTENTS,
        facts=[(_percent(validation.total), 'of the torque unexplained in the validation'),
               (_percent(validation.total_filtered), 'after filtering'),
               (_percent(validation.nominal_total), 'with the unchanged description'),
               (f'{len(result.significant_)} of {base.count}', 'base parameters significant'),
               (f'{u.condition:.3g}', 'condition number')],
        charts={name: interactive(figure).to_html(
            full_html=False, include_plotlyjs=False, div_id=f'{name}-chart',
            config={'displaylogo': False, 'responsive': True})
            for name, figure in figures_of(result, validation).items()},
        joints=rows, parameters=parameters, condition=f'{u.condition:.4g}',
        regrouped=base.regrouped, without_effect=base.without_effect, weak=weak,
        apart=u.poorly_distinguished, consistency=_consistency(result, consistent),
        bodies=_bodies(result), command=command or 'robodyn identify LOG --urdf ROBOT.urdf',
        provenance=_provenance(result), notes=result.notes, plotly=get_plotlyjs())
    Path(path).write_text(page, encoding='utf-8')


def _template() -> jinja2.Template:
    text = (resources.files('robodyn_ros.report') / 'report.html.jinja').read_text('utf-8')
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined,
                              trim_blocks=True).from_string(text)


def _consistency(result: Result, consistent: Validation) -> str:
    bad = result.inconsistent_bodies_
    first = (f'The unconstrained estimate has bodies with physically inconsistent inertia: '
             f'{", ".join(bad)}. ' if bad else
             'Every body of the unconstrained estimate is physically consistent. ')
    return first + (f'The files hold the physically consistent estimate. In the validation it '
                    f'leaves {consistent.total:.2%} of the torque unexplained '
                    f'({consistent.total_filtered:.2%} after filtering).')


def _bodies(result: Result) -> list[list[str]]:
    model, rows = result.model, []
    for body, joint in enumerate(model.body_joints):
        if not model.inertial_parameters[body, 6]:
            continue
        one = inertial_of(model.inertial_parameters[body])
        friction = model.link_friction[body] + model.motor_friction[body]
        rows.append([joint, *(_number(x) for x in (
            one.mass, *one.com, *np.diag(one.inertia), model.armature[body], *friction[:2]))])
    return rows


def _provenance(result: Result) -> list[tuple[str, str]]:
    rows = [('robodyn_ros', __version__), ('Python, numpy', f'{platform.python_version()}, '
                                                            f'{np.__version__}')]
    rows += [(f'log {source}', f'sha256 {digest}') for source, digest in result.sources]
    settings = result.settings.changed()
    text = yaml.safe_dump(plain(settings), default_flow_style=True, width=10_000).strip()
    return [*rows, ('settings', text if settings else 'all defaults')]


def _number(value: float) -> str:
    return f'{value:.4g}'


def _percent(value: float) -> str:
    return f'{100 * value:.2f} %'
