"""Logs of robots with a floating base: tables, arrays, bags, and the command that reads them."""

import numpy as np
import pytest
import yaml

pytest.importorskip('mujoco')
from test_floating_identification import dog, parameter, record  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.commands.main import main  # noqa: E402

STEP = 0.002
POSE, TWIST = ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'), ('vx', 'vy', 'vz', 'wx', 'wy', 'wz')
FEET = ('footL', 'footR')


@pytest.fixture(scope='module')
def robot():
    return rd.load_model(dog())


@pytest.fixture(scope='module')
def recorded():
    """MuJoCo's velocities are half a step older than its positions."""
    samples, true = record()
    later = samples['qd'][1:]
    samples = {name: values[:-1] for name, values in samples.items()}
    samples['qd'] = (samples['qd'] + later) / 2
    samples['q'][700:, 3:7] *= -1  # the same rotations
    return samples | {'t': STEP * np.arange(len(later))}, rd.load_model(true)


def columns(samples, robot, *, twist=True, torques=True, wrenches=FEET):
    """The columns of a table, by their names."""
    q, qd = samples['q'], samples['qd']
    found = {'t': samples['t']} | {f'base_{name}': q[:, k] for k, name in enumerate(POSE)}
    found |= {f'base_{name}': qd[:, k] for k, name in enumerate(TWIST) if twist}
    for k, joint in enumerate(robot.joint_names):
        found[f'q_{joint}'] = q[:, 7 + k]
        if torques:
            found[f'tau_{joint}'] = samples['torques'][:, k]
    for foot in wrenches:
        names = [f'{foot}_{part}' for part in ('fx', 'fy', 'fz', 'mx', 'my', 'mz')]
        found |= dict(zip(names, samples[foot].T, strict=True))
    return found


def write_csv(path, content):
    np.savetxt(path, np.column_stack(list(content.values())), fmt='%.12g', delimiter=',',
               header=','.join(content), comments='')


