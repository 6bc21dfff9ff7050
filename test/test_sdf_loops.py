"""Loops and ball joints of SDF and MJCF, against MuJoCo."""

import numpy as np
import pytest

mujoco = pytest.importorskip('mujoco')
from sdf_robots import BODY, FOUR_BAR, Twin, pose  # noqa: E402
from test_mjcf import close  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.check import check_model  # noqa: E402
from robodyn_ros.description.urdf import read_urdf_text  # noqa: E402
from robodyn_ros.dynamics.loops import read_loops  # noqa: E402
from robodyn_ros.simulation import Simulation  # noqa: E402


def document(*parts):
    return f'<sdf version="1.9"><model name="m">{"".join(parts)}</model></sdf>'


def body(name, x=0.0):
    return f'<link name="{name}"><pose>{x} 0 0 0 0 0</pose>{BODY.format("0 0 0", 1)}</link>'


def joint(name, kind, parent, child, axis='', at='0 0 0'):
    axis = axis and f'<axis><xyz>{axis}</xyz></axis>'
    return (f'<joint name="{name}" type="{kind}"><pose>{at} 0 0 0</pose><parent>{parent}</parent>'
            f'<child>{child}</child>{axis}</joint>')


def test_loops_of_sdf_and_mjcf(tmp_path):
    """A four-bar: closed here, and in MuJoCo after it was written."""
    model = rd.load_model(FOUR_BAR)
    assert model.joint_names == ('motor', 'elbow', 'hinge')
    assert 'close' in next(f for f in model.findings if f.quantity == 'loops').value
    arm = rd.ClosedLoopDynamics(model, {'driven': ['motor']})
    pose_of_all = arm.positions([0.1])
    rd.write_mjcf(model, tmp_path / 'bar.xml')
    engine = mujoco.MjModel.from_xml_path(str(tmp_path / 'bar.xml'))
    data = mujoco.MjData(engine)
    for name, value in zip(model.joint_names, pose_of_all, strict=True):
        data.joint(name).qpos = value
    mujoco.mj_forward(engine, data)
    assert data.ne == 3 and np.abs(data.efc_pos[:3]).max() < 1e-9
    data.joint('elbow').qpos += 0.01
    mujoco.mj_forward(engine, data)
    assert np.abs(data.efc_pos[:3]).max() > 1e-3
    again = rd.ClosedLoopDynamics(rd.load_model(tmp_path / 'bar.xml'), {'driven': ['motor']})
    close(again.gravity([0.1]), arm.gravity([0.1]))
    with pytest.raises(rd.IdentificationError, match="closed loops.*loops='loops.yaml'"):
        rd.write_urdf(model, tmp_path / 'bar.urdf')
    rd.write_urdf(model, tmp_path / 'bar.urdf', loops=tmp_path / 'loops.yaml')
    (cut,) = rd.load_model(FOUR_BAR).description.cuts
    known = read_loops({'driven': ['motor']}, (cut,))
    (tmp_path / 'loops.yaml').write_text((tmp_path / 'loops.yaml').read_text()
                                         + 'driven: [motor]\n')
    np.testing.assert_array_equal(read_loops(tmp_path / 'loops.yaml').cuts[0].points,
                                  known.cuts[0].points)


def test_a_loop_of_slides_is_closed_at_a_joint_that_stays():
    """A wedge lifts a block by as much as it moves: three slides and no hinge."""
    model = rd.load_model(document(
        body('wedge'), body('block', 0.3), joint('x', 'prismatic', 'world', 'wedge', '1 0 0'),
        joint('z', 'prismatic', 'wedge', 'block', '0 0 1'),
        joint('slope', 'prismatic', 'world', 'block', '1 0 1')))
    assert next(f for f in model.findings if f.quantity == 'loops').value == 'slope'
    loop = rd.ClosedLoopDynamics(model, {'driven': ['x']})
    close(loop.positions([0.1]), [0.1, 0.1, 0.1 * np.sqrt(2)])
    close(loop.gravity([0.1]), [9.80665])
    close(loop.mass_matrix([0.1]), [[1.0 + 2.0]])


