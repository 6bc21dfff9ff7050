"""Writes the output of commands: complete files only, without overwriting by accident."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from robodyn_ros.errors import OutputError
from robodyn_ros.packages import package


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows to overwrite files."""
    parser.add_argument('--force', action='store_true', help='overwrite files that exist')


def refuse_existing(options: argparse.Namespace, *paths: Path | None) -> None:
    """Raise an error if a file or a folder with content exists and --force is not given.

    Raises
    ------
    OutputError
        One of the paths exists.
    """
    for path in paths:
        if path is None or options.force or not path.exists():
            continue
        if not path.is_dir() or any(path.iterdir()):
            raise OutputError('it exists already', path=path, valid='another name, or --force')


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Provide a temporary file, which replaces a file if the block ends without an error.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    temporary = None
    try:
        number, name = tempfile.mkstemp(prefix='.', suffix=path.suffix, dir=path.parent)
        os.close(number)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f'it cannot be written: {error.strerror or error}', path=path) from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding='utf-8')


def progress_bar() -> Any:
    """Return a progress bar on the standard error, which is hidden if that is not a terminal."""
    console = package('rich.console').Console(stderr=True)
    bar = package('rich.progress')
    return bar.Progress(bar.TextColumn('{task.description}'), bar.BarColumn(),
                        bar.TimeElapsedColumn(), console=console, transient=True,
                        disable=not console.is_terminal)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
