"""Tables 5.1 to 5.3 of the published experiment beside those of its reproduction."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

import numpy as np

from robodyn_ros.reproduce.lwr4 import Reproduction, Run
from robodyn_ros.reproduce.lwr4_robot import limits, published_parameters, tables
from robodyn_ros.spatial import Array

WIDTH = 80
ROUNDING = 0.005  # half a unit of the last digit of table 5.3
LIKELY = 2.0  # standard deviations within which a difference counts as noise


class Row(NamedTuple):
    """One parameter of table 5.3: published and identified here, and why the values differ."""

    name: str
    published: float
    published_deviation: float  # relative
    here: float
    deviation: float  # relative; nan for a dropped parameter
    reason: str


def report(reproduction: Reproduction) -> str:
    """Return the three tables with a reason for each difference, and the validation."""
    parts = [_table_5_1(reproduction), _table_5_2(reproduction), _table_5_3(reproduction),
             _validation(reproduction)]
    return '\n\n'.join([*(part for part in parts if part),
                        f'Run time: {reproduction.seconds:.0f} s'])


def _table_5_1(reproduction: Reproduction) -> str:
    lines = ['Table 5.1: limits, and the largest values of each motion with the load']
    table, kept = tables()['table_5_1'], limits()
    for key, label, bound in (('position', 'angle, rad', np.asarray(kept.position)[:, 1]),
                              ('velocity', 'velocity, rad/s', kept.velocity),
                              ('torque', 'torque, N m', table['torque'])):
        lines.append(f'  {label:16}{"limit":10}{_numbers(np.asarray(bound, float))}')
        lines += [f'  {"":16}{name:10}{_numbers(run.largest[key])}'
                  for name, run in reproduction.runs.items()]
    for label, bound, of in (('distance, m', table['distance'], 'distance'),
                             ('height, m', table['height'], 'height')):
        lines.append(f'  {label:16}{"at least":10}{bound:7.2f}   ' + ', '.join(
            f'{name} {getattr(run, of):.2f}' for name, run in reproduction.runs.items()))
    lines.append(_reason(
        'Every motion is within every limit, as in the text. The text does not say for which '
        'point the last two limits hold; here it is the flange.'))
    return '\n'.join(lines)


def _table_5_2(reproduction: Reproduction) -> str:
    lines = ['Table 5.2: condition number of the observation matrix; mean |torque|, N m',
             f'  {"":10}{"cond":>8}{"columns":>9}  joints 1 to 7']
    for name, run in reproduction.runs.items():
        row = tables()['table_5_2'][name]
        lines += [f'  {name:10}{row["condition"]:8.2f}{"-":>9}'
                  f'{_numbers(np.array(row["mean_torque"]))}',
                  f'  {"  here":10}{run.condition:8.2f}{run.scaled_condition:9.2f}'
                  f'{_numbers(run.mean_torque)}']
    lines.append(_reason(
        'The text does not say how the matrix is scaled: "cond" is that of the matrix as it is, '
        'in SI units, "columns" that with columns of equal length. The trapezoid has other '
        'random points. The goal of B is 35 / 34.01 of the condition number of A here. '
        'A and B are other local optima of the same criteria under the same '
        'limits, found in a limited time; a longer --budget lowers their condition numbers. Mean '
        'torques are those with the load. Joints 2 and 4 bear the weight of the arm, so their '
        'torques have the same size as in the text; those of the others depend on the motion.'))
    return '\n'.join(lines)


def rows(run: Run) -> list[Row]:
    """Return table 5.3 as identified from one motion."""
    base, reduced = run.result.base_, run.reduced
    found = []
    for name, (value, relative) in published_parameters().items():
        if name in reduced.base_.names:
            k = reduced.base_.names.index(name)
            here = float(reduced.estimate_.values[k])
            deviation = float(reduced.uncertainty_.deviation[k])
            away = abs(here - value)
            if away <= LIKELY * deviation + ROUNDING:
                reason = 'noise'
            elif away <= 2 * LIKELY * deviation + ROUNDING:
                reason = 'noise (beyond 2 std)'
            else:
                reason = 'includes dropped ones'
            found.append(Row(name, value, relative, here, deviation / abs(here), reason))
        elif name in base.names:
            here = float(run.result.estimate_.values[base.names.index(name)])
            found.append(Row(name, value, relative, here, float('nan'), 'dropped: F < 3.84'))
    return found


def _table_5_3(reproduction: Reproduction) -> str:
    name, run = list(reproduction.runs.items())[-1]
    counts, reduced = tables()['counts'], run.reduced.base_
    table = rows(run)
    lines = [f'Table 5.3: significant parameters of model 2, identified from {name}',
             f'  {"":14}published  std, %      here  std, %  difference is']
    for row in table:
        std = '-' if np.isnan(row.deviation) else f'{row.deviation:.2%}'[:-1]
        lines.append(f'  {row.name:14}{row.published:9.2f}{row.published_deviation:8.2%}'[:-1]
                     + f'{row.here:10.3f}{std:>8}  {row.reason}')
    besides = [entry for entry in reduced.names if entry not in published_parameters()]
    lines += ['', '  parameters           published    here',
              f'  base                 {counts["base"]:9}{run.result.base_.count:8}',
              f'  significant          {counts["significant"]:9}{reduced.count:8}',
              textwrap.fill('significant here only: ' + ', '.join(besides), WIDTH,
                            initial_indent='  ', subsequent_indent='    '),
              _reason('The simulated robot has the published values, so the differences are '
                      'noise. Significant only here are small inertias of the bodies, which the '
                      'table does not list, and zeros that an F test at 5 % keeps by chance, one '
                      'in twenty. The published standard deviations also contain effects of a '
                      'real arm that the model leaves out; here the noise is chosen so that the '
                      'deviations have the same size.')]
    return '\n'.join(lines)


def _validation(reproduction: Reproduction) -> str:
    found = reproduction.validation
    if found is None:
        return ''
    *others, fit = reproduction.runs
    n = len(found.joint_names) // 2
    error = found.relative_error_filtered
    return '\n'.join([
        f'Validation: reduced model of {fit} on {" and ".join(others)}; error of the filtered '
        'torque, %',
        f'  {"published":18}at most {tables()["experiment"]["error"]:.0%}',
        f'  {"joint sensors":18}{_numbers(100 * error[:n])}',
        f'  {"motors":18}{_numbers(100 * error[n:])}'])


def _numbers(values: Array) -> str:
    return ''.join(f'{value:7.2f}' for value in values)


def _reason(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent='  ', subsequent_indent='  ')
