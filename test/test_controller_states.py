"""The controller without ROS: which states it answers, and how old they may be."""

import time

import numpy as np
import pytest
from controller_bench import DYNAMICS, ZERO, Bench, Q

from robodyn_ros.control.state_checks import StampAge


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


def test_states_are_not_stale_if_their_clock_stopped_or_runs_slowly():
    bench = Bench(mode='gravity_compensation')
    assert arrive(bench, np.arange(1, 2, 0.001), np.arange(0, 1, 0.001)).all()
    # a simulation is paused for 10 s, then continues
    answered = arrive(bench, 2 + np.arange(0, 1, 0.001), 11 + np.arange(0, 1, 0.001))
    assert answered[12:].all() and not answered[0]
    # it runs at half the pace of the clock
    answered = arrive(bench, 3 + np.arange(0, 1, 0.001), 12 + 2 * np.arange(0, 1, 0.001))
    assert answered.mean() > 0.9


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
