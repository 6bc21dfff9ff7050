"""The node `dynamics`, a real process that all tests share, on real topics."""

import time

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from builtin_interfaces.msg import Time  # noqa: E402
from dynamics_answers import BAD_DESCRIPTIONS, Counts, answer, use  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from oracle import Oracle  # noqa: E402
from robots import PANDA_URDF, planar_2r  # noqa: E402
from ros_world import World, message_at, payload  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from test_description import BROKEN  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_interfaces.srv import SetModel, SetPayload  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import nanoseconds  # noqa: E402

pytestmark = pytest.mark.nodes

TEXT = PANDA_URDF.read_text()


@pytest.fixture(scope='module')
def running():
    world = World()
    with NodeProcess('dynamics') as process:
        yield world, process
        assert process.exit_code is None, process.log()
    world.close()


@pytest.fixture
def shared(running):
    """The world of the one node that most tests use."""
    return running[0]


@pytest.fixture
def node(running):
    return running[1]


@pytest.fixture
def version(shared):
    return use(shared, TEXT)


@pytest.fixture
def panda(version):
    return rd.load_model(TEXT)


def test_topics_agree_with_pinocchio(shared, panda, version, rng):
    world = shared
    oracle = Oracle(panda, TEXT)
    topics = {name: world.collect(JointState, f'/dynamics/{name}')
              for name in ('gravity', 'coriolis', 'friction')}
    matrices = world.collect(Float64MultiArray, '/dynamics/mass_matrix')
    terms = world.collect(DynamicsTerms, '/dynamics/terms')
    # any order, and a joint that is not the robot's
    order = rng.permutation(panda.n)
    names = [panda.joint_names[i] for i in order] + ['gripper_led']
    for _ in range(5):
        q, qd = rng.uniform(-1, 1, (2, panda.n))
        matrices.clear()
        message = answer(world, terms, names, [*q[order], 7.0], [*qd[order], 7.0])
        world.wait(lambda: matrices, 'a mass matrix')
        mass = oracle.mass_matrix(q)
        np.testing.assert_allclose(np.array(message.mass_matrix).reshape(mass.shape), mass,
                                   atol=1e-9 * mass.max())
        np.testing.assert_allclose(message.gravity, oracle.gravity(q), atol=1e-9 * 30)
        np.testing.assert_allclose(message.coriolis, oracle.coriolis(q, qd), atol=1e-9 * 30)
        stamp = nanoseconds(message.header.stamp)
        for name, messages in topics.items():
            world.wait(lambda m=messages, s=stamp: message_at(m, s) is not None, name)
            np.testing.assert_allclose(message_at(messages, stamp).effort, getattr(message, name))
            assert message_at(messages, stamp).name == list(panda.joint_names)
        layout = matrices[-1].layout.dim
        assert [(d.label, d.size, d.stride) for d in layout] == [
            ('row', panda.n, panda.n**2), ('column', panda.n, panda.n)]
        np.testing.assert_allclose(matrices[-1].data, message.mass_matrix)
    assert message.rotor_model == 'none' and message.friction_modelled
    assert message.model_version == version and message.payload_mass == 0


def test_fields_may_be_empty(shared, panda):
    world, count = shared, Counts(shared)
    gravity = world.collect(JointState, '/dynamics/gravity')
    coriolis = world.collect(JointState, '/dynamics/coriolis')
    q = np.full(panda.n, 0.3)
    message = answer(world, gravity, panda.joint_names, q, [])
    np.testing.assert_allclose(message.effort, rd.Dynamics(panda).gravity(q), atol=1e-12)
    world.wait(lambda: count('no_velocity') > 0, 'a count of no_velocity')
    assert not coriolis


