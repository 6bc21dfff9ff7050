"""Where CPython's and NumPy's objects keep what the fast call reads, checked on live objects.

These layouts are part of the stable binary interfaces of CPython (``PyObject``, ``PyTupleObject``,
``PyBytesObject``) and NumPy (``PyArrayObject_fields`` and the table of its C functions), but
nothing keeps a future version, or another implementation of Python, from changing them.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from functools import lru_cache

import numpy as np

# of an object: its type; of an array: data, number of dimensions, shape, dtype, flags
TYPE, DATA, NDIM, SHAPE, DESCRIPTOR, FLAGS = 8, 16, 24, 32, 56, 64
ARRAY_SIZE = FLAGS + 4  # bytes of an array object that are read
TUPLE_ITEMS = tuple.__basicsize__  # where a tuple keeps its items
BYTES_CONTENT = bytes.__basicsize__ - 1  # where a bytes object keeps its bytes
# NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED, and NPY_DOUBLE of ndarraytypes.h
PLAIN, DOUBLE = 0x0101, 12
PYARRAY_NEW = 93  # place of PyArray_New in NumPy's table of functions


def _read(kind: str, address: int) -> int:
    size = struct.calcsize(kind)
    return int(struct.unpack(kind, ctypes.string_at(address, size))[0])


@lru_cache(maxsize=1)
def problem() -> str:
    """Return what is not laid out as assumed here, empty where all is."""
    if sys.implementation.name != 'cpython':
        return f'the interpreter is {sys.implementation.name}, not CPython'
    if struct.calcsize('P') != 8 or sys.byteorder != 'little':
        return 'pointers are not of 64 bits, lowest byte first'
    if sysconfig.get_config_var('Py_GIL_DISABLED'):
        return 'the interpreter runs without its global lock'
    return _problem_of_objects() or _problem_of_arrays() or _problem_of_new()


def _problem_of_objects() -> str:
    probe = (b'robodyn', object(), None)
    if object.__basicsize__ != 16 or _read('<q', id(probe) + TYPE) != id(tuple):
        return 'objects have another header'
    if tuple.__itemsize__ != 8 or [_read('<q', id(probe) + TUPLE_ITEMS + 8 * k)
                                   for k in range(3)] != [id(item) for item in probe]:
        return 'tuples keep their items elsewhere'
    if bytes.__basicsize__ < 17 or ctypes.string_at(id(probe[0]) + BYTES_CONTENT, 8) != \
            b'robodyn\0':
        return 'bytes keep their content elsewhere'
    return ''


def _problem_of_arrays() -> str:
    if np.ndarray.__basicsize__ < ARRAY_SIZE:
        return 'arrays are smaller objects'
    vector, matrix = np.arange(5.0), np.arange(24.0).reshape(4, 6)[:, ::2]
    for array in (vector, matrix, np.arange(3, dtype=np.int32)):
        address, shape = id(array), array.__array_interface__['shape']
        found = [_read('<q', address + TYPE), _read('<q', address + DATA),
                 _read('<i', address + NDIM), _read('<q', address + DESCRIPTOR)]
        expected = [id(np.ndarray), array.__array_interface__['data'][0], array.ndim,
                    id(array.dtype)]
        if found != expected:
            return 'arrays keep type, data, dimensions or dtype elsewhere'
        place = _read('<q', address + SHAPE)
        strides = (place + 8 * array.ndim).to_bytes(8, 'little')
        if ctypes.string_at(address + SHAPE + 8, 8) != strides or [
                _read('<q', place + 8 * k) for k in range(array.ndim)] != list(shape):
            return 'arrays keep their shape elsewhere'
        plain = _read('<i', address + FLAGS) & PLAIN == PLAIN
        if plain != (array.flags.c_contiguous and array.flags.aligned):
            return 'arrays keep their flags elsewhere'
    if vector.dtype is not np.dtype(np.float64) or vector.dtype.num != DOUBLE:
        return 'float64 has no single descriptor'
    return ''


def _problem_of_new() -> str:
    try:
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(
                numpy_new())
    except (ImportError, AttributeError, ValueError) as error:
        return f"NumPy's table of functions is missing: {error}"
    dimensions = (ctypes.c_int64 * 2)(2, 3)
    array = new(id(np.ndarray), 2, ctypes.addressof(dimensions), DOUBLE, None, None, 0, 0, None)
    if type(array) is not np.ndarray or array.shape != (2, 3) or array.dtype != np.float64 or \
            not array.flags.c_contiguous or not array.flags.owndata:
        return 'NumPy makes arrays with another function'
    return ''


@lru_cache(maxsize=1)
def numpy_new() -> int:
    """Return the address of NumPy's function that makes arrays."""
    try:
        from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as umath  # type: ignore[no-redef]
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ('PyCapsule_GetPointer', ctypes.pythonapi))
    table = get_pointer(umath._ARRAY_API, None)
    return int(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[PYARRAY_NEW] or 0)
