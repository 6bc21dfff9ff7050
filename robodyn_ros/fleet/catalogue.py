"""The catalogue of a fleet: its robots, their descriptions, and where their logs are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from robodyn_ros.description.section import Section
from robodyn_ros.errors import LogError
from robodyn_ros.experiment.results import FIT_FRACTION
from robodyn_ros.identification import FilterSettings, Settings
from robodyn_ros.identification.reading import TABLES
from robodyn_ros.identification.reading_bags import BAG_SUFFIXES
from robodyn_ros.packages import package

ROBOT_KEYS = ('name', 'type', 'urdf', 'motors', 'loops', 'format', 'logs')
FILES = ('urdf', 'motors', 'loops', 'format')  # kinds of files that a robot may have
NUMBERS = ('friction_width', 'decimation', 'slow', 'guard')  # settings that are numbers
NAMES = ('kind', 'friction', 'method')  # settings that are names
SUFFIXES = (*BAG_SUFFIXES, *TABLES)  # of logs
DESCRIPTIONS = ('*.urdf', '*.xacro')
_DATE = re.compile(r'(\d{4})-(\d{2})-(\d{2})(?:[T_ ](\d{2})[:-]?(\d{2}))?')


@dataclass(frozen=True)
class FleetLog:
    """A log and the time of its recording.

    Attributes
    ----------
    url : str
        A path, or a URL of any file system that fsspec knows.
    date : str
        Date and time in ISO 8601; UTC if it names no time zone.
    """

    url: str
    date: str


@dataclass(frozen=True)
class FleetRobot:
    """A robot of the fleet.

    Attributes
    ----------
    name, type : str
        Name of the robot, and of its type; robots of one type are compared with each other.
    files : tuple of (str, str)
        Kind (``urdf``, ``motors``, ``loops``, ``format``) and path or URL of each file.
    logs : tuple of FleetLog
        The logs, sorted by date.
    """

    name: str
    type: str
    files: tuple[tuple[str, str], ...]
    logs: tuple[FleetLog, ...]


@dataclass(frozen=True)
class Catalogue:
    """The robots of a fleet, and the settings of their identification.

    Attributes
    ----------
    robots : tuple of FleetRobot
        The robots.
    settings : Settings
        Settings of every identification.
    fit_fraction : float
        Fraction of each log, from its start, that is used for the fit; the rest is used for
        validation.
    """

    robots: tuple[FleetRobot, ...]
    settings: Settings = Settings()
    fit_fraction: float = FIT_FRACTION

    def __len__(self) -> int:
        """Return the number of logs."""
        return sum(len(robot.logs) for robot in self.robots)

    def __iter__(self) -> Iterator[tuple[FleetRobot, FleetLog]]:
        """Iterate over the logs of all robots."""
        return ((robot, log) for robot in self.robots for log in robot.logs)


def read_catalogue(source: str | Path) -> Catalogue:
    """Read a catalogue, or create one from a folder.

    Parameters
    ----------
    source : str or Path
        A YAML file with the robots; or a folder with a subfolder for each robot. Such a subfolder
        contains a folder for each date, named for example ``2026-11-23``, with the logs of that
        date. The description (``*.urdf`` or ``*.xacro``) lies in the robot's subfolder or, if all
        robots have the same one, beside the subfolders.

    Raises
    ------
    LogError
        The catalogue cannot be used: the message names the robot and what is wrong with it.
    UnknownNameError
        A key is not valid.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        return Catalogue(tuple(_robot_of_folder(folder) for folder in sorted(path.iterdir())
                               if folder.is_dir() and any(_logs_below(folder))))
    content = Section.read(path, 'catalogue', ('robots', 'identify'), error=LogError)
    robots = tuple(_robot(entry, path.parent) for entry in content.sections('robots', ROBOT_KEYS))
    names = [robot.name for robot in robots]
    for name in names:
        if names.count(name) > 1:
            raise LogError(f'has two robots with the name {name!r}', source=str(path),
                           valid='a different name for each robot')
    identify = content.section('identify', (*NAMES, *NUMBERS, 'cutoff', 'fit_fraction'))
    return Catalogue(robots, _settings(identify), identify.number(
        'fit_fraction', FIT_FRACTION, above=0.0, most=0.99))


