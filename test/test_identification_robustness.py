"""Identification where logs have gaps, rests, slow motions, wrong units or too little motion."""

from dataclasses import replace

import numpy as np
import pytest
from robots import planar_2r
from synthetic import LWR4, coloured_noise, fourier_motion, lwr4_with_drives, own_robot

import robodyn_ros as rd
from robodyn_ros.identification.closed_poses import closed_motions
from robodyn_ros.identification.linear_model import LinearModel
from robodyn_ros.identification.pieces import pieces_of


@pytest.fixture(scope='module')
def true():
    return lwr4_with_drives()


@pytest.fixture(scope='module')
def motion(true):
    return fourier_motion(true, np.random.default_rng(21), 30, 250)


def torques(model, motion, rng, level=0.01, memory=0.9):
    tau = rd.Dynamics(model).inverse_dynamics(*motion[1:])
    return tau + coloured_noise(rng, len(tau), level * np.abs(tau).max(axis=0), memory)


def test_gaps_that_are_short_against_the_motion_are_bridged(true, motion, rng):
    """Gaps of nine samples every second neither split the log nor affect the errors."""
    t, q, _, _ = motion
    tau = torques(true, motion, rng)
    keep = np.arange(len(t)) % 250 > 8
    whole, holed = (rd.Log(t[k], q[k], tau[k], joint_names=true.joint_names)
                    for k in (slice(None), keep))
    notes = []
    pieces = pieces_of(holed.for_model(true), notes)
    assert len(pieces) == 1 and 'bridge gaps' in ' '.join(notes)
    assert pieces[0].measured.mean() == pytest.approx(keep.mean(), abs=0.01)
    errors = []
    for log in (whole, holed):
        first, last = log.split(0.7)
        result = rd.identify(true, first, friction='coulomb')
        errors.append(rd.validate(result, last).total)
    assert errors[1] < 1.05 * errors[0]


def test_one_pair_of_filters_for_fit_and_validation(true, motion, rng):
    t, q, _, _ = motion
    log = rd.Log(t, q, torques(true, motion, rng), joint_names=true.joint_names)
    parts = [log.part(a, b) for a, b in ((0, 0.3), (0.35, 0.8))]
    result = rd.identify(true, parts, friction='coulomb')
    assert sum('Butterworth' in note for note in result.notes) == 1
    again = rd.validate(result, log.part(0.8, 1))
    assert np.isfinite(result.filtering.cutoff) and again.total < 0.02
    assert result.filter_choice_.errors[result.filtering.cutoff, result.filtering.decimation] \
        <= 1.003 * min(result.filter_choice_.errors.values())


def test_filters_of_slow_motions_are_wide_enough(true):
    """Friction that changes quickly needs more than the band of a slow motion."""
    slow = fourier_motion(true, np.random.default_rng(5), 40, 200, frequency=0.05, harmonics=4)
    rng = np.random.default_rng(6)
    tau = torques(true, slow, rng, 0.005, 0.0)
    tau = tau + 4 * np.sign(slow[2]) * np.exp(-np.abs(slow[2]) / 0.01)
    first, last = rd.Log(slow[0], slow[1], tau, joint_names=true.joint_names).split(0.7)
    chosen = rd.identify(true, first, friction='coulomb')
    band = chosen.filtering.band
    assert band < 0.4 and chosen.filtering.cutoff > 5.5 * band
    fixed = rd.identify(true, first, friction='coulomb', decimation=3 * band,
                        filter=rd.FilterSettings(cutoff=5 * band))
    assert rd.validate(chosen, last).total < 0.95 * rd.validate(fixed, last).total


