"""Uninterrupted pieces of a log on uniform time grids: sorted, bridged and resampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy
import scipy.interpolate
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.errors import LogError
from robodyn_ros.identification.log import MINIMUM
from robodyn_ros.identification.periodic import PeriodAverage, average_periods, whole_periods
from robodyn_ros.spatial import Array

SHORT_GAP = 8.0  # sample times; a shorter gap is always bridged
BRIDGED = 0.1  # periods of the fastest motion; splines over such a gap err by less than 0.3 %
LONGEST_BRIDGE = 1.0  # s; a longer gap always splits the log
JITTER = 0.02  # sample times; stamps with less jitter count as uniform
REPEATED = 1e-3  # sample times; stamps that are closer count as one
BAND_POWER = 0.999  # fraction of the velocities' power in the band of the motion
JERKY_POWER = 0.98  # fraction of the accelerations' power, in the joint with the lowest frequency
NOISE_RATIO = 10.0  # ratio to the level at high frequencies, below which a spectrum is noise
STANDING = 1e-9  # rad or m; a joint that moves less is at rest
_COLUMNS = ('q', 'tau', 'tau_motor', 'extra', 'reference', 'temperature')
_SMOOTH = ('q', 'reference')  # interpolated by splines; the others linearly


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a log on a uniform grid; arrays of shape (M, n).

    Attributes
    ----------
    t : ndarray, shape (M,)
        Times, s.
    columns : dict of ndarray
        ``q``, ``tau``, and ``tau_motor``, ``extra``, ``reference`` and ``temperature`` if the log
        has them.
    measured : ndarray of bool, shape (M,)
        False for samples that bridge a gap.
    rate : float
        Samples a second, Hz.
    loaded : bool
        Whether the payload is attached.
    source : str
        Name of the log.
    average : PeriodAverage or None
        The mean period of a periodic log, whose derivatives need no filter.
    """

    t: Array
    columns: dict[str, Array]
    measured: NDArray[np.bool_]
    rate: float
    loaded: bool
    source: str
    average: PeriodAverage | None = None


@dataclass(frozen=True)
class Spectrum:
    """Band and noise of a motion, from the spectra of its positions.

    Attributes
    ----------
    band : float
        Highest frequency of the motion, Hz.
    noise : float
        Frequency above which the spectra are noise, Hz.
    floor : ndarray, shape (n,)
        Power density of the noise of each position, rad^2/Hz or m^2/Hz.
    """

    band: float
    noise: float
    floor: Array

    def velocity_noise(self, cutoff: float) -> Array:
        """Return the standard deviation of each velocity after a low-pass filter, shape (n,)."""
        # white noise of density S, differentiated: S (2 pi f)^2, integrated up to the cutoff
        return np.sqrt(self.floor * (2 * np.pi) ** 2 * cutoff**3 / 3)


class Recorded(Protocol):
    """A log: stamps, positions and forces; the other columns in ``_COLUMNS`` are optional."""

    @property
    def t(self) -> ArrayLike:
        """Stamps, s."""

    @property
    def q(self) -> ArrayLike:
        """What splines interpolate."""

    @property
    def tau(self) -> ArrayLike:
        """What is interpolated linearly."""

    @property
    def source(self) -> str:
        """Name of the log."""

    @property
    def period(self) -> float | None:
        """Period of a periodic motion, s."""

    @property
    def loaded(self) -> bool:
        """Whether the payload is attached."""


def pieces_of(log: Recorded, notes: list[str]) -> list[Piece]:
    """Return the uninterrupted pieces of a log.

    Stamps are sorted, and repeated ones left out. A gap that is short compared with the periods of
    the motion is bridged; other gaps split the log.

    Raises
    ------
    LogError
        If the stamps never increase, or if no piece is long enough.
    """
    t = np.asarray(log.t)
    arrays = {name: np.asarray(value) for name in _COLUMNS
              if (value := getattr(log, name, None)) is not None}
    steps = np.diff(t)
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    if step <= 0:
        raise LogError('stamps never increase', source=log.source)
    longest = SHORT_GAP * step
    if (np.abs(steps) > longest).any():
        longest = max(longest, _bridge(t, arrays['q'], step))
    breaks = _breaks(t, longest)
    if len(breaks):
        where = ', '.join(f'{t[b - 1]:.3f} to {t[b]:.3f} s' for b in breaks[:5])
        notes.append(f'{log.source}: {len(breaks)} gaps or clock jumps ({where}) are too long to '
                     'be bridged and split the log')
    found = []
    for index in np.split(np.arange(len(t)), breaks):
        order = _in_order(t, index, step, log.source, notes)
        if len(order) < MINIMUM:
            notes.append(f'{log.source}: a piece of {len(order)} samples was left out')
            continue
        piece = _uniform(log, t[order], {k: v[order] for k, v in arrays.items()}, step, notes)
        if log.period is not None:
            piece = _averaged(piece, log.period, len(breaks) > 0, notes)
        found.append(piece)
    if not found:
        raise LogError(f'no uninterrupted piece of {MINIMUM} samples or more', source=log.source)
    return found


