"""Reads logs from NPZ files and CSV files."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robodyn_ros.errors import LogError
from robodyn_ros.files import check_regular
from robodyn_ros.identification.log_format import SPELLINGS, LogFormat
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array

LARGEST_TABLE = 1 << 30  # bytes of a CSV file, or of the unpacked arrays of an NPZ file
NUMBERS, TEXTS = 'biuf', 'US'  # kinds of NumPy types that a log may contain


def read_npz(path: Path, form: LogFormat, model: Model,
             ) -> tuple[dict[str, Array], list[str], list[str]]:
    """Return the arrays of an NPZ file, the names of its joints, and notes."""
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
    arrays = {}
    for key, spellings in SPELLINGS.items():
        name = getattr(form, key) or next((s for s in spellings if s in there), '')
        if getattr(form, key) and name not in there:
            raise LogError(f'has no array {name!r}', source=str(path), valid=', '.join(there))
        if name:
            if there[name].dtype.kind not in NUMBERS:
                raise LogError(f'has {name!r} of type {there[name].dtype}', source=str(path),
                               valid='real numbers')
            arrays[key] = np.asarray(there[name], np.float64)
    names = list(form.joints) or [str(n) for n in there.get('names', there.get('joints', ()))]
    return _complete(arrays, names, form, model, path)


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
    """Return the arrays of a CSV file, the names of its joints, and notes."""
    notes: list[str] = []
    check_regular(path, LARGEST_TABLE, error=LogError)
    try:
        with path.open(encoding='utf-8-sig') as file:
            header = [name.strip().strip('"') for name in file.readline().split(',')]
            lines = [line.split(',') for line in file if line.strip()]
        whole = [line for line in lines if len(line) == len(header)]
        table = np.array([[float(cell) if cell.strip() else np.nan for cell in line]
                          for line in whole])
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise LogError(f'cannot be read: {error}', source=str(path),
                       valid='a header line, then numbers with decimal points, separated by commas'
                       ) from None
    if len(whole) < len(lines):
        notes.append(f'{len(lines) - len(whole)} lines with a different number of cells were '
                     'left out')
    if not len(table):
        raise LogError('has no lines of numbers', source=str(path))
    arrays: dict[str, Array] = {}
    names = list(form.joints) or list(model.joint_names)
    for key, spellings in SPELLINGS.items():
        words = [getattr(form, key)] if getattr(form, key) else list(spellings)
        for word in words:
            if key == 'time' and word in header:
                arrays[key] = table[:, header.index(word)]
                break
            columns = _csv_columns(header, word, names)
            if columns is not None and key != 'time':
                arrays[key] = table[:, columns]
                break
    complete = _complete(arrays, names, form, model, path)
    return complete[0], complete[1], notes + complete[2]


def _csv_columns(header: list[str], word: str, names: Sequence[str]) -> list[int] | None:
    for style in ('{word}_{name}', '{name}_{word}', '{word}_{k}', '{word}{k}', '{name}.{word}'):
        wanted = [style.format(word=word, name=name, k=k + 1) for k, name in enumerate(names)]
        if all(name in header for name in wanted):
            return [header.index(name) for name in wanted]
    return None


def _complete(arrays: dict[str, Array], names: list[str], form: LogFormat, model: Model,
              path: Path) -> tuple[dict[str, Array], list[str], list[str]]:
    for key in ('position', 'torque'):
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
        if arrays['position'].shape[1] != model.n:
            raise LogError(f'has {arrays["position"].shape[1]} joints without names',
                           source=str(path), valid=f'{model.n}, or joints in the format')
        names = list(model.joint_names)
    return arrays, names, []
