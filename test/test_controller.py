"""The controller without ROS: references, states, modes and how commands end.

This file is long because all of its tests use the same bench.
"""

import time

import numpy as np
import pytest
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.control import Controller, Law, Reference, ReferenceRefused
from robodyn_ros.control.state_checks import StampAge

DYNAMICS = rd.Dynamics(rd.load_model(planar_2r(), gravity=(0, -9.81, 0)))
SECOND = 1_000_000_000
VALUES = {
    'mode': 'feedforward_pd', 'kp': [50.0], 'kd': [10.0], 'computed_torque_kp': [100.0],
    'computed_torque_kd': [20.0], 'damping': [1.0], 'torque_rate_limit': [0.0],
    'friction_compensation': 0.0, 'state_timeout': 0.1, 'zero_after': 0.5, 'ramp': 0.2,
    'hold': 1.0, 'setpoint_timeout': 0.1, 'start_tolerance': 0.5, 'path_tolerance': [1.0],
    'goal_tolerance': [0.0], 'goal_time': 0.5}
Q = np.array([0.3, -0.4])
ZERO = np.zeros(2)


def law(dynamics=DYNAMICS, **values):
    return Law.of(VALUES | values, dynamics)


class Bench:
    """A controller with a clock, whose states come every 10 ms on request."""

    def __init__(self, **values):
        self.now, self.warned, self.torques = 0.0, [], []
        self.controller = Controller(law(**values), lambda kind, text: self.warned.append(kind),
                                     lambda before, after: None)

    def _heard(self, answer):
        if answer is not None:
            self.torques.append((self.now, answer.torque))
        return answer

    def state(self, q=Q, qd=ZERO, stamp=None):
        self.now += 0.01
        return self._heard(self.controller.on_state(
            np.array(q), np.array(qd), int(self.now * 1e9) if stamp is None else stamp, self.now))

    def tick(self, step=0.01, clock=None):
        self.now += step
        return self._heard(self.controller.tick(
            self.now, int(self.now * 1e9) if clock is None else clock))

    def play(self, reference, start=0):
        playing, tau = self.controller.check(reference, start, self.now, int(self.now * 1e9))
        self.controller.play(playing, self.now, int(self.now * 1e9))
        return tau

    def largest_step(self):
        return np.abs(np.diff([torque for _, torque in self.torques], axis=0)).max()


def still(q=Q, seconds=2.0):
    rows = np.tile(q, (2, 1))
    return Reference([0.0, seconds], rows, 0 * rows, 0 * rows)


def moving(goal, seconds, start=Q):
    rows = np.array([start, goal])
    return Reference([0.0, seconds], rows, 0 * rows, 0 * rows)


def samples(reference, order):
    """A derivative of a reference on a fine grid, shape (N, n)."""
    grid = np.concatenate([np.linspace(a, b, 1001) for a, b in zip(
        reference.times, reference.times[1:], strict=False)])
    return np.array([reference.sample(t)[order] for t in grid])


def test_limits_hold_between_the_points_too():
    """Two points at rest, both within the range, 1 rad and 50 ms apart: 37 rad/s between them."""
    bench = Bench()
    bench.state()
    with pytest.raises(ReferenceRefused, match='velocity of joint .* at 0.0'):
        bench.play(moving(Q + [1.0, 0.0], 0.05))
    overshooting = Reference([0.0, 1.0], [Q, Q], [[8.0, 0.0], [8.0, 0.0]], np.zeros((2, 2)))
    span = samples(overshooting, 0)[:, 0]
    bounds = np.array([span.max() - 0.01, 9.0])
    found = overshooting.excess(0, -bounds, bounds)
    assert found is not None and found.joint == 0
    assert found.value == pytest.approx(span.max(), abs=1e-4)
    assert overshooting.excess(0, -bounds - 0.02, bounds + 0.02) is None
    assert bench.controller.player.playing is None
    weak = rd.Dynamics(rd.load_model(planar_2r().replace('effort="100"', 'effort="40"'),
                                     gravity=(0, -9.81, 0)))
    bench.controller.use(law(weak), bench.now)
    with pytest.raises(ReferenceRefused, match='torque of joint .* at 0.* 40'):
        bench.play(moving(Q + [0.0, 0.3], 0.15))  # 19 N m at the points, 47 between them


