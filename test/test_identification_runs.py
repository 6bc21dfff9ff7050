"""One call of the identification: from a wrong description to a model that tracks well.

The robot is a UR10 whose links, rotors and friction differ from its description, with sensor noise
and with torque noise of 2 to 4 %. Everything runs in lock-step, in processes of their own.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import ClosedLoop, fast_motion, rms  # noqa: E402
from identification_world import PACE, PLANAR, SUCCEEDED, Client, server  # noqa: E402
from measured_logs import DATA  # noqa: E402
from ros_world import World  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.excitation import Excitation  # noqa: E402
from robodyn_ros.identification.base_parameters import base_parameters  # noqa: E402
from robodyn_ros.identification.linear_model import LinearModel  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import set_nanoseconds  # noqa: E402
from robodyn_ros.simulation import Simulation  # noqa: E402

pytestmark = [pytest.mark.nodes, pytest.mark.slow]

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


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """The experiment: track a motion, call the action, track the motion again."""
    folder = tmp_path_factory.mktemp('calibration')
    truth = folder / 'truth.yaml'
    truth.write_text(yaml.safe_dump(TRUTH))
    world = World()
    with ClosedLoop(world, UR10, simulator=(
            'rate:=250.0', f'real_time_factor:={PACE}', f'truth_file:={truth}', *NOISE),
                    controller=('mode:=feedforward_pd', 'hold:=5.0', *GAINS)) as loop, \
            NodeProcess('dynamics'), \
            server(world, folder / 'runs', 'state_timeout:=600.0',
                   'lease:=100.0', 'apply_timeout:=100.0'):  # the machine may stall
        motion = fast_motion(loop.model)
        before = rms(loop.follow(motion))
        # the world is held during the search, so that the noise does not depend on its duration
        loop.begin(motion.at(0.0).q, held=True)
        client = Client(world, name='e2e', search_time=12.0, period=10.0, periods=2,
                        torque_margin=0.35, slow=0.05, apply=True)
        client.until('search for the validation', timeout=300.0)
        taken = len(loop.taken)
        loop.hold_until(lambda: len(loop.taken) > taken, 'the motion')
        loop.pause(False)
        client.rest = lambda: loop.pause(True)
        result = client.result()
        assert result.success and result.applied, result.reasons[-1:]
        after = rms(loop.follow(motion))
        world.wait(lambda: world.diagnostics['dynamics'].get('model_origin') == 'e2e', 'a swap')
    world.close()
    return SimpleNamespace(result=result, feedback=client.feedback, before=before, after=after,
                           folder=folder / 'runs/e2e')


def test_the_phases_come_in_their_order(run):
    phases = list(dict.fromkeys(entry.phase for entry in run.feedback))
    expected = ['search', 'search for the validation', 'approach', 'excite', 'validation motion',
                'reading', 'identify: estimate', 'identify: writing', 'swap']
    assert [phase for phase in phases if phase in expected] == expected


def test_feedback_has_the_condition_number_of_the_recording(run):
    conditions = [entry.condition for entry in run.feedback if entry.phase == 'excite']
    assert 0 < conditions[-1] < 1e3


def test_the_description_was_wrong(run):
    assert min(run.result.validation_error_nominal) > 0.15


def test_the_verdict_is_good(run):
    assert run.result.verdict == 'good', run.result.reasons


def test_the_torque_of_another_motion_is_explained(run):
    assert max(run.result.validation_error_filtered) < 0.02


def test_the_written_model_predicts_the_true_torques(run):
    model = rd.load_model(run.folder / 'identified.urdf', motors=run.folder / 'motors.yaml')
    true = Simulation(UR10, truth=TRUTH).true_model
    _, motion = Excitation.from_yaml(run.folder / 'validation_excitation.yaml').samples(200.0)
    got, want = (rd.Dynamics(m).inverse_dynamics(*motion[:3]) for m in (model, true))
    wrong = np.linalg.norm(got - want, axis=0) / np.linalg.norm(want, axis=0)
    assert max(wrong) < 0.02, wrong


def test_the_periods_that_were_played_are_averaged(run):
    assert any('2 periods averaged' in note for note in run.result.notes), run.result.notes


def test_the_written_model_is_physically_consistent(run):
    assert run.result.physically_consistent


def test_intervals_contain_the_true_parameters(run):
    linear = LinearModel(rd.Dynamics(Simulation(UR10, truth=TRUTH).true_model), 'lumped')
    base = base_parameters(linear)
    values = dict(zip(base.names, base.matrix @ linear.nominal(), strict=True))
    stated = yaml.safe_load((run.folder / 'parameters.yaml').read_text())['base_parameters']
    inside = [one['interval_95'][0] <= values[name] <= one['interval_95'][1]
              for name, one in stated.items() if one['significant']]
    assert np.mean(inside) >= 0.9


def test_all_nodes_run_the_identified_model(run):
    assert run.result.applied and len(run.result.model_version) == 2


def test_the_robot_tracks_five_times_better(run):
    assert run.after < run.before / 5, (run.before, run.after)


# recordings -----------------------------------------------------------------------------------


def test_a_real_log_played_as_a_bag_gives_the_offline_figures(world, tmp_path):
    """The UR10's measured log, on the topic it was recorded from, faster than it was measured."""
    from rosbags.rosbag2 import Reader

    world.describe(UR10)
    states = DATA / 'ur10/ur10_exciting_trajectory.db3'
    model = rd.load_model(UR10)
    log = rd.read_log(states, model)
    with server(world, tmp_path / 'runs', 'state_timeout:=3.0') as process:
        publisher = world.node.create_publisher(JointState, 'joint_states', 100_000)  # loses none
        world.wait(lambda: publisher.get_subscription_count() == 1, 'the server')
        with Reader(states) as bag:
            wanted = [c for c in bag.connections if c.msgtype == 'sensor_msgs/msg/JointState']
            messages = [bytes(raw) for _, _, raw in bag.messages(connections=wanted)]
        client = Client(world, name='ur10', source=1, duration=log.duration + 1,
                        validation_fraction=0.3, friction='coulomb')
        client.until('waiting')
        for k, raw in enumerate(messages):
            publisher.publish(raw)
            if k % 10 == 0:
                world.spin(0.005)
        result = client.result()
        assert result.success, result.reasons
        assert process.exit_code is None
    fit, held_out = log.split(0.7)
    offline = rd.validate(rd.identify(model, fit, friction='coulomb'), held_out)
    np.testing.assert_allclose(result.validation_error, offline.relative_error, rtol=1e-6)
    np.testing.assert_allclose(result.validation_error_filtered,
                               offline.relative_error_filtered, rtol=1e-6)


