"""Motor and gear data: every spelling, and the full rotor model against rotors as bodies."""

import numpy as np
import pytest
from oracle import Oracle
from reference import Lagrange
from robots import PANDA_URDF, joint, link, robot

import robodyn_ros as rd


def arm(extra=''):
    return robot(
        link('base', 1.0), link('a', 2.0, (0.1, 0.2, 0), (0.1, 0, 0, 0.2, 0, 0.2)),
        link('b', 1.0, (0.2, 0, 0.1), (0.1, 0, 0, 0.2, 0, 0.2)),
        link('c', 0.5, (0.1, 0, 0.1), (0.1, 0, 0, 0.2, 0, 0.2)),
        joint('j1', 'revolute', 'base', 'a'),
        joint('j2', 'revolute', 'a', 'b', (0.4, 0, 0), (1.2, 0, 0)),
        joint('j3', 'prismatic', 'b', 'c', (0.4, 0, 0), (0, 0.7, 0), (1, 0, 0)), extra)


SPELLINGS = {
    'URDF transmission': '''
        <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
        <joint name="j1"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction>
        <motorInertia>2e-5</motorInertia></actuator></transmission>''',
    'PR2 transmission': '''
        <transmission type="SimpleTransmission" name="t"><actuator name="m"/><joint name="j1"/>
        <mechanicalReduction>50</mechanicalReduction><motorInertia>2e-5</motorInertia>
        </transmission>''',
    'Drake': '''
        <transmission name="t"><joint name="j1"/><actuator name="m">
        <drake:gear_ratio value="50"/><drake:rotor_inertia value="2e-5"/></actuator>
        </transmission>''',
    'ros2_control': '''
        <ros2_control name="r" type="system"><joint name="j1"/><transmission name="t">
        <plugin>transmission_interface/SimpleTransmission</plugin>
        <actuator name="m" role="actuator1"><mechanical_reduction>5</mechanical_reduction>
        <motorInertia>2e-5</motorInertia></actuator>
        <joint name="j1" role="joint1"><mechanical_reduction>10</mechanical_reduction></joint>
        </transmission></ros2_control>''',
}


@pytest.mark.parametrize('spelling', SPELLINGS)
def test_spellings_of_transmissions(spelling):
    model = rd.load_model(arm(SPELLINGS[spelling]))
    assert model.gear_ratio[0] == 50 and model.armature[0] == pytest.approx(50**2 * 2e-5)
    plain = rd.Dynamics(rd.load_model(arm())).mass_matrix(np.zeros(3))
    difference = rd.Dynamics(model).mass_matrix(np.zeros(3)) - plain
    np.testing.assert_allclose(difference, np.diag([0.05, 0, 0]), atol=1e-15)
    used = {(f.joint, f.quantity) for f in model.findings if f.used}
    assert {('j1', 'gear_ratio'), ('j1', 'rotor_inertia')} <= used


@pytest.mark.parametrize('text', [
    arm().replace('<joint name="j2" type="revolute">',
                  '<joint name="j2" type="revolute" armature="0.3">'),
    arm().replace('<joint name="j2" type="revolute">',
                  '<joint name="j2" type="revolute"><dynamics armature="0.3"/>'),
    arm().replace('<joint name="j2" type="revolute">',
                  '<joint name="j2" type="revolute"><armature value="0.3"/>')])
def test_spellings_of_armature(text):
    assert rd.load_model(text).armature.tolist() == [0, 0.3, 0]


def test_srdf_rotor_params(tmp_path):
    srdf = tmp_path / 'r.srdf'
    srdf.write_text('<robot name="r"><rotor_params>'
                    '<joint name="j2" mass="3e-5" gear_ratio="100"/>'
                    '<joint name="ghost" mass="1" gear_ratio="2"/></rotor_params></robot>')
    model = rd.load_model(arm(), srdf=srdf)
    assert model.armature[1] == pytest.approx(0.3)
    ignored = [f for f in model.findings if not f.used]
    assert {f.joint for f in ignored} == {'ghost'} and 'no such joint' in str(ignored[0])


def test_yaml_overrides_and_the_report_says_so(tmp_path):
    motors = tmp_path / 'motors.yaml'
    motors.write_text('joints:\n  j1: {gear_ratio: 80, rotor_inertia: 1.0e-5, drive_gain: 0.7,\n'
                      '       motor_friction: {viscous: 1.0e-4, coulomb: 0.01, offset: 0.002},\n'
                      '       link_friction: {viscous: 0.5, coulomb: 0.25, offset: -0.1}}\n')
    model = rd.load_model(arm(SPELLINGS['Drake']), motors=motors)
    assert model.gear_ratio[0] == 80 and model.armature[0] == pytest.approx(80**2 * 1e-5)
    assert model.drive_gain[0] == 0.7 and np.isnan(model.drive_gain[1])
    np.testing.assert_allclose(model.motor_friction[0], [80**2 * 1e-4, 80 * 0.01, 80 * 0.002])
    qd = np.array([0.4, 0, 0])
    expected = 0.5 * 0.4 + 0.25 - 0.1 + 0.64 * 0.4 + 0.8 + 0.16
    np.testing.assert_allclose(rd.Dynamics(model).friction(qd), [expected, 0, 0])
    overridden = [f for f in model.findings if not f.used and f.quantity == 'gear_ratio']
    assert overridden and 'overridden by motors.yaml' in str(overridden[0])


