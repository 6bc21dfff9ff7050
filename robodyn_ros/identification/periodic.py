"""Periodic logs: averages, noise, exact derivatives by frequency (Kolyubin 5.5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.errors import LogError
from robodyn_ros.spatial import Array

LINE = 10.0  # a spectral line is kept if its power exceeds the noise by this factor
LACKING = 2.0  # sample times from the last stamp to the end of a period that counts as whole


@dataclass(frozen=True, eq=False)
class PeriodAverage:
    """The mean of several periods; arrays of shape (K, n).

    Attributes
    ----------
    t : ndarray, shape (K,)
        Times from the start of the period, s.
    q, qd, qdd, tau : ndarray, shape (K, n)
        Motion and torque; rad or m, and N m or N.
    others : dict of ndarray
        Means of the further columns.
    rate : float
        Samples a second, Hz.
    periods : int
        Number of periods that were averaged.
    band : float
        Frequency of the highest line that is kept, Hz.
    position_noise, torque_noise : ndarray, shape (n,)
        Standard deviation of a single measurement (Kolyubin 5.17); rad or m, N m or N.
    reference : tuple of ndarray, or None
        The commanded q, qd and qdd, differentiated in the same way, if the log has them.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    others: dict[str, Array]
    rate: float
    periods: int
    band: float
    position_noise: Array
    torque_noise: Array
    reference: tuple[Array, Array, Array] | None = None


def whole_periods(t: Array, period: float) -> int:
    """Return the number of whole periods in some stamps, shape (N,); see `LACKING`."""
    duration = float(np.ptp(t))
    return int((duration + LACKING * duration / max(len(t) - 1, 1)) / period + 1e-6)


def average_periods(t: Array, columns: dict[str, Array], period: float,
                    source: str) -> PeriodAverage:
    """Average whole periods, and differentiate using only the excited spectral lines.

    Parameters
    ----------
    t : ndarray, shape (N,)
        Uniform times, s.
    columns : dict of ndarray, shape (N, n)
        ``q``, ``tau`` and others.
    period : float
        Length of a period, s.
    source : str
        Name of the log, for errors.

    Raises
    ------
    LogError
        If there are fewer than two whole periods.
    """
    rate = (len(t) - 1) / float(t[-1] - t[0])
    size = round(period * rate)
    periods = whole_periods(t, period)
    if periods < 2 or size < 8:
        raise LogError(f'{t[-1] - t[0]:.4g} s contain {periods} periods of {period:g} s',
                       source=source, valid='two whole periods or more')
    grid = t[0] + np.arange(periods * size) * (period / size)
    folded = {name: np.column_stack([np.interp(grid, t, column) for column in values.T]
                                    ).reshape(periods, size, -1)
              for name, values in columns.items()}
    means = {name: values.mean(axis=0) for name, values in folded.items()}
    noise = {name: np.sqrt(values.var(axis=0, ddof=1).mean(axis=0))
             for name, values in folded.items()}
    lines = np.fft.rfft(means['q'], axis=0)
    # noise of a line of the mean: variance / periods, spread over all lines
    level = noise['q'] ** 2 / periods * size
    excited = (np.abs(lines) ** 2 > LINE * np.maximum(level, 1e-30)).any(axis=1)
    excited[0] = True
    last = int(np.flatnonzero(excited)[-1])
    excited[last + 1:] = False
    q, qd, qdd = _differentiated(np.where(excited[:, None], lines, 0.0), period, size)
    reference = None
    if 'reference' in means:  # it has no noise: all its lines up to the last one are kept
        known = np.fft.rfft(means['reference'], axis=0)
        known[last + 1:] = 0.0
        reference = _differentiated(known, period, size)
    return PeriodAverage(np.arange(size) * period / size, q, qd, qdd, means['tau'],
                         {name: value for name, value in means.items()
                          if name not in ('q', 'tau', 'reference')},
                         size / period, periods, max(last, 1) / period, noise['q'], noise['tau'],
                         reference)


def _differentiated(lines: NDArray[np.complex128], period: float, size: int,
                    ) -> tuple[Array, Array, Array]:
    """Return a signal and its two derivatives from its spectral lines."""
    omega = 2j * np.pi * np.arange(len(lines))[:, None] / period
    q, qd, qdd = (np.fft.irfft(lines * omega**k, n=size, axis=0) for k in range(3))
    return q, qd, qdd
