"""Torque ripple: equations of motion, files, engine, and identification from logs."""

from dataclasses import replace

import numpy as np
import pytest
from robots import planar_2r
from synthetic import LWR4, coloured_noise, fourier_motion, log_of

import robodyn_ros as rd
from robodyn_ros.export.symbolic import equations
from robodyn_ros.identification.ripple_choice import lines_of
from robodyn_ros.identification.writing import motors_of, parameters_of
from robodyn_ros.report.figures import figures_of, ripple_figure
from robodyn_ros.report.html import save_report
from robodyn_ros.report.pictures import pictures_of
from robodyn_ros.report.tables import ripple_table
from robodyn_ros.simulation import Simulation

RIPPLE = {'j1': [{'harmonic': 100, 'sine': 0.5, 'cosine': -0.2}],
          'j2': [{'harmonic': 240, 'cosine': 0.3}, {'harmonic': 120, 'sine': 0.1}]}
PLANAR = LWR4.parent / 'planar_2r.urdf.xacro'


@pytest.fixture(scope='module')
def arm():
    """A planar arm with one line of ripple at the first joint, and two at the second."""
    return rd.load_model(planar_2r(), motors={'joints': {
        name: {'ripple': lines} for name, lines in RIPPLE.items()}})


def by_hand(q):
    return np.column_stack([0.5 * np.sin(100 * q[:, 0]) - 0.2 * np.cos(100 * q[:, 0]),
                            0.3 * np.cos(240 * q[:, 1]) + 0.1 * np.sin(120 * q[:, 1])])


def test_ripple_is_part_of_gravity_and_energy(arm, rng):
    dynamics, bare = rd.Dynamics(arm), rd.Dynamics(rd.load_model(planar_2r()))
    q, qd, qdd = rng.normal(size=(3, 20, 2))
    for name, arguments in (('gravity', (q,)), ('inverse_dynamics', (q, qd, qdd))):
        np.testing.assert_allclose(getattr(dynamics, name)(*arguments)
                                   - getattr(bare, name)(*arguments), by_hand(q), atol=1e-12)
    other = rd.LagrangeEuler(arm)
    np.testing.assert_allclose(other.gravity(q), dynamics.gravity(q), atol=1e-12)
    np.testing.assert_allclose(other.energy(q, qd).potential, dynamics.energy(q, qd).potential)
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        high, low = (dynamics.energy(q + sign * step, 0 * qd).potential for sign in (1, -1))
        np.testing.assert_allclose((high - low) / 2e-6, dynamics.gravity(q)[:, j], atol=1e-6)


def test_ripple_survives_motor_files(arm):
    again = rd.load_model(planar_2r(), motors=motors_of(arm))
    np.testing.assert_array_equal(again.ripple, arm.ripple)
    for entry, error in (([{'harmonic': 0}], 'harmonic'), ([{'harmonic': 2.5}], 'harmonic'),
                         ([{'harmonic': k} for k in (1, 2, 3, 4)], 'at most 3')):
        with pytest.raises(rd.RobodynError, match=error):
            rd.load_model(planar_2r(), motors={'joints': {'j1': {'ripple': entry}}})
    with pytest.raises(rd.ValueRangeError, match='ripple'):
        equations(arm)


def test_the_engine_has_the_ripple_of_the_description(arm):
    """Gravity torque, ripple included, holds the arm still."""
    simulation = Simulation(planar_2r(), motors=motors_of(arm), limit_efforts=False)
    q = np.array([0.4, -0.7])
    simulation.reset(q)
    simulation.step(rd.Dynamics(arm).gravity(q), 5)
    np.testing.assert_allclose(simulation.position, q, atol=1e-5)


def test_ripple_is_found_with_its_harmonic_amplitude_and_phase():
    """A line in a simulated log; held-out errors fall to those of the noise."""
    nominal = rd.load_model(PLANAR)
    line = {'harmonic': 100, 'sine': 0.3, 'cosine': -0.4}
    true = rd.load_model(PLANAR, motors={'joints': {'joint2': {
        'ripple': [line], 'link_friction': {'viscous': 0.2, 'coulomb': 0.1}}}})
    logs = []
    for seed in (3, 5):
        motion = fourier_motion(true, np.random.default_rng(seed), 20, 200)
        tau = rd.Dynamics(true).inverse_dynamics(*motion[1:])
        noise = coloured_noise(np.random.default_rng(seed + 1), len(tau),
                               0.005 * np.ptp(tau, axis=0), 0.5)
        logs.append(log_of(true, motion, noise=noise))
    result = rd.identify(nominal, logs[0])
    assert not result.model.ripple[0].any()
    found = result.model.ripple[1]
    assert found[0, 0] == 100 and not found[1:].any()
    np.testing.assert_allclose(found[0, 1:], [0.3, -0.4], atol=0.05)
    assert [x['harmonic'] for x in parameters_of(result)['friction']['ripple']['joint2']] == [100]
    without = replace(result, linear=result.observations.with_ripple({}).linear)
    errors = [rd.validate(one, logs[1]) for one in (result, without)]
    assert errors[0].total < 0.8 * errors[1].total
    assert errors[0].nominal_total == pytest.approx(errors[1].nominal_total)
    q, qd, qdd = logs[1].q[:5], np.zeros((5, 2)), np.zeros((5, 2))
    torque = result.predict(q, qd, qdd, consistent=True)
    np.testing.assert_allclose(torque, rd.Dynamics(result.model).inverse_dynamics(q, qd, qdd)
                               - rd.Dynamics(result.model).friction(qd, q)
                               + result.model.link_friction[:, 2], atol=0.02)


