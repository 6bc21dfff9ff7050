"""`Runs`: the folders of runs inside a root folder, which names from clients cannot leave."""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timezone
from pathlib import Path

from robodyn_ros.errors import LogError

NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}')
RECORDING = 'log'  # folder of the bag for the fit
VALIDATION = 'validation_log'  # folder of the bag for the validation
MOST_OF_A_NAME = 1000  # maximum number of runs with the same name


class Runs:
    """The folders of the runs inside a root folder.

    Parameters
    ----------
    root : str or Path
        The root folder; it is created if it does not exist.

    Raises
    ------
    LogError
        The root folder cannot be created.
    """

    def __init__(self, root: str | Path):
        self.root = Path(root).expanduser().absolute()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LogError(f'cannot be created: {error.strerror}', source=str(self.root)) from None

    def new(self, name: str = '') -> Path:
        """Create the folder of a run and return its path.

        Parameters
        ----------
        name : str
            Name of the run; if it exists already, a number is appended. The default is the current
            date and time in UTC.

        Raises
        ------
        LogError
            The name is not valid, or the folder cannot be created.
        """
        name = name or datetime.now(timezone.utc).strftime('%Y-%m-%dT%H-%M-%S')
        _check(name)
        for k in range(1, MOST_OF_A_NAME + 1):
            folder = self.root / (name if k == 1 else f'{name}-{k}')
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                continue
            except OSError as error:
                raise LogError(f'cannot be created: {error.strerror}',
                               source=str(folder)) from None
        raise LogError(f'{MOST_OF_A_NAME} runs have this name', source=name, valid='another name')

    def log(self, name: str) -> Path:
        """Return the path of a run's log, or of a log file inside the root folder.

        Parameters
        ----------
        name : str
            Name of the run or of the file.

        Raises
        ------
        LogError
            It does not exist, or is not inside the root folder.
        """
        path = self.file(name)
        if path.is_dir() and not _is_bag(path):
            if not (path / RECORDING).is_dir():
                raise LogError('contains no log', source=name, valid=self._known())
            return path / RECORDING
        return path

    def file(self, name: str) -> Path:
        """Return the path of a file or folder inside the root folder.

        Parameters
        ----------
        name : str
            ``RUN``, ``FILE`` or ``RUN/FILE``.

        Raises
        ------
        LogError
            It does not exist, or is not inside the root folder.
        """
        for part in name.split('/'):
            _check(part)
        path = self.root / name
        if not path.exists():
            raise LogError('does not exist', source=name, valid=self._known())
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise LogError('leads out of the root folder', source=name, valid=self._known())
        return path

    def room(self) -> int:
        """Return the number of free bytes on the disk of the root folder."""
        return shutil.disk_usage(self.root).free

    def cut_off(self) -> list[Path]:
        """Return the bags without metadata, whose writer was killed."""
        return [folder for kind in (RECORDING, VALIDATION)
                for folder in sorted(self.root.glob(f'*/{kind}'))
                if folder.is_dir() and not (folder / 'metadata.yaml').exists()]

    def _known(self) -> str:
        names = sorted(path.name for path in self.root.iterdir())[-20:]
        return ', '.join(names) or f'{self.root} is still empty'


def _is_bag(path: Path) -> bool:
    return (path / 'metadata.yaml').is_file() or any(
        file.suffix in ('.db3', '.mcap') for file in path.iterdir())


def _check(name: str) -> None:
    if not NAME.fullmatch(name):
        raise LogError('is not a valid name of a run or file', source=repr(name[:120]),
                       valid='letters, digits, _ - and . (no path)')
