"""Small numerical helpers that every layer uses."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.errors import ShapeError
from robodyn_ros.packages import package

P = ParamSpec('P')
R = TypeVar('R')


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of many small matrices, for which BLAS then uses one thread.

    Several threads would spend more time waiting for each other than computing.
    """
    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        with package('threadpoolctl').threadpool_limits(1, user_api='blas'):
            return function(*arguments, **keywords)

    return call


@overload
def safe_divide(numerator: float, denominator: float, *, at_zero: float = 0.0) -> float: ...
@overload
def safe_divide(numerator: ArrayLike, denominator: ArrayLike, *,
                at_zero: float = 0.0) -> NDArray[np.float64]: ...


def safe_divide(numerator: ArrayLike, denominator: ArrayLike, *, at_zero: float = 0.0) -> Any:
    """Return ``numerator / denominator`` without warnings, even where the denominator is 0.

    Parameters
    ----------
    numerator, denominator : array-like
        Arrays whose shapes can be broadcast together.
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
    """Return values as float64; values that are not real numbers are rejected, not converted.

    Parameters
    ----------
    name : str
        The name of the values in error messages.
    values : array-like
        Numbers; NaN and infinity are accepted, the caller may check for them.
    wanted : str
        The description of valid values in error messages.

    Raises
    ------
    ShapeError
        The values are complex numbers, truth values, text, dates or other objects, or some of
        them are masked.
    """
    if np.ma.is_masked(values):  # the numbers below a mask are arbitrary
        raise ShapeError(name, 'masked elements', f'{wanted}, for example values.filled(np.nan)')
    try:
        array = np.asarray(values)
        if array.dtype.kind in 'fiu' or (array.dtype.kind == 'O' and array.size and all(
                isinstance(value, numbers.Real) for value in array.flat)):
            return array.astype(np.float64, copy=False)
        given = str(array.dtype) if array.dtype.kind != 'O' else type(values).__name__
    except (TypeError, ValueError, OverflowError):  # lists of unequal lengths, for example
        given = type(values).__name__
    raise ShapeError(name, f'values that are not real numbers ({given})', wanted)


def real_array(name: str, values: ArrayLike, shape: tuple[int | None, ...],
               ) -> NDArray[np.float64]:
    """Return values as a float64 array of a given shape; see `real_numbers`.

    Parameters
    ----------
    name : str
        The name of the values in error messages.
    values : array-like
        Numbers; NaN and infinity are accepted, the caller may check for them.
    shape : tuple
        The required shape; None stands for any length.

    Returns
    -------
    ndarray
        A new array.

    Raises
    ------
    ShapeError
        The shape is wrong, or a value is not a real number.
    """
    wanted = f'real numbers of shape {shape}'.replace('None', 'any')
    array = real_numbers(name, values, wanted)
    if array.ndim != len(shape) or any(size not in (None, given) for size, given in zip(
            shape, array.shape, strict=True)):
        raise ShapeError(name, f'shape {array.shape}', wanted)
    return array.copy()


def unknown(*arrays: ArrayLike) -> NDArray[np.float64]:
    """Return 0 where all numbers of a row are finite, and nan elsewhere.

    Parameters
    ----------
    *arrays : array-like, shape (k,) or (N, k)
        Rows of any length; a single row counts for all.

    Returns
    -------
    ndarray, shape (1,) or (N, 1)
        What is added to a result so that it is nan wherever an input is not finite.
    """
    total = np.zeros(1)
    for array in arrays:
        total = total + np.where(np.isfinite(array).all(axis=-1, keepdims=True), 0.0, np.nan)
    return total


def pseudo_inverse(matrix: NDArray[np.float64], smallest: float) -> NDArray[np.float64]:
    """Return the pseudo-inverse of matrices, shape (..., k, m); nan where one is not finite.

    Parameters
    ----------
    matrix : ndarray, shape (..., m, k)
        The matrices.
    smallest : float
        Singular values below this fraction of the largest count as zero.
    """
    known = np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)
    inverse = np.linalg.pinv(np.where(known, matrix, 0.0), rcond=smallest)
    return np.asarray(np.where(known, inverse, np.nan))
