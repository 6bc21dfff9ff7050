"""Writes a graph of operations as LLVM IR, in two forms.

``single`` computes one sample in scalar registers. ``batch`` computes `LANES` samples at once in
vector registers, so that the speed does not depend on LLVM's vectoriser. If any input or guard of
a sample is not finite, all its results are nan.
"""

from __future__ import annotations

from collections.abc import Sequence

from robodyn_ros.kernels.expression import Graph
from robodyn_ros.kernels.instructions import LANES, SINCOS_LIMIT, Instructions, number
from robodyn_ros.kernels.pointers import Pointers

BLOCK = 1500  # operations in a basic block, which bounds the time of instruction selection


def write_ir(graph: Graph, outputs: Sequence[int], sizes: Sequence[int], *, batch: bool,
             name: str, pointers: Pointers, guards: Sequence[int] = ()) -> str:
    """Return the IR of one kernel.

    ``single``: ``void name(double **inputs, double *output)``.
    ``batch``: ``void name(double **inputs, double *output, int64 samples)``; samples is a multiple
    of `LANES`, arrays are C-contiguous with a row for each sample, inputs and output do not
    overlap.

    Parameters
    ----------
    graph : Graph
        The operations.
    outputs : sequence of int
        The node of each element of the result.
    sizes : sequence of int
        Length of each input.
    batch : bool
        Whether to write the form ``batch``.
    name : str
        Name of the function.
    pointers : Pointers
        How the installed LLVM writes pointers.
    guards : sequence of int
        Nodes that must be finite, as the inputs must.
    """
    head, places, tail = frame(name, sizes, len(outputs), batch=batch, pointers=pointers)
    writer = _KernelWriter(graph, outputs, sizes, places, LANES if batch else 1, pointers)
    writer.write(guards)
    return '\n'.join([*writer.declarations(), *_fill(pointers), *head, *writer.lines, *tail, ''])


def frame(name: str, sizes: Sequence[int], count: int, *, batch: bool, pointers: Pointers,
          room: Sequence[str] = ()) -> tuple[list[str], list[str], list[str]]:
    """Return what stands around the instructions of a function, see `write_ir`.

    Parameters
    ----------
    name, sizes, batch, pointers
        See `write_ir`.
    count : int
        Length of the result.
    room : sequence of str
        Lines that allocate memory, at the beginning of the function.

    Returns
    -------
    head : list of str
        Lines before the instructions, among them the head of the loop over samples.
    places : list of str
        Pointers to the inputs of the samples, then to their output.
    tail : list of str
        Lines after the instructions.
    """
    double = pointers.to('double')
    arguments = f'{pointers.to(double)} noalias readonly %inputs, {double} noalias %output0'
    head = [f'define void @{name}({arguments}{", i64 %samples" if batch else ""}) {{', 'entry:',
            *room]
    for i in range(len(sizes)):
        head.append(f'  %in{i}.slot = getelementptr {double}, {pointers.to(double)} %inputs, '
                    f'i64 {i}')
        head.append(f'  %in{i} = load {double}, {pointers.to(double)} %in{i}.slot, align 8')
    places = [*(f'%in{i}' for i in range(len(sizes))), '%output0']
    if not batch:
        return head, places, ['  ret void', '}']
    head += ['  %none = icmp eq i64 %samples, 0',
             '  br i1 %none, label %done, label %loop', 'loop:',
             '  %sample = phi i64 [ 0, %entry ], [ %next, %latch ]']
    for base, size in zip(places, (*sizes, count), strict=True):
        head += [f'  {base}.at = mul i64 %sample, {size}',
                 f'  {base}.row = getelementptr double, {double} {base}, i64 {base}.at']
    tail = ['  br label %latch', 'latch:', f'  %next = add nuw i64 %sample, {LANES}',
            '  %more = icmp ult i64 %next, %samples',
            '  br i1 %more, label %loop, label %done', 'done:', '  ret void', '}']
    return head, [f'{base}.row' for base in places], tail


def _fill(pointers: Pointers) -> list[str]:
    """Return the lines of the function that fills an array with nan."""
    double = pointers.to('double')
    return [f'define private void @fill({double} %array, i64 %count) noinline {{', 'entry:',
            '  br label %each', 'each:',
            '  %k = phi i64 [ 0, %entry ], [ %k.next, %each ]',
            f'  %place = getelementptr double, {double} %array, i64 %k',
            f'  store double {number(float("nan"))}, {double} %place, align 8',
            '  %k.next = add i64 %k, 1', '  %more = icmp ult i64 %k.next, %count',
            '  br i1 %more, label %each, label %done', 'done:', '  ret void', '}']


