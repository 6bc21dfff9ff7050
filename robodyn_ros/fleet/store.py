"""Stores the results of a fleet as Parquet files, one for each log, and reads them.

The folder ``factors`` holds what a fit of several logs needs of each log, see `merge_results`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robodyn_ros.errors import LogError, OutputError
from robodyn_ros.files import whole_file
from robodyn_ros.fleet.work import Row
from robodyn_ros.identification.merging import LogFactors
from robodyn_ros.packages import package

FACTORS = 'factors'  # folder within that of the results
KEPT = 'finished results are kept, and the same command continues with the others'

# name and type of every column; there is a row for each robot, log and base parameter
COLUMNS = {
    'robot': 'string', 'type': 'string', 'log': 'string', 'date': 'string', 'status': 'string',
    'reason': 'string', 'verdict': 'string', 'total_error': 'double', 'condition': 'double',
    'parameter': 'string', 'joint': 'string', 'estimate': 'double',
    'standard_deviation': 'double', 'interval_lower': 'double', 'interval_upper': 'double',
    'nominal': 'double', 'significant': 'bool', 'expression': 'string',
    'joint_error': 'double',
    'key': 'string', 'log_sha256': 'string', 'urdf_sha256': 'string', 'version': 'string'}


def known_keys(folder: Path) -> frozenset[str]:
    """Return the keys of the results in a folder."""
    return frozenset(path.stem for path in folder.glob('*.parquet'))


def write_rows(folder: Path, key: str, rows: list[Row]) -> None:
    """Write the rows of one log, all of them or none.

    Raises
    ------
    OutputError
        The file cannot be written, for example because the disk is full.
    """
    arrow = package('pyarrow')
    table = arrow.Table.from_pylist(
        [{name: row.get(name) for name in COLUMNS} for row in rows],
        schema=arrow.schema([(name, arrow.type_for_alias(kind))
                             for name, kind in COLUMNS.items()]))
    _write(table, folder / f'{key}.parquet')


def write_factors(folder: Path, key: str, log: LogFactors) -> None:
    """Write the factors of one log, of which only the upper triangles are stored.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    size = log.factors.shape[2]
    square = np.zeros((len(log.factors), size, size))
    square[:, :log.factors.shape[1]] = log.factors
    above, right = np.triu_indices(size)
    upper = square[:, above, right]
    row = {'names': log.names, 'expressions': log.expressions, 'count': log.count.tolist(),
           'factors': upper.ravel().tolist()}
    target = folder / FACTORS
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f'it cannot be made: {error.strerror}', path=target) from None
    _write(package('pyarrow').Table.from_pylist([row]), target / f'{key}.parquet')


def read_factors(folder: Path, key: str) -> LogFactors:
    """Return the factors of one log.

    Raises
    ------
    LogError
        They are not there.
    """
    path = folder / FACTORS / f'{key}.parquet'
    try:
        row, = package('pyarrow.parquet').read_table(path).to_pylist()
    except OSError as error:
        raise LogError(f'cannot be read: {error}', source=str(path), valid='results that this '
                       'version has written; delete the old ones') from None
    count, size = np.array(row['count']), len(row['names']) + 1
    factors = np.zeros((len(count), size, size))
    above, right = np.triu_indices(size)
    factors[:, above, right] = np.reshape(row['factors'], (len(count), -1))
    return LogFactors(tuple(row['names']), tuple(row['expressions']), factors, count)


def _write(table: Any, path: Path) -> None:
    with whole_file(path, suffix='.part', remark=KEPT) as temporary:
        package('pyarrow.parquet').write_table(table, temporary)


def read_results(folder: str | Path) -> Any:
    """Return the results of a fleet as a pandas ``DataFrame``, one row for each parameter.

    Parameters
    ----------
    folder : str or Path
        The folder that `identify_fleet` has written.

    Raises
    ------
    LogError
        There are no results in the folder.
    """
    files = sorted(Path(folder).glob('*.parquet'))
    if not files:
        raise LogError('has no results', source=str(folder),
                       valid='a folder that `robodyn fleet identify` has written')
    frame = package('pyarrow.parquet').ParquetDataset(
        [str(path) for path in files]).read().to_pandas()
    frame['date'] = package('pandas').to_datetime(frame['date'], utc=True, format='ISO8601')
    return frame.sort_values(['robot', 'date', 'log', 'parameter'], ignore_index=True)


def query(folder: str | Path, sql: str) -> Any:
    """Answer a question in SQL about the table ``results``; return a pandas ``DataFrame``.

    Parameters
    ----------
    folder : str or Path
        The folder that `identify_fleet` has written.
    sql : str
        A query in DuckDB's dialect.

    Raises
    ------
    LogError
        There are no results in the folder, or the query is wrong.
    """
    duckdb = package('duckdb')
    if not any(Path(folder).glob('*.parquet')):
        read_results(folder)  # raises the error
    with duckdb.connect(':memory:') as connection:
        pattern = str(Path(folder) / '*.parquet').replace("'", "''")
        connection.execute(f"create view results as select * from read_parquet('{pattern}')")
        try:
            return connection.execute(sql).df()
        except duckdb.Error as error:
            raise LogError(f'cannot be answered: {error}', source='query',
                           valid=f'SQL over results({", ".join(COLUMNS)})') from None
