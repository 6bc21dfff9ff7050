"""What `identify` refuses, with messages that name the culprit."""

import numpy as np
import pytest
import scipy.io
from robots import planar_2r
from synthetic import dynamic_motion

import robodyn_ros as rd
from robodyn_ros.commands.main import main


@pytest.fixture(scope='module')
def planar_arm():
    return rd.load_model(planar_2r())


@pytest.fixture(scope='module')
def arrays(planar_arm):
    t, q, _, _, tau = dynamic_motion(planar_arm, np.random.default_rng(0))
    return {'t': t, 'q': q, 'tau': tau, 'joint_names': planar_arm.joint_names}


@pytest.fixture(scope='module')
def folder(arrays, tmp_path_factory):
    """A folder with a robot and its log, with and without a header."""
    folder = tmp_path_factory.mktemp('logs')
    (folder / 'arm.urdf').write_text(planar_2r())
    table = np.column_stack([arrays['t'], arrays['q'], arrays['tau']])
    for name, header in (('log.csv', 't,q_j1,q_j2,tau_j1,tau_j2'), ('plain.csv', '')):
        np.savetxt(folder / name, table, delimiter=',', header=header, comments='')
    return folder


@pytest.mark.parametrize('setting, value', [
    ('friction_width', -0.1), ('friction_width', np.nan), ('decimation', -3.0),
    ('decimation', np.inf), ('slow', -1.0), ('slow', [0.1, np.nan]), ('guard', -1.0),
    ('prior', -1.0)])
def test_settings_are_not_negative(planar_arm, arrays, setting, value):
    with pytest.raises(rd.ValueRangeError, match=f'{setting} is .*from 0 on'):
        rd.identify(planar_arm, rd.Log(**arrays), **{setting: value})


@pytest.mark.parametrize('period', [0.0, -2.0, np.nan, np.inf])
def test_a_period_is_positive(arrays, period):
    with pytest.raises(rd.LogError, match='period of .* s; valid: a number above 0'):
        rd.Log(**arrays, period=period)


def test_a_payload_needs_a_link(planar_arm, arrays):
    """The weight of the payload would become part of the robot."""
    free = rd.Log(**arrays)
    first, rest = free.split(0.7)
    loaded = rd.Log(**arrays, loaded=True, source='afternoon')
    with pytest.raises(rd.IdentificationError, match='afternoon: loaded, but no link'):
        rd.identify(planar_arm, [free, loaded])
    result = rd.identify(planar_arm, first)
    with pytest.raises(rd.IdentificationError, match='afternoon: loaded, but no link'):
        rd.validate(result, [rest, loaded])


@pytest.mark.parametrize('arguments, message', [
    (('plain.csv',), 'plain.csv: has no header; valid: a line with the names of the columns'),
    (('log.csv', '--loaded', 'log.csv'), 'loaded, but no link carries the payload'),
    (('log.csv', '--gains'), '--gains also needs --payload and --payload-mass and --loaded'),
    (('log.csv', '--gains', '--payload', 'lower', '--loaded', 'log.csv', '--payload-mass', '0'),
     'mass of the payload is 0.0; valid: above 0 kg'),
    (('log.csv', '--lock', 'j2=far'), "unknown --lock 'j2=far'; valid: JOINT=POSITION"),
    (('log.csv', '--period', '0'), 'log.csv: has a period of 0.0 s'),
    (('log.csv', '--decimation', 'nan'), 'decimation is nan; valid: a finite number'),
])
def test_the_command_explains_what_it_cannot_use(folder, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(folder)
    assert main(['identify', '--urdf', 'arm.urdf', *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_table_of_base_parameters_has_columns(planar_arm, arrays):
    rng = np.random.default_rng(1)
    noisy = {**arrays, 'tau': arrays['tau'] + 0.01 * rng.normal(size=arrays['tau'].shape)}
    result = rd.identify(planar_arm, rd.Log(**noisy))
    for line, name in zip(result.to_text().splitlines()[1:], result.base_.names, strict=False):
        assert line[2:].split()[0] == name  # no number touches its name


def read_back(path, arm, arrays):
    log = rd.read_log(path, arm)
    order = [log.joint_names.index(name) for name in arm.joint_names]
    np.testing.assert_array_equal(np.asarray(log.q)[:, order], arrays['q'])
    np.testing.assert_array_equal(np.asarray(log.tau)[:, order], arrays['tau'])
    return log


@pytest.mark.parametrize('version', ['5', '7.3'])
def test_names_in_a_mat_file_give_the_order_of_its_joints(planar_arm, arrays, tmp_path, version):
    path, names = tmp_path / 'log.mat', list(planar_arm.joint_names)[::-1]
    q, tau = arrays['q'][:, ::-1], arrays['tau'][:, ::-1]
    if version == '5':
        scipy.io.savemat(path, {'t': arrays['t'], 'q': q, 'tau': tau,
                                'names': np.array(names, dtype=object)})
    else:  # a cell array is an array of references, and MATLAB transposes
        h5py = pytest.importorskip('h5py')
        with h5py.File(path, 'w') as file:
            file['t'], file['q'], file['tau'] = arrays['t'][None], q.T, tau.T
            texts = [file.create_dataset(f'#refs#/{k}', data=np.array([[ord(c)] for c in name],
                                                                      np.uint16))
                     for k, name in enumerate(names)]
            file.create_dataset('names', data=np.array([[text.ref for text in texts]],
                                                       h5py.ref_dtype), dtype=h5py.ref_dtype)
    assert list(read_back(path, planar_arm, arrays).joint_names) == names
    scipy.io.savemat(path, {'t': arrays['t'], 'q': arrays['q'], 'tau': arrays['tau'],
                            'joints': [1, 2]})  # numbers are no names
    read_back(path, planar_arm, arrays)


def test_the_time_of_a_parquet_file_may_be_dates(planar_arm, arrays, tmp_path):
    pyarrow = pytest.importorskip('pyarrow')
    parquet = pytest.importorskip('pyarrow.parquet')
    path, t = tmp_path / 'log.parquet', np.round(arrays['t'] * 1e6).astype(np.int64)
    columns = {f'{word}_{name}': arrays[word][:, k] for word in ('q', 'tau')
               for k, name in enumerate(planar_arm.joint_names)}
    parquet.write_table(pyarrow.table(
        {'t': pyarrow.array(t + 1_700_000_000_000_000, pyarrow.timestamp('us', tz='UTC')),
         **columns}), path)
    log = read_back(path, planar_arm, arrays)
    np.testing.assert_allclose(np.asarray(log.t) - 1.7e9, arrays['t'], atol=1e-6)
    parquet.write_table(pyarrow.table({'t': t, **columns}), path)
    with pytest.raises(rd.LogError, match='5000 s apart: are stamps in seconds'):
        rd.identify(planar_arm, rd.read_log(path, planar_arm))


@pytest.mark.parametrize('horizons', [(), (0.0,), (0.1, -1.0), (np.nan,)])
def test_horizons_of_a_rollout_are_positive(planar_arm, arrays, horizons):
    first, rest = rd.Log(**arrays).split(0.7)
    result = rd.identify(planar_arm, first, friction='coulomb')
    with pytest.raises(rd.ValueRangeError, match='horizons is .* one or more times above 0'):
        rd.roll_out(result, rest, horizons=horizons)
