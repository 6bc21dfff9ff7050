"""Controller and robot as nodes in real time: a loop at 1 kHz, and processes that die."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import PATIENT, ClosedLoop  # noqa: E402
from measured_logs import DATA  # noqa: E402
from ros_world import seconds  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from robodyn_ros.nodes.fast_path import FastSubscriptions  # noqa: E402

pytestmark = [pytest.mark.nodes, pytest.mark.real_time]

UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()


def test_10_seconds_at_1_khz_lose_no_command(world, stalls):
    with ClosedLoop(world, UR10, lock_step=False, simulator=('rate:=1000.0', 'brakes:=true'),
                    controller=('mode:=gravity_compensation', *PATIENT)) as loop:
        def counts():
            loop.pause(True)
            world.spin(2.5)  # no message is on its way, and diagnostics are up to date
            return [*(world.count('simulator', key) for key in (
                'cycles', 'commands', 'cycles_without_command')),
                *(world.count('feedforward', key) for key in ('superseded', 'stale'))]

        before, began = counts(), time.monotonic()
        assert world.call(Trigger, 'simulator/reset', Trigger.Request()).success
        loop.states.clear()
        loop.pause(False)
        loop.until(10.0)
        cycles, commands, late, superseded, stale = np.subtract(counts(), before)
        stalled = stalls.total(began)
        print(f'{cycles} states, {commands} commands, {superseded} states superseded by newer '
              f'ones that waited, {stale} stale, {late} cycles without a new command; the machine '
              f'stalled for {stalled:.2f} s')
        assert cycles >= 10_000 and loop.controller.exit_code is None
        assert commands + superseded + stale == cycles  # none is lost
        # a state is superseded only where its command would have come too late for its cycle
        assert superseded + stale <= late + 10 + 3000 * stalled
        assert 'holding' not in loop.controller.log()


POSE = np.array([0.3, -1.2, 1.4, -0.8, 0.5, 0.2])
RAMP = 0.2  # s, of transitions


def real_time(world, *simulator, controller=()):
    return ClosedLoop(world, UR10, lock_step=False,
                      simulator=('rate:=500.0', 'command_timeout:=0.3', 'brakes:=true',
                                 *simulator),
                      controller=('mode:=feedforward_pd', 'state_timeout:=0.3',
                                  'zero_after:=0.8', f'ramp:={RAMP}', *controller))


def children(pid):
    """Process ids of the children of a process."""
    found = []
    for status in Path('/proc').glob('[0-9]*/stat'):
        with suppress(OSError):
            name, rest = status.read_text().rsplit(')', 1)
            if int(rest.split()[1]) == pid:
                found.append(int(name.split()[0]))
    return found


class Commands:
    """Torques and when they arrived, s of the monotonic clock that all processes share."""

    def __init__(self, world):
        self.heard = []
        self._listener = FastSubscriptions(world.node, lambda topic, error: None)
        self._listener.add(JointState, 'feedforward/torque', lambda message: self.heard.append(
            (time.monotonic(), np.array(message.effort))), 1000)
        self._listener.start()

    def since(self, when):
        heard = [entry for entry in list(self.heard) if entry[0] >= when]
        return np.array([t for t, _ in heard]), np.array([torque for _, torque in heard])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._listener.stop()


def test_a_watchdog_outside_the_process_holds_then_commands_zero(world, stalls):
    """The watchdog is killed; the controller is suspended for a second, resumed, then killed."""
    with real_time(world, 'command_timeout:=10.0') as loop, Commands(world) as commands:
        helper, = children(loop.controller.pid)
        os.kill(max(children(helper)), signal.SIGKILL)
        world.wait(lambda: 'watchdog_lost' in loop.controller.log(), 'another watchdog', 10.0)
        world.spin(1.5)  # it is found by all who listen
        loop.begin(POSE)
        world.spin(1.0)
        limit = loop.model.effort_limit
        began = time.monotonic()
        held = loop.torques[-1].effort
        os.kill(loop.controller.pid, signal.SIGSTOP)
        world.spin(0.7)
        os.kill(loop.controller.pid, signal.SIGCONT)
        back = time.monotonic()
        world.spin(1.0)
        t, torque = commands.since(began - 0.5)
        first = 1 + int(np.argmax(np.diff(t[t < back])))  # the silence before the watchdog acts
        gap = t[first] - began
        print(f'the watchdog acts {gap:.3f} s after the controller was stopped')
        assert t[first] - t[first - 1] > 0.25 and gap < 0.3 + 0.05 + stalls.worst(began)
        t, torque = t[first:], torque[first:]
        inside = (t > began + 0.5) & (t < back)
        assert inside.sum() > 10 or stalls.worst(began) > 0.1
        np.testing.assert_allclose(torque[inside], np.tile(held, (inside.sum(), 1)),
                                   atol=0.02 * np.abs(held).max())
        assert np.abs(loop.states[-1].position - POSE).max() < np.deg2rad(0.5)
        assert 'taken_over' in loop.controller.log() and loop.controller.exit_code is None

        began = time.monotonic()
        os.kill(loop.controller.pid, signal.SIGSTOP)
        world.wait(lambda: not commands.heard[-1][1].any(), 'zero torque', 5.0)
        zero = time.monotonic() - began
        print(f'zero torque {zero:.3f} s after a stop')
        assert 0.8 < zero < 0.8 + 0.3 + RAMP + 0.1 + stalls.worst(began)
        os.kill(loop.controller.pid, signal.SIGCONT)
        world.wait(lambda: commands.heard[-1][1].any(), 'torque again', 5.0)
        loop.begin(POSE)
        world.spin(1.0)

        began = time.monotonic()
        os.kill(loop.controller.pid, signal.SIGKILL)
        world.wait(lambda: not commands.heard[-1][1].any(), 'zero torque', 5.0)
        t, torque = commands.since(began)
        gap = t[0] - began
        print(f'the watchdog acts {gap:.3f} s after the controller was killed')
        assert gap < 0.05 + stalls.worst(began)
        steps = np.abs(np.diff(torque, axis=0)).max(axis=1) / np.maximum(np.diff(t), 0.002)
        assert steps.max() < 4 / RAMP * np.abs(held).max()  # it fades without a jump
        assert (np.abs(torque) <= limit).all()


def test_a_killed_controller_without_a_watchdog_means_zero_torque(world):
    with real_time(world, controller=('watchdog:=false',)) as loop:
        loop.begin(POSE)
        world.spin(1.0)
        assert np.abs(loop.states[-1].effort).max() > 10.0
        os.kill(loop.controller.pid, signal.SIGKILL)
        world.wait(lambda: not any(loop.states[-1].effort), 'zero torque', 5.0)
        t, _, _, effort = loop.history()
        last = seconds(loop.torques[-1])
        silent = t[(t > last) & ~effort.any(axis=1)][0] - last
        assert silent < 0.3 + 0.1  # the stated time, and that of messages on their way


def test_the_last_command_of_a_stopped_controller_is_zero(world):
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
        assert slope.max() < 1.6 / RAMP * np.abs(effort).max()  # it ramps without a jump
        loop.simulator = loop.start_simulator()
        world.wait(lambda: 'gravity' in world.diagnostics['feedforward']['message'], 'recovery')
        loop.begin(POSE)
        world.spin(2.0)
        _, q, qd, effort = loop.history()
        assert np.abs(q[-1] - POSE).max() < np.deg2rad(0.5) and np.abs(effort[-1]).max() > 10.0
        assert loop.controller.exit_code is None
        log = loop.controller.log()
        assert 'gravity compensation -> holding' in log and 'holding -> zero' in log
