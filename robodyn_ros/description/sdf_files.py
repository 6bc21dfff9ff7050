"""Finds the files that an SDF includes; only local files are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from lxml import etree

from robodyn_ros.description.packages import package_folders
from robodyn_ros.description.xml import MAX_BYTES, local_name, parse_xml
from robodyn_ros.errors import DescriptionError
from robodyn_ros.files import read_regular

# folders of models, as Gazebo and libsdformat know them
VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'IGN_GAZEBO_RESOURCE_PATH', 'SDF_PATH',
             'GAZEBO_MODEL_PATH')
MAX_FILES, MAX_NESTED = 500, 20


def version_of(root: etree._Element) -> tuple[int, ...]:
    """Return the version of ``<sdf version="1.10">`` as (1, 10).

    Raises
    ------
    DescriptionError
        The version is missing or not supported.
    """
    text = root.get('version') or ''
    try:
        version = tuple(int(part) for part in text.split('.'))
    except ValueError:
        version = ()
    if not (1, 3) <= version < (2,):
        raise DescriptionError(f'version is {text[:20]!r}', element='<sdf>', line=root.sourceline,
                               valid='1.3 to 1.12; `gz sdf -p FILE` converts older files')
    return version


class IncludedFiles:
    """Reads the files of ``<include>``, within limits on their number and size."""

    def __init__(self) -> None:
        self._count, self._bytes = 0, 0

    def read(self, element: etree._Element, beside: Path | None,
             nested: int) -> tuple[etree._Element, Path]:
        """Return the root element of the file that ``<include>`` names, and its path.

        Parameters
        ----------
        element : lxml element
            The ``<include>``.
        beside : Path or None
            The file that contains it; None for a text, which cannot include files.
        nested : int
            Depth of nesting: 0 in the main file.

        Raises
        ------
        DescriptionError
            The file cannot be found or read, is not SDF, or there are too many files.
        """
        uri = (element.findtext('uri') or '').strip()
        place = {'element': f'<include> {uri[:100]!r}', 'line': element.sourceline}
        if not uri:
            raise DescriptionError('has no <uri>', **place)  # type: ignore[arg-type]
        if beside is None:
            raise DescriptionError('a text cannot include files',  # type: ignore[arg-type]
                                   **place, valid='the path of the SDF file')
        self._count += 1
        if self._count > MAX_FILES or nested > MAX_NESTED:
            raise DescriptionError('too many included files',  # type: ignore[arg-type]
                                   **place, valid=f'at most {MAX_FILES}, nested at most '
                                   f'{MAX_NESTED} times')
        path = next(_found(uri, beside), None)
        if path is None:
            raise DescriptionError(  # type: ignore[arg-type]
                'there is no such file on this computer', **place,
                valid='a path relative to this file, or model://NAME in a folder that '
                'GZ_SIM_RESOURCE_PATH names or that lies above this file')
        content = read_regular(path, MAX_BYTES)
        self._bytes += len(content)
        if self._bytes > MAX_BYTES:
            raise DescriptionError(f'the included files have more than {MAX_BYTES} bytes',
                                   **place)  # type: ignore[arg-type]
        root = parse_xml(content)
        if local_name(root) != 'sdf':
            raise DescriptionError(f'{path} is not SDF',  # type: ignore[arg-type]
                                   **place, valid='an SDF file')
        return root, path


def _found(uri: str, beside: Path) -> Iterator[Path]:
    """Yield the existing files that a URI can mean."""
    scheme, separator, rest = uri.partition('://')
    if not separator:
        scheme, rest = '', uri
    rest = unquote(rest)
    if scheme in ('', 'file') and rest:
        candidates = [beside.parent / rest]
    elif scheme == 'package':
        name, _, inner = rest.partition('/')
        candidates = [folder / inner for folder in package_folders(name, [beside.parent])]
    elif scheme == 'model':
        folders = [Path(folder) for name in VARIABLES
                   for folder in os.environ.get(name, '').split(os.pathsep) if folder]
        candidates = [folder / rest for folder in (*folders, *beside.absolute().parents)]
    else:
        candidates = []
    for candidate in candidates:
        if candidate.is_dir():
            candidate = _model_file(candidate)
        if candidate.is_file():
            yield candidate


def _model_file(folder: Path) -> Path:
    """Return the SDF file of a model's folder: the newest one listed in ``model.config``."""
    config = folder / 'model.config'
    if not config.is_file():
        return folder / 'model.sdf'
    entries = parse_xml(read_regular(config, MAX_BYTES)).findall('sdf')

    def version(entry: etree._Element) -> tuple[int, ...]:
        parts = (entry.get('version') or '0').split('.')
        return tuple(int(part) if part.isdecimal() else 0 for part in parts)

    newest = max(entries, key=version, default=None)
    name = 'model.sdf' if newest is None else (newest.text or '').strip()
    return folder / name
