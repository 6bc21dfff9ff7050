"""Model health: friction, offset and gravity that drift away from the identified model."""

import copy
import json
import os

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import fourier_motion, own_robot

import robodyn_ros as rd
from robodyn_ros.observation.contacts import ACCIDENTAL, INTENDED, NONE
from robodyn_ros.observation.drift import DriftMemory
from robodyn_ros.observation.health import (
    FEWEST,
    MARGIN,
    ModelHealth,
    expected_residual,
    read_expected_residual,
)
from robodyn_ros.observation.health_file import (
    LARGEST,
    fingerprint,
    read_state,
    set_aside,
    write_state,
)
from robodyn_ros.observation.momentum import MomentumObserver
from robodyn_ros.observation.windows import SLOWEST, WINDOW, Window

TEXT = own_robot('articulated_3r')
FRICTION = {'joints': {name: {'link_friction': {'coulomb': 2.0, 'viscous': 1.0}}
                       for name in ('waist', 'shoulder', 'elbow')}}
EXPECTED = np.array([0.2, 0.2, 0.1])
NOW = 1.7e9  # s since 1970


@pytest.fixture(scope='module')
def dynamics():
    return rd.Dynamics(rd.load_model(TEXT, motors=FRICTION))


@pytest.fixture(scope='module')
def motion(dynamics):
    """Ten states a second of a motion of 100 s: q, qd, which joints move."""
    _, q, qd, _ = fourier_motion(dynamics.model, np.random.default_rng(3), 100.0, 1 / WINDOW)
    return q, qd, np.abs(qd) > SLOWEST


def observed(dynamics, motion, extra, times=2):
    """The health after a motion whose joints need ``extra(q, qd)`` beyond their model, N m."""
    health = ModelHealth(dynamics, EXPECTED)
    q, qd, moving = motion
    rows = list(zip(q, qd, -extra(q, qd) * np.ones_like(q), moving, strict=True))
    for _ in range(times):
        for row in rows:
            health.add(Window(*row, False))
    health.judge(NOW)
    return health


def kinds(health):
    return {(one.joint, one.kind) for one in health.changes}


def test_the_recursion_is_the_weighted_least_squares_of_all_samples(rng):
    memory, rows = DriftMemory(2, 30.0), []
    for _ in range(100):
        row = rng.normal(size=(2, 4)), rng.normal(size=2), rng.normal(size=2), \
            np.array([1.0, float(rng.integers(2))]) * rng.uniform(0.1, 1)
        memory.add(*row)
        rows.append(row)
    drift = memory.estimate()
    for k in range(2):
        counted = [(a[k], b[k], w[k]) for a, b, _, w in rows if w[k] > 0]
        weight = np.array([w for _, _, w in counted]) * np.exp(
            -np.arange(len(counted))[::-1] / 30.0)
        a, b = np.array([x for x, _, _ in counted]), np.array([x for _, x, _ in counted])
        scaled = np.sqrt(weight)[:, None]
        found = np.linalg.lstsq(a * scaled, b * scaled[:, 0], rcond=None)[0]
        np.testing.assert_allclose(drift.coefficients[k], found, atol=1e-4)
        assert drift.weight[k] == pytest.approx(weight.sum())
        left = np.sqrt(weight @ (b - a @ found)**2 / weight.sum())
        assert drift.unexplained[k] == pytest.approx(left, abs=1e-4)


def test_friction_that_rose_is_reported_with_its_size(dynamics, motion):
    def more(q, qd):
        return 0.2 * dynamics.friction(qd, q) * [0, 1, 0]
    health = observed(dynamics, motion, more)
    assert kinds(health) == {('shoulder', 'friction')}
    text = health.text(NOW + 100)
    assert 'joint shoulder: friction 20 % above the identified model since ' in text
    assert text.endswith('identify again')
    assert '(Coulomb +0.4, viscous +0.2)' in health.values(NOW)['health shoulder']


@pytest.mark.parametrize(('kind', 'extra', 'words'), [
    ('offset', lambda d, q: 1.5, 'offset 1.5 N m above'),
    ('gravity', lambda d, q: -0.2 * d.gravity(q), 'gravity 20 % below')])
def test_offset_and_gravity_are_told_apart(dynamics, motion, kind, extra, words):
    health = observed(dynamics, motion, lambda q, qd: extra(dynamics, q) * np.array([0, 1, 0]))
    assert kinds(health) == {('shoulder', kind)} and words in health.text(NOW)
    assert ('set_payload' in health.text(NOW)) == (kind == 'gravity')