@pytest.mark.parametrize(('content', 'culprit'), [
    ('joints: {knee: {gear_ratio: 2}}', 'knee'),
    ('joints: {j1: {gear_ration: 2}}', 'gear_ration'),
    ('joints: {j1: {gear_ratio: 0}}', 'gear_ratio'),
    ('joints: {j1: {gear_ratio: fast}}', 'gear_ratio'),
    ('joints: {j1: {rotor_inertia: .nan}}', 'rotor_inertia'),
    ('joints: {j1: {rotor_inertia: -1}}', 'rotor_inertia'),
    ('joints: {j1: {rotor_inertia: 1, armature: 1}}', 'armature'),
    ('joints: {j1: {spin_axis: [0, 0, 0], rotor_inertia: 1}}', 'spin_axis'),
    ('joints: {j1: {spin_axis: up}}', 'spin_axis'),
    ('joints: {j1: {carrier: leg}}', 'leg'),
    ('joints: {j1: {motor_friction: {viscous: -1}}}', 'viscous'),
    ('joints: {j1: {rotor_mass: -1}}', 'rotor_mass'),
    ('joints: [j1]', 'joints'), ('motors: 1', 'motors'), ('[', 'YAML'), ('1', 'mapping'),
    ('gear_matrix: {joints: [j1, j2], matrix: [[1, 2]]}', 'gear_matrix'),
    ('gear_matrix: {joints: [j1, j2], matrix: [[1, 1], [1, 1]]}', 'singular'),
    ('gear_matrix: {joints: [j1, j9], matrix: [[1, 0], [0, 1]]}', 'j9'),
])
def test_errors_about_motor_data_name_the_culprit(content, culprit, tmp_path):
    motors = tmp_path / 'motors.yaml'
    motors.write_text(content)
    with pytest.raises(rd.RobodynError, match=culprit):
        rd.load_model(arm(), motors=motors)


def test_missing_motor_file():
    with pytest.raises(rd.DescriptionError, match='cannot be read'):
        rd.load_model(arm(), motors='/nonexistent/motors.yaml')


def test_coupling_transmissions_are_reported_and_not_guessed():
    model = rd.load_model(arm('<transmission name="d"><joint name="j1"/><joint name="j2"/>'
                              '<mechanicalReduction>3</mechanicalReduction></transmission>'))
    assert not model.armature.any() and (model.gear_ratio == 1).all()
    assert any('gear_matrix' in f.reason for f in model.findings)


def rotor_bodies(rng):
    """The same arm twice: rotors in motor data, and rotors as links on mimic joints."""
    data, parts = {}, []
    for name, parent in (('j1', 'base'), ('j2', 'a'), ('j3', 'b')):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        ratio, inertia, mass = rng.uniform(-60, 60), rng.uniform(1e-4, 1e-2), rng.uniform(0.1, 1)
        position = rng.normal(size=3) * 0.2
        data[name] = {'gear_ratio': float(ratio), 'rotor_inertia': float(inertia),
                      'rotor_mass': float(mass), 'spin_axis': axis.tolist(),
                      'rotor_position': position.tolist()}
        tensor = inertia * np.outer(axis, axis)
        parts += [link(f'rotor_{name}', mass, (0, 0, 0), tensor[np.triu_indices(3)]),
                  joint(f'spin_{name}', 'continuous', parent, f'rotor_{name}', position,
                        axis=axis, extra=f'<mimic joint="{name}" multiplier="{ratio}"/>')]
    return {'joints': data}, ''.join(parts)


def test_full_rotors_are_bodies_of_their_own(rng):
    motors, bodies = rotor_bodies(rng)
    model = rd.load_model(arm(), motors=motors)
    text = arm(bodies)
    oracle = Oracle(rd.load_model(text), text)
    dynamics = rd.Dynamics(model)
    for q, qd, qdd in rng.uniform(-2, 2, (5, 3, 3)):
        tau = oracle.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(dynamics.inverse_dynamics(q, qd, qdd), tau,
                                   atol=1e-9 * np.abs(tau).max())
        np.testing.assert_allclose(dynamics.mass_matrix(q), oracle.mass_matrix(q), rtol=1e-9,
                                   atol=1e-12)
        np.testing.assert_allclose(dynamics.coriolis(q, qd), oracle.coriolis(q, qd), atol=1e-9)
        np.testing.assert_allclose(dynamics.gravity(q), oracle.gravity(q), atol=1e-9)
        np.testing.assert_allclose(dynamics.regressor(q, qd, qdd) @ model.standard_parameters,
                                   tau, atol=1e-9 * np.abs(tau).max())
    # the armature model omits coupling and gyroscopic terms, and keeps the diagonal
    plain = rd.Dynamics(rd.load_model(arm(), motors=motors, rotor_model='armature'))
    coupling = dynamics.mass_matrix(q) - plain.mass_matrix(q)
    np.testing.assert_allclose(np.diag(plain.mass_matrix(q) - rd.Dynamics(
        model.without_motors()).mass_matrix(q)), model.armature, rtol=1e-9)
    assert np.abs(coupling[np.triu_indices(3, 1)]).max() > 1e-3


