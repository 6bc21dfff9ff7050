"""The node `identification` in its loop: simulated robot, controller, client; all processes."""


import copy
import os
import resource
import signal
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import ClosedLoop, fast_motion, rms  # noqa: E402
from identification_world import Client  # noqa: E402
from measured_logs import DATA  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from ros_world import World  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from synthetic import LWR4  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.action import IdentifyDynamics  # noqa: E402
from robodyn_ros.excitation import Excitation  # noqa: E402
from robodyn_ros.identification.base_parameters import base_parameters  # noqa: E402
from robodyn_ros.identification.linear_model import LinearModel  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.simulation import Simulation  # noqa: E402

UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()
JOINTS = ('shoulder_pan_joint', 'shoulder_lift_joint', 'elbow_joint', 'wrist_1_joint',
          'wrist_2_joint', 'wrist_3_joint')
LINKS = ('shoulder_link', 'upper_arm_link', 'forearm_link', 'wrist_1_link', 'wrist_2_link',
         'wrist_3_link')
TRUTH = {
    'links': {link: {'mass': mass, 'com': com} for link, mass, com in zip(
        LINKS, (1.2, 1.2, 0.8, 1.2, 0.8, 1.2),
        ([0.0, 0.01, 0.0], [0.0, 0.01, 0.03], [0.01, 0.0, -0.03], [0.0, 0.01, 0.005],
         [0.005, 0.0, 0.01], [0.01, 0.005, 0.0]), strict=True)},
    'joints': {joint: {'armature': a, 'damping': d, 'friction': f} for joint, a, d, f in zip(
        JOINTS, (4.0, 4.0, 1.5, 0.5, 0.5, 0.4), (12.0, 12.0, 8.0, 2.0, 2.0, 1.5),
        (14.0, 14.0, 10.0, 3.0, 3.0, 2.5), strict=True)}}
NOISE = ('position_step:=1e-5', 'velocity_noise:=1e-3',
         'effort_noise:=[0.8, 1.6, 0.6, 0.12, 0.12, 0.1]')  # 2 to 4 % of the torque
GAINS = ('kp:=[2000.0, 2000.0, 1000.0, 200.0, 200.0, 150.0]',
         'kd:=[150.0, 150.0, 70.0, 15.0, 15.0, 12.0]')


def server(world, root, *parameters, model=1, remap=()):
    arguments = [f'root:={root}', 'tracking_tolerance:=0.6', *parameters]
    process = NodeProcess('identification', '--ros-args',
                          *(word for entry in arguments for word in ('-p', entry)),
                          '-r', '~/trajectory:=/feedforward/reference', *remap)
    world.wait_for_model('identification', model)
    return process


def test_one_call_from_wrong_parameters_to_true_ones(world, tmp_path):
    """Excite, record, estimate, prove, swap: the numbers of the README come from here."""
    truth = tmp_path / 'truth.yaml'
    truth.write_text(yaml.safe_dump(TRUTH))
    with ClosedLoop(world, UR10, simulator=('rate:=500.0', f'truth_file:={truth}', *NOISE),
                    controller=('mode:=feedforward_pd', 'hold:=5.0', *GAINS)) as loop, \
            NodeProcess('dynamics') as dynamics, \
            server(world, tmp_path / 'runs', 'state_timeout:=600.0',
                   'start_delay:=0.0') as process:
        motion = fast_motion(loop.model)
        before = rms(loop.follow(motion))
        sent = world.collect(JointTrajectory, 'feedforward/reference')
        loop.begin(motion.at(0.0).q, held=True)  # or when the search ends decides the noise
        with Client(name='e2e', search_time=60.0, period=10.0, periods=2, torque_margin=0.35,
                    slow=0.05, apply=True) as client:
            world.wait(lambda: sent, 'a motion', 300.0)
            loop.pause(False)
            result = client.read()
        assert result['success'], (result['reasons'], loop.controller.log()[-1500:])
        after = rms(loop.follow(motion))
        phases = [entry['phase'] for entry in client.feedback]
        assert [p for k, p in enumerate(phases) if k == 0 or p != phases[k - 1]][:2] == [
            'search', 'search of the proof']
        conditions = [f['condition'] for f in client.feedback if f['phase'] == 'excite']
        assert 0 < conditions[-1] < 1e3
        print('phases', sorted(set(phases), key=phases.index))
        print('nominal', np.round(result['validation_error_nominal'], 3))
        print('raw', np.round(result['validation_error'], 4), 'filtered',
              np.round(result['validation_error_filtered'], 4))
        print('tracking', before, after, before / after, 'condition', result['condition'])
        assert result['verdict'] == 'good' and result['applied']
        assert min(result['validation_error_nominal']) > 0.15
        assert max(result['validation_error_filtered']) < 0.02
        wrong = against_truth(tmp_path / 'runs/e2e')
        print('against the true torque', np.round(wrong, 4))
        assert max(wrong) < 0.02
        assert result['physically_consistent']
        assert after < before / 5
        inside = covered(tmp_path / 'runs/e2e')
        print('inside', np.mean(inside), 'of', len(inside), 'significant of',
              len(result['base_parameter']))
        assert np.mean(inside) >= 0.9
        world.wait(lambda: world.diagnostics['dynamics'].get('model_origin') == 'e2e', 'a swap')
        assert rd.load_model(tmp_path / 'runs/e2e/identified.urdf').n == 6
        assert process.exit_code is None and dynamics.exit_code is None