def write_bag(path, samples, robot, child='trunk'):
    """Joint states without efforts, odometry every other sample, wrenches of both feet."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)

    def make(kind, *fields):
        return store.types[kind](*fields)

    def vector(values):
        return make('geometry_msgs/msg/Vector3', *map(float, values))

    def header(ns, frame):
        return make('std_msgs/msg/Header', make('builtin_interfaces/msg/Time', ns // 10**9,
                                                ns % 10**9), frame)

    def odometry(ns, q, qd):
        pose = make('geometry_msgs/msg/Pose', make('geometry_msgs/msg/Point', *map(float, q[:3])),
                    make('geometry_msgs/msg/Quaternion', *map(float, q[3:7])))
        twist = make('geometry_msgs/msg/Twist', vector(qd[:3]), vector(qd[3:6]))
        still = np.zeros(36)
        return make('nav_msgs/msg/Odometry', header(ns, 'odom'), child,
                    make('geometry_msgs/msg/PoseWithCovariance', pose, still),
                    make('geometry_msgs/msg/TwistWithCovariance', twist, still))

    topics = {'/joint_states': 'sensor_msgs/msg/JointState', '/odom': 'nav_msgs/msg/Odometry',
              **{f'/{foot}/wrench': 'geometry_msgs/msg/WrenchStamped' for foot in FEET}}
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        opened = {topic: bag.add_connection(topic, kind, typestore=store)
                  for topic, kind in topics.items()}

        def write(topic, ns, message):
            bag.write(opened[topic], ns, store.serialize_cdr(message, topics[topic]))

        for k, t in enumerate(samples['t']):
            ns, q = round(t * 1e9), samples['q'][k]
            write('/joint_states', ns, make(
                topics['/joint_states'], header(ns, ''), list(robot.joint_names), q[7:],
                np.zeros(0), np.zeros(0)))
            if k % 2 == 0:
                write('/odom', ns, odometry(ns, q, samples['qd'][k]))
            for foot in FEET:
                wrench = make('geometry_msgs/msg/Wrench', vector(samples[foot][k, :3]),
                              vector(samples[foot][k, 3:]))
                write(f'/{foot}/wrench', ns, make(topics[f'/{foot}/wrench'], header(ns, 'odom'),
                                                  wrench))


def test_a_log_gives_the_motion_with_accelerations(robot, recorded):
    """From measured twists, or from poses alone."""
    samples, _ = recorded
    names = robot.joint_names
    common = samples['t'], samples['q'][:, :7], samples['q'][:, 7:], names
    for twist in (samples['qd'][:, :6], None):
        log = rd.FloatingBaseLog(*common, twist=twist, tau=samples['torques'])
        motion = rd.floating_base_motion(robot, log, cutoff=60.0)
        assert motion.wrenches == {} and motion.torques.shape == (len(motion.q), 4)
        places = np.rint(motion.t / STEP).astype(int)
        for found, expected, tolerance in ((motion.qd, samples['qd'], 0.02),
                                           (motion.qdd, samples['qdd'], 0.06)):
            size = np.abs(expected).max(axis=0)
            assert np.abs((found - expected[places]) / size).max() < tolerance


def test_the_command_identifies_from_tables(robot, recorded, tmp_path, capsys):
    """From the base equations alone, in two files; then with torques and one unknown foot."""
    samples, true = recorded
    (tmp_path / 'dog.xml').write_text(dog())
    half = {name: values[:800] for name, values in samples.items()}
    write_csv(tmp_path / 'a.csv', columns(half, robot, torques=False))
    half = {name: values[700:] for name, values in samples.items()}
    write_csv(tmp_path / 'b.csv', columns(half, robot, torques=False))
    files = [str(tmp_path / name) for name in ('a.csv', 'b.csv')]
    assert main(['identify', *files, '--urdf', str(tmp_path / 'dog.xml'), '-o',
                 str(tmp_path / 'out')]) == 0
    text = capsys.readouterr().out
    assert 'equations: six of the base' in text and 'wrench on footL, wrench on footR' in text
    content = yaml.safe_load((tmp_path / 'out/parameters.yaml').read_text())
    assert content['error']['identified'] < 0.02 < 0.05 < content['error']['description']
    assert len(content['provenance']['logs']) == 2
    found = rd.load_model(tmp_path / 'out/identified.urdf', base='floating')
    mass = [sum(parameter(one, name) for name in one.parameter_names if name.startswith('m:'))
            for one in (found, true)]
    assert abs(mass[0] - mass[1]) < 0.05

    arrays = {'t': samples['t'], 'q': samples['q'][:, 7:], 'tau': samples['torques'],
              'base_pose': samples['q'][:, :7], 'base_twist': samples['qd'][:, :6],
              'wrench_footR': samples['footR']}
    np.savez(tmp_path / 'c.npz', **arrays)
    assert main(['identify', str(tmp_path / 'c.npz'), '--urdf', str(tmp_path / 'dog.xml'), '-o',
                 str(tmp_path / 'more'), '--surfaces', 'footL', '--cutoff', '40']) == 0
    assert 'base and joints' in capsys.readouterr().out
    motors = yaml.safe_load((tmp_path / 'more/motors.yaml').read_text())['joints']
    assert motors['hipL']['link_friction']['viscous'] == pytest.approx(0.2, abs=0.05)
    assert main(['identify', str(tmp_path / 'c.npz'), '--urdf', str(tmp_path / 'dog.xml'), '-o',
                 str(tmp_path / 'no'), '--period', '2']) == 2
    assert '--period is 2.0; valid: none for a floating base' in capsys.readouterr().err


def test_a_bag_with_odometry_and_wrenches(robot, recorded, tmp_path):
    samples, _ = recorded
    write_bag(tmp_path / 'bag', samples, robot)
    form = {'wrench_topics': {foot: f'/{foot}/wrench' for foot in FEET}}
    log = rd.read_floating_base_log(tmp_path / 'bag', robot, form)
    assert log.tau is None and len(log) == 1499 and not log.notes
    signs = np.sign(samples['q'][:1499, 3:7] * log.pose[:, 3:]).max(axis=1, keepdims=True)
    np.testing.assert_allclose(log.pose[:, 3:] * signs, samples['q'][:1499, 3:7], atol=1e-5)
    np.testing.assert_allclose(log.twist, samples['qd'][:1499, :6], atol=0.01)
    np.testing.assert_allclose(log.wrenches['footR'], samples['footR'][:1499])
    motion = rd.floating_base_motion(robot, log)
    found = rd.identify_floating_base(robot, motion.q, motion.qd, motion.qdd,
                                      wrenches=motion.wrenches)
    assert found.error < 0.03 < 0.05 < found.nominal_error


def test_a_bag_with_odometry_of_another_link(robot, recorded, tmp_path):
    """It is converted if the link is fixed to the base, else refused."""
    samples = {name: values[:60] for name, values in recorded[0].items()}
    mounted = rd.load_model(dog().replace(
        '<freejoint', '<body name="imu" pos="0.1 0.2 0.3" euler="10 20 30"/><freejoint', 1))
    frame = mounted.link_frames['imu']
    write_bag(tmp_path / 'imu', samples, robot, 'imu')
    log = rd.read_floating_base_log(tmp_path / 'imu', mounted)
    dynamics = rd.Dynamics(mounted)
    poses = dynamics.pose(np.hstack([log.pose, samples['q'][:len(log), 7:]]), 'imu')
    np.testing.assert_allclose(poses[:, :3, 3], samples['q'][:len(log), :3], atol=1e-5)
    np.testing.assert_allclose(log.twist[:, 3:] @ frame.rotation,
                               samples['qd'][:len(log), 3:6], atol=0.02)
    write_bag(tmp_path / 'foot', samples, robot, 'footL')
    with pytest.raises(rd.LogError, match="odometry of 'footL'.*fixed to the base: trunk"):
        rd.read_floating_base_log(tmp_path / 'foot', robot)


def test_wrenches_in_the_axes_of_their_links(robot, recorded, tmp_path):
    samples, _ = recorded
    content = columns({name: values[:100] for name, values in samples.items()}, robot,
                      wrenches=())
    content |= {f'footL_f{axis}': np.full(100, value) for axis, value in zip(
        'xyz', (1.0, 2.0, 3.0), strict=True)}
    write_csv(tmp_path / 'log.csv', content)
    log = rd.read_floating_base_log(tmp_path / 'log.csv', robot, {'wrench_axes': 'link'})
    axes = rd.Dynamics(robot).pose(samples['q'][:100], 'footL')[:, :3, :3]
    np.testing.assert_allclose(log.wrenches['footL'][:, :3], axes @ [1, 2, 3], atol=1e-9)
    assert not log.wrenches['footL'][:, 3:].any()


def test_contacts_of_a_walk_are_eliminated_while_they_last(robot, recorded, tmp_path, capsys):
    """The left foot's wrench is known in the first half alone, the right one's in the second."""
    samples, _ = recorded
    half = np.arange(len(samples['t'])) < 750
    content = columns(samples, robot)
    for foot, hidden in zip(FEET, (~half, half), strict=True):
        content[f'{foot}_contact'] = hidden.astype(float)
        for part in ('fx', 'fy', 'fz', 'mx', 'my', 'mz'):
            content[f'{foot}_{part}'] = np.where(hidden, 0.0, content[f'{foot}_{part}'])
    write_csv(tmp_path / 'log.csv', content)
    log = rd.read_floating_base_log(tmp_path / 'log.csv', robot)
    motion = rd.floating_base_motion(robot, log, cutoff=40.0)
    near = np.abs(motion.t - samples['t'][750]) < 0.02
    assert (motion.contacts['footL'] | motion.contacts['footR']).all()
    assert (motion.contacts['footL'] & motion.contacts['footR'])[near].any()  # the filter's reach
    found = rd.identify_floating_base(
        robot, motion.q, motion.qd, motion.qdd, torques=motion.torques,
        wrenches=motion.wrenches, surfaces=motion.contacts)
    assert found.error < 0.04 and found.error < found.nominal_error / 5, found
    with pytest.raises(rd.ShapeError, match='truth values'):
        rd.identify_floating_base(robot, motion.q, motion.qd, motion.qdd,
                                  torques=motion.torques, contacts={'footL': [True]})


def test_what_a_log_lacks_is_named(robot, recorded, tmp_path):
    samples, _ = recorded
    short = {name: values[:100] for name, values in samples.items()}
    content = columns(short, robot)
    write_csv(tmp_path / 'log.csv', {k: v for k, v in content.items() if k != 'base_qw'})
    with pytest.raises(rd.LogError, match='no pose of the base.*base_x'):
        rd.read_floating_base_log(tmp_path / 'log.csv', robot)
    write_csv(tmp_path / 'log.csv', content)
    with pytest.raises(rd.ValueRangeError, match='read_floating_base_log'):
        rd.read_log(tmp_path / 'log.csv', robot)
    with pytest.raises(rd.ValueRangeError, match='floating'):
        rd.read_floating_base_log(tmp_path / 'log.csv', rd.load_model(dog(), base='fixed'))
    with pytest.raises(rd.UnknownNameError, match='wrench_axes'):
        rd.read_floating_base_log(tmp_path / 'log.csv', robot, {'wrench_axes': 'foot'})
    pose, joints, names = short['q'][:, :7], short['q'][:, 7:], robot.joint_names
    with pytest.raises(rd.LogError, match='length 2.*x, y, z, w'):
        rd.FloatingBaseLog(short['t'], pose * 2, joints, names)
    with pytest.raises(rd.LogError, match='30 of 100 .* not finite, most in the wrench on footL'):
        rd.FloatingBaseLog(short['t'], pose, joints, names, wrenches={'footL': np.where(
            np.arange(100)[:, None] < 30, np.nan, short['footL'])})
    log = rd.FloatingBaseLog(short['t'], pose, joints, names)
    with pytest.raises(rd.LogError, match='differ in what was measured'):
        rd.floating_base_motion(robot, [log, rd.FloatingBaseLog(
            short['t'], pose, joints, names, tau=short['torques'])])
    with pytest.raises(rd.UnknownNameError, match='hipX'):
        rd.floating_base_motion(robot, rd.FloatingBaseLog(
            short['t'], pose, joints, names, wrenches={'hipX': np.zeros((100, 6))}))
