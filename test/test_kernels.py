"""The compiler of traced functions."""


import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robodyn_ros as rd
from robodyn_ros.kernels import (
    ContinuationKernel,
    Kernel,
    KernelSpec,
    PathRules,
    fast_call,
    object_layout,
    result_memory,
    sign,
    smooth_sign,
)
from robodyn_ros.kernels.expression import Graph, trace

finite = st.floats(-1e3, 1e3)


def kernel(function, *sizes, shape=(1,), key=None):
    names = tuple('abcdef'[:len(sizes)])
    return Kernel(KernelSpec(key or f'{function.__code__.co_code}{function.__code__.co_consts}'
                             f'{sizes}', names, sizes, shape, function))


@pytest.fixture(params=['fast', 'ordinary'])
def way(request, monkeypatch):
    """Each of the two ways in which Python calls a kernel, fast and ordinary."""
    monkeypatch.setenv('ROBODYN_FAST_CALL', str(int(request.param == 'fast')))
    if request.param == 'fast' and object_layout.problem():
        pytest.skip(object_layout.problem())
    return request.param


def everything(a, b):
    return np.array([a[0] + b[0], a[0] - b[1], -a[1] * b[0], a[1] / (b[0] * b[0] + 1.0),
                     np.sin(a[0]) * 2.0, np.cos(a[1]) - 1.0, np.sqrt(a[0] * a[0] + 2.0),
                     sign(b[0]), smooth_sign(b[1], 0.5), 3.0, a[0] - a[0], 0.0 * a[1],
                     2.0 * (3.0 * a[0]), a[0] + a[0], 1.0 / (a[1] * a[1] + 1.0)])


EVERYTHING = kernel(everything, 2, 2, shape=(15,))


@settings(max_examples=200, deadline=None)
@given(st.lists(finite, min_size=4, max_size=4))
def test_kernels_equal_the_traced_function(values):
    a, b = np.array(values[:2]), np.array(values[2:])
    expected = everything(a, b)
    np.testing.assert_allclose(EVERYTHING.single(a, b), expected, rtol=1e-13, atol=1e-13)
    batch = EVERYTHING.general(np.tile(a, (5, 1)), np.tile(b, (5, 1)))
    np.testing.assert_allclose(batch, np.tile(expected, (5, 1)), rtol=1e-13, atol=1e-13)


def test_sine_and_cosine_are_accurate_to_the_last_digits(rng):
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
    for value, expected in ((2.0, 1), (-1e-300, -1), (0.0, 0), (-0.0, 0), (1e300, 1)):
        assert both.single(np.array([value]))[0] == expected
    assert np.isnan(both.single(np.array([np.nan]))[0])


def test_equal_expressions_are_shared_and_zeros_eliminated():
    graph, outputs = trace(lambda a: np.array([a[0] * a[1] + a[1] * a[0], a[0] * 0.0 + 1.0,
                                               (a[0] - a[1]) * -1.0]), [2])
    kinds = [graph.nodes[i][0] for i in graph.reachable(outputs)]
    assert sorted(kinds) == ['const', 'const', 'input', 'input', 'mul', 'mul', 'sub']
    x = Graph().inputs(0, 1)[0]
    minus = -x
    assert (x - x).value == 0.0 and (-minus).number == x.number == (x * 1.0).number


def test_inputs_other_than_plain_vectors_take_the_ordinary_call(monkeypatch):
    monkeypatch.delenv('ROBODYN_FAST_CALL', raising=False)
    seen = []

    def fallback(*arguments):
        seen.append(arguments)
        return 'fallback'

    single = kernel(lambda a: np.array([a[0] + a[1]]), 2, key='sum')
    if object_layout.problem():
        pytest.skip(object_layout.problem())
    call = fast_call.fast_call(single._single_address, (2,), (1,), fallback)
    assert call(np.array([1.0, 2.0])) == [3.0] and not seen
    subclass = np.array([1.0, 2.0]).view(np.recarray)
    for argument in ([1.0, 2.0], np.array([1, 2]), np.zeros(3), np.zeros((1, 2)), None, 1.0,
                     np.zeros(4)[::2], np.zeros(2, np.float32), np.zeros(2, '>f8'), subclass):
        assert call(argument) == 'fallback'
    assert call() == 'fallback' and call(np.zeros(2), np.zeros(2)) == 'fallback'
    assert len(seen) == 12

    def raising(*_):
        raise rd.RobodynError('from the fallback')

    call = fast_call.fast_call(single._single_address, (2,), (1,), raising)
    with pytest.raises(rd.RobodynError, match='from the fallback'):
        call(None)
    results = [call(np.array([float(i), 1.0])) for i in range(100_000)]  # no leak, no crash
    assert results[-1] == [100_000.0]


