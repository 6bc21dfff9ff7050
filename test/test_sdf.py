"""Robots from SDF: against MuJoCo, which gets the same robots as MJCF, and against libsdformat."""

import numpy as np
import pinocchio as pin
import pytest

mujoco = pytest.importorskip('mujoco')
from sdf_robots import ARM, BODY, ROVER, Twin, arm_twin, pose  # noqa: E402
from test_mjcf import close  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.commands.main import main  # noqa: E402
from robodyn_ros.description.tree import joints_parent_first  # noqa: E402
from robodyn_ros.description.urdf import read_urdf_text  # noqa: E402
from robodyn_ros.spatial import rotation_from_quaternion  # noqa: E402


def test_an_arm_agrees_with_mujoco(rng):
    model = rd.load_model(ARM)
    assert model.joint_names == ('pan', 'tilt', 'thread', 'cardan_axis', 'cardan_axis2', 'spin')
    dynamics, twin = rd.Dynamics(model.without_friction()), arm_twin()
    for _ in range(3):
        state = rng.normal(size=(3, 6))
        values = dict(zip(model.joint_names, state.T, strict=True))
        found, data = twin.inverse(model, **values, advance=0.3 / (2 * np.pi) * values['thread'],
                                   turn=3 * values['spin'])
        expected = np.array([found[name] for name in model.joint_names])
        expected[2] += 0.3 / (2 * np.pi) * found['advance']
        expected[5] += 3 * found['turn']
        close(dynamics.inverse_dynamics(*state), expected)
        for link in ('cross', 'gear'):
            close(dynamics.pose(state[0], link)[:3, 3], data.body(link).xpos)
            close(dynamics.pose(state[0], link)[:3, :3].ravel(), data.body(link).xmat)


def test_friction_and_limits():
    model = rd.load_model(ARM)
    assert not model.floating and model.description.root == 'world'
    assert model.link_friction[0].tolist() == [0.5, 0.7, 0]
    assert (model.lower[0], model.upper[0], model.effort_limit[0]) == (-1, 2, 30)
    assert np.isinf(model.velocity_limit[0]) and np.isinf(model.upper[1])
    stand = next(f for f in model.findings if f.joint == 'stand')
    assert 'SDF then gives the link 1 kg' in stand.reason
    world = ARM.replace('<model', '<world name="w"><gravity>0 0 -1</gravity><model', 1).replace(
        '</model>', '</model><model name="box"><static>1</static><link name="l"/></model></world>')
    again = rd.load_model(world)
    assert again.gravity.tolist() == [0, 0, -1] and again.name == 'arm'
    assert again.joint_names == model.joint_names
    np.testing.assert_array_equal(again.translation, model.translation)


def test_a_floating_robot_agrees_with_mujoco(rng):
    model = rd.load_model(ROVER)
    assert model.floating and model.joint_names == ('hip', 'knee')
    twin, leg = Twin(), pose(0.3, rpy=(0, 0, 1.2))
    twin.add('trunk', 'world', np.eye(4), (0, 0, 0), 5)
    twin.spec.body('trunk').add_freejoint(name='free')
    twin.add('leg', 'trunk', leg, (0, 0, -0.1), 1)
    twin.joint('hip', 'leg', (leg @ [0, 0.1, 0, 1])[:3], (0, 1, 0))
    twin.add('foot', 'leg', pose(0.3, 0.1, -0.4), (0, 0, 0), 0.2)
    twin.joint('knee', 'foot', (0.3, 0.1, -0.4), (0, 0, 1), 'SLIDE')
    joints = rng.normal(size=(3, 2))
    q = np.array([0, 0, 0, 0, 0, 0, 1, *joints[0]])
    found, _ = twin.inverse(model, **dict(zip(model.joint_names, joints.T, strict=True)))
    tau = rd.Dynamics(model).inverse_dynamics(q, np.append(np.zeros(6), joints[1]),
                                              np.append(np.zeros(6), joints[2]))
    close(tau[6:], [found['hip'], found['knee']])
    assert rd.load_model(ROVER, base='fixed').n == 2


