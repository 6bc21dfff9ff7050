"""C functions that the exported equations may call: sign, sine and cosine.

Sine and cosine subtract multiples of pi/2 in three steps with exact products (Cody and Waite),
then evaluate polynomials on [-pi/4, pi/4] (coefficients of fdlibm, and of Cephes in single
precision). The quadrant selects between the polynomials by bit masks, without a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robodyn_ros.export.c_code import Dialect

# largest |angle| for which the first two products of the reduction are exact, rad; by whether
# numbers have single precision
SINCOS_LIMIT = {False: 1e6, True: 2e3}
# largest absolute error of sine and cosine that was found within this limit, likewise
SINCOS_ERROR = {False: 2.3e-16, True: 1e-7}

_SIGN = '''
/* -1, 0 or 1; not a number if x is not a number */
static inline {real} {prefix}_sign({real} x)
{{
    return ({real})((x > 0) - (x < 0)) + (x - x);
}}
'''

_SINCOS = '''
#if defined(__FAST_MATH__)
#error "the sine and cosine of this file need sums in the order written: no -ffast-math"
#endif

/* Sine and cosine of x; absolute error below {error} for |x| up to {limit} rad. */
static inline void {prefix}_sincos({real} x, {real} *sine, {real} *cosine)
{{
    /* adding 1.5 * 2^{mantissa} rounds to an integer, whose last bits are those of the sum */
    const {real} shifted = x * {two_over_pi} + {magic};
    const {real} turns = shifted - {magic};
    const {real} r = ((x - turns * {part1}) - turns * {part2}) - turns * {part3};
    const {real} z = r * r;
    const {real} sin_r = r + z * r * {sin_polynomial};
    const {real} cos_r = 1 - z * {half} + z * z * {cos_polynomial};
    {word} quadrant, sin_bits, cos_bits, swap, result;
    memcpy(&quadrant, &shifted, sizeof quadrant);
    memcpy(&sin_bits, &sin_r, sizeof sin_bits);
    memcpy(&cos_bits, &cos_r, sizeof cos_bits);
    swap = ({word})0 - (quadrant & 1); /* all bits set in odd quadrants */
    result = ((sin_bits & ~swap) | (cos_bits & swap)) ^ ((quadrant & 2) << {to_sign});
    memcpy(sine, &result, sizeof result);
    result = ((cos_bits & ~swap) | (sin_bits & swap)) ^ (((quadrant + 1) & 2) << {to_sign});
    memcpy(cosine, &result, sizeof result);
}}
'''

_DOUBLE: dict[str, Any] = {
    'word': 'uint64_t', 'to_sign': 62, 'mantissa': 52, 'half': '0.5',
    'two_over_pi': '6.36619772367581382433e-01', 'magic': '6755399441055744.0',
    'part1': '1.57079632673412561417e+00', 'part2': '6.07710050630396597660e-11',
    'part3': '2.02226624879595063154e-21',
    'sin': ('-1.66666666666666324348e-01', '8.33333333332248946124e-03',
            '-1.98412698298579493134e-04', '2.75573137070700676789e-06',
            '-2.50507602534068634195e-08', '1.58969099521155010221e-10'),
    'cos': ('4.16666666666666019037e-02', '-1.38888888888741095749e-03',
            '2.48015872894767294178e-05', '-2.75573143513906633035e-07',
            '2.08757232129817482790e-09', '-1.13596475577881948265e-11'),
}
_SINGLE: dict[str, Any] = {
    'word': 'uint32_t', 'to_sign': 30, 'mantissa': 23, 'half': '0.5f',
    'two_over_pi': '6.3661977237e-01f', 'magic': '12582912.0f',
    'part1': '1.5703125f', 'part2': '4.837512969970703125e-4f',
    'part3': '7.549789948768648e-8f',
    'sin': ('-1.6666654611e-1f', '8.3321608736e-3f', '-1.9515295891e-4f'),
    'cos': ('4.166664568298827e-2f', '-1.388731625493765e-3f', '2.443315711809948e-5f'),
}


def c_functions(dialect: Dialect) -> dict[str, str]:
    """Return the text of each function in a dialect of C, by the name of the function."""
    names = {'prefix': dialect.prefix, 'real': dialect.real}
    numbers = _SINGLE if dialect.single else _DOUBLE
    return {'sign': _SIGN.format(**names), 'sincos': _SINCOS.format(
        **names, **numbers, sin_polynomial=_horner(numbers['sin']),
        cos_polynomial=_horner(numbers['cos']), error=f'{SINCOS_ERROR[dialect.single]:g}',
        limit=f'{SINCOS_LIMIT[dialect.single]:g}')}


def _horner(coefficients: Sequence[str]) -> str:
    text = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        text = f'({coefficient} + z * {text})'
    return text