def test_bad_states_are_counted_and_not_answered(shared, node, panda):
    world, count = shared, Counts(shared)
    terms = world.collect(DynamicsTerms, '/dynamics/terms')
    names, zeros = list(panda.joint_names), [0.0] * panda.n
    answer(world, terms, names, zeros, zeros)
    terms.clear()
    later = world.now() + 10**9
    bad = {
        'missing_joint': (names[:-1], zeros[:-1], zeros[:-1]),
        'wrong_length': (names, zeros[:-1], zeros),
        'not_finite': (names, [np.nan, *zeros[1:]], zeros),
    }
    for kind, (who, q, qd) in bad.items():
        world.state(who, q, qd)
        world.wait(lambda kind=kind: count(kind) == 1, kind)
    world.state(names, zeros, [np.inf, *zeros[1:]])
    world.state([*names[:-1], names[0]], zeros, zeros)
    world.wait(lambda: count('not_finite') == 2 and count('missing_joint') == 2, 'two more')
    assert not terms
    # a jump back in time is dropped and counted; what follows is answered again
    answer(world, terms, names, zeros, zeros, ns=later)
    world.state(names, zeros, zeros, ns=later - 5 * 10**8)
    world.wait(lambda: count('time_jump') == 1, 'time_jump')
    assert message_at(terms, later - 5 * 10**8) is None
    world.state(names, zeros, zeros, ns=later - 4 * 10**8)
    world.wait(lambda: message_at(terms, later - 4 * 10**8), 'the clock to be followed')
    log = node.log()
    assert f'{names[-1]!r} are missing' in log and 'position of joint' in log
    assert 'position has 7 numbers for 8 names' in log


def test_a_description_is_replaced_and_a_bad_one_refused(shared, node, panda, version):
    world, count = shared, Counts(shared)
    terms = world.collect(DynamicsTerms, '/dynamics/terms')
    zeros = [0.0] * panda.n
    lines = world.logged()
    for text in BAD_DESCRIPTIONS.values():
        lines.clear()
        world.describe(text)
        world.wait(lambda: any('refused' in line.msg for line in list(lines)), text[:40])
        answer(world, terms, panda.joint_names, zeros, zeros)  # the old one keeps running
    world.wait(lambda: count('models_refused') == len(BAD_DESCRIPTIONS), 'the count')
    log = node.log()
    assert 'the old model keeps running' in log and "link 'b'" in log
    world.describe(planar_2r())
    world.wait_for_model('dynamics', version + 1)
    message = answer(world, terms, ['j2', 'j1'], [0.2, 0.1], [0.0, 0.0])
    assert list(message.name) == ['j1', 'j2'] and message.model_version == version + 1, node.log()
    expected = rd.Dynamics(rd.load_model(planar_2r())).mass_matrix(np.array([0.1, 0.2]))
    np.testing.assert_allclose(message.mass_matrix, expected.ravel(), rtol=1e-12)


def test_the_energy_is_balanced_on_request(shared, panda, version):
    """Measured torques explain the motion; with the wrong sign, the robot seems not passive."""
    world, dynamics = shared, rd.Dynamics(panda)
    energies = world.collect(Float64MultiArray, '/dynamics/energy')
    assert world.set_parameter('dynamics', 'energy_window', 0.2).successful
    t = 0.005 * np.arange(120)[:, None]
    q, qd, qdd = (0.4 * 6.0**k * np.sin(6 * t + k * np.pi / 2) * np.ones(panda.n)
                  for k in range(3))
    tau, start = dynamics.inverse_dynamics(q, qd, qdd), world.now() - 10**10
    for sign, passive in ((1, True), (-1, False)):
        energies.clear()
        for k in range(120):
            world.state(panda.joint_names, q[k], qd[k], sign * tau[k],
                        ns=start + (k + 120 * (sign < 0)) * 5_000_000)
        world.wait(lambda: len(energies) >= 100, 'the balance of energy')
        kinetic, potential, supplied, dissipated, unexplained, _ = np.array(
            [message.data for message in energies]).T
        assert all(message.data[5] for message in energies) == passive
        total = [sum(dynamics.energy(*state)) for state in zip(q, qd, strict=True)]
        assert min(np.abs(total - kinetic[5] - potential[5])) < 1e-9
        if passive:
            assert np.abs(unexplained[60:]).max() < 0.05 * np.abs(supplied).max()
    assert energies[0].layout.dim[0].label.startswith('kinetic, potential, supplied')
    world.wait(lambda: 'W' in world.diagnostics['dynamics'].get('supplied_power', ''), 'powers')
    assert world.set_parameter('dynamics', 'energy_window', 0.0).successful


