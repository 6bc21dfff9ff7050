"""What the report of an identification says of the robot and of the measurement."""

from __future__ import annotations

from dataclasses import dataclass

# what no log says: label in the report, and meaning; an empty line is left to be filled in by hand
RECORD = {
    'serial': ('serial number', 'serial number of the robot'),
    'operator': ('operator', 'who measured'),
    'measured': ('measured on, at', 'date and place of the measurement'),
    'temperature': ('temperature', 'temperature of the robot, for example "23 deg C, warm"'),
    'remark': ('remarks', 'anything else, for example tools and payload'),
}


@dataclass(frozen=True)
class Record:
    """Facts of a measurement, as texts.

    Attributes
    ----------
    serial, operator, measured, temperature, remark : str
        See `RECORD`; the report leaves a line for those that are empty.
    files : tuple of (str, str)
        Name and SHA-256 of the robot's files.
    """

    serial: str = ''
    operator: str = ''
    measured: str = ''
    temperature: str = ''
    remark: str = ''
    files: tuple[tuple[str, str], ...] = ()
