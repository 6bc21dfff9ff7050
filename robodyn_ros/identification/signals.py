"""Computes velocities and accelerations from positions (Kolyubin 5.5).

Positions are filtered with zero phase and differentiated by central differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from robodyn_ros.errors import LogError
from robodyn_ros.identification.log import MINIMUM
from robodyn_ros.identification.pieces import Piece, Spectrum, spectrum_of
from robodyn_ros.identification.settings import FilterSettings
from robodyn_ros.spatial import Array

SHORT = 0.05  # of the longest piece; the spectrum of a shorter one is that of its ends
CUTOFF_PER_BAND = 5.0  # then a Butterworth filter of order 4, run twice, changes the band by 0.3 %
LEAST_PERIODS = 8  # smallest number of periods of the cutoff frequency in a piece
HIGHEST = 0.4  # largest cutoff frequency over the sample rate
UNFILTERED = 0.45  # cutoff over the sample rate above which nothing is filtered
SMOOTH_PER_BAND = 2.0  # cutoff of the smooth motion for instrumental variables, over the band
EDGE = 1.5  # periods of the cutoff frequency that are dropped at both ends
LARGEST_EDGE = 0.1  # largest fraction of a piece that is dropped at each end
MEASURED_TORQUES = ('tau', 'tau_motor')  # columns that are delayed together


@dataclass(eq=False)
class Segment:
    """The motion and the torques of a piece of a log; arrays of shape (M, n).

    Attributes
    ----------
    t : ndarray, shape (M,)
        Times, s.
    q, qd, qdd : ndarray, shape (M, n)
        Filtered positions and their derivatives; rad or m.
    tau : ndarray, shape (M, n)
        Torques as measured, N m or N.
    tau_motor, extra, temperature : ndarray or None
        See `Log`.
    smooth : tuple of ndarray
        q, qd and qdd with little noise, for instrumental variables: of the commanded motion, or
        filtered to the band of the motion.
    measured : ndarray of bool, shape (M,)
        False for samples that bridge a gap.
    loaded : bool
        Whether the payload is attached.
    rate : float
        Samples a second, Hz.
    source : str
        Name of the log.
    highest : float
        Highest frequency of the filtered positions, Hz.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    tau_motor: Array | None
    extra: Array | None
    smooth: tuple[Array, Array, Array]
    measured: NDArray[np.bool_]
    loaded: bool
    rate: float
    source: str
    highest: float
    temperature: Array | None = None


@dataclass(frozen=True)
class Filtering:
    """The filters of one fit, which its validation uses as well.

    Attributes
    ----------
    band : float
        Highest frequency of the motion, Hz.
    cutoff : float
        Cutoff frequency of the position filter, Hz; infinite for periodic logs, whose derivatives
        need no filter.
    order : int
        Order of the Butterworth filter.
    decimation : float
        Cutoff frequency of the parallel filter, Hz; 0 means no filter.
    judged : float
        Cutoff frequency of the filter for reported errors, Hz. It depends only on the motion, so
        that errors of different fits can be compared.
    torque_delay : float
        Time by which the torques are older than the positions, s; see `torque_delay`.
    """

    band: float
    cutoff: float
    order: int
    decimation: float
    judged: float
    torque_delay: float = 0.0


def motion_spectrum(pieces: Sequence[Piece]) -> Spectrum:
    """Return one spectrum for all pieces: the widest band and the strongest noise.

    Pieces that are short beside the longest one have no spectrum of their own.
    """
    longest = max(float(np.ptp(p.t)) for p in pieces)
    pieces = [p for p in pieces if np.ptp(p.t) >= SHORT * longest]
    spectra = [spectrum_of(p.columns['q'], p.rate) for p in pieces]
    spectra = [s if p.average is None else
               Spectrum(min(s.band, p.average.band), p.rate / 2, np.zeros_like(s.floor))
               for s, p in zip(spectra, pieces, strict=True)]
    return Spectrum(max(s.band for s in spectra), max(s.noise for s in spectra),
                    np.max([s.floor for s in spectra], axis=0))


def automatic_cutoff(pieces: Sequence[Piece], spectrum: Spectrum) -> float:
    """Return the cutoff that follows from the spectrum of the motion, Hz."""
    longest = max(float(p.t[-1] - p.t[0]) for p in pieces)
    rate = min(p.rate for p in pieces)
    return float(np.clip(CUTOFF_PER_BAND * spectrum.band, LEAST_PERIODS / longest,
                         min(spectrum.noise, HIGHEST * rate)))


def design(pieces: Sequence[Piece], spectrum: Spectrum, settings: FilterSettings,
           ) -> tuple[float, int]:
    """Return cutoff (Hz) and order of the filter of the positions."""
    rate = min(p.rate for p in pieces)
    return settings.design(rate, automatic_cutoff(pieces, spectrum))