def test_a_residual_that_no_term_explains_is_reported_as_such(dynamics, motion):
    health = observed(dynamics, motion, lambda q, qd: 2.0 * np.sin(7 * q) * [0, 0, 1])
    assert kinds(health) == {('elbow', 'residual')}
    assert 'times that of the validation' in health.text(NOW)


@settings(max_examples=25, deadline=None)
@given(weights=st.lists(st.floats(-1, 1), min_size=4, max_size=4), noise=st.floats(0, 1),
       seed=st.integers(0, 99))
def test_no_residual_within_the_expected_one_is_taken_for_a_change(dynamics, motion, weights,
                                                                   noise, seed):
    """Whatever its form: also one that looks like friction, offset or gravity."""
    rng = np.random.default_rng(seed)

    def extra(q, qd):
        form = noise * rng.normal(size=q.shape)
        for weight, term in zip(weights, (np.sign(qd), qd, np.ones_like(qd),
                                          dynamics.gravity(q)), strict=True):
            form = form + weight * term / (np.abs(term).max(axis=0) + 1e-9)
        return form * MARGIN * EXPECTED / np.maximum(np.abs(form).max(axis=0), 1e-9)
    assert not observed(dynamics, motion, extra, times=1).changes


def test_a_change_ends_when_it_is_over_and_is_remembered(dynamics, motion):
    health = observed(dynamics, motion, lambda q, qd: 0.15 * dynamics.friction(qd, q), 1)
    assert len(health.changes) == 3
    q, qd, moving = motion
    for k in range(8 * len(q)):
        row = k % len(q)
        health.add(Window(q[row], qd[row], 0 * q[row], moving[row], False))
    assert not health.judge(NOW + 3600) and len(health.ended) == 3
    assert {one.until - one.since for one in health.ended} == {3600.0}
    assert 'waist: friction at most +' in health.values(NOW + 3700)['health, ended']


def test_only_free_motion_counts(dynamics):
    """States at 40 Hz: not an accidental contact, rest, a reversal, or states far apart."""
    q, qd, residual = np.full(3, 0.3), np.full(3, 0.5), np.full(3, -1.0)

    def weight(contact=NONE, qd=qd, step=0.025):
        health = ModelHealth(dynamics, EXPECTED)
        for k in range(41):
            health.update(k * step, q, qd * (1 if k % 2 else 1.1), residual, contact)
        return health.memories['minutes'].weight
    np.testing.assert_allclose(weight(), 10, rtol=0.01)
    np.testing.assert_allclose(weight(INTENDED), 1, rtol=0.01)  # it may be friction
    assert not weight(ACCIDENTAL).any() and not weight(step=0.06).any()
    np.testing.assert_allclose(weight(qd=np.array([0.5, 0.001, -0.5])), [10, 0, 10], rtol=0.01)
    health = ModelHealth(dynamics, EXPECTED)
    for k in range(41):
        health.update(0.025 * k, q, qd * (-1)**k, residual, NONE)
    assert not health.memories['minutes'].weight.any()


def test_little_motion_says_nothing(dynamics, motion):
    q, qd, moving = (x[:round(0.9 * FEWEST / WINDOW)] for x in motion)
    assert not observed(dynamics, (q, qd, moving), lambda q, qd: 50 * np.sign(qd), 1).changes


def test_the_expected_residual_is_that_of_a_log_and_goes_through_the_motor_file(
        dynamics, tmp_path, rng):
    t, q, qd, qdd = fourier_motion(dynamics.model, rng, 6.0, 200, frequency=0.3)
    tau = dynamics.inverse_dynamics(q, qd, qdd)
    ripple = 0.4 * np.sign(qd) * [0, 0, 1]
    found = expected_residual(dynamics, [(t, q, qd, tau + ripple)])
    assert found[2] == pytest.approx(0.4, rel=0.1) and found[:2].max() < 0.1
    assert expected_residual(dynamics, [(t[:400], q[:400], qd[:400], tau[:400])]) is None
    path, names = tmp_path / 'motors.yaml', dynamics.joints.joint_names
    path.write_text(yaml.safe_dump(FRICTION | {'residual': dict(zip(
        names, found.tolist(), strict=True))}))
    assert np.array_equal(read_expected_residual(path, names), found)
    assert rd.load_model(TEXT, motors=path).link_friction.any()  # the description ignores it
    assert read_expected_residual(FRICTION, names) is None
    with pytest.raises(rd.DescriptionError, match='elbow'):
        read_expected_residual({'residual': {'waist': 1.0, 'shoulder': 1.0, 'elbow': -1.0}}, names)


