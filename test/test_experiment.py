"""What a live experiment decides: state monitor, script, player, recorder; no ROS."""

import sqlite3
import time
from dataclasses import replace

import numpy as np
import pytest
from synthetic import own_robot

import robodyn_ros as rd
from robodyn_ros.errors import ExperimentError, StatesMissingError
from robodyn_ros.experiment import recorder as recorder_module
from robodyn_ros.experiment.goal import Goal
from robodyn_ros.experiment.job import Job, Stopped
from robodyn_ros.experiment.player import play
from robodyn_ros.experiment.recorder import JOINT_STATE_TYPE, JOINT_STATES, Recorder
from robodyn_ros.experiment.script import plan_script
from robodyn_ros.experiment.state_monitor import MOST_SAMPLES, StateMonitor

MODEL = rd.load_model(own_robot('planar_2r'))
JOINTS = MODEL.joints
ZERO = np.zeros(2)


# the state monitor ----------------------------------------------------------------------------


def add_state(monitor, seconds, q=(0.1, 0.2), tau=(0.0, 0.0)):
    monitor.add_state(round(seconds * 1e9), np.array(q), ZERO, np.array(tau))


@pytest.fixture
def monitor():
    monitor = StateMonitor(JOINTS, timeout=60.0, frozen_after=0.15, tracking_tolerance=0.1)
    add_state(monitor, 100.0)
    return monitor


@pytest.mark.parametrize('stall', [0.0, 0.6])
@pytest.mark.parametrize('jump', [1000.0, 2.5, -2.5])
def test_a_clock_that_jumps_is_a_fault_also_after_a_stall(monitor, stall, jump):
    time.sleep(stall)
    add_state(monitor, 100.0 + jump)
    with pytest.raises(ExperimentError, match='jumped'):
        monitor.check()


def test_states_that_are_late_by_the_wall_clock_are_no_clock_jump(monitor):
    time.sleep(1.1)
    add_state(monitor, 101.1)  # no states arrived
    time.sleep(1.1)
    add_state(monitor, 101.2)  # the world was paused
    monitor.check()


def test_missing_states_are_not_reported_if_there_is_a_worse_fault(monitor):
    monitor.timeout = 0.01
    time.sleep(0.02)
    with pytest.raises(StatesMissingError, match='no new joint_states arrive'):
        monitor.check()
    add_state(monitor, 1000.0)
    time.sleep(0.02)
    with pytest.raises(ExperimentError, match='jumped') as caught:
        monitor.check()
    assert not isinstance(caught.value, StatesMissingError)


def hold_still(monitor, seconds, effort):
    """Keep the robot still for a while under a moving reference."""
    for k in range(round(seconds / 0.02)):
        add_state(monitor, 100.02 + 0.02 * k, tau=(effort(k), 0.0))
        monitor.check_motion(monitor.check(), np.array([0.1 + 0.02 * k, 0.2]))
        time.sleep(0.02)


def test_unchanged_states_are_frozen(monitor):
    with pytest.raises(ExperimentError, match='joint_states are frozen'):
        hold_still(monitor, 1.0, lambda k: 0.0)


def test_states_that_froze_between_two_checks_are_reported_as_frozen(monitor):
    monitor.check_motion(monitor.check(), np.array([0.1, 0.2]))
    for k in range(20):
        add_state(monitor, 100.004 + 0.004 * k)
    with pytest.raises(ExperimentError, match='joint_states are frozen'):
        monitor.check_motion(monitor.check(), np.array([0.3, 0.2]))


def test_states_that_froze_during_a_fast_motion_are_reported_as_frozen(monitor):
    """The reference leaves the tolerance before ten equal states have arrived."""
    with pytest.raises(ExperimentError, match='joint_states are frozen'):
        for k in range(40):
            add_state(monitor, 100.004 + 0.004 * k, (0.1 + 0.02 * min(k, 10), 0.2))
            monitor.check_motion(monitor.check(), np.array([0.1 + 0.02 * k, 0.2]))


def test_a_joint_that_does_not_move_under_growing_effort_sticks(monitor):
    with pytest.raises(ExperimentError, match='^joint1 sticks: .*effort'):
        hold_still(monitor, 1.0, lambda k: 0.5 * k)


def test_a_joint_that_sticks_within_the_tolerance_may_go_on(monitor):
    monitor.tracking_tolerance = 10.0
    hold_still(monitor, 0.4, lambda k: 0.5 * k)


@pytest.mark.parametrize('q, reference, why', [
    ((0.1, 0.21), (0.1, 0.4), 'joint2 is off its reference'),
    ((0.1, 9.0), (0.1, 9.0), 'joint2 is out of its range')])
def test_the_error_names_a_joint_that_is_off_its_reference(monitor, q, reference, why):
    add_state(monitor, 100.02, q)
    with pytest.raises(ExperimentError, match=why):
        monitor.check_motion(monitor.check(), np.array(reference))


