"""`Goal`: the request for an identification, and the settings that follow from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from robodyn_ros.errors import IdentificationError, LogError
from robodyn_ros.excitation import Limits, Plan
from robodyn_ros.experiment.runs import RECORDING, VALIDATION
from robodyn_ros.identification import Settings, Thresholds
from robodyn_ros.model import Model
from robodyn_ros.report.record import RECORD as FACTS
from robodyn_ros.report.record import Record

EXCITE, RECORD, USE_LOGS = 0, 1, 2
SOURCES = {EXCITE: 'EXCITE', RECORD: 'RECORD', USE_LOGS: 'USE_LOGS'}
VALIDATION_FRACTION = 0.3  # fraction of each log that validates if there are no other data
SPEED_FRACTION = 0.8  # default fraction of the velocity limits
TORQUE_MARGIN = 0.1  # default margin, as a fraction of the torque limits
SEARCH_TIME = 20.0  # s
LONGEST_RECORDING = 3600.0  # s
LONGEST_FACT = 1000  # characters of a fact for the report


@dataclass(frozen=True)
class Goal:
    """The request for an identification.

    The fields are those of the action `IdentifyDynamics`, which describes them. 0 and empty values
    select the defaults.
    """

    source: int = EXCITE
    name: str = ''
    logs: tuple[str, ...] = ()
    validation_logs: tuple[str, ...] = ()
    log_format: str = ''
    kind: str = ''
    friction: str = ''
    payload_link: str = ''
    payload_mass: float = 0.0
    joints: tuple[str, ...] = ()
    excitation: str = ''
    search_time: float = 0.0
    period: float = 0.0
    periods: int = 0
    speed: float = 0.0
    torque_margin: float = 0.0
    resonance: float = 0.0
    self_collision: bool = False
    duration: float = 0.0
    validation_fraction: float = 0.0
    slow: float = 0.0
    guard: float = 0.0
    apply: bool = False
    force: bool = False
    serial: str = ''
    operator_name: str = ''
    measured: str = ''
    temperature: str = ''
    remark: str = ''

    def check(self) -> None:
        """Raise a RobodynError if the goal contradicts itself."""
        if self.source not in SOURCES:
            raise IdentificationError(f'source is {self.source}; valid: ' + ', '.join(
                f'{name} {value}' for value, name in SOURCES.items()))
        if self.source == USE_LOGS and not self.logs:
            raise LogError('no log is named', source='logs', valid='names of earlier runs, or of '
                           'files inside the root folder')
        if self.source == RECORD and not 0 < self.duration <= LONGEST_RECORDING:
            raise IdentificationError(f'duration is {self.duration}; valid: above 0, at most '
                                      f'{LONGEST_RECORDING:g} s')
        if self.source == EXCITE and not 0 < (self.speed or SPEED_FRACTION) <= 1:
            raise IdentificationError(f'speed is {self.speed}; valid: above 0, at most 1')
        for name, text in self._facts().items():
            if len(text) > LONGEST_FACT:
                raise IdentificationError(f'{name} has {len(text)} characters; valid: at most '
                                          f'{LONGEST_FACT}')

    @property
    def validates_on_motion(self) -> bool:
        """Whether a second motion is played for the validation."""
        return self.source == EXCITE and not self.validation_logs and not self.validation_fraction

    @property
    def fit_fraction(self) -> float:
        """Fraction of each log that the fit uses if the logs are split."""
        return 1 - (self.validation_fraction or VALIDATION_FRACTION)

    def settings(self) -> Settings:
        """Return the settings of the estimation."""
        return Settings(kind=self.kind or 'lumped', friction=self.friction or 'auto',
                        joints=list(self.joints) or None, payload=self.payload_link or None,
                        payload_mass=self.payload_mass or None, slow=self.slow or None,
                        guard=self.guard or None)

    def search(self, model: Model) -> tuple[Limits, Plan]:
        """Return limits and plan for the optimisation of an excitation."""
        limits = Limits(velocity=model.velocity_limit * (self.speed or SPEED_FRACTION), floor=None,
                        torque_margin=self.torque_margin or TORQUE_MARGIN,
                        self_collision=self.self_collision)
        plan = Plan(kind=self.kind or 'lumped', period=self.period or None,
                    periods=self.periods or 1, resonance=self.resonance or None,
                    budget=self.search_time or SEARCH_TIME)
        return limits, plan

    def _facts(self) -> dict[str, str]:
        """Return the facts for the report, by the names of `Record`."""
        return {name: getattr(self, 'operator_name' if name == 'operator' else name)
                for name in FACTS}

    def record(self, files: tuple[tuple[str, str], ...] = ()) -> Record:
        """Return the facts for the report, with names and hashes of the robot's files."""
        return Record(**self._facts(), files=files)

    def command(self, folder: Path, thresholds: Thresholds) -> str:
        """Return the command line that repeats the estimation offline."""
        logs = list(self.logs)
        if self.source != USE_LOGS:
            logs.append(str(folder / RECORDING))
        words = ['robodyn', 'identify', *logs, '--urdf', 'ROBOT.urdf', '--kind',
                 self.kind or 'lumped', '--friction', self.friction or 'auto']
        if self.validates_on_motion:
            words += ['--validate', str(folder / VALIDATION)]
        elif self.validation_logs:
            words += ['--validate', *self.validation_logs]
        else:
            words += ['--fit-fraction', f'{self.fit_fraction:g}']
        if changed := thresholds.changed():
            words += ['--accept', *(f'{name}:={value:g}' for name, value in changed.items())]
        for name, text in self._facts().items():
            words += [f'--{name}', text] if text else []
        return shlex.join(words)
