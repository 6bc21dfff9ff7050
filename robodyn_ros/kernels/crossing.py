"""The crossing from Python: one machine-code function that checks arrays and calls a kernel.

``ctypes`` and NumPy's generalised ufuncs each cost about a microsecond a call, several times what
a kernel needs. This is the same check, call and allocation on CPython's and NumPy's stable binary
interfaces (vectorcall; ``PyArrayObject``; ``PyArray_New``). Whatever is not exactly one float64,
C-contiguous, aligned vector of the right length for each input goes to a Python function instead.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from robodyn_ros.kernels.compiler import COMPILER

MAX_INPUTS = 8
# numpy/core/include/numpy/ndarraytypes.h, numpy_api.py: NPY_DOUBLE, index of PyArray_New,
# NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_NPY_DOUBLE, _PYARRAY_NEW, _PLAIN = 12, 93, 0x0101
_BYTES_HEADER = bytes.__basicsize__ - 1  # where a bytes object keeps its bytes
_TUPLE_HEADER = tuple.__basicsize__  # where a tuple keeps its items

# `self` is a tuple: these 64-bit fields as bytes, the fallback, the PyMethodDef. Fields: kernel,
# type of arrays, float64's descriptor, PyArray_New, PyObject_VectorcallDict (a function in every
# CPython since 3.9), number of inputs, number of output dimensions, the two output dimensions,
# then the length of each input.
_IR = f"""
define ptr @NAME(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %pointers = alloca ptr, i64 {MAX_INPUTS}
  %items = getelementptr i8, ptr %self, i64 {_TUPLE_HEADER}
  %bytes = load ptr, ptr %items
  %fallback.slot = getelementptr ptr, ptr %items, i64 1
  %fallback = load ptr, ptr %fallback.slot
  %fields = getelementptr i8, ptr %bytes, i64 {_BYTES_HEADER}
  %kernel = load ptr, ptr %fields
  %array.slot = getelementptr i64, ptr %fields, i64 1
  %array = load ptr, ptr %array.slot
  %float64.slot = getelementptr i64, ptr %fields, i64 2
  %float64 = load ptr, ptr %float64.slot
  %new.slot = getelementptr i64, ptr %fields, i64 3
  %new = load ptr, ptr %new.slot
  %vectorcall.slot = getelementptr i64, ptr %fields, i64 4
  %vectorcall = load ptr, ptr %vectorcall.slot
  %count.slot = getelementptr i64, ptr %fields, i64 5
  %count = load i64, ptr %count.slot
  %nd.slot = getelementptr i64, ptr %fields, i64 6
  %nd64 = load i64, ptr %nd.slot
  %nd = trunc i64 %nd64 to i32
  %dims = getelementptr i64, ptr %fields, i64 7
  %lengths = getelementptr i64, ptr %fields, i64 9
  %right.count = icmp eq i64 %nargs, %count
  br i1 %right.count, label %each, label %slow

each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %accept ]
  %argument.slot = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %argument.slot
  %type.slot = getelementptr i8, ptr %argument, i64 8
  %type = load ptr, ptr %type.slot
  %is.array = icmp eq ptr %type, %array
  br i1 %is.array, label %look, label %slow

look:
  %ndim.slot = getelementptr i8, ptr %argument, i64 24
  %ndim = load i32, ptr %ndim.slot
  %descr.slot = getelementptr i8, ptr %argument, i64 56
  %descr = load ptr, ptr %descr.slot
  %flags.slot = getelementptr i8, ptr %argument, i64 64
  %flags = load i32, ptr %flags.slot
  %plain.bits = and i32 %flags, {_PLAIN}
  %is.plain = icmp eq i32 %plain.bits, {_PLAIN}
  %is.vector = icmp eq i32 %ndim, 1
  %is.double = icmp eq ptr %descr, %float64
  %good.a = and i1 %is.plain, %is.vector
  %good = and i1 %good.a, %is.double
  br i1 %good, label %measure, label %slow

measure:
  %shape.slot = getelementptr i8, ptr %argument, i64 32
  %shape = load ptr, ptr %shape.slot
  %length = load i64, ptr %shape
  %wanted.slot = getelementptr i64, ptr %lengths, i64 %i
  %wanted = load i64, ptr %wanted.slot
  %fits = icmp eq i64 %length, %wanted
  br i1 %fits, label %accept, label %slow

accept:
  %data.slot = getelementptr i8, ptr %argument, i64 16
  %data = load ptr, ptr %data.slot
  %pointer.slot = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer.slot
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %each, label %run

run:
  %result = call ptr %new(ptr %array, i32 %nd, ptr %dims, i32 {_NPY_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %return, label %compute

compute:
  %out.slot = getelementptr i8, ptr %result, i64 16
  %out = load ptr, ptr %out.slot
  call void %kernel(ptr %pointers, ptr %out)
  br label %return

return:
  ret ptr %result

slow:
  %other = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr null)
  ret ptr %other
}}
"""  # noqa: E501


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (('name', ctypes.c_char_p), ('method', ctypes.c_void_p),
                ('flags', ctypes.c_int), ('doc', ctypes.c_char_p))


_METH_FASTCALL = 0x0080


def supported() -> bool:
    """Whether this interpreter has the object layout that the crossing assumes."""
    return (sys.implementation.name == 'cpython' and struct.calcsize('P') == 8
            and object.__basicsize__ == 16 and not sysconfig.get_config_var('Py_GIL_DISABLED')
            and _BYTES_HEADER == 32)


@lru_cache(maxsize=1)
def _numpy_new() -> int:
    try:
        from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as umath  # type: ignore[no-redef]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object,
                                                                  ctypes.c_char_p)
    table = get_pointer(umath._ARRAY_API, None)
    return int(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_PYARRAY_NEW] or 0)


def cross(kernel: int, sizes: Sequence[int], shape: Sequence[int],
          fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a ``single`` kernel on vectors.

    Parameters
    ----------
    kernel : int
        Address of ``void kernel(double **inputs, double *output)``.
    sizes : sequence of int
        Length of each input.
    shape : sequence of int
        Shape of the result: one or two dimensions.
    fallback : callable
        Called with the same arguments where they are not plain vectors of these lengths.
    """
    if not supported() or not 1 <= len(sizes) <= MAX_INPUTS or not 1 <= len(shape) <= 2:
        return fallback
    vectorcall = ctypes.cast(ctypes.pythonapi.PyObject_VectorcallDict, ctypes.c_void_p).value or 0
    dimensions = (*shape, 0)[:2]
    fields = struct.pack(
        f'<{9 + len(sizes)}q', kernel, id(np.ndarray), id(np.dtype(np.float64)),
        _numpy_new(), vectorcall, len(sizes), len(shape), *dimensions, *sizes)
    method = _MethodDef(b'kernel', COMPILER.address(_IR, lambda name: _IR.replace('NAME', name)),
                        _METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object,
                                                   ctypes.c_void_p)
    function = new(ctypes.addressof(method), (fields, fallback, method), None)
    return function  # type: ignore[no-any-return]