def test_a_robot_survives_being_written(tmp_path, capsys, rng):
    model = rd.load_model(ARM)
    rd.write_urdf(model, tmp_path / 'arm.urdf')
    again = rd.load_model(tmp_path / 'arm.urdf')
    assert again.joint_names == model.joint_names
    # urdfdom refuses limits without effort or velocity
    assert pin.buildModelFromXML((tmp_path / 'arm.urdf').read_text()).nq >= 6
    for name in ('translation', 'rotation', 'axis', 'row', 'inertial_parameters', 'lower',
                 'effort_limit', 'link_friction'):
        np.testing.assert_allclose(getattr(again, name), getattr(model, name), atol=1e-12)
    rd.write_mjcf(model, tmp_path / 'arm.xml')
    assert set(rd.load_model(tmp_path / 'arm.xml').joint_names) == set(model.joint_names)
    (tmp_path / 'arm.sdf').write_text(ARM)
    main(['check', str(tmp_path / 'arm.sdf')])
    assert 'pan' in capsys.readouterr().out
    assert read_urdf_text(tmp_path / 'arm.sdf').startswith('<robot name="arm">')


def test_included_and_nested_models(tmp_path):
    """A tool that two models include, one placed by its grip, one merged."""
    tool = tmp_path / 'models' / 'tool'
    tool.mkdir(parents=True)
    (tool / 'model.config').write_text(
        '<model><sdf version="1.4">old.sdf</sdf><sdf version="1.9">new.sdf</sdf></model>')
    (tool / 'new.sdf').write_text(f"""<sdf version="1.9"><model name="tool">
        <link name="body">{BODY.format('0 0 0.1', 1)}</link>
        <frame name="grip"><pose>0 0 -0.2 0 0 0.5</pose></frame></model></sdf>""")
    text = """<sdf version="1.9"><model name="cell"><link name="hand"/>
        <model name="inner"><link name="l"><pose>1 0 0 0 0 0</pose></link></model>
        <joint name="a" type="prismatic"><parent>hand</parent><child>inner</child>
          <axis><xyz>1 0 0</xyz></axis></joint>
        <include><uri>{}</uri><name>left</name>
          <pose relative_to="inner::l">0 0 1 0 0 0</pose>
          <placement_frame>grip</placement_frame></include>
        <joint name="b" type="revolute"><parent>inner</parent><child>left::grip</child>
          <axis><xyz>0 0 1</xyz></axis></joint>
        <include merge="1"><uri>model://tool</uri><pose>0 2 0 0 0 0</pose></include>
        <joint name="c" type="fixed"><parent>hand</parent><child>body</child></joint>
        </model></sdf>"""
    file = tmp_path / 'models' / 'cell' / 'model.sdf'
    file.parent.mkdir()
    for uri in ('../tool', 'model://tool', (tool / 'new.sdf').as_uri()):
        file.write_text(text.format(uri))
        description = rd.load_model(file).description
        poses = poses_at_zero(description)
        close(poses['left::body'], pose(1, 0, 1) @ np.linalg.inv(pose(z=-0.2, rpy=(0, 0, 0.5))))
        close(poses['body'], pose(0, 2))
    with pytest.raises(rd.DescriptionError, match='left.*a text cannot include|cannot include'):
        rd.load_model(file.read_text())
    for uri, why in (('https://fuel.gazebosim.org/x', 'no such file on this computer'),
                     ('model://absent', 'no such file'), ('/dev/zero', 'no such file'),
                     ('model.sdf', 'too many included files')):
        file.write_text(text.format(uri))
        with pytest.raises(rd.DescriptionError, match=why):
            rd.load_model(file)