def against_truth(folder):
    """Error of the written model's torque along the proof, where the truth is known."""
    model = rd.load_model(folder / 'identified.urdf', motors=folder / 'motors.yaml')
    true = Simulation(UR10, truth=TRUTH).true_model
    _, motion = Excitation.from_yaml(folder / 'validation_excitation.yaml').samples(200.0)
    got, want = (rd.Dynamics(m).inverse_dynamics(*motion[:3]) for m in (model, true))
    return np.linalg.norm(got - want, axis=0) / np.linalg.norm(want, axis=0)


def covered(folder):
    """Which significant parameters have the truth in their stated interval."""
    true = Simulation(UR10, truth=TRUTH).true_model
    linear = LinearModel(rd.Dynamics(true), 'lumped')
    base = base_parameters(linear)
    values = dict(zip(base.names, base.matrix @ linear.nominal(), strict=True))
    stated = yaml.safe_load((folder / 'parameters.yaml').read_text())['base_parameters']
    return [one['interval_95'][0] <= values[name] <= one['interval_95'][1]
            for name, one in stated.items() if one['significant']]


# what can go wrong ----------------------------------------------------------------------------

PLANAR = rd.load_model(LWR4.parent / 'planar_2r.urdf.xacro')
EXCITATION = 'motion.yaml'
RATE = 250.0  # Hz
STATUS = {'succeeded': 4, 'canceled': 5, 'aborted': 6}


class Relay:
    """Passes joint states on, until it is told to harm them."""

    def __init__(self):
        self.harm, self.last, self.count = '', None, 0

    def __call__(self, message):
        self.count += 1
        if self.harm == 'frozen':
            stamp = message.header.stamp
            message = copy.deepcopy(self.last)
            message.header.stamp = stamp
        elif self.harm == 'silent':
            return []
        elif self.harm == 'dropped' and self.count % 10 in (3, 4, 7):
            return []
        elif self.harm == 'jump':
            message.header.stamp.sec += 1000
        elif self.harm == 'back':
            message.header.stamp.sec -= 5
        self.last = message
        return [message]


@cache
def found():
    """The excitation of the 2R arm."""
    return rd.optimise_excitation(PLANAR, rd.Limits(torque_margin=0.2), period=4.0, harmonics=3,
                                  periods=1, budget=60.0, starts=1)


