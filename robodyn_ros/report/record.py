"""Facts about the robot and the measurement for the report of an identification."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from robodyn_ros.files import sha256_of

# label in the report and meaning of each fact that no log contains
RECORD = {
    'serial': ('serial number', 'serial number of the robot'),
    'operator': ('operator', 'who measured'),
    'measured': ('measured on, at', 'date and place of the measurement'),
    'temperature': ('temperature', 'temperature of the robot, for example "23 deg C, warm"'),
    'remark': ('remarks', 'anything else, for example tools and payload'),
}


@dataclass(frozen=True)
class Record:
    """Facts about a measurement, as texts.

    Attributes
    ----------
    serial, operator, measured, temperature, remark : str
        See `RECORD`; for empty ones the report leaves a line to be filled in by hand.
    files : tuple of (str, str)
        Name and SHA-256 of the robot's files.
    """

    serial: str = ''
    operator: str = ''
    measured: str = ''
    temperature: str = ''
    remark: str = ''
    files: tuple[tuple[str, str], ...] = ()


def hashes_of(paths: Iterable[Path | None]) -> tuple[tuple[str, str], ...]:
    """Return name and SHA-256 of files; None entries are left out."""
    return tuple((path.name, sha256_of(path)) for path in paths if path is not None)
