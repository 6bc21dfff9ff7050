"""Writes LLVM instructions on doubles or vectors of doubles: arithmetic, sines, loads and stores.

Sine and cosine are inlined: Cody-Waite range reduction, then the minimax polynomials of fdlibm.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from robodyn_ros.kernels.pointers import Pointers

LANES = 4  # samples computed at once in a batch: the doubles of a 256-bit register
# rad: up to this |angle|, two fused steps of reduction have an error below 1 ulp; beyond, libm is
# used
SINCOS_LIMIT = 1e6
_ROUND = 1.5 * 2**52  # adding it to a number below 2^51 rounds to the nearest integer
_PIO2 = (math.pi / 2, 6.123233995736766e-17)  # pi/2 is their sum
_SIN = (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10)
_COS = (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
        -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11)


def number(value: float) -> str:
    """Return the exact notation of a double in LLVM IR."""
    return f'0x{struct.unpack("<Q", struct.pack("<d", value))[0]:016X}'


class Instructions:
    """Instructions on doubles, or on vectors of doubles with one lane for each sample.

    Parameters
    ----------
    lanes : int
        1, or the number of samples computed at once.
    pointers : Pointers
        How pointers are written.
    """

    def __init__(self, lanes: int, pointers: Pointers):
        self.lanes, self.pointers = lanes, pointers
        self.real = 'double' if lanes == 1 else f'<{lanes} x double>'
        self.suffix = 'f64' if lanes == 1 else f'v{lanes}f64'
        self.word = 'i64' if lanes == 1 else f'<{lanes} x i64>'
        self.flag = 'i1' if lanes == 1 else f'<{lanes} x i1>'
        self.lines: list[str] = []
        self.table: dict[str, int] = {}
        self._count = 0

    def emit(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        name = f'%t{self._count}'
        self._count += 1
        self.lines.append(f'  {name} = {text}')
        return name

    def block(self, label: str) -> None:
        """Begin a new basic block, which follows the previous one."""
        self.lines.append(f'  br label %{label}')
        self.lines.append(f'{label}:')

    # constants --------------------------------------------------------------------------------

    def const(self, value: float) -> str:
        """Return a constant operand.

        A vector is loaded from a table, so that the load is part of the instruction that uses it;
        otherwise LLVM would first broadcast the constant into a register.
        """
        if self.lanes == 1:
            return number(value)
        place = self.table.setdefault(f'{self.real} {self.splat(value)}', len(self.table))
        address = self.emit(f'getelementptr %table, {self.pointers.to("%table")} @table, i64 0, '
                            f'i64 {place}')
        return self.emit(f'load {self.real}, {self.pointers.to(self.real)} {address}, align 32, '
                         '!invariant.load !1')

    def splat(self, value: float) -> str:
        """Return a vector with the same number in every lane."""
        return '<' + ', '.join([f'double {number(value)}'] * self.lanes) + '>'

    @property
    def zero(self) -> str:
        """Zero in every lane, as an operand."""
        return number(0.0) if self.lanes == 1 else 'zeroinitializer'

    def splat_int(self, value: int) -> str:
        """Return a vector with the same 64-bit integer in every lane."""
        if self.lanes == 1:
            return str(value)
        return '<' + ', '.join([f'i64 {value}'] * self.lanes) + '>'

    def declarations(self) -> list[str]:
        """Return the declarations that the instructions need, which precede the function."""
        suffix, real = self.suffix, self.real
        lines = [f'declare void @llvm.memset.{self.pointers.suffix}.i64('
                 f'{self.pointers.to("i8")}, i8, i64, i1)',
                 f'declare {real} @llvm.fma.{suffix}({real}, {real}, {real})',
                 f'declare {real} @llvm.copysign.{suffix}({real}, {real})',
                 *(f'declare {real} @llvm.{unary}.{suffix}({real})'
                   for unary in ('sqrt', 'fabs', 'sin', 'cos')),
                 '!0 = !{!"branch_weights", i32 10000, i32 1}', '!1 = !{}']
        if self.table:
            lines += [f'%table = type [{len(self.table)} x {real}]',
                      f'@table = private global %table [{", ".join(self.table)}], align 32']
        return lines

    # arithmetic -------------------------------------------------------------------------------

    def binary(self, operation: str, a: str, b: str) -> str:
        """Return ``a operation b``; a product and a sum may be fused."""
        return self.emit(f'f{operation} contract {self.real} {a}, {b}')

    def neg(self, a: str) -> str:
        """Return -a."""
        return self.emit(f'fneg {self.real} {a}')

    def fma(self, a: str, b: str, c: str) -> str:
        """Return ``a b + c``, rounded once."""
        real = self.real
        return self.emit(
            f'call {real} @llvm.fma.{self.suffix}({real} {a}, {real} {b}, {real} {c})')

    def call(self, name: str, *arguments: str) -> str:
        """Call an intrinsic function of doubles."""
        values = ', '.join(f'{self.real} {argument}' for argument in arguments)
        return self.emit(f'call {self.real} @llvm.{name}.{self.suffix}({values})')

    def select(self, flag: str, a: str, b: str) -> str:
        """Return a where the flag is set, b elsewhere."""
        return self.emit(f'select {self.flag} {flag}, {self.real} {a}, {self.real} {b}')

    def every(self, flag: str) -> str:
        """Return whether a flag is set in all lanes."""
        if self.lanes == 1:
            return flag
        word = self.emit(f'bitcast {self.flag} {flag} to i{self.lanes}')
        return self.emit(f'icmp eq i{self.lanes} {word}, -1')

    def polynomial(self, z: str, coefficients: Sequence[float]) -> str:
        """Return ``c0 + c1 z + c2 z^2 + ...`` by Horner's scheme."""
        value = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(z, value, self.const(coefficient))
        return value

    def sincos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of x, |x| <= SINCOS_LIMIT."""
        # x / (pi/2) to the nearest integer, which is left in the low bits of the sum
        bits = self.fma(x, self.const(2 / math.pi), self.const(_ROUND))
        turns = self.neg(self.emit(f'fsub {self.real} {bits}, {self.const(_ROUND)}'))
        r = self.fma(turns, self.const(_PIO2[1]), self.fma(turns, self.const(_PIO2[0]), x))
        z = self.emit(f'fmul {self.real} {r}, {r}')
        sine = self.fma(self.emit(f'fmul {self.real} {z}, {r}'), self.polynomial(z, _SIN), r)
        cosine = self.polynomial(z, (1.0, -0.5, *_COS))
        # quadrant: bit 0 swaps sine and cosine, bit 1 flips the sine, their sum the cosine
        quadrant = self._bits(bits)
        bit0, bit1 = (self._shift(quadrant, by) for by in (63, 62))
        swap = self.emit(f'icmp slt {self.word} {bit0}, {self.splat_int(0)}')
        both = self.emit(f'xor {self.word} {bit0}, {bit1}')
        return (self._flip(self.select(swap, cosine, sine), bit1),
                self._flip(self.select(swap, sine, cosine), both))

    def _bits(self, value: str) -> str:
        return self.emit(f'bitcast {self.real} {value} to {self.word}')

    def _shift(self, value: str, by: int) -> str:
        return self.emit(f'shl {self.word} {value}, {self.splat_int(by)}')

    def _flip(self, value: str, sign_bits: str) -> str:
        """Negate where the highest bit is set."""
        highest = self.emit(f'and {self.word} {sign_bits}, {self.splat_int(-2**63)}')
        flipped = self.emit(f'xor {self.word} {self._bits(value)}, {highest}')
        return self.emit(f'bitcast {self.word} {flipped} to {self.real}')

    def sign(self, x: str) -> str:
        """Return -1, 0 or 1, and nan for nan."""
        zero = self.const(0.0)
        one = self.call('copysign', self.const(1.0), x)
        plain = self.emit(f'fcmp one {self.real} {x}, {zero}')
        return self.select(plain, one, x)

    def not_finite(self, values: Sequence[str], nan_terms: Sequence[str] = ()) -> str:
        """Return nan where a value is not finite or a term is nan, and 0 elsewhere."""
        sums = [*nan_terms, self.zero, self.zero][:2]  # two sums, computed in parallel
        for k, value in enumerate(values):
            sums[k % 2] = self.fma(value, self.zero, sums[k % 2])
        return self.emit(f'fadd {self.real} {sums[0]}, {sums[1]}')

    # numbers in memory ------------------------------------------------------------------------

    def element(self, pointer: str, index: int) -> str:
        """Return the address of an element of an array of doubles."""
        return self.emit(f'getelementptr double, {self.pointers.to("double")} {pointer}, '
                         f'i64 {index}')

    def load(self, pointer: str, index: int, stride: int) -> str:
        """Load a number of each sample; the samples are ``stride`` doubles apart."""
        double = f'double, {self.pointers.to("double")}'
        if self.lanes == 1:
            return self.emit(f'load {double} {self.element(pointer, index)}, align 8')
        vector = self.pointers.undefined
        for lane in range(self.lanes):
            address = self.element(pointer, index + lane * stride)
            value = self.emit(f'load {double} {address}, align 8')
            vector = self.emit(f'insertelement {self.real} {vector}, double {value}, i32 {lane}')
        return vector

    def load_pair(self, pointer: str, index: int, stride: int) -> tuple[str, str]:
        """Load two adjacent numbers of four samples, with half as many loads and two shuffles."""
        pair, rows = '<2 x double>', []
        for lane in range(4):
            address = self.pointers.cast(self.element(pointer, index + lane * stride), 'double',
                                         pair, self.emit)
            rows.append(self.emit(f'load {pair}, {self.pointers.to(pair)} {address}, align 8'))
        even, odd = (self.emit(f'shufflevector {pair} {rows[k]}, {pair} {rows[k + 2]}, '
                               '<4 x i32> <i32 0, i32 1, i32 2, i32 3>') for k in (0, 1))
        return self._unpack(even, odd)

    def _unpack(self, a: str, b: str) -> tuple[str, str]:
        """Return (a0 b0 a2 b2) and (a1 b1 a3 b3)."""
        low, high = (self.emit(f'shufflevector {self.real} {a}, {self.real} {b}, <4 x i32> '
                               f'<i32 {k}, i32 {k + 4}, i32 {k + 2}, i32 {k + 6}>')
                     for k in (0, 1))
        return low, high

    def store(self, value: str, pointer: str, index: int, stride: int) -> None:
        """Store a number of each sample."""
        for lane in range(self.lanes):
            single = value if self.lanes == 1 else self.emit(
                f'extractelement {self.real} {value}, i32 {lane}')
            address = self.element(pointer, index + lane * stride)
            self.lines.append(f'  store double {single}, {self.pointers.to("double")} {address}, '
                              'align 8')

    def store_pair(self, first: str, second: str, pointer: str, index: int, stride: int) -> None:
        """Store two adjacent numbers of four samples."""
        pair = '<2 x double>'
        for lane, values in enumerate(self._unpack(first, second)):
            for half in (0, 1):
                part = self.emit(
                    f'shufflevector {self.real} {values}, {self.real} {self.pointers.undefined}, '
                    f'<2 x i32> <i32 {2 * half}, i32 {2 * half + 1}>')
                address = self.pointers.cast(
                    self.element(pointer, index + (lane + 2 * half) * stride), 'double', pair,
                    self.emit)
                self.lines.append(f'  store {pair} {part}, {self.pointers.to(pair)} {address}, '
                                  'align 8')

    def clear(self, pointer: str, count: int) -> None:
        """Set doubles to zero."""
        place = self.pointers.cast(pointer, 'double', 'i8', self.emit)
        self.lines.append(f'  call void @llvm.memset.{self.pointers.suffix}.i64('
                          f'{self.pointers.to("i8")} align 8 {place}, i8 0, i64 {8 * count}, '
                          'i1 false)')
