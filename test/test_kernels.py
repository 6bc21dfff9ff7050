"""The compiler of traced functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robodyn_ros as rd
from robodyn_ros.kernels import Kernel, KernelSpec, compiler, crossing, sign, smooth_sign
from robodyn_ros.kernels.expression import Graph, trace

finite = st.floats(-1e3, 1e3)


def kernel(function, *sizes, shape=(1,), key=None):
    names = tuple('abcdef'[:len(sizes)])
    return Kernel(KernelSpec(key or f'{function.__code__.co_code}{function.__code__.co_consts}'
                             f'{sizes}', names, sizes, shape, function))


def everything(a, b):
    return np.array([a[0] + b[0], a[0] - b[1], -a[1] * b[0], a[1] / (b[0] * b[0] + 1.0),
                     np.sin(a[0]) * 2.0, np.cos(a[1]) - 1.0, np.sqrt(a[0] * a[0] + 2.0),
                     sign(b[0]), smooth_sign(b[1], 0.5), 3.0, a[0] - a[0], 0.0 * a[1],
                     2.0 * (3.0 * a[0]), a[0] + a[0], 1.0 / (a[1] * a[1] + 1.0)])


EVERYTHING = kernel(everything, 2, 2, shape=(15,))


@settings(max_examples=200, deadline=None)
@given(st.lists(finite, min_size=4, max_size=4))
def test_kernels_compute_what_the_function_says(values):
    a, b = np.array(values[:2]), np.array(values[2:])
    expected = everything(a, b)
    np.testing.assert_allclose(EVERYTHING.single(a, b), expected, rtol=1e-13, atol=1e-13)
    batch = EVERYTHING.general(np.tile(a, (5, 1)), np.tile(b, (5, 1)))
    np.testing.assert_allclose(batch, np.tile(expected, (5, 1)), rtol=1e-13, atol=1e-13)


def test_sine_and_cosine_to_the_last_places(rng):
    both = kernel(lambda a: np.array([np.sin(a[0]), np.cos(a[0])]), 1, shape=(2,), key='sincos')
    for scale in (1e-9, 0.1, 1.0, 4.0, 100.0, 1e4, 9.9e5, 1e7, 1e15):
        x = rng.uniform(-scale, scale, (4000, 1))
        exact = np.column_stack([np.sin(x.astype(np.longdouble)), np.cos(x.astype(np.longdouble))])
        assert np.abs(both.general(x) - exact).max() < 2e-16
    quarter = np.arange(-40, 41)[:, None] * np.pi / 2
    np.testing.assert_allclose(both.general(quarter)[:, 0], np.sin(quarter[:, 0]), rtol=1e-13,
                               atol=1e-30)
    assert np.isnan(both.single(np.array([np.nan]))).all()
    with np.errstate(invalid='ignore'):
        assert np.isnan(both.single(np.array([np.inf]))).all()
    mixed = np.array([[0.5], [np.nan], [1e9], [2.0]])
    result = both.general(mixed)
    np.testing.assert_allclose(result[[0, 2, 3], 0], np.sin(mixed[[0, 2, 3], 0]), rtol=1e-14)
    assert np.isnan(result[1]).all()


def test_signs():
    both = kernel(lambda a: np.array([sign(a[0])]), 1, key='sign')
    for value, expected in ((2.0, 1), (-1e-300, -1), (0.0, 0), (-0.0, 0), (np.inf, 1)):
        assert both.single(np.array([value]))[0] == expected
    assert np.isnan(both.single(np.array([np.nan]))[0])


def test_equal_expressions_are_one_and_zeros_vanish():
    graph, outputs = trace(lambda a: np.array([a[0] * a[1] + a[1] * a[0], a[0] * 0.0 + 1.0,
                                               (a[0] - a[1]) * -1.0]), [2])
    kinds = [graph.nodes[i][0] for i in graph.reachable(outputs)]
    assert sorted(kinds) == ['const', 'const', 'input', 'input', 'mul', 'mul', 'sub']
    x = Graph().inputs(0, 1)[0]
    minus = -x
    assert (x - x).value == 0.0 and (-minus).number == x.number == (x * 1.0).number


def test_what_is_not_a_plain_vector_goes_the_general_way():
    seen = []

    def fallback(*arguments):
        seen.append(arguments)
        return 'fallback'

    single = kernel(lambda a: np.array([a[0] + a[1]]), 2, key='sum')
    call = crossing.cross(single._single_address, (2,), (1,), fallback)
    if not crossing.supported():
        pytest.skip('this interpreter has another object layout')
    assert call(np.array([1.0, 2.0])) == [3.0] and not seen
    subclass = np.array([1.0, 2.0]).view(np.recarray)
    for argument in ([1.0, 2.0], np.array([1, 2]), np.zeros(3), np.zeros((1, 2)), None, 1.0,
                     np.zeros(4)[::2], np.zeros(2, np.float32), np.zeros(2, '>f8'), subclass):
        assert call(argument) == 'fallback'
    assert call() == 'fallback' and call(np.zeros(2), np.zeros(2)) == 'fallback'
    assert len(seen) == 12

    def raising(*_):
        raise rd.RobodynError('from the fallback')

    call = crossing.cross(single._single_address, (2,), (1,), raising)
    with pytest.raises(rd.RobodynError, match='from the fallback'):
        call(None)
    results = [call(np.array([float(i), 1.0])) for i in range(100_000)]  # no leak, no crash
    assert results[-1] == [100_000.0]


def test_machine_code_is_kept_and_damaged_files_are_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'cache'))
    text = '''define void @NAME(ptr %in, ptr %out) {
      store double 4.0, ptr %out
      ret void }'''

    def value(fresh, source=text):
        address = fresh.address('a key', lambda name: source.replace('NAME', name))
        import ctypes
        out = ctypes.c_double()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(
            None, ctypes.addressof(out))
        return out.value

    assert value(compiler.Compiler()) == 4.0
    kept, = (tmp_path / 'cache').iterdir()
    other = text.replace('4.0', '5.0')
    digest = kept.stem
    assert compiler._load(digest) is not None
    damaged = bytearray(kept.read_bytes())
    damaged[-1] ^= 1
    kept.write_bytes(bytes(damaged))
    assert compiler._load(digest) is None
    kept.write_bytes(b'')
    assert compiler._load(digest) is None
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'file'))
    (tmp_path / 'file').write_text('not a directory')
    assert value(compiler.Compiler(), other.replace('@NAME', '@NAME')) in (4.0, 5.0)
    monkeypatch.setenv('ROBODYN_CACHE_DIR', '')
    assert compiler.cache_directory() is None and compiler._load(digest) is None


def test_wrong_calls_are_refused():
    with pytest.raises(rd.ShapeError, match='a, b'):
        EVERYTHING.single(np.zeros(2))
    with pytest.raises(rd.ShapeError, match='b has shape'):
        EVERYTHING.single(np.zeros(2), np.zeros(3))
    with pytest.raises(rd.ShapeError, match='out'):
        EVERYTHING.general(np.zeros((3, 2)), np.zeros((3, 2)), out=np.zeros((3, 14)))
    out = np.empty((3, 15))
    assert EVERYTHING.general(np.zeros((3, 2)), np.zeros((3, 2)), out=out) is out