def test_payload(shared, panda, version):
    world = shared
    terms = world.collect(DynamicsTerms, '/dynamics/terms')
    request = payload('panda_hand', 3.0, (0.0, 0.0, 0.1), (0.01, 0.01, 0.01))
    response = world.call(SetPayload, '/dynamics/set_payload', request)
    assert response.success and response.model_version == version + 1, response.message
    q = np.linspace(-0.5, 0.5, panda.n)
    message = answer(world, terms, panda.joint_names, q, 0 * q)
    loaded = panda.with_payload('panda_hand', 3.0, (0, 0, 0.1), 0.01 * np.eye(3))
    np.testing.assert_allclose(message.gravity, rd.Dynamics(loaded).gravity(q), atol=1e-9)
    assert message.payload_mass == 3.0 and message.model_version == version + 1
    for bad in (payload('nowhere', 1.0),
                payload('panda_hand', -1.0),
                payload('panda_hand', float('nan'))):
        response = world.call(SetPayload, '/dynamics/set_payload', bad)
        assert not response.success and 'valid' in response.message
    off = world.call(SetPayload, '/dynamics/set_payload', payload('panda_hand'))
    assert off.success
    message = answer(world, terms, panda.joint_names, q, 0 * q)
    np.testing.assert_allclose(message.gravity, rd.Dynamics(panda).gravity(q), atol=1e-9)


def test_base_wrench_and_coriolis_matrix(shared, panda):
    world = shared
    wrenches = world.collect(WrenchStamped, '/dynamics/base_wrench')
    matrices = world.collect(Float64MultiArray, '/dynamics/coriolis_matrix')
    dynamics = rd.Dynamics(panda)
    q, qd = np.linspace(-0.4, 0.6, panda.n), np.linspace(0.5, -0.3, panda.n)
    message = answer(world, wrenches, panda.joint_names, q, qd)
    assert not matrices and message.header.frame_id == 'panda_link0'
    force, torque = message.wrench.force, message.wrench.torque
    np.testing.assert_allclose(
        [force.x, force.y, force.z, torque.x, torque.y, torque.z],
        dynamics.base_wrench(q, qd, 0 * q), atol=1e-9)
    assert world.set_parameter('dynamics', 'publish_coriolis_matrix', True).successful
    assert world.set_parameter('dynamics', 'base_wrench_acceleration', 'effort').successful
    refused = world.set_parameter('dynamics', 'base_wrench_acceleration', 'guess')
    assert not refused.successful and 'zero' in refused.reason
    tau = dynamics.inverse_dynamics(q, qd, np.ones(panda.n))
    message = answer(world, wrenches, panda.joint_names, q, qd, effort=tau)
    np.testing.assert_allclose(message.wrench.force.x,
                               dynamics.base_wrench(q, qd, np.ones(panda.n))[0], atol=1e-8)
    world.wait(lambda: matrices, 'a Coriolis matrix')
    np.testing.assert_allclose(matrices[-1].data, dynamics.coriolis_matrix(q, qd).ravel(),
                               atol=1e-12)


def test_parameters(shared, panda):
    world = shared
    values, descriptors = world.parameters('dynamics', ['gravity', 'friction_width', 'autostart'])
    assert list(values[0].double_array_value) == [0.0, 0.0, -9.80665]
    assert all(d.description for d in descriptors) and descriptors[2].read_only
    assert descriptors[1].floating_point_range[0].from_value == -1.0  # those of motors_file
    for width in (-0.5, -1.5, float('nan')):
        assert not world.set_parameter('dynamics', 'friction_width', width).successful
    assert not world.set_parameter('dynamics', 'rotor_model', 'magic').successful
    assert not world.set_parameter('dynamics', 'robot_description', '<robot/>').successful
    terms = world.collect(DynamicsTerms, '/dynamics/terms')
    zeros = [0.0] * panda.n
    before = answer(world, terms, panda.joint_names, zeros, zeros)
    assert world.set_parameter('dynamics', 'gravity', [0.0, 0.0, -1.62]).successful
    after = answer(world, terms, panda.joint_names, zeros, zeros)
    np.testing.assert_allclose(after.gravity, np.array(before.gravity) * 1.62 / 9.80665,
                               atol=1e-9)
    assert world.set_parameter('dynamics', 'gravity', [0.0, 0.0, -9.80665]).successful


def test_every_broken_description_is_refused_and_the_old_model_kept(shared, panda, version):
    world, count = shared, Counts(shared)
    lines = world.logged()
    cases = {name: text for name, (text, _) in BROKEN.items()
             if '\x00' not in text and name != 'lone surrogates'}  # no message can contain those
    assert len(cases) > 55
    for name, text in cases.items():
        lines.clear()
        world.describe(text)
        world.wait(lambda: any('refused' in line.msg for line in list(lines)), f'refusal: {name}')
    gravity = world.collect(JointState, '/dynamics/gravity')
    q = np.full(panda.n, 0.3)
    message = answer(world, gravity, panda.joint_names, q, np.zeros(panda.n))
    np.testing.assert_allclose(message.effort, rd.Dynamics(panda).gravity(q), atol=1e-12)
    world.wait(lambda: count('models_refused') == len(cases), 'the count')
    assert world.count('dynamics', 'model_version') == version


