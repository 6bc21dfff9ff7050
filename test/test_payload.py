"""What a robot holds: estimates, intervals, an empty hand, and what interfaces are given."""

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from synthetic import fourier_motion, log_of

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.excitation import payload_motion, payload_poses
from robodyn_ros.experiment.script import plan_script
from robodyn_ros.identification.payload_interfaces import (
    franka,
    service_calls,
    universal_robots,
)
from robodyn_ros.simulation import Simulation
from robodyn_ros.spatial import inertia_components

ARM, LINK = 'urdf/articulated_3r.urdf.xacro', 'tip'
HERE = np.array([0.3, 0.5, -0.9])
RATE, SECONDS = 250, 15.0
NOISE = np.array([0.4, 0.4, 0.2])  # N m
FRICTION = np.array([[2.0, 3.0, 0.2], [2.0, 4.0, -0.3], [1.0, 2.0, 0.1]])
BODY = rd.Inertial(2.0, np.array([0.08, 0.0, 0.05]), np.diag([0.01, 0.012, 0.008]))


@pytest.fixture(scope='module')
def true():
    model = rd.load_model(ARM)
    return replace(model, link_friction=FRICTION, armature=np.array([0.8, 0.8, 0.3]))


@pytest.fixture(scope='module')
def identified(true):
    """The result of an identification whose description has wrong masses and no motors."""
    rng = np.random.default_rng(1)
    nominal = rd.load_model(ARM)
    nominal = replace(nominal, inertial_parameters=1.1 * nominal.inertial_parameters)
    motion = fourier_motion(true, rng, 20.0, RATE, frequency=0.15, harmonics=4)
    log = log_of(true, motion, noise=NOISE * rng.normal(size=motion[1].shape))
    return rd.identify(nominal, log, friction='coulomb')


def small_motion(model, rng, body=BODY, seconds=SECONDS, **options):
    """The log of a small motion with a body at the tip."""
    excitation = payload_motion(rd.Dynamics(model), HERE, model.joint_names, amplitude=0.5,
                                speed=0.5, duration=seconds)
    t, motion = excitation.samples(RATE)
    loaded = model if body is None else model.with_payload(LINK, body.mass, body.com, body.inertia)
    return log_of(loaded, (t, *motion[:3]), noise=NOISE * rng.normal(size=motion.q.shape),
                  **options)


def values_of(body):
    return np.array([body.mass, *body.com, *inertia_components(body.inertia)])


def test_a_small_motion_beside_an_identified_model(true, identified, rng):
    """Estimates of the centre scatter by 4 mm; the test judges the rms error of four of them."""
    every = [rd.identify_payload(identified.model, small_motion(true, rng), LINK,
                                 uncertainty=rd.ModelUncertainty.of(identified))
             for _ in range(4)]
    wrong = np.array([found.com - BODY.com for found in every])
    assert (np.sqrt((wrong**2).mean(axis=0))[[0, 2]] < 0.006).all()
    found = every[0]
    assert found.state == 'found'
    assert found.mass == pytest.approx(BODY.mass, rel=0.02)
    wrong = np.abs(found.values - values_of(BODY))
    assert (wrong[found.determined] < 3.3 * found.deviation[found.determined]).all()
    assert np.linalg.eigvalsh(found.inertia)[0] > 0
    assert 'kg at (' in found.to_text()
    assert max(map(len, found.to_text().splitlines())) < 80


def test_intervals_contain_the_truth(true, identified):
    uncertainty = rd.ModelUncertainty.of(identified)
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        body = rd.Inertial(rng.uniform(1, 5), rng.uniform(-0.1, 0.1, 3), BODY.inertia)
        found = rd.identify_payload(identified.model, small_motion(true, rng, body, 8.0), LINK,
                                    uncertainty=uncertainty)
        truth = values_of(body)
        inside.append(((found.interval[:, 0] < truth) & (truth < found.interval[:, 1]))[:4])
    assert np.mean(inside) > 0.85


