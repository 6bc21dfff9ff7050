"""Small numerical helpers that every layer uses."""

from __future__ import annotations

import numbers
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.errors import ShapeError


@overload
def safe_divide(numerator: float, denominator: float, *, at_zero: float = 0.0) -> float: ...
@overload
def safe_divide(numerator: ArrayLike, denominator: ArrayLike, *,
                at_zero: float = 0.0) -> NDArray[np.float64]: ...


def safe_divide(numerator: ArrayLike, denominator: ArrayLike, *, at_zero: float = 0.0) -> Any:
    """Return ``numerator / denominator`` without warnings, also where the denominator is 0.

    Parameters
    ----------
    numerator, denominator : array-like
        Of shapes that broadcast.
    at_zero : float
        The result where the denominator is 0; usually 0 for scaled columns and inf for
        condition numbers.

    Returns
    -------
    quotient : float or ndarray
        A float where both are scalars. An overflow gives inf.
    """
    above, below = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    result = np.full(np.broadcast_shapes(above.shape, below.shape), float(at_zero))
    with np.errstate(over='ignore', under='ignore', invalid='ignore'):
        np.divide(above, below, out=result, where=below != 0)
    return result if result.ndim else float(result)


def real_numbers(name: str, values: ArrayLike, wanted: str = 'real numbers',
                 ) -> NDArray[np.float64]:
    """Return values as float64; what is no real number is refused, not converted.

    Parameters
    ----------
    name : str
        What errors call it.
    values : array-like
        Numbers; NaN and infinity are left for the caller to judge.
    wanted : str
        What errors say is valid.

    Raises
    ------
    ShapeError
        Complex numbers, truth values, text, dates or other objects.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind in 'fiu' or (array.dtype.kind == 'O' and array.size and all(
                isinstance(value, numbers.Real) for value in array.flat)):
            return array.astype(np.float64, copy=False)
        given = str(array.dtype) if array.dtype.kind != 'O' else type(values).__name__
    except (TypeError, ValueError):  # lists of unequal lengths, for example
        given = type(values).__name__
    raise ShapeError(name, f'values that are not real numbers ({given})', wanted)


def real_array(name: str, values: ArrayLike, shape: tuple[int | None, ...],
               ) -> NDArray[np.float64]:
    """Return values as float64 of a shape; what is no real number is refused, not converted.

    Parameters
    ----------
    name : str
        What errors call it.
    values : array-like
        Numbers; NaN and infinity are left for the caller to judge.
    shape : tuple
        The shape; None stands for any length.

    Returns
    -------
    ndarray
        A new array.

    Raises
    ------
    ShapeError
        Another shape, or values that are not real numbers.
    """
    wanted = f'real numbers of shape {shape}'.replace('None', 'any')
    array = real_numbers(name, values, wanted)
    if array.ndim != len(shape) or any(size not in (None, given) for size, given in zip(
            shape, array.shape, strict=True)):
        raise ShapeError(name, f'shape {array.shape}', wanted)
    return array.copy()
