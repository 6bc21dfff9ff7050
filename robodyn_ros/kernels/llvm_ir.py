"""A graph of operations -> LLVM IR, in two forms.

``single`` computes one sample in scalar registers. ``batch`` computes ``LANES`` samples at once in
vector registers, so that nothing depends on what LLVM's vectoriser makes of the loop. Sine and
cosine are inlined: Cody-Waite reduction, then the minimax polynomials of fdlibm.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from robodyn_ros.kernels.expression import Graph

LANES = 4
BLOCK = 1500  # operations a basic block: bounds what instruction selection sees at once
# |angle| up to here is reduced in two fused steps with an error below 1 ulp; beyond, libm
SINCOS_LIMIT = 1e6
_ROUND = 1.5 * 2**52
_PIO2 = (math.pi / 2, 6.123233995736766e-17)  # pi/2 is their sum
_SIN = (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10)
_COS = (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
        -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11)


def number(value: float) -> str:
    """LLVM's exact spelling of a double."""
    return f'0x{struct.unpack("<Q", struct.pack("<d", value))[0]:016X}'


class _Writer:
    """Writes instructions on doubles or on vectors of them."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.real = 'double' if lanes == 1 else f'<{lanes} x double>'
        self.suffix = 'f64' if lanes == 1 else f'v{lanes}f64'
        self.word = 'i64' if lanes == 1 else f'<{lanes} x i64>'
        self.flag = 'i1' if lanes == 1 else f'<{lanes} x i1>'
        self.lines: list[str] = []
        self.table: dict[str, int] = {}
        self._count = 0

    def const(self, value: float) -> str:
        """A constant operand.

        A vector is loaded from a table: the load then is part of the instruction that uses it,
        where LLVM would broadcast the constant into a register first.
        """
        if self.lanes == 1:
            return number(value)
        place = self.table.setdefault(f'{self.real} {self.splat(value)}', len(self.table))
        address = self.emit(f'getelementptr {self.real}, ptr @table, i64 {place}')
        return self.emit(f'load {self.real}, ptr {address}, align 32, !invariant.load !1')

    def splat(self, value: float) -> str:
        """The same number in every lane."""
        return '<' + ', '.join([f'double {number(value)}'] * self.lanes) + '>'

    def emit(self, text: str) -> str:
        name = f'%t{self._count}'
        self._count += 1
        self.lines.append(f'  {name} = {text}')
        return name

    def binary(self, operation: str, a: str, b: str) -> str:
        return self.emit(f'f{operation} contract {self.real} {a}, {b}')

    def neg(self, a: str) -> str:
        return self.emit(f'fneg {self.real} {a}')

    def fma(self, a: str, b: str, c: str) -> str:
        real = self.real
        return self.emit(
            f'call {real} @llvm.fma.{self.suffix}({real} {a}, {real} {b}, {real} {c})')

    def call(self, name: str, a: str) -> str:
        return self.emit(f'call {self.real} @llvm.{name}.{self.suffix}({self.real} {a})')

    def select(self, flag: str, a: str, b: str) -> str:
        return self.emit(f'select {self.flag} {flag}, {self.real} {a}, {self.real} {b}')

    def polynomial(self, z: str, coefficients: Sequence[float]) -> str:
        value = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(z, value, self.const(coefficient))
        return value

    def sincos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of x, |x| <= SINCOS_LIMIT."""
        # x / (pi/2) to the nearest integer: adding 1.5 2^52 rounds, and leaves the integer in the
        # low bits of the sum
        bits = self.fma(x, self.const(2 / math.pi), self.const(_ROUND))
        turns = self.neg(self.emit(f'fsub {self.real} {bits}, {self.const(_ROUND)}'))
        r = self.fma(turns, self.const(_PIO2[1]), self.fma(turns, self.const(_PIO2[0]), x))
        z = self.emit(f'fmul {self.real} {r}, {r}')
        sine = self.fma(self.emit(f'fmul {self.real} {z}, {r}'), self.polynomial(z, _SIN), r)
        cosine = self.polynomial(z, (1.0, -0.5, *_COS))
        # quadrant: bit 0 swaps sine and cosine, bit 1 flips the sine, their sum the cosine
        quadrant = self.cast(bits, self.real, self.word)
        bit0, bit1 = (self.shift(quadrant, by) for by in (63, 62))
        swap = self.emit(f'icmp slt {self.word} {bit0}, {self.splat_int(0)}')
        both = self.emit(f'xor {self.word} {bit0}, {bit1}')
        return (self.flip(self.select(swap, cosine, sine), bit1),
                self.flip(self.select(swap, sine, cosine), both))

    def cast(self, value: str, source: str, target: str) -> str:
        return self.emit(f'bitcast {source} {value} to {target}')

    def shift(self, value: str, by: int) -> str:
        return self.emit(f'shl {self.word} {value}, {self.splat_int(by)}')

    def flip(self, value: str, sign_bits: str) -> str:
        """Negate where the highest bit is set."""
        highest = self.emit(f'and {self.word} {sign_bits}, {self.splat_int(-2**63)}')
        word = self.cast(value, self.real, self.word)
        return self.cast(self.emit(f'xor {self.word} {word}, {highest}'), self.word, self.real)

    def splat_int(self, value: int) -> str:
        """The same 64-bit integer in every lane."""
        if self.lanes == 1:
            return str(value)
        return '<' + ', '.join([f'i64 {value}'] * self.lanes) + '>'

    def sign(self, x: str) -> str:
        """-1, 0 or 1; nan stays nan."""
        zero = self.const(0.0)
        one = self.call_binary('copysign', self.const(1.0), x)
        plain = self.emit(f'fcmp one {self.real} {x}, {zero}')
        return self.select(plain, one, x)

    def call_binary(self, name: str, a: str, b: str) -> str:
        real = self.real
        return self.emit(f'call {real} @llvm.{name}.{self.suffix}({real} {a}, {real} {b})')

    def declarations(self) -> list[str]:
        """What the instructions refer to outside the function."""
        suffix, real = self.suffix, self.real
        lines = ['declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)',
                 f'declare {real} @llvm.fma.{suffix}({real}, {real}, {real})',
                 f'declare {real} @llvm.copysign.{suffix}({real}, {real})',
                 *(f'declare {real} @llvm.{unary}.{suffix}({real})'
                   for unary in ('sqrt', 'fabs', 'sin', 'cos')),
                 '!0 = !{!"branch_weights", i32 10000, i32 1}', '!1 = !{}']
        if self.table:
            lines.append(f'@table = private global [{len(self.table)} x {real}] '
                         f'[{", ".join(self.table)}], align 32')
        return lines

    def block(self, label: str) -> None:
        self.lines.append(f'  br label %{label}')
        self.lines.append(f'{label}:')

    # one input or output number in memory -------------------------------------------------

    def load(self, pointer: str, index: int, stride: int) -> str:
        if self.lanes == 1:
            address = self.emit(f'getelementptr double, ptr {pointer}, i64 {index}')
            return self.emit(f'load double, ptr {address}, align 8')
        vector = 'poison'
        for lane in range(self.lanes):
            address = self.emit(
                f'getelementptr double, ptr {pointer}, i64 {index + lane * stride}')
            element = self.emit(f'load double, ptr {address}, align 8')
            vector = self.emit(
                f'insertelement {self.real} {vector}, double {element}, i32 {lane}')
        return vector

    def load_pair(self, pointer: str, index: int, stride: int) -> tuple[str, str]:
        """Two neighbouring numbers of four samples: half the loads, and two shuffles."""
        rows = []
        for lane in range(4):
            address = self.emit(
                f'getelementptr double, ptr {pointer}, i64 {index + lane * stride}')
            rows.append(self.emit(f'load <2 x double>, ptr {address}, align 8'))
        even, odd = (self.emit(
            f'shufflevector <2 x double> {rows[k]}, <2 x double> {rows[k + 2]}, '
            '<4 x i32> <i32 0, i32 1, i32 2, i32 3>') for k in (0, 1))
        return self.unpack(even, odd)

    def unpack(self, a: str, b: str) -> tuple[str, str]:
        """(a0 b0 a2 b2) and (a1 b1 a3 b3)."""
        low, high = (self.emit(f'shufflevector {self.real} {a}, {self.real} {b}, <4 x i32> '
                               f'<i32 {k}, i32 {k + 4}, i32 {k + 2}, i32 {k + 6}>')
                     for k in (0, 1))
        return low, high

    def store_pair(self, first: str, second: str, pointer: str, index: int, stride: int) -> None:
        """Store two neighbouring numbers of four samples."""
        for lane, pair in enumerate(self.unpack(first, second)):
            for half in (0, 1):
                part = self.emit(f'shufflevector {self.real} {pair}, {self.real} poison, '
                                 f'<2 x i32> <i32 {2 * half}, i32 {2 * half + 1}>')
                address = self.emit(f'getelementptr double, ptr {pointer}, '
                                    f'i64 {index + (lane + 2 * half) * stride}')
                self.lines.append(f'  store <2 x double> {part}, ptr {address}, align 8')

    def store(self, value: str, pointer: str, index: int, stride: int) -> None:
        for lane in range(self.lanes):
            element = value if self.lanes == 1 else self.emit(
                f'extractelement {self.real} {value}, i32 {lane}')
            address = self.emit(
                f'getelementptr double, ptr {pointer}, i64 {index + lane * stride}')
            self.lines.append(f'  store double {element}, ptr {address}, align 8')


