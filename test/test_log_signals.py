"""What logs must contain, and signals on a uniform time grid."""

import numpy as np
import pytest
from measured_logs import kinova
from synthetic import fourier_motion

import robodyn_ros as rd
from robodyn_ros.identification.periodic import average_periods
from robodyn_ros.identification.pieces import pieces_of, spectrum_of
from robodyn_ros.identification.settings import FilterSettings
from robodyn_ros.identification.signals import Filtering, differentiate, segments_of


def log_of(motion, **changes):
    t, q, qd, _, tau = motion
    return rd.Log(**{'t': t, 'q': q, 'tau': tau, 'joint_names': ('j1', 'j2')} | changes)


def test_shapes_and_nan(planar_arm, planar_motion):
    t, q, _, _, tau = planar_motion
    with pytest.raises(rd.ShapeError, match='tau'):
        log_of(planar_motion, tau=tau[:-1])
    with pytest.raises(rd.LogError, match='at least 50'):
        log_of(planar_motion, t=t[:10], q=q[:10], tau=tau[:10])
    holes = tau.copy()
    holes[100:120] = np.nan
    log = log_of(planar_motion, tau=holes)
    assert len(log) == len(t) - 20 and '20 samples that are not finite' in log.notes[0]
    holes[:2000] = np.inf
    with pytest.raises(rd.LogError, match='not finite, most in tau'):
        log_of(planar_motion, tau=holes)


def test_missing_joint_degrees_and_constant_torque(planar_arm, planar_motion):
    t, q, qd, _, tau = planar_motion
    with pytest.raises(rd.UnknownNameError, match="'j2'"):
        log_of(planar_motion, joint_names=('j1', 'other')).for_model(planar_arm)
    with pytest.raises(rd.LogError, match='degrees'):
        log_of(planar_motion, q=np.rad2deg(q)).for_model(planar_arm)
    with pytest.raises(rd.LogError, match='one of them is in degrees'):
        log_of(planar_motion, qd=np.rad2deg(qd)).for_model(planar_arm)
    log_of(planar_motion, qd=qd).for_model(planar_arm)
    still = tau.copy()
    still[:, 1] = 0.25
    with pytest.raises(rd.LogError, match="'j2' is always 0.25"):
        log_of(planar_motion, tau=still).for_model(planar_arm)
    log_of(planar_motion, tau=still).for_model(planar_arm, used=['j1'])
    model, log = kinova('RunTrajectory1')
    with pytest.raises(rd.LogError, match="'joint_1' is always 0"):
        log.for_model(model)


# signals --------------------------------------------------------------------------------------


def test_derivatives_are_those_of_the_motion(planar_motion):
    t, q, qd, qdd, _ = planar_motion
    band = spectrum_of(q, 200).band
    assert 0.3 < band < 1.2  # six harmonics of 0.1 Hz
    got = differentiate(q, 200, 10.0, 4)
    inside = slice(200, -200)
    for value, want, tolerance in zip(got, (q, qd, qdd), (1e-4, 1e-3, 5e-3), strict=True):
        np.testing.assert_allclose(value[inside], want[inside],
                                   atol=tolerance * np.abs(want).max())


def test_jitter_gaps_duplicates_order_and_clock_jumps(planar_arm, planar_motion, rng):
    t, q, qd, qdd, tau = planar_motion
    notes = []
    stamps = t + rng.uniform(-0.3, 0.3, len(t)) / 200
    index = np.arange(len(t))
    index[500:502] = index[500:502][::-1]  # two samples swapped
    index = np.concatenate([index[:800], index[790:791], index[800:1500], index[1700:]])
    stamps = stamps[index]
    stamps[2500:] -= 100.0  # the clock was set back
    log = log_of(planar_motion, t=stamps, q=q[index], tau=tau[index]).for_model(planar_arm)
    pieces = segments_of(pieces_of(log, notes), Filtering(0.6, 3.0, 4, 1.8, 1.8), notes)
    said = ' '.join(notes)
    assert len(pieces) == 3 and '2 gaps or clock jumps' in said
    assert 'out of order' in said and 'resampled' in said
    start = pieces[0].t
    np.testing.assert_allclose(pieces[0].qd, np.column_stack(
        [np.interp(start, t, column) for column in qd.T]), atol=0.02 * np.abs(qd).max())
    with pytest.raises(rd.LogError, match='never increase'):
        pieces_of(log_of(planar_motion, t=np.zeros(len(t))).for_model(planar_arm), [])