def test_fast_and_ordinary_calls_give_the_same(way, rng):
    both = kernel(everything, 2, 2, shape=(15,))
    assert (type(both.single).__name__ == 'builtin_function_or_method') == (way == 'fast')
    for _ in range(20):
        a, b = rng.normal(size=(2, 2))
        np.testing.assert_array_equal(both.single(a, b), EVERYTHING.general(a, b))
        np.testing.assert_allclose(both.single(a.tolist(), b), everything(a, b), rtol=1e-13,
                                   atol=1e-15)
    batch = both.single(np.tile(a, (9, 1)), b)
    np.testing.assert_allclose(batch, np.tile(everything(a, b), (9, 1)), rtol=1e-13)
    with pytest.raises(rd.ShapeError, match='b has shape'):
        both.single(a, np.zeros(3))
    square = kernel(lambda a: np.array([[a[0], 0.0], [a[1], 1.0]]), 2, shape=(2, 2), key='square')
    np.testing.assert_array_equal(square.single(np.array([3.0, 4.0])), [[3, 0], [4, 1]])


@pytest.mark.parametrize(('name', 'value', 'problem'), [
    ('DATA', 32, 'arrays store type, data'), ('NDIM', 28, 'arrays store type, data'),
    ('DESCRIPTOR', 48, 'arrays store type, data'), ('SHAPE', 40, 'arrays store their shape'),
    ('FLAGS', 24, 'arrays store their flags'), ('TUPLE_ITEMS', 16, 'tuples'),
    ('BYTES_CONTENT', 16, 'bytes'), ('ARRAY_SIZE', 4096, 'smaller'),
    ('PYARRAY_NEW', 10_000, 'missing')])
def test_an_unexpected_object_layout_is_detected(monkeypatch, name, value, problem):
    """Each assumption fails in turn: the fast call is not used, and kernels still work."""
    if object_layout.problem():
        pytest.skip(object_layout.problem())
    monkeypatch.delenv('ROBODYN_FAST_CALL', raising=False)
    monkeypatch.setattr(object_layout, name, value)
    object_layout.problem.cache_clear()
    object_layout.numpy_new.cache_clear()
    if name == 'PYARRAY_NEW':  # a table without the function
        monkeypatch.setattr(object_layout, 'numpy_new', missing)
    try:
        assert problem in object_layout.problem() and not fast_call.supported()
        other = kernel(everything, 2, 2, shape=(15,))
        a, b = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        np.testing.assert_allclose(other.single(a, b), everything(a, b), rtol=1e-13)
    finally:
        monkeypatch.undo()
        object_layout.problem.cache_clear()
    assert not object_layout.problem()


def missing():
    raise AttributeError('_ARRAY_API')


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_nonfinite_input_affects_only_its_own_sample(value, way):
    """Also if the result does not depend on that input, or if an angle is not finite."""
    def function(a, b):
        return np.array([np.sin(a[0]), np.cos(a[0]) * b[0], b[0] * 2.0, 1.0, 0.0, b[2]])

    mixed = kernel(function, 2, 3, shape=(6,), key='spoilt')
    good = [np.array([0.3, 0.7]), np.array([1.0, -2.0, 3.0])]
    want = function(*good)
    for argument, size in enumerate((2, 3)):
        for place in range(size):
            inputs = [x.copy() for x in good]
            inputs[argument][place] = value
            assert np.isnan(mixed.single(*inputs)).all()
            for bad in (0, 2, 5, 6):  # in vectors of four samples, and after them
                batch = [np.tile(x, (7, 1)) for x in good]
                batch[argument][bad, place] = value
                result = mixed.single(*batch)
                assert np.isnan(result[bad]).all()
                np.testing.assert_allclose(np.delete(result, bad, axis=0), np.tile(want, (6, 1)),
                                           rtol=1e-13)


@pytest.mark.parametrize('values', [
    np.array([1 + 2j, 0.0]), [1j, 2j], np.array(['2020-01-01', '2020-01-02'], 'datetime64[D]'),
    np.array([1, 2], 'timedelta64[s]'), ['1', '2'], np.array([b'1', b'2']), [None, 1.0],
    np.array([1j, 2.0], object), [[1.0], [2.0, 3.0]], {'a': 1.0}])
