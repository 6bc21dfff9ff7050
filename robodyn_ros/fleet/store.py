"""Stores the results of a fleet as Parquet files, one for each log, and reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robodyn_ros.errors import LogError
from robodyn_ros.files import whole_file
from robodyn_ros.fleet.work import Row
from robodyn_ros.packages import package

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
    with whole_file(folder / f'{key}.parquet', suffix='.part', remark=KEPT) as temporary:
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