def test_friction_keeps_its_direction_at_rest(true, motion):
    """Noise of the velocity at standstill must not make the predicted torque jump."""
    t, q, qd, _ = motion
    rng = np.random.default_rng(7)
    noise = 2e-5
    tau = torques(true, motion, rng, 0.005, 0.0)
    result = rd.identify(true, rd.Log(t, q + rng.normal(size=q.shape) * noise, tau,
                                      joint_names=true.joint_names), friction_width=0.0,
                         filter=rd.FilterSettings(cutoff=8.0))
    floor = result.linear.friction.floor
    assert (floor > 0).all()
    rest = q[2000] + rng.normal(size=(1500, 7)) * noise
    q_ = np.concatenate([q[1000:2001] + rng.normal(size=(1001, 7)) * noise, rest])
    stamps = np.arange(len(q_)) / 250
    tau_ = np.tile(tau[2000], (len(q_), 1)) + rng.normal(size=(len(q_), 7)) * 0.01
    held = rd.validate(result, rd.Log(stamps, q_, tau_, joint_names=true.joint_names))
    still = held.predicted[0][-1200:-200]
    friction = np.array([result.theta_[result.linear.names.index(f'Fcl:joint{k}')]
                         for k in range(1, 8)])
    jumps = np.abs(np.diff(still, axis=0)).max(axis=0)
    assert (jumps < 0.5 * friction).all()  # a plain sign would jump by twice the friction


def test_a_useless_condition_number_is_a_bad_verdict_that_names_the_cause(true, motion, rng):
    """Joints 5 to 7 rest except for noise: many parameters are not determined."""
    t, q, _, _ = motion
    q = q.copy()
    q[:, 4:] = q[0, 4:]
    moved = (t, q, *(np.gradient(x, t, axis=0) for x in (q, np.gradient(q, t, axis=0))))
    log = rd.Log(t, q, torques(true, moved, rng), joint_names=true.joint_names)
    first, last = log.split(0.7)
    result = rd.identify(true, first, friction='coulomb')
    validation = rd.validate(result, last)
    if result.uncertainty_.condition > 1e8:
        assert validation.verdict == 'bad'
        assert any('condition number' in reason and 'joint' in reason
                   for reason in validation.reasons)
    else:
        assert 'not excited at all' in ' '.join(result.notes)


def test_verdicts_follow_the_errors():
    """A better prediction never has a worse verdict; each threshold acts."""
    from robodyn_ros.identification.verdict import Errors, Evidence, judge

    box = np.zeros((2, 1)), np.ones((2, 1))
    fine = Evidence(30.0, '', (), *box)
    order = ('good', 'doubtful', 'bad')
    ranks = [order.index(judge(Errors({'a': e}, e, e, 2.0, 2.0), fine, 1.0)[0])
             for e in (0.01, 0.05, 0.079, 0.09, 0.3, 0.49, 0.6, 1.5)]
    assert ranks == sorted(ranks) and ranks[0] == 0 and ranks[-1] == 2
    small = Errors({'a': 0.01}, 0.01, 0.01, 0.5, 0.5)
    assert judge(small, Evidence(7e15, 'm:a and m:b can hardly be distinguished', (), *box), 1.0) \
        [0] == 'bad'
    verdict, reasons, _ = judge(small, Evidence(30.0, '', ('too heavy',), *box), 1.0)
    assert verdict == 'doubtful' and reasons[0] == 'implausible: too heavy'
    assert judge(small, fine, 0.3)[0] == 'doubtful'
    assert judge(Errors({'a': 0.01}, 0.01, 0.3, 0.2, 0.5), fine, 1.0)[0] == 'bad'


@pytest.mark.parametrize('memory', [0.0, 0.98])
def test_intervals_do_not_depend_on_the_filters(true, motion, memory):
    """Four times the cutoff does not give four times the information."""
    tau = torques(true, motion, np.random.default_rng(8), 0.02, memory)
    deviations = []
    for factor in (1, 4):
        log = rd.Log(motion[0], motion[1], tau, joint_names=true.joint_names)
        result = rd.identify(true, log, friction='coulomb', decimation=2.0 * factor,
                             filter=rd.FilterSettings(cutoff=3.5 * factor))
        deviations.append(np.median(result.uncertainty_.deviation))
    assert 0.8 < deviations[1] / deviations[0] < 1.25


