"""From raw samples to motion and torque on a uniform time grid (Kolyubin 5.5).

Positions are filtered without phase and differentiated centrally; torques are never
differentiated. Every choice that the data made is written down in ``notes``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.interpolate
import scipy.signal

from robodyn_ros.description import Array
from robodyn_ros.errors import LogError, ValueRangeError
from robodyn_ros.identification.log import MINIMUM, Log
from robodyn_ros.identification.periodic import average_periods

GAP = 8.0  # sample times without a sample that make a gap
JITTER = 0.02  # of a sample time, below which stamps count as uniform
BAND_POWER = 0.999  # of the velocities' power lies in the band of the motion
JERKY_POWER = 0.98  # of the accelerations' power, in the joint where that comes first
CUTOFF_PER_BAND = 5.0
ORDER = 4


@dataclass(eq=False)
class Segment:
    """An uninterrupted piece of a log on a uniform grid; arrays of shape (M, n).

    ``smooth`` is the motion filtered down to its own band, an instrument that noise leaves alone.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    tau_motor: Array | None
    extra: Array | None
    smooth: tuple[Array, Array, Array]
    loaded: bool
    rate: float
    band: float
    source: str


@dataclass(frozen=True)
class FilterSettings:
    """How positions are filtered.

    Attributes
    ----------
    cutoff : float, optional
        Hz; default: from the spectrum of the motion.
    order : int, optional
        Of the Butterworth filter, run forth and back; default 4, or by the corridor.
    corridor : tuple of float, optional
        (pass Hz, most dB lost there, stop Hz, least dB lost there): the lowest order that keeps
        both (Kolyubin 5.5.1); its cutoff follows.
    """

    cutoff: float | None = None
    order: int | None = None
    corridor: tuple[float, float, float, float] | None = None

    def design(self, rate: float, automatic: float) -> tuple[float, int]:
        """Return cutoff (Hz) and order for a sample rate."""
        if self.corridor is not None:
            low, loss, high, damping = self.corridor
            if not 0 < low < high < rate / 2 or not 0 < loss < damping:
                raise ValueRangeError('corridor', self.corridor, '0 < pass < stop < rate / 2 and '
                                      '0 < dB lost < dB damped')
            order, cutoff = scipy.signal.buttord(low, high, loss / 2, damping / 2, fs=rate)
            return float(cutoff), int(order)
        cutoff = automatic if self.cutoff is None else self.cutoff
        order = ORDER if self.order is None else self.order
        if not 0 < cutoff < rate / 2:
            raise ValueRangeError('cutoff', cutoff, f'above 0 and below {rate / 2:g} Hz')
        if not 1 <= order <= 10:
            raise ValueRangeError('filter order', order, '1 to 10')
        return cutoff, order


