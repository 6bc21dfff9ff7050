"""Equations of small arms as Markdown, LaTeX or Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robodyn_ros.errors import UnknownNameError
from robodyn_ros.export.symbolic import TERMS, Equations
from robodyn_ros.export.symbolic_values import sympy

FORMATS = ('markdown', 'latex', 'python')
_MEANING = {'M': 'mass matrix', 'C': 'matrix of the Christoffel symbols',
            'c': 'Coriolis and centrifugal torques C qd', 'g': 'gravity torques',
            'N': 'constraints of the closed loops', 'J': 'Jacobian of the constraints',
            'D': 'time derivative of this Jacobian'}
CONSTRAINTS = ('N', 'J', 'D')


def text_of(equations: Equations, terms: Sequence[str] = ('M', 'c', 'g'),
            form: str = 'markdown') -> str:
    """Return equations as text.

    Parameters
    ----------
    equations : Equations
        The equations, see `equations`.
    terms : sequence of str
        Which of ``M``, ``C``, ``c`` and ``g``.
    form : str
        ``markdown``, ``latex`` or ``python``.

    Raises
    ------
    UnknownNameError
        There is no such term or form.
    """
    for term in terms:
        if term not in TERMS:
            raise UnknownNameError('term', term, TERMS)
    if form not in FORMATS:
        raise UnknownNameError('format', form, FORMATS)
    if equations.constraints is not None:
        terms = [*terms, *CONSTRAINTS]
    return {'markdown': _markdown, 'latex': _latex, 'python': _python}[form](equations, terms)


def _entries(equations: Equations, term: str) -> list[tuple[tuple[int, ...], Any]]:
    """Return the entries of a term with their indices; of M those on and above the diagonal."""
    matrix = _matrix(equations, term)
    rows, columns = matrix.shape
    if columns == 1:
        return [((i + 1,), matrix[i]) for i in range(rows)]
    return [((i + 1, j + 1), matrix[i, j]) for i in range(rows) for j in range(columns)
            if term != 'M' or j >= i]


def _matrix(equations: Equations, term: str) -> Any:
    return getattr(equations.constraints if term in CONSTRAINTS else equations, term)


def _markdown(equations: Equations, terms: Sequence[str]) -> str:
    lines = ['M(q) qdd + c(q, qd) + g(q) = tau, with ' + ', '.join(
        f'{q} of {name}' for q, name in zip(equations.q, equations.joint_names, strict=True)),
        'and the links ' + ', '.join(f'{k + 1} {name}' for k, name in enumerate(
            equations.link_names)), '']
    for term in terms:
        lines += [f'## {term}: {_MEANING[term]}', '', '```text']
        lines += [f'{term}{"".join(map(str, index))} = {value}'
                  for index, value in _entries(equations, term)]
        lines += ['```', '']
    if equations.constraints is not None:
        lines += ['## With the loops closed', '', '```text', *_closed(equations), '```', '']
    if equations.definitions:
        lines += ['## Lumped parameters', '', '```text', *(
            f'{symbol} = {value}' for symbol, value in equations.definitions.items()), '```', '']
    lines += ['## Symbols', '', '| symbol | value, SI units |', '|---|---|']
    lines += [f'| {symbol} | {value:.6g} |' for symbol, value in equations.values.items()]
    return '\n'.join(lines)


def _closed(equations: Equations) -> list[str]:
    """Return how the terms of the tree become those of the loops (Kolyubin 2.3.2)."""
    assert equations.constraints is not None
    free = equations.constraints.independent
    r = ', '.join(str(q) for k, q in enumerate(equations.q) if k in free)
    c = ', '.join(str(q) for k, q in enumerate(equations.q) if k not in free)
    return [f'independent: r = ({r}), dependent: c = ({c}); M, c and g are those of the tree,',
            'their rows and the columns of J and D = dJ/dt are divided in the same way',
            'qd_c = -J_c^-1 J_r qd_r',
            'qdd_c = -J_c^-1 (J_r qdd_r + D qd)',
            "F = J_c'^-1 (M_c qdd + c_c + g_c)             force in the cuts",
            "tau_r = M_r qdd + c_r + g_r - J_r' F"]


def _latex(equations: Equations, terms: Sequence[str]) -> str:
    latex, s = sympy().latex, sympy()
    dots = {qd: s.Symbol(rf'\dot{{{s.latex(q)}}}')
            for q, qd in zip(equations.q, equations.qd, strict=True)}
    lines = [r'\begin{align*}']
    for term in terms:
        lines += [rf'{term}_{{{"".join(map(str, index))}}} &= {latex(value.xreplace(dots))} \\'
                  for index, value in _entries(equations, term)]
    lines += [rf'{latex(symbol)} &= {latex(value)} \\'
              for symbol, value in equations.definitions.items()]
    return '\n'.join([*lines, r'\end{align*}'])


def _python(equations: Equations, terms: Sequence[str]) -> str:
    """Return a module that computes the terms with the values of the description."""
    s = sympy()
    code = s.printing.pycode
    arguments = {'M': 'q', 'g': 'q', 'C': 'q, qd', 'c': 'q, qd', 'N': 'q', 'J': 'q', 'D': 'q, qd'}
    names = {'M': 'mass_matrix', 'C': 'coriolis_matrix', 'c': 'coriolis', 'g': 'gravity',
             'N': 'constraints', 'J': 'constraint_jacobian', 'D': 'constraint_jacobian_rate'}
    lines = ['"""Equations of motion in closed form, written by `robodyn equations`."""', '',
             'import math', '', 'import numpy as np', '']
    lines += [f'{symbol} = {value!r}' for symbol, value in equations.values.items()]
    lines += [f'{symbol} = {code(value)}' for symbol, value in equations.definitions.items()]
    for term in terms:
        matrix = _matrix(equations, term)
        lines += ['', '', f'def {names[term]}({arguments[term]}):',
                  f'    """Return the {_MEANING[term]}."""',
                  f'    {", ".join(map(str, equations.q))}, = q']
        if 'qd' in arguments[term]:
            lines.append(f'    {", ".join(map(str, equations.qd))}, = qd')
        rows = [', '.join(code(x) for x in matrix.row(i)) for i in range(matrix.rows)]
        entries = rows if matrix.cols == 1 else [f'[{row}]' for row in rows]
        lines.append('    return np.array([' + ',\n                     '.join(entries) + '])')
    return '\n'.join(lines)