def test_inputs_that_are_not_real_numbers_are_refused(values, way):
    with pytest.raises(rd.ShapeError, match='a has values that are not real numbers'):
        kernel(everything, 2, 2, shape=(15,)).single(values, np.zeros(2))


def test_wrong_calls_are_refused():
    with pytest.raises(rd.ShapeError, match='a, b'):
        EVERYTHING.single(np.zeros(2))
    with pytest.raises(rd.ShapeError, match='b has shape'):
        EVERYTHING.single(np.zeros(2), np.zeros(3))
    with pytest.raises(rd.ShapeError, match='out'):
        EVERYTHING.general(np.zeros((3, 2)), np.zeros((3, 2)), out=np.zeros((3, 14)))
    out = np.empty((3, 15))
    assert EVERYTHING.general(np.zeros((3, 2)), np.zeros((3, 2)), out=out) is out


def circle(p):
    """Closes a loop: the point (p1, p0) on a circle, whose p0 is given.

    Returns the gap, the Newton step, the squared gap after it and the squared sine.
    """
    gap = p[0] * p[0] + p[1] * p[1] - 1.0
    slope = 2.0 * p[1]
    return np.array([gap, gap / slope, 0.0, slope * slope / (4.0 * (p[0] * p[0] + p[1] * p[1]))])


RULES = PathRules(step=0.1, farthest=10.0, iterations=30, largest=0.5, passing=1e-3,
                  exact=1e-16, closed=1e-14, rough=1e-9, singular=1e-12)


def test_solutions_are_followed_in_compiled_code(way, rng):
    """Singly and in batches: on both branches, over long ways, and beyond the last solution."""
    newton = kernel(circle, 2, shape=(4,), key='circle')
    twice = kernel(lambda p, x: np.array([p[1] * x[0], x[0]]), 2, 1, shape=(2,), key='twice')
    search, scaled = (ContinuationKernel(newton, one, [0], [1], RULES) for one in (None, twice))
    x = rng.uniform(-0.999, 0.999, 403)
    x[17], x[40] = 1.2, np.nan  # without a solution, and not a number
    known = np.abs(x) < 1
    y = np.sqrt(1 - x**2, where=known, out=np.full(403, np.nan))
    for branch in (1.0, -1.0):
        near = np.array([0.0, 0.7 * branch])  # an open start
        found = search.single(near, x[:, None])
        np.testing.assert_array_equal(found[:, 2], known)
        np.testing.assert_allclose(found[known, 1], branch * y[known], atol=1e-12)
        np.testing.assert_array_equal(found[known, 0], x[known])
        each = np.array([search.single(near, one) for one in x[:, None]])
        np.testing.assert_allclose(each[known], found[known], atol=1e-12)
        assert not each[[17, 40], 2].any()
        both = scaled.single(near, x[:, None], np.array([3.0]))
        np.testing.assert_allclose(both[:, 0], 3 * branch * y, atol=1e-12)
        assert np.isnan(both[~known]).all()
    assert np.isnan(scaled.single(near, np.array([1.0]), np.array([3.0]))).all()  # singular
    assert np.isnan(scaled.single(near, np.array([0.5]), np.array([np.nan]))).all()
    assert search.single(near, np.array([30.0]))[2] == 0  # too far
    assert scaled.single(near, x[:0, None], np.zeros((0, 1))).shape == (0, 2)


def test_memory_of_large_results_is_used_again_only_when_nobody_holds_them(monkeypatch):
    monkeypatch.setattr(result_memory, 'SMALLEST', 1 << 10)
    monkeypatch.setattr(result_memory, '_kept', [])
    a, b = np.ones((200, 2)), np.ones((200, 2))
    first = EVERYTHING.general(a, b)
    place, last = first.__array_interface__['data'][0], first[3:, 1:]
    del first
    other = EVERYTHING.general(2 * a, b)  # a part of the first result is still in use
    assert not np.shares_memory(other, last)
    np.testing.assert_array_equal(last, np.tile(EVERYTHING.single(a[0], b[0])[1:], (197, 1)))
    del last, other
    again = EVERYTHING.general(2 * a[:150], b[:150])
    assert again.__array_interface__['data'][0] == place and again.shape == (150, 15)
    np.testing.assert_allclose(again[7], EVERYTHING.single(2 * a[0], b[0]), rtol=1e-12)
    assert result_memory.empty((0, 3)).shape == (0, 3)
