"""Writes the C source with all functions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from robodyn_ros.dynamics.parametric import PARAMETERS
from robodyn_ros.export.c_code import c_statements
from robodyn_ros.export.c_functions import c_functions
from robodyn_ros.export.functions import Function
from robodyn_ros.export.package import Package
from robodyn_ros.export.values import FORMAT, PAYLOAD, READER
from robodyn_ros.kernels.expression import trace

NEWTON_STEPS = 8  # convergence is quadratic: from centimetres to round-off in four or five steps

CLOSE_LOOPS = '''
{real} {prefix}_close_loops(const {real} q[{n}], {real} positions[{b}])
{{
    static const int independent[{n}] = {{{free}}}, dependent[{k}] = {{{bound}}};
    {real} step[{size}], largest = 0;
    for (int i = 0; i < {n}; i++)
        positions[independent[i]] = q[i];
    for (int round = 0; round < {steps}; round++) {{
        {prefix}_newton_step(positions, step);
        for (int i = 0; i < {k}; i++)
            positions[dependent[i]] -= step[{gaps} + i];
    }}
    {prefix}_newton_step(positions, step);
    for (int i = 0; i < {gaps}; i++) {{
        const {real} gap = step[i] < 0 ? -step[i] : step[i];
        largest = gap <= largest ? largest : gap; /* nan counts as the largest */
    }}
    return largest;
}}
'''


def source_text(package: Package) -> str:
    """Return the whole source."""
    dialect, prefix = package.dialect, package.prefix
    bodies = [_function(package, function) for function in package.functions]
    together = '\n'.join(bodies)
    lines = [f'/* Written by robodyn_ros; see {prefix}.h. */', f'#include "{prefix}.h"', '']
    if any(f'{name}(' in together for name in ('sqrt', 'sqrtf')) or not dialect.own_sincos:
        lines.append('#include <math.h>')
    if dialect.own_sincos:
        lines.append('#include <stdint.h>')
    if package.parametric:
        lines.append('#include <stdlib.h>')
    if dialect.own_sincos or package.parametric:
        lines.append('#include <string.h>')
    needed = [part for name, part in c_functions(dialect).items()
              if f'{prefix}_{name}(' in together]
    lines += ['', *_strings(f'{prefix}_joint_names', package.dynamics.joint_names)]
    if package.model.floating:
        lines += _strings(f'{prefix}_velocity_names', package.model.velocity_names)
    lines += [*needed, together]
    if package.loops is not None:
        lines.append(_loops(package))
    if package.parametric:
        lines.append(_parametric(package))
    return '\n'.join(lines)


def _function(package: Package, function: Function) -> str:
    sizes = [size for _, size in function.arguments]
    graph, outputs = trace(function.trace, sizes)
    names = [name for name, _ in function.arguments]
    body = c_statements(graph, outputs, package.dialect, names, 'result')
    read = {graph.nodes[node][1] for node in graph.reachable(outputs)
            if graph.nodes[node][0] == 'input'}
    unused = [f'    (void){name};' for place, name in enumerate(names) if place not in read]
    signature = textwrap.wrap(package.signature(function), 99, subsequent_indent='        ')
    return '\n'.join(['', *signature, '{', *unused, body, '}'])


def _loops(package: Package) -> str:
    closed, real = package.loops, package.dialect.real
    assert closed is not None
    names, n, b = package.model.joint_names, closed.n, package.model.n
    free = [names.index(name) for name in closed.joint_names]
    bound = [names.index(name) for name in closed.dependent_names]
    size = package.functions[0].size
    return '\n'.join([
        '', *_strings(f'{package.prefix}_all_joint_names', names),
        *_numbers(package, f'{package.prefix}_home', closed.home),
        CLOSE_LOOPS.format(real=real, prefix=package.prefix, n=n, b=b, k=b - n, size=size,
                           gaps=size - (b - n), steps=NEWTON_STEPS,
                           free=', '.join(map(str, free)), bound=', '.join(map(str, bound)))])


def _parametric(package: Package) -> str:
    model, number = package.model, package.dialect.number
    frames = []
    for link in package.payload_links.values():
        frame = model.link_frames[link]
        body = frame.body if frame.body >= 0 else len(model.body_joints)  # the base comes last
        frames += textwrap.wrap(
            f'{{{body}, {{{", ".join(map(number, frame.rotation.ravel()))}}}, '
            f'{{{", ".join(map(number, frame.translation))}}}}},', 99,
            initial_indent='    ', subsequent_indent='        ')
    names = {'prefix': package.prefix, 'upper': package.prefix.upper(), 'format': FORMAT,
             'real': package.dialect.real, 'count': package.parameters,
             'per_joint': PARAMETERS, 'frames': '\n'.join(frames)}
    return '\n'.join([
        '', *_strings(f'{package.prefix}_parameter_names', model.parameter_names),
        *_numbers(package, f'{package.prefix}_parameters', model.standard_parameters),
        PAYLOAD.format(**names), READER.format(**names)])


def _strings(name: str, texts: Sequence[str]) -> list[str]:
    quoted = ['    "' + text.replace('\\', '\\\\').replace('"', '\\"') + '",' for text in texts]
    return [f'const char *const {name}[{len(texts)}] = {{', *quoted, '};', '']


def _numbers(package: Package, name: str, values: np.ndarray) -> list[str]:
    return [f'const {package.dialect.real} {name}[{len(values)}] = {{',
            *textwrap.wrap(', '.join(map(package.dialect.number, values)), 99,
                           initial_indent='    ', subsequent_indent='    '), '};', '']
