"""Writes a traced function as the statements of a C function.

Each node of the graph becomes one expression that is valid in C99 and C++. A node that is used
once is written in place; the others become variables. All inputs are read before the first result
is written, so that the arrays of a call may overlap.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.kernels.expression import Graph

OPERATORS = {'add': '+', 'sub': '-', 'mul': '*', 'div': '/'}
LONGEST = 120  # characters of an expression that is written in place
WIDTH = 99


@dataclass(frozen=True)
class Dialect:
    """The notation of numbers and functions.

    Attributes
    ----------
    prefix : str
        Prefix of all names.
    single : bool
        Whether numbers have 32 bits instead of 64.
    own_sincos : bool
        Whether the exported source has its own sine and cosine instead of the C library's.
    """

    prefix: str
    single: bool = False
    own_sincos: bool = False

    @property
    def real(self) -> str:
        """The type of numbers."""
        return 'float' if self.single else 'double'

    def number(self, value: float) -> str:
        """Return a constant with the full precision of the type.

        Raises
        ------
        ValueRangeError
            The value is infinite or not a number.
        """
        rounded = np.float32(value) if self.single else float(value)
        if not np.isfinite(rounded):
            raise ValueRangeError('a constant of the exported code', value, 'a finite number')
        text = str(rounded) if self.single else repr(rounded)
        if '.' not in text and 'e' not in text:
            text += '.0'
        return text + ('f' if self.single else '')

    def call(self, name: str, argument: str) -> str:
        """Return a call of a function of the C library."""
        return f'{name}{"f" if self.single else ""}({argument})'


class _Body:
    """Writes the statements of one function."""

    def __init__(self, graph: Graph, dialect: Dialect, inputs: Sequence[str]):
        self.graph, self.dialect, self.inputs = graph, dialect, inputs
        self.lines: list[str] = []
        self.names: dict[int, str] = {}  # the text of each node where it is used
        self.uses: dict[int, int] = {}

    def write(self, outputs: Sequence[int], result: str) -> list[str]:
        used = self.graph.reachable(outputs)
        for user in (*outputs, *(operand for node in used for operand in self._operands(node))):
            self.uses[user] = self.uses.get(user, 0) + 1
        angles = sorted({self.graph.nodes[node][1] for node in used
                         if self.graph.nodes[node][0] in ('sin', 'cos')})
        for node in self.graph.reachable(angles):
            self._node(node)
        self._sincos(angles)
        for node in used:
            if node not in self.names:
                self._node(node)
        if self.lines:
            self.lines.append('')
        for place, node in enumerate(outputs):
            self._line(f'{result}[{place}] = {self._bare(node)};')
        return self.lines

    def _operands(self, node: int) -> list[int]:
        operation, a, b = self.graph.nodes[node]
        if operation in ('const', 'input'):
            return []
        return [a] if b is None else [a, b]

    def _node(self, node: int) -> None:
        operation, a, b = self.graph.nodes[node]
        if operation == 'const':
            text = self.dialect.number(a)
            self.names[node] = f'({text})' if text.startswith('-') else text
        elif operation == 'input':
            self._variable(node, f'{self.inputs[a]}{b}', f'{self.inputs[a]}[{b}]')
        elif operation in ('sqrt', 'sign'):
            call = (self.dialect.call('sqrt', self._bare(a)) if operation == 'sqrt' else
                    f'{self.dialect.prefix}_sign({self._bare(a)})')
            self._variable(node, f't{node}', call)
        else:
            text = (f'-{self.names[a]}' if operation == 'neg' else
                    f'{self.names[a]} {OPERATORS[operation]} {self.names[b]}')
            if self.uses[node] == 1 and len(text) <= LONGEST:
                self.names[node] = f'({text})'
            else:
                self._variable(node, f't{node}', text)

    def _sincos(self, angles: Sequence[int]) -> None:
        """Write sines and cosines of all angles; own functions in a vectorisable loop."""
        if not angles:
            return
        wanted = [(place, name, self.graph.find((name, angle, None)))
                  for place, angle in enumerate(angles) for name in ('sin', 'cos')]
        real, count = self.dialect.real, len(angles)
        if not self.dialect.own_sincos:
            for place, name, node in wanted:
                if node in self.uses:
                    self._variable(node, f'{name}_{place}',
                                   self.dialect.call(name, self._bare(angles[place])))
            return
        self._line(f'const {real} angle[{count}] = {{'
                   + ', '.join(self._bare(angle) for angle in angles) + '};')
        self._line(f'{real} sine[{count}], cosine[{count}];')
        self._line(f'for (int i = 0; i < {count}; i++)')
        self._line(f'    {self.dialect.prefix}_sincos(angle[i], &sine[i], &cosine[i]);')
        for place, name, node in wanted:
            if node in self.uses:
                self._variable(node, f'{name}_{place}',
                               f'{"sine" if name == "sin" else "cosine"}[{place}]')

    def _variable(self, node: int, name: str, text: str) -> None:
        self._line(f'const {self.dialect.real} {name} = {text};')
        self.names[node] = name

    def _bare(self, node: int) -> str:
        """Return the expression of a node without the surrounding brackets."""
        text = self.names[node]
        return text[1:-1] if text.startswith('(') else text

    def _line(self, text: str) -> None:
        self.lines += textwrap.wrap(text, WIDTH, initial_indent='    ',
                                    subsequent_indent='        ', break_long_words=False,
                                    break_on_hyphens=False)


def c_statements(graph: Graph, outputs: Sequence[int], dialect: Dialect, inputs: Sequence[str],
                 result: str) -> str:
    """Return the body of a C function.

    Parameters
    ----------
    graph : Graph
        The traced function.
    outputs : sequence of int
        The node of each element of the result.
    dialect : Dialect
        Notation of numbers and calls.
    inputs : sequence of str
        Names of the arrays that are read.
    result : str
        Name of the array that is written.
    """
    return '\n'.join(_Body(graph, dialect, inputs).write(outputs, result))
