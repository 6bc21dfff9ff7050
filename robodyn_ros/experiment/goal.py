"""`Goal`: the request for an identification, and the settings that follow from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import IdentificationError, LogError
from robodyn_ros.excitation import Limits, Plan
from robodyn_ros.excitation.fourier import MOST_PERIODS
from robodyn_ros.experiment.runs import RECORDING, VALIDATION
from robodyn_ros.identification import FilterSettings, Settings, Thresholds
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
    loaded_logs: tuple[str, ...] = ()
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
    cutoff: float = 0.0
    order: int = 0
    corridor: tuple[float, ...] = ()
    reduce: bool = False
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
        if self.source == USE_LOGS and not self.logs and not self.loaded_logs:
            raise LogError('no log is named', source='logs', valid='names of earlier runs, or of '
                           'files inside the root folder')
        if self.source == RECORD and not 0 < self.duration <= LONGEST_RECORDING:
            raise IdentificationError(f'duration is {self.duration}; valid: above 0, at most '
                                      f'{LONGEST_RECORDING:g} s')
        if self.source == EXCITE and not 0 < (self.speed or SPEED_FRACTION) <= 1:
            raise IdentificationError(f'speed is {self.speed}; valid: above 0, at most 1')
        if self.payload_link and self.source != USE_LOGS and not self.logs and not self.joints:
            raise IdentificationError('payload_link is given without logs; valid: logs of the '
                                      'robot without the payload, which separate its own '
                                      'parameters from those of the payload')
        if self.periods > MOST_PERIODS:
            raise IdentificationError(f'periods is {self.periods}; valid: at most {MOST_PERIODS}')
        if self.loaded_logs and not self.payload_link:
            raise IdentificationError('loaded_logs are given without payload_link; valid: the '
                                      'link that carries the payload')
        if len(self.corridor) not in (0, 4):
            raise IdentificationError(f'corridor has {len(self.corridor)} numbers; valid: 4, the '
                                      'end of the pass band (Hz), the loss in it (dB), the start '
                                      'of the stop band (Hz), the attenuation in it (dB)')
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
                        guard=self.guard or None, filter=self._filter())

    def _filter(self) -> FilterSettings:
        corridor = None if not self.corridor else (
            self.corridor[0], self.corridor[1], self.corridor[2], self.corridor[3])
        return FilterSettings(self.cutoff or None, self.order or None, corridor)

    def search(self, robot: RobotDynamics) -> tuple[Limits, Plan]:
        """Return limits and plan for the optimisation of an excitation."""
        limits = Limits(velocity=robot.joints.velocity_limit * (self.speed or SPEED_FRACTION),
                        floor=None, torque_margin=self.torque_margin or TORQUE_MARGIN,
                        self_collision=self.self_collision)
        plan = Plan(kind=self.kind or 'lumped', payload=self.payload_link or None,
                    payload_mass=self.payload_mass, period=self.period or None,
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
        logs, loaded = list(self.logs), list(self.loaded_logs)
        if self.source != USE_LOGS:
            (loaded if self.payload_link else logs).append(str(folder / RECORDING))
        words = ['robodyn', 'identify', *logs, '--urdf', 'ROBOT.urdf', '--kind',
                 self.kind or 'lumped', '--friction', self.friction or 'auto']
        words += ['--loaded', *loaded] if loaded else []
        if self.validates_on_motion:
            words += ['--validate-loaded' if self.payload_link else '--validate',
                      str(folder / VALIDATION)]
        elif self.validation_logs:
            words += ['--validate', *self.validation_logs]
        else:
            words += ['--fit-fraction', f'{self.fit_fraction:g}']
        for option, value in (('payload', self.payload_link), ('payload-mass', self.payload_mass),
                              ('slow', self.slow), ('guard', self.guard),
                              ('cutoff', self.cutoff), ('order', self.order)):
            words += [f'--{option}', f'{value}'] if value else []
        for option, values in (('joints', self.joints), ('corridor', self.corridor)):
            words += [f'--{option}', *map(str, values)] if values else []
        words += ['--reduce'] if self.reduce else []
        if changed := thresholds.changed():
            words += ['--accept', *(f'{name}:={value:g}' for name, value in changed.items())]
        for name, text in self._facts().items():
            words += [f'--{name}', text] if text else []
        return shlex.join(words)
