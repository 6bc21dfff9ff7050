"""Memory of large results, which is used again once nobody holds the result.

Beyond 32 MiB, the C library returns memory to the system as soon as it is free, and the system
clears each page before it hands it out again. For results of some ten numbers for each operation,
such as regressors and mass matrices, this takes longer than the computation.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from robodyn_ros.spatial import Array

SMALLEST = 1 << 25  # bytes; the C library itself keeps the memory of smaller arrays
LARGEST = 1 << 26  # bytes; memory of larger arrays is not kept

_kept: list[Array] = []  # one array at most; taken out while it is examined


def empty(shape: tuple[int, ...]) -> Array:
    """Return an array with unspecified values, as `numpy.empty` does."""
    size = math.prod(shape)
    if not SMALLEST < 8 * size <= LARGEST or _ALONE is None:
        return np.empty(shape)
    try:
        block = _kept.pop()  # atomic: another thread finds none in the meantime
    except IndexError:
        block = np.empty(size)
    if _references(block) != _ALONE:  # a result, or a part of one, is still in use
        _kept[:] = [block]
        return np.empty(shape)
    if block.size < size:
        block = np.empty(size)
    result = block[:size].reshape(shape)
    _kept[:] = [block]
    return result


def _references(block: Array) -> int:
    """Count the references to an array; every view of it holds one."""
    return sys.getrefcount(block)


def _references_alone() -> int | None:
    """Return the count for an array without views, None if views are not counted here."""
    block = [np.empty(1)].pop()
    alone = _references(block)
    view = block[:1].reshape(1, 1)
    return alone if _references(block) == alone + view.size else None


_ALONE = _references_alone()
