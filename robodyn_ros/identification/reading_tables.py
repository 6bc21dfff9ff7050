"""Reads logs from tables: NPZ, CSV, MAT and Parquet files."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.io

from robodyn_ros.errors import LogError, RobodynError
from robodyn_ros.files import check_regular
from robodyn_ros.identification.log_format import CURRENTS, SPELLINGS, LogFormat
from robodyn_ros.identification.reading_base import base_arrays, base_columns
from robodyn_ros.model import Model
from robodyn_ros.packages import package
from robodyn_ros.spatial import Array

LARGEST_TABLE = 1 << 30  # bytes of a CSV file, or of the unpacked arrays of an NPZ file
COLUMNS = re.compile(r'(\d+)(?:-(\d+))?')  # numbers of columns, from 1
WITHOUT_HEADER = 'a line with the names of the columns, or a format that gives their numbers, ' \
    'for example {time: 1, position: 2-8, torque: 9-15}'
STYLES = ('{word}_{name}', '{name}_{word}', '{word}_{k}', '{word}{k}', '{name}.{word}')
LOCK = '--lock, or locked_joints of load_model'  # how joints are locked
NAMES = ('names', 'joints')  # arrays with the names of the joints
NUMBERS, TEXTS = 'biuf', 'US'  # kinds of NumPy types that a log may contain


def read_npz(path: Path, form: LogFormat, model: Model,
             ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of an NPZ file, the names of its joints, and notes.

    Raises
    ------
    LogError
        The file cannot be read.
    """
    check_regular(path, LARGEST_TABLE, error=LogError)
    try:
        _check_npz(path)
        with np.load(path, allow_pickle=False) as content:
            there = {name: content[name] for name in content.files}
    except LogError:
        raise
    except Exception as error:  # zipfile, NumPy and zlib raise different errors
        raise LogError(f'cannot be read: {type(error).__name__}: {error}', source=str(path),
                       valid='an .npz file') from None
    return _of_arrays(there, form, model, path)