def test_logs_without_the_payload_mend_a_wrong_model(true, rng):
    nominal = replace(true, inertial_parameters=1.15 * true.inertial_parameters,
                      link_friction=0.7 * true.link_friction)
    loaded, bare = (small_motion(true, rng, body) for body in (BODY, None))
    alone = rd.identify_payload(nominal, loaded, LINK)
    beside = rd.identify_payload(nominal, loaded, LINK, without=bare)
    assert abs(alone.mass - BODY.mass) > 0.1
    assert 'taken to be exact' in alone.notes[-1] and 'exact' not in ' '.join(beside.notes)
    assert beside.mass == pytest.approx(BODY.mass, abs=3 * beside.deviation[0])
    assert beside.deviation[0] < 0.04


def test_an_empty_hand_and_a_missing_tool(true, identified, rng):
    model, uncertainty = identified.model, rd.ModelUncertainty.of(identified)
    log = small_motion(true, rng, None)
    found = rd.identify_payload(model, log, LINK, uncertainty=uncertainty)
    assert found.state == 'empty' and found.summary().startswith('Nothing is on tip')
    assert np.isnan(found.com).all() and 0 < found.interval[0, 1] < 0.2
    with pytest.raises(rd.IdentificationError, match='there is no payload on tip'):
        service_calls(found, model, ['dynamics'])
    with_tool = model.with_payload(LINK, 1.0)
    found = rd.identify_payload(with_tool, log, LINK, uncertainty=uncertainty)
    assert found.state == 'negative' and 'less than the model says' in found.to_text()


def test_still_poses_determine_mass_and_centre_alone(true, rng):
    """Joints with static friction, in a physics engine."""
    urdf = rd.load_model(ARM).description.urdf
    joints = {name: {'armature': 0.3, 'damping': 1.0, 'friction': 1.0}
              for name in true.joint_names}
    world = Simulation(urdf, truth={'joints': joints}, limit_efforts=False, timestep=0.004)
    model = replace(rd.load_model(ARM), armature=np.full(3, 0.3), link_friction=np.tile(
        [1.0, 1.0, 0.0], (3, 1)))
    dynamics = rd.Dynamics(model)
    poses = payload_poses(dynamics, HERE, model.joint_names, amplitude=0.6, speed=0.5,
                          duration=24.0)
    world.attach(LINK, BODY.mass, BODY.com, BODY.inertia)
    world.reset(HERE)
    rows = []
    for t in np.arange(0, poses.duration, 0.004):
        q_r, qd_r, *_ = poses.at(t)
        q, qd = world.position, world.velocity
        tau = dynamics.gravity(q) + 2000 * (q_r - q) + 60 * (qd_r - qd)
        if not qd_r.any():
            rows.append((t, q, tau + 0.1 * rng.normal(size=3)))
        world.step(tau)
    t, q, tau = (np.array(x) for x in zip(*rows, strict=True))
    found = rd.identify_payload(model, rd.Log(t, q, tau, joint_names=model.joint_names), LINK)
    assert found.determined[[0, 1, 3]].all() and not found.determined[4:].all()
    assert found.mass == pytest.approx(BODY.mass, abs=2.5 * found.deviation[0])
    assert found.deviation[0] < 0.3
    assert not found.usable_inertia.any() and 'not determined' in found.to_text()


@pytest.mark.parametrize('meaning', [{'gravity': 'removed'}, {'friction': 'removed',
                                     'rotors': 'removed'}, {'side': 'motor'}])
