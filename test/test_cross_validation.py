"""Cross-validation over runs, and the options of the command line that go with it."""

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import planar_2r
from synthetic import coloured_noise, fourier_motion

import robodyn_ros as rd
from robodyn_ros.commands.main import main

TRUE = rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors={'joints': {
    name: {'link_friction': {'viscous': 0.4, 'coulomb': 0.8}, 'armature': 0.1}
    for name in ('j1', 'j2')}})
MODEL = replace(TRUE, lower=np.full(2, -2.0), upper=np.full(2, 2.0),
                velocity_limit=np.full(2, 3.0))


def runs(count, spoiled=None):
    rng = np.random.default_rng(7)
    found = []
    for k in range(count):
        t, q, qd, qdd = fourier_motion(MODEL, rng, 12, 100)
        tau = rd.Dynamics(TRUE).inverse_dynamics(q, qd, qdd)
        tau = tau + coloured_noise(rng, len(t), 0.02 * np.abs(tau).max(axis=0), 0.5)
        found.append(rd.Log(t, q, 1.5 * tau if k == spoiled else tau, joint_names=('j1', 'j2'),
                            source=f'run{k}'))
    return found


@pytest.mark.slow
def test_errors_scatter_and_outliers():
    found = rd.cross_validate(TRUE, runs(5, spoiled=3), rd.Settings(friction='coulomb'))
    assert found.outliers == ('run3',) and len(found.validations) == 5
    assert found.errors[3] > 2 * np.median(found.errors)
    good = rd.cross_validate(TRUE, runs(5), rd.Settings(friction='coulomb'))
    assert good.outliers == () and good.errors.max() < 0.06
    assert 0.3 < good.spread < 2.5
    assert 'run2' in good.to_text() and yaml.safe_dump(good.to_dict())
    with pytest.raises(rd.IdentificationError, match='at least two'):
        rd.cross_validate(TRUE, runs(1))


def test_rollouts_follow_the_motion():
    """The identified model stays with the measured motion; a wrong description does not."""
    first, second = runs(2)
    wrong = rd.load_model(planar_2r(m1=3.0, m2=2.5), gravity=(0, -9.81, 0))
    result = rd.identify(wrong, first, friction='coulomb')
    found = rd.roll_out(result, second)
    assert found.horizons == (0.1, 0.5, 2.0) and found.open_loop.shape == (3, 2)
    assert (found.open_loop[0] < 0.005).all() and (found.open_loop[1] < 0.05).all()
    assert (found.closed_loop[2] < 0.05).all()
    assert (found.closed_loop[2] < found.open_loop[2]).all()
    assert (found.description[1] > 4 * found.open_loop[1]).all()
    assert 'closed loop' in found.to_text() and yaml.safe_dump(found.to_dict())
    with pytest.raises(rd.IdentificationError, match='longest motion'):
        rd.roll_out(result, second, horizons=(60.0,))


def test_a_validation_has_a_rollout_that_counts_for_the_verdict():
    """Also where the description has no inertia, so that it cannot be simulated itself."""
    first, second = runs(2)
    upper, lower = planar_2r().split('<link name="lower">')
    bare = rd.load_model(f'{upper}<link name="lower">'
                         + re.sub('<inertial>.*?</inertial>', '', lower, flags=re.DOTALL),
                         gravity=(0, -9.81, 0))
    validation = rd.validate(rd.identify(bare, first, friction='coulomb'), second)
    assert np.isinf(validation.rollout.description).all()
    assert (validation.rollout.open_loop[0] < 0.005).all()
    assert 'open loop' in validation.to_text()
    strict = rd.validate(rd.identify(TRUE, first, friction='coulomb'), second,
                         thresholds=rd.Thresholds(rollout=1e-6))
    assert strict.verdict == 'doubtful' and 'simulated under the measured' in strict.reasons[0]