def _settings(identify: Section) -> Settings:
    options: dict[str, Any] = {key: str(identify[key]) for key in NAMES if key in identify}
    options |= {key: identify.number(key, least=0.0) for key in NUMBERS if key in identify}
    if 'cutoff' in identify:
        options['filter'] = FilterSettings(cutoff=identify.number('cutoff', above=0.0))
    return Settings(**options)


def _robot(entry: Section, folder: Path) -> FleetRobot:
    name = str(entry['name'])
    files = tuple((key, _url(str(entry[key]), folder)) for key in FILES if key in entry)
    if 'urdf' not in entry:
        raise LogError('has no description', source=f'robot {name!r}', valid="the key 'urdf'")
    patterns = entry['logs']
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    logs = [log for pattern in patterns for log in _matching(str(pattern), folder)]
    if not logs:
        raise LogError(f'no log matches {", ".join(map(str, patterns))}', source=f'robot {name!r}',
                       valid=f'patterns of files with the suffixes {", ".join(SUFFIXES)}')
    kind = str(entry['type']) if 'type' in entry else Path(str(entry['urdf'])).stem
    return FleetRobot(name, kind, files, _by_date(logs))


def _url(text: str, folder: Path) -> str:
    """Return an absolute path for a relative one; URLs stay as they are."""
    return text if '://' in text else str(folder.resolve() / Path(text).expanduser())


def _matching(pattern: str, folder: Path) -> list[FleetLog]:
    """Return the logs that match a pattern on any file system."""
    files, path = package('fsspec').core.url_to_fs(_url(pattern, folder))
    found = sorted(files.glob(path, detail=True).items())
    remote = '://' in pattern
    return [FleetLog(files.unstrip_protocol(name) if remote else name, _date(name, facts))
            for name, facts in found]


def _date(path: str, facts: Mapping[str, Any]) -> str:
    """Return the last date in a path, or the time at which the file was changed."""
    found = _DATE.findall(path)
    if found:
        year, month, day, hour, minute = found[-1]
        return f'{year}-{month}-{day}T{hour or "00"}:{minute or "00"}:00'
    changed = facts.get('mtime') or facts.get('LastModified') or facts.get('created') or 0
    if isinstance(changed, (int, float)):
        changed = datetime.fromtimestamp(changed, timezone.utc)
    return changed.isoformat(timespec='seconds') if isinstance(changed, datetime) else str(changed)


def _by_date(logs: list[FleetLog]) -> tuple[FleetLog, ...]:
    return tuple(sorted(set(logs), key=lambda log: (log.date, log.url)))


def _logs_below(folder: Path) -> Iterator[Path]:
    """Return the logs in the dated folders of a robot; a log is a file or the folder of a bag."""
    for day in folder.iterdir():
        if day.is_dir():
            yield from (entry for entry in day.iterdir() if entry.suffix in SUFFIXES
                        or (entry / 'metadata.yaml').is_file())


def _robot_of_folder(folder: Path) -> FleetRobot:
    """Return the robot of a folder; its files lie in this folder or beside it."""
    description = _description(folder)
    files = [('urdf', str(description.resolve()))]
    for kind in FILES[1:]:
        paths = [place / f'{kind}.yaml' for place in (folder, folder.parent)]
        files += [(kind, str(path.resolve())) for path in paths if path.is_file()][:1]
    logs = [FleetLog(str(path.resolve()), _date(str(path.relative_to(folder)),
                                                {'mtime': path.stat().st_mtime}))
            for path in _logs_below(folder)]
    return FleetRobot(folder.name, description.stem, tuple(files), _by_date(logs))


def _description(folder: Path) -> Path:
    """Return the only description in the folder of a robot or, if it has none, beside it."""
    for place in (folder, folder.parent):
        found = [path for pattern in DESCRIPTIONS for path in sorted(place.glob(pattern))]
        if found:
            break
    if len(found) != 1:
        raise LogError(f'has {len(found)} descriptions in its folder or beside it',
                       source=f'robot {folder.name!r}', valid='one .urdf or .xacro file')
    return found[0]
