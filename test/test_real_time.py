"""Controller and robot as real nodes in processes, in real time: a minute's loop, and faults."""

import os
import signal

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import PATIENT, ClosedLoop, fast_motion, rms  # noqa: E402
from measured_logs import DATA  # noqa: E402
from ros_world import trajectory  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from robodyn_ros.nodes.trajectories import joint_trajectory  # noqa: E402

UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()


def test_a_minute_at_1_khz_loses_no_command(world):
    with ClosedLoop(world, UR10, lock_step=False, simulator=('rate:=1000.0', 'brakes:=true'),
                    controller=('mode:=gravity_compensation', *PATIENT)) as loop:
        def counts():
            loop.pause(True)
            world.spin(2.5)  # nothing is under way any more, and diagnostics have said so
            return [world.count('simulator', key) for key in (
                'cycles', 'commands', 'cycles_without_command')]

        before = counts()
        assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
        loop.states.clear()
        loop.pause(False)
        loop.until(60.0)
        cycles, commands, late = np.subtract(counts(), before)
        print(f'{cycles} states, {commands} commands, {late} cycles without a new one')
        assert cycles >= 60_000 and loop.controller.exit_code is None
        assert commands == cycles
        assert 'holding' not in loop.controller.log()


def real_time(world, *, simulator=(), controller=(), text=UR10):
    return ClosedLoop(world, text, lock_step=False,
                      simulator=('rate:=500.0', 'command_timeout:=0.3', 'brakes:=true',
                                 *simulator),
                      controller=('mode:=feedforward_pd', 'state_timeout:=0.3',
                                  'zero_after:=0.8', *controller))


POSE = np.array([0.3, -1.2, 1.4, -0.8, 0.5, 0.2])


def test_a_killed_controller_means_zero_torque(world):
    with real_time(world) as loop:
        loop.begin(POSE)
        world.spin(1.0)
        assert np.abs(loop.states[-1].effort).max() > 10.0
        os.kill(loop.controller.pid, signal.SIGKILL)
        killed = len(loop.states)
        world.wait(lambda: not any(loop.states[-1].effort), 'zero torque', 5.0)
        t, _, _, effort = loop.history()
        silent = t[killed:][~effort[killed:].any(axis=1)][0] - t[killed]
        assert silent < 0.3 + 0.1  # the stated time, and what was on its way


def test_a_controller_that_is_stopped_says_zero_last(world):
    with real_time(world, simulator=('command_timeout:=10.0',)) as loop:
        loop.begin(POSE)
        world.spin(1.0)
        assert np.abs(loop.states[-1].effort).max() > 10.0
        assert loop.controller.stop() == 0
        world.wait(lambda: not any(loop.states[-1].effort), 'zero torque', 5.0)


def test_a_simulator_that_dies_and_comes_back(world):
    with real_time(world) as loop:
        loop.begin(POSE)
        world.spin(1.0)
        torques = world.collect(JointState, 'feedforward/torque')
        os.kill(loop.simulator.pid, signal.SIGKILL)
        world.wait(lambda: 'zero' in world.diagnostics['feedforward']['message'], 'zero')
        world.spin(0.5)
        assert not any(torques[-1].effort)
        heard = [m.effort for m in list(torques)]
        largest = np.abs(np.diff(heard, axis=0)).max()
        assert largest < 0.1 * np.abs(heard).max()  # it ramps, it does not fall
        loop.simulator = loop.start_simulator()
        world.wait(lambda: 'gravity' in world.diagnostics['feedforward']['message'], 'recovery')
        loop.begin(POSE)
        world.spin(2.0)
        _, q, qd, effort = loop.history()
        assert np.abs(q[-1] - POSE).max() < np.deg2rad(0.5) and np.abs(effort[-1]).max() > 10.0
        assert loop.controller.exit_code is None
        log = loop.controller.log()
        assert 'gravity compensation -> holding' in log and 'holding -> zero' in log


def test_references_that_are_nan_huge_or_far_are_refused(world):
    with real_time(world) as loop:
        loop.begin(POSE)
        names, zero = loop.model.joint_names, np.zeros(6)
        world.spin(0.5)
        bad = [[(0.0, POSE * np.nan, zero, zero)],
               [(0.0, POSE, zero, zero), (1.0, POSE + 1e9, zero, zero)],
               [(0.0, POSE, zero + 1e6, zero)],
               [(0.0, POSE, zero, zero + 1e300)],
               [(0.0, POSE, zero, zero + 1e3)],
               [(0.0, POSE + 1.0, zero, zero), (1.0, POSE, zero, zero)]]
        for k, points in enumerate(bad, 1):
            world.publish(JointTrajectory, 'feedforward/reference', trajectory(names, points))
            world.wait(lambda k=k: world.count('feedforward', 'reference_refused') == k, 'no')
        _, q, _, effort = loop.history()
        assert np.abs(q[-1] - POSE).max() < np.deg2rad(0.5)
        assert (np.abs(effort) <= loop.model.effort_limit).all()
        assert 'following' not in loop.controller.log()


def test_states_that_are_late_lost_or_noisy_do_not_diverge(world):
    with real_time(world, simulator=(
            'delay:=0.004', 'dropped:=0.3', 'position_noise:=1e-4',
            'velocity_noise:=1e-2')) as loop:
        motion = fast_motion(loop.model)
        error = loop.follow(motion)
        assert len(error) < 0.85 * 500 * motion.duration  # states were lost
        assert rms(error) < 0.02
        log = loop.controller.log()
        assert 'following -> gravity compensation' in log and 'following -> holding' not in log


def test_modes_change_without_a_bump_and_limits_hold(world):
    with real_time(world, controller=('ramp:=0.3', *PATIENT)) as loop:
        motion = fast_motion(loop.model)
        loop.begin(motion.at(0.0).q)
        world.spin(0.5)
        torques = world.collect(JointState, 'feedforward/torque')
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
        stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in list(torques)]
        slope = np.abs(np.diff([m.effort for m in torques[:len(stamps)]], axis=0)).max(
            axis=1) / np.diff(stamps)
        assert slope.max() < 50.0 + 1e-3