def test_a_payload_of_known_mass_gives_the_drive_gains(true):
    """A wrong centre of mass changes nothing, and the intervals contain the true gains."""
    payload = rd.Inertial(5.0, np.array([0.08, 0.0, 0.1]), np.diag([0.02, 0.02, 0.02]))
    loaded = true.with_payload('tip', payload.mass, payload.com, payload.inertia)
    gains = np.array([30.0, 30.0, 25.0, 25.0, 20.0, 15.0, 15.0])
    rng = np.random.default_rng(9)
    logs = []
    for model, carries in ((true, False), (loaded, True)):
        motion = fourier_motion(model, rng, 20, 200, frequency=0.2)
        log = rd.Log(motion[0], motion[1], torques(model, motion, rng) / gains,
                     joint_names=true.joint_names, loaded=carries)
        logs.append(log)
    found = rd.identify_drive_gains(true, logs, 5.0, 'tip')
    assert (np.abs(found.values - gains) < 4 * found.deviation).all()
    assert (found.deviation < 0.02 * gains).all()
    guessed = rd.Inertial(5.0, np.array([0.0, 0.0, 0.3]), np.diag([0.5, 0.5, 0.5]))
    np.testing.assert_allclose(
        rd.identify_drive_gains(true, logs, guessed, 'tip').values, found.values)
    assert found.payload['mx:payload'] == pytest.approx(0.4, abs=0.05)
    with pytest.raises(rd.ValueRangeError, match='above 0 kg'):
        rd.identify_drive_gains(true, logs, 0.0, 'tip')


@pytest.mark.parametrize('memory', [0.0, 0.9])
def test_the_intervals_of_drive_gains_contain_the_true_gains(memory):
    """In 20 logs with other motions and noise each: 60 intervals of 95 %."""
    arm = rd.load_model(own_robot('articulated_3r'))
    loaded = arm.with_payload('link3', 2.0, (0.05, 0.0, 0.1), np.diag([0.01, 0.02, 0.015]))
    gains, inside = np.array([12.0, 20.0, 7.0]), []
    for seed in range(20):
        rng, logs = np.random.default_rng(seed), []
        for model, carries in ((arm, False), (loaded, True)):
            motion = fourier_motion(model, rng, 20, 200)
            tau = torques(model, motion, rng, 0.01, memory)
            logs.append(rd.Log(motion[0], motion[1], tau / gains, joint_names=arm.joint_names,
                               loaded=carries))
        found = rd.identify_drive_gains(arm, logs, 2.0, 'link3')
        assert (found.deviation < 0.05 * gains).all()
        inside.append((found.interval[:, 0] <= gains) & (gains <= found.interval[:, 1]))
    assert 0.92 <= np.mean(inside) <= 0.99, np.mean(inside)


def test_drive_gains_that_the_logs_do_not_determine_are_refused(true):
    """A payload whose torque is as small as the noise determines no gain."""
    loaded = true.with_payload('tip', 0.02, np.zeros(3), np.eye(3) * 1e-6)
    rng = np.random.default_rng(10)
    logs = []
    for model, carries in ((true, False), (loaded, True)):
        motion = fourier_motion(model, rng, 20, 200, frequency=0.2)
        logs.append(rd.Log(motion[0], motion[1], torques(model, motion, rng, 0.03),
                           joint_names=true.joint_names, loaded=carries))
    with pytest.raises(rd.IdentificationError, match='do not determine the drive gains of'):
        rd.identify_drive_gains(true, logs, 0.02, 'tip')


