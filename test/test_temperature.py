"""Friction that depends on the temperature of the joints: from the log to the nodes' model."""

from dataclasses import replace

import numpy as np
import pytest
from robots import planar_2r
from synthetic import fourier_motion

import robodyn_ros as rd
from robodyn_ros.identification import parameters_of

WARMER = np.array([[30.0, -0.02, -0.03], [np.nan] * 3])  # the first joint's friction


@pytest.fixture(scope='module')
def arm():
    model = rd.load_model(planar_2r(), gravity=(0, -9.81, 0))
    return replace(model, link_friction=np.array([[1.5, 2.0, 0.0], [0.8, 1.0, 0.0]]),
                   friction_temperature=WARMER)


def warming_log(arm, seconds, seed, warmest=60.0, noise=0.1):
    """A log while both joints warm up; the friction of the first one falls."""
    rng = np.random.default_rng(seed)
    t, *motion = fourier_motion(arm, rng, seconds, 100)
    warm = np.column_stack([30 + (warmest - 30) * (1 - np.exp(-3 * t / t[-1])), 25 + 0.2 * t])
    viscous, coulomb = (arm.link_friction[0, k] + WARMER[0, 1 + k] * (warm[:, 0] - 30.0)
                        for k in (0, 1))
    tau = rd.Dynamics(arm).inverse_dynamics(*motion)
    qd = motion[1][:, 0]
    tau[:, 0] += (viscous - arm.link_friction[0, 0]) * qd + (
        coulomb - arm.link_friction[0, 1]) * np.sign(qd)
    tau += noise * rng.normal(size=tau.shape)
    return rd.Log(t, motion[0], tau, temperature=warm, joint_names=arm.joint_names)


@pytest.fixture(scope='module')
def result(arm):
    return rd.identify(arm, warming_log(arm, 60, 1))


def test_terms_join_the_joint_whose_friction_changes(result):
    terms = result.linear.friction.terms
    assert set(terms[0, 'l']) == {'Fw', 'Fk'}
    assert not {'Fw', 'Fk'} & set(terms.get((1, 'l'), ()))
    found = dict(zip(result.linear.names, result.theta_, strict=True))
    assert found['Fwl:j1'] == pytest.approx(-0.02, rel=0.2)
    assert found['Fkl:j1'] == pytest.approx(-0.03, rel=0.2)


def test_a_validation_at_another_temperature_uses_them(arm, result):
    log = warming_log(arm, 20, 2, warmest=80.0)
    cold = replace(log, temperature=None)
    with_, without = rd.validate(result, log), rd.validate(result, cold)
    assert with_.total < 0.6 * without.total


def test_predictions_follow_a_given_temperature(result):
    state = np.zeros(2), np.array([1.0, 0.0]), np.zeros(2)
    reference = result.linear.friction.reference
    change = result.predict(*state, temperature=reference + [10.0, 0.0]) - result.predict(*state)
    assert change[0] == pytest.approx(10 * (-0.02 - 0.03), rel=0.2)
    assert change[1] == 0.0


def test_logs_at_constant_temperature_get_no_such_terms(arm):
    log = warming_log(arm, 20, 3, warmest=30.5)
    found = rd.identify(arm, replace(log, temperature=np.full((len(log), 2), 30.0)))
    assert not any({'Fw', 'Fk'} & set(terms) for terms in found.linear.friction.terms.values())


def test_the_result_is_saved_and_read(result, tmp_path):
    content = parameters_of(result)
    assert content['friction']['terms']['j1']['l']['Fw']['value'] == pytest.approx(-0.02, rel=0.2)
    assert len(content['friction']['reference_temperature']) == 2
    rd.save_motors(result.model, tmp_path / 'motors.yaml')
    again = rd.load_model(planar_2r(), motors=tmp_path / 'motors.yaml')
    np.testing.assert_allclose(again.friction_temperature, result.model.friction_temperature)


def test_a_model_at_another_temperature_has_its_friction(arm):
    warm = arm.at_temperature([50.0, 50.0])
    np.testing.assert_allclose(warm.link_friction, [[1.1, 1.4, 0.0], [0.8, 1.0, 0.0]])
    np.testing.assert_allclose(warm.at_temperature([30.0, np.nan]).link_friction,
                               arm.link_friction)
    assert (arm.at_temperature([1000.0, 20.0]).link_friction >= 0).all()
    with pytest.raises(rd.ShapeError, match='temperature'):
        arm.at_temperature([50.0])


