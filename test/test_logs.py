"""Log files: every format, every defect, hostile files."""

import shutil

import numpy as np
import pytest
from measured_logs import DATA, ur10
from robots import planar_2r

import robodyn_ros as rd

# reading --------------------------------------------------------------------------------------


def test_bag_without_metadata_is_read():
    model, log = ur10()
    assert len(log) == 3441 and log.duration == pytest.approx(27.52)
    assert log.joint_names[0] == 'elbow_joint' or set(log.joint_names) == set(model.joint_names)
    ready = log.for_model(model)
    assert ready.joint_names == model.joint_names and np.abs(ready.tau).max() > 100


def write_bag(path, storage, messages):
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    state, header = (store.types[f'{name}'] for name in (
        'sensor_msgs/msg/JointState', 'std_msgs/msg/Header'))
    time = store.types['builtin_interfaces/msg/Time']
    with Writer(path, version=9, storage_plugin=StoragePlugin[storage]) as bag:
        connection = bag.add_connection('/joint_states', state.__msgtype__, typestore=store)
        for ns, names, position, velocity, effort in messages:
            message = state(header(time(ns // 10**9, ns % 10**9), ''), list(names),
                            np.array(position), np.array(velocity), np.array(effort))
            bag.write(connection, ns, store.serialize_cdr(message, state.__msgtype__))


@pytest.mark.parametrize('storage', ['SQLITE3', 'MCAP'])
def test_bags_of_both_storages(planar_arm, planar_motion, tmp_path, storage):
    t, q, qd, _, tau = planar_motion
    messages = [(round(s * 1e9), ('led', 'j2', 'j1'), [0, *x[::-1]], [0, *v[::-1]],
                 [0, *e[::-1]]) for s, x, v, e in zip(t, q, qd, tau, strict=True)]
    messages.insert(3, (5, ('j1',), [1.0], [], []))  # one state lacks a joint
    write_bag(tmp_path / 'bag', storage, messages)
    log = rd.read_log(tmp_path / 'bag', planar_arm).for_model(planar_arm)
    np.testing.assert_allclose(log.q, q)
    np.testing.assert_allclose(log.tau, tau)
    assert '1 states without' in ' '.join(log.notes) and 'led' in ' '.join(log.notes)
    (tmp_path / 'bag/metadata.yaml').unlink()
    assert len(rd.read_log(tmp_path / 'bag', planar_arm)) == len(t)


def test_truncated_bag_keeps_what_came_before(tmp_path):
    model, whole = ur10()
    cut = tmp_path / 'cut.db3'
    content = (DATA / 'ur10/ur10_exciting_trajectory.db3').read_bytes()
    cut.write_bytes(content[:len(content) // 2])
    try:
        log = rd.read_log(cut, model)
        assert len(log) < len(whole) and 'damaged' in ' '.join(log.notes)
    except rd.LogError as error:  # if sqlite refuses the file as a whole
        assert 'cut.db3' in str(error)
    cut.write_bytes(content[:3000])
    with pytest.raises(rd.LogError, match='cut.db3'):
        rd.read_log(cut, model)


def test_csv_and_npz(planar_arm, planar_motion, tmp_path):
    t, q, qd, _, tau = planar_motion
    for header, name in (('t,q_1,q_2,dq_1,dq_2,tau_1,tau_2', 'numbers.csv'),
                         ('time,position_j1,position_j2,velocity_j1,velocity_j2,effort_j1,'
                          'effort_j2', 'names.csv')):
        path = tmp_path / name
        np.savetxt(path, np.column_stack([t, q, qd, tau]), delimiter=',', header=header,
                   comments='')
        with path.open('a') as file:
            file.write('1,2,3\n')
        log = rd.read_log(path, planar_arm)
        np.testing.assert_allclose(log.q, q)
        np.testing.assert_allclose(log.tau, tau)
        assert '1 lines with a different number' in ' '.join(log.notes)
    np.savez(tmp_path / 'log.npz', time=t, pos=np.rad2deg(q), effort=tau * 0.5)
    log = rd.read_log(tmp_path / 'log.npz', planar_arm, {'degrees': True, 'torque_scale': [2, 2]})
    np.testing.assert_allclose(log.q, q)
    np.testing.assert_allclose(log.tau, tau)


def test_csv_without_header_by_column_numbers(planar_arm, planar_motion, tmp_path):
    t, q, qd, _, tau = planar_motion
    path = tmp_path / 'bare.csv'
    np.savetxt(path, np.column_stack([t, qd, q, tau]), delimiter=',')
    columns = {'time': '1', 'velocity': '2-3', 'position': '4-5', 'torque': '6-7'}
    log = rd.read_log(path, planar_arm, columns)
    assert len(log) == len(t)
    np.testing.assert_allclose(log.q, q)
    np.testing.assert_allclose(log.tau, tau)
    (tmp_path / 'format.yaml').write_text('{time: 1, position: 4-5, torque: 6-7}')
    np.testing.assert_allclose(rd.read_log(path, planar_arm, tmp_path / 'format.yaml').q, q)
    with pytest.raises(rd.LogError, match='valid: 1 to 7'):
        rd.read_log(path, planar_arm, columns | {'torque': '6-9'})
    with pytest.raises(rd.LogError, match='1 columns of position.*joints j1, j2.*--lock'):
        rd.read_log(path, planar_arm, columns | {'position': '4'})


def test_a_joint_that_a_table_lacks_is_named(planar_arm, planar_motion, tmp_path):
    """As the fingers of a hand, of which logs have no torque."""
    t, q, _, _, tau = planar_motion
    path = tmp_path / 'log.csv'
    np.savetxt(path, np.column_stack([t, q, tau[:, 0]]), delimiter=',', comments='',
               header='t,q_j1,q_j2,tau_j1')
    with pytest.raises(rd.LogError, match="no column 'tau' of j2.*--lock"):
        rd.read_log(path, planar_arm)
    locked = rd.load_model(planar_2r(), locked_joints={'j2': 0.1})
    assert rd.read_log(path, locked).joint_names == ('j1',)


def test_currents_are_read_and_reported_as_currents(planar_arm, planar_motion, tmp_path):
    t, q, _, _, tau = planar_motion
    np.savez(tmp_path / 'log.npz', t=t, q=q, current=tau)
    log = rd.read_log(tmp_path / 'log.npz', planar_arm)
    np.testing.assert_allclose(log.tau, tau)
    assert 'torque_scale' in ' '.join(log.notes)
    assert all(part.notes == log.notes for part in log.split(0.7))
    scaled = rd.read_log(tmp_path / 'log.npz', planar_arm, {'torque_scale': [2, 3]})
    np.testing.assert_allclose(scaled.tau, tau * [2, 3])
    assert not scaled.notes


def test_mat_and_parquet(planar_arm, planar_motion, tmp_path):
    import scipy.io

    t, q, _, _, tau = planar_motion
    scipy.io.savemat(tmp_path / 'log.mat', {'t': t, 'q': q, 'tau': tau, 'who': 'someone'})
    log = rd.read_log(tmp_path / 'log.mat', planar_arm)
    np.testing.assert_allclose(log.q, q)
    (tmp_path / 'bad.mat').write_bytes(b'not a file of MATLAB')
    with pytest.raises(rd.LogError, match='cannot be read'):
        rd.read_log(tmp_path / 'bad.mat', planar_arm)
    h5py = pytest.importorskip('h5py')
    with h5py.File(tmp_path / 'log73.mat', 'w', userblock_size=512) as file:
        for name, value in {'t': t[:, None], 'q': q, 'tau': tau}.items():
            file[name] = value.T
    with (tmp_path / 'log73.mat').open('r+b') as file:
        file.write(b'MATLAB 7.3 MAT-file')
    np.testing.assert_allclose(rd.read_log(tmp_path / 'log73.mat', planar_arm).tau, tau)
    with h5py.File(tmp_path / 'bare.mat', 'w') as file:  # other programs write no header
        for name, value in {'t': t[:, None], 'q': q, 'tau': tau}.items():
            file[name] = value.T
    np.testing.assert_allclose(rd.read_log(tmp_path / 'bare.mat', planar_arm).tau, tau)
    pyarrow = pytest.importorskip('pyarrow')
    parquet = pytest.importorskip('pyarrow.parquet')
    columns = {'time': t} | {f'{word}_{k + 1}': values[:, k] for word, values in (
        ('q', q), ('effort', tau)) for k in range(2)}
    parquet.write_table(pyarrow.table(columns), tmp_path / 'log.parquet')
    np.testing.assert_allclose(rd.read_log(tmp_path / 'log.parquet', planar_arm).tau, tau)


def test_bags_of_ros_1(planar_arm, planar_motion, tmp_path):
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    state, header = (store.types[name] for name in (
        'sensor_msgs/msg/JointState', 'std_msgs/msg/Header'))
    time = store.types['builtin_interfaces/msg/Time']
    t, q, qd, _, tau = (x[:300] for x in planar_motion)
    with Writer(tmp_path / 'log.bag') as bag:
        connection = bag.add_connection('/joint_states', state.__msgtype__, typestore=store)
        for k, stamp in enumerate(np.round(t * 1e9).astype(int) + 10**9):
            message = state(header(k, time(int(stamp // 10**9), int(stamp % 10**9)), ''),
                            ['j2', 'j1'], q[k, ::-1].copy(), qd[k, ::-1].copy(),
                            tau[k, ::-1].copy())
            bag.write(connection, int(stamp), store.serialize_ros1(message, state.__msgtype__))
    log = rd.read_log(tmp_path / 'log.bag', planar_arm).for_model(planar_arm)
    np.testing.assert_allclose(log.q, q)
    np.testing.assert_allclose(log.tau, tau)


def test_motor_side_and_the_gear_matrix(planar_motion, tmp_path):
    t, q, _, _, tau = planar_motion
    ratios = np.array([[50.0, 0.0], [20.0, -40.0]])
    geared = rd.load_model(planar_2r(), motors={'gear_matrix': {
        'joints': ['j1', 'j2'], 'matrix': ratios.tolist()}})
    np.savez(tmp_path / 'motor.npz', t=t, q=q @ ratios.T, tau=tau @ np.linalg.inv(ratios))
    log = rd.read_log(tmp_path / 'motor.npz', geared, {'side': 'motor'})
    np.testing.assert_allclose(log.q, q, atol=1e-12)
    np.testing.assert_allclose(log.tau, tau, atol=1e-9)


BAD_FILES = {
    'none.csv': (None, 'does not exist'),
    'text.csv': (b't,q_1,q_2,tau_1,tau_2\n1,2,x,4,5\n', 'cannot be read'),
    'commas.csv': (b't,q_1,q_2,tau_1,tau_2\n', 'no lines'),
    'no_torque.csv': (b't,q_1,q_2\n1,2,3\n', 'no torque'),
    'rubbish.npz': (b'hello', 'cannot be read'),
    'rubbish.db3': (b'hello' * 1000, 'cannot be read'),
    'rubbish.mcap': (b'hello' * 1000, 'cannot be read'),
    'log.xlsx': (b'x', 'suffix'),
}


@pytest.mark.parametrize('name', BAD_FILES)
def test_errors_name_bad_files(planar_arm, tmp_path, name):
    content, what = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(rd.LogError, match=what) as caught:
        rd.read_log(tmp_path / name, planar_arm)
    assert name in str(caught.value)


def test_an_impossible_path_is_reported_as_missing(planar_arm):
    with pytest.raises(rd.LogError, match='does not exist'):
        rd.read_log('x' * 100_000, planar_arm)


def test_errors_name_bad_formats(planar_arm, tmp_path):
    np.savez(tmp_path / 'log.npz', q=np.zeros((60, 2)), tau=np.zeros((60, 2)))
    path = tmp_path / 'log.npz'
    with pytest.raises(rd.LogError, match='no time'):
        rd.read_log(path, planar_arm)
    with pytest.raises(rd.UnknownNameError, match='torqe.*did you mean'):
        rd.read_log(path, planar_arm, {'torqe': 'tau'})
    with pytest.raises(rd.LogError, match="no array 'effort'"):
        rd.read_log(path, planar_arm, {'torque': 'effort'})
    with pytest.raises(rd.UnknownNameError, match='joint, motor'):
        rd.read_log(path, planar_arm, {'rate': 100, 'side': 'left'})
    with pytest.raises(rd.LogError, match='torque_scale has 1'):
        rd.read_log(path, planar_arm, {'rate': 100, 'torque_scale': [1]})
    broken = tmp_path / 'format.yaml'
    broken.write_text('a: [')
    with pytest.raises(rd.LogError, match='format.yaml'):
        rd.read_log(path, planar_arm, broken)
    shutil.rmtree(tmp_path)


# hostile files --------------------------------------------------------------------------------


def test_devices_and_pipes_are_refused(planar_arm, tmp_path):
    import os

    pipe = tmp_path / 'pipe.csv'
    os.mkfifo(pipe)
    (tmp_path / 'bag').mkdir()
    os.mkfifo(tmp_path / 'bag/part.db3')
    zeros = tmp_path / 'zeros.npz'
    zeros.symlink_to('/dev/zero')
    for path in (pipe, zeros, tmp_path / 'bag'):
        with pytest.raises(rd.LogError, match='FIFO, socket or device'):
            rd.read_log(path, planar_arm)
    with pytest.raises(rd.LogError, match='FIFO, socket or device'):
        rd.read_log(tmp_path / 'bag', planar_arm, pipe)  # a format file is checked as well


@pytest.mark.slow
def test_archives_that_unpack_to_more_than_memory_are_refused(planar_arm, tmp_path):
    """One archive claims huge arrays in their headers, the other in its directory."""
    import zipfile

    def header(shape):
        import io

        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            file, {'descr': '<f8', 'fortran_order': False, 'shape': shape})
        return file.getvalue()

    claimed = tmp_path / 'claimed.npz'
    with zipfile.ZipFile(claimed, 'w') as archive:
        for name in ('t.npy', 'q.npy', 'tau.npy'):
            archive.writestr(name, header((10**12, 2)))
    packed = tmp_path / 'packed.npz'
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive, \
            archive.open('q.npy', 'w', force_zip64=True) as file:
        file.write(header((3 << 25, 2)))
        for _ in range(1536):
            file.write(bytes(1 << 20))
    assert packed.stat().st_size < 5e6
    for path in (claimed, packed):
        with pytest.raises(rd.LogError, match='more than 1024 MiB'):
            rd.read_log(path, planar_arm)


def test_complex_numbers_and_objects_are_refused(planar_arm, planar_motion, tmp_path):
    t, q, _, _, tau = planar_motion
    path = tmp_path / 'log.npz'
    np.savez(path, t=t, q=q, tau=tau + 1j)
    with pytest.raises(rd.LogError, match="'tau.npy' of type complex128"):
        rd.read_log(path, planar_arm)
    np.savez(path, t=t, q=q, tau=tau, note=np.array({'a': 1}, dtype=object))
    with pytest.raises(rd.LogError, match='of type object'):
        rd.read_log(path, planar_arm)
    with pytest.raises(rd.ShapeError, match='complex128; valid: real numbers'):
        rd.Log(t, q, tau * (1 + 1j), joint_names=('j1', 'j2'))
    (tmp_path / 'log.csv').write_text('t,q_1,q_2,tau_1,tau_2\n' + '1+2j,0,0,0,0\n' * 60)
    with pytest.raises(rd.LogError, match='cannot be read'):
        rd.read_log(tmp_path / 'log.csv', planar_arm)