def _of_arrays(there: dict[str, Array], form: LogFormat, model: Model, path: Path,
               ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a file with one name for each array."""
    arrays, notes = {}, []
    for key, spellings in SPELLINGS.items():
        name = getattr(form, key) or next((s for s in spellings if s in there), '')
        if getattr(form, key) and name not in there:
            raise LogError(f'has no array {name!r}', source=str(path), valid=', '.join(there))
        if name:
            if there[name].dtype.kind not in NUMBERS:
                raise LogError(f'has {name!r} of type {there[name].dtype}', source=str(path),
                               valid='real numbers')
            arrays[key] = np.asarray(there[name], np.float64)
            notes += _of_currents(key, name, form)
    names = list(form.joints) or [str(n) for n in next(
        (there[word] for word in NAMES if word in there
         and there[word].dtype.kind in TEXTS), ())]
    arrays |= base_arrays(there, model)
    return *_complete(arrays, names, form, model, path), notes


def _of_currents(key: str, name: str, form: LogFormat) -> list[str]:
    if key != 'torque' or name not in CURRENTS or len(form.torque_scale):
        return []
    return [f'currents ({name!r}) are read as torques of 1 N m/A: give torque_scale, or identify '
            'the drive gains (identify_drive_gains, --gains)']


def read_mat(path: Path, form: LogFormat, model: Model,
             ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a MAT file (up to version 7, or 7.3), the joints' names, and notes.

    Raises
    ------
    LogError
        The file cannot be read.
    """
    check_regular(path, LARGEST_TABLE, error=LogError)
    try:
        there = _hdf(path) if _is_hdf(path) else _mat(path)
    except RobodynError:
        raise
    except Exception as error:  # SciPy and h5py raise different errors
        raise LogError(f'cannot be read: {type(error).__name__}: {error}', source=str(path),
                       valid='a .mat file') from None
    for name in {form.time, *SPELLINGS['time']} & there.keys():  # MATLAB has no vectors
        there[name] = there[name].ravel()
    return _of_arrays(there, form, model, path)


def _is_hdf(path: Path) -> bool:
    """Return whether a MAT file is one of version 7.3; other programs leave out its header."""
    with path.open('rb') as file:
        start = file.read(128)
    return b'MATLAB 7.3' in start or start.startswith(b'\x89HDF')


def _mat(path: Path) -> dict[str, Array]:
    """Return the numeric arrays of a MAT file of version 4 to 7."""
    sizes = [(name, math.prod(shape) * 8) for name, shape, kind in scipy.io.whosmat(path)
             if kind in ('double', 'single', 'int8', 'int16', 'int32', 'int64', 'uint8',
                         'uint16', 'uint32', 'uint64')]
    if sum(size for _, size in sizes) > LARGEST_TABLE:
        raise LogError(f'has arrays of more than {LARGEST_TABLE >> 20} MiB', source=str(path),
                       valid='a shorter log')
    content = scipy.io.loadmat(path, variable_names=[*(name for name, _ in sizes), *NAMES])
    return {name: np.asarray(content[name]) for name, _ in sizes} | {
        name: np.array([str(np.squeeze(cell)).strip() for cell in np.ravel(content[name])])
        for name in NAMES if name in content and content[name].dtype.kind in 'OU'}


def _hdf(path: Path) -> dict[str, Array]:
    """Return the numeric arrays of a MAT file of version 7.3, which stores them transposed."""
    h5py = package('h5py')
    with h5py.File(path, 'r') as file:
        found = {name: value for name, value in file.items()
                 if isinstance(value, h5py.Dataset) and value.dtype.kind in NUMBERS}
        if sum(value.size * 8 for value in found.values()) > LARGEST_TABLE:
            raise LogError(f'has arrays of more than {LARGEST_TABLE >> 20} MiB', source=str(path),
                           valid='a shorter log')
        cells = {name: [''.join(map(chr, np.ravel(file[cell][()])))
                        for cell in file[name][()].flat]
                 for name in NAMES if name in file and file[name].dtype.kind == 'O'}
        return {name: np.asarray(value[()]).T for name, value in found.items()} | {
            name: np.array(cell) for name, cell in cells.items()}


def read_parquet(path: Path, form: LogFormat, model: Model,
                 ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a Parquet file, the names of its joints, and notes.

    Raises
    ------
    LogError
        The file cannot be read, or is too large.
    """
    check_regular(path, LARGEST_TABLE, error=LogError)
    parquet = package('pyarrow.parquet')
    try:
        file = parquet.ParquetFile(path)
        if file.metadata.num_rows * file.metadata.num_columns * 8 > LARGEST_TABLE:
            raise LogError(f'has more than {LARGEST_TABLE >> 20} MiB of numbers',
                           source=str(path), valid='a shorter log')
        content = file.read()
        columns = {name: _seconds(content.column(name).to_numpy())
                   for name in content.column_names}
        header = [name for name, values in columns.items() if values.dtype.kind in NUMBERS]
        table = np.column_stack([columns[name].astype(float) for name in header])
    except LogError:
        raise
    except Exception as error:  # pyarrow has errors of its own
        raise LogError(f'cannot be read: {type(error).__name__}: {error}', source=str(path),
                       valid='a .parquet file with columns of numbers') from None
    return _of_columns(header, table, form, model, path, [])


def _seconds(values: Array) -> Array:
    """Return dates as seconds, and other values as they are."""
    if values.dtype.kind != 'M':
        return values
    nanoseconds = values.astype('datetime64[ns]').astype(np.int64)
    return np.where(np.isnat(values), np.nan, 1e-9 * nanoseconds)


def _check_npz(path: Path) -> None:
    """Reject types and sizes that a log cannot have, before anything is unpacked."""
    total = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) \
                    else np.lib.format.read_array_header_2_0
                shape, _, dtype = read_header(file)
            if dtype.kind not in NUMBERS + TEXTS:
                raise LogError(f'has {member.filename!r} of type {dtype}', source=str(path),
                               valid='arrays of real numbers, and of names')
            total += max(math.prod(shape) * dtype.itemsize, member.file_size)
            if total > LARGEST_TABLE:
                raise LogError(f'has arrays of more than {LARGEST_TABLE >> 20} MiB',
                               source=str(path), valid='a shorter log')


def read_csv(path: Path, form: LogFormat, model: Model,
              ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a CSV file, the names of its joints, and notes.

    Raises
    ------
    LogError
        The file cannot be read, or has no lines of numbers.
    """
    notes: list[str] = []
    check_regular(path, LARGEST_TABLE, error=LogError)
    try:
        with path.open(encoding='utf-8-sig') as file:
            lines = [line.split(',') for line in file if line.strip()]
        header: list[str] = []
        if lines and _is_numbers(lines[0]) and not _by_number(form):
            raise LogError('has no header', source=str(path), valid=WITHOUT_HEADER)
        if lines and not _is_numbers(lines[0]):
            header = [name.strip().strip('"') for name in lines.pop(0)]
        width = len(header or lines[0]) if header or lines else 0
        whole = [line for line in lines if len(line) == width]
        table = np.array([[float(cell) if cell.strip() else np.nan for cell in line]
                          for line in whole])
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise LogError(f'cannot be read: {error}', source=str(path),
                       valid='a header line, then numbers with decimal points, separated by '
                       'commas; without a header, a format that names columns by their numbers'
                       ) from None
    if len(whole) < len(lines):
        notes.append(f'{len(lines) - len(whole)} lines with a different number of cells were '
                     'left out')
    if not len(table):
        raise LogError('has no lines of numbers', source=str(path))
    return _of_columns(header, table, form, model, path, notes)


def _is_numbers(cells: list[str]) -> bool:
    try:
        return all(np.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False


def _by_number(form: LogFormat) -> bool:
    """Return whether a format names columns by their numbers."""
    return any(COLUMNS.fullmatch(getattr(form, key)) for key in SPELLINGS)


def _of_columns(header: list[str], table: Array, form: LogFormat, model: Model, path: Path,
                notes: list[str]) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of a file with one name or number for each column."""
    arrays: dict[str, Array] = {}
    names = list(form.joints) or list(model.joint_names)
    for key, spellings in SPELLINGS.items():
        for word in [getattr(form, key)] if getattr(form, key) else spellings:
            if numbers := COLUMNS.fullmatch(word):
                first, last = int(numbers[1]), int(numbers[2] or numbers[1])
                if not 1 <= first <= last <= table.shape[1]:
                    raise LogError(f'has no columns {word}', source=str(path),
                                   valid=f'1 to {table.shape[1]}')
                columns: list[int] | None = list(range(first - 1, last))
            elif key == 'time':
                columns = [header.index(word)] if word in header else None
            else:
                columns = _named_columns(header, word, names)
            if columns is not None:
                arrays[key] = table[:, columns[0]] if key == 'time' else table[:, columns]
                notes += _of_currents(key, word, form)
                break
    for key in () if model.floating else ('position', 'torque'):
        if key not in arrays:
            _check_joints(header, getattr(form, key) or SPELLINGS[key], names, path)
        elif arrays[key].shape[1] != len(names):
            raise LogError(f'has {arrays[key].shape[1]} columns of {key}', source=str(path),
                           valid=f'one for each of the {len(names)} joints {", ".join(names)}; '
                           f'those that are not in the log can be locked ({LOCK})')
    arrays |= base_columns(header, table, model)
    return *_complete(arrays, names, form, model, path), notes


def _named_columns(header: list[str], word: str, names: Sequence[str]) -> list[int] | None:
    """Return the columns of a quantity, one for each joint; None if there are none."""
    for style in STYLES:
        wanted = [style.format(word=word, name=name, k=k + 1) for k, name in enumerate(names)]
        if all(name in header for name in wanted):
            return [header.index(name) for name in wanted]
    return None


def _check_joints(header: list[str], words: str | Sequence[str], names: Sequence[str],
                  path: Path) -> None:
    """Raise an error if a quantity has columns of some joints, but not of all."""
    for word in [words] if isinstance(words, str) else words:
        for style in STYLES:
            missing = [name for k, name in enumerate(names)
                       if style.format(word=word, name=name, k=k + 1) not in header]
            if len(missing) < len(names):
                raise LogError(f'has no column {word!r} of {", ".join(missing)}', source=str(path),
                               valid=f'one for each joint; joints that are not in the log can be '
                               f'locked ({LOCK})')


def _complete(arrays: dict[str, Array], names: list[str], form: LogFormat, model: Model,
              path: Path) -> tuple[dict[str, Array], list[str]]:
    """Return arrays and names with the time and the names that the file leaves out."""
    for key in ('position',) if model.floating else ('position', 'torque'):
        if key not in arrays:
            raise LogError(f'has no {key}', source=str(path),
                           valid=f'{" or ".join(SPELLINGS[key])}, or name it in the format')
        if arrays[key].ndim != 2:
            raise LogError(f'{key} has the shape {arrays[key].shape}', source=str(path),
                           valid='(samples, joints)')
    if form.rate:
        arrays['time'] = np.arange(len(arrays['position'])) / form.rate / form.unit_of_time
    elif 'time' not in arrays:
        raise LogError('has no time', source=str(path),
                       valid=f'{" or ".join(SPELLINGS["time"])}, or a rate in the format')
    if not names:
        count = len(model.joint_names)
        if arrays['position'].shape[1] != count:
            raise LogError(f'has {arrays["position"].shape[1]} joints without names',
                           source=str(path), valid=f'{count}, or joints in the format')
        names = list(model.joint_names)
    return arrays, names