def test_a_state_is_compared_with_the_reference_of_its_own_time(monitor):
    """While the thread of the experiment sleeps, newer states arrive."""
    first = monitor.check()
    add_state(monitor, 100.5, (0.6, 0.2))
    monitor.check_motion(first, np.array([0.1, 0.2]))


def test_an_idle_monitor_keeps_no_samples(monitor):
    for k in range(1, 1000):
        add_state(monitor, 100 + 0.001 * k)
    assert not monitor.take()
    monitor.begin()
    for k in range(MOST_SAMPLES + 1000):
        add_state(monitor, 101 + 0.001 * k)
    assert len(monitor.take()) == MOST_SAMPLES
    monitor.end()
    add_state(monitor, 200.0)
    assert not monitor.take()


# the script and its pieces --------------------------------------------------------------------


@pytest.fixture(scope='module')
def motion():
    return rd.optimise_excitation(MODEL, rd.Limits(torque_margin=0.2), period=3.0, harmonics=3,
                                  budget=60.0, starts=1)


@pytest.fixture(scope='module')
def script(motion):
    return plan_script(rd.Dynamics(MODEL, friction_width=0.02), np.array([0.3, -0.4]),
                       [('log', motion)], 50.0)


def test_pieces_equal_the_whole_motion_until_they_stop(script):
    whole = script.reference
    for start in np.linspace(-0.5, whole.duration, 40):
        piece, leaves = script.piece(start, start + 0.4)
        assert leaves >= min(start + 0.4, whole.duration) - 1e-9
        for t in np.linspace(max(start, 0.0), min(leaves, whole.duration), 20):
            np.testing.assert_allclose(piece.sample(t), whole.sample(t), atol=1e-9)


def test_every_piece_ends_at_rest_within_the_limits(script):
    dynamics = rd.Dynamics(MODEL, friction_width=0.02)
    for start in np.linspace(0.0, script.reference.duration, 40):
        piece, _ = script.piece(start, start + 0.4)
        assert piece.ends_at_rest
        tau = dynamics.inverse_dynamics(piece.q, piece.qd, piece.qdd)
        assert (np.abs(tau) <= JOINTS.effort_limit).all()
        assert (np.abs(piece.qd) <= JOINTS.velocity_limit).all()


def test_a_stop_stays_on_the_planned_path(script):
    whole = script.reference
    path = np.array([whole.sample(t)[0] for t in np.arange(0, whole.duration, 0.001)])
    for start in np.linspace(1.0, whole.duration - 1.0, 10):
        piece, leaves = script.piece(start, start)
        for t in np.linspace(leaves, piece.duration, 30):
            away = np.linalg.norm(path - piece.sample(t)[0], axis=1).min()
            assert away < 5e-3  # between points it deviates from the path only by the quintics


def test_a_stop_takes_as_long_as_the_effort_limits_demand(motion):
    def stop(time, limit):
        dynamics = rd.Dynamics(replace(MODEL, effort_limit=limit))
        script = plan_script(dynamics, motion.at(0.0).q, [('log', motion)], 50.0)
        piece, leaves = script.piece(time, time)
        braking = piece.times > leaves
        tau = dynamics.inverse_dynamics(*(x[braking] for x in (piece.q, piece.qd, piece.qdd)))
        return piece.duration - leaves, np.abs(tau).max(axis=0)

    longer = []
    for time_ in np.linspace(1.6, 4.4, 20):
        shortest, needed = stop(time_, np.full(2, np.inf))
        assert shortest == pytest.approx(0.3)
        seconds, less = stop(time_, 0.97 * needed)
        if (less <= 0.97 * needed).all():
            longer.append(seconds)
    assert longer and min(longer) > 0.4


def test_several_periods_are_recorded_after_one_more(motion):
    dynamics = rd.Dynamics(MODEL, friction_width=0.02)
    thrice = replace(motion, periods=3)
    window, = plan_script(dynamics, motion.at(0.0).q, [('log', thrice)], 50.0).windows
    once, = plan_script(dynamics, motion.at(0.0).q, [('log', motion)], 50.0).windows
    assert window.end - window.start == pytest.approx(thrice.duration)
    assert window.start == pytest.approx(once.start + motion.period)


# the player -----------------------------------------------------------------------------------


class Arm:
    """Follows the last piece that it was sent; its clock advances when the test says so."""

    def __init__(self, monitor):
        self.monitor, self.sent, self.history = monitor, [], []
        self._now, self._q, self._rng = 10**9, np.array([0.3, -0.4]), np.random.default_rng(0)
        self.advance(0.01)

    def send(self, piece, start):
        self.sent.append((piece, start))

    def advance(self, seconds):
        """Advance, and report a state every 10 ms."""
        for _ in range(round(seconds / 0.01)):
            self._now += 10**7
            qd = np.zeros(2)
            if self.sent and self._now >= self.sent[-1][1]:
                piece, start = self.sent[-1]
                self._q, qd, _ = piece.sample((self._now - start) * 1e-9)
            self.history.append((self._now, self._q, qd))
            self.monitor.add_state(self._now, self._q, qd, self._rng.normal(size=2))

    def at_rest(self):
        """Advance until it rests; return how long that took, s."""
        for k in range(1000):
            if not self.history[-1][2].any():
                return 0.01 * k
            self.advance(0.01)
        raise AssertionError('the arm does not come to rest')