def segments_of(log: Log, settings: FilterSettings, notes: list[str]) -> list[Segment]:
    """Return the uninterrupted pieces of a log, filtered and differentiated.

    Raises
    ------
    LogError
        No piece is long enough.
    """
    pieces = _pieces(log, notes)
    found = []
    for t, columns in pieces:
        if log.period is not None:
            found.append(_periodic(log, t, columns, notes))
            continue
        rate = (len(t) - 1) / float(t[-1] - t[0])
        q = columns['q']
        band, noise = motion_band(q, rate)
        automatic = float(np.clip(CUTOFF_PER_BAND * band, 8 / (t[-1] - t[0]),
                                  min(noise, 0.4 * rate)))
        cutoff, order = settings.design(rate, automatic)
        edge = min(len(t) // 10, int(np.ceil(1.5 * rate / cutoff)))
        q, qd, qdd = (x[edge:len(t) - edge] for x in differentiate(q, rate, cutoff, order))
        low = max(2 * band, 4 / (t[-1] - t[0]))
        smooth = differentiate(columns.get('reference', columns['q']), rate,
                               min(low, cutoff), order)
        inside = slice(edge, len(t) - edge)
        if len(q) < MINIMUM:
            notes.append(f'{log.source}: a piece of {len(t)} samples is too short for a cutoff of '
                         f'{cutoff:.3g} Hz, left out')
            continue
        notes.append(f'{log.source}: {len(t)} samples at {rate:.4g} Hz; the motion lies below '
                     f'{band:.3g} Hz; Butterworth of order {order} at {cutoff:.3g} Hz, forth and '
                     'back')
        found.append(Segment(
            t[inside], q, qd, qdd, columns['tau'][inside], _cut(columns, 'tau_motor', inside),
            _cut(columns, 'extra', inside), tuple(x[inside] for x in smooth),  # type: ignore
            log.loaded, rate, band, log.source))
    if not found:
        raise LogError(f'no uninterrupted piece of {MINIMUM} samples or more', source=log.source)
    return found


def motion_band(q: Array, rate: float) -> tuple[float, float]:
    """Return the band of a motion and where its spectrum sinks into noise, Hz.

    The band holds nearly all of the velocities' power of every joint, and of the accelerations'
    in one at least: friction makes joints jerk where they turn, all of them, and noise not less
    in some. Noise is where the positions' spectrum has come down to ten times its level at high
    frequencies.
    """
    band, noise = 2.0 / (len(q) / rate), rate / 2
    size = min(len(q), int(2 ** np.ceil(np.log2(max(256, 16 * rate)))))
    crossings, jerky = [], []
    for column in q.T:
        if np.ptp(column) < 1e-9:
            continue
        f, power = scipy.signal.welch(column, rate, nperseg=size, detrend='linear')
        floor = np.median(power[len(power) // 2:])
        above = power > 10 * floor
        end = int(np.argmin(above[1:])) + 1 if not above[1:].all() else len(f) - 1
        crossings.append(f[end])
        moving, turning = (np.cumsum(power[:end + 1] * f[:end + 1] ** k) for k in (2, 4))
        if moving[-1] > 0:
            band = max(band, float(f[np.searchsorted(moving, BAND_POWER * moving[-1])]))
            jerky.append(float(f[np.searchsorted(turning, JERKY_POWER * turning[-1])]))
    if crossings:
        band = max(band, min(jerky, default=band))
        noise = max(max(crossings), 2 * band)
    return band, min(noise, rate / 2)


def differentiate(q: Array, rate: float, cutoff: float, order: int,
                  ) -> tuple[Array, Array, Array]:
    """Return filtered positions, velocities and accelerations, each of shape (N, n)."""
    if cutoff < 0.45 * rate:
        sections = scipy.signal.butter(order, cutoff, fs=rate, output='sos')
        pad = min(len(q) - 2, int(3 * rate / cutoff) + 3 * (2 * order + 1))
        q = scipy.signal.sosfiltfilt(sections, q, axis=0, padlen=pad)
    qd = np.gradient(q, 1 / rate, axis=0)
    return q, qd, np.gradient(qd, 1 / rate, axis=0)


def _pieces(log: Log, notes: list[str]) -> list[tuple[Array, dict[str, Array]]]:
    """Uniform pieces: split at gaps and clock jumps, sorted, duplicates out, jitter resampled."""
    t = np.asarray(log.t)
    arrays = {name: np.asarray(value) for name in ('q', 'tau', 'tau_motor', 'extra', 'reference')
              if (value := getattr(log, name)) is not None}
    steps = np.diff(t)
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    if step <= 0:
        raise LogError('stamps never increase', source=log.source)
    far = np.abs(steps) > GAP * step
    # a single late sample leaves and comes back: it is sorted in, no gap
    late = np.flatnonzero(far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) <= GAP * step))
    far[late] = far[late + 1] = False
    breaks = np.flatnonzero(far) + 1
    if len(breaks):
        where = ', '.join(f'{t[b - 1]:.3f} to {t[b]:.3f} s' for b in breaks[:5])
        notes.append(f'{log.source}: {len(breaks)} gaps or clock jumps ({where}); the pieces are '
                     'used one by one')
    pieces = []
    for index in np.split(np.arange(len(t)), breaks):
        order = index[np.argsort(t[index], kind='stable')]
        new = np.concatenate([[True], np.diff(t[order]) > 1e-3 * step])
        if not new.all():
            notes.append(f'{log.source}: {int((~new).sum())} repeated stamps left out')
        if (np.diff(t[index]) < 0).any():
            notes.append(f'{log.source}: samples out of order sorted')
        order = order[new]
        if len(order) < MINIMUM:
            notes.append(f'{log.source}: a piece of {len(order)} samples left out')
            continue
        pieces.append(_uniform(log, t[order], {k: v[order] for k, v in arrays.items()}, step,
                               notes))
    return pieces


def _uniform(log: Log, t: Array, arrays: dict[str, Array], step: float, notes: list[str],
             ) -> tuple[Array, dict[str, Array]]:
    grid = np.linspace(t[0], t[-1], len(t))
    jitter = float(np.abs(t - grid).max()) / step
    if jitter <= JITTER:
        return grid, arrays
    grid = np.arange(t[0], t[-1], step)
    notes.append(f'{log.source}: stamps off their grid by up to {jitter:.2g} sample times; '
                 f'resampled at {1 / step:.4g} Hz (positions by cubic splines, torques linearly)')
    smooth = ('q', 'reference')
    return grid, {
        name: scipy.interpolate.CubicSpline(t, values)(grid) if name in smooth else
        np.column_stack([np.interp(grid, t, column) for column in values.T])
        for name, values in arrays.items()}


def _periodic(log: Log, t: Array, columns: dict[str, Array], notes: list[str]) -> Segment:
    assert log.period is not None
    mean = average_periods(t, columns, log.period, log.source)
    notes.append(f'{log.source}: {mean.periods} periods of {log.period:g} s averaged, lines up to '
                 f'{mean.band:.3g} Hz kept; noise of the torques '
                 f'{np.array2string(mean.torque_noise, precision=3)}')
    return Segment(mean.t, mean.q, mean.qd, mean.qdd, mean.tau, mean.others.get('tau_motor'),
                   mean.others.get('extra'), (mean.q, mean.qd, mean.qdd), log.loaded, mean.rate,
                   mean.band, log.source)


def _cut(columns: dict[str, Array], name: str, inside: slice) -> Array | None:
    return columns[name][inside] if name in columns else None