@pytest.mark.parametrize('memory', [0.0, 0.9, 0.99])
def test_no_ripple_is_found_in_noise(memory):
    """The best of all harmonics explains something of noise, and more of slow noise."""
    joined = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        t = np.arange(3000) * 0.01
        q = sum(np.sin(2 * np.pi * 0.1 * k * t + rng.uniform(0, 6)) / k for k in range(1, 6))
        e = coloured_noise(rng, len(q), np.ones(1), memory)[:, 0]
        joined += len(lines_of([q], [e]))
    assert joined == 0


def test_a_line_that_is_in_one_log_alone_does_not_join(rng):
    q = [np.sin(0.011 * k * np.arange(1500)) for k in (1, 3)]  # over the same range
    e = [rng.normal(size=1500) for _ in range(2)]
    wave = [np.sin(60 * x) for x in q]
    assert not lines_of(q, [e[0] + 0.8 * wave[0], e[1] - 0.8 * wave[1]])
    both = lines_of(q, [e[0] + 0.8 * wave[0], e[1] + 0.8 * wave[1]])
    assert [one.line.harmonic for one in both] == [60]
    assert both[0].line.sine == pytest.approx(0.8, abs=0.1)


def test_a_fixed_friction_model_keeps_the_ripple_of_the_description(rng):
    """It is subtracted from the torques, so that it does not disturb the fit."""
    line = {'harmonic': 60, 'sine': 1.0, 'cosine': 2.0}
    motors = {'joints': {'joint2': {'ripple': [line]}}}
    known, plain = rd.load_model(PLANAR, motors=motors), rd.load_model(PLANAR)
    motion = fourier_motion(known, rng, 20, 200)
    log = log_of(known, motion)
    kept = rd.identify(known, log, friction='coulomb')
    np.testing.assert_array_equal(kept.model.ripple, known.ripple)
    assert kept.training_.total < 0.1 * rd.identify(plain, log, friction='coulomb').training_.total
    assert not any('ripple' in note for note in kept.notes)
    np.testing.assert_allclose(
        kept.predict(*motion[1:], consistent=True), rd.Dynamics(kept.model).inverse_dynamics(
            *motion[1:]), atol=1e-9)


def test_a_remark_names_ripple_that_the_identified_model_lacks(rng):
    lines = {'joints': {'joint2': {'ripple': [{'harmonic': 60, 'sine': 1.0, 'cosine': 2.0}]}}}
    known, plain = rd.load_model(PLANAR, motors=lines), rd.load_model(PLANAR)
    motion = fourier_motion(plain, rng, 20, 200)
    found = rd.identify(known, log_of(plain, motion))
    assert not found.model.ripple.any()
    said = 'lacks the torque ripple that the description gives to joint2: '
    assert any(said + 'these logs do not show it' in note for note in found.notes)
    log = replace(log_of(plain, motion), tau_motor=np.asarray(log_of(plain, motion).tau))
    both = rd.identify(known, log, kind='links_and_drives', friction='coulomb')
    assert any(said + 'the kind links_and_drives has none' in note for note in both.notes)


def test_the_report_shows_ripple_as_a_table_and_a_figure(tmp_path, rng):
    line = {'harmonic': 60, 'sine': 0.6, 'cosine': -0.8}
    known = rd.load_model(PLANAR, motors={'joints': {'joint2': {'ripple': [line]}}})
    log = log_of(known, fourier_motion(known, rng, 20, 200))
    first, last = log.split(0.7)
    result = rd.identify(known, first, friction='coulomb')
    assert ripple_table(result).rows == [['joint2', '60', '6', '1', '0.6', '-0.8']]
    (panel,) = ripple_figure(result).panels
    assert panel.title == 'joint2: 60 periods a turn, 1 N m'
    means, identified = panel.traces
    want = np.interp(means.x, identified.x, identified.y)
    np.testing.assert_allclose(means.y, want, atol=0.1)
    validation = rd.validate(result, last)
    figures = figures_of(result, validation)
    save_report(result, validation, rd.validate(result, last, consistent=True),
                tmp_path / 'report.html', figures, pictures_of(figures))
    page = (tmp_path / 'report.html').read_text('utf-8')
    assert '<h3>Torque ripple</h3>' in page and 'ripple-chart' in page
    plain = rd.identify(rd.load_model(PLANAR), first, friction='coulomb')
    assert 'ripple' not in figures_of(plain, validation) and not ripple_table(plain).rows
