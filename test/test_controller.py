"""The controller without ROS: references, modes and how commands end."""

import numpy as np
import pytest
from controller_bench import DYNAMICS, SECOND, Bench, Q, law, moving, still
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control import Reference


def test_a_reference_in_the_future_is_checked_again_when_it_begins():
    bench = Bench()
    bench.state()
    bench.play(still(), int((bench.now + 0.1) * 1e9))
    q = Q.copy()
    for _ in range(20):  # moved away meanwhile
        q = q + [0.05, 0.0]
        bench.state(q)
    assert bench.controller.player.playing is None
    assert 'reference_refused' in bench.warned
    assert bench.controller.phase == 'gravity compensation'


@pytest.mark.parametrize('hold', [0.0, 10.0])
@pytest.mark.parametrize('mode', ['feedforward_pd', 'feedforward'])
def test_a_reference_is_followed_until_the_next_one_starts(mode, hold):
    """The first is held at its end; otherwise the arm would drift until the second starts."""
    bench = Bench(mode=mode, hold=hold)
    step = bench.state if mode == 'feedforward_pd' else bench.tick
    step()
    bench.play(still(seconds=0.1))
    for _ in range(20):
        step()
    bench.play(moving(Q + [0.3, 0.0], 1.0), start=int(bench.now * 1e9) + SECOND // 2)
    phases = set()
    for _ in range(49):
        assert (step() is None) == (mode == 'feedforward' and not hold)
        phases.add(bench.controller.phase)
    if mode == 'feedforward_pd':
        assert phases == {'following' if hold else 'gravity compensation'}
    for _ in range(50):
        answer = step()
    assert bench.controller.player.playing.start >= SECOND // 2 and answer.torque.any()
    bench.controller.player.drop('the test ends')
    assert bench.controller.player.playing is None


def test_a_reference_is_dropped_if_the_robot_leaves_the_path():
    bench = Bench(path_tolerance=[0.2])
    bench.state()
    bench.play(still())
    bench.state()
    assert bench.controller.phase == 'following'
    for k in range(30):
        bench.state(Q + [0.01 * k, 0.0])
    assert 'path_tolerance' in bench.warned and bench.controller.phase == 'gravity compensation'
    assert bench.largest_step() < 0.2 * 50  # it fades


def test_a_reference_is_dropped_if_its_end_is_not_reached_in_time():
    for away, reached in ((0.005, True), (0.05, False)):
        bench = Bench(goal_tolerance=[0.01], goal_time=0.3)
        bench.state()
        bench.play(still(seconds=0.5))
        for _ in range(100):
            bench.state(Q + [away, 0.0])
        assert ('goal_tolerance' not in bench.warned) == reached
        assert (bench.controller.player.playing is not None) == reached


def test_pieces_of_one_motion_continue_without_a_new_transition(rng):
    """Overlapping pieces of a long motion, with one stamp, give the torques of the whole."""
    whole = Reference(np.arange(0, 2.01, 0.1), *np.moveaxis([
        [Q + 0.2 * np.sin(2 * t), [0.4 * np.cos(2 * t)] * 2, [-0.8 * np.sin(2 * t)] * 2]
        for t in np.arange(0, 2.01, 0.1)], 1, 0))
    torques = []
    for each in (100, 7):  # states for one piece
        bench = Bench()
        bench.state()
        start = int(bench.now * 1e9)
        for k in range(100):
            first = max(k // each * each // 10 - 2, 0)
            if k % each == 0:
                bench.play(Reference(whole.times[first:], whole.q[first:], whole.qd[first:],
                                     whole.qdd[first:]), start)
            q, qd, _ = whole.sample(bench.now + 0.01 - start * 1e-9)
            bench.state(q + 0.1, qd)
        torques.append([torque for _, torque in bench.torques])
    np.testing.assert_allclose(torques[0], torques[1], atol=1e-9)


def test_a_closed_loop_that_is_opened_holds_then_commands_zero():
    bench = Bench()
    for _ in range(10):
        bench.state()
    bench.controller.use(law(mode='feedforward'), bench.now)
    began = bench.now
    assert bench.state() is None  # states are not answered in the open loop
    while bench.controller.ending:
        bench.tick()
    held = [torque for when, torque in bench.torques if began + 0.25 < when < began + 0.45]
    np.testing.assert_allclose(held, np.tile(DYNAMICS.gravity(Q), (len(held), 1)), atol=1e-9)
    np.testing.assert_array_equal(bench.torques[-1][1], 0.0)
    assert bench.now - began == pytest.approx(0.7, abs=0.03)
    assert bench.largest_step() < 0.1 * np.abs(DYNAMICS.gravity(Q)).max()
    assert bench.tick() is None


def test_an_open_loop_that_is_closed_fades_into_the_first_state():
    bench = Bench(mode='feedforward')
    bench.play(still())
    for _ in range(5):
        bench.tick()
    bench.controller.use(law(), bench.now)
    bench.tick()
    for _ in range(30):
        bench.state(Q + [0.4, 0.0])
    assert bench.largest_step() < 0.25 * np.abs(DYNAMICS.gravity(Q)).max()
    np.testing.assert_allclose(bench.torques[-1][1], DYNAMICS.gravity(Q + [0.4, 0.0]), atol=1e-9)


def test_an_open_loop_whose_clock_stops_does_not_repeat_a_torque_for_ever():
    bench = Bench(mode='feedforward')
    bench.play(still(seconds=30.0))
    for _ in range(5):
        bench.tick()
    clock = int(bench.now * 1e9)
    for _ in range(100):
        bench.tick(clock=clock)
    assert 'clock_stands' in bench.warned
    np.testing.assert_array_equal(bench.torques[-1][1], 0.0)
    assert bench.tick(clock=clock) is None
    assert bench.tick(clock=clock + 10**7) is not None  # it continues when the clock does


def test_an_open_loop_whose_clock_jumps_back_goes_to_zero():
    bench = Bench(mode='feedforward')
    bench.now = 10.0
    bench.play(still(seconds=30.0))
    for _ in range(5):
        bench.tick()
    for k in range(40):
        bench.tick(clock=SECOND + k)
    assert 'time_jump' in bench.warned and bench.controller.player.playing is None
    np.testing.assert_array_equal(bench.torques[-1][1], 0.0)


def test_a_state_that_cannot_be_answered_leaves_the_last_one_to_be_held():
    bench = Bench(mode='gravity_compensation', damping=[1e308])
    for _ in range(5):
        bench.state()
    with np.errstate(all='ignore'):
        assert bench.state(qd=[4.9, 0.0]) is None
    assert 'not_finite' in bench.warned
    for _ in range(40):
        bench.tick()
    np.testing.assert_allclose(bench.torques[-1][1], DYNAMICS.gravity(Q), atol=1e-9)
    for _ in range(60):
        bench.tick()
    np.testing.assert_array_equal(bench.torques[-1][1], 0.0)


def test_a_huge_torque_is_limited_before_it_fades_in():
    bench = Bench(mode='computed_torque', computed_torque_kp=[1e308])
    for _ in range(5):
        bench.state()
    bench.play(still(Q + 0.3))
    with np.errstate(all='ignore'):
        for _ in range(10):
            bench.state()
    assert bench.largest_step() < 20.0  # the limit is 100; the ramp has 20 steps
    assert bench.torques[-1][1][0] > bench.torques[0][1][0]


def test_a_rate_limit_holds_across_stamps_that_alternate_or_restart():
    bench = Bench(torque_rate_limit=[100.0], ramp=0.0)
    limit, step = 100.0, 0.01
    for k in range(10):
        bench.state(stamp=5 * SECOND + k * 10**7)
    before = len(bench.torques)
    for k in range(60):  # two clocks in turn, four seconds apart, and other torques wanted
        second, q = (1, Q + 0.5) if k % 2 else (5, Q - 0.5)
        stamp = second * SECOND + (10 + k) * 10**7
        if k % 2:
            bench.controller.on_jump()
        bench.state(q, stamp=stamp)
    torques = np.array([torque for _, torque in bench.torques[before - 1:]])
    assert len(torques) > 50
    assert np.abs(np.diff(torques, axis=0)).max() <= limit * step * (1 + 1e-6)


def test_commands_that_end_after_a_stall_have_present_stamps():
    bench = Bench(mode='pd', kp=[0.0], kd=[0.0], damping=[0.0])
    for _ in range(5):
        bench.state()
    bench.now += 1.2  # the process is suspended; the mode changes before anything else
    bench.controller.use(law(mode='feedforward'), bench.now)
    answer = bench.tick()
    assert abs(answer.stamp * 1e-9 - bench.now) < 0.02


@pytest.mark.parametrize('mode', ['feedforward', 'feedforward_pd'])
def test_friction_keeps_its_direction_while_the_reference_rests(mode):
    """It used to chatter with the round-off of a resting reference, or vanish at zero velocity."""
    sticky = rd.Dynamics(rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors={'joints': {
        'j1': {'link_friction': {'coulomb': 2.0}}}}))
    bench = Bench(mode=mode)
    bench.controller.use(law(sticky, mode=mode), 0.0)
    times = np.array([0.0, 0.5, 1.0, 1.25, 1.5, 2.0])
    q, qd = np.tile(Q, (6, 1)), np.zeros((6, 2))
    q[1, 0], qd[1, 0] = Q[0] + 0.05, 0.2  # joint 1 moves up, then rests with some round-off
    q[2:, 0], qd[2:, 0] = Q[0] + 0.1, [1e-12, -1e-12, 1e-12, 0.0]
    reference = Reference(times, q, qd, np.zeros((6, 2)))
    bench.state() if mode != 'feedforward' else bench.tick()
    bench.play(reference, int(bench.now * 1e9))
    torques = []
    for _ in range(190):
        answer = bench.state(reference.sample(bench.now)[0]) if mode != 'feedforward' \
            else bench.tick()
        torques.append(answer.torque[0])
    resting = np.array(torques[130:])
    expected = rd.Dynamics(sticky.model.without_friction()).gravity(q[-1])[0] + 2.0
    np.testing.assert_allclose(resting, expected, atol=1.1)  # the state may lag by a cycle
    assert np.ptp(resting) < 0.5