class _Samples:
    """The samples at hand: where they are in memory, and the values computed of them."""

    def __init__(self, inputs: Sequence[str], output: str):
        self.inputs, self.output = inputs, output
        self.values: dict[int, str] = {}


def write_ir(graph: Graph, outputs: Sequence[int], sizes: Sequence[int], *, batch: bool,
             name: str) -> str:
    """Return the IR of one kernel.

    ``single``: ``void name(double **inputs, double *output)``.
    ``batch``: ``void name(double **inputs, double *output, int64 samples)``; samples is a multiple
    of ``LANES``, arrays are C-contiguous with a row for each sample, inputs and output do not
    overlap.
    """
    writer = _Writer(LANES if batch else 1)
    arguments = 'ptr noalias readonly %inputs, ptr noalias %output0'
    head = [f'define void @{name}({arguments}{", i64 %samples" if batch else ""}) {{', 'entry:']
    for i in range(len(sizes)):
        head.append(f'  %in{i}.slot = getelementptr ptr, ptr %inputs, i64 {i}')
        head.append(f'  %in{i} = load ptr, ptr %in{i}.slot, align 8')
    if batch:
        head += ['  %none = icmp eq i64 %samples, 0',
                 '  br i1 %none, label %done, label %loop', 'loop:',
                 '  %sample = phi i64 [ 0, %entry ], [ %next, %latch ]']
        pointers = []
        for base, size in (*((f'%in{i}', size) for i, size in enumerate(sizes)),
                           ('%output0', len(outputs))):
            pointers.append(f'{base}.row')
            head += [f'  {base}.at = mul i64 %sample, {size}',
                     f'  {base}.row = getelementptr double, ptr {base}, i64 {base}.at']
        samples = _Samples(pointers[:-1], pointers[-1])
    else:
        samples = _Samples([f'%in{i}' for i in range(len(sizes))], '%output0')
    _write_body(writer, graph, outputs, samples, sizes)
    tail = ['  ret void', '}']
    if batch:
        tail = ['  br label %latch', 'latch:', f'  %next = add nuw i64 %sample, {LANES}',
                '  %more = icmp ult i64 %next, %samples',
                '  br i1 %more, label %loop, label %done', 'done:', '  ret void', '}']
    return '\n'.join([*head, *writer.lines, *tail, *writer.declarations(), ''])