class _KernelWriter(Instructions):
    """Writes the nodes of a graph for one sample, or for the samples of a vector.

    Parameters
    ----------
    graph, outputs, sizes, pointers
        See `write_ir`.
    places : sequence of str
        Pointers to the inputs of the samples, then to their output.
    lanes : int
        Number of samples.
    """

    def __init__(self, graph: Graph, outputs: Sequence[int], sizes: Sequence[int],
                 places: Sequence[str], lanes: int, pointers: Pointers):
        super().__init__(lanes, pointers)
        self._graph, self._outputs, self._sizes = graph, outputs, sizes
        self._inputs, self._output = places[:-1], places[-1]
        self._values: dict[int, str] = {}

    def write(self, guards: Sequence[int] = ()) -> None:
        """Write all nodes: first the angles, then all sines and cosines at once, then the rest."""
        graph, values = self._graph, self._values
        inputs = [graph.node('input', i, k).number for i, size in enumerate(self._sizes)
                  for k in range(size)]
        used = graph.reachable([*self._outputs, *guards, *inputs])
        angles = sorted({graph.nodes[node][1] for node in used
                         if graph.nodes[node][0] in ('sin', 'cos')})
        before = graph.reachable(angles)
        if any(graph.nodes[node][0] in ('sin', 'cos') for node in before):
            raise ValueError('an angle depends on a sine or cosine, which is not supported')
        for node in before:
            self._node(node)
        sines, nan_terms = self._sines([values[angle] for angle in angles])
        for node in used:
            operation, a, _ = graph.nodes[node]
            if operation in ('sin', 'cos'):
                values[node] = sines[angles.index(a)][operation == 'cos']
        for count, node in enumerate(node for node in used if node not in values):
            self._node(node)
            if count % BLOCK == BLOCK - 1:
                self.block(f'part{count}')
        self._store_outputs()
        self._invalidate_samples(
            [values[node] for node in [*inputs, *guards] if node not in angles], nan_terms)

    def _node(self, node: int) -> None:
        operation, a, b = self._graph.nodes[node]
        values = self._values
        if node in values:  # it was loaded as one of a pair
            return
        if operation == 'input':
            partner = self._graph.find(('input', a, b ^ 1))
            if self.lanes == 4 and partner is not None:
                pair = self.load_pair(self._inputs[a], b & ~1, self._sizes[a])
                values[node], values[partner] = pair if b % 2 == 0 else reversed(pair)
            else:
                values[node] = self.load(self._inputs[a], b, self._sizes[a])
        elif operation in ('add', 'sub', 'mul', 'div'):
            values[node] = self.binary(operation, self._operand(a), self._operand(b))
        elif operation == 'neg':
            values[node] = self.neg(values[a])
        elif operation == 'sqrt':
            values[node] = self.call('sqrt', values[a])
        elif operation == 'sign':
            values[node] = self.sign(values[a])

    def _operand(self, node: int) -> str:
        operation, a, _ = self._graph.nodes[node]
        return self.const(a) if operation == 'const' else self._values[node]

    def _sines(self, angles: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
        """Write sines and cosines; if an angle is beyond the limit or nan, libm computes them all.

        Also returns a term that is nan where an angle is not finite, and 0 elsewhere.
        """
        if not angles:
            return [], []
        within = [self.emit(f'fcmp ole {self.real} {self.call("fabs", x)}, '
                            f'{self.const(SINCOS_LIMIT)}') for x in angles]
        small = within[0]
        for flag in within[1:]:
            small = self.emit(f'and {self.flag} {small}, {flag}')
        self.lines += [f'  br i1 {self.every(small)}, label %fast, label %slow, !prof !0', 'fast:']
        quick = [value for x in angles for value in self.sincos(x)]
        self.lines += ['  br label %joined', 'slow:']
        exact = [self.call(name, x) for x in angles for name in ('sin', 'cos')]
        invalid = self.not_finite(angles)
        self.lines += ['  br label %joined', 'joined:']
        both = [self.emit(f'phi {self.real} [ {one}, %fast ], [ {other}, %slow ]')
                for one, other in zip(quick, exact, strict=True)]
        nan_term = self.emit(f'phi {self.real} [ {self.zero}, %fast ], [ {invalid}, %slow ]')
        return list(zip(both[::2], both[1::2], strict=True)), [nan_term]

    def _store_outputs(self) -> None:
        outputs = self._outputs
        zeros = {node for node in outputs if self._graph.nodes[node][:2] == ('const', 0.0)}
        if sum(node in zeros for node in outputs) * 2 > len(outputs):  # clear all, then fill
            self.clear(self._output, self.lanes * len(outputs))
        else:
            zeros = set()
        index = 0
        while index < len(outputs):
            pair = outputs[index:index + 2]
            if self.lanes == 4 and len(pair) == 2 and not zeros.intersection(pair):
                first, second = (self._operand(node) for node in pair)
                self.store_pair(first, second, self._output, index, len(outputs))
                index += 2
            else:
                if pair[0] not in zeros:
                    self.store(self._operand(pair[0]), self._output, index, len(outputs))
                index += 1
            if index % BLOCK < 2:
                self.block(f'stored{index}')

    def _invalidate_samples(self, inputs: Sequence[str], nan_terms: Sequence[str]) -> None:
        """Fill the output of a sample with nan if an input or a guard is not finite."""
        if not inputs and not nan_terms:
            return
        total = self.not_finite(inputs, nan_terms)
        finite = self.emit(f'fcmp ord {self.real} {total}, {total}')
        self.lines += [f'  br i1 {self.every(finite)}, label %good, label %invalid, !prof !0',
                       'invalid:']
        double, count = self.pointers.to('double'), len(self._outputs)
        for lane in range(self.lanes):
            row = self.element(self._output, lane * count)
            flag = finite if self.lanes == 1 else self.emit(
                f'extractelement {self.flag} {finite}, i32 {lane}')
            self.lines += [f'  br i1 {flag}, label %keep{lane}, label %fill{lane}',
                           f'fill{lane}:', f'  call void @fill({double} {row}, i64 {count})',
                           f'  br label %keep{lane}', f'keep{lane}:']
        self.block('good')