@pytest.mark.slow
def test_the_commands(tmp_path, capsys):
    from robots import planar_2r

    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(planar_2r())
    paths = []
    for k, log in enumerate(runs(3)):
        paths.append(tmp_path / f'run{k}.npz')
        np.savez(paths[-1], t=log.t, q=log.q, tau=log.tau)
    logs = [str(path) for path in paths]
    out = tmp_path / 'out'
    assert main(['identify', *logs, '--urdf', str(urdf), '-o', str(out), '--friction', 'coulomb',
                 '--cross-validate']) == 0
    assert 'std between runs' in capsys.readouterr().out
    assert set(yaml.safe_load((out / 'cross_validation.yaml').read_text())['runs']) == {
        path.name for path in paths}
    assert main(['identify', *logs, '--urdf', str(urdf), '--gains']) == 2
    assert '--payload-mass' in capsys.readouterr().err
    # a locked joint has no parameters of its own
    one = tmp_path / 'one.npz'
    log = runs(1)[0]
    locked = rd.load_model(urdf, gravity=(0, -9.81, 0), locked_joints={'j2': 0.3})
    qd = np.gradient(log.q[:, :1], log.t, axis=0)
    tau = rd.Dynamics(locked).inverse_dynamics(log.q[:, :1], qd, np.gradient(qd, log.t, axis=0))
    np.savez(one, t=log.t, q=log.q[:, :1], tau=tau)
    main(['identify', str(one), '--urdf', str(urdf), '-o', str(tmp_path / 'locked'),
          '--lock', 'j2=0.3', '--friction', 'coulomb', '--friction-width', '0.01'])
    parameters = yaml.safe_load((tmp_path / 'locked/parameters.yaml').read_text())
    assert all(name.endswith(':j1') for name in parameters['base_parameters'])
    assert parameters['friction']['width'] == 0.01
    assert set(parameters['validation']['rollout']['open_loop']) == {'0.1 s', '0.5 s', '2 s'}
    written = rd.load_model(tmp_path / 'locked/identified.urdf', gravity=(0, -9.81, 0))
    assert written.joint_names == ('j1',)


def test_a_payload_and_drive_gains_on_the_command_line(tmp_path, capsys):
    """Logs without and with a payload of 1.5 kg at 0.3 m; then the same logs as currents."""
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(planar_2r())
    empty = replace(rd.load_model(urdf), lower=MODEL.lower, upper=MODEL.upper,
                    velocity_limit=MODEL.velocity_limit, armature=TRUE.armature)
    full = empty.with_payload('lower', 1.5, (0.3, 0.0, 0.0), 0.01 * np.eye(3))
    rng, gains = np.random.default_rng(7), np.array([3.0, 2.0])
    for name, model in (('empty', empty), ('full', full)):
        t, q, qd, qdd = fourier_motion(empty, rng, 8, 100)
        tau = rd.Dynamics(model).inverse_dynamics(q, qd, qdd)
        np.savez(tmp_path / f'{name}.npz', t=t, q=q, tau=tau)
        np.savez(tmp_path / f'{name}_current.npz', t=t, q=q, current=tau / gains)
    payload = ['--payload', 'lower', '--payload-mass', '1.5']
    out = tmp_path / 'out'
    main(['identify', str(tmp_path / 'empty.npz'), '--urdf', str(urdf), '-o', str(out),
          '--friction', 'coulomb', '--cutoff', '12', *payload,
          '--loaded', str(tmp_path / 'full.npz')])
    assert 'filter of order 4 at 12 Hz' in ' '.join(capsys.readouterr().out.split())
    found = yaml.safe_load((out / 'parameters.yaml').read_text())
    centre = found['base_parameters']['mx:payload']
    assert centre['value'] == pytest.approx(0.45, abs=0.005)
    assert main(['identify', str(tmp_path / 'empty_current.npz'), '--urdf', str(urdf), *payload,
                 '--loaded', str(tmp_path / 'full_current.npz'), '--gains']) == 0
    printed = dict(re.findall(r'(j[12]): ([0-9.]+) N m/A', capsys.readouterr().out))
    np.testing.assert_allclose([float(printed[f'j{k}']) for k in (1, 2)], gains, rtol=0.02)


def test_mjcf_has_the_identified_dynamics_and_names_the_null_space(tmp_path, rng):
    import mujoco

    result = rd.identify(TRUE, runs(1)[0], friction='coulomb')
    rd.write_mjcf(result, tmp_path / 'arm.xml')
    text = (tmp_path / 'arm.xml').read_text()
    assert 'Without effect on the torques' in text and 'Only these sums' in text
    engine = mujoco.MjModel.from_xml_path(str(tmp_path / 'arm.xml'))
    assert engine.nu == 2
    np.testing.assert_allclose(engine.dof_damping, result.model.link_friction[:, 0], rtol=1e-9)
    engine.dof_damping[:] = engine.dof_frictionloss[:] = 0
    engine.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    state = mujoco.MjData(engine)
    state.qpos, state.qvel, state.qacc = q, qd, qdd = rng.uniform(-1, 1, (3, 2))
    mujoco.mj_inverse(engine, state)
    want = rd.Dynamics(result.model.without_friction()).inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(state.qfrc_inverse, want, rtol=1e-9, atol=1e-9)