def _write_body(writer: _Writer, graph: Graph, outputs: Sequence[int], samples: _Samples,
                sizes: Sequence[int]) -> None:
    """Write all nodes: what the angles need, all sines and cosines at once, then the rest."""
    used = graph.reachable(outputs)
    angles = sorted({graph.nodes[node][1] for node in used
                     if graph.nodes[node][0] in ('sin', 'cos')})
    before = graph.reachable(angles)
    if any(graph.nodes[node][0] in ('sin', 'cos') for node in before):
        raise ValueError('a sine of a sine: angles must not depend on sines and cosines')
    values = samples.values
    for node in before:
        _write_node(writer, graph, node, samples, sizes)
    sines = _write_sincos(writer, [values[angle] for angle in angles])
    for node in used:
        operation, a, _ = graph.nodes[node]
        if operation in ('sin', 'cos'):
            values[node] = sines[angles.index(a)][operation == 'cos']
    for count, node in enumerate(node for node in used if node not in values):
        _write_node(writer, graph, node, samples, sizes)
        if count % BLOCK == BLOCK - 1:
            writer.block(f'part{count}')
    _write_outputs(writer, graph, outputs, samples)


def _write_outputs(writer: _Writer, graph: Graph, outputs: Sequence[int],
                   samples: _Samples) -> None:
    zeros = {node for node in outputs if graph.nodes[node][:2] == ('const', 0.0)}
    if sum(node in zeros for node in outputs) * 2 > len(outputs):  # clear all, then fill
        writer.lines.append(f'  call void @llvm.memset.p0.i64(ptr align 8 {samples.output}, i8 0, '
                            f'i64 {8 * writer.lanes * len(outputs)}, i1 false)')
    else:
        zeros = set()
    index = 0
    while index < len(outputs):
        pair = outputs[index:index + 2]
        if writer.lanes == 4 and len(pair) == 2 and not zeros.intersection(pair):
            first, second = (_operand(writer, graph, samples, node) for node in pair)
            writer.store_pair(first, second, samples.output, index, len(outputs))
            index += 2
        else:
            if pair[0] not in zeros:
                writer.store(_operand(writer, graph, samples, pair[0]), samples.output, index,
                             len(outputs))
            index += 1
        if index % BLOCK < 2:
            writer.block(f'stored{index}')


