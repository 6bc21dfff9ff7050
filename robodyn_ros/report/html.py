"""The report of an identification: a single HTML page without external files."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
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
from robodyn_ros.report import tables
from robodyn_ros.report.figures import Figure, fitted_band
from robodyn_ros.report.interactive import interactive
from robodyn_ros.report.pictures import svg_element
from robodyn_ros.report.record import RECORD, Record
from robodyn_ros.report.tables import number, percent

CONTENTS = (('record', 'Record'), ('verdict', 'Verdict'), ('errors', 'Errors'),
            ('rollout', 'Simulation'), ('coverage', 'Coverage and limits'), ('torque', 'Torque'),
            ('friction', 'Friction'), ('spectrum', 'Spectrum'), ('parameters', 'Parameters'),
            ('excited', 'Excitation'), ('bodies', 'Bodies'),
            ('reproduce', 'Reproduce'), ('signature', 'Signature'))
PASSED = {'good': 'passed', 'doubtful': 'passed with reservations', 'bad': 'failed'}


def save_report(result: Result, validation: Validation, consistent: Validation,
                path: str | Path, figures: Mapping[str, Figure], pictures: Mapping[str, str], *,
                command: str = '', record: Record | None = None) -> None:
    """Write the report.

    Parameters
    ----------
    result : Result
        The result of `identify`.
    validation, consistent : Validation
        The results of `validate` for the estimate and for the physically consistent parameters.
    path : str or Path
        The file to write.
    figures : mapping of str to Figure
        The figures, see `figures_of`.
    pictures : mapping of str to str
        The same figures for the printed report, see `pictures_of`.
    command : str
        The command that repeats the identification.
    record : Record, optional
        Facts about the robot and the measurement.
    """
    base, u = result.base_, result.uncertainty_
    weak = [name for name in base.names if name not in result.significant_]
    page = _template().render(
        robot=result.model.name, verdict=validation.verdict, reasons=validation.reasons,
        passed=PASSED[validation.verdict],
        sources=[source for source, _ in result.sources],
        validated_on=', '.join(source for source, _ in validation.sources) or 'other data',
        date=datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC'), contents=CONTENTS,
        facts=[(percent(validation.total), 'of the torque unexplained in the validation'),
               (percent(validation.total_filtered), 'after filtering'),
               (percent(validation.nominal_total), 'with the unchanged description'),
               (f'{len(result.significant_)} of {base.count}', 'base parameters significant'),
               (f'{u.condition:.3g}', 'condition number')],
        record=_record(result, validation, record or Record()),
        charts={name: interactive(figure).to_html(
            full_html=False, include_plotlyjs=False, div_id=f'{name}-chart',
            config={'displayModeBar': False, 'responsive': True})
            for name, figure in figures.items()},
        printed={name: svg_element(picture) for name, picture in pictures.items()},
        criteria=tables.criteria_table(validation), joints=tables.error_table(result, validation),
        rollout=validation.rollout and tables.rollout_table(validation.rollout),
        starts=validation.rollout.starts if validation.rollout else 0,
        coverage=tables.coverage_table(result, validation),
        parameters=tables.parameter_table(result), bodies=tables.body_table(result),
        drives=tables.drive_table(result), friction=tables.friction_table(result),
        ripple=tables.ripple_table(result),
        condition=f'{u.condition:.4g}',
        expressions=list(zip(base.names, base.expressions, strict=True)),
        regrouped=base.regrouped, without_effect=base.without_effect, weak=weak,
        band=fitted_band(result), apart=u.poorly_distinguished,
        consistency=_consistency(result, consistent),
        command=command or 'robodyn identify LOG --urdf ROBOT.urdf',
        provenance=_provenance(result), notes=result.notes, plotly=get_plotlyjs())
    Path(path).write_text(page, encoding='utf-8')


def _template() -> jinja2.Template:
    return template_of('robodyn_ros.report', 'report.html.jinja')


def template_of(package: str, name: str) -> jinja2.Template:
    """Return a template of a package; it may use the style of all reports, ``{{ style }}``.

    Parameters
    ----------
    package, name : str
        The package and the file in it.
    """
    text = (resources.files(package) / name).read_text('utf-8')
    style = (resources.files('robodyn_ros.report') / 'style.css').read_text('utf-8')
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined,
                                     trim_blocks=True)
    environment.globals['style'] = style
    return environment.from_string(text)


def _record(result: Result, validation: Validation, record: Record) -> list[tuple[str, str]]:
    """Return the rows that identify the robot and the data of the report."""
    rows = [('robot', result.model.name), ('measured efforts', str(result.model.effort))]
    rows += [(label, getattr(record, name)) for name, (label, _) in RECORD.items()]
    rows += [(f'file {name}', f'sha256 {digest}') for name, digest in record.files]
    text = result.linear.model.description.urdf
    if text:
        data = text if isinstance(text, bytes) else text.encode()
        rows.append(('description, expanded', f'sha256 {hashlib.sha256(data).hexdigest()}'))
    for use, sources in (('fit', result.sources), ('validation', validation.sources)):
        rows += [(f'log for the {use}: {name}', f'sha256 {digest}') for name, digest in sources]
    duration = sum(len(s.t) / s.rate for s in result.observations.segments)
    rates = sorted({round(s.rate, 1) for s in result.observations.segments})
    return [*rows, ('data of the fit', f'{number(duration)} s at '
                    f'{", ".join(f"{rate:g}" for rate in rates)} Hz'),
            ('data of the validation', f'{sum(t[-1] - t[0] for t in validation.t):.4g} s')]


def _consistency(result: Result, consistent: Validation) -> str:
    bad = result.inconsistent_bodies_
    first = (f'The unconstrained estimate has bodies with physically inconsistent inertia: '
             f'{", ".join(bad)}. ' if bad else
             'Every body of the unconstrained estimate is physically consistent. ')
    return first + (f'The files contain the physically consistent estimate. In the validation it '
                    f'leaves {consistent.total:.2%} of the torque unexplained '
                    f'({consistent.total_filtered:.2%} after filtering).')


def _provenance(result: Result) -> list[tuple[str, str]]:
    settings = result.settings.changed()
    text = yaml.safe_dump(plain(settings), default_flow_style=True, width=10_000).strip()
    return [('robodyn_ros', __version__),
            ('Python, numpy', f'{platform.python_version()}, {np.__version__}'),
            ('settings', text if settings else 'all defaults')]
