"""Symbolic scalars: running a NumPy function on them records its operations as a graph.

Equal expressions share a node, constants are folded, and products with zero vanish, so that terms
that are zero for a given robot are never computed (the customised Newton-Euler algorithm of
SYMORO).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# (operation, operands): operands are node numbers; of 'const' the value, of 'input' its indices
Node = tuple[str, Any, Any]


class Graph:
    """Nodes in order of creation: operands always come before their users."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}

    def node(self, operation: str, a: Any, b: Any = None) -> Scalar:
        """Return the scalar of a node, which is created only once."""
        key = (operation, a, b)
        number = self._numbers.get(key)
        if number is None:
            number = len(self.nodes)
            self._numbers[key] = number
            self.nodes.append(key)
        return Scalar(self, number)

    def find(self, node: Node) -> int | None:
        """Return the number of a node, None if it does not exist."""
        return self._numbers.get(node)

    def constant(self, value: float) -> Scalar:
        """Return a constant; -0 becomes +0."""
        return self.node('const', float(value) + 0.0)

    def inputs(self, argument: int, count: int) -> np.ndarray:
        """Return the symbols of one input array, shape (count,)."""
        return np.array([self.node('input', argument, i) for i in range(count)] + [None],
                        dtype=object)[:count]

    def reachable(self, roots: Sequence[int]) -> list[int]:
        """Return the nodes that the roots need, operands first."""
        needed = bytearray(len(self.nodes))
        for root in roots:
            needed[root] = 1
        for number in range(len(self.nodes) - 1, -1, -1):
            operation, a, b = self.nodes[number]
            if needed[number] and operation not in ('const', 'input'):
                needed[a] = 1
                if b is not None:
                    needed[b] = 1
        return [number for number, need in enumerate(needed) if need]