def test_extrema_equal_dense_samples(rng):
    for _ in range(10):
        times = np.cumsum(rng.uniform(0.05, 2.0, 4))
        reference = Reference(times, *rng.normal(size=(3, 4, 2)) * [[[1]], [[3]], [[9]]])
        for order in range(3):
            values = samples(reference, order)
            upper = np.full(2, np.inf)
            upper[0] = values[:, 0].max()
            slack, lower = 1e-4 * (1 + np.ptp(values[:, 0])), np.full(2, -np.inf)
            assert reference.excess(order, lower, upper + slack) is None
            found = reference.excess(order, lower, upper - slack)
            assert found.joint == 0 and found.value > upper[0] - slack
            assert reference.sample(found.time)[order][0] == pytest.approx(found.value)


def test_dense_samples_are_those_of_the_reference(rng):
    reference = Reference([0.5, 1.0, 3.0], *rng.normal(size=(3, 3, 2)))
    times, *parts = reference.dense(20)
    assert len(times) == 21 and times[0] == 0.5 and times[-1] == 3.0
    for k, instant in enumerate(times):
        for part, expected in zip(parts, reference.sample(instant), strict=True):
            np.testing.assert_allclose(part[k], expected, atol=1e-9)


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


# states ------------------------------------------------------------------------------------------

@pytest.mark.parametrize('q, qd, kind', [
    (Q + [0.0, 1e6], ZERO, 'implausible_position'),
    (Q + [0.0, -4.0], ZERO, 'implausible_position'),
    (Q + [0.8, 0.0], ZERO, 'implausible_jump'), (Q, [0.0, 40.0], 'implausible_velocity')])
def test_an_implausible_state_is_refused_and_several_lead_to_hold_then_zero(q, qd, kind):
    bench = Bench(mode='gravity_compensation')
    for _ in range(5):
        bench.state()
    assert bench.state(q, qd) is None and bench.warned == [kind]
    np.testing.assert_allclose(bench.state().torque, DYNAMICS.gravity(Q), atol=1e-9)  # one is lost
    bench.warned.clear()
    phases, now = set(), bench.now
    stamp = int(now * 1e9)
    while bench.now < now + 0.8:
        bench.now += 0.001
        bench.controller.on_state(np.array(q), np.array(qd), stamp, bench.now)
        stamp += 1000  # hardly any time passes: a state that persists is accepted later
        bench.tick(0.001)
        phases.add(bench.controller.phase)
    assert phases == {'gravity compensation', 'holding', 'zero'}
    np.testing.assert_array_equal(bench.torques[-1][1], 0.0)
    bench.state(stamp=stamp + 10**9)  # a plausible state brings the torque back
    assert bench.controller.phase == 'gravity compensation'


def test_a_state_that_persists_is_accepted():
    bench = Bench(mode='gravity_compensation')
    bench.state()
    away = Q + [0.9, 0.0]
    refused = 0
    while bench.state(away) is None:
        refused += 1
    assert 2 < refused < 15 and bench.warned[:2] == ['implausible_jump'] * 2


def test_velocities_that_contradict_the_positions_are_refused():
    for scale, believed in ((1.0, True), (0.9, True), (0.0, False), (-1.0, False)):
        bench = Bench(mode='gravity_compensation')
        for k in range(60):
            bench.state(Q + [0.01 * k, 0.0], [scale * 1.0, 0.0])  # 1 rad/s
        assert ('implausible_velocity' not in bench.warned) == believed, (scale, bench.warned)


def test_a_repeated_stamp_is_ignored():
    bench = Bench(mode='gravity_compensation')
    assert bench.state(stamp=5 * 10**9) is not None
    assert bench.state(Q + 0.001, stamp=5 * 10**9) is None
    assert bench.warned == ['frozen']


def test_sensor_noise_and_lost_states_are_plausible(rng):
    bench = Bench(mode='gravity_compensation')
    for k in range(2000):
        bench.now += 0.001
        t = 0.002 * k
        if rng.random() < 0.5:
            bench.state(Q + 0.5 * np.sin(3 * t) + rng.normal(0, 1e-3, 2),
                        [1.5 * np.cos(3 * t) * 0.5] * 2 + rng.normal(0, 0.1, 2),
                        stamp=int(t * 1e9) + 1)
    assert not set(bench.warned) - {'stale'}, set(bench.warned)


def arrive(bench, stamps, arrivals, stalls=False):
    """Let states with these stamps (s) arrive; return whether each is answered.

    Between them time passes in the controller's process too, unless it is suspended (`stalls`).
    """
    answered = []
    for stamp, arrival in zip(stamps, arrivals, strict=True):
        while bench.now + 0.01 < arrival and not stalls:
            bench.tick()
        bench.now = arrival
        answered.append(bench.controller.on_state(Q, ZERO, int(stamp * 1e9), arrival) is not None)
    return np.array(answered)


