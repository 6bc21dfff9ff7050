"""Functions that are evaluated at the solution of equations, which compiled code finds.

The variables are the elements of a pose. Some of them are given; the others solve equations
``gap(pose) = 0``. The given variables move in small steps along a straight line from a known pose
to their goal, and Newton's method follows with the others, so that the solution stays on the
branch of the known pose. A second function is then computed at the solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robodyn_ros.kernels.compiler import COMPILER, native_pointers
from robodyn_ros.kernels.instructions import LANES, number
from robodyn_ros.kernels.kernel import Kernel, KernelSpec
from robodyn_ros.kernels.lanes import LaneInstructions
from robodyn_ros.kernels.llvm_ir import frame
from robodyn_ros.kernels.pointers import Pointers

CONTRACTION = 4.0  # ratio of successive Newton steps above which their lengths predict the error
# At the goal, Newton's method ends after a step below this fraction of the square root of the
# admissible error. The error is proportional to the squared step; its factor is not known.
MARGIN = 0.1


@dataclass(frozen=True)
class PathRules:
    """How a solution is followed; lengths have the units of the variables or of the gaps.

    Attributes
    ----------
    step : float
        Largest step of a given variable between two solutions.
    farthest : float
        Largest distance of the goal; goals farther away are refused.
    iterations : int
        Limit of Newton's method for one solution.
    largest : float
        Largest change of a variable in one iteration; longer Newton steps are shortened.
    passing : float
        Largest error of the variables on the way.
    exact : float
        Largest error of the variables at the goal, where another iteration changes nothing.
    closed : float
        Gap that counts as closed.
    rough : float
        Gap that is accepted if round-off prevents further convergence.
    singular : float
        A solution counts as singular if a pivot of the equations is smaller, relative to the
        square of its column.
    """

    step: float
    farthest: float
    iterations: int
    largest: float
    passing: float
    exact: float
    closed: float
    rough: float
    singular: float


class ContinuationKernel(Kernel):
    """A function of the pose that solves the equations, compiled with the search for it.

    The inputs are a known pose, the given variables, then the other inputs of the function. A
    sample of a batch starts from the known pose, or from the solution of the sample four before it
    if that is nearer.

    Parameters
    ----------
    newton : Kernel
        Takes a pose; returns the gaps, the Newton step of the other variables, the square of the
        gap that this step leaves to first order, and the relative pivot of each variable.
    function : Kernel, optional
        Takes a pose and further inputs. Its results are NaN where there is no regular solution;
        the first is NaN if any of them is not finite.
        Without a function, the results are the pose where the search ended, and 1 if it solves
        the equations, else 0.
    given, others : sequence of int
        Indices of the given variables and of the others.
    rules : PathRules
        How the solution is followed.
    """

    def __init__(self, newton: Kernel, function: Kernel | None, given: Sequence[int],
                 others: Sequence[int], rules: PathRules):
        self._newton, self._inner = newton, function
        self._given, self._others, self._rules = tuple(given), tuple(others), rules
        width = newton.spec.sizes[0]
        names, sizes, shape = ((), (), (width + 1,)) if function is None else (
            function.spec.arguments[1:], function.spec.sizes[1:], function.spec.shape)
        key = '' if function is None else function.spec.key
        super().__init__(KernelSpec(
            f'{newton.spec.key}|{key}|{rules}|{self._given}', ('near', 'q', *names),
            (width, len(self._given), *sizes), shape, _not_traced))

    def _write(self, name: str, batch: bool) -> str:
        form = 'batch' if batch else 'single'
        symbols = [COMPILER.symbol(f'{kernel.spec.key}|{form}') for kernel in self._called()]
        return _Writer(self, symbols, batch, native_pointers()).text(name)

    def _called(self) -> list[Kernel]:
        return [self._newton] if self._inner is None else [self._newton, self._inner]

    def compile(self, form: str) -> int:
        """Compile one form, ``single`` or ``batch``, after the functions that it calls."""
        for kernel in self._called():  # they are linked by their names
            kernel.compile(form)
        return super().compile(form)


def _not_traced(*_: Any) -> Any:
    raise TypeError('a search with a varying number of iterations cannot be traced')


class _Writer(LaneInstructions):
    """Writes the search in IR, for one sample or for the samples of a vector."""

    def __init__(self, kernel: ContinuationKernel, symbols: Sequence[str], batch: bool,
                 pointers: Pointers):
        super().__init__(LANES if batch else 1, pointers)
        self._spec, self._rules, self._batch = kernel.spec, kernel._rules, batch
        self._given, self._others = kernel._given, kernel._others
        self._symbols, self._solves = symbols, kernel._inner is not None
        self._width = kernel.spec.sizes[0]
        self._found = kernel._newton.spec.shape[0]
        self._gaps = self._found - 2 * len(self._others) - 1
        self._outputs = 1
        for length in kernel.spec.shape:
            self._outputs *= length

    def text(self, name: str) -> str:
        """Return the IR of the function."""
        double, pointers = self.pointers.to('double'), self.pointers
        samples = ', i64' if self._batch else ''
        calls = [f'declare void @{symbol}({pointers.to(double)}, {double}{samples})'
                 for symbol in self._symbols]
        room = [f'  %pose = alloca double, i64 {self.lanes * self._width}, align 32',
                f'  %found = alloca double, i64 {self.lanes * self._found}, align 32',
                f'  %args = alloca {double}, i64 {len(self._spec.sizes)}, align 8',
                *(self._unknown_solution() if self._batch else ())]
        head, places, tail = frame(name, self._spec.sizes, self._outputs, batch=self._batch,
                                   pointers=pointers, room=room)
        self._near, self._goal, *self._rest, self._output = places
        self._begin()
        self._march()
        self._newton()
        self._next_step()
        self._finish()
        return '\n'.join([*self.declarations(), *calls, *head, *self.lines, *tail, ''])

    # steps of the search ----------------------------------------------------------------------

    def _begin(self) -> None:
        """Choose the start, and the number of steps to the goal."""
        goal = [self.load(self._goal, k, len(self._given)) for k in range(len(self._given))]
        start = [self.load(self._near, k, self._width) for k in range(self._width)]
        if self._batch:
            last = [self.load('%pose', k, self._width) for k in range(self._width)]
            nearer = self.emit(f'fcmp olt {self.real} {self._distance(goal, last)}, '
                               f'{self._distance(goal, start)}')
            start = [self.select(nearer, *both) for both in zip(last, start, strict=True)]
        for k in self._others:
            self.store(start[k], '%pose', k, self._width)
        self._goals = goal
        self._way = [self.binary('sub', x, start[k])
                     for x, k in zip(goal, self._given, strict=True)]
        longest = self._largest(self._way)
        far = self._rules.farthest
        self._define('within', f'fcmp olt {self.real} {longest}, {self.const(far)}')
        least = self.highest(self.select('%within', longest, self.zero))
        count = self.emit(f'fdiv double {least}, {number(self._rules.step)}')
        count = self.emit(f'fptosi double {count} to i64')  # rounded down
        self._define('steps', f'add i64 {count}, 1')
        self._store_pointers()
        self.block('begin')

    def _march(self) -> None:
        """Move the given variables by one step."""
        self.block('march')
        self._define('step', 'phi i64 [ 1, %begin ], [ %step.next, %marched ]')
        self._define('alive', f'phi {self.flag} [ %within, %begin ], [ %alive.next, %marched ]')
        self._define('last', 'icmp eq i64 %step, %steps')
        left = self.emit('sub i64 %steps, %step')
        left, whole = (self.emit(f'sitofp i64 {x} to double') for x in (left, '%steps'))
        rest = self.spread(self.emit(f'fdiv double {left}, {whole}'))  # 0 in the last step
        for x, way, k in zip(self._goals, self._way, self._given, strict=True):
            self.store(self.binary('sub', x, self.binary('mul', way, rest)), '%pose', k,
                       self._width)
        rules = self._rules
        self._passing, self._error, self._left = (self.spread(self.emit(
            f'select i1 %last, double {number(at_goal)}, double {number(on_the_way)}'))
            for at_goal, on_the_way in (
                (MARGIN * math.sqrt(rules.exact), rules.passing), (rules.exact, rules.passing),
                (rules.rough**2, float('inf'))))

    def _newton(self) -> None:
        """One iteration of Newton's method."""
        none = 'false' if self.lanes == 1 else 'zeroinitializer'
        self.block('newton')
        self._define('round', 'phi i64 [ 0, %march ], [ %round.next, %newton ]')
        self._define('active', f'phi {self.flag} [ %alive, %march ], [ %active.next, %newton ]')
        self._define('good', f'phi {self.flag} [ {none}, %march ], [ %good.next, %newton ]')
        place = len(self.lines)
        self._call(self._symbols[0], '%found')
        self._size = size = self._largest([self.load('%found', k, self._found)
                                           for k in range(self._gaps)])
        endless = number(float('inf')) if self.lanes == 1 else self.splat(float('inf'))
        self.lines.insert(place, f'  %before = phi {self.real} [ {endless}, %march ], '
                                 f'[ {size}, %newton ]')
        self.lines.insert(place, f'  %step.before = phi {self.real} [ {self.zero}, %march ], '
                                 '[ %step.length, %newton ]')
        rules = self._rules
        half = self.binary('mul', '%before', self.const(0.5))
        closed = self.less(size, self.const(rules.closed))
        rough = self.less(size, self.const(rules.rough))
        stalled = self.emit(f'fcmp oge {self.real} {size}, {half}')
        done = self.either(closed, self.both(rough, stalled))
        finite = self.emit(f'fcmp ord {self.real} {size}, {size}')
        on = self.both(self.both('%active', finite), self.opposite(done))
        steps = [self.load('%found', self._gaps + k, self._found)
                 for k in range(len(self._others))]
        longest = self._largest(steps)
        self._define('step.length', f'fadd {self.real} {longest}, {self.zero}')
        limit = self.const(rules.largest)
        shorter = self.select(self.emit(f'fcmp ogt {self.real} {longest}, {limit}'),
                              self.emit(f'fdiv {self.real} {limit}, {longest}'),
                              self.const(1.0))
        for step, k in zip(steps, self._others, strict=True):
            old = self.load('%pose', k, self._width)
            new = self.binary('sub', old, self.binary('mul', step, shorter))
            self.store(self.select(on, new, old), '%pose', k, self._width)
        left = self.load('%found', self._gaps + len(steps), self._found)
        passed = self.both(self.less(left, self._left), self.either(
            self.less(longest, self._passing), self._converges(longest)))
        good = self.either(self.both('%active', done), self.both(on, passed))
        self._define('good.next', f'or {self.flag} %good, {good}')
        self._define('active.next', f'and {self.flag} {on}, {self.opposite(passed)}')
        self._define('round.next', 'add i64 %round, 1')
        more = self.emit(f'icmp ult i64 %round.next, {rules.iterations}')
        more = self.emit(f'and i1 {more}, {self.some("%active.next")}')
        self.lines += [f'  br i1 {more}, label %newton, label %marched', 'marched:']

    def _converges(self, step: str) -> str:
        """Return whether the error after a Newton step is small enough.

        The method converges quadratically, so after steps of lengths a and b, where b is much
        shorter than a, the error is about b^3 / a^2. The first step has no step before it.
        """
        before = '%step.before'
        quick = self.less(self.binary('mul', step, self.const(CONTRACTION)), before)
        cube = self.binary('mul', self.binary('mul', step, step), step)
        bound = self.binary('mul', self.binary('mul', before, before), self._error)
        return self.both(quick, self.less(cube, bound))

    def _next_step(self) -> None:
        """Continue while a lane has found its solution and has not reached its goal."""
        good = self.either('%good.next', self.less(self._size, self.const(self._rules.rough)))
        self._define('alive.next', f'and {self.flag} %alive, {good}')
        self._define('step.next', 'add i64 %step, 1')
        more = self.emit('icmp ule i64 %step.next, %steps')
        more = self.emit(f'and i1 {more}, {self.some("%alive.next")}')
        self.lines += [f'  br i1 {more}, label %march, label %finish', 'finish:']

    def _finish(self) -> None:
        """Compute the function, or store where the search has ended."""
        valid = '%alive.next'
        if self._solves:
            pivots = [self.load('%found', self._gaps + len(self._others) + 1 + k, self._found)
                      for k in range(len(self._others))]
            regular = [self.emit(f'fcmp ogt {self.real} {x}, {self.const(self._rules.singular)}')
                       for x in pivots]
            for flag in regular:
                valid = self.both(valid, flag)
        else:
            for k in range(self._width):
                self.store(self.load('%pose', k, self._width), self._output, k, self._outputs)
            self.store(self.select(valid, self.const(1.0), self.zero), self._output, self._width,
                       self._outputs)
        # NaN makes all results NaN, and no later sample starts from this pose
        mark = self.select(valid, self._goals[0], self.const(float('nan')))
        self.store(mark, '%pose', self._given[0], self._width)
        if self._solves:
            self._call(self._symbols[1], self._output)
            results = [self.load(self._output, k, self._outputs) for k in range(self._outputs)]
            total = self.not_finite(results)
            finite = self.emit(f'fcmp ord {self.real} {total}, {total}')
            self.store(self.select(finite, results[0], self.const(float('nan'))), self._output,
                       0, self._outputs)

    # instructions -------------------------------------------------------------------------------

    def _unknown_solution(self) -> list[str]:
        """Return the lines that mark the last solution as unknown."""
        double, lines = self.pointers.to('double'), []
        for lane in range(self.lanes):
            place = self._given[0] + lane * self._width
            lines += [f'  %unknown{lane} = getelementptr double, {double} %pose, i64 {place}',
                      f'  store double {number(float("nan"))}, {double} %unknown{lane}, align 8']
        return lines

    def _store_pointers(self) -> None:
        """Store the addresses of the inputs of both functions; the pose is the first of both."""
        double = self.pointers.to('double')
        for k, place in enumerate(('%pose', *self._rest)):
            slot = self.emit(f'getelementptr {double}, {self.pointers.to(double)} %args, i64 {k}')
            self.lines.append(f'  store {double} {place}, {self.pointers.to(double)} {slot}, '
                              'align 8')

    def _call(self, symbol: str, output: str) -> None:
        double = self.pointers.to('double')
        samples = f', i64 {self.lanes}' if self._batch else ''
        self.lines.append(f'  call void @{symbol}({self.pointers.to(double)} %args, '
                          f'{double} {output}{samples})')

    def _define(self, name: str, text: str) -> None:
        self.lines.append(f'  %{name} = {text}')

    def _largest(self, values: Sequence[str]) -> str:
        """Return the largest magnitude; NaN if a value is not finite."""
        sizes = [self.call('fabs', value) for value in values]
        while len(sizes) > 1:  # in pairs, which the processor compares at the same time
            pairs = zip(sizes[::2], sizes[1::2], strict=False)
            sizes = [self.select(self.emit(f'fcmp ogt {self.real} {a}, {b}'), a, b)
                     for a, b in pairs] + sizes[len(sizes) // 2 * 2:]
        return self.emit(f'fadd {self.real} {sizes[0]}, {self.not_finite(values)}')

    def _distance(self, goal: Sequence[str], pose: Sequence[str]) -> str:
        return self._largest([self.binary('sub', x, pose[k])
                              for x, k in zip(goal, self._given, strict=True)])
