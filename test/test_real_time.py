"""Controller and robot as nodes in real time: a loop at 1 kHz, and processes that die."""

import os
import signal
import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from closed_loop import PATIENT, ClosedLoop  # noqa: E402
from measured_logs import DATA  # noqa: E402
from ros_world import World, children, seconds  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from stalls import Starvation  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from robodyn_ros.nodes.fast_path import FastSubscriptions  # noqa: E402

pytestmark = [pytest.mark.nodes, pytest.mark.real_time]

UR10 = (DATA / 'ur10/ur10_nomesh.urdf').read_text()
POSE = np.array([0.3, -1.2, 1.4, -0.8, 0.5, 0.2])
RAMP = 0.2  # s, of transitions
LATE = 0.3  # s without a state or a command, after which the robot is held


def test_10_seconds_at_1_khz_lose_no_command(world, stalls):
    with ClosedLoop(world, UR10, lock_step=False, simulator=('rate:=1000.0', 'brakes:=true'),
                    controller=('mode:=gravity_compensation', *PATIENT)) as loop:
        def counts():
            loop.pause(True)
            world.spin(0.5)  # no message is on its way
            world.diagnosed_anew('simulator', 'feedforward')
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


class RealTime:
    """A robot and its controller in real time; tests end one or the other."""

    def __init__(self):
        self.world = World()
        self.loop = ClosedLoop(
            self.world, UR10, lock_step=False,
            simulator=('rate:=500.0', 'brakes:=true', 'command_timeout:=10.0'),
            controller=self._controller())
        self.heard = []  # torques and when they arrived, s of the clock that all processes share
        self._listener = FastSubscriptions(self.world.node, lambda topic, error: None)
        self._listener.add(JointState, 'feedforward/torque', lambda message: self.heard.append(
            (time.monotonic(), np.array(message.effort))), 1000)
        self._listener.start()

    def _controller(self, *parameters):
        return ('mode:=feedforward_pd', f'state_timeout:={LATE}', 'zero_after:=0.8',
                f'ramp:={RAMP}', *parameters)

    def use_controller(self, *parameters):
        """Start a controller if none runs, or with other parameters."""
        if self.loop.controller.exit_code is None and not parameters:
            return
        self.loop.controller.stop()
        self.world.spin(0.3)  # diagnostics of the former one may be on their way
        self.world.diagnostics.clear()
        self.loop.start_controller(*self._controller(*parameters))
        self.world.wait_for_model('feedforward')
        self.world.spin(0.5)  # it is found by all who listen

    def at_pose(self):
        """Wait until the robot is held at its pose."""
        self.loop.begin(POSE)
        self.world.spin(0.5)
        assert np.abs(self.loop.states[-1].effort).max() > 10.0

    def send(self, number):
        """Send the controller a signal; return the time."""
        now = time.monotonic()
        os.kill(self.loop.controller.pid, number)
        return now

    def since(self, when):
        heard = [entry for entry in list(self.heard) if entry[0] >= when]
        return np.array([t for t, _ in heard]), np.array([torque for _, torque in heard])

    def until_torque(self, zero):
        """Wait until the commanded torque is zero, or is not."""
        self.world.wait(lambda: self.heard[-1][1].any() != zero, 'the torque', 5.0)

    def until_zero(self):
        """Wait until no torque acts on the robot."""
        self.world.wait(lambda: not any(self.loop.states[-1].effort), 'zero torque', 5.0)

    def close(self):
        self._listener.stop()
        self.loop.__exit__()
        self.world.close()


@pytest.fixture(scope='module')
def real_time_world():
    found = RealTime()
    yield found
    found.close()


@pytest.fixture
def real(real_time_world):
    real_time_world.use_controller()
    return real_time_world


def test_a_simulator_that_dies_and_comes_back(real):
    world, loop, starved = real.world, real.loop, Starvation(real.loop.controller.pid)
    real.at_pose()
    loop.torques.clear()
    os.kill(loop.simulator.pid, signal.SIGKILL)
    world.wait(lambda: 'zero' in world.diagnostics['feedforward']['message'], 'zero')
    real.until_torque(zero=True)
    heard = list(loop.torques)
    effort, gap = np.array([m.effort for m in heard]), np.diff([seconds(m) for m in heard])
    slope = np.abs(np.diff(effort, axis=0)).max(axis=1) / np.maximum(gap, 1e-6)
    assert slope.max() < 1.6 / RAMP * np.abs(effort).max()  # it ramps without a jump
    loop.simulator = loop.start_simulator()
    world.wait(lambda: 'gravity' in world.diagnostics['feedforward']['message'], 'recovery')
    loop.begin(POSE)
    world.spin(1.0)
    _, q, qd, effort = loop.history()
    assert np.abs(q[-1] - POSE).max() < np.deg2rad(0.5) and np.abs(effort[-1]).max() > 10.0
    assert loop.controller.exit_code is None
    log = loop.controller.log()
    assert ('gravity compensation -> holding' in log and 'holding -> zero' in log) or (
        'the watchdog ends' in log and starved)  # the watchdog has done it in its place