def test_corridor_gives_the_order():
    cutoff, order = FilterSettings(corridor=(2.0, 0.5, 20.0, 40.0)).design(200, 5.0)
    import scipy.signal

    sections = scipy.signal.butter(order, cutoff, fs=200, output='sos')
    _, gain = scipy.signal.sosfreqz(sections, [2.0, 20.0], fs=200)
    twice = 40 * np.log10(np.abs(gain))  # forward and backward
    assert twice[0] >= -0.5 - 1e-9 and twice[1] <= -40
    for bad in ((20.0, 0.5, 2.0, 40.0), (2.0, 0.5, 200.0, 40.0)):
        with pytest.raises(rd.ValueRangeError, match='corridor'):
            FilterSettings(corridor=bad).design(200, 5.0)
    with pytest.raises(rd.ValueRangeError, match='cutoff'):
        FilterSettings(cutoff=150.0).design(200, 5.0)


def test_periodic_logs_are_averaged(planar_arm, rng):
    t, q, qd, qdd = fourier_motion(planar_arm, rng, 50, 200)
    noisy = q + rng.normal(size=q.shape) * 1e-4
    tau = rd.Dynamics(planar_arm).inverse_dynamics(q, qd, qdd)
    mean = average_periods(t, {'q': noisy, 'tau': tau + rng.normal(size=tau.shape) * 0.1}, 10.0,
                           'log')
    assert mean.periods == 5 and mean.band == pytest.approx(0.6)
    np.testing.assert_allclose(mean.torque_noise, 0.1, rtol=0.05)
    np.testing.assert_allclose(mean.position_noise, 1e-4, rtol=0.05)
    np.testing.assert_allclose(mean.qdd, qdd[:2000], atol=2e-4 * np.abs(qdd).max())
    with pytest.raises(rd.LogError, match='two whole periods'):
        average_periods(t[:3000], {'q': q[:3000], 'tau': tau[:3000]}, 10.0, 'log')
    # a recording whose first sample is late may lack the last one
    assert average_periods(t[:-1], {'q': q[:-1], 'tau': tau[:-1]}, 10.0, 'log').periods == 5
    assert average_periods(t[:-2], {'q': q[:-2], 'tau': tau[:-2]}, 10.0, 'log').periods == 4


def test_a_periodic_log_is_cut_between_its_periods(planar_arm, rng):
    t, q, *_ = fourier_motion(planar_arm, rng, 50, 200)
    log = rd.Log(t, q, q, joint_names=planar_arm.joint_names, period=10.0)
    first, rest = log.split(0.7)
    assert (len(first), len(rest)) == (8000, len(t) - 8000)
    assert first.period == 10.0 and rest.period is None  # one period is no periodic log
    assert log.split(0.5)[1].period == 10.0
    assert len(log.split(0.99)[0]) == 8000
    plain = rd.Log(t, q, q, joint_names=planar_arm.joint_names)
    assert len(plain.split(0.7)[0]) == round(0.7 * len(t))


def test_a_gap_in_a_periodic_log_leaves_its_short_side_without_average(planar_arm, rng):
    t, q, *_ = fourier_motion(planar_arm, rng, 50, 200)
    there = (t < 31) | (t > 41)
    log = rd.Log(t[there], q[there], q[there], joint_names=planar_arm.joint_names, period=10.0)
    notes = []
    long, short = pieces_of(log, notes)
    assert long.average.periods == 3 and short.average is None
    assert any('less than two periods' in note for note in notes)
    with pytest.raises(rd.LogError, match='two whole periods'):
        pieces_of(rd.Log(t, q, q, joint_names=planar_arm.joint_names, period=30.0), [])
