"""Parallel decimation of regressor and torque by one low-pass filter (Kolyubin 5.18-5.19)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from robodyn_ros.spatial import Array

OUTPUT_RATE = 3.2  # output rate over the cutoff frequency; the filter passes up to 1.5 cutoffs
REACH = 7  # half the length of the filter, in decimated samples
SHORTEST_REACH = 5  # the same for short pieces; the filter then passes up to 1.7 cutoffs
LEAST_OUTPUTS = 4  # smallest number of decimated samples of a piece
OVERSAMPLING = 3  # samples of smooth columns per decimated sample: ten times the cutoff
PASSED = 1.5  # highest frequency that the filter passes, over the cutoff frequency
# Its ripple is below 4e-4, and its side lobes fall with the cube of the frequency, so that the
# filter at a stride and the filter at the full rate differ by 1e-6. Hann's window has a ripple of
# 6e-3, and with Hamming's, the filters differ by 2e-3.
WINDOW = 'blackman'


@dataclass(frozen=True)
class Decimation:
    """A zero-phase FIR filter of which only every ``step``-th output is computed.

    Attributes
    ----------
    step : int
        Number of samples between outputs; 1 means no filter.
    stride : int
        Number of samples between those at which columns without jumps must be evaluated.
    rate : float
        Sample rate, Hz.
    cutoff : float
        Cutoff frequency, Hz.
    reach : int
        Half the length of the filter, in decimated samples.
    """

    step: int
    stride: int
    rate: float
    cutoff: float
    reach: int = REACH

    @classmethod
    def at(cls, rate: float, cutoff: float, highest: float = 0.0, size: int | None = None,
           ) -> Decimation:
        """Return the decimation for a sample rate.

        Parameters
        ----------
        rate : float
            Sample rate, Hz.
        cutoff : float
            Cutoff frequency, Hz; 0: none.
        highest : float
            Highest frequency of the columns without jumps, Hz. The stride is so short that no
            frequency up to this one is aliased into the pass band of the filter.
        size : int, optional
            Number of samples of the piece. The filter of a short piece is shorter.
        """
        step = int(rate / OUTPUT_RATE / cutoff) if cutoff else 1
        if step <= 1:
            return cls(1, 1, rate, 0.0)
        folded = math.ceil(step * (highest + PASSED * cutoff) / rate)
        stride = max(1, step // max(OVERSAMPLING, folded))
        step = step // stride * stride
        reach = REACH if size is None else (size // step - LEAST_OUTPUTS) // 2
        return cls(step, stride, rate, cutoff, max(SHORTEST_REACH, min(REACH, reach)))

    @property
    def half(self) -> int:
        """Number of samples on each side of an output that the filter uses."""
        return self.reach * self.step if self.step > 1 else 0

    def count(self, size: int) -> int:
        """Return the number of outputs for a number of samples."""
        return max(0, -(-(size - 2 * self.half) // self.step))

    def centres(self, size: int) -> NDArray[np.int_]:
        """Return the indices of the samples at the times of the outputs."""
        return self.half + self.step * np.arange(self.count(size))

    def __call__(self, values: Array, stride: int = 1) -> Array:
        """Return the filtered and decimated values.

        Parameters
        ----------
        values : ndarray, shape (N, ...)
            Every sample, or every ``stride``-th.
        stride : int
            Samples between consecutive values.
        """
        if self.step == 1:
            return values
        taps = _taps(self.half // stride, self.cutoff, self.rate / stride)
        flat = values.reshape(len(values), -1)
        places = np.flatnonzero(flat.any(axis=0))  # half of the columns of an arm are zero
        filtered = scipy.signal.upfirdn(taps, flat[:, places], down=self.step // stride, axis=0)
        first, count = 2 * self.reach, self.count((len(values) - 1) * stride + 1)
        found = np.zeros((count, flat.shape[1]))
        found[:, places] = filtered[first:first + count]
        return found.reshape(-1, *values.shape[1:])


@functools.cache
def _taps(half: int, cutoff: float, rate: float) -> Array:
    """Return the coefficients of the filter, shape (2 half + 1,)."""
    return np.asarray(scipy.signal.firwin(2 * half + 1, cutoff, window=WINDOW, fs=rate))


def block_means(values: Array, length: int) -> Array:
    """Return means over blocks of samples, shape (N / length, ...)."""
    while length % 2 == 0:  # adding halves is many times faster than summing short rows
        values = 0.5 * (values[::2] + values[1::2])
        length //= 2
    return values.reshape(len(values) // length, length, *values.shape[1:]).mean(axis=1)
