"""Robots from MJCF, against MuJoCo itself; robots written as MJCF and URDF."""

import numpy as np
import pytest

mujoco = pytest.importorskip('mujoco')
from robots import ROBOTS, joint, link, random_robot, robot, text_of  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.dynamics.catalogue import Catalogue  # noqa: E402
from robodyn_ros.spatial import axis_rotation  # noqa: E402

# no moving joint, or (ur3.urdf) no link
WITHOUT = {'hector_description/robots/quadrotor_base.urdf',
           'iris_description/robots/iris_simple.urdf', 'ur_description/urdf/ur3.urdf'}
# links whose largest principal moment exceeds the sum of the others
NOT_RIGID = {'romeo_description/urdf/romeo_laas_small.urdf': 'LShoulderYaw_link|base_link',
             'romeo_description/urdf/romeo_small.urdf': 'RShoulderYawLink'}
# for `make quick`, a few robots stand for all: links with mass but no inertia, with an inertia
# that no body has, mimics
FEW = {'anymal_b_simple_description/robots/anymal.urdf', 'icub_description/robots/icub.urdf',
       'anymal_c_simple_description/urdf/anymal.urdf', 'panda_description/urdf/panda.urdf',
       *NOT_RIGID}
EVERY_ROBOT = pytest.mark.parametrize('name', [
    name if name in FEW else pytest.param(name, marks=pytest.mark.slow)
    for name in sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob('*.urdf'))
    if name not in WITHOUT])

# defaults, degrees, a body with two joints beside its origin, a reference position, inertia from
# geometry and a joint that follows another
ARM = """<mujoco model="arm"><compiler angle="degree"/><option gravity="0.1 0 -9.7"/>
<default><joint armature="0.02" damping="0.3"/>
  <default class="strong"><joint armature="0.2" frictionloss="0.7"/></default></default>
<worldbody><body name="stand" pos="0 0 0.2" euler="10 0 0">
  <body name="upper" pos="0.1 0 0.3" euler="20 30 40">
    <joint name="pan" class="strong" axis="0 0 1" pos="0.02 0.01 0" range="-90 90"/>
    <joint name="tilt" axis="0.6 0.8 0" pos="0 0.03 0.05"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
    <body name="lower" pos="0.3 0 0" euler="0 90 0">
      <joint name="slider" type="slide" axis="1 0 0" ref="0.2" range="0 0.4" damping="5"/>
      <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0"/>
      <body pos="0.2 0 0"><joint name="finger" axis="0 1 0" ref="15"/>
        <inertial pos="0.05 0 0.01" mass="0.3" fullinertia="0.002 0.003 0.004 1e-4 0 2e-4"/>
      </body></body></body></body></worldbody>
<equality><joint joint1="finger" joint2="pan" polycoef="0.1 -0.5 0 0 0"/></equality>
<actuator><motor joint="pan" gear="50" ctrlrange="-2 2"/>
  <position joint="tilt" kp="30" forcerange="-12 12"/></actuator></mujoco>"""

DOG = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="rock" pos="1 0 0"><geom type="sphere" size="0.2"/></body>
<body name="trunk" pos="0 0 0.4"><freejoint name="root"/>
  <inertial pos="0.02 0.01 0.03" mass="5" fullinertia="0.05 0.1 0.12 0.01 0.005 -0.01"/>
  <body name="thigh" pos="0.2 0.1 0"><joint name="hip" axis="1 0 0" armature="0.01"/>
    <inertial pos="0 0.03 -0.1" mass="0.8" diaginertia="0.004 0.004 0.001"/>
    <body name="shank" pos="0 0.05 -0.2"><joint name="knee" axis="0 1 0" armature="0.02"/>
      <inertial pos="0 0 -0.1" mass="0.3" diaginertia="0.002 0.002 0.0005"/></body></body>