def test_the_last_command_of_a_stopped_controller_is_zero(real):
    real.at_pose()
    assert real.loop.controller.stop() == 0
    real.until_zero()


def watchdogs(world):
    """The publishers of torques that belong to watchdogs."""
    return {bytes(entry.endpoint_gid) for entry in world.node.get_publishers_info_by_topic(
        'feedforward/torque') if entry.node_name == 'feedforward_watchdog'}


def test_a_watchdog_outside_the_process_holds_then_commands_zero(real, stalls):
    """The watchdog is killed; the controller is suspended for a second, resumed, then killed."""
    world, loop, limit = real.world, real.loop, real.loop.model.effort_limit
    helper, = children(loop.controller.pid)
    killed, before = max(children(helper)), watchdogs(world)
    os.kill(killed, signal.SIGKILL)
    world.wait(lambda: 'watchdog_lost' in loop.controller.log(), 'its loss', 10.0)
    world.wait(lambda: watchdogs(world) - before, 'another watchdog', 10.0)
    world.spin(0.5)  # it is found by all who listen
    real.at_pose()
    starved = Starvation(max(pid for pid in children(helper) if pid != killed))
    began = real.send(signal.SIGSTOP)
    world.spin(0.7)
    back = real.send(signal.SIGCONT)
    world.wait(lambda: 'taken_over' in loop.controller.log(), 'the controller', 10.0)
    world.spin(0.3)
    t, torque = real.since(began - 0.5)
    first = 1 + int(np.argmax(np.diff(t[t < back])))  # the silence before the watchdog acts
    gap = t[first] - began
    print(f'the watchdog acts {gap:.3f} s after the controller was stopped')
    assert t[first] - t[first - 1] > LATE - 0.05 and gap < LATE + 0.05 + stalls.worst(began)
    held = torque[first - 1]  # what the controller commanded last
    t, torque = t[first:], torque[first:]
    inside = (t > began + 0.5) & (t < back)
    assert inside.sum() > 10 or (inside.any() and (starved or stalls.worst(began) > 0.1))
    np.testing.assert_allclose(torque[inside], np.tile(held, (inside.sum(), 1)),
                               atol=0.02 * np.abs(held).max())
    assert np.abs(loop.states[-1].position - POSE).max() < np.deg2rad(0.5)
    assert loop.controller.exit_code is None

    began = real.send(signal.SIGSTOP)
    real.until_torque(zero=True)
    zero = time.monotonic() - began
    print(f'zero torque {zero:.3f} s after a stop')
    assert 0.8 < zero < 0.8 + LATE + RAMP + 0.1 + stalls.worst(began)
    real.send(signal.SIGCONT)
    real.until_torque(zero=False)
    real.at_pose()

    began = real.send(signal.SIGKILL)
    real.until_torque(zero=True)
    t, torque = real.since(began)
    gap = t[0] - began
    print(f'the watchdog acts {gap:.3f} s after the controller was killed')
    assert gap < 0.05 + stalls.worst(began)
    steps = np.abs(np.diff(torque, axis=0)).max(axis=1) / np.maximum(np.diff(t), 0.002)
    assert steps.max() < 4 / RAMP * np.abs(held).max()  # it fades without a jump
    assert (np.abs(torque) <= limit).all()


def test_a_killed_controller_without_a_watchdog_means_zero_torque(real_time_world):
    real, world, loop = real_time_world, real_time_world.world, real_time_world.loop
    real.use_controller('watchdog:=false')
    assert world.set_parameter('simulator', 'command_timeout', LATE).successful
    real.at_pose()
    real.send(signal.SIGKILL)
    real.until_zero()
    t, _, _, effort = loop.history()
    last = seconds(loop.torques[-1])
    silent = t[(t > last) & ~effort.any(axis=1)][0] - last
    assert silent < LATE + 0.1  # the stated time, and that of messages on their way
