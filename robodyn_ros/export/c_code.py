"""A traced function -> the statements of a C function.

Each node of the graph becomes one expression in C99 that is also C++. A node that is used once is
written where it is used; the others get a variable. All inputs are read before the first result is
written, so that the arrays of a call may overlap.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.errors import ValueRangeError
from robodyn_ros.kernels.expression import Graph

OPERATORS = {'add': '+', 'sub': '-', 'mul': '*', 'div': '/'}
LONGEST = 120  # characters of an expression that is written where it is used
WIDTH = 99


@dataclass(frozen=True)
class Dialect:
    """How numbers and functions are spelled.

    Attributes
    ----------
    prefix : str
        What all names begin with.
    single : bool
        32-bit numbers instead of 64-bit ones.
    own_sincos : bool
        Sine and cosine are those of the exported source instead of the C library's.
    """

    prefix: str
    single: bool = False
    own_sincos: bool = False

    @property
    def real(self) -> str:
        """The type of numbers."""
        return 'float' if self.single else 'double'

    def number(self, value: float) -> str:
        """Return a constant, to the last bit of the type.

        Raises
        ------
        ValueRangeError
            It is infinite or not a number.
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
    """The statements of one function while they are written."""

    def __init__(self, graph: Graph, dialect: Dialect, inputs: Sequence[str]):
        self.graph, self.dialect, self.inputs = graph, dialect, inputs
        self.lines: list[str] = []
        self.names: dict[int, str] = {}  # how a node is written where it is used
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
        """Sines and cosines of all angles; in a loop, which compilers vectorise."""
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
        """The expression without the brackets around it."""
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
        What was traced.
    outputs : sequence of int
        The node of each element of the result.
    dialect : Dialect
        Spelling of numbers and calls.
    inputs : sequence of str
        Names of the arrays that are read.
    result : str
        Name of the array that is written.
    """
    return '\n'.join(_Body(graph, dialect, inputs).write(outputs, result))