</body></worldbody></mujoco>"""


def engine_of(text):
    """The same robot in MuJoCo, without damping, dry friction, limits and equalities."""
    engine = mujoco.MjModel.from_xml_string(text)
    engine.dof_damping[:], engine.dof_frictionloss[:] = 0.0, 0.0
    engine.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return engine, mujoco.MjData(engine)


def inverse(engine, data, q, v, a):
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mujoco.mj_inverse(engine, data)
    return data.qfrc_inverse.copy()


def close(value, expected, relative=1e-9):
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape
    assert np.abs(value - expected).max() <= relative * max(np.abs(expected).max(), 1e-9)


def agrees_with_mujoco(model, text, q, qd, qdd):
    """Compare M and the inverse dynamics with those of MuJoCo for MJCF, in its coordinates."""
    (engine, data), functions = engine_of(text), Catalogue(model.without_friction())
    start, first = model.nq - len(model.joint_names), model.first_joint
    into = np.zeros((engine.nv, model.n))  # velocities of MuJoCo
    drift = np.zeros(engine.nv)
    position = np.zeros(engine.nq)
    if first:
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, np.roll(q[3:7], 1))
        into[:3, :3], into[3:6, 3:6] = turn.reshape(3, 3), np.eye(3)
        drift[:3] = into[:3, :3] @ np.cross(qd[3:6], qd[:3])
        position[:7] = [*q[:3], q[6], *q[3:6]]
    for i, name in enumerate(model.body_joints):
        place = engine.joint(name)
        into[place.dofadr[0], first:] = model.row[i, first:]
        position[place.qposadr[0]] = model.row[i, first:] @ q[start:] + model.offset[i]
    force = inverse(engine, data, position, into @ qd, into @ qdd + drift)
    close(functions.inverse_dynamics(q, qd, qdd), into.T @ force)
    columns = []
    for column in into.T:
        product = np.zeros(engine.nv)
        mujoco.mj_mulM(engine, data, product, column)
        columns.append(into.T @ product)
    close(functions.mass_matrix(q), np.array(columns).T)


@pytest.mark.parametrize('base', ['fixed', 'floating'])
@EVERY_ROBOT
def test_every_robot_becomes_mjcf_with_the_same_dynamics(name, base, tmp_path, rng):
    model = rd.load_model(text_of(name), base=base)
    if name in NOT_RIGID:
        with pytest.raises(rd.DescriptionError, match=f"{NOT_RIGID[name]}.*principal moments"):
            rd.write_mjcf(model, tmp_path / 'robot.xml')
        return
    rd.write_mjcf(model, tmp_path / 'robot.xml')
    q, qd, qdd = (rng.uniform(-1.5, 1.5, size) for size in (model.nq, model.n, model.n))
    if model.floating:
        q[3:7] /= np.linalg.norm(q[3:7])
    agrees_with_mujoco(model, (tmp_path / 'robot.xml').read_text(), q, qd, qdd)
    again = rd.load_model(tmp_path / 'robot.xml')
    assert set(again.joint_names) == set(model.joint_names)
    renamed = {'world': 'world_'} if model.floating else {}
    assert {renamed.get(one, one) for one in model.link_frames} <= {*again.link_frames, 'world'}


def test_what_mujoco_refuses_is_written_where_it_has_no_effect(tmp_path, rng):
    """A flat plate, a point mass, links on fixed joints, and a massless link with inertia."""
    parts = [link('base'), link('plate', 2.0, (0.1, 0, 0), (0.1, 0, 0, 0.2, 0, 0.3)),
             link('camera', 0.1, (0, 0, 0.02)), link('lens', 0.01, (0, 0, 0), (1, 0, 0, 0, 0, 0)),
             link('wheel', 0.0, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1)),
             link('bob', 0.5, (0.3, 0.1, 0)),
             joint('a', 'revolute', 'base', 'plate', axis=(0, 1, 0)),
             joint('mount', 'fixed', 'plate', 'camera', (0.1, 0, 0)),
             joint('fit', 'fixed', 'camera', 'lens', (0.01, 0, 0)),
             joint('b', 'revolute', 'plate', 'wheel', (0.2, 0, 0), axis=(1, 0, 0)),
             joint('c', 'revolute', 'wheel', 'bob', (0, 0.1, 0), axis=(0, 0, 1))]
    text = robot(*parts).replace('<axis xyz="0.0 1.0 0.0"/>',
                                 '<axis xyz="0.0 1.0 0.0"/><axis xyz="0.0 1.0 0.0"/>', 1)
    lens = (1e-6, 0, 0, 1e-6, 0, 1e-6)
    model = rd.load_model(text.replace(link('lens', 0.01, (0, 0, 0), (1, 0, 0, 0, 0, 0)),
                                       link('lens', 0.01, (0, 0, 0), lens)))
    rd.write_mjcf(model, tmp_path / 'robot.xml')
    agrees_with_mujoco(model, (tmp_path / 'robot.xml').read_text(), *rng.normal(size=(3, 3)))
    with pytest.raises(rd.DescriptionError, match="link 'plate' with all that is fixed to it.*"
                       'largest exceeds the sum of the others.*robodyn inertia'):
        rd.write_mjcf(rd.load_model(text), tmp_path / 'robot.xml')


def test_the_inertia_of_a_massless_link_survives_being_written(tmp_path):
    model = rd.load_model(robot(
        link('base', 1.0), link('rotor', 0.0, inertia=(0.1, 0.01, 0, 0.2, 0, 0.25)),
        joint('a', 'revolute', 'base', 'rotor')))
    for file, write in (('robot.urdf', rd.write_urdf), ('robot.xml', rd.write_mjcf)):
        write(model, tmp_path / file)
        close(rd.load_model(tmp_path / file).inertial_parameters, model.inertial_parameters)
    moved = model.with_standard_parameters(np.where(
        [name == 'mx:a' for name in model.parameter_names], 1.0, model.standard_parameters))
    with pytest.raises(rd.IdentificationError, match="'rotor' has a first moment"):
        rd.write_urdf(moved, tmp_path / 'robot.urdf')
    with pytest.raises(rd.DescriptionError, match="'rotor'.*its mass is 0 kg"):
        rd.write_mjcf(moved, tmp_path / 'robot.xml')


def test_locked_joints_that_others_follow_and_one_sided_limits_are_written(tmp_path):
    text = robot(link('base'), *(link(name, 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1))
                                 for name in 'abc'),
                 joint('one', 'revolute', 'base', 'a'), joint('two', 'revolute', 'a', 'b'),
                 joint('three', 'revolute', 'b', 'c',
                       extra='<mimic joint="two" multiplier="2" offset="0.1"/>'))
    model = rd.load_model(text, locked_joints={'two': 0.3})
    rd.write_mjcf(model, tmp_path / 'robot.xml')
    engine = mujoco.MjModel.from_xml_path(str(tmp_path / 'robot.xml'))
    assert engine.njnt == len(model.body_joints) and engine.nu == 1
    again = rd.load_model(tmp_path / 'robot.xml')
    assert again.upper[again.joint_names.index('one')] == 3.0


def test_an_arm_agrees_with_mujoco(rng):
    model = rd.load_model(ARM)
    assert model.joint_names == ('pan', 'tilt', 'slider') and not model.floating
    assert model.gravity.tolist() == [0.1, 0, -9.7]
    off = ARM.replace('-9.7"/>', '-9.7"><flag gravity="disable"/></option>')
    assert rd.load_model(off).gravity.tolist() == [0, 0, 0]
    engine, data = engine_of(ARM)
    follow = np.vstack([np.eye(3), [-0.5, 0, 0]])
    # position of the finger: reference + 0.1 - 0.5 pan
    shift = np.array([0, 0, 0, np.deg2rad(15) + 0.1])
    dynamics = rd.Dynamics(model.without_friction())
    for _ in range(3):
        q, qd, qdd = rng.normal(size=(3, 3))
        expected = follow.T @ inverse(engine, data, follow @ q + shift, follow @ qd, follow @ qdd)
        close(dynamics.inverse_dynamics(q, qd, qdd), expected)
        close(dynamics.pose(q, 'lower')[:3, 3], data.body('lower').xpos)
        close(dynamics.pose(q, 'lower')[:3, :3].ravel(), data.body('lower').xmat)


def test_drives_and_limits_of_mjcf(tmp_path):
    model = rd.load_model(ARM)
    at = {name: i for i, name in enumerate(model.body_joints)}
    assert model.armature[[at['pan'], at['tilt'], at['slider']]].tolist() == [0.2, 0.02, 0.02]
    assert model.link_friction[at['pan'], :2].tolist() == [0.3, 0.7]
    assert model.link_friction[at['slider'], 0] == 5
    assert model.gear_ratio[at['pan']] == 50
    close(model.effort_limit[:2], [100.0, 12.0])
    assert np.isinf(model.effort_limit[2]) and np.isinf(model.upper[1])
    close(model.upper[[0, 2]], [np.pi / 2, 0.4])
    # the mobile base of a public robot is held by such a damping
    rd.write_urdf(rd.load_model(ARM.replace('damping="5"', 'damping="1e11"')), tmp_path / 'a.urdf')
    assert 1e11 in rd.load_model(tmp_path / 'a.urdf').link_friction


def test_a_floating_robot_agrees_with_mujoco(rng):
    """Convert states as the page on conventions says."""
    model = rd.load_model(DOG)
    assert model.floating and model.joint_names == ('hip', 'knee')
    assert 'rock' in next(f for f in model.findings if f.quantity == 'environment').value
    dynamics, (engine, data) = rd.Dynamics(model), engine_of(DOG)
    for _ in range(3):
        quaternion = rng.normal(size=4)
        q = np.array([*rng.normal(size=3), *quaternion / np.linalg.norm(quaternion),
                      *rng.normal(size=2)])
        qd, qdd = rng.normal(size=(2, model.n))
        turn = dynamics.pose(q, 'trunk')[:3, :3]
        qpos = [*q[:3], q[6], *q[3:6], *q[7:]]
        qvel = [*(turn @ qd[:3]), *qd[3:]]
        qacc = [*(turn @ (qdd[:3] + np.cross(qd[3:6], qd[:3]))), *qdd[3:]]
        force = inverse(engine, data, qpos, qvel, qacc)
        tau = np.array([*(turn.T @ force[:3]), *force[3:]])
        close(dynamics.inverse_dynamics(q, qd, qdd), tau)
        close(dynamics.pose(q, 'shank')[:3, 3], data.body('shank').xpos)


@pytest.mark.parametrize('text', [ARM, DOG])
def test_a_robot_survives_being_written(text, tmp_path, rng):
    """MJCF to a model to URDF and MJCF, and back."""
    model = rd.load_model(text)
    rd.write_urdf(model, tmp_path / 'robot.urdf')
    rd.write_mjcf(model, tmp_path / 'robot.xml')
    q, qd, qdd = (rng.normal(size=size) for size in (model.nq, model.n, model.n))
    expected = rd.Dynamics(model).inverse_dynamics(q, qd, qdd)
    for file in ('robot.urdf', 'robot.xml'):
        again = rd.load_model(tmp_path / file, gravity=model.gravity)
        assert again.joint_names == model.joint_names and again.floating == model.floating
        close(rd.Dynamics(again).inverse_dynamics(q, qd, qdd), expected)
        np.testing.assert_array_equal(again.effort_limit, model.effort_limit)


def test_any_urdf_becomes_mjcf(tmp_path, rng):
    text = random_robot(3, 6)
    for base in ('fixed', 'floating'):
        model = rd.load_model(text, base=base)
        rd.write_mjcf(model, tmp_path / 'robot.xml')
        again = rd.load_model(tmp_path / 'robot.xml')
        q, qd, qdd = (rng.normal(size=size) for size in (model.nq, model.n, model.n))
        close(rd.Dynamics(again).inverse_dynamics(q, qd, qdd),
              rd.Dynamics(model).inverse_dynamics(q, qd, qdd))


def test_a_ball_joint_is_three_hinges(rng):
    """Beside its body's origin; the angular velocity of MuJoCo's ball joint is in the body's axes.

    M and g are those of the ball joint, in velocities of the hinges; velocities are compared with
    hinges of MuJoCo.
    """
    at = 'name="tilt" axis="0.6 0.8 0" pos="0 0.03 0.05"'
    tilt = 'name="tilt" type="ball" pos="0 0.03 0.05" armature="0"'
    ball = ARM.replace(at, tilt)
    ball = ball.replace('<position joint="tilt" kp="30" forcerange="-12 12"/>', '')
    model = rd.load_model(ball)
    assert model.joint_names == ('pan', 'tilt_x', 'tilt_y', 'tilt_z', 'slider')
    kept, lost = (f for f in model.findings if f.quantity == 'ball')
    assert kept.used and 'singular' in kept.reason
    assert not lost.used and lost.value == 'damping'
    dynamics = rd.Dynamics(model.without_friction())
    hinges = ball.replace(f'<joint {tilt}/>', ''.join(
        f'<joint axis="{axis}" pos="0 0.03 0.05" armature="0"/>'
        for axis in ('1 0 0', '0 1 0', '0 0 1')))
    (engine, data), (twin, twin_data) = engine_of(ball), engine_of(hinges)
    for _ in range(2):
        q, qd, qdd = rng.normal(size=(3, 5))
        x, y, z = (rotation(axis, angle) for axis, angle in zip('xyz', q[1:4], strict=True))
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, (x @ y @ z).ravel())
        turn = np.zeros((6, 5))  # of MuJoCo's velocities, the finger's last
        turn[0, 0] = turn[4, 4] = 1
        turn[5, 0] = -0.5
        turn[1:4, 1:4] = np.column_stack([z.T @ y.T[:, 0], z.T[:, 1], [0, 0, 1]])
        finger = np.deg2rad(15) + 0.1 - 0.5 * q[0]
        qpos = [q[0], *quaternion, q[4], finger]
        still, *moving = (inverse(engine, data, qpos, np.zeros(6), a)
                          for a in (np.zeros(6), *np.eye(6)))
        close(dynamics.gravity(q), turn.T @ still)
        close(dynamics.mass_matrix(q), turn.T @ (np.array(moving) - still) @ turn)
        close(dynamics.pose(q, 'lower')[:3, 3], data.body('lower').xpos)
        follow = np.vstack([np.eye(5), [-0.5, 0, 0, 0, 0]])
        close(dynamics.inverse_dynamics(q, qd, qdd), follow.T @ inverse(
            twin, twin_data, [*q, finger], follow @ qd, follow @ qdd))


@pytest.mark.skipif(int(mujoco.__version__.split('.')[0]) < 4, reason='not in MuJoCo 3')
def test_an_actuator_of_several_controls_precedes_a_motor():
    many = ARM.replace('name="tilt" axis="0.6 0.8 0"', 'name="tilt" type="ball"').replace(
        '<position joint="tilt" kp="30" forcerange="-12 12"/>', '').replace(
        '<actuator>', '<actuator><orientation joint="tilt" kp="1"/>')
    model = rd.load_model(many)
    assert model.effort_limit[0] == 100.0 and np.isinf(model.effort_limit[1:]).all()


def rotation(axis, angle):
    """A rotation about an axis of the frame."""
    return axis_rotation(np.eye(3)['xyz'.index(axis)], angle)


def test_what_cannot_be_read_says_why(tmp_path):
    two = DOG.replace('<geom type="sphere"', '<freejoint name="loose"/><geom type="sphere"')
    for text, why in ((two, 'rock, trunk.*one robot'),
                      ('<mujoco><worldbody><body/></worldbody>', 'not well-formed'),
                      ('<mujoco><worldbody><cube/></worldbody></mujoco>', 'MuJoCo cannot compile'),
                      ('<cube/>', '<robot>, <mujoco> or <sdf>')):
        with pytest.raises(rd.DescriptionError, match=why):
            rd.load_model(text)
    (tmp_path / 'scene.xml').write_text('<mujoco><include file="dog.xml"/></mujoco>')
    (tmp_path / 'dog.xml').write_text(DOG)
    assert rd.load_model(tmp_path / 'scene.xml').n == 8


def test_robots_without_a_urdf_are_written(tmp_path, rng):
    """A Denavit-Hartenberg table, and a planar joint, become URDFs."""
    body = rd.Inertial(2.0, np.array([-0.2, 0, 0.01]), 0.02 * np.eye(3))
    arm = rd.model_from_dh([[0.5, 0.3, 0.1, 0.0], [0.4, 0, 0, 0.2]], [body, body])
    inertia = (0.2, 0, 0, 0.3, 0, 0.4)
    cart = rd.load_model(robot(link('world'), link('cart', 5.0, (0.1, 0, 0), inertia),
                               link('arm', 1.0, (0.3, 0, 0), inertia),
                               joint('plane', 'planar', 'world', 'cart'),
                               joint('j', 'revolute', 'cart', 'arm', axis=(0, 1, 0))))
    for model in (arm, cart):
        rd.write_urdf(model, tmp_path / 'robot.urdf')
        again = rd.load_model(tmp_path / 'robot.urdf')
        q, qd, qdd = rng.normal(size=(3, model.n))
        close(rd.Dynamics(again).inverse_dynamics(q, qd, qdd),
              rd.Dynamics(model).inverse_dynamics(q, qd, qdd))
