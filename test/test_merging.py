"""One estimate from the factors of many logs, without their samples."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
from test_cross_validation import TRUE, runs

import robodyn_ros as rd
from robodyn_ros.identification.estimation import counts_of, least_squares
from robodyn_ros.identification.merging import LogFactors, log_factors, merge_logs
from robodyn_ros.identification.observations import factors_of, merge


@pytest.fixture(scope='module')
def together():
    """A fit of four logs."""
    return rd.identify(TRUE, runs(4), friction='coulomb', decimation=8.0)


def test_merged_factors_give_the_fit_of_all_samples(together):
    base, blocks = together.base_, list(together.observations.blocks())
    logs = [LogFactors(base.names, base.expressions, factors_of(block)[:, :, [*base.kept, -1]],
                       counts_of([block])) for block in blocks]
    merged = merge_logs(lambda: iter(logs))
    whole = merge([factors_of(block) for block in blocks])
    want = least_squares(whole, base.kept, counts_of(blocks))
    assert merged.names == base.names
    np.testing.assert_allclose(merged.values, want.values, rtol=1e-9)
    assert merged.errors.shape == (4,) and (merged.errors < 0.06).all()


def test_logs_identified_one_by_one_agree_with_the_fit_of_all(together):
    """Each log has filters of its own; both fits agree with the truth within their intervals."""
    logs = [log_factors(rd.identify(TRUE, log, friction='coulomb')) for log in runs(8)]
    merged = merge_logs(lambda: iter(logs))
    assert merged.names == together.base_.names
    inside = (merged.interval[:, 0] < together.nominal_) & (
        merged.interval[:, 1] > together.nominal_)
    assert inside.mean() > 0.8
    assert (merged.deviation < 3 * together.uncertainty_.deviation).all()


def test_the_factors_of_one_log_hold_its_delay():
    measured, = runs(1)
    late = np.column_stack([np.interp(measured.t - 0.006, measured.t, tau)
                            for tau in measured.tau.T])
    result = rd.identify(TRUE, replace(measured, tau=late), friction='coulomb')
    log = log_factors(result)
    alone = least_squares(log.factors, tuple(range(len(log.names))), log.count)
    shift = np.abs(result.uncertainty_.shift)
    assert np.abs(alone.values - result.estimate_.values).max() < 0.05 * shift.max()
    assert result.uncertainty_.delay > 0.004


def linear_logs(rng, count, spread):
    """Logs of ``y = W x`` whose x varies from log to log."""
    true = np.array([1.0, -2.0, 0.5])
    for _ in range(count):
        w = rng.normal(size=(40, 3))
        y = w @ (true + spread * rng.normal(size=3)) + 0.1 * rng.normal(size=40)
        factor = np.linalg.qr(np.column_stack([w, y]), mode='r')[None]
        yield LogFactors(('a', 'b', 'c'), ('a', 'b', 'c'), factor, np.array([40.0]))


def test_intervals_include_what_differs_from_log_to_log(rng):
    covered, plain = [], []
    for _ in range(200):
        logs = list(linear_logs(rng, 8, 0.1))
        merged = merge_logs(lambda logs=logs: iter(logs))
        inside = (merged.interval[:, 0] < [1.0, -2.0, 0.5]) & (
            merged.interval[:, 1] > [1.0, -2.0, 0.5])
        covered += inside.tolist()
        alone = least_squares(merge([log.factors for log in logs]), (0, 1, 2), np.array([320.0]))
        half = 1.96 * np.sqrt(np.diag(alone.plain_covariance))
        plain += (np.abs(alone.values - [1.0, -2.0, 0.5]) < half).tolist()
    assert 0.93 < np.mean(covered) < 0.99
    assert np.mean(plain) < 0.8  # the residuals within logs do not show it


def test_a_hundred_logs_need_the_memory_of_one():
    """The factors of a log are released before those of the next one but one are read."""
    alive, most = 0, 0

    def released():
        nonlocal alive
        alive -= 1

    def logs():
        nonlocal alive, most
        for log in linear_logs(np.random.default_rng(0), 100, 0.0):
            weakref.finalize(log, released)
            alive += 1
            most = max(most, alive)
            yield log

    merged = merge_logs(logs)
    assert len(merged.errors) == 100 and most <= 3


def test_what_cannot_be_merged_is_named(rng):
    logs = list(linear_logs(rng, 4, 0.0))
    with pytest.raises(rd.IdentificationError, match='there are 2 logs; valid: at least 3'):
        merge_logs(lambda: iter(logs[:2]))
    other = replace(logs[3], expressions=('a', 'b + c', 'c'))
    with pytest.raises(rd.IdentificationError, match=r'base parameter b is b \+ c in one log'):
        merge_logs(lambda: iter([*logs[:3], other]))
    less = [replace(log, names=('a', 'b'), expressions=('a', 'b'),
                    factors=log.factors[:, :, [0, 1, 3]]) for log in logs[:3]]
    merged = merge_logs(lambda: iter([*less, logs[3]]))  # only one log determines c
    assert np.isfinite(merged.deviation[:2]).all() and np.isinf(merged.deviation[2])
