"""Extrapolates from a short record to the largest value in a long time."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.spatial import Array

FEWEST = 5  # blocks
UPPER = 0.25  # fraction of the blocks whose maxima form the tail
CONFIDENCE = 0.95  # probability that the true tail is not longer than the one that is used


def block_maxima(values: Array, block: int) -> Array:
    """Return the maximum of each block of ``block`` values; an incomplete last one is left out."""
    count = len(values) // block
    return np.asarray(values[:count * block].reshape(count, block).max(axis=1))


def rare_level(maxima: Array, probability: float) -> float:
    """Return a level that the maximum of another block exceeds with at most a probability.

    The largest maxima are taken to have an exponential tail above the others (peaks over a
    threshold, Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, with a shape
    of 0). Tails of noise and of bounded errors are lighter, so that the level is rather too high.
    The mean of the tail is replaced by its upper confidence limit, which is far above the estimate
    if there are few blocks.

    Parameters
    ----------
    maxima : ndarray, shape (m,)
        Maxima of blocks that are long enough to be nearly independent of one another.
    probability : float
        Probability with which the maximum of one block exceeds the level.

    Raises
    ------
    ValueRangeError
        There are too few blocks.
    """
    if len(maxima) < FEWEST:
        raise ValueRangeError('blocks', len(maxima), f'at least {FEWEST}')
    above = max(round(UPPER * len(maxima)), 3)
    ordered = np.sort(maxima)
    start = ordered[-above - 1]
    mean = float((ordered[-above:] - start).mean())
    longest = above * mean / gammaincinv(above, 1 - CONFIDENCE)  # chi-squared, 2 above degrees
    return float(start + longest * np.log(above / len(maxima) / probability))