class Planar:
    """A 2R arm in its closed loop, and the server beside it; its states pass a relay.

    The loop is in lock-step, the server's clock on the wall: a machine that stalls holds the arm.
    """

    def __init__(self, world, root):
        root.mkdir()
        self.world, self.root, self.relay = world, root, Relay()
        (root / EXCITATION).write_text(found().to_yaml())
        truth = root / 'truth.yaml'
        truth.write_text('links: {link1: {mass: 1.3}, link2: {mass: 1.2}}')
        self.loop = ClosedLoop(
            world, PLANAR.description.urdf,
            simulator=(f'rate:={RATE}', 'real_time_factor:=1.0', 'effort_noise:=[0.05]',
                       f'truth_file:={truth}'),
            controller=('mode:=computed_torque', 'hold:=100.0', 'start_tolerance:=3.0'))
        publisher = world.node.create_publisher(JointState, 'relayed', 100)
        self.loop.hear(lambda message: [publisher.publish(m) for m in self.relay(message)])
        self.loop.begin([0.0, 0.0])
        self.server = self.start()

    def start(self):
        process = server(self.world, self.root, 'state_timeout:=5.0',
                         remap=('-r', 'joint_states:=relayed'))
        self.world.spin(0.5)
        return process

    def goal(self, name, **goal):
        return Client(name=name, excitation=EXCITATION, validation_share=0.3,
                      friction='coulomb', **goal)

    def send(self, *goals):
        """Send goals at once; return what became of each."""
        client = ActionClient(self.world.node, IdentifyDynamics, 'identification/identify')
        assert client.wait_for_server(60.0)
        sent = [client.send_goal_async(IdentifyDynamics.Goal(**goal)) for goal in goals]
        self.world.wait(lambda: all(one.done() for one in sent), 'answers')
        ended = [one.result().get_result_async() for one in sent]
        self.world.wait(lambda: all(one.done() for one in ended), 'results', 300.0)
        client.destroy()
        return [one.result() for one in ended]

    def use(self, name, log):
        """Identify from what an earlier run has recorded."""
        with Client(name=name, source=2, logs=[log], friction='coulomb') as client:
            result = client.read()
        assert result['success'] and result['status'] == STATUS['succeeded'], result['reasons']

    def close(self):
        self.server.__exit__()
        self.loop.__exit__()

    def at_rest(self):
        """Wait until the arm rests, soon on its own clock."""
        first = len(self.loop.states)

        def still():
            speeds = np.abs([m.velocity for m in self.loop.states[first:first + int(2.8 * RATE)]])
            return len(speeds) > 0.3 * RATE and speeds[-int(0.3 * RATE):].max() < 0.05
        self.world.wait(still, 'the arm to rest', 60.0)


@pytest.fixture(scope='module')
def planar(tmp_path_factory):
    world = World()
    robot = Planar(world, tmp_path_factory.mktemp('planar') / 'runs')
    yield robot
    robot.close()
    world.close()


def test_cancel_in_every_phase(planar):
    with Client(name='a', search_time=60.0) as client:
        client.read('search')
        client.cancel()
        assert client.read()['status'] == STATUS['canceled']
    with planar.goal('b') as client:
        client.read('approach')
        client.cancel()
        assert client.read()['status'] == STATUS['canceled']
    planar.at_rest()
    with planar.goal('c') as client:
        client.until('excite', 0.5)
        client.cancel()
        result = client.read()
    assert result['status'] == STATUS['canceled'] and not result['success']
    assert any('c/log' in reason for reason in result['reasons'])
    planar.at_rest()
    with Client(name='d', source=1, duration=30.0) as client:
        client.read('record')
        client.cancel()
        assert client.read()['status'] == STATUS['canceled']
    planar.use('e', 'c')  # what was recorded is there, and can be used by its name
    with Client(name='f', source=2, logs=['c']) as client:
        client.read('identify')
        client.cancel()
        assert client.read()['status'] in (STATUS['canceled'], STATUS['succeeded'])


def test_a_new_goal_pre_empts_the_old(planar):
    with planar.goal('old') as old:
        old.read('excite')
        with Client(name='new', source=1, duration=2.0) as new:
            result = old.read()
            assert result['status'] == STATUS['aborted']
            assert 'pre-empted' in result['reasons'][0]
            assert new.read()['folder'].endswith('/new')
    planar.at_rest()
    # two at once: one of them is pre-empted, the other has its turn
    common = {'excitation': EXCITATION, 'validation_share': 0.3, 'friction': 'coulomb'}
    results = planar.send({'name': 'x', **common}, {'name': 'y', **common})
    assert ['pre-empted' in ' '.join(r.result.reasons) for r in results] == [True, False]
    assert results[1].result.success, results[1].result.reasons


