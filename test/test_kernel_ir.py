"""The text of kernels: pointers as each version of LLVM requires them."""

import ctypes
import re

import numpy as np
import pytest

from robodyn_ros.kernels import compiler, instructions, sign
from robodyn_ros.kernels.expression import trace
from robodyn_ros.kernels.fast_call import write_fast_call
from robodyn_ros.kernels.llvm_ir import write_ir
from robodyn_ros.kernels.pointers import Pointers

OPAQUE, TYPED = Pointers(opaque=True), Pointers(opaque=False)
SIZES = (4, 3)
KIND = r'(?:void \([^()]*\)|i8\* \([^()]*\)|<\d+ x \w+>|%table|\w+)\**'


def everything(a, b):
    """Angles, signs, divisions, roots, and mostly zeros, so that the output is cleared."""
    values = [np.sin(a[0]) * b[0], np.cos(a[1] + a[0]), a[2] / (b[1] * b[1] + 1.0), sign(b[2]),
              np.sqrt(a[3] * a[3] + 2.0), 7.0]
    return np.array([*values, *[0.0] * 8])


def text(pointers, batch, name='kernel', function=everything):
    graph, outputs = trace(function, SIZES)
    return write_ir(graph, outputs, SIZES, batch=batch, name=name, pointers=pointers)


TEXTS = {'single': lambda p: text(p, False), 'batch': lambda p: text(p, True),
         'dense': lambda p: text(p, True, function=lambda a, b: a[:3] * b),
         'fast call': write_fast_call}


def as_opaque(typed):
    """Every pointer type written as `ptr`; casts between pointers are allowed there, too."""
    opaque = re.sub(r'(?:void|i8\*) \([^()]*\)\*', 'ptr', typed)
    opaque = re.sub(r'(?:<\d+ x double>|%table|\b(?:double|i8|i32|i64))\*+', 'ptr', opaque)
    return opaque.replace('p0i8', 'p0').replace('undef', 'poison')


@pytest.mark.parametrize('name', TEXTS)
def test_typed_pointers_are_used_as_the_type_they_were_defined_with(name):
    """Each load, store, address and cast uses a pointer as the type it was defined with."""
    typed = TEXTS[name](TYPED)
    assert not re.search(r'\bptr\b', typed)
    kinds, checked = {}, {'load': 0, 'store': 0, 'getelementptr': 0, 'cast': 0}

    def uses(value, kind):
        if value.startswith('%'):
            assert kinds[value] == kind, (value, kinds[value], kind)

    for line in typed.splitlines():
        line = line.strip()
        if line.startswith('define'):
            kinds = dict(reversed(pair) for pair in re.findall(
                rf'({KIND})(?: noalias| readonly)* (%[\w.]+)', line))
            kinds['@table'] = '%table*'
        result, _, operation = line.partition(' = ')
        if found := re.fullmatch(rf'load ({KIND}), ({KIND}) (\S+?)(?:,.*)?', operation):
            assert found[2] == found[1] + '*'
            uses(found[3], found[2])
            kinds[result] = found[1]
            checked['load'] += 1
        elif found := re.fullmatch(rf'store ({KIND}) (\S+), ({KIND}) (\S+?)(?:,.*)?', line):
            assert found[3] == found[1] + '*'
            uses(found[4], found[3])
            if found[2] in kinds:
                uses(found[2], found[1])
            checked['store'] += 1
        elif found := re.fullmatch(rf'getelementptr ({KIND}), ({KIND}) (\S+), .*', operation):
            assert found[2] == found[1] + '*'
            uses(found[3], found[2])
            kinds[result] = '<4 x double>*' if found[1] == '%table' else found[2]
            checked['getelementptr'] += 1
        elif found := re.fullmatch(rf'bitcast ({KIND}) (\S+) to ({KIND}\*)', operation):
            uses(found[2], found[1])
            kinds[result] = found[3]
            checked['cast'] += 1
        elif operation.startswith(('alloca i8,', 'call i8* (')):
            kinds[result] = 'i8*'
    assert checked['load'] > 4 and checked['store'] and checked['getelementptr'] > 4
    assert checked['cast'] or name == 'single'


@pytest.mark.parametrize('name', TEXTS)
def test_typed_and_opaque_texts_differ_only_in_pointers(name):
    """Without casts, and with `ptr` for every pointer, the typed text is the other one."""
    def plain(lines):
        """Without casts, values numbered in order."""
        aliases, names = {}, {}
        kept = []
        for line in lines.splitlines():
            line = re.sub(r'%[\w.]+', lambda m: aliases.get(m[0], m[0]), line)
            if cast := re.fullmatch(r'\s*(%\S+) = bitcast ptr (%\S+) to ptr', line):
                aliases[cast[1]] = cast[2]
            else:
                kept.append(re.sub(r'%t\d+', lambda m: names.setdefault(m[0], f'%{len(names)}'),
                                   line))
        return kept

    assert plain(as_opaque(TEXTS[name](TYPED))) == plain(TEXTS[name](OPAQUE))


@pytest.mark.parametrize('batch', [False, True])
@pytest.mark.parametrize('written', ['native', 'typed'])
def test_both_texts_compute_the_same(batch, written, rng):
    """Where LLVM has no typed pointers any more, their text is read with `ptr` for each."""
    name = f'robodyn_test_{written}_{batch}'
    native = compiler.native_pointers()
    source = text(native if written == 'native' else TYPED, batch, name)
    if native.opaque:
        source = as_opaque(source)
    engine = compiler._engine()
    engine.add_object_file(compiler.llvm.ObjectFileRef.from_data(compiler.compile_ir(source)))
    engine.finalize_object()
    samples = 2 * instructions.LANES
    a, b = (rng.normal(size=(samples, size)) for size in SIZES)
    out = np.empty((samples, 14))
    arguments = ctypes.c_void_p * 2
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        engine.get_function_address(name))
    for k in range(1 if batch else samples):
        function(arguments(a[k:].ctypes.data, b[k:].ctypes.data), out[k:].ctypes.data, samples)
    np.testing.assert_allclose(out, [everything(*row) for row in zip(a, b, strict=True)],
                               rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize('name', TEXTS)
def test_the_typed_text_compiles_where_llvm_has_typed_pointers(name):
    if compiler.native_pointers().opaque:
        pytest.skip(f'LLVM {compiler.llvm.llvm_version_info[0]} has no typed pointers')
    assert compiler.compile_ir(TEXTS[name](TYPED).replace('@NAME', '@typed_name'))