def test_what_efforts_mean_is_respected(true, rng, meaning):
    model = rd.load_model(ARM, motors={'effort': meaning})
    model = replace(model, link_friction=FRICTION, armature=true.armature,
                    gear_ratio=np.array([50.0, 50.0, 30.0]))
    log = small_motion(true, rng)
    qd = np.gradient(log.q, log.t, axis=0)
    sensed = model.without_motors() if 'rotors' in meaning else model
    if 'friction' in meaning:
        sensed = sensed.without_friction()
    full = rd.Dynamics(sensed.with_payload(LINK, BODY.mass, BODY.com, BODY.inertia))
    tau = full.inverse_dynamics(log.q, qd, np.gradient(qd, log.t, axis=0))
    if 'gravity' in meaning:  # the robot knows nothing of the payload
        tau = tau - rd.Dynamics(model).gravity(log.q)
    if 'side' in meaning:
        tau = tau / model.gear_ratio
    found = rd.identify_payload(model, replace(log, tau=tau + 1e-3 * rng.normal(size=tau.shape)),
                                LINK)
    assert found.mass == pytest.approx(BODY.mass, rel=0.02)


def test_motions_stay_within_bounds(true):
    dynamics = rd.Dynamics(true)
    for plan in (payload_motion, payload_poses):
        motion = plan(dynamics, HERE, ['elbow', 'shoulder'], amplitude=0.3, speed=0.5,
                      duration=20.0)
        assert motion.duration == pytest.approx(20.0)
        _, (q, qd, *_) = motion.samples(100.0)
        assert (np.abs(q - HERE).max(axis=0) <= [1e-12, 0.3 + 1e-9, 0.3 + 1e-9]).all()
        assert np.abs(q - HERE).max() > 0.29
        assert (np.abs(qd) <= 0.501 * true.velocity_limit).all()
        np.testing.assert_allclose(q[[0, -1]], [HERE, HERE], atol=1e-9)
        np.testing.assert_allclose(qd[[0, -1]], 0, atol=1e-9)
        script = plan_script(dynamics, HERE, [('log', motion)], 50.0)
        assert script.windows[0].end - script.windows[0].start == pytest.approx(20.0)
        with pytest.raises(rd.ValueRangeError, match='motion of elbow.*another pose'):
            plan(dynamics, [0.0, 0.0, true.upper[2] - 0.1], ['elbow'], amplitude=0.3, speed=0.5,
                 duration=20.0)
        with pytest.raises(rd.UnknownNameError, match='wrist'):
            plan(dynamics, HERE, ['wrist'], amplitude=0.3, speed=0.5, duration=20.0)
    for bad in ({'amplitude': 0.0}, {'speed': 2.0}, {'duration': 0.1}, {'joints': []}):
        options = {'joints': ['elbow'], 'amplitude': 0.3, 'speed': 0.5, 'duration': 20.0} | bad
        with pytest.raises(rd.ValueRangeError, match=next(iter(bad))):
            payload_motion(dynamics, HERE, **options)


def test_faults_name_what_would_be_valid(true, rng):
    log = small_motion(true, rng, seconds=4.0)
    with pytest.raises(rd.UnknownNameError, match='hand'):
        rd.identify_payload(true, log, 'hand')
    with pytest.raises(rd.UnknownNameError, match='link that moves'):
        rd.identify_payload(true, log, 'base')
    external = rd.load_model(ARM, motors={'effort': {'measured': 'external_torque'}})
    with pytest.raises(rd.ValueRangeError, match='external'):
        rd.identify_payload(external, log, LINK)


@pytest.fixture(scope='module')
def tool_arm():
    """The arm with a flange that is turned and moved against its tip; its tip carries a body."""
    text = rd.load_model(ARM).description.urdf.replace('</robot>', '''
        <link name="tool0"/><joint name="mount" type="fixed"><parent link="tip"/>
        <child link="tool0"/><origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/></joint>
        </robot>''')
    nothing = np.zeros((10, 10))
    parameters = rd.spatial.inertial_parameters(BODY)
    return rd.load_model(text), rd.IdentifiedPayload.of(
        LINK, parameters, parameters, nothing + 1e-12 * np.eye(10), np.ones(10), ())