def test_states_that_waited_in_a_queue_are_not_answered_as_fresh():
    bench = Bench(mode='gravity_compensation')
    assert arrive(bench, 7 + np.arange(0, 1, 0.001), np.arange(0, 1, 0.001) + 0.002).all()
    # this process was suspended for a second: the states that waited arrive all at once
    stamps = 8 + np.arange(0, 1.05, 0.001)
    arrivals = 2.002 + np.arange(1050) * 5e-5
    answered = arrive(bench, stamps, arrivals, stalls=True)
    age = (arrivals - 0.002) - (stamps - 7)
    np.testing.assert_array_equal(answered, age <= 0.1 + 1e-9)
    assert bench.warned.count('stale') == (age > 0.1 + 1e-9).sum() > 800


def test_after_a_stall_a_slowly_processed_queue_is_not_mistaken_for_a_stopped_clock():
    bench = Bench(mode='gravity_compensation')
    assert arrive(bench, 7 + np.arange(0, 1, 0.001), np.arange(0, 1, 0.001)).all()
    # this process was suspended for a second; then the queue yields one state in 20 ms
    assert not arrive(bench, 8 + np.arange(0, 0.2, 0.005), 2 + 0.02 * np.arange(40),
                      stalls=True).any()
    # if they never become younger, their clock was stopped as well
    late = arrive(bench, 8.2 + np.arange(0, 2, 0.001), 2.8 + np.arange(0, 2, 0.001))
    assert not late[:1000].any() and late[-500:].all()


def test_commands_that_end_after_a_stall_have_present_stamps():
    bench = Bench(mode='pd', kp=[0.0], kd=[0.0], damping=[0.0])
    for _ in range(5):
        bench.state()
    bench.now += 1.2  # the process is suspended; the mode changes before anything else
    bench.controller.use(law(mode='feedforward'), bench.now)
    answer = bench.tick()
    assert abs(answer.stamp * 1e-9 - bench.now) < 0.02


def test_states_are_not_stale_if_their_clock_stopped_or_runs_slowly():
    bench = Bench(mode='gravity_compensation')
    assert arrive(bench, np.arange(1, 2, 0.001), np.arange(0, 1, 0.001)).all()
    # a simulation is paused for 10 s, then continues
    answered = arrive(bench, 2 + np.arange(0, 1, 0.001), 11 + np.arange(0, 1, 0.001))
    assert answered[12:].all() and not answered[0]
    # it runs at half the pace of the clock
    answered = arrive(bench, 3 + np.arange(0, 1, 0.001), 12 + 2 * np.arange(0, 1, 0.001))
    assert answered.mean() > 0.9


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


@pytest.mark.parametrize('clock, in_the_end', [(0.0, 0.5), (1000.0, 0.0)])
def test_states_stamped_by_the_system_stay_late_however_long_they_are(clock, in_the_end):
    """On an overloaded machine every state is late; another clock may have been paused."""
    ages, now, stamp = StampAge(), time.monotonic(), time.time() + clock
    assert ages.age(int(stamp * 1e9), now, 0.1) == 0.0
    for k in range(300):
        age = ages.age(int((stamp + 0.01 * k) * 1e9), now + 0.5 + 0.01 * k, 0.1)
    assert age == pytest.approx(in_the_end, abs=1e-3)


def test_after_a_damaged_stamp_late_states_are_recognised_as_before():
    ages, start = StampAge(), time.monotonic()
    now, system = 0.0, time.time()

    def age(late):
        found = ages.age(int((system + now - late) * 1e9), start + now, 0.1)
        return pytest.approx(found, abs=0.05)  # the two clocks were not read at once

    assert age(1.6) == 0.0  # the first stamp is damaged
    for _ in range(20):
        now += 0.01
        assert age(0.0) == 0.0
    for _ in range(20):  # from now on every state is late
        now += 0.01
        assert age(0.5) == 0.5
    ages.restart()  # a stamp in the future, then one that seems to jump back
    for _ in range(20):
        now += 0.01
        assert age(0.5) == 0.5
    assert age(0.0) == 0.0
    ages.restart()
    assert age(1e9) == 0.0  # another clock
    ages.restart()
    assert age(0.0) == 0.0
    ages.restart()  # the clock of another computer was set back
    ends = []
    for _ in range(400):
        now += 0.01
        ends.append(age(0.5))
    assert ends[150] == 0.5 and ends[-1] == 0.0
