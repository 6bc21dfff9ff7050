"""Controller and robot as real nodes in processes, in real time: a minute's loop, and deaths."""

import os
import signal

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import PATIENT, ClosedLoop  # noqa: E402
from measured_logs import DATA  # noqa: E402
from ros_world import seconds  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

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


POSE = np.array([0.3, -1.2, 1.4, -0.8, 0.5, 0.2])
RAMP = 0.2  # s, of transitions


def real_time(world, *simulator):
    return ClosedLoop(world, UR10, lock_step=False,
                      simulator=('rate:=500.0', 'command_timeout:=0.3', 'brakes:=true',
                                 *simulator),
                      controller=('mode:=feedforward_pd', 'state_timeout:=0.3',
                                  'zero_after:=0.8', f'ramp:={RAMP}'))


def test_a_killed_controller_means_zero_torque(world):
    with real_time(world) as loop:
        loop.begin(POSE)
        world.spin(1.0)
        assert np.abs(loop.states[-1].effort).max() > 10.0
        os.kill(loop.controller.pid, signal.SIGKILL)
        world.wait(lambda: not any(loop.states[-1].effort), 'zero torque', 5.0)
        t, _, _, effort = loop.history()
        last = seconds(loop.torques[-1])
        silent = t[(t > last) & ~effort.any(axis=1)][0] - last
        assert silent < 0.3 + 0.1  # the stated time, and what was on its way


def test_a_controller_that_is_stopped_says_zero_last(world):
    with real_time(world, 'command_timeout:=10.0') as loop:
        loop.begin(POSE)
        world.spin(1.0)
        assert np.abs(loop.states[-1].effort).max() > 10.0
        assert loop.controller.stop() == 0
        world.wait(lambda: not any(loop.states[-1].effort), 'zero torque', 5.0)


def test_a_simulator_that_dies_and_comes_back(world):
    with real_time(world, 'command_timeout:=10.0') as loop:
        loop.begin(POSE)
        world.spin(1.0)
        loop.torques.clear()
        os.kill(loop.simulator.pid, signal.SIGKILL)
        world.wait(lambda: 'zero' in world.diagnostics['feedforward']['message'], 'zero')
        world.wait(lambda: not any(loop.torques[-1].effort), 'zero torque', 5.0)
        heard = list(loop.torques)
        effort, gap = np.array([m.effort for m in heard]), np.diff([seconds(m) for m in heard])
        slope = np.abs(np.diff(effort, axis=0)).max(axis=1) / np.maximum(gap, 1e-6)
        assert slope.max() < 1.6 / RAMP * np.abs(effort).max()  # it ramps, it does not fall
        loop.simulator = loop.start_simulator()
        world.wait(lambda: 'gravity' in world.diagnostics['feedforward']['message'], 'recovery')
        loop.begin(POSE)
        world.spin(2.0)
        _, q, qd, effort = loop.history()
        assert np.abs(q[-1] - POSE).max() < np.deg2rad(0.5) and np.abs(effort[-1]).max() > 10.0
        assert loop.controller.exit_code is None
        log = loop.controller.log()
        assert 'gravity compensation -> holding' in log and 'holding -> zero' in log
