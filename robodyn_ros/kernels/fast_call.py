"""The fast call: a machine-code function that Python calls, which checks arrays and runs a kernel.

A call through ``ctypes`` or a generalised ufunc of NumPy costs about a microsecond, several times
as much as the kernel itself. The fast call does the same checks, allocation and call directly on
the binary interfaces of CPython and NumPy (vectorcall, ``PyArrayObject``, ``PyArray_New``). It
handles float64 vectors that are C-contiguous, aligned and of the right length; all other arguments
are passed on to a Python function.

The assumptions about the memory layout of objects are checked on live objects before the first use
(``object_layout``). If one does not hold, or if the environment variable ``ROBODYN_FAST_CALL`` is
0, all calls go through ``ctypes``.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robodyn_ros.kernels import object_layout as layout
from robodyn_ros.kernels.compiler import COMPILER, native_pointers
from robodyn_ros.kernels.pointers import Pointers

MAX_INPUTS = 8
SWITCH = 'ROBODYN_FAST_CALL'  # environment variable; 0 switches the fast call off
_METH_FASTCALL = 0x0080  # of CPython's methodobject.h
# `self` is a tuple of a bytes object with these 64-bit fields, the fallback and the PyMethodDef.
# The fields are followed by the length of each input. PyObject_VectorcallDict is a function in
# every CPython since 3.9.
_FIELDS = ('kernel', 'array', 'float64', 'new', 'vectorcall', 'count', 'nd', 'dims')
_LENGTHS = len(_FIELDS) + 1  # dims are two
_NEW = ('i8*', 'i32', 'i8*', 'i32', 'i8*', 'i8*', 'i32', 'i32', 'i8*')  # PyArray_New's arguments


class _Writer:
    """Writes LLVM instructions on addresses, which are all pointers to bytes."""

    def __init__(self, pointers: Pointers):
        self.pointers = pointers
        self.bytes = pointers.to('i8')
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Write lines unchanged."""
        self.lines += lines

    def at(self, name: str, base: str, offset: int | str) -> None:
        """Define the address that is a number of bytes (or a value) beyond a base address."""
        self.add(f'  %{name} = getelementptr i8, {self.bytes} %{base}, i64 {offset}')

    def typed(self, address: str, kind: str) -> str:
        """Return an address as a pointer operand to a type, preceded by the pointer's type."""
        def emit(text: str) -> str:
            self.add(f'  %{address}.typed = {text}')
            return f'%{address}.typed'

        value = self.pointers.cast(f'%{address}', 'i8', kind, emit)
        return f'{self.pointers.to(kind)} {value}'

    def load(self, name: str, kind: str, base: str, offset: int | str) -> None:
        """Load a value from an offset in bytes beyond an address."""
        self.at(f'{name}.slot', base, offset)
        place = self.typed(f'{name}.slot', kind)
        self.add(f'  %{name} = load {kind}, {place}')

    def call(self, result: str, function: str, arguments: Sequence[tuple[str, str]],
             returned: str) -> None:
        """Call a function at an address."""
        kinds = [self.bytes if kind == 'i8*' else kind for kind, _ in arguments]
        signature = f'{returned} ({", ".join(kinds)})'
        target = self.typed(function, signature).rpartition(' ')[2]
        values = ', '.join(f'{kind} {value}' for kind, (_, value) in zip(kinds, arguments,
                                                                        strict=True))
        self.add(f'  {result}call {signature} {target}({values})')


