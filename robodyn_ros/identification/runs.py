"""Folders of results: every run has one inside a root that names from strangers cannot leave."""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timezone
from pathlib import Path

from robodyn_ros.errors import LogError

NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}')
RECORDING = 'log'  # the bag of a run
PROOF = 'validation_log'


class Runs:
    """The runs under a root.

    Parameters
    ----------
    root : str or Path
        Made where it does not exist.

    Raises
    ------
    LogError
        It cannot be made.
    """

    def __init__(self, root: str | Path):
        self.root = Path(root).expanduser().absolute()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LogError(f'cannot be made: {error.strerror}', source=str(self.root)) from None

    def new(self, name: str = '') -> Path:
        """Make the folder of a run; a name that is taken gets a number.

        Raises
        ------
        LogError
            The name is none, or nothing can be written.
        """
        name = name or datetime.now(timezone.utc).strftime('%Y-%m-%dT%H-%M-%S')
        _check(name)
        for k in range(1, 1000):
            folder = self.root / (name if k == 1 else f'{name}-{k}')
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                continue
            except OSError as error:
                raise LogError(f'cannot be made: {error.strerror}', source=str(folder)) from None
        raise LogError('a thousand runs have this name', source=name)

    def log(self, name: str) -> Path:
        """Return the log of a run, or a log file inside the root, by name.

        Raises
        ------
        LogError
            It does not exist, or is not inside the root.
        """
        path = self.file(name)
        if path.is_dir() and not _is_bag(path):
            if not (path / RECORDING).is_dir():
                raise LogError('holds no log', source=name, valid=self._known())
            return path / RECORDING
        return path

    def file(self, name: str) -> Path:
        """Return a file or folder inside the root by its name, ``RUN`` or ``RUN/FILE``.

        Raises
        ------
        LogError
            It does not exist, or is not inside the root.
        """
        for part in name.split('/'):
            _check(part)
        path = self.root / name
        if not path.exists():
            raise LogError('does not exist', source=name, valid=self._known())
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise LogError('leads out of the root', source=name, valid=self._known())
        return path

    def room(self) -> int:
        """Free bytes on the root's disk."""
        return shutil.disk_usage(self.root).free

    def _known(self) -> str:
        names = sorted(path.name for path in self.root.iterdir())[-20:]
        return ', '.join(names) or f'nothing is in {self.root} yet'


def _is_bag(path: Path) -> bool:
    return (path / 'metadata.yaml').is_file() or any(
        file.suffix in ('.db3', '.mcap') for file in path.iterdir())


def _check(name: str) -> None:
    if not NAME.fullmatch(name):
        raise LogError('is no name of a run or file', source=repr(name[:120]),
                       valid='letters, digits, _ - . and not a path')