def poses_at_zero(description):
    """Poses of all links in the frame of the root link, at joint positions zero."""
    poses = {description.root: np.eye(4)}
    for joint, _ in joints_parent_first(description.root, description.joints):
        place = np.eye(4)
        place[:3, :3], place[:3, 3] = joint.rotation, joint.translation
        poses[joint.child] = poses[joint.parent] @ place
    return poses


@pytest.mark.parametrize('text', [ARM, ROVER])
def test_poses_and_axes_agree_with_libsdformat(text, tmp_path):
    sdformat = pytest.importorskip('sdformat14', reason='libsdformat has no Python bindings here')
    description = rd.load_model(text).description
    root = sdformat.Root()
    root.load_sdf_string(text)
    theirs, poses = root.model(), poses_at_zero(description)
    start = transform(theirs.raw_pose()) if not description.floating else np.eye(4)
    for i in range(theirs.link_count()):
        one = theirs.link_by_index(i)
        place = transform(one.semantic_pose().resolve('__model__'))
        close(poses[one.name()], start @ place)
    for i in range(theirs.joint_count()):
        one = theirs.joint_by_index(i)
        ours = next((j for j in description.joints if j.name == one.name()), None)
        if ours is None or one.axis(0) is None:
            continue
        xyz = one.axis(0).resolve_xyz('__model__')
        axis = start[:3, :3] @ [xyz.x(), xyz.y(), xyz.z()]
        sign = -1 if one.name() == 'tilt' else 1  # its child is nearer to the base
        close(poses[ours.child][:3, :3] @ ours.axis, sign * axis)


def transform(theirs):
    rotation = theirs.rot()
    place = pose(theirs.x(), theirs.y(), theirs.z())
    place[:3, :3] = rotation_from_quaternion([rotation.x(), rotation.y(), rotation.z(),
                                              rotation.w()])
    return place


@pytest.mark.parametrize(('old', 'new', 'why'), [
    ('version="1.11"', 'version="1.2"', "<sdf> .line 1.: version is '1.2'.*gz sdf -p"),
    ('type="screw"', 'type="hose"', "'thread' .line 17.: type is 'hose'.*universal"),
    ('<axis><xyz>1 0 0</xyz></axis></joint>', '</joint>', "'thread' .*has no <axis>"),
    ('relative_to="mark"', 'relative_to="park"', "line 11.*'park'.*did you mean 'mark'"),
    ('relative_to="mark"', 'relative_to="nut"', 'leads in a cycle'),
    ('<parent>lower', '<parent>slower', "'slower'.*did you mean 'lower'"),
    ('<mass>2</mass>', '<mass>2,5</mass>', "'upper' .line 5.: <mass> is '2,5'.*decimal comma"),
    ('<mass>2</mass>', '<mass>-2</mass>', "'upper' .line 5.: mass is -2"),
    ('<inertial><pose>0.1 0 0.02', '<inertial auto="true"><pose>0.1 0 0.02',
     "'upper' .*expand-auto-inertials"),
    ('<damping>', '<dampening>0</dampening><damping>', "unknown element <dampening>; valid: dam"),
    ('degrees="true"', 'rotation_format="matrix"', "rotation_format 'matrix'"),
    ('0.3 0.1 0 90 0 30', '0.3 0.1 0 90 0', "'mark'.*6 numbers"),
    ('<xyz expressed_in="mark">0 0 2', '<xyz expressed_in="mark">0 0 0', 'a unit vector'),
    ('<gearbox_reference_body>stand', '<gearbox_reference_body>nut', 'does not couple two hinges'),
    ('<link name="nut">', '<link name="lower">', "'lower' .*name is taken"),
    ('<link name="stand"/>', '<link name="st&#9;and"/>', 'control characters')])
def test_what_cannot_be_read_says_why(old, new, why):
    assert old in ARM
    with pytest.raises(rd.RobodynError, match=why):
        rd.load_model(ARM.replace(old, new, 1))
