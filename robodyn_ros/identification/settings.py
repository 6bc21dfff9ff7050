"""`Settings` of an identification, and `FilterSettings` of the position filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
import scipy

from robodyn_ros.errors import IdentificationError, UnknownNameError, ValueRangeError
from robodyn_ros.keywords import checked_fields
from robodyn_ros.model.kinds import FRICTION_NAMES, METHODS, RESIDUAL_MODELS, kind_of
from robodyn_ros.numerics import real_numbers

LONGEST_DELAY = 1.0  # s, largest delay of torques that may be set
NOT_NEGATIVE = ('friction_width', 'decimation', 'slow', 'guard', 'prior')
ORDER = 4  # order of the Butterworth filter, as in Gautier's and Kolyubin's experiments


@checked_fields
@dataclass(frozen=True)
class FilterSettings:
    """Settings of the filter of the positions.

    Attributes
    ----------
    cutoff : float, optional
        Cutoff frequency in Hz. By default it follows from the spectrum of the motion.
    order : int, optional
        Order of the Butterworth filter, which is applied forwards and backwards. The default is 4,
        or the order that the corridor requires.
    corridor : tuple of float, optional
        (pass frequency in Hz, largest loss there in dB, stop frequency in Hz, smallest attenuation
        there in dB). The lowest order that satisfies both is used, with the cutoff that follows
        from it (Kolyubin 5.5.1).
    """

    cutoff: float | None = None
    order: int | None = None
    corridor: tuple[float, float, float, float] | None = None

    def design(self, rate: float, automatic: float) -> tuple[float, int]:
        """Return the cutoff frequency, Hz, and the order of the filter.

        Parameters
        ----------
        rate : float
            Sample rate, Hz.
        automatic : float
            Cutoff frequency to use if none is set, Hz.

        Raises
        ------
        ValueRangeError
            The settings do not fit the sample rate.
        """
        if self.corridor is not None:
            low, loss, high, attenuation = self.corridor
            if not 0 < low < high < rate / 2 or not 0 < loss < attenuation:
                raise ValueRangeError('corridor', self.corridor, '0 < pass < stop < rate / 2 and '
                                      '0 < loss < attenuation')
            order, cutoff = scipy.signal.buttord(low, high, loss / 2, attenuation / 2, fs=rate)
            return float(cutoff), int(order)
        cutoff = automatic if self.cutoff is None else self.cutoff
        order = ORDER if self.order is None else self.order
        if not 0 < cutoff < rate / 2:
            raise ValueRangeError('cutoff', cutoff, f'above 0 and below {rate / 2:g} Hz')
        if not 1 <= order <= 10:
            raise ValueRangeError('filter order', order, '1 to 10')
        return cutoff, order


@checked_fields
@dataclass(frozen=True)
class Settings:
    """Settings of an identification; each has a default.

    Attributes
    ----------
    kind : str
        ``rigid``, ``lumped``, ``links``, ``links_and_drives`` or ``drives``: see `LinearModel`.
        Kolyubin's ``model1``, ``model2`` and ``model3`` are the last three.
    friction : str
        A friction model, see `FrictionShape`; ``auto`` chooses one by cross-validation.
    friction_width : float, optional
        Width of the smooth sign of Coulomb friction, as a fraction of each joint's fast speed
        (the 95th percentile). By default it is chosen with the friction model; it is zero if
        slow samples are left out, or if the friction model is set.
    method : str
        ``weighted`` least squares, ``ordinary`` least squares, ``huber`` against outliers,
        ``total`` least squares, ``instrumental`` variables of a simulated robot, ``didim`` or
        maximum ``likelihood``.
    joints : sequence of str, optional
        Joints whose bodies are estimated; the others keep their nominal parameters.
    torques_of : sequence of str, optional
        Joints whose torques are used. The default is all joints.
    payload : str, optional
        Link that carries an unknown payload in the logs that are ``loaded``.
    payload_mass : float, optional
        Mass of the payload in kg, if it is known.
    filter : FilterSettings
        The filter of the positions.
    decimation : float, optional
        Cutoff of the parallel filter in Hz; 0 means no parallel filter. By default it follows from
        the motion.
    slow : float or sequence of float, optional
        Samples of a joint below this speed (rad/s or m/s) are left out.
    guard : float, optional
        Time in s around a slow sample in which the joint's samples are left out as well, because
        the filters spread the effects of stiction. The default is half the width of the parallel
        filter, or less if more than half of a joint's fast samples would be lost.
    residual_model : str
        ``gaussian_process``: a model of what rigid bodies and friction do not explain, see
        `residual_model`; ``none``.
    prior : float, optional
        Weight of the nominal model in the physically consistent estimate; see
        `consistent_estimate` for the default.
    torque_delay : float, optional
        Time in s by which the torques are older than the positions; 0 if they belong together. By
        default it is chosen by the raw torque on data left out of the fit, see `torque_delay`,
        and is 0 if both cutoffs are set.
    """

    kind: str = 'lumped'
    friction: str = 'auto'
    friction_width: float | None = None
    method: str = 'weighted'
    joints: Sequence[str] | None = None
    torques_of: Sequence[str] | None = None
    payload: str | None = None
    payload_mass: float | None = None
    filter: FilterSettings = FilterSettings()
    decimation: float | None = None
    slow: float | Sequence[float] | None = None
    guard: float | None = None
    prior: float | None = None
    residual_model: str = 'none'
    torque_delay: float | None = None

    def __post_init__(self) -> None:
        """Check names and numbers, and replace an alias of the kind."""
        object.__setattr__(self, 'kind', kind_of(self.kind))
        if self.method not in METHODS:
            raise UnknownNameError('method', self.method, METHODS)
        if self.friction not in FRICTION_NAMES:
            raise UnknownNameError('friction model', self.friction, FRICTION_NAMES)
        if self.residual_model not in RESIDUAL_MODELS:
            raise UnknownNameError('residual model', self.residual_model, RESIDUAL_MODELS)
        if self.torque_delay is not None and not abs(self.torque_delay) <= LONGEST_DELAY:
            raise ValueRangeError('torque_delay', self.torque_delay,
                                  f'-{LONGEST_DELAY:g} to {LONGEST_DELAY:g} s')
        for name in NOT_NEGATIVE:
            value = getattr(self, name)
            numbers = real_numbers(name, 0.0 if value is None else value)
            if not ((numbers >= 0) & np.isfinite(numbers)).all():
                raise ValueRangeError(name, value, 'finite numbers from 0 on' if numbers.ndim
                                      else 'a finite number from 0 on')

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, as plain data."""
        usual = asdict(Settings())
        return {key: value for key, value in asdict(self).items() if value != usual[key]}


class SettingOptions(TypedDict, total=False):
    """The fields of `Settings` as keywords of `identify`, for type checkers."""

    kind: str
    friction: str
    friction_width: float | None
    method: str
    joints: Sequence[str] | None
    torques_of: Sequence[str] | None
    payload: str | None
    payload_mass: float | None
    filter: FilterSettings
    decimation: float | None
    slow: float | Sequence[float] | None
    guard: float | None
    prior: float | None
    residual_model: str
    torque_delay: float | None


def known_parameters(settings: Settings) -> dict[str, float]:
    """Return parameters that the settings give, by their names.

    Raises
    ------
    IdentificationError
        The mass of the payload is not above 0, or no link carries it.
    """
    if settings.payload_mass is None:
        return {}
    if settings.payload is None or not settings.payload_mass > 0:
        raise IdentificationError(f'payload_mass is {settings.payload_mass}; valid: a number > 0 '
                                  'with the link that carries the payload')
    return {'m:payload': settings.payload_mass}
