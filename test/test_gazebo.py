"""World and robot files for Gazebo, the timeout of torques, the loop delay; without Gazebo."""

import numpy as np
import pytest
from lxml import etree
from robots import PANDA_URDF, joint, link, planar_2r, robot

import robodyn_ros as rd
from robodyn_ros.simulation.gazebo import GazeboRobot, without_rotor_inertia, world_sdf
from robodyn_ros.simulation.gazebo_bindings import GazeboError, load_bindings
from robodyn_ros.simulation.gazebo_bodies import merged, thickened
from robodyn_ros.simulation.watchdog import TorqueWatchdog
from robodyn_ros.spatial import (
    Inertial,
    axis_rotation,
    inertial_parameters,
    is_inertia,
    rotation_from_rpy,
    rpy_from_rotation,
)


def test_a_world_has_what_the_bridge_needs():
    root = etree.fromstring(world_sdf(0.0005, (0.0, 0.0, -1.62), name='moon').encode())
    world = root.find('world')
    assert world.get('name') == 'moon' and world.findtext('gravity') == '0.0 0.0 -1.62'
    assert world.findtext('physics/max_step_size') == '0.0005'
    assert {plugin.get('name').rpartition('::')[2] for plugin in world.findall('plugin')} == {
        'Physics', 'UserCommands', 'SceneBroadcaster'}
    for options, culprit in (({'timestep': 0.0}, 'timestep'), ({'timestep': np.nan}, 'timestep'),
                             ({'gravity': (0, 0)}, 'gravity'),
                             ({'gravity': (0, 0, np.inf)}, 'gravity')):
        with pytest.raises(rd.ValueRangeError, match=culprit):
            world_sdf(**options)


def test_a_robot_without_tags_gets_systems_and_a_fixed_base():
    prepared = GazeboRobot.of(planar_2r())
    root = etree.fromstring(prepared.spawn_text([0.0, 0.0], 'arm', update_rate=500.0))
    systems = {}
    for plugin in root.findall('gazebo/plugin'):
        systems.setdefault(plugin.get('name').rpartition('::')[2], []).append(plugin)
    assert [p.findtext('joint_name') for p in systems['ApplyJointForce']] == ['j1', 'j2']
    assert systems['JointStatePublisher'][0].findtext('update_rate') == '500.0'
    echo = systems['TriggeredPublisher'][0]
    assert echo.find('input').get('topic') == '/model/arm/forces_sent'
    assert echo.find('output').get('topic') == '/model/arm/forces_taken'
    base = root.find("joint[@name='fixed_to_world']")
    assert base.find('parent').get('link') == 'world'
    assert base.find('child').get('link') == prepared.model.description.root
    assert not prepared.left_out


def test_tags_for_gazebo_in_the_description_are_ignored():
    text = planar_2r().replace('</robot>', '<gazebo><plugin filename="x" name="y"/></gazebo>'
                               '<ros2_control name="z" type="system"/></robot>')
    spawned = GazeboRobot.of(text).spawn_text([0.0, 0.0], 'arm')
    assert 'filename="x"' not in spawned and 'ros2_control' not in spawned


@pytest.mark.parametrize('text', [planar_2r(), PANDA_URDF.read_text()], ids=['2r', 'panda'])
def test_the_spawned_robot_at_zero_is_the_robot_at_its_start(text, rng):
    prepared = GazeboRobot.of(text)
    model = prepared.model
    lower, upper = model.joints.position_range()
    start = lower + (upper - lower) * rng.uniform(0.2, 0.8, model.n)
    spawned = rd.load_model(prepared.spawn_text(start, 'arm'))
    assert spawned.joint_names == model.joint_names
    own, moved = rd.Dynamics(model), rd.Dynamics(spawned)
    for _ in range(3):
        shift = rng.uniform(-1, 1, model.n) * 0.1
        if model.n > 2:  # a finger that mimics another is fixed in Gazebo
            shift[-1] = 0.0
        arm = slice(None, -1) if model.n > 2 else slice(None)
        np.testing.assert_allclose(moved.gravity(shift)[arm], own.gravity(start + shift)[arm],
                                   atol=1e-9)
        got, want = moved.mass_matrix(shift), own.mass_matrix(start + shift)
        np.testing.assert_allclose(got[arm, arm], want[arm, arm], atol=1e-9)
    np.testing.assert_allclose(spawned.lower, model.lower - start)
    np.testing.assert_allclose(spawned.upper, model.upper - start)