def spectrum_of(q: Array, rate: float) -> Spectrum:
    """Return the band of a motion and the noise of its positions.

    The band contains nearly all of the velocity power of every joint, and nearly all of the
    acceleration power of at least one joint; accelerations of the other joints may be dominated by
    friction at reversals or by noise. Noise begins where a spectrum has fallen to ten times its
    level at high frequencies.

    Parameters
    ----------
    q : ndarray, shape (M, n)
        Positions, rad or m.
    rate : float
        Samples a second, Hz.
    """
    band, noise = 2.0 / (len(q) / rate), rate / 2
    size = min(len(q), int(2 ** np.ceil(np.log2(max(256, 16 * rate)))))
    crossings, jerky = [], []
    floors = np.zeros(q.shape[1])
    for joint, column in enumerate(q.T):
        if np.ptp(column) < STANDING:
            continue
        f, power = scipy.signal.welch(column, rate, nperseg=size, detrend='linear')
        floor = np.median(power[len(power) // 2:])
        floors[joint] = floor
        above = power > NOISE_RATIO * floor
        end = int(np.argmin(above[1:])) + 1 if not above[1:].all() else len(f) - 1
        crossings.append(f[end])
        moving, turning = (np.cumsum(power[:end + 1] * f[:end + 1] ** k) for k in (2, 4))
        if moving[-1] > 0:
            band = max(band, float(f[np.searchsorted(moving, BAND_POWER * moving[-1])]))
            jerky.append(float(f[np.searchsorted(turning, JERKY_POWER * turning[-1])]))
    if crossings:
        band = max(band, min(jerky, default=band))
        noise = max(max(crossings), 2 * band)
    return Spectrum(band, min(noise, rate / 2), floors)


def _bridge(t: Array, q: Array, step: float) -> float:
    """Return the longest gap that is short compared with the periods of the motion, s."""
    parts = np.split(np.arange(len(t)), _breaks(t, LONGEST_BRIDGE))
    index = max(parts, key=len)
    index = index[np.argsort(t[index], kind='stable')]
    grid = np.arange(t[index[0]], t[index[-1]], step)
    if len(grid) < MINIMUM:
        return 0.0
    even = np.column_stack([np.interp(grid, t[index], column[index]) for column in q.T])
    return min(BRIDGED / spectrum_of(even, 1 / step).band, LONGEST_BRIDGE)


def _breaks(t: Array, longest: float) -> NDArray[np.int_]:
    """Return the indices after gaps and clock jumps."""
    steps = np.diff(t)
    far = np.abs(steps) > longest
    # a single late sample causes two jumps that cancel: it is sorted in, and there is no gap
    late = np.flatnonzero(far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) <= longest))
    far[late] = far[late + 1] = False
    return np.flatnonzero(far) + 1


def _in_order(t: Array, index: NDArray[np.int_], step: float, source: str, notes: list[str],
              ) -> NDArray[np.int_]:
    """Return the indices sorted by time, without repeated stamps."""
    order = index[np.argsort(t[index], kind='stable')]
    new = np.concatenate([[True], np.diff(t[order]) > REPEATED * step])
    if not new.all():
        notes.append(f'{source}: {int((~new).sum())} repeated stamps were left out')
    if (np.diff(t[index]) < 0).any():
        notes.append(f'{source}: samples were out of order and have been sorted')
    return order[new]


def _averaged(piece: Piece, period: float, split: bool, notes: list[str]) -> Piece:
    """Return a piece with the mean of its periods; a short one beside a gap stays as it is."""
    if split and whole_periods(piece.t, period) < 2:
        notes.append(f'{piece.source}: a piece of {piece.t[-1] - piece.t[0]:.4g} s beside a gap '
                     f'has less than two periods of {period:g} s, which are not averaged')
        return piece
    return replace(piece, average=average_periods(piece.t, piece.columns, period, piece.source))


def _uniform(log: Recorded, t: Array, arrays: dict[str, Array], step: float, notes: list[str],
             ) -> Piece:
    """Return a piece on a uniform grid."""
    grid = np.linspace(t[0], t[-1], len(t))
    rate = (len(t) - 1) / float(t[-1] - t[0])
    if float(np.abs(t - grid).max()) <= JITTER * step:
        return Piece(grid, arrays, np.ones(len(t), bool), rate, log.loaded, log.source)
    grid = np.arange(t[0], t[-1], step)
    before = np.clip(np.searchsorted(t, grid, side='right') - 1, 0, len(t) - 2)
    bridged = np.diff(t)[before] > SHORT_GAP * step
    notes.append(f'{log.source}: stamps off their grid by up to '
                 f'{float(np.diff(t).max()) / step - 1:.2g} sample times; resampled at '
                 f'{1 / step:.4g} Hz (positions by cubic splines, torques linearly)'
                 + (f'; {int(bridged.sum())} samples bridge gaps' if bridged.any() else ''))
    even = {name: scipy.interpolate.CubicSpline(t, values)(grid) if name in _SMOOTH else
            np.column_stack([np.interp(grid, t, column) for column in values.T])
            for name, values in arrays.items()}
    return Piece(grid, even, ~bridged, 1 / step, log.loaded, log.source)
