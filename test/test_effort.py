"""The meaning of efforts: read from files, found in logs, used in fits and simulations."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from measured_logs import kinova, tiago, ur10
from synthetic import fourier_motion, log_of

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.description.effort import PRESETS, effort_section, read_effort
from robodyn_ros.dynamics.efforts import commanded_model, complete_torque, effort_factors
from robodyn_ros.experiment.results import contact_section, free_motions
from robodyn_ros.identification.effort_test import find_effort_meaning
from robodyn_ros.observation import ContactThresholds
from robodyn_ros.simulation import Simulation
from robodyn_ros.simulation.drives import Drives

ARM = 'urdf/articulated_3r.urdf.xacro'
DRIVES = {name: {'gear_ratio': 100, 'drive_gain': 7.0, 'armature': 0.05,
                 'link_friction': {'viscous': 0.3, 'coulomb': 0.5}}
          for name in ('waist', 'shoulder', 'elbow')}


def arm(effort=None):
    return rd.load_model(ARM, motors={'joints': DRIVES} | ({'effort': effort} if effort else {}))


@pytest.fixture(scope='module')
def measured():
    """A log of the arm with its torques, and its dynamics."""
    model, rng = arm(), np.random.default_rng(3)
    motion = fourier_motion(model, rng, 20, 100, frequency=0.2, harmonics=5)
    return log_of(model, motion, noise=0.02 * rng.normal(size=motion[1].shape)), \
        rd.Dynamics(model), motion


@pytest.mark.parametrize('name', PRESETS)
def test_a_preset_survives_writing_and_reading(name):
    meaning = read_effort(name)
    assert read_effort(effort_section(meaning)) == meaning
    assert read_effort(f'preset: {name}, commands_add: []').commands_add == ()


@pytest.mark.parametrize(('text', 'names'), [
    ('frankly', 'franka'), ('gravity: excluded', 'removed'),
    ('commands_add: [coriolis]', 'gravity'),
    ('scale: 0', 'other than 0'), ('weight: included', 'gravity')])
def test_a_wrong_word_is_named_with_the_valid_ones(text, names):
    with pytest.raises(rd.RobodynError, match=names):
        read_effort(text)


def test_currents_need_every_drive_gain():
    drives = DRIVES | {'elbow': {'armature': 0.05}}
    model = rd.load_model(ARM, motors={'joints': drives, 'effort': {'measured': 'current'}})
    with pytest.raises(rd.ValueRangeError, match='elbow'):
        effort_factors(model, model.joint_names)


@pytest.mark.parametrize(('change', 'best', 'friction'), [
    (lambda tau, g, f: tau, 'torque on the link side, gravity included', True),
    (lambda tau, g, f: tau - g, 'torque on the link side, gravity removed', True),
    (lambda tau, g, f: tau - f, 'torque on the link side, gravity included', False),
    (lambda tau, g, f: tau / 100, 'torque on the motor side, gravity included', True),
    (lambda tau, g, f: tau / 9, 'other scale such as current, gravity included', True)])
def test_a_log_tells_what_its_efforts_are(measured, change, best, friction):
    log, dynamics, (_, q, qd, _) = measured
    efforts = change(np.asarray(log.tau), dynamics.gravity(q), dynamics.friction(qd))
    found = find_effort_meaning(dynamics, replace(log, tau=efforts))
    assert found.best == best and found.probability[best] > 0.9, found.to_text()
    assert (found.friction > 0.95) == friction


def test_a_log_tells_which_efforts_have_the_opposite_sign(measured):
    log, dynamics, _ = measured
    names = dynamics.joint_names
    for reversed_ in ((), (1,), (0, 1, 2)):
        signs = np.where(np.isin(range(3), reversed_), -1.0, 1.0)
        found = find_effort_meaning(dynamics, replace(log, tau=signs * log.tau))
        assert found.opposite == tuple(names[k] for k in reversed_), found.to_text()
    result = rd.identify(dynamics, replace(log, tau=-np.asarray(log.tau)), friction='coulomb')
    assert any(f'efforts of {", ".join(names)} have the opposite sign' in note
               for note in result.notes)


@pytest.mark.parametrize('robot', [ur10, tiago, kinova])
def test_signs_of_measured_efforts_are_recognised(robot):
    model, log = robot()
    assert not find_effort_meaning(model, log).opposite
    turned = find_effort_meaning(model, replace(log, tau=-np.asarray(log.tau)))
    assert turned.opposite == model.joint_names, turned.to_text()


def test_a_robot_under_a_ceiling_has_no_opposite_signs(measured):
    log, dynamics, _ = measured
    other = rd.Dynamics(replace(dynamics.model, gravity=-dynamics.model.gravity))
    assert not find_effort_meaning(other, log).opposite


def test_torques_are_not_converted_twice(measured, tmp_path):
    log = measured[0]
    np.savez(tmp_path / 'log.npz', t=log.t, q=log.q, tau=log.tau)
    for effort, form in (({'side': 'motor'}, {'side': 'motor'}),
                         ({'measured': 'current'}, {'torque_scale': [1, 1, 1]})):
        with pytest.raises(rd.LogError, match='twice'):
            rd.read_log(tmp_path / 'log.npz', arm(effort), form)


def test_the_command_contradicts_a_wrong_setting(measured, tmp_path, capsys):
    log, dynamics, (_, q, _, _) = measured
    np.savez(tmp_path / 'log.npz', t=log.t, q=log.q, tau=log.tau - dynamics.gravity(q))
    motors = tmp_path / 'motors.yaml'
    for effort, code in ((None, 1), ({'gravity': 'removed'}, 0)):
        motors.write_text(yaml.safe_dump({'joints': DRIVES} | (
            {'effort': effort} if effort else {})))
        assert main(['effort', str(tmp_path / 'log.npz'), '--urdf', ARM,
                     '--motors', str(motors)]) == code
        assert ('contradicts' in capsys.readouterr().out) == bool(code)


def test_identification_honours_what_efforts_mean(measured):
    log, dynamics, (_, q, qd, _) = measured
    settings = rd.Settings(friction='coulomb', decimation=0.0,
                           filter=rd.FilterSettings(cutoff=8.0))
    usual = rd.identify(dynamics, log, settings)
    assert not any('contradicts' in note for note in usual.notes)
    current = rd.identify(arm({'measured': 'current'}), replace(log, tau=log.tau / 7, notes=[]),
                          settings)
    assert np.allclose(current.theta_, usual.theta_, rtol=1e-6, atol=1e-9)
    section = contact_section(usual, free_motions(usual, [replace(log, qd=qd, notes=[])]))
    model = rd.load_model(ARM, motors={'joints': DRIVES, 'contact': section})
    fast, slow = ContactThresholds.read({'contact': section}, model.joint_names).at(qd[0])
    assert (fast < 5).all() and (slow < 5).all()
    assert not free_motions(usual, [log])  # velocities were not measured
    assert contact_section(usual, []) is None
    light = replace(log, tau=log.tau - dynamics.gravity(q), notes=[])
    removed = rd.identify(arm({'gravity': 'removed'}), light, settings)
    assert np.array_equal(removed.model.gravity, usual.model.gravity)
    assert removed.training_.total < 0.05
    assert not any('contradicts' in note for note in removed.notes)
    assert 'gravity removed' in rd.identification.parameters_of(removed)['provenance']['efforts']
    wrong = rd.identify(dynamics, light, settings)
    assert any('contradicts' in note and 'gravity is removed' in note for note in wrong.notes)


def test_sensors_behind_the_gears_do_not_feel_rotors(measured):
    log, dynamics, motion = measured
    bare = rd.Dynamics(dynamics.model.without_motors().without_friction())
    result = rd.identify(
        arm('franka'), replace(log, tau=bare.inverse_dynamics(*motion[1:]), notes=[]),
        rd.Settings(kind='links', decimation=0.0, filter=rd.FilterSettings(cutoff=8.0)))
    assert result.training_.total < 0.02
    assert np.array_equal(result.model.armature, dynamics.model.armature)
    assert np.array_equal(result.model.link_friction, dynamics.model.link_friction)


def test_a_robot_that_adds_gravity_hangs_still_under_the_torques_to_command():
    model = arm({'gravity': 'removed', 'commands_add': ['gravity']})
    drives, dynamics = Drives(rd.Dynamics(model)), rd.Dynamics(model)
    light = rd.Dynamics(commanded_model(model))
    world = Simulation(model.description.urdf, motors={'joints': DRIVES})
    pose = np.array([0.3, 0.4, -0.7])
    world.reset(pose)
    for _ in range(300):
        q, qd = world.position, world.velocity
        world.step(drives.applied(light.gravity(q), q, qd))
    assert np.abs(world.position - pose).max() < 1e-3
    effort = drives.reported(world.effort, q, qd)
    assert np.abs(effort).max() < 1e-6 < np.abs(world.effort).max()
    assert np.allclose(complete_torque(dynamics, q, qd, effort), world.effort)