def test_friction_is_kept_and_what_gazebo_lacks_is_reported():
    truth = {'joints': {'j1': {'armature': 0.4, 'damping': 0.8, 'friction': 0.5}}}
    prepared = GazeboRobot.of(planar_2r(), truth=truth)
    assert len(prepared.left_out) == 1 and 'j1 (0.4)' in prepared.left_out[0]
    dynamics = etree.fromstring(prepared.spawn_text([0.0, 0.0], 'arm')).find(
        "joint[@name='j1']/dynamics")
    assert dict(dynamics.attrib) == {'damping': '0.8', 'friction': '0.5'}
    fingers = GazeboRobot.of(PANDA_URDF.read_text())
    assert any('panda_finger_joint2' in sentence for sentence in fingers.left_out)
    root = etree.fromstring(fingers.spawn_text(np.zeros(fingers.model.n), 'panda'))
    assert root.find("joint[@name='panda_finger_joint2']").get('type') == 'fixed'
    assert root.find("joint[@name='panda_finger_joint2']/mimic") is None


def test_the_controller_of_a_robot_in_gazebo_has_no_rotors():
    motors = {'joints': {'j1': {'gear_ratio': 50, 'rotor_inertia': 1e-3, 'spin_axis': 'joint',
                                'link_friction': {'coulomb': 2.0}}, 'j2': {'armature': 0.4}}}
    known = rd.load_model(planar_2r(), motors=motors)
    model = rd.load_model(without_rotor_inertia(planar_2r(), motors=motors))
    assert known.armature.all() and not model.armature.any()
    assert model.link_friction[0, 1] == 2.0
    spawned = rd.load_model(GazeboRobot.of(planar_2r(), motors=motors).spawn_text(
        [0.0, 0.0], 'arm'))
    q = np.array([0.3, -0.8])
    np.testing.assert_allclose(rd.Dynamics(model).mass_matrix(q),
                               rd.Dynamics(spawned).mass_matrix(q), atol=1e-12)


def test_a_base_link_called_world_is_left_as_it_is():
    text = robot(link('world'), link('arm', 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1)),
                 joint('j1', 'revolute', 'world', 'arm'))
    root = etree.fromstring(GazeboRobot.of(text).spawn_text([0.0], 'arm'))
    assert root.find("joint[@name='fixed_to_world']") is None
    assert root.find("link[@name='world']/inertial") is None


def test_base_links_without_mass_are_not_lost():
    text = robot(link('base'), link('plate'), link('arm', 1.0, (0.1, 0, 0),
                                                   (0.1, 0, 0, 0.1, 0, 0.1)), link('tip'),
                 joint('bolt', 'fixed', 'base', 'plate'), joint('j1', 'revolute', 'plate', 'arm'),
                 joint('end', 'fixed', 'arm', 'tip'))
    root = etree.fromstring(GazeboRobot.of(text).spawn_text([0.0], 'arm'))
    heavy = {e.get('name') for e in root.findall('link') if e.find('inertial') is not None}
    assert heavy == {'base', 'plate', 'arm'}


def arm(moving, *more, base=(5.0, (0, 0, 0), (0.2, 0, 0, 0.2, 0, 0.2))):
    """An arm with one joint, whose links have the given inertials."""
    return robot(link('base', *base), link('arm', *moving), joint('j1', 'revolute', 'base', 'arm'),
                 *more)


@pytest.mark.parametrize(('text', 'culprit'), [
    (arm((1.0, (0.1, 0, 0), (0.02, 0, 0, 0.03, 0, 0.06))),
     r"inertia in Gazebo of 'arm', which the joint 'j1' moves, is \[0.02, 0.03, 0.06\].*valid: "
     'none below 0, and none larger'),
    (arm((1.0, (0.1, 0, 0), (0.02, 0.05, 0, 0.03, 0, 0.04))), "of 'arm', .* is \\[-0.025"),
    (arm((0.1, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1)), joint('f', 'fixed', 'arm', 'tip', (1, 0, 0)),
         link('tip', 0.1, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.9))), "inertia in Gazebo of 'tip', "),
    (arm((0.0, (0, 0, 0), (0,) * 6)), "mass of the link 'arm' in Gazebo is 0.0; valid: a mass of "
     "this link or of one that is fixed to it; else Gazebo leaves out the joint 'j1'"),
    (arm(()), "mass of the link 'arm'")])