def segments_of(pieces: Sequence[Piece], filtering: Filtering, notes: list[str], *,
                smooth: bool = True) -> list[Segment]:
    """Return the filtered and differentiated pieces.

    Parameters
    ----------
    pieces : sequence of Piece
        The logs.
    filtering : Filtering
        Their filters.
    notes : list of str
        Remarks are added to it.
    smooth : bool
        Whether `Segment.smooth` is needed; without it, it is the motion itself.

    Raises
    ------
    LogError
        No piece is long enough for the filter.
    """
    found = []
    plain = [piece for piece in pieces if piece.average is None]
    if plain and not np.isfinite(filtering.cutoff):  # of a fit that averaged periods
        filtering = replace(filtering, cutoff=automatic_cutoff(plain, motion_spectrum(plain)))
    for piece in pieces:
        segment = _averaged(piece, filtering) if piece.average is not None else _filtered(
            piece, filtering, smooth)
        if len(segment.t) < MINIMUM:
            notes.append(f'{piece.source}: a piece of {len(piece.t)} samples is too short for a '
                         f'cutoff of {filtering.cutoff:.3g} Hz and was left out')
            continue
        found.append(segment)
    if not found:
        raise LogError(f'is too short for a filter at {filtering.cutoff:.3g} Hz',
                       source=pieces[0].source, valid='a longer log, or a higher cutoff')
    return found


def describe(pieces: Sequence[Piece], filtering: Filtering) -> list[str]:
    """Return a description of the logs and of their filters, in sentences."""
    notes = []
    for piece in pieces:
        if piece.average is not None:
            mean = piece.average
            notes.append(
                f'{piece.source}: {mean.periods} periods averaged, spectral lines up to '
                f'{mean.band:.3g} Hz kept; noise of the torques '
                f'{np.array2string(mean.torque_noise, precision=3)}')
        else:
            notes.append(f'{piece.source}: {len(piece.t)} samples at {piece.rate:.4g} Hz')
    parallel = f'parallel filter at {filtering.decimation:.3g} Hz' if filtering.decimation \
        else 'no parallel filter'
    positions = f'Butterworth filter of order {filtering.order} at {filtering.cutoff:.3g} Hz, ' \
        'forwards and backwards' if np.isfinite(filtering.cutoff) else 'positions not filtered'
    return [*notes, f'the motion lies below {filtering.band:.3g} Hz; {positions}; {parallel}']


def differentiate(q: Array, rate: float, cutoff: float, order: int,
                  ) -> tuple[Array, Array, Array]:
    """Return filtered positions, velocities and accelerations, each of shape (N, n).

    Parameters
    ----------
    q : ndarray, shape (N, n)
        Positions, rad or m.
    rate : float
        Samples a second, Hz.
    cutoff : float
        Cutoff frequency, Hz; above 0.45 of the rate nothing is filtered.
    order : int
        Order of the Butterworth filter, which is applied forwards and backwards.
    """
    if cutoff < UNFILTERED * rate:
        sections = scipy.signal.butter(order, cutoff, fs=rate, output='sos')
        pad = min(len(q) - 2, int(3 * rate / cutoff) + 3 * (2 * order + 1))
        q = scipy.signal.sosfiltfilt(sections, q, axis=0, padlen=pad)
    qd = np.gradient(q, 1 / rate, axis=0)
    return q, qd, np.gradient(qd, 1 / rate, axis=0)


def _filtered(piece: Piece, filtering: Filtering, needs_smooth: bool) -> Segment:
    columns, rate, cutoff = piece.columns, piece.rate, filtering.cutoff
    size, lasts = len(piece.t), float(piece.t[-1] - piece.t[0])
    late = round(filtering.torque_delay * rate)
    edge = min(int(size * LARGEST_EDGE), int(np.ceil(EDGE * rate / cutoff)))
    first = max(edge, -late)
    inside = slice(first, max(first, size - max(edge, late)))
    later = slice(inside.start + late, inside.stop + late)
    motion = differentiate(columns['q'], rate, cutoff, filtering.order)
    low = max(SMOOTH_PER_BAND * filtering.band, LEAST_PERIODS / 2 / lasts)
    smooth = motion if not needs_smooth else differentiate(
        columns.get('reference', columns['q']), rate, min(low, cutoff), filtering.order)
    q, qd, qdd = (x[inside] for x in motion)
    cut = {name: values[later if name in MEASURED_TORQUES else inside]
           for name, values in columns.items()}
    return Segment(piece.t[inside], q, qd, qdd, cut['tau'], cut.get('tau_motor'),
                   cut.get('extra'), (smooth[0][inside], smooth[1][inside], smooth[2][inside]),
                   piece.measured[inside] & piece.measured[later], piece.loaded, rate,
                   piece.source, cutoff, cut.get('temperature'))


def _averaged(piece: Piece, filtering: Filtering) -> Segment:
    mean = piece.average
    assert mean is not None
    late = round(filtering.torque_delay * mean.rate)
    motor = mean.others.get('tau_motor')
    return Segment(mean.t, mean.q, mean.qd, mean.qdd, np.roll(mean.tau, -late, axis=0),
                   None if motor is None else np.roll(motor, -late, axis=0),
                   mean.others.get('extra'), mean.reference or (mean.q, mean.qd, mean.qdd),
                   np.ones(len(mean.t), bool), piece.loaded, mean.rate, piece.source, mean.band,
                   mean.others.get('temperature'))