def test_a_ball_joint_of_a_tree_is_three_hinges(rng):
    model = rd.load_model(document(
        body('a'), body('b', 0.3), joint('y', 'revolute', 'world', 'a', '0 1 0'),
        joint('wrist', 'ball', 'a', 'b', at='-0.1 0 0.05')))
    assert model.joint_names == ('y', 'wrist_x', 'wrist_y', 'wrist_z')
    assert 'singular' in next(f for f in model.findings if f.quantity == 'ball').reason
    assert not [i for i in check_model(model).issues if 'no <inertial>' in i.text]  # its own links
    twin = Twin()
    twin.add('a', 'world', np.eye(4), (0, 0, 0), 1)
    twin.joint('y', 'a', (0, 0, 0), (0, 1, 0))
    twin.add('b', 'a', pose(0.3), (0, 0, 0), 1)
    for name, axis in zip(model.joint_names[1:], np.eye(3), strict=True):
        twin.joint(name, 'b', (0.2, 0, 0.05), axis)
    state = rng.normal(size=(3, 4))
    found, _ = twin.inverse(model, **dict(zip(model.joint_names, state.T, strict=True)))
    close(rd.Dynamics(model).inverse_dynamics(*state),
          [found[name] for name in model.joint_names])


WELDED = """<mujoco><worldbody>
  <body name="crank" pos="0.1 0 0" euler="10 0 0"><joint name="motor" axis="0 1 0"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    <body name="rod" pos="0.3 0 0" euler="0 -50 0"><joint name="elbow" axis="0 1 0"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <body name="tip" pos="0.5 0.02 0"><joint name="wrist" axis="0 1 0"/>
        <inertial pos="0 0 0" mass="0.1" diaginertia="0.01 0.01 0.01"/>
        <site name="tip" pos="0.1 0 0.05" euler="0 20 30"/></body></body></body>
  <body name="rocker" pos="0.6 0 0" euler="10 0 0"><joint name="hinge" axis="0 1 0"/>
    <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    <site name="end" pos="0.45 0.02 0" euler="0 20 30"/></body></worldbody>
  <equality><weld %s/></equality></mujoco>"""


@pytest.mark.parametrize('weld', [
    'body1="rocker" body2="tip" anchor="0.02 0 0.01" relpose="0.4 0.02 0.03 0.9 0 0.4 0"',
    'site1="tip" site2="end"'])
def test_welds_close_loops_as_in_mujoco(weld):
    """In the closed pose MuJoCo finds no gap, and no velocity of it by the motor alone."""
    robot = rd.load_model(WELDED % weld)
    loop = rd.ClosedLoopDynamics(robot, {'driven': ['motor']})
    full = loop.positions(loop.home[:1] + 0.1)
    engine = mujoco.MjModel.from_xml_string(WELDED % weld)
    data = mujoco.MjData(engine)
    for name, value in zip(robot.joint_names, full, strict=True):
        data.joint(name).qpos = value
    mujoco.mj_forward(engine, data)
    assert data.ne == 6 and np.abs(data.efc_pos[:6]).max() < 1e-9
    columns = [engine.joint(name).dofadr[0] for name in robot.joint_names]
    slope = data.efc_J.reshape(-1, engine.nv)[:6, columns] @ loop.motion_matrix(
        full[:1], near=full)
    assert np.abs(slope).max() < 1e-9


def test_loops_survive_the_way_to_a_node(tmp_path):
    """Launch files send every robot as URDF text, in which its cuts are an extension."""
    (tmp_path / 'bar.sdf').write_text(FOUR_BAR)
    text = read_urdf_text(tmp_path / 'bar.sdf')
    sent, read = (rd.load_model(source) for source in (text, FOUR_BAR))
    (cut,), (expected,) = sent.description.cuts, read.description.cuts
    assert cut.links == expected.links
    np.testing.assert_array_equal(cut.points, expected.points)
    close(rd.ClosedLoopDynamics(sent, {'driven': ['motor']}).gravity([0.1]),
          rd.ClosedLoopDynamics(read, {'driven': ['motor']}).gravity([0.1]))
    assert mujoco.MjModel.from_xml_string(text).nv == 3  # which ignores the extension
    assert Simulation(text, loops={'driven': ['motor']}).joint_names == ('motor',)
    for old, new, why in (('link1="', 'link1="no', "unknown link of <closed_loop>.*'nocoupler'"),
                          ('point1="', 'point1="a ', 'point1 is .*three numbers'),
                          ('<pair ', '<pear ', 'has 0 pairs')):
        with pytest.raises(rd.RobodynError, match=why):
            rd.load_model(text.replace(old, new))