@pytest.fixture(scope='module')
def driven(tmp_path_factory):
    """Plays the states of an arm whose drives are measured as well; returns the parameters."""
    motion = rd.optimise_excitation(PLANAR, rd.Limits(torque_margin=0.4), period=4.0, harmonics=3,
                                    budget=60.0, starts=1)
    t, (q, qd, qdd, _) = motion.samples(250.0)
    rng = np.random.default_rng(0)
    world = World()
    world.describe(PLANAR.description.urdf)
    topics = ('motor_states', 'joint_states')  # the motors' first: joint states carry the stamp
    with server(world, tmp_path_factory.mktemp('driven') / 'runs', 'use_motor_states:=true',
                'state_timeout:=1.0') as node:
        publishers = [world.node.create_publisher(JointState, topic, 1000) for topic in topics]
        world.wait(lambda: all(p.get_subscription_count() for p in publishers), 'the server')

        def play(model, start, **goal):
            whole = rd.Dynamics(model).inverse_dynamics(q, qd, qdd)
            link = whole - [0.5, 0.2] * qdd - 0.3 * qd - 0.4 * np.sign(qd)
            client = Client(world, source=1, duration=10.0, kind='links_and_drives',
                            friction='coulomb', validation_fraction=0.3, slow=0.02, **goal)
            client.until('waiting')
            for k, when in enumerate(t + start):
                for torque, publisher in zip((whole, link), publishers, strict=True):
                    message = JointState(
                        name=list(model.joint_names), position=q[k].tolist(),
                        velocity=qd[k].tolist(),
                        effort=(torque[k] + 0.02 * rng.normal(size=2)).tolist())
                    set_nanoseconds(message.header.stamp, round(when * 1e9))
                    publisher.publish(message)
                if k % 10 == 0:
                    world.spin(0.01)
            result = client.result()
            assert client.status == SUCCEEDED, (result.reasons, node.log()[-800:])
            return dict(zip(result.base_parameter, result.value, strict=True))

        yield play
    world.close()


@pytest.fixture(scope='module')
def true_arm():
    return rd.load_model(PLANAR.description.urdf, motors={'joints': {name: {
        'armature': inertia, 'link_friction': {'viscous': 0.6, 'coulomb': 0.8},
        'motor_friction': {'viscous': 0.3, 'coulomb': 0.4}} for name, inertia in (
            ('joint1', 0.5), ('joint2', 0.2))}})


@pytest.fixture(scope='module')
def free(driven, true_arm):
    """The parameters of the arm without a payload."""
    return driven(true_arm, 100.0, name='free')


def test_motor_torques_separate_the_drives_from_the_links(free):
    assert free['Ia:joint1'] == pytest.approx(0.5, abs=0.05)
    assert free['Fvm:joint2'] == pytest.approx(0.3, abs=0.05)
    assert free['Fvl:joint2'] == pytest.approx(0.6, abs=0.1)


def test_an_unknown_payload_is_identified_with_a_run_without_it(free, driven, true_arm):
    loaded = driven(true_arm.with_payload('link2', 2.0, (0.3, 0.0, 0.0)), 200.0, name='loaded',
                    logs=['free'], payload_link='link2')
    assert any('payload' in name for name in loaded)
