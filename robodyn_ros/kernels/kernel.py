"""`Kernel`: a compiled function of single states and batches."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.errors import ShapeError
from robodyn_ros.kernels import result_memory
from robodyn_ros.kernels.compiler import COMPILER, native_pointers
from robodyn_ros.kernels.expression import trace
from robodyn_ros.kernels.fast_call import fast_call
from robodyn_ros.kernels.instructions import LANES
from robodyn_ros.kernels.llvm_ir import write_ir
from robodyn_ros.lazy import cached_property
from robodyn_ros.numerics import real_numbers
from robodyn_ros.spatial import Array

MIN_THREADED = 1 << 19  # numbers in inputs and results; for fewer, waking a thread costs too much
PARTS = 4  # parts of a batch for each thread


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, thread_name_prefix='robodyn')


if hasattr(os, 'register_at_fork'):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


@dataclass(frozen=True)
class KernelSpec:
    """What a kernel computes.

    Attributes
    ----------
    key : str
        Identifies everything that the traced function depends on.
    arguments : tuple of str
        Names of the inputs for error messages.
    sizes : tuple of int
        Length of each input.
    shape : tuple of int
        Shape of the result for one sample.
    function : callable
        Takes one array for each input, of floats or symbols.
    constants : tuple of ndarray
        Values of the last inputs, which are not given in calls.
    guards : callable, optional
        Takes the same inputs and returns a list of numbers. Where one of them is not finite, all
        results are nan, as where an input is not finite.
    """

    key: str
    arguments: tuple[str, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    function: Callable[..., Any]
    constants: tuple[Array, ...] = ()
    guards: Callable[..., list[Any]] | None = None


class Kernel:
    """Calls a traced function, which is compiled when it is first needed.

    Every input is one sample, shape (size,), or a batch, shape (N, size). A single sample beside
    batches is repeated. The result has the shape of the specification, preceded by N for a batch.

    Parameters
    ----------
    spec : KernelSpec
        The function to compute.
    threads : int
        Maximum number of threads for a batch.
    """

    def __init__(self, spec: KernelSpec, threads: int = 1):
        self.spec = spec
        self.threads = threads

    def _write(self, name: str, batch: bool) -> str:
        spec = self.spec

        def function(*inputs: Any) -> list[Any]:
            results = np.ravel(np.asarray(spec.function(*inputs), dtype=object))
            return [*results, *(spec.guards(*inputs) if spec.guards else ())]

        graph, nodes = trace(function, spec.sizes)
        count = math.prod(spec.shape)
        return write_ir(graph, nodes[:count], spec.sizes, batch=batch, name=name,
                        pointers=native_pointers(), guards=nodes[count:])

    @cached_property
    def single(self) -> Callable[..., Any]:
        """The fast function of one sample; all other arguments are passed on to `general`."""
        if self.spec.constants:
            return self.general
        return fast_call(self._single_address, self.spec.sizes, self.spec.shape or (1,),
                         self.general)

    def warm_up(self, *forms: str) -> None:
        """Compile forms, ``single`` or ``batch``, now instead of at the first call."""
        for form in forms:
            if form == 'single':
                self._single_function, self.single  # noqa: B018
            else:
                self._batch_function  # noqa: B018

    def compile(self, form: str) -> int:
        """Compile one form, ``single`` or ``batch``; return the address of its function."""
        return COMPILER.address(f'{self.spec.key}|{form}',
                                lambda name: self._write(name, batch=form == 'batch'))

    @cached_property
    def _single_address(self) -> int:
        return self.compile('single')

    @cached_property
    def _single_function(self) -> Any:
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._single_address)

    @cached_property
    def _batch_function(self) -> Any:
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            self.compile('batch'))

    @cached_property
    def nonzero(self) -> NDArray[np.bool_]:
        """Which elements of the result can be nonzero, in the shape of the result."""
        graph, outputs = trace(self.spec.function, self.spec.sizes)
        return np.array([graph.nodes[node][:2] != ('const', 0.0) for node in outputs]).reshape(
            self.spec.shape)

    def operations(self) -> int:
        """Count the arithmetic operations of one sample (a sine and its cosine are two)."""
        graph, outputs = trace(self.spec.function, self.spec.sizes)
        return sum(graph.nodes[node][0] not in ('const', 'input', 'neg')
                   for node in graph.reachable(outputs))

    def general(self, *arguments: ArrayLike, out: Array | None = None) -> Array:
        """Compute one sample or a batch from arguments that NumPy can convert to float64.

        Parameters
        ----------
        *arguments : array-like, shape (size,) or (N, size)
            The inputs.
        out : ndarray, shape (N, *shape), optional
            C-contiguous float64 array that receives the result of a batch.

        Raises
        ------
        ShapeError
            An argument has the wrong shape; the message names it and the valid shapes.
        """
        spec = self.spec
        free = len(spec.sizes) - len(spec.constants)
        if len(arguments) != free:
            raise ShapeError('call', f'{len(arguments)} arrays', ', '.join(spec.arguments[:free]))
        arguments += spec.constants
        arrays = [check_array(argument, size, name) for argument, size, name in zip(
            arguments, spec.sizes, spec.arguments, strict=True)]
        lengths = {len(array) for array in arrays if array.ndim == 2}
        if not lengths:
            result = np.empty(spec.shape)
            self._single_function(self._pointers(arrays), _address(result))
            return result
        if len(lengths) > 1:
            given = ', '.join(f'{name} {array.shape}' for name, array in zip(
                spec.arguments, arrays, strict=True))
            raise ShapeError('batch', f'arrays of different length: {given}',
                             'the same N for all')
        samples = lengths.pop()
        arrays = [array if array.ndim == 2 else
                  np.ascontiguousarray(np.broadcast_to(array, (samples, array.shape[0])))
                  for array in arrays]
        if out is None:
            out = result_memory.empty((samples, *spec.shape))
        elif (out.shape != (samples, *spec.shape) or out.dtype != np.float64
              or not out.flags.c_contiguous or not out.flags.writeable):
            raise ShapeError('out', f'shape {out.shape}, {out.dtype}',
                             f'a C-contiguous float64 array of shape {(samples, *spec.shape)}')
        self._run(arrays, out, samples)
        return out

    def _run(self, arrays: Sequence[Array], out: Array, samples: int) -> None:
        whole = samples - samples % LANES
        numbers = whole * (sum(self.spec.sizes) + math.prod(self.spec.shape))
        if self.threads > 1 and numbers >= MIN_THREADED:
            step = max(1, whole // (PARTS * self.threads * LANES)) * LANES
            starts = iter(range(0, whole, step))

            def work() -> None:
                for start in starts:  # whoever is free takes the next part
                    self._run_part(arrays, out, start, min(start + step, whole))

            others = [_pool(self.threads).submit(work) for _ in range(self.threads - 1)]
            work()
            for other in others:
                other.result()
        elif whole:
            self._run_part(arrays, out, 0, whole)
        for i in range(whole, samples):
            self._single_function(self._pointers(arrays, i), _address(out[i]))

    def _run_part(self, arrays: Sequence[Array], out: Array, start: int, stop: int) -> None:
        row = 8 * math.prod(self.spec.shape)
        self._batch_function(self._pointers(arrays, start), _address(out) + start * row,
                             stop - start)

    @cached_property
    def _pointer_array(self) -> Any:
        return ctypes.c_void_p * len(self.spec.sizes)

    def _pointers(self, arrays: Sequence[Array], row: int = 0) -> Any:
        """Return the addresses of one row of each input."""
        return self._pointer_array(*[_address(array) + 8 * row * size for array, size in zip(
            arrays, self.spec.sizes, strict=True)])


def _address(array: Array) -> int:
    return array.__array_interface__['data'][0]


def check_array(argument: ArrayLike, size: int, name: str) -> Array:
    """Return a C-contiguous float64 array of shape (size,) or (N, size).

    Raises
    ------
    ShapeError
        The shape is wrong, or a value is not a real number.
    """
    if type(argument) is np.ndarray and argument.dtype == np.float64 and (
            argument.flags.c_contiguous and argument.ndim in (1, 2)
            and argument.shape[-1] == size):
        return argument
    valid = f'float array of shape ({size},) or (N, {size})'
    array = np.ascontiguousarray(real_numbers(name, argument, valid))
    if array.ndim not in (1, 2) or array.shape[-1] != size or np.ndim(argument) == 0:
        raise ShapeError(name, f'shape {np.shape(argument)}', valid)
    return array
