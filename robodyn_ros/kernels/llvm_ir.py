"""A graph of operations -> LLVM IR, in two forms.

``single`` computes one sample in scalar registers. ``batch`` computes ``LANES`` samples at once in
vector registers, so that nothing depends on what LLVM's vectoriser makes of the loop.
Sine and cosine are inlined: Cody-Waite reduction, then the minimax polynomials of fdlibm.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from robodyn_ros.kernels.expression import Graph

LANES = 4
BLOCK = 1500  # operations a basic block: bounds what instruction selection sees at once
# |angle| up to here is reduced in three fused steps with an error below 1 ulp; beyond, libm
SINCOS_LIMIT = 1e6
# pi/2 = the sum, 33 bits each but the last (the well-known split of fdlibm's rem_pio2)
_PIO2 = (1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
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
        self.integer = 'i32' if lanes == 1 else f'<{lanes} x i32>'
        self.flag = 'i1' if lanes == 1 else f'<{lanes} x i1>'
        self.lines: list[str] = []
        self.table: list[str] = []
        self._count = 0

    def const(self, value: float) -> str:
        """A constant operand.

        A vector is loaded from a table in which every use has its own place: the load then is part
        of the instruction that uses it, where LLVM would broadcast it into a register first.
        """
        if self.lanes == 1:
            return number(value)
        self.table.append(f'{self.real} {self.splat(value)}')
        address = self.emit(f'getelementptr {self.real}, ptr @table, i64 {len(self.table) - 1}')
        return self.emit(f'load {self.real}, ptr {address}, align 32, !invariant.load !1')

    def splat(self, value: float) -> str:
        """The same number in every lane."""
        return '<' + ', '.join([f'double {number(value)}'] * self.lanes) + '>'

    def int_const(self, value: int) -> str:
        if self.lanes == 1:
            return str(value)
        return '<' + ', '.join([f'i32 {value}'] * self.lanes) + '>'

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
        turns = self.call('rint', self.binary('mul', x, self.const(0.6366197723675814)))
        minus = self.neg(turns)
        r = self.fma(minus, self.const(_PIO2[0]), x)
        high = self.fma(minus, self.const(_PIO2[1]), r)
        # the rounding error of the second step, given back in the third (two-sum)
        error = self.fma(minus, self.const(_PIO2[1]), self._sub(r, high))
        low = self.fma(minus, self.const(_PIO2[2]), error)
        r = self.emit(f'fadd {self.real} {high}, {low}')
        z = self.emit(f'fmul {self.real} {r}, {r}')
        sine = self.fma(self.emit(f'fmul {self.real} {z}, {r}'), self.polynomial(z, _SIN), r)
        cosine = self.polynomial(z, _COS)
        cosine = self.fma(z, cosine, self.const(-0.5))
        cosine = self.fma(z, cosine, self.const(1.0))
        quadrant = self.emit(f'fptosi {self.real} {turns} to {self.integer}')
        swap, flip_sin, flip_cos = (self._bit(quadrant, bit, plus)
                                    for bit, plus in ((1, 0), (2, 0), (2, 1)))
        s, c = self.select(swap, cosine, sine), self.select(swap, sine, cosine)
        return (self.select(flip_sin, self.neg(s), s), self.select(flip_cos, self.neg(c), c))

    def _sub(self, a: str, b: str) -> str:
        return self.emit(f'fsub {self.real} {a}, {b}')

    def _bit(self, quadrant: str, bit: int, plus: int) -> str:
        integer = self.integer
        shifted = quadrant
        if plus:
            shifted = self.emit(f'add {integer} {quadrant}, {self.int_const(plus)}')
        masked = self.emit(f'and {integer} {shifted}, {self.int_const(bit)}')
        return self.emit(f'icmp ne {integer} {masked}, {self.int_const(0)}')

    def sign(self, x: str) -> str:
        """-1, 0 or 1; nan stays nan."""
        zero = self.const(0.0)
        one = self.call_binary('copysign', self.const(1.0), x)
        plain = self.emit(f'fcmp one {self.real} {x}, {zero}')
        return self.select(plain, one, x)

    def call_binary(self, name: str, a: str, b: str) -> str:
        real = self.real
        return self.emit(f'call {real} @llvm.{name}.{self.suffix}({real} {a}, {real} {b})')

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

    def store(self, value: str, pointer: str, index: int, stride: int) -> None:
        for lane in range(self.lanes):
            element = value if self.lanes == 1 else self.emit(
                f'extractelement {self.real} {value}, i32 {lane}')
            address = self.emit(
                f'getelementptr double, ptr {pointer}, i64 {index + lane * stride}')
            self.lines.append(f'  store double {element}, ptr {address}, align 8')


def write_ir(graph: Graph, outputs: Sequence[int], sizes: Sequence[int], *, batch: bool,
             name: str) -> str:
    """Return the IR of one kernel.

    ``single``: ``void name(double **inputs, double *output)``.
    ``batch``: ``void name(double **inputs, double *output, int64 samples)``; samples is a multiple
    of ``LANES``, arrays are C-contiguous with a row for each sample, inputs and output do not
    overlap.
    """
    writer = _Writer(LANES if batch else 1)
    pointers = [f'%in{i}' for i in range(len(sizes))]
    arguments = 'ptr noalias readonly %inputs, ptr noalias %output0'
    head = [f'define void @{name}({arguments}{", i64 %samples" if batch else ""}) {{', 'entry:']
    for i, pointer in enumerate(pointers):
        head.append(f'  {pointer}.slot = getelementptr ptr, ptr %inputs, i64 {i}')
        head.append(f'  {pointer}.base = load ptr, ptr {pointer}.slot, align 8')
    used = graph.reachable(outputs)
    if batch:
        head += ['  %none = icmp eq i64 %samples, 0',
                 '  br i1 %none, label %done, label %loop', 'loop:',
                 '  %sample = phi i64 [ 0, %entry ], [ %next, %latch ]']
        for pointer, size in zip(pointers, sizes, strict=True):
            head += [f'  {pointer}.at = mul i64 %sample, {size}',
                     f'  {pointer} = getelementptr double, ptr {pointer}.base, i64 {pointer}.at']
        head += [f'  %output.at = mul i64 %sample, {len(outputs)}',
                 '  %output = getelementptr double, ptr %output0, i64 %output.at']
    else:
        pointers = [f'{pointer}.base' for pointer in pointers]
    output = '%output' if batch else '%output0'
    zeros = {node for node in outputs if graph.nodes[node][:2] == ('const', 0.0)}
    if sum(node in zeros for node in outputs) * 2 > len(outputs):  # clear all, then fill
        writer.lines.append(f'  call void @llvm.memset.p0.i64(ptr align 8 {output}, i8 0, '
                            f'i64 {8 * writer.lanes * len(outputs)}, i1 false)')
    else:
        zeros = set()
    values = _write_body(writer, graph, used, pointers, sizes)
    for index, node in enumerate(outputs):
        if node in zeros:
            continue
        writer.store(_operand(writer, graph, values, node), output, index, len(outputs))
        if index % BLOCK == BLOCK - 1:
            writer.block(f'stored{index}')
    tail = ['  ret void', '}']
    if batch:
        tail = ['  br label %latch', 'latch:', f'  %next = add nuw i64 %sample, {LANES}',
                '  %more = icmp ult i64 %next, %samples',
                '  br i1 %more, label %loop, label %done', 'done:', '  ret void', '}']
    suffix, real = writer.suffix, writer.real
    declarations = ['declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)',
                    f'declare {real} @llvm.fma.{suffix}({real}, {real}, {real})',
                    f'declare {real} @llvm.copysign.{suffix}({real}, {real})',
                    *(f'declare {real} @llvm.{unary}.{suffix}({real})'
                      for unary in ('rint', 'sqrt', 'fabs', 'sin', 'cos')),
                    '!0 = !{!"branch_weights", i32 10000, i32 1}', '!1 = !{}']
    if writer.table:
        declarations.append(f'@table = private global [{len(writer.table)} x {real}] '
                            f'[{", ".join(writer.table)}], align 32')
    return '\n'.join([*head, *writer.lines, *tail, *declarations, ''])


def _write_body(writer: _Writer, graph: Graph, used: Sequence[int], pointers: Sequence[str],
                sizes: Sequence[int]) -> dict[int, str]:
    """Write all nodes: what the angles need, all sines and cosines at once, then the rest."""
    values: dict[int, str] = {}
    angles = sorted({graph.nodes[node][1] for node in used
                     if graph.nodes[node][0] in ('sin', 'cos')})
    before = set(graph.reachable(angles))
    if any(graph.nodes[node][0] in ('sin', 'cos') for node in before):
        raise ValueError('a sine of a sine: angles must not depend on sines and cosines')
    _write_nodes(writer, graph, [node for node in used if node in before], pointers, sizes, values)
    sines = _write_sincos(writer, [values[angle] for angle in angles])
    for node in used:
        operation, a, _ = graph.nodes[node]
        if operation in ('sin', 'cos'):
            values[node] = sines[angles.index(a)][operation == 'cos']
    _write_nodes(writer, graph, [node for node in used if node not in values], pointers, sizes,
                 values)
    return values


def _write_nodes(writer: _Writer, graph: Graph, nodes: Sequence[int], pointers: Sequence[str],
                 sizes: Sequence[int], values: dict[int, str]) -> None:
    for count, node in enumerate(nodes):
        operation, a, b = graph.nodes[node]
        if operation == 'const':
            continue
        if operation == 'input':
            values[node] = writer.load(pointers[a], b, sizes[a])
        elif operation in ('add', 'sub', 'mul', 'div'):
            values[node] = writer.binary(operation, _operand(writer, graph, values, a),
                                         _operand(writer, graph, values, b))
        elif operation == 'neg':
            values[node] = writer.neg(values[a])
        elif operation == 'sqrt':
            values[node] = writer.call('sqrt', values[a])
        else:
            values[node] = writer.sign(values[a])
        if count % BLOCK == BLOCK - 1:
            writer.block(f'part{len(values)}')


def _operand(writer: _Writer, graph: Graph, values: dict[int, str], node: int) -> str:
    operation, a, _ = graph.nodes[node]
    return writer.const(a) if operation == 'const' else values[node]


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
    writer.lines.append(f'  br i1 {small}, label %fast, label %slow, !prof !0')
    writer.lines.append('fast:')
    fast = [value for x in angles for value in writer.sincos(x)]
    writer.lines += ['  br label %joined', 'slow:']
    slow = [writer.call(name, x) for x in angles for name in ('sin', 'cos')]
    writer.lines += ['  br label %joined', 'joined:']
    joined = [writer.emit(f'phi {writer.real} [ {quick}, %fast ], [ {exact}, %slow ]')
              for quick, exact in zip(fast, slow, strict=True)]
    return list(zip(joined[::2], joined[1::2], strict=True))