def test_the_service_call_sets_the_payload(tool_arm):
    model, found = tool_arm
    request = yaml.safe_load(re.search(r'"(.*)"', service_calls(found, model, ['dynamics']),
                                       re.DOTALL)[1])
    inertia = request['inertia']
    assert request['link'] == LINK and inertia['m'] == BODY.mass
    assert list(inertia['com'].values()) == BODY.com.tolist()
    assert [inertia[f'i{name}'] for name in ('xx', 'yy', 'zz')] == [0.01, 0.012, 0.008]


def test_vendors_are_given_the_frame_of_their_flange(tool_arm):
    model, found = tool_arm
    script = universal_robots(found, model)
    assert 'frame of the tool flange: tool0' in script
    numbers = re.search(r'set_target_payload\((.*?)\)\n', script, re.DOTALL)[1]
    mass, centre, inertia = yaml.safe_load(f'[{numbers}]')
    # the flange's x axis is the tip's y axis, and its origin lies 0.1 m along the tip's x axis
    assert mass == BODY.mass and centre == pytest.approx([0.0, 0.02, 0.05])
    assert inertia == pytest.approx([0.012, 0.01, 0.008, 0.0, 0.0, 0.0])
    matrix = yaml.safe_load(re.search(r'load_inertia: (\[.*\])', franka(found, model, 'tool0'),
                                      re.DOTALL)[1])
    assert matrix == pytest.approx([0.012, 0, 0, 0, 0.01, 0, 0, 0, 0.008])
    for text in (script, franka(found, model), service_calls(found, model, ['dynamics'])):
        assert max(map(len, text.splitlines())) < 80
    with pytest.raises(rd.IdentificationError, match='base moves relative to tip'):
        franka(found, model, 'base')


def test_the_command(identified, true, rng, tmp_path, capsys):
    result = identified
    folder = tmp_path / 'identified'
    folder.mkdir()
    rd.save_parameters(result, folder / 'parameters.yaml')
    rd.write_urdf(result.model, folder / 'identified.urdf')
    rd.save_motors(result.model, folder / 'motors.yaml')
    read = rd.ModelUncertainty.read(folder / 'parameters.yaml')
    expected = rd.ModelUncertainty.of(result)
    assert read.names == expected.names
    np.testing.assert_allclose(read.covariance, expected.covariance, rtol=1e-4, atol=1e-9)
    paths = {}
    for name, body in (('loaded', BODY), ('empty', None)):
        some = small_motion(true, rng, body)
        paths[name] = tmp_path / f'{name}.npz'
        np.savez(paths[name], t=some.t, q=some.q, tau=some.tau, joint_names=some.joint_names)
    assert main(['payload', str(paths['loaded']), '--model', str(folder), '--link', LINK]) == 0
    text = capsys.readouterr().out
    mass = float(re.search(r'tip carries ([\d.]+) kg', text)[1])
    assert mass == pytest.approx(BODY.mass, rel=0.02)
    assert max(map(len, text.splitlines())) < 80
    for word in ('/dynamics/set_payload', 'set_target_payload(', 'setLoad('):
        assert word in text
    assert main(['payload', str(paths['empty']), '--model', str(folder), '--link', LINK]) == 1
    assert 'Nothing is on tip' in capsys.readouterr().out
    assert main(['payload', str(paths['loaded']), '--urdf', ARM, '--link', LINK,
                 '--without', str(paths['empty'])]) == 0
    mass = float(re.search(r'tip carries ([\d.]+) kg', capsys.readouterr().out)[1])
    assert mass == pytest.approx(BODY.mass, rel=0.05)
    for arguments, culprit in ((['--urdf', ARM], 'hand'), ([], '--model FOLDER'),
                               (['--model', str(tmp_path)], 'identified.urdf')):
        assert main(['payload', str(paths['loaded']), '--link', 'hand', *arguments]) == 2
        assert culprit in capsys.readouterr().err