def _write_node(writer: _Writer, graph: Graph, node: int, samples: _Samples,
                sizes: Sequence[int]) -> None:
    operation, a, b = graph.nodes[node]
    values = samples.values
    if node in values:  # loaded with its neighbour
        return
    if operation == 'input':
        partner = graph.find(('input', a, b ^ 1))
        if writer.lanes == 4 and partner is not None:
            pair = writer.load_pair(samples.inputs[a], b & ~1, sizes[a])
            values[node], values[partner] = pair if b % 2 == 0 else reversed(pair)
        else:
            values[node] = writer.load(samples.inputs[a], b, sizes[a])
    elif operation in ('add', 'sub', 'mul', 'div'):
        values[node] = writer.binary(operation, _operand(writer, graph, samples, a),
                                     _operand(writer, graph, samples, b))
    elif operation == 'neg':
        values[node] = writer.neg(values[a])
    elif operation == 'sqrt':
        values[node] = writer.call('sqrt', values[a])
    elif operation == 'sign':
        values[node] = writer.sign(values[a])


def _operand(writer: _Writer, graph: Graph, samples: _Samples, node: int) -> str:
    operation, a, _ = graph.nodes[node]
    return writer.const(a) if operation == 'const' else samples.values[node]


def _write_sincos(writer: _Writer, angles: Sequence[str]) -> list[tuple[str, str]]:
    """Sines and cosines; if one angle is beyond the limit (or nan), all take libm's slow way."""
    if not angles:
        return []
    largest = [writer.emit(f'fcmp ole {writer.real} {writer.call("fabs", x)}, '
                           f'{writer.const(SINCOS_LIMIT)}') for x in angles]
    small = largest[0]
    for flag in largest[1:]:
        small = writer.emit(f'and {writer.flag} {small}, {flag}')
    if writer.lanes > 1:
        word = writer.emit(f'bitcast {writer.flag} {small} to i{writer.lanes}')
        small = writer.emit(f'icmp eq i{writer.lanes} {word}, -1')
    writer.lines += [f'  br i1 {small}, label %fast, label %slow, !prof !0', 'fast:']
    quick = [value for x in angles for value in writer.sincos(x)]
    writer.lines += ['  br label %joined', 'slow:']
    exact = [writer.call(name, x) for x in angles for name in ('sin', 'cos')]
    writer.lines += ['  br label %joined', 'joined:']
    both = [writer.emit(f'phi {writer.real} [ {one}, %fast ], [ {other}, %slow ]')
            for one, other in zip(quick, exact, strict=True)]
    return list(zip(both[::2], both[1::2], strict=True))
