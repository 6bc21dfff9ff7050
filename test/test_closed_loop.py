"""Controller and robot as real nodes in lock-step: control laws, structures, faults."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import ClosedLoop, fast_motion, rms  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from measured_logs import DATA  # noqa: E402
from robots import PANDA_URDF  # noqa: E402
from ros_world import payload, seconds, trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from synthetic import LWR4, own_robot  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_interfaces.msg import DynamicsTerms  # noqa: E402
from robodyn_interfaces.srv import SetPayload  # noqa: E402
from robodyn_ros.nodes.processes import NodeProcess  # noqa: E402
from robodyn_ros.nodes.stamps import nanoseconds  # noqa: E402
from robodyn_ros.nodes.trajectories import joint_trajectory  # noqa: E402

pytestmark = pytest.mark.nodes

PANDA = PANDA_URDF.read_text().replace('type="prismatic"', 'type="fixed"')  # fingers closed
UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()
PALLETISER, CONFIG = LWR4.parent / 'palletiser.urdf.xacro', LWR4.parent.parent / 'config/robots'
LOOPS = CONFIG / 'palletiser_loops.yaml'
ARMS = {'panda': (PANDA, 'panda_hand'), 'ur10': (UR10, 'wrist_3_link')}
LAWS = ('feedforward_pd', 'feedforward_gravity', 'computed_torque')  # that use the model
SENSORS = ('position_step:=1e-5', 'velocity_noise:=1e-3')


@pytest.mark.parametrize('name', ARMS)
def test_gravity_compensation_holds_any_pose(world, rng, name, robot_node):
    with ClosedLoop(world, ARMS[name][0], robot=robot_node, simulator=('rate:=100.0', *SENSORS),
                    controller=('mode:=gravity_compensation',)) as loop:
        lower = np.maximum(loop.model.lower, -np.pi)
        upper = np.minimum(loop.model.upper, np.pi)
        drift = []
        for _ in range(5):
            pose = (lower + upper) / 2 + 0.45 * (upper - lower) * rng.uniform(
                -1, 1, loop.model.n)
            loop.begin(pose)
            loop.until(10.0)
            _, q, _, effort = loop.history()
            assert np.abs(effort).max() > 1.0
            drift.append(np.abs(q - pose).max())
        print(robot_node, name, 'largest drift in 10 s, degrees:', np.degrees(max(drift)))
        assert np.degrees(max(drift)) < 0.5


@pytest.mark.parametrize('name', ARMS)
def test_models_track_ten_times_better_than_pd_also_with_a_known_payload(world, name, robot_node):
    text, hand = ARMS[name]
    rate = {'panda': 250.0, 'ur10': 1000.0}[name]
    with ClosedLoop(world, text, robot=robot_node, simulator=(f'rate:={rate}', *SENSORS),
                    controller=('mode:=pd',)) as loop:
        motion = fast_motion(loop.model)
        error = {'pd': rms(loop.follow(motion))}
        for law in LAWS:
            loop.law(law)
            error[law] = rms(loop.follow(motion))
        load = payload(hand, 3.0, (0.0, 0.0, 0.1))
        assert world.call(SetPayload, 'simulator/set_payload', load).success
        error['unknown payload'] = rms(loop.follow(motion))
        assert world.call(SetPayload, 'feedforward/set_payload', load).success
        error['known payload'] = rms(loop.follow(motion))
        print(robot_node, name, error)
        known, unknown = error['known payload'], error['unknown payload']
        for each in (*(error[law] for law in LAWS), known):
            assert each < 0.1 * error['pd'], error
        assert known < min(2 * error['computed_torque'], 0.2 * unknown)


def test_a_parallelogram_is_controlled_in_its_independent_joints(world):
    """The palletiser: loops in the engine, in the control law, and in the published terms."""
    text = rd.load_model(PALLETISER).description.urdf
    with ClosedLoop(world, text, loops=LOOPS, simulator=('rate:=250.0', *SENSORS), controller=(
            'mode:=pd',)) as loop, NodeProcess(
                'dynamics', '--ros-args', '-p', f'loops_file:={LOOPS}', '-p',
                'publish_constraint_forces:=true', '-p', 'base_wrench_acceleration:=effort'):
        world.wait_for_model('dynamics')
        closed = rd.ClosedLoopDynamics(loop.model, LOOPS)
        forces = world.collect(WrenchStamped, 'dynamics/constraint_forces/rod_forearm')
        terms = world.collect(DynamicsTerms, 'dynamics/terms')
        q = np.array([[0.0, 0.0, 0.0, 0.0], [0.7, 0.4, -0.3, 1.0], [-0.4, -0.3, 0.3, -1.0]])
        errors, rest = {}, np.zeros_like(q)
        for law in ('pd', 'computed_torque', 'feedforward_pd'):
            loop.law(law)
            errors[law] = rms(loop.follow_points(np.array([0.0, 1.0, 2.2]), q, rest, rest))
        print(errors)
        assert max(errors['computed_torque'], errors['feedforward_pd']) < 0.1 * errors['pd']
        world.wait(lambda: forces and terms, 'terms and forces')
        state, force = loop.states[-1], forces[-1].wrench.force
        assert state.name == list(closed.joint_names)
        last = next(m for m in reversed(list(terms)))
        want = closed.terms(np.array(last.position), np.array(last.velocity))
        np.testing.assert_allclose(last.gravity, want.gravity, atol=1e-6)
        np.testing.assert_allclose(np.reshape(last.mass_matrix, (4, 4)), want.mass_matrix,
                                   atol=1e-6)
        assert 10 < np.hypot(force.x, force.z) < 1e4  # the rod carries a load
        world.wait(lambda: 0.1 < float(world.diagnostics['dynamics'].get(
            'loop_singularity', 0)) <= 1, 'the distance to a singularity')


def test_elastic_feedforward_moves_the_tip_three_times_better(world):
    """The arm with soft gears: its motors are measured, and the error of its tip is judged."""
    elastic = f'motors_file:={CONFIG}/flexible_2r_motors.yaml'
    text = own_robot('flexible_2r')
    with ClosedLoop(world, text, simulator=('rate:=500.0', 'motor_encoders:=true', elastic),
                    controller=('mode:=gravity_compensation', elastic, 'kp:=[200.0, 100.0]',
                                'kd:=[30.0, 10.0]')) as loop:
        links = world.collect(JointState, 'simulator/links')
        dynamics = rd.Dynamics(loop.model)
        motion = fast_motion(loop.model, speed=0.5)
        t, (q, qd, qdd, _) = motion.samples(100.0)
        wrong = {}
        for law in ('feedforward_pd', 'elastic_feedforward_pd'):
            loop.law(law)
            links.clear()
            loop.follow_points(t, q, qd, qdd)
            start = loop.started
            heard = {nanoseconds(m.header.stamp): m.position for m in list(links)}
            times = np.array([ns for ns in heard if start <= ns <= start + t[-1] * 1e9])
            where = np.array([heard[ns] for ns in times])
            wanted = motion.at((times - start) * 1e-9).q
            tips = [dynamics.pose(x, 'tip')[:, :3, 3] for x in (where, wanted)]
            wrong[law] = rms(np.linalg.norm(tips[0] - tips[1], axis=1))
        print('tip, m', wrong)
        assert wrong['elastic_feedforward_pd'] < wrong['feedforward_pd'] / 3


def test_joints_in_another_order(world):
    with ClosedLoop(world, UR10, simulator=('rate:=250.0',), states_as='shuffled',
                    controller=('mode:=feedforward_pd',)) as loop:
        publisher = world.node.create_publisher(JointState, 'shuffled', 10)
        order = [3, 0, 5, 1, 4, 2]

        def shuffle(message):
            publisher.publish(JointState(
                header=message.header, name=['led', *(message.name[i] for i in order)],
                position=[0.0, *(message.position[i] for i in order)],
                velocity=[0.0, *(message.velocity[i] for i in order)], effort=[]))

        loop.hear(shuffle)
        world.wait(lambda: publisher.get_subscription_count() == 1, 'the controller')
        loop.connect()
        assert rms(loop.follow(fast_motion(loop.model))) < 5e-3


# faults ---------------------------------------------------------------------------------------

POSE = np.array([0.3, -1.2, 1.4, -0.8, 0.5, 0.2])


def held(world, *, simulator=(), controller=()):
    return ClosedLoop(world, UR10, simulator=('rate:=500.0', *simulator),
                      controller=('mode:=feedforward_pd', *controller))


def test_references_that_are_not_finite_huge_or_far_are_refused(world):
    with held(world) as loop:
        loop.begin(POSE)
        names, zero = loop.model.joint_names, np.zeros(6)
        world.spin(0.5)
        bad = [[(0.0, POSE * np.nan, zero, zero)],
               [(0.0, POSE, zero, zero), (1.0, POSE + 1e9, zero, zero)],
               [(0.0, POSE, zero + 1e6, zero)],
               [(0.0, POSE, zero, zero + 1e300)],
               [(0.0, POSE, zero, zero + 1e3)],
               [(0.0, POSE + 1.0, zero, zero), (1.0, POSE, zero, zero)]]
        for points in bad:
            world.publish(JointTrajectory, 'feedforward/reference', trajectory(names, points))
        world.wait(lambda: world.count('feedforward', 'reference_refused') == len(bad), 'refusals')
        _, q, _, effort = loop.history()
        assert np.abs(q[-1] - POSE).max() < np.deg2rad(0.5)
        assert (np.abs(effort) <= loop.model.effort_limit).all()
        assert 'following' not in loop.controller.log()


def test_states_that_are_late_lost_or_noisy_do_not_diverge(world):
    with held(world, simulator=(
            'delay:=0.004', 'dropped:=0.3', 'position_noise:=1e-4',
            'velocity_noise:=1e-2')) as loop:
        motion = fast_motion(loop.model)
        error = loop.follow(motion)
        assert len(error) < 0.85 * 500 * motion.duration  # states were lost
        assert rms(error) < 0.02
        log = loop.controller.log()
        assert 'following -> gravity compensation' in log and 'following -> holding' not in log


def test_a_clock_that_jumps_back_at_a_change_of_mode_or_model_is_noticed(world):
    with held(world) as loop:
        request = payload('wrist_3_link', 1.0)
        for change in (lambda: loop.law('pd'),
                       lambda: world.call(SetPayload, 'feedforward/set_payload', request)):
            loop.begin(POSE)
            loop.until(0.2)
            loop.pause(True)
            world.spin(2.0)  # no message is on its way, and diagnostics are up to date
            before = world.count('feedforward', 'time_jump')
            assert before
            change()
            loop.begin(POSE, held=True)  # no state comes between
            world.wait(lambda before=before: world.count('feedforward', 'time_jump') == before
                       + 1, 'the jump to be seen')


def test_modes_change_without_a_bump_and_limits_hold(world):
    with held(world, simulator=('real_time_factor:=1.0',), controller=('ramp:=0.3',)) as loop:
        motion = fast_motion(loop.model)
        began = time.monotonic()
        loop.begin(motion.at(0.0).q)
        world.spin(0.5)
        torques = world.collect(JointState, 'simulator/torque')
        world.publish(JointTrajectory, 'feedforward/reference', joint_trajectory(motion, 100.0))
        for mode in ('computed_torque', 'gravity_compensation', 'feedforward_gravity', 'pd'):
            loop.law(mode)
            world.spin(0.4)
        refused = world.set_parameter('feedforward', 'kp', [1.0, 2.0])
        assert not refused.successful and 'kp' in refused.reason
        assert not world.set_parameter('feedforward', 'mode', 'magic').successful
        jumps = np.abs(np.diff([m.effort for m in list(torques)], axis=0))
        assert (jumps.max(axis=0) < 0.1 * loop.model.effort_limit).all(), jumps.max(axis=0)
        assert world.set_parameter('feedforward', 'torque_rate_limit', [50.0]).successful
        world.spin(0.2)
        torques.clear()
        loop.law('gravity_compensation')
        world.spin(1.0)
        stamps = [seconds(m) for m in list(torques)]
        slope = np.abs(np.diff([m.effort for m in torques[:len(stamps)]], axis=0)).max(
            axis=1) / np.diff(stamps)
        assert slope.max() < 50.0 + 1e-3
        assert loop.now() * 1e-9 < time.monotonic() - began + 0.1  # no faster than real time