def test_issues_are_logged_once_and_repeated_in_diagnostics(shared):
    world = shared
    lines = world.logged()
    world.describe(planar_2r(i2=3000.0).replace('ixx="0.01"', 'ixx="3000"'))
    world.wait(lambda: 'gyration' in world.diagnostics.get('dynamics', {}).get('issues', ''),
               'issues')
    assert world.diagnostics['dynamics']['verdict'] == 'faulty'  # the triangle too
    world.spin(1.2)
    assert sum('link lower: its radius of gyration' in line.msg for line in lines) == 1


def test_a_model_is_swapped_and_rolled_back(shared):
    """Versions are in every message; what is published is always of one model."""
    world = shared
    first_version = use(world, planar_2r())
    terms = world.collect(DynamicsTerms, '/dynamics/terms')
    q, qd = [0.3, -0.4], [0.1, 0.2]

    def gravity(version):
        def heard():
            world.state(('j1', 'j2'), q, qd)
            world.spin(0.05)
            return terms and terms[-1].model_version == version
        world.wait(heard, f'terms of model {version}')
        return list(terms[-1].gravity), list(terms[-1].friction), list(terms[-1].rotor_inertia)

    first = gravity(first_version)
    heavy = planar_2r(m1=4.0)
    motors = 'joints: {j1: {armature: 0.5, link_friction: {viscous: 2.0}}}'
    answer = world.call(SetModel, 'dynamics/set_model', SetModel.Request(
        robot_description=heavy, motors=motors, origin='run-7'))
    assert answer.success and answer.model_version == first_version + 1, answer.message
    second = gravity(first_version + 1)
    model = rd.load_model(heavy, motors=yaml.safe_load(motors))
    np.testing.assert_allclose(second[0], rd.Dynamics(model).gravity(q), atol=1e-9)
    assert second[1][0] == pytest.approx(0.2) and second[2] == [0.5, 0.0]
    world.wait(lambda: world.diagnostics['dynamics'].get('model_origin') == 'run-7', 'its origin')
    for bad, why in ((SetModel.Request(robot_description='<robot'), 'XML'),
                     (SetModel.Request(robot_description=heavy, motors='joints: {knee: {}}'),
                      'knee'),
                     (SetModel.Request(robot_description=heavy, motors='- 1'), 'mapping'),
                     (SetModel.Request(robot_description=heavy, motors='a: [') , 'YAML'),
                     (SetModel.Request(robot_description=heavy, valid_until=Time(sec=1)),
                      'the request expired')):
        answer = world.call(SetModel, 'dynamics/set_model', bad)
        assert not answer.success and why in answer.message
        assert answer.model_version == first_version + 1
    assert gravity(first_version + 1) == second
    # other gravity: the identified model is built again, not the description
    assert world.set_parameter('dynamics', 'friction_width', 0.01).successful
    assert gravity(first_version + 2)[0] == second[0]
    for later, expected in ((3, second), (4, first)):
        assert world.call(Trigger, 'dynamics/rollback', Trigger.Request()).success
        assert gravity(first_version + later)[0] == expected[0]
    for _ in range(100):  # down to the first one
        answer = world.call(Trigger, 'dynamics/rollback', Trigger.Request())
        if not answer.success:
            break
    assert 'no model before' in answer.message


def test_efforts_at_rest_that_contradict_the_setting_are_reported(shared):
    """Torques that contain no gravity, where the setting says that they do."""
    world, arm = shared, rd.load_model(planar_2r(), gravity=(0, -9.81, 0))
    use(world, planar_2r())
    before, stamp = world.count('dynamics', 'efforts_contradict'), world.now()
    assert world.set_parameter('dynamics', 'gravity', [0.0, -9.81, 0.0]).successful
    for pose in ([0.0, 0.3], [0.5, 0.6], [-0.5, 0.9], [0.2, -0.1]):
        for k in range(120):
            stamp += 10**6
            world.state(arm.joint_names, pose, [0.5 * (k < 5)] * 2, [0.01] * 2, ns=stamp)
            time.sleep(0.0005)
    world.wait(lambda: world.count('dynamics', 'efforts_contradict') > before, 'a warning')
    assert world.set_parameter('dynamics', 'gravity', [0.0, 0.0, -9.80665]).successful