def write_fast_call(pointers: Pointers) -> str:
    """Return the IR of the function ``@NAME``, a METH_FASTCALL method of CPython."""
    w = _Writer(pointers)
    p = w.bytes
    w.add(f'define {p} @NAME({p} %self, {p} %args, i64 %nargs) {{', 'entry:')
    w.add(f'  %pointers = alloca i8, i64 {8 * MAX_INPUTS}, align 8')
    w.load('content', p, 'self', layout.TUPLE_ITEMS)
    w.load('fallback', p, 'self', layout.TUPLE_ITEMS + 8)
    w.at('fields', 'content', layout.BYTES_CONTENT)
    for place, field in enumerate(_FIELDS[:-1]):
        kind = 'i64' if field in ('count', 'nd') else p
        w.load(field, kind, 'fields', 8 * place)
    w.add('  %nd32 = trunc i64 %nd to i32')
    w.at('dims', 'fields', 8 * _FIELDS.index('dims'))
    w.at('lengths', 'fields', 8 * _LENGTHS)
    w.add('  %right.count = icmp eq i64 %nargs, %count',
          '  br i1 %right.count, label %each, label %slow')

    w.add('each:', '  %i = phi i64 [ 0, %entry ], [ %i.next, %accept ]', '  %i8 = shl i64 %i, 3')
    w.load('argument', p, 'args', '%i8')
    w.load('type', p, 'argument', layout.TYPE)
    w.add(f'  %is.array = icmp eq {p} %type, %array',
          '  br i1 %is.array, label %look, label %slow')

    w.add('look:')
    w.load('ndim', 'i32', 'argument', layout.NDIM)
    w.load('descriptor', p, 'argument', layout.DESCRIPTOR)
    w.load('flags', 'i32', 'argument', layout.FLAGS)
    w.add(f'  %plain.bits = and i32 %flags, {layout.PLAIN}',
          f'  %is.plain = icmp eq i32 %plain.bits, {layout.PLAIN}',
          '  %is.vector = icmp eq i32 %ndim, 1',
          f'  %is.double = icmp eq {p} %descriptor, %float64',
          '  %plain.vector = and i1 %is.plain, %is.vector',
          '  %good = and i1 %plain.vector, %is.double',
          '  br i1 %good, label %measure, label %slow')

    w.add('measure:')
    w.load('shape', p, 'argument', layout.SHAPE)
    w.load('length', 'i64', 'shape', 0)
    w.load('wanted', 'i64', 'lengths', '%i8')
    w.add('  %fits = icmp eq i64 %length, %wanted',
          '  br i1 %fits, label %accept, label %slow')

    w.add('accept:')
    w.load('data', p, 'argument', layout.DATA)
    w.at('pointer', 'pointers', '%i8')
    slot = w.typed('pointer', p)
    w.add(f'  store {p} %data, {slot}', '  %i.next = add i64 %i, 1',
          '  %more = icmp ult i64 %i.next, %count',
          '  br i1 %more, label %each, label %run')

    w.add('run:')
    values = ('%array', '%nd32', '%dims', str(layout.DOUBLE), 'null', 'null', '0', '0', 'null')
    w.call('%result = ', 'new', list(zip(_NEW, values, strict=True)), p)
    w.add(f'  %failed = icmp eq {p} %result, null',
          '  br i1 %failed, label %return, label %compute')

    w.add('compute:')
    w.load('out', p, 'result', layout.DATA)
    w.call('', 'kernel', [('i8*', '%pointers'), ('i8*', '%out')], 'void')
    w.add('  br label %return', 'return:', f'  ret {p} %result')

    w.add('slow:')
    w.call('%other = ', 'vectorcall', [('i8*', '%fallback'), ('i8*', '%args'), ('i64', '%nargs'),
                                       ('i8*', 'null')], p)
    w.add(f'  ret {p} %other', '}', '')
    return '\n'.join(w.lines)


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (('name', ctypes.c_char_p), ('method', ctypes.c_void_p),
                ('flags', ctypes.c_int), ('doc', ctypes.c_char_p))


def supported() -> bool:
    """Return whether the fast call can be used here and is not switched off."""
    return os.environ.get(SWITCH, '1') != '0' and not layout.problem()


def fast_call(kernel: int, sizes: Sequence[int], shape: Sequence[int],
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
        Called with the same arguments if they are not plain vectors of these lengths.
    """
    if not 1 <= len(sizes) <= MAX_INPUTS or not 1 <= len(shape) <= 2 or not supported():
        return fallback
    vectorcall = ctypes.cast(ctypes.pythonapi.PyObject_VectorcallDict, ctypes.c_void_p).value or 0
    fields = struct.pack(
        f'<{_LENGTHS + len(sizes)}q', kernel, id(np.ndarray), id(np.dtype(np.float64)),
        layout.numpy_new(), vectorcall, len(sizes), len(shape), *(*shape, 0)[:2], *sizes)
    text = write_fast_call(native_pointers())
    method = _MethodDef(b'kernel', COMPILER.address(text, lambda name: text.replace('NAME', name)),
                        _METH_FASTCALL, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ('PyCFunction_NewEx', ctypes.pythonapi))
    function = new(ctypes.addressof(method), (fields, fallback, method), None)
    return function  # type: ignore[no-any-return]