def test_slow_sensors_are_interpolated(arm):
    log = warming_log(arm, 20, 4)
    sparse = np.full((len(log), 2), np.nan)
    sparse[::200, 0] = log.temperature[::200, 0]
    found = replace(log, temperature=sparse)
    assert len(found) == len(log)
    assert np.abs(found.temperature - log.temperature)[:1801, 0].max() < 0.5
    assert not found.temperature[:, 1].any()  # no sensor


def test_columns_of_tables_are_read(arm, tmp_path):
    log = warming_log(arm, 2, 5)
    table = np.column_stack([log.t, log.q, log.tau, log.temperature])
    names = [f'{word}_{joint}' for word in ('q', 'tau', 'motor_temperature')
             for joint in ('j1', 'j2')]
    path = tmp_path / 'log.csv'
    np.savetxt(path, table, delimiter=',', header=','.join(['t', *names]), comments='')
    np.testing.assert_allclose(rd.read_log(path, arm).temperature, log.temperature)


@pytest.mark.parametrize('kind', ['Temperature', 'DynamicJointState'])
def test_topics_of_bags_are_read(arm, kind, tmp_path):
    rosbag2 = pytest.importorskip('rosbags.rosbag2')
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    from robodyn_ros.identification.reading_bags import CONTROL_MSGS
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in CONTROL_MSGS.items():
        store.register(get_types_from_msg(text, name))
    message = {name.rpartition('/')[2]: one for name, one in store.types.items()
               if name.split('/')[0] in ('std_msgs', 'sensor_msgs', 'control_msgs')}
    time = store.types['builtin_interfaces/msg/Time']
    log = warming_log(arm, 2, 6)
    with rosbag2.Writer(tmp_path / 'bag', version=9) as bag:
        def topic(name, kind):
            full = next(k for k in store.types if k.endswith('/' + kind))
            connection = bag.add_connection(name, full, typestore=store)
            return lambda k, one: bag.write(connection, int(k * 1e7), store.serialize_cdr(
                one, full))
        states, warmth = topic('/joint_states', 'JointState'), topic('/warmth', kind)
        for k in range(len(log)):
            header = message['Header'](time(k // 100, k % 100 * 10_000_000), '')
            states(k, message['JointState'](header, ['j1', 'j2'], log.q[k], np.zeros(2),
                                            log.tau[k]))
            if k % 50:
                continue
            if kind == 'Temperature':  # frame_id names the link
                named = message['Header'](header.stamp, 'upper')
                warmth(k, message[kind](named, log.temperature[k, 0], 0.0))
            else:
                entry = message['InterfaceValue'](['position', 'temperature'], np.array(
                    [log.q[k, 0], log.temperature[k, 0]]))
                warmth(k, message[kind](header, ['j1'], [entry]))
    found = rd.read_log(tmp_path / 'bag', arm, {'temperature_topic': 'warmth'})
    assert np.abs(found.temperature[:151, 0] - log.temperature[:151, 0]).max() < 1.5
    assert not found.temperature[:, 1].any()
    assert any('no temperature of j2' in note for note in found.notes)


def test_nodes_use_the_friction_of_given_temperatures(arm):
    from robodyn_ros.nodes.model_building import BuildRequest, build

    motors = ('joints: {j1: {link_friction: {viscous: 1.5, coulomb: 2.0}, friction_temperature: '
              '{reference: 30.0, viscous: -0.02, coulomb: -0.03}}}')
    options = {'effort': '', 'base': 'auto', 'gravity': (0, -9.81, 0), 'locked_joints': {},
               'rotor_model': None, 'loops': None, 'friction_width': 0.0}
    for temperatures, want in (({}, 1.5), ({'j1': 50.0}, 1.1)):
        built = build(BuildRequest(planar_2r(), None, motors, None, False,
                                   options | {'temperatures': temperatures}, ()))
        assert built.model.link_friction[0, 0] == pytest.approx(want), built.error
    built = build(BuildRequest(planar_2r(), None, motors, None, False,
                               options | {'temperatures': {'elbow': 50.0}}, ()))
    assert 'temperature_joints' in built.error and 'j1' in built.error