def test_a_link_that_gazebo_would_refuse_is_named(text, culprit):
    with pytest.raises(rd.ValueRangeError, match=culprit):
        GazeboRobot.of(text)


def test_links_on_fixed_joints_become_one_body():
    """Two of them without mass would give an inertia that is not a number in Gazebo."""
    text = arm((1.0, (0.1, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1)), link('empty', 0.0), link(
        'tip', 0.5, (0.1, 0.2, 0.3), (0.01, 0.001, 0, 0.02, 0, 0.02)), link('end', 0.0),
        joint('a', 'fixed', 'arm', 'empty', (0.3, 0.1, 0), (0.3, -0.4, 1.2)),
        joint('b', 'fixed', 'empty', 'tip', (0.1, 0, 0.2), (-1, 0.2, 0.4)),
        joint('c', 'fixed', 'tip', 'end'), base=(0.0,))
    spawned = GazeboRobot.of(text).spawn_text([0.0], 'arm')
    heavy = {e.get('name') for e in etree.fromstring(spawned).findall('link')
             if e.find('inertial') is not None}
    assert heavy == {'base', 'arm'}
    np.testing.assert_allclose(rd.load_model(spawned).inertial_parameters,
                               rd.load_model(text).inertial_parameters, atol=1e-12)


def test_an_impossible_inertia_of_the_base_does_not_matter():
    bad = (5.0, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.9))
    text = arm((1.0, (0.1, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1)), base=bad)
    spawned = rd.load_model(GazeboRobot.of(text).spawn_text([0.0], 'arm'))
    base = next(entry for entry in spawned.description.links if entry.name == 'base').inertial
    assert is_inertia(base.inertia) and base.mass > 0


def test_thin_bodies_get_a_little_more_inertia(rng):
    """Of rods, plates, and what is impossible by round-off alone, Gazebo refuses some."""
    for moments in ([0.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0 * (1 + 3e-10)]):
        turn = rotation_from_rpy(rng.uniform(-3, 3, 3))
        body = Inertial(1.0, np.zeros(3), turn @ np.diag(moments) @ turn.T)
        least, middle, largest = np.linalg.eigvalsh(thickened(body).inertia)
        assert min(least, least + middle - largest) > 1e-7 * largest
        np.testing.assert_allclose(thickened(body).inertia, body.inertia, atol=1e-6)
    for moments in ([0.0, 0.0, 0.0], [0.1, 1.0, 1.0]):
        body = Inertial(1.0, np.zeros(3), np.diag(moments))
        assert thickened(body) is body


def test_joints_that_would_share_a_topic_of_gazebo_are_refused():
    text = planar_2r().replace('"j1"', '"left arm"').replace('"j2"', '"left_arm@"')
    with pytest.raises(rd.DescriptionError, match="joint 'left_arm@': has the same topic in Gazebo"
                       " as the joint 'left arm'; valid: names that differ in more than spaces"):
        GazeboRobot.of(text)


def test_a_link_with_the_name_of_a_joint_gets_another_name():
    """In SDF, the links and joints of a model share their names; the SO-100 has such links."""
    text = planar_2r().replace('"upper"', '"j2"').replace('"lower"', '"j2_link"')
    prepared = GazeboRobot.of(text)
    spawned = prepared.spawn_text([0.0, 0.0], 'arm', payload=('j2', Inertial(
        1.0, np.zeros(3), np.eye(3))))
    root = etree.fromstring(spawned)
    assert [e.get('name') for e in root.findall('link')][:3] == ['base', 'j2_link1', 'j2_link']
    model = rd.load_model(spawned)
    assert model.joint_names == ('j1', 'j2')
    heavier = (rd.Dynamics(model).mass_matrix([0.3, 0.4])
               - rd.Dynamics(prepared.model).mass_matrix([0.3, 0.4]))
    np.testing.assert_allclose(heavier, [[1.0, 0.0], [0.0, 0.0]], atol=1e-12)  # about z