@pytest.fixture
def arm():
    return Arm(StateMonitor(JOINTS, 60.0, 60.0, 0.2))


def perform(arm, script, folder, tick=lambda name, fraction: None, opening=0.0):
    """Play a script; between two cycles of the player 0.1 s pass for the arm."""
    def advance(name, fraction):
        tick(name, fraction)
        arm.advance(0.1)

    def recorder(name):
        arm.advance(opening)
        return Recorder(folder / name, {JOINT_STATES: JOINT_STATE_TYPE})

    play(arm.monitor, script, arm.send, recorder, advance, delay=1.0, lease=0.8)


def test_a_piece_is_repeated_until_the_motion_begins(arm, script, tmp_path):
    """The controller may not have found the server yet when it sends the first piece."""
    began, sent = time.monotonic(), []

    def advance(name, fraction):
        if time.monotonic() < began + 1.0:
            sent.append(len(arm.sent))
        else:
            arm.advance(0.1)

    play(arm.monitor, script, arm.send, lambda name: Recorder(
        tmp_path / name, {JOINT_STATES: JOINT_STATE_TYPE}), advance, delay=1.0, lease=0.8)
    assert sent[-1] > 1 and all(piece is arm.sent[0][0] for piece, _ in arm.sent[:sent[-1]])


def test_the_robot_follows_the_whole_script_without_a_jump(arm, script, tmp_path):
    places = []
    perform(arm, script, tmp_path, lambda *place: places.append(place))
    assert len(arm.sent) > 20 and max(len(piece.times) for piece, _ in arm.sent) < 250
    start = arm.sent[0][1]
    for now, q, _ in arm.history:
        if now >= start:
            np.testing.assert_allclose(q, script.reference.sample((now - start) * 1e-9)[0],
                                       atol=1e-9)
    assert {name for name, _ in places} == {'approach', 'log'}
    assert places[-1][1] > 0.5


def test_the_motion_starts_after_its_delay_also_if_a_recorder_takes_long_to_open(
        arm, script, tmp_path):
    perform(arm, script, tmp_path, opening=2.0)
    assert np.array_equal(arm.history[0][1], arm.history[250][1])  # it rests until then
    jumps = np.abs(np.diff([q for _, q, _ in arm.history], axis=0)).max()
    assert jumps < 0.011 * np.abs(script.reference.qd).max()


def test_without_the_server_the_robot_brakes_when_the_lease_ends(arm, script, tmp_path):
    """The arm continues while the server is suspended, which then sends no further motion."""
    seen = {}

    def tick(name, fraction):
        if name == 'log' and fraction > 0.2 and not seen:
            seen['speed'] = np.abs(arm.history[-1][2]).max()
            seen['seconds'] = arm.at_rest()
            seen['pieces'], seen['pose'] = len(arm.sent), arm.history[-1][1]

    with pytest.raises(ExperimentError, match='the server was suspended for more than 0.8 s'):
        perform(arm, script, tmp_path, tick)
    assert seen['speed'] > 0.1 and seen['seconds'] < 0.8 + 0.5
    arm.advance(1.0)
    assert len(arm.sent) == seen['pieces']
    assert np.array_equal(arm.history[-1][1], seen['pose'])


def test_a_stop_in_the_middle_brakes_at_once_and_without_a_jump(arm, script, tmp_path):
    job = Job(Goal())

    def tick(name, fraction):
        if name == 'log' and fraction > 0.3:
            job.stop('enough')
        job.check()

    with pytest.raises(Stopped, match='enough'):
        perform(arm, script, tmp_path, tick)
    assert arm.at_rest() < 0.5
    speeds = np.array([qd for _, _, qd in arm.history])
    assert np.abs(speeds).max() < 1.001 * np.abs(script.reference.qd).max()


# the recorder ---------------------------------------------------------------------------------


def test_a_slow_disk_raises_an_error_and_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, 'MOST_WAITING', 50)
    recorder = Recorder(tmp_path / 'bag', {JOINT_STATES: JOINT_STATE_TYPE})
    while not list(tmp_path.glob('bag/*.db3')):
        time.sleep(0.01)
    recorder.write(JOINT_STATES, 0, b'0123')
    time.sleep(0.8)  # it is committed
    lock = sqlite3.connect(next(tmp_path.glob('bag/*.db3')))
    lock.execute('BEGIN EXCLUSIVE')
    for k in range(1000):
        recorder.write(JOINT_STATES, k, b'0123')
    assert 'too slow' in recorder.error and recorder.count <= 60
    lock.rollback()
    recorder.close()
