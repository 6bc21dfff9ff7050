"""The memory layout of objects that the fast call reads, checked on live objects.

The layouts are those of CPython (``PyObject``, ``PyTupleObject``, ``PyBytesObject``) and of the
binary interface of NumPy (``PyArrayObject_fields`` and the table of its C functions). A future
version or another implementation of Python may differ.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from functools import lru_cache

import numpy as np

# offsets of an object's type, and of an array's data, number of dimensions, shape, dtype and flags
TYPE, DATA, NDIM, SHAPE, DESCRIPTOR, FLAGS = 8, 16, 24, 32, 56, 64
ARRAY_SIZE = FLAGS + 4  # bytes of an array object that are read
TUPLE_ITEMS = tuple.__basicsize__  # offset of a tuple's items
BYTES_CONTENT = bytes.__basicsize__ - 1  # offset of the content of a bytes object
# NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED, and NPY_DOUBLE of ndarraytypes.h
PLAIN, DOUBLE = 0x0101, 12
PYARRAY_NEW = 93  # index of PyArray_New in NumPy's table of functions


def _read(kind: str, address: int) -> int:
    size = struct.calcsize(kind)
    return int(struct.unpack(kind, ctypes.string_at(address, size))[0])


@lru_cache(maxsize=1)
def problem() -> str:
    """Return what differs from the assumed layout, '' if nothing does."""
    if sys.implementation.name != 'cpython':
        return f'the interpreter is {sys.implementation.name}, not CPython'
    if struct.calcsize('P') != 8 or sys.byteorder != 'little':
        return 'pointers do not have 64 bits in little-endian order'
    if sysconfig.get_config_var('Py_GIL_DISABLED'):
        return 'the interpreter has no global lock (free threading)'
    return _problem_of_objects() or _problem_of_arrays() or _problem_of_new()


def _problem_of_objects() -> str:
    probe = (b'robodyn', object(), None)
    if object.__basicsize__ != 16 or _read('<q', id(probe) + TYPE) != id(tuple):
        return 'objects have a different header'
    if tuple.__itemsize__ != 8 or [_read('<q', id(probe) + TUPLE_ITEMS + 8 * k)
                                   for k in range(3)] != [id(item) for item in probe]:
        return 'tuples store their items at another offset'
    if bytes.__basicsize__ < 17 or ctypes.string_at(id(probe[0]) + BYTES_CONTENT, 8) != \
            b'robodyn\0':
        return 'bytes objects store their content at another offset'
    return ''


def _problem_of_arrays() -> str:
    if np.ndarray.__basicsize__ < ARRAY_SIZE:
        return 'array objects are smaller'
    vector, matrix = np.arange(5.0), np.arange(24.0).reshape(4, 6)[:, ::2]
    for array in (vector, matrix, np.arange(3, dtype=np.int32)):
        address, shape = id(array), array.__array_interface__['shape']
        found = [_read('<q', address + TYPE), _read('<q', address + DATA),
                 _read('<i', address + NDIM), _read('<q', address + DESCRIPTOR)]
        expected = [id(np.ndarray), array.__array_interface__['data'][0], array.ndim,
                    id(array.dtype)]
        if found != expected:
            return 'arrays store type, data, dimensions or dtype at another offset'
        place = _read('<q', address + SHAPE)
        strides = (place + 8 * array.ndim).to_bytes(8, 'little')
        if ctypes.string_at(address + SHAPE + 8, 8) != strides or [
                _read('<q', place + 8 * k) for k in range(array.ndim)] != list(shape):
            return 'arrays store their shape at another offset'
        plain = _read('<i', address + FLAGS) & PLAIN == PLAIN
        if plain != (array.flags.c_contiguous and array.flags.aligned):
            return 'arrays store their flags at another offset'
    if vector.dtype is not np.dtype(np.float64) or vector.dtype.num != DOUBLE:
        return 'float64 has more than one descriptor'
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
        return "PyArray_New is at another index of NumPy's table"
    return ''


@lru_cache(maxsize=1)
def numpy_new() -> int:
    """Return the address of NumPy's function ``PyArray_New``."""
    try:
        from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as umath  # type: ignore[no-redef]
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ('PyCapsule_GetPointer', ctypes.pythonapi))
    table = get_pointer(umath._ARRAY_API, None)
    return int(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[PYARRAY_NEW] or 0)
