"""Reverse-mode derivatives of traced functions: the gradient of a graph is a graph again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robodyn_ros.kernels.expression import Graph, Scalar


def pullback(outputs: Any, cotangents: Any, inputs: Sequence[Any]) -> Any:
    """Return the gradient of ``sum(cotangents * outputs)`` with respect to the inputs.

    Parameters
    ----------
    outputs : ndarray of Scalar or float
        Results of the traced function.
    cotangents : ndarray of Scalar or float
        A factor for each result.
    inputs : sequence of ndarray of Scalar
        Inputs of the traced function.

    Returns
    -------
    ndarray of object, shape (total length of the inputs,)
        The derivative of a sign is 0.
    """
    graph = next(symbol.graph for array in inputs for symbol in array)
    adjoint: dict[int, Any] = {}
    for output, cotangent in zip(np.ravel(outputs), np.ravel(cotangents), strict=True):
        if isinstance(output, Scalar):
            _add(adjoint, output.number, cotangent)
    # operands precede their users, and nodes that this loop adds come after all of them
    for number in range(max(adjoint, default=-1), -1, -1):
        if number in adjoint:
            _step(graph, number, adjoint)
    return np.array([adjoint.get(symbol.number, 0.0) for array in inputs for symbol in array],
                    dtype=object)


def _step(graph: Graph, number: int, adjoint: dict[int, Any]) -> None:
    operation, a, b = graph.nodes[number]
    if operation in ('const', 'input', 'sign'):
        return
    bar, x = adjoint[number], Scalar(graph, a)
    if operation == 'add':
        _add(adjoint, a, bar)
        _add(adjoint, b, bar)
    elif operation == 'sub':
        _add(adjoint, a, bar)
        _add(adjoint, b, -bar)
    elif operation == 'mul':
        _add(adjoint, a, bar * Scalar(graph, b))
        _add(adjoint, b, bar * x)
    elif operation == 'div':
        y = Scalar(graph, b)
        _add(adjoint, a, bar / y)
        _add(adjoint, b, -(bar * Scalar(graph, number) / y))
    elif operation == 'neg':
        _add(adjoint, a, -bar)
    elif operation == 'sin':
        _add(adjoint, a, bar * x.cos())
    elif operation == 'cos':
        _add(adjoint, a, -(bar * x.sin()))
    elif operation == 'sqrt':
        _add(adjoint, a, bar * 0.5 / Scalar(graph, number))
    else:
        raise AssertionError(f'no derivative of {operation!r}')


def _add(adjoint: dict[int, Any], number: int, value: Any) -> None:
    adjoint[number] = adjoint[number] + value if number in adjoint else value