def test_the_observer_gives_the_health_what_it_needs(dynamics, rng):
    """The sign of the residual and the averages over windows, from states to friction."""
    t, q, qd, qdd = fourier_motion(dynamics.model, rng, 70.0, 100, frequency=0.1)
    tau = dynamics.inverse_dynamics(q, qd, qdd) + 0.25 * dynamics.friction(qd, q)
    health = ModelHealth(dynamics, EXPECTED)
    residuals = MomentumObserver(dynamics).run(t, q, qd, tau)
    for row in zip(t, q, qd, residuals, strict=True):
        health.update(*row, NONE)
    health.judge(NOW)
    assert {one.kind for one in health.changes} == {'friction'} and len(health.changes) == 3
    assert all(one.relative == pytest.approx(0.25, abs=0.03) for one in health.changes)


# state ----------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def worn(dynamics, motion):
    health = observed(dynamics, motion, lambda q, qd: 0.3 * dynamics.friction(qd, q), 1)
    for k in range(3):  # so that something has ended as well
        health.ended.append(health.changes[k])
    return health


def test_the_state_goes_through_its_file(dynamics, worn, tmp_path):
    path = tmp_path / 'new' / 'observer.health.json'
    write_state(path, worn.to_dict('A'))
    assert os.listdir(path.parent) == [path.name] and path.stat().st_size < 20_000
    again = ModelHealth(dynamics, EXPECTED)
    assert not again.restore(read_state(path), str(path), 'B') and not again.changes
    assert again.restore(read_state(path), str(path), 'A')
    assert again.to_dict('A') == worn.to_dict('A')
    assert again.text(NOW + 60) == worn.text(NOW + 60) != ''


@pytest.mark.parametrize(('content', 'words'), [
    (b'', 'not JSON'), (b'{"format": 1', 'not JSON'), (b'[1]', 'mapping'),
    (b'{"format": NaN}', 'NaN'), (b'[' * 100_000, 'nested'), (b'\xff\xfe', 'UTF-8'),
    (b' ' * (LARGEST + 1), 'bytes')])
def test_a_file_of_another_content_is_named_and_set_aside(tmp_path, content, words):
    path = tmp_path / 'observer.health.json'
    path.write_bytes(content)
    with pytest.raises(rd.DescriptionError, match=words) as error:
        read_state(path)
    assert str(path) in str(error.value)
    assert set_aside(path).read_bytes() == content and not path.exists()
    assert read_state(path) is None
    os.mkfifo(path)
    with pytest.raises(rd.DescriptionError, match='FIFO'):
        read_state(path)


VALUES = st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.floats(), st.integers(),
                   st.lists(st.floats(), max_size=3), st.dictionaries(
                       st.text(max_size=3), st.integers(), max_size=2))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), value=VALUES)
def test_a_hostile_state_is_refused_or_harmless(dynamics, worn, motion, data, value):
    content = json.loads(json.dumps(worn.to_dict('A')))
    place = content
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    health = ModelHealth(dynamics, EXPECTED)
    empty = copy.deepcopy(health.to_dict('A'))
    try:
        used = health.restore(content, 'file', 'A')
    except rd.RobodynError as error:
        assert str(error) and health.to_dict('A') == empty
        return
    q, qd, moving = motion
    health.add(Window(q[0], qd[0], q[0], moving[0], False))
    health.judge(NOW)
    assert used is not None and np.isfinite(health.memories['days'].estimate().values).all()
    json.dumps(health.to_dict('A'), allow_nan=False)
    health.values(NOW)


def test_the_fingerprint_is_that_of_the_model_without_its_payload(dynamics):
    model = dynamics.model
    loaded = model.with_payload('tip', 1.0, (0, 0, 0), np.zeros((3, 3)))
    assert fingerprint(model, TEXT) == fingerprint(loaded, TEXT)
    assert fingerprint(model, TEXT) != fingerprint(model.without_friction(), TEXT)
    assert fingerprint(model, TEXT) != fingerprint(model, TEXT + ' ')