def test_killed_in_the_middle_and_started_again(planar):
    with planar.goal('cut') as client:
        client.until('excite', 0.6)
        os.kill(planar.server.pid, signal.SIGKILL)
    assert not (planar.root / 'cut/log/metadata.yaml').exists()
    planar.server.__exit__()
    planar.world.spin(1.5)  # what it said before it died
    planar.world.diagnostics.clear()
    planar.server = planar.start()
    planar.world.wait(lambda: 'cut off after' in planar.server.log(), 'what was cut off')
    assert (planar.root / 'cut/log/metadata.yaml').exists()
    planar.use('again', 'cut')


def test_a_full_disk_stops_the_robot_and_keeps_what_is_written(planar):
    with planar.goal('full') as client:
        client.until('excite', 0.5)
        size = (planar.root / 'full/log/log.db3').stat().st_size
        resource.prlimit(planar.server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        result = client.read()
    assert result['status'] == STATUS['aborted']
    assert 'nothing more can be recorded' in result['reasons'][0]
    planar.at_rest()
    resource.prlimit(planar.server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    planar.use('kept', 'full')
    assert planar.server.exit_code is None


@pytest.mark.parametrize('harm, why', [
    ('frozen', 'frozen'), ('silent', 'stay out'), ('jump', 'jumped by 1000'), ('back', 'jumped')])
def test_states_that_cannot_be_trusted_stop_the_robot(planar, harm, why):
    with planar.goal(harm) as client:
        client.until('excite', 0.4)
        planar.relay.harm = harm
        result = client.read()
    planar.relay.harm = ''
    assert result['status'] == STATUS['aborted'] and why in result['reasons'][0]
    assert f'{harm}/log' in result['reasons'][1]
    planar.at_rest()


def test_dropped_states_are_noticed_and_survived(planar):
    planar.relay.harm = 'dropped'
    with planar.goal('dropped') as client:
        result = client.read()
    planar.relay.harm = ''
    assert result['success'] and result['verdict'] == 'good', result['reasons']
    assert planar.server.exit_code is None


def test_the_command_shows_phases_residuals_and_the_result(planar):
    done = subprocess.run(
        [sys.executable, '-m', 'robodyn_ros.cli', 'calibrate', '--name', 'command', '--friction',
         'coulomb', '--excitation', EXCITATION, '--validation-share', '0.3'],
        capture_output=True, text=True, timeout=300, env={**os.environ, 'COLUMNS': '140'})
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ('approach', 'excite', 'unexplained', 'condition', 'good', 'joint2',
                  'report.html'):
        assert words in done.stdout, words


def test_goals_that_make_no_sense_are_answered_with_why(planar):
    (planar.root.parent / 'secret.npz').write_text('')
    (planar.root / 'link').symlink_to(planar.root.parent)
    for goal, why in (
            ({'source': 2, 'logs': ['../secret.npz']}, 'no name of a run'),
            ({'source': 2, 'logs': ['/etc/passwd']}, 'no name of a run'),
            ({'source': 2, 'logs': ['link/secret.npz']}, 'leads out'),
            ({'source': 2, 'logs': ['nothing']}, 'does not exist'),
            ({'source': 2}, 'no log'), ({'source': 9}, 'source is 9'),
            ({'source': 2, 'logs': [EXCITATION]}, 'suffix'),
            ({'name': '../up', 'source': 1, 'duration': 1.0}, 'no name of a run'),
            ({'source': 1, 'duration': 0.0}, 'duration'),
            ({'source': 1, 'duration': 1.0, 'kind': 'magic'}, 'magic'),
            ({'excitation': '../' + EXCITATION}, 'no name of a run')):
        ended = planar.send(goal)[0]
        assert ended.status == STATUS['aborted'] and not ended.result.success
        assert why in ' '.join(ended.result.reasons), goal
    assert planar.server.exit_code is None


# real logs, played as a bag -------------------------------------------------------------------


def test_a_real_log_played_as_a_bag_gives_the_offline_figures(world, tmp_path):
    """The UR10's measured log, on the topic it was recorded from, five times as fast."""
    from rosbags.rosbag2 import Reader

    world.describe(UR10)
    states = DATA / 'ur10/ur10_exciting_trajectory.db3'
    model = rd.load_model(UR10)
    log = rd.read_log(states, model)
    with server(world, tmp_path / 'runs', 'state_timeout:=5.0') as process:
        publisher = world.node.create_publisher(JointState, 'joint_states', 100_000)  # loses none
        world.wait(lambda: publisher.get_subscription_count() == 1, 'the server')
        with Reader(states) as bag:
            wanted = [c for c in bag.connections if c.msgtype == 'sensor_msgs/msg/JointState']
            messages = [bytes(raw) for _, _, raw in bag.messages(connections=wanted)]
        with Client(name='ur10', source=1, duration=log.duration + 1,
                    validation_share=0.3) as client:
            client.read('waiting')
            for raw in messages:
                publisher.publish(raw)
                time.sleep(0.0008)
            result = client.read()
        assert result['success'], result['reasons']
        assert process.exit_code is None
    fit, proof = log.split(0.7)
    offline = rd.validate(rd.identify(model, fit), proof)
    np.testing.assert_allclose(result['validation_error'], offline.relative_error, rtol=1e-6)
    np.testing.assert_allclose(result['validation_error_filtered'],
                               offline.relative_error_filtered, rtol=1e-6)


def test_motor_torques_and_an_unknown_payload_through_the_action(world, tmp_path):
    """States of a robot with drives, first free, then with 2 kg in its hand; model 2."""
    motors = {'joints': {name: {
        'armature': inertia, 'link_friction': {'viscous': 0.6, 'coulomb': 0.8},
        'motor_friction': {'viscous': 0.3, 'coulomb': 0.4}} for name, inertia in (
            ('joint1', 0.5), ('joint2', 0.2))}}
    true = rd.load_model(PLANAR.description.urdf, motors=motors)
    motion = rd.optimise_excitation(PLANAR, rd.Limits(torque_margin=0.4), period=4.0,
                                    harmonics=3, budget=60.0, starts=1)
    t, (q, qd, qdd, _) = motion.samples(250.0)
    rng = np.random.default_rng(0)
    world.describe(PLANAR.description.urdf)
    topics = ['motor_states', 'joint_states']  # the motors' first: states carry the stamp
    with server(world, tmp_path / 'runs', 'use_motor_states:=true', 'state_timeout:=5.0') as node:
        publishers = [world.node.create_publisher(JointState, topic, 1000) for topic in topics]
        world.wait(lambda: all(p.get_subscription_count() for p in publishers), 'the server')

        def play(model, start, **goal):
            whole = rd.Dynamics(model).inverse_dynamics(q, qd, qdd)
            link = whole - [0.5, 0.2] * qdd - 0.3 * qd - 0.4 * np.sign(qd)
            torques = dict(zip(topics, (whole, link), strict=True))
            with Client(source=1, duration=10.0, kind='model2', friction='coulomb',
                        validation_share=0.3, slow=0.02, **goal) as client:
                client.read('waiting')
                for k, when in enumerate(t + start):
                    for topic, publisher in zip(topics, publishers, strict=True):
                        message = JointState(
                            name=list(model.joint_names), position=q[k].tolist(),
                            velocity=qd[k].tolist(),
                            effort=(torques[topic][k] + 0.02 * rng.normal(size=2)).tolist())
                        message.header.stamp.sec = int(when)
                        message.header.stamp.nanosec = round(when % 1 * 1e9) % 10**9
                        publisher.publish(message)
                    time.sleep(0.001)
                result = client.read()
            assert result['success'], (result['reasons'], node.log()[-800:])
            return dict(zip(result['base_parameter'], result['value'], strict=True))

        free = play(true, 100.0, name='free')
        assert free['Ia:joint1'] == pytest.approx(0.5, abs=0.05)
        assert free['Fvm:joint2'] == pytest.approx(0.3, abs=0.05)
        assert free['Fvl:joint2'] == pytest.approx(0.6, abs=0.1)
        loaded = play(true.with_payload('link2', 2.0, (0.3, 0.0, 0.0)), 200.0, name='loaded',
                      logs=['free'], payload_link='link2')
        assert any('payload' in name for name in loaded)