def test_base_parameters_of_loops_belong_to_the_assembly_mode_of_the_start():
    """With limits that reach beyond singularities the count stays that of the real robot."""
    folder = LWR4.parent
    loops = folder.parent / 'config/robots/five_bar_loops.yaml'
    counts = []
    for limit in (None, 3.1):
        model = rd.load_model(folder / 'five_bar.urdf.xacro')
        if limit is not None:
            wide = model.description.urdf.replace('lower="-', 'lower="-9').replace(
                'upper="', 'upper="9')
            model = rd.load_model(wide)
        dynamics = rd.ClosedLoopDynamics(model, loops)
        linear = LinearModel(dynamics, 'lumped')
        base = rd.base_parameters(linear)
        # the rank of a motion that follows the loops from the start, by singular values
        rng = np.random.default_rng(1)
        _, motion = closed_motions(dynamics, rng, rng.normal(size=(150, dynamics.n)))
        qdd = rng.normal(size=(150, dynamics.n)) * 5
        w = linear.regressor(np.zeros((150, dynamics.n)), motion.qd[:, :dynamics.n], qdd,
                             motion=motion).reshape(-1, len(linear.columns))
        singular = np.linalg.svd(w / np.maximum(np.linalg.norm(w, axis=0), 1e-12),
                                 compute_uv=False)
        assert base.count == (singular > 1e-7 * singular[0]).sum()
        counts.append(base.count)
    assert counts[0] == counts[1]


def test_results_far_from_the_description_are_not_applicable(true, motion, rng):
    """Torques in other units fit well, but the robot would be twenty times as heavy."""
    t, q, _, _ = motion
    nominal = lwr4_with_drives(np.random.default_rng(1), 0.2)
    tau = torques(true, motion, rng)
    validations = {}
    for name, torque in (('right', tau), ('units', 20 * tau), ('positions', q)):
        first, last = rd.Log(t, q, torque, joint_names=true.joint_names).split(0.7)
        validations[name] = rd.validate(rd.identify(nominal, first, friction='coulomb'), last)
    assert validations['right'].applicable and not validations['right'].implausible
    units = validations['units']
    assert units.total < 0.05 and not units.applicable and units.verdict != 'good'
    assert any('gravity torque' in reason for reason in units.implausible)
    assert not validations['positions'].applicable and validations['positions'].implausible


def test_parameters_that_the_motion_cannot_tell_apart_have_wide_intervals():
    """A joint that turns in one direction only does not tell Coulomb friction from the offset."""
    arm = replace(rd.load_model(planar_2r(), gravity=(0, -9.81, 0)),
                  link_friction=np.array([[1.5, 2.0, 0.3], [0.8, 1.0, -0.2]]))
    t = np.arange(2000) / 100
    q = np.column_stack([0.1 * t + 0.025 * np.sin(0.5 * t), np.sin(1.3 * t) + np.sin(2.9 * t)])
    qd, qdd = (np.column_stack(columns) for columns in (
        (0.1 + 0.0125 * np.cos(0.5 * t), 1.3 * np.cos(1.3 * t) + 2.9 * np.cos(2.9 * t)),
        (-0.00625 * np.sin(0.5 * t), -1.69 * np.sin(1.3 * t) - 2.9**2 * np.sin(2.9 * t))))
    tau = rd.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 0.1 * np.random.default_rng(0).normal(size=tau.shape)
    result = rd.identify(arm, rd.Log(t, q, tau, joint_names=arm.joint_names), friction='coulomb')
    assert result.uncertainty_.condition > 1e8
    assert min(result.standard_deviation(name) for name in ('Fcl:j1', 'offl:j1')) > 100
    assert result.standard_deviation('Fcl:j2') < 0.1
    # their sum is determined, and one of them is dropped as not significant
    assert len({'Fcl:j1', 'offl:j1'} & set(result.significant_)) == 1
    names = list(result.base_.names)
    pair = [names.index('Fcl:j1'), names.index('offl:j1')]
    assert result.estimate_.values[pair].sum() == pytest.approx(2.3, abs=0.2)
