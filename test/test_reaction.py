"""How the controller reacts to accidental contacts until they are acknowledged; without ROS."""

import numpy as np
import pytest
from controller_bench import DYNAMICS, Bench, Q, law, moving, still
from hypothesis import given, settings
from hypothesis import strategies as st

import robodyn_ros as rd
from robodyn_ros.control import ReferenceRefused
from robodyn_ros.control.reaction import react

FAST = {'damping': [2.0], 'brake_time': 0.2, 'ramp': 0.1}


def bench_in_motion(**values):
    """A controller that follows a motion, and its last torque, which is not that of gravity."""
    bench = Bench(**(FAST | values))
    bench.state()
    bench.play(moving(Q + [1.0, 0.5], 1.0))
    for _ in range(15):
        bench.state(Q, [0.2, 0.1])
    return bench, bench.torques[-1][1]


def contact(bench):
    return react(bench.controller, int(bench.now * 1e9), bench.now)


def test_without_the_parameter_nothing_reacts():
    bench, _ = bench_in_motion()
    assert not contact(bench)
    assert bench.controller.player.playing is not None and not bench.controller.reaction.active


def test_yielding_compensates_gravity_until_the_contact_is_acknowledged():
    bench, before = bench_in_motion(on_contact='yield')
    qd = np.array([0.2, 0.1])
    assert contact(bench) and not contact(bench)  # the second one is the same
    free = DYNAMICS.gravity(Q) - 2.0 * qd
    assert np.abs(before - free).max() > 5.0
    first, second = (bench.state(Q, qd).torque for _ in range(2))
    np.testing.assert_allclose(first, before)  # the fade begins
    assert 0.0 < np.abs(second - before).max() < 0.1 * np.abs(free - before).max()
    assert bench.controller.reaction.delay == pytest.approx(0.02)
    for _ in range(60):
        bench.state(Q, qd)
    np.testing.assert_allclose(bench.torques[-1][1], free)
    with pytest.raises(ReferenceRefused, match='acknowledge_contact'):
        bench.play(still())
    bench.controller.reaction.acknowledge()
    bench.play(still())
    bench.state(Q, qd)
    assert bench.controller.phase == 'following'


def test_a_stop_brakes_then_stays_at_zero_until_it_is_acknowledged():
    bench, _ = bench_in_motion(on_contact='stop', friction_compensation=1.0)
    qd = np.array([0.2, 0.1])
    contact(bench)
    for _ in range(19):
        bench.state(Q, qd)
    np.testing.assert_allclose(bench.torques[-1][1], DYNAMICS.gravity(Q) - 2.0 * qd)
    for _ in range(16):
        bench.state(Q, qd)
    assert not bench.torques[-1][1].any() and not bench.controller.commanding
    assert not bench.controller.holding_torque().any()  # the watchdog brings nothing back either
    bench.controller.on_jump()
    bench.now -= 5.0
    for _ in range(100):  # later, also on a clock that jumped back
        assert not bench.state(Q, qd).torque.any()
    bench.controller.reaction.acknowledge()
    start = len(bench.torques)
    for _ in range(15):
        bench.state(Q, 0 * qd)
    np.testing.assert_allclose(bench.torques[-1][1], DYNAMICS.gravity(Q))
    steps = np.abs(np.diff([torque for _, torque in bench.torques[start:]], axis=0))
    assert steps.max() < 0.2 * np.abs(DYNAMICS.gravity(Q)).max()  # it fades


@pytest.mark.parametrize('event', ['deactivation', 'change of mode'])
def test_a_stop_that_is_interrupted_stays_at_zero(event):
    bench, _ = bench_in_motion(on_contact='stop')
    contact(bench)
    assert bench.state().torque.any()
    if event == 'deactivation':
        bench.controller.forget()
    else:
        bench.controller.use(law(mode='feedforward', on_contact='stop', **FAST), bench.now)
        for _ in range(90):
            bench.tick()
        bench.controller.use(law(on_contact='stop', **FAST), bench.now)
    for _ in range(5):
        assert not bench.state().torque.any()


@pytest.mark.parametrize('kind', ['stop', 'yield'])
def test_an_open_loop_goes_to_zero(kind):
    bench = Bench(mode='feedforward', on_contact=kind, ramp=0.1)
    bench.tick()
    bench.play(still())
    bench.tick()
    assert bench.torques[-1][1].any() and contact(bench)
    for _ in range(12):
        bench.tick()
    assert not bench.torques[-1][1].any()
    with pytest.raises(ReferenceRefused, match='contact'):
        bench.play(still())


def test_an_unknown_reaction_is_refused():
    with pytest.raises(rd.UnknownNameError, match='yield'):
        law(on_contact='flee')


EVENTS = st.lists(st.sampled_from(
    ['state'] * 6 + ['contact', 'jump', 'tick', 'gap', 'law', 'forget', 'play']),
    min_size=15, max_size=60)


@settings(max_examples=30, deadline=None)
@given(events=EVENTS, kind=st.sampled_from(['stop', 'yield']), seed=st.integers(0, 10**6))
def test_whatever_happens_a_stop_never_brings_torque_back_and_limits_hold(events, kind, seed):
    rng = np.random.default_rng(seed)
    bench = Bench(on_contact=kind, **FAST)
    limit, back, zero = DYNAMICS.joints.effort_limit, 0.0, False
    for event in events:
        if event == 'contact':
            contact(bench)
        elif event == 'jump':
            bench.controller.on_jump()
            back += rng.uniform(0.0, 0.5)
        elif event == 'tick':
            bench.tick()
        elif event == 'gap':
            bench.tick(rng.uniform(0.0, 0.4))
        elif event == 'law':
            bench.controller.use(law(on_contact=kind, **(FAST | {
                'mode': str(rng.choice(['pd', 'computed_torque', 'feedforward']))})), bench.now)
        elif event == 'forget':
            bench.controller.forget()
        elif event == 'play':
            try:
                bench.play(still())
            except ReferenceRefused:
                pass
        for _ in range(10 if event == 'state' else 1):
            bench.state(Q, 0.3 * rng.normal(size=2), int((bench.now - back + 10.0) * 1e9))
        torque = bench.torques[-1][1] if bench.torques else np.zeros(2)
        assert np.isfinite(torque).all() and (np.abs(torque) <= limit).all()
        stopped = bench.controller.reaction.keep == 0.0 and kind == 'stop'
        if zero and stopped and not bench.controller.ending:
            assert not torque.any()
        zero = stopped and not torque.any()
