"""One fit of each robot from all its logs, in memory that does not grow with their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.errors import LogError
from robodyn_ros.fleet.store import read_factors, read_results
from robodyn_ros.identification.merging import LEAST_LOGS, merge_logs
from robodyn_ros.packages import package


def merge_results(folder: str | Path, *, since: str | None = None,
                  until: str | None = None) -> Any:
    """Estimate the base parameters of each robot from all its logs together.

    The result is that of least squares with the samples of all logs, each filtered as it was for
    its own identification. Logs with the verdict bad are left out.

    Parameters
    ----------
    folder : str or Path
        The folder that `identify_fleet` has written.
    since, until : str, optional
        First and last date of the logs, in ISO 8601.

    Returns
    -------
    DataFrame
        A row for each robot and base parameter: ``estimate``, ``standard_deviation``,
        ``interval_lower`` and ``interval_upper`` in SI units, which include the spread between
        logs; ``of_one_log``, the median standard deviation of the fits of single logs; ``logs``,
        their number, and the dates of the ``first`` and the ``last`` one.

    Raises
    ------
    LogError
        There are no results, no robot has three usable logs, or a date is not in ISO 8601.
    IdentificationError
        The logs of a robot do not have the same parameters.
    """
    folder = Path(folder)
    results = read_results(folder)
    results = results[(results.status == 'ok') & (results.verdict != 'bad')]
    for date, keep in ((since, results.date.ge), (until, results.date.le)):
        if date is not None:
            results = results[keep(_date(date)).reindex(results.index)]
    tables = [_of_one(folder, own) for _, own in results.groupby('robot')
              if own.key.nunique() >= LEAST_LOGS]
    if not tables:
        raise LogError(f'no robot has {LEAST_LOGS} usable logs in this time', source=str(folder),
                       valid='more logs, or a longer time')
    return package('pandas').concat(tables, ignore_index=True)


def _of_one(folder: Path, own: Any) -> Any:
    keys = list(dict.fromkeys(own.key))
    merged = merge_logs(lambda: (read_factors(folder, key) for key in keys))
    usual = own.groupby('parameter').standard_deviation.median()
    return package('pandas').DataFrame({
        'robot': own.robot.iloc[0], 'type': own.type.iloc[0], 'parameter': merged.names,
        'joint': [name.partition(':')[2] for name in merged.names],
        'estimate': merged.values, 'standard_deviation': merged.deviation,
        'interval_lower': merged.interval[:, 0], 'interval_upper': merged.interval[:, 1],
        'of_one_log': [float(usual.get(name, np.nan)) for name in merged.names],
        'expression': merged.expressions, 'logs': len(keys),
        'first': own.date.min(), 'last': own.date.max()})


def _date(text: str) -> Any:
    pandas = package('pandas')
    try:
        return pandas.to_datetime(text, utc=True, format='ISO8601')
    except ValueError:
        raise LogError(f'{text!r} is not a date', source='since or until',
                       valid='ISO 8601, for example 2026-11-23') from None
