"""Finds ROS packages in sourced environments and in the folders around a file; needs no ROS.

It uses only the standard library, because the process that expands xacro loads it by its path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_NAME = re.compile(rb'<name>\s*([A-Za-z0-9_-]+)\s*</name>')
_MOST_OF_MANIFEST = 100_000  # bytes of a package.xml that are searched for <name>
REMEDY = ('a package in AMENT_PREFIX_PATH (source its workspace) or ROS_PACKAGE_PATH, or a '
          'description that lies in a checkout of its package')


def package_folders(name: str, beside: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield the folders that may be the share folder of a ROS package, most likely first.

    Parameters
    ----------
    name : str
        The package.
    beside : iterable of Path
        Folders of descriptions. In a checkout, the package is one of the folders above, or lies
        next to one of them.

    Yields
    ------
    folder : Path
        An existing folder.
    """
    candidates = [Path(prefix) / 'share' / name for prefix in _paths('AMENT_PREFIX_PATH')]
    for prefix in map(Path, _paths('ROS_PACKAGE_PATH')):
        candidates += [prefix / name] if prefix.name != name else [prefix, prefix / name]
    for place in beside:
        for folder in (place, *place.parents):
            if folder.name == name or _package_of(folder) == name:
                candidates.append(folder)
            candidates.append(folder / name)
    yield from (folder for folder in dict.fromkeys(candidates) if folder.is_dir())


def _package_of(folder: Path) -> str:
    """Return the name in the ``package.xml`` of a folder, '' if there is none."""
    manifest = folder / 'package.xml'
    if not manifest.is_file():
        return ''
    with manifest.open('rb') as file:
        found = _NAME.search(file.read(_MOST_OF_MANIFEST))
    return found[1].decode() if found else ''


def _paths(variable: str) -> list[str]:
    return [path for path in os.environ.get(variable, '').split(os.pathsep) if path]
