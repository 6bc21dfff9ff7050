"""The watchdog of commands without processes: when it acts, what it commands, when it ends."""

import os

import numpy as np
import pytest

from robodyn_ros.control.command_watchdog import SIZE, CommandWatchdog, Pulse, Terms

LAST, HOLD = np.array([30.0, -10.0]), np.array([20.0, 5.0])
TERMS = Terms(('j1', 'j2'), (0, 1), 0.1, 0.5, 0.2, (np.inf, np.inf))


@pytest.fixture
def pulse():
    descriptor = os.memfd_create('test')
    os.ftruncate(descriptor, SIZE)
    pulse = Pulse(descriptor)
    pulse.command(LAST, 7_000_000_000)
    pulse.holds(HOLD)
    yield pulse
    os.close(descriptor)


def run(watchdog, begin, end, dead=False, terms=TERMS):
    """Times and torques that it commands, sampled every 5 ms."""
    rows = [(now, watchdog.tick(terms, dead, now)) for now in np.arange(begin, end, 0.005)]
    return [(now, *answer) for now, answer in rows if answer is not None]


def test_nothing_is_commanded_beside_a_live_or_idle_controller(pulse):
    watchdog = CommandWatchdog(pulse)
    for now in np.arange(0.0, 1.0, 0.005):
        pulse.beat(now, True)
        assert watchdog.tick(TERMS, False, now) is None
    pulse.beat(1.0, False)  # nothing was commanded, so there is nothing to end
    assert not run(watchdog, 1.0, 3.0) and not run(watchdog, 3.0, 4.0, dead=True)
    pulse.beat(4.0, True)
    assert not run(watchdog, 4.0, 6.0, terms=None)


@pytest.mark.parametrize('dead, after', [(False, 0.1), (True, 0.0)])
def test_it_holds_then_commands_zero_from_the_last_torque(pulse, dead, after):
    watchdog = CommandWatchdog(pulse)
    pulse.beat(0.0, True)
    watchdog.tick(TERMS, False, 0.0)
    rows = run(watchdog, 0.005, 1.5, dead)
    now, torque, stamps = (np.array(column) for column in zip(*rows, strict=True))
    assert after <= now[0] < after + 0.012
    np.testing.assert_allclose(torque[0], LAST, atol=0.5)
    held = (now > 0.35) & (now < 0.5)
    np.testing.assert_allclose(torque[held], np.tile(HOLD, (held.sum(), 1)), atol=1e-9)
    np.testing.assert_array_equal(torque[now > 0.72], 0.0)
    assert np.abs(np.diff(torque, axis=0)).max() < 1.6 / 0.2 * 0.005 * 20  # without a jump
    assert watchdog.done
    np.testing.assert_allclose(stamps * 1e-9, 7 + now, atol=1e-6)


def test_it_ends_and_reports_its_commands_when_the_controller_is_back(pulse):
    watchdog = CommandWatchdog(pulse)
    pulse.beat(0.0, True)
    rows = run(watchdog, 0.0, 0.4)
    assert watchdog.acting and pulse.takeovers == len(rows)
    np.testing.assert_allclose(pulse.vectors(2)[2], rows[-1][1])
    pulse.beat(0.4, True)
    assert watchdog.tick(TERMS, False, 0.405) is None and not watchdog.acting
    assert not run(watchdog, 0.41, 0.5) and run(watchdog, 0.5, 0.6)


def test_a_rate_limit_makes_its_fades_longer(pulse):
    watchdog = CommandWatchdog(pulse)
    pulse.beat(0.0, True)
    terms = Terms(('j1', 'j2'), (0, 1), 0.1, 0.5, 0.2, (20.0, np.inf))
    rows = run(watchdog, 0.0, 5.0, terms=terms)
    torque = np.array([row[1] for row in rows])
    assert np.abs(np.diff(torque[:, 0])).max() <= 20 * 0.005 * (1 + 1e-6)
    np.testing.assert_array_equal(torque[-1], 0.0)