def test_a_payload_becomes_part_of_its_link():
    body = Inertial(3.0, np.array([0.0, 0.0, 0.1]), np.diag([0.01, 0.02, 0.02]))
    text = GazeboRobot.of(planar_2r()).spawn_text([0.0, 0.0], 'arm', payload=('lower', body))
    model = rd.load_model(planar_2r())
    loaded = rd.Dynamics(model.with_payload('lower', 3.0, body.com, body.inertia))
    q = np.array([0.3, -0.8])
    spawned = rd.Dynamics(rd.load_model(text))
    np.testing.assert_allclose(spawned.mass_matrix(q), loaded.mass_matrix(q), atol=1e-12)
    np.testing.assert_allclose(spawned.gravity(q), loaded.gravity(q), atol=1e-12)


def test_two_bodies_are_merged_into_one(rng):
    bodies = [Inertial(m, rng.normal(size=3), np.diag([1.0, 1.2, 1.3])) for m in (0.5, 2.0)]
    np.testing.assert_allclose(inertial_parameters(merged(*bodies)),
                               sum(map(inertial_parameters, bodies)), atol=1e-12)
    none = Inertial(0.0, np.zeros(3), np.zeros((3, 3)))
    assert merged(none, none).mass == 0.0


def test_angles_of_a_rotation(rng):
    rotations = [rotation_from_rpy(rng.uniform(-3, 3, 3)) for _ in range(50)]
    rotations += [axis_rotation(np.array([0.0, 1.0, 0.0]), angle) @ axis_rotation(
        np.array([1.0, 0.0, 0.0]), 0.4) for angle in (np.pi / 2, -np.pi / 2)]
    for rotation in rotations:
        np.testing.assert_allclose(rotation_from_rpy(rpy_from_rotation(rotation)), rotation,
                                   atol=1e-9)


def test_a_torque_is_zero_when_commands_stop():
    watchdog = TorqueWatchdog()
    watchdog.restart(2)
    assert not watchdog.torque(0.0, 0.1).any()
    watchdog.take(np.array([1.0, 2.0]), 1.0)
    np.testing.assert_array_equal(watchdog.torque(1.0999, 0.1), [1.0, 2.0])
    assert not watchdog.torque(1.1001, 0.1).any()
    assert not watchdog.torque(0.5, 0.1).any()  # the time has jumped back
    watchdog.restart(3)
    assert watchdog.torque(1.05, 0.1).shape == (3,) and not watchdog.torque(1.05, 0.1).any()


def test_brakes_open_with_a_command_of_the_new_motion():
    watchdog = TorqueWatchdog()
    watchdog.restart(1)
    assert watchdog.torque(5.0, 0.1, brakes=True) is None
    watchdog.take(np.array([1.0]), 0.01)  # for the motion before
    assert watchdog.torque(0.02, 0.1, brakes=True) is None
    watchdog.take(np.array([1.0]), 0.06)
    np.testing.assert_array_equal(watchdog.torque(0.06, 0.1, brakes=True), [1.0])


def test_without_gazebo_the_error_says_what_to_install(monkeypatch):
    for name in ('13', '14', ''):
        monkeypatch.setitem(__import__('sys').modules, f'gz.transport{name}', None)
    with pytest.raises(GazeboError, match='python3-gz-transport13'):
        load_bindings()


def test_the_loop_delay_is_measured_from_a_state_to_its_torque():
    pytest.importorskip('rclpy', reason='the module is among the nodes')
    from robodyn_ros.nodes.loop_delay import LoopDelay

    delay = LoopDelay()
    assert delay.report()['loop_delay_mean_ms'] == ''
    for stamp in (1000, 2000, 3000):
        delay.state(stamp)
    delay.answer(2000)
    delay.answer(9999)  # no such state
    report = delay.report()
    assert report['loop_delay_cycles'] == 1 and 0 <= float(report['loop_delay_max_ms']) < 1000
    delay.answer(0)
    assert delay.report()['loop_delay_cycles'] == 0
