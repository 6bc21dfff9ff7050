"""Writes a C program that compares the exported functions with results of `rd.Dynamics`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from robodyn_ros.dynamics.parametric import PARAMETERS
from robodyn_ros.export.functions import Function
from robodyn_ros.export.package import Package
from robodyn_ros.spatial import Array

STATES = 3  # states in which each function is compared
TORQUES = ('gravity', 'coriolis', 'friction', 'inverse_dynamics', 'moving_inverse_dynamics',
           'observer')  # terms of one sum, whose errors are relative to the whole torque
LARGEST = 20_000  # most numbers in the expected results of a function; above, fewer states
# relative to the largest element of a result; by whether numbers have single precision
TOLERANCE = {False: 1e-12, True: 2e-4}

MAIN = '''
/* Largest error relative to `scale` or the largest expected element; 2 if it is not a number. */
static double error_of(const {real} *result, const {real} *expected, int count, double scale)
{{
    double error = 0;
    for (int i = 0; i < count; i++) {{
        const double difference = fabs((double)result[i] - (double)expected[i]);
        const double size = fabs((double)expected[i]);
        if (!(difference <= error))
            error = difference;
        if (size > scale)
            scale = size;
    }}
    if (!(error >= 0))
        return 2;
    return scale > 0 ? error / scale : error;
}}

int main(void)
{{
    double error, worst = 0;
    int failures = 0;
{calls}
    printf("%s: largest relative error %.2g, %d failures\\n", "{prefix}", worst, failures);
    return failures != 0;
}}
'''

CALL = '''
    {{
        {real} result[{size}];
        for (int i = 0; i < {states}; i++) {{
            {prefix}_{name}({arguments}, result);
            error = error_of(result, {name}_result + {size} * i, {size}, {scale});
            worst = error > worst ? error : worst;
            if (error > {tolerance}) {{
                printf("{name}, state %d: relative error %g\\n", i, error);
                failures++;
            }}
        }}
    }}'''

CLOSE = '''
    {{
        {real} positions[{b}];
        for (int i = 0; i < {states}; i++) {{
            memcpy(positions, near_positions + {b} * i, sizeof positions);
            error = {prefix}_close_loops(closed_q + {n} * i, positions);
            if (!(error <= {gap})) {{
                printf("close_loops, state %d: a gap of %g m remains\\n", i, error);
                failures++;
            }}
            error = error_of(positions, closed_positions + {b} * i, {b}, 1.0);
            if (error > {tolerance} * 100) {{
                printf("close_loops, state %d: relative error %g\\n", i, error);
                failures++;
            }}
        }}
    }}'''


def self_test_text(package: Package) -> str:
    """Return the program, with expected results that are computed here."""
    real, prefix = package.dialect.real, package.prefix
    states = _States(package)
    lines = [f'/* Compares {prefix}.c with results of robodyn_ros. */', f'#include "{prefix}.h"',
             '', '#include <math.h>', '#include <stdio.h>', '#include <string.h>', '']
    calls = []
    for function in package.functions:
        if function.reference is None:
            continue
        count = max(1, min(states.count, LARGEST // max(function.size, 1)))
        expected = [function.reference(*arrays) for arrays in states.of(function, count)]
        inputs = list(zip(*states.of(function, count), strict=True))
        names = []
        for (name, size), given in zip(function.arguments, inputs, strict=True):
            array = f'{function.name}_{name}'
            lines += _array(package, array, np.concatenate(given))
            names.append(f'{array} + {size} * i')
        lines += _array(package, f'{function.name}_result', np.concatenate(
            [np.ravel(result) for result in expected]))
        calls.append(CALL.format(real=real, size=function.size, states=count, prefix=prefix,
                                 name=function.name, arguments=', '.join(names),
                                 scale=states.scale(function),
                                 tolerance=TOLERANCE[package.dialect.single]))
    if package.loops is not None:
        b, n = package.model.n, package.dynamics.n
        for name, values in (('near_positions', states.near), ('closed_q', states.q),
                             ('closed_positions', states.positions)):
            lines += _array(package, name, np.ravel(values))
        calls.append(CLOSE.format(
            real=real, b=b, n=n, states=states.count, prefix=prefix,
            gap=1e-5 if package.dialect.single else 1e-12,
            tolerance=TOLERANCE[package.dialect.single]))
    if not calls:
        calls = ['    error = 0;']
    main = MAIN.format(real=real, prefix=prefix, calls='\n'.join(calls).lstrip('\n'))
    return '\n'.join(lines) + main


class _States:
    """Random states of the robot, which are the same for all functions."""

    def __init__(self, package: Package):
        dynamics, rng = package.dynamics, np.random.default_rng(1)
        self.count = 2 if package.parametric else STATES
        shape = (self.count, dynamics.n)
        self.q = dynamics.joints.sample_poses(rng, self.count)
        if package.model.floating:
            self.q = np.concatenate([rng.normal(size=(self.count, 7)), self.q], axis=1)
        self.qd, self.qdd = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape)
        if package.loops is not None:
            home = package.loops.home
            middle = home[[package.model.joint_names.index(name)
                           for name in dynamics.joint_names]]
            self.q = middle + np.clip(self.q - middle, -0.1, 0.1)
            self.positions = package.loops.positions(self.q)
            self.near = self.positions + rng.uniform(-0.01, 0.01, self.positions.shape)
        else:
            self.positions = self.q
        self.tau = dynamics.inverse_dynamics(self.q, self.qd, 0 * self.qdd) + rng.uniform(
            -10, 10, shape)
        self.base = rng.uniform(-1, 1, (self.count, 9))
        self.base[:, 6:] -= package.model.gravity
        self.timing = np.tile([1e-3, 20.0], (self.count, 1))  # period, s; bandwidth, Hz
        self.observer = rng.uniform(-1, 1, (self.count, 3 * dynamics.n))
        nominal = package.model.standard_parameters
        self.parameters = np.array([nominal, _changed(nominal, rng)])[:self.count]
        if package.dialect.single:  # both sides compute with the same numbers
            for name, value in vars(self).items():
                if isinstance(value, np.ndarray):
                    setattr(self, name, value.astype(np.float32).astype(np.float64))

        self.torque = float(np.abs(self.tau).max())

    def scale(self, function: Function) -> float:
        """Return the smallest scale for relative errors: for torques, that of the whole torque."""
        return self.torque if function.name in TORQUES else 0.0

    def of(self, function: Function, count: int) -> Iterator[tuple[Array, ...]]:
        """Yield the arguments of a function for each state."""
        for k in range(count):
            yield tuple(getattr(self, name)[k] for name, _ in function.arguments)


def _changed(nominal: Array, rng: np.random.Generator) -> Array:
    """Return other consistent parameters: bodies up to 10 % heavier or lighter, more friction."""
    bodies, base = np.split(nominal, [len(nominal) // PARAMETERS * PARAMETERS])
    chi = bodies.reshape(-1, PARAMETERS).copy()
    chi[:, :10] *= rng.uniform(0.9, 1.1, (len(chi), 1))
    chi[:, 10:] += rng.uniform(0.0, 0.1, chi[:, 10:].shape)
    return np.append(chi, 1.1 * base)


def _array(package: Package, name: str, values: Array) -> list[str]:
    text = ', '.join(map(package.dialect.number, values))
    return [f'static const {package.dialect.real} {name}[{len(values)}] = {{',
            *textwrap.wrap(text, 99, initial_indent='    ', subsequent_indent='    '), '};']
