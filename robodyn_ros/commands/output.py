"""What commands that write files share: no accidental overwriting, and a progress bar."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robodyn_ros.errors import OutputError
from robodyn_ros.packages import package


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows overwriting files."""
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


def progress_bar() -> Any:
    """Return a progress bar on the standard error, which is hidden if that is not a terminal."""
    console = package('rich.console').Console(stderr=True)
    bar = package('rich.progress')
    return bar.Progress(bar.TextColumn('{task.description}'), bar.BarColumn(),
                        bar.TimeElapsedColumn(), console=console, transient=True,
                        disable=not console.is_terminal)
