"""Torques that are older or younger than the positions of the same sample."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import coloured_noise, fourier_motion, lwr4_with_drives

import robodyn_ros as rd
from robodyn_ros.identification.pieces import Piece, pieces_of
from robodyn_ros.identification.signals import Filtering, segments_of

TRUE = lwr4_with_drives(np.random.default_rng(1), 0.15)


def late_log(seed, rate, delay, seconds=20, **options):
    """A log whose torques are older than its positions by a delay in s."""
    rng = np.random.default_rng(seed)
    t, q, qd, qdd = fourier_motion(TRUE, rng, seconds, rate)
    tau = rd.Dynamics(TRUE).inverse_dynamics(q, qd, qdd)
    tau = np.column_stack([np.interp(t - delay, t, column) for column in tau.T])
    tau += coloured_noise(rng, len(t), 0.02 * tau.std(axis=0), 0.9)
    return rd.Log(t, q, tau, joint_names=TRUE.joint_names, source=f'log {seed}', **options)


@pytest.mark.parametrize(('rate', 'delay'), [(100, 0.02), (500, 0.012), (200, -0.03), (40, 0.05)])
def test_a_delay_of_several_samples_is_found(rate, delay):
    """The fit and its validation compare torques with positions of their time."""
    log, other = (late_log(seed, rate, delay) for seed in (3, 4))
    result = rd.identify(lwr4_with_drives(), log)
    assert result.filtering.torque_delay == pytest.approx(delay, abs=1 / rate + 1e-9)
    rest = result.uncertainty_.delay  # what remains within a sample
    assert result.filtering.torque_delay + rest == pytest.approx(delay, abs=0.3 / rate)
    word = 'older' if delay > 0 else 'younger'
    assert any(f'ms {word} than the positions and are compared' in n for n in result.notes)
    ignored = rd.identify(lwr4_with_drives(), log, torque_delay=0.0)
    assert ignored.filtering.torque_delay == 0
    with_it, without = rd.validate(result, other), rd.validate(ignored, other)
    assert with_it.total < 0.03 and with_it.total < 0.8 * without.total
    motion = fourier_motion(TRUE, np.random.default_rng(5), 20, 100)[1:]
    exact = rd.Dynamics(TRUE).inverse_dynamics(*motion)
    wrong = [np.linalg.norm(rd.Dynamics(one.model).inverse_dynamics(*motion) - exact)
             for one in (result, ignored)]
    assert wrong[0] < 0.7 * wrong[1]


def test_torques_of_the_same_time_have_no_delay():
    result = rd.identify(lwr4_with_drives(), late_log(3, 100, 0.0))
    assert result.filtering.torque_delay == 0
    assert not any('compared with those of their time' in note for note in result.notes)


def test_a_delay_can_be_set():
    """It is kept, also with cutoffs that are set and with averaged periods."""
    log = late_log(3, 100, 0.02)
    periodic = replace(log, period=10.0)
    for one in (log, periodic):
        result = rd.identify(lwr4_with_drives(), one, torque_delay=0.02, friction='coulomb')
        assert result.filtering.torque_delay == 0.02
        assert rd.validate(result, late_log(4, 100, 0.02)).total < 0.03
    with pytest.raises(rd.ValueRangeError, match=r'torque_delay is 3; valid: -1 to 1 s'):
        rd.identify(lwr4_with_drives(), log, torque_delay=3)


@pytest.mark.parametrize('late', [-4, 0, 7])
def test_segments_pair_positions_with_torques_of_their_time(late):
    """Samples that bridge a gap count on neither side, and nothing is taken from beyond the ends.

    The torque of a sample is its number plus the delay, so that it equals the time in samples.
    """
    size, rate = 400, 100.0
    t = np.arange(size) / rate
    number = np.arange(size, dtype=float)[:, None]
    measured = np.ones(size, bool)
    measured[200:203] = False
    piece = Piece(t, {'q': np.sin(t)[:, None], 'tau': number - late}, measured, rate, False, 'log')
    (one,) = segments_of([piece], Filtering(1.0, 30.0, 4, 3.0, 3.0, late / rate), [])
    np.testing.assert_allclose(one.tau[:, 0], one.t * rate)
    expected = measured & np.roll(measured, -late)
    np.testing.assert_array_equal(one.measured, expected[np.rint(one.t * rate).astype(int)])
    assert len(one.t) >= size - 2 * 5 - abs(late)


def test_periods_are_averaged_before_the_delay():
    log = replace(late_log(3, 100, 0.0), period=10.0).for_model(TRUE)
    pieces = pieces_of(log, [])
    plain, late = (segments_of(pieces, Filtering(1.0, np.inf, 4, 0.0, 3.0, delay), [])[0]
                   for delay in (0.0, 0.05))
    shift = round(0.05 * plain.rate)
    np.testing.assert_array_equal(late.tau, np.roll(plain.tau, -shift, axis=0))
    np.testing.assert_array_equal(late.q, plain.q)