def _binary(method: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Any], Any]:
    """Convert the other operand to a scalar; leave arrays to NumPy."""
    def operator(self: Scalar, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return method(self, other if isinstance(other, Scalar) else self.graph.constant(other))
    return operator


class Scalar:
    """A symbolic real number, a node of a graph; behaves like a float in NumPy object arrays."""

    __slots__ = ('graph', 'number')

    def __init__(self, graph: Graph, number: int):
        self.graph, self.number = graph, number

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Let NumPy take a scalar as an array of objects (``float64 * Scalar``, ``np.sin``)."""
        boxed = []
        for entry in inputs:
            if isinstance(entry, Scalar):
                box = np.empty((), dtype=object)
                box[()] = entry
                entry = box
            boxed.append(entry)
        return getattr(ufunc, method)(*boxed, **options)

    @property
    def value(self) -> float | None:
        """The number of a constant, None otherwise."""
        operation, a, _ = self.graph.nodes[self.number]
        return a if operation == 'const' else None

    @property
    def negated(self) -> Scalar | None:
        """The operand x if this node is -x, None otherwise."""
        operation, a, _ = self.graph.nodes[self.number]
        return Scalar(self.graph, a) if operation == 'neg' else None

    def __neg__(self) -> Scalar:
        value, inner = self.value, self.negated
        if value is not None:
            return self.graph.constant(-value)
        if inner is not None:
            return inner
        operation, a, b = self.graph.nodes[self.number]
        if operation == 'sub':
            return self.graph.node('sub', b, a)
        return self.graph.node('neg', self.number)

    @_binary
    def __add__(self, y: Scalar) -> Scalar:
        a, b = self.value, y.value
        if a is not None and b is not None:
            return self.graph.constant(a + b)
        if a == 0.0:
            return y
        if b == 0.0:
            return self
        if self.number == y.number:
            return self._scaled(2.0)
        minus_a, minus_b = self.negated, y.negated
        if minus_b is not None:
            return self - minus_b
        if minus_a is not None:
            return y - minus_a
        first, second = sorted((self.number, y.number))
        return self.graph.node('add', first, second)

    __radd__ = __add__

    @_binary
    def __sub__(self, y: Scalar) -> Scalar:
        if self.number == y.number:
            return self.graph.constant(0.0)
        a, b = self.value, y.value
        if a is not None and b is not None:
            return self.graph.constant(a - b)
        if b == 0.0:
            return self
        if a == 0.0:
            return -y
        minus_a, minus_b = self.negated, y.negated
        if minus_b is not None:
            return self + minus_b
        if minus_a is not None:
            return -(minus_a + y)
        return self.graph.node('sub', self.number, y.number)

    @_binary
    def __rsub__(self, y: Scalar) -> Scalar:
        return y - self

    @_binary
    def __mul__(self, y: Scalar) -> Scalar:
        a, b = self.value, y.value
        if a is not None and b is not None:
            return self.graph.constant(a * b)
        if a is not None:
            return y._scaled(a)
        if b is not None:
            return self._scaled(b)
        minus_a, minus_b = self.negated, y.negated
        if minus_a is not None:
            return -(minus_a * y)
        if minus_b is not None:
            return -(self * minus_b)
        first, second = sorted((self.number, y.number))
        return self.graph.node('mul', first, second)

    __rmul__ = __mul__

    def _scaled(self, factor: float) -> Scalar:
        if factor == 0.0:
            return self.graph.constant(0.0)
        if factor == 1.0:
            return self
        if factor == -1.0:
            return -self
        inner = self.negated
        if inner is not None:
            return inner._scaled(-factor)
        if factor < 0:
            return -self._scaled(-factor)
        operation, a, b = self.graph.nodes[self.number]
        if operation == 'mul':  # either operand may be a constant
            for constant, rest in ((a, b), (b, a)):
                value = Scalar(self.graph, constant).value
                if value is not None:
                    return Scalar(self.graph, rest)._scaled(value * factor)
        constant = self.graph.constant(factor)
        first, second = sorted((self.number, constant.number))
        return self.graph.node('mul', first, second)

    @_binary
    def __truediv__(self, y: Scalar) -> Scalar:
        a, b = self.value, y.value
        if b is not None:
            return self._scaled(1.0 / b)
        if a == 0.0:
            return self
        minus_b = y.negated
        if minus_b is not None:
            return -(self / minus_b)
        return self.graph.node('div', self.number, y.number)

    @_binary
    def __rtruediv__(self, y: Scalar) -> Scalar:
        return y / self

    def _unary(self, operation: str, function: Callable[[float], float]) -> Scalar:
        value = self.value
        if value is not None:
            return self.graph.constant(function(value))
        return self.graph.node(operation, self.number)

    def sin(self) -> Scalar:
        """Sine (NumPy's ``sin`` calls this)."""
        inner = self.negated
        return -inner.sin() if inner is not None else self._unary('sin', math.sin)

    def cos(self) -> Scalar:
        """Cosine (NumPy's ``cos`` calls this)."""
        inner = self.negated
        return inner.cos() if inner is not None else self._unary('cos', math.cos)

    def sqrt(self) -> Scalar:
        """Square root (NumPy's ``sqrt`` calls this)."""
        return self._unary('sqrt', math.sqrt)

    def sign(self) -> Scalar:
        """-1, 0 or 1."""
        inner = self.negated
        return -inner.sign() if inner is not None else self._unary('sign', lambda x: float(
            np.sign(x)))


def sign(value: Any) -> Any:
    """Return the sign of a float or a `Scalar`."""
    return value.sign() if isinstance(value, Scalar) else np.sign(value)


def smooth_sign(value: Any, width: Any) -> Any:
    """Return a continuous sign of a value s: ``s sqrt(s^2 + 4 w^2) / (s^2 + 2 w^2)``, width w.

    It differs from ``tanh(s / w)`` by less than 0.023 and needs no exponential. For width 0, it is
    the sign itself.

    Parameters
    ----------
    value : float, Scalar or ndarray
        Velocities, rad/s or m/s.
    width : float or ndarray
        One width for all, or an array of widths, one for each element along the last axis of an
        array of floats.
    """
    smooth = np.count_nonzero(width)
    if smooth == 0:
        return sign(value)
    if smooth < np.size(width):
        sharp = width == 0.0
        return np.where(sharp, np.sign(value), smooth_sign(value, width + sharp))
    square, twice = value * value, 2.0 * width * width
    return value * np.sqrt(square + 2.0 * twice) / (square + twice)


def trace(function: Callable[..., Any], sizes: Sequence[int]) -> tuple[Graph, list[int]]:
    """Run a function on symbols.

    Parameters
    ----------
    function : callable
        Takes one array of shape (size,) for each input, returns an array or numbers.
    sizes : sequence of int
        Length of each input.

    Returns
    -------
    graph : Graph
    outputs : list of int
        The node of each element of the result, flattened in C order.
    """
    graph = Graph()
    result = function(*(graph.inputs(i, size) for i, size in enumerate(sizes)))
    flat = np.asarray(result, dtype=object).ravel()
    return graph, [(entry if isinstance(entry, Scalar) else graph.constant(entry)).number
                   for entry in flat]