def test_rotors_in_their_links_and_on_other_links(rng):
    motors = {'joints': {
        'j1': {'gear_ratio': 50, 'rotor_inertia': 1e-3, 'spin_axis': 'joint'},
        'j2': {'gear_ratio': -30, 'rotor_inertia': 1e-3, 'spin_axis': [0, 1, 0],
               'carrier': 'base'},
        'j3': {'gear_ratio': 20, 'rotor_inertia': 2e-3, 'spin_axis': [1, 0, 0], 'carrier': 'a'}}}
    model = rd.load_model(arm(), motors=motors)
    reference, dynamics = Lagrange(model), rd.Dynamics(model)
    for q, qd in rng.uniform(-2, 2, (4, 2, 3)):
        np.testing.assert_allclose(dynamics.mass_matrix(q), reference.mass_matrix(q), rtol=1e-11,
                                   atol=1e-13)
        np.testing.assert_allclose(dynamics.coriolis_matrix(q, qd),
                                   reference.coriolis_matrix(q, qd), atol=1e-7)


def test_gear_matrix_couples_joints(rng):
    matrix = [[45.0, 0.0], [32.0, 32.0]]
    motors = {'joints': {
        'j1': {'rotor_inertia': 1e-3, 'motor_friction': {'viscous': 1e-3, 'coulomb': 0.1}},
        'j2': {'rotor_inertia': 2e-3, 'motor_friction': {'viscous': 2e-3, 'coulomb': 0.2}}},
        'gear_matrix': {'joints': ['j1', 'j2'], 'matrix': matrix}}
    model, bare = rd.load_model(arm(), motors=motors), rd.load_model(arm())
    k, inertia = np.array(matrix), np.diag([1e-3, 2e-3])
    added = rd.Dynamics(model).mass_matrix(np.zeros(3)) - rd.Dynamics(bare).mass_matrix(
        np.zeros(3))
    np.testing.assert_allclose(added[:2, :2], k.T @ inertia @ k, rtol=1e-11)
    qd = np.array([0.3, -0.7, 0.1])
    speed = k @ qd[:2]
    friction = k.T @ (np.array([1e-3, 2e-3]) * speed + np.array([0.1, 0.2]) * np.sign(speed))
    np.testing.assert_allclose(rd.Dynamics(model).friction(qd), [*friction, 0], rtol=1e-11)
    q, qdd = rng.normal(size=(2, 3))
    np.testing.assert_allclose(
        rd.Dynamics(model).regressor(q, qd, qdd) @ model.standard_parameters,
        rd.Dynamics(model).inverse_dynamics(q, qd, qdd), rtol=1e-11)


def test_a_written_urdf_has_the_friction_offset(tmp_path):
    joints = {'j1': {'link_friction': {'viscous': 0.5, 'coulomb': 0.25, 'offset': -0.1},
                     'armature': 0.2},
              'j3': {'link_friction': {'offset': 3.0}}}
    model = rd.load_model(arm(), motors={'joints': joints})
    rd.write_urdf(model, tmp_path / 'arm.urdf')
    again = rd.load_model(tmp_path / 'arm.urdf')
    np.testing.assert_array_equal(again.link_friction, model.link_friction)
    assert again.armature.tolist() == model.armature.tolist()
    broken = (tmp_path / 'arm.urdf').read_text().replace('friction_offset="3.0"',
                                                         'friction_offset="?"')
    findings = [f for f in rd.load_model(broken).findings if not f.used]
    assert [(f.joint, f.value) for f in findings] == [('j3', '?')]


def test_a_written_urdf_keeps_locked_joints_where_they_were(tmp_path, rng):
    model = rd.load_model(PANDA_URDF, locked_joints={
        'panda_joint4': -0.7, 'panda_joint7': 0.4, 'panda_finger_joint1': 0.03})
    rd.write_urdf(model, tmp_path / 'arm.urdf')
    again = rd.load_model(tmp_path / 'arm.urdf')
    assert again.joint_names == model.joint_names
    for name, frame in model.link_frames.items():
        np.testing.assert_allclose(again.link_frames[name].rotation, frame.rotation, atol=1e-12)
        np.testing.assert_allclose(again.link_frames[name].translation, frame.translation,
                                   atol=1e-12)
    np.testing.assert_allclose(again.inertial_parameters, model.inertial_parameters, atol=1e-12)
