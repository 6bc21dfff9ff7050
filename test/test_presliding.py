"""Presliding friction: it builds up over a distance after a reversal (Dahl's model)."""

import numpy as np
import pytest
from controller_bench import Bench, Q, law
from robots import planar_2r
from synthetic import coloured_noise, fourier_motion

import robodyn_ros as rd
from robodyn_ros.control import Reference
from robodyn_ros.dynamics.presliding import Presliding, bristles
from robodyn_ros.identification.writing import motors_of, parameters_of
from robodyn_ros.report.tables import friction_table

DISTANCE, SIZE = 0.03, 2.0
SHORT = 0.005  # rad, in the logs


def arm(presliding=SIZE, distance=DISTANCE):
    """A planar arm; the friction of its first joint builds up over a distance."""
    return rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors={'joints': {
        'j1': {'armature': 0.3, 'friction_curve': {
            'viscous': 0.5, 'coulomb': 3.0, 'presliding': presliding,
            'presliding_distance': distance}},
        'j2': {'armature': 0.1, 'link_friction': {'viscous': 0.2, 'coulomb': 1.0}}}})


def step_by_step(q, distance):
    """The state of Dahl's model with the derivative itself, in small steps between samples."""
    z, found = np.sign(np.diff(q)[np.diff(q) != 0][0]), []
    for move in np.diff(q, prepend=q[0]):
        for _ in range(20):
            z += (1 - z * np.sign(move)) * move / 20 / distance
        found.append(z)
    return np.array(found)


def test_the_state_is_exact_for_steps_of_any_size(rng):
    q = np.cumsum(rng.normal(size=400)) * 0.004
    q[100:150] = q[100]  # it rests
    for distance in (0.01, 0.1):
        found = bristles(np.diff(q, prepend=q[0]), distance)
        np.testing.assert_allclose(found, step_by_step(q, distance), atol=0.02)
        assert np.ptp(found[101:150]) == 0 and np.abs(found).max() <= 1
    slow, fast = np.linspace(0, 1, 101), np.linspace(0, 1, 11)
    path = [np.concatenate([x, 1 - x[1:] / 2]) for x in (slow, fast)]
    ends = [bristles(np.diff(x, prepend=0.0), 0.2)[-1] for x in path]
    assert ends[0] == pytest.approx(ends[1], abs=1e-12)
    np.testing.assert_array_equal(bristles(np.zeros(5), 0.1), 0.0)
    presliding, state, states = Presliding(rd.Dynamics(arm())), None, []
    for move in np.diff(q, prepend=q[0]):
        state = presliding.moved(state, np.array([move, 0.0]), np.array([q[1] - q[0], 0.0]))
        states.append(state[0])
    np.testing.assert_allclose(states, bristles(np.diff(q, prepend=q[0]), DISTANCE), atol=1e-12)


def log_with(presliding, seed):
    """A noisy log of the arm, with its torques."""
    true = arm(presliding)
    t, q, qd, qdd = fourier_motion(true, np.random.default_rng(seed), 30, 200)
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    tau[:, 0] += presliding * (step_by_step(q[:, 0], SHORT) - np.sign(qd[:, 0]))
    noise = coloured_noise(np.random.default_rng(seed + 1), len(t), 0.01 * np.ptp(tau, axis=0),
                           0.9)
    return rd.Log(t, q, tau + noise, joint_names=true.joint_names)


def test_presliding_joins_only_the_joint_that_has_it():
    first, last = log_with(SIZE, 3).split(0.6)
    result = rd.identify(arm(0.0), first)
    found = result.linear.friction.presliding
    assert list(found) == [(0, 'l')]
    assert SHORT / 2 < found[0, 'l'] < SHORT * 2
    assert result.theta_[result.linear.names.index('Fzl:j1')] == pytest.approx(SIZE, rel=0.25)
    plain = rd.identify(arm(0.0), first, friction='coulomb')
    assert rd.validate(result, last).total < 0.8 * rd.validate(plain, last).total
    # it goes into the files, and comes back from them
    entry = parameters_of(result)['friction']['terms']['j1']['l']['Fz']
    assert entry['distance'] == found[0, 'l']
    again = rd.load_model(planar_2r(), gravity=(0, -9.81, 0), motors=motors_of(result.model))
    np.testing.assert_array_equal(again.friction_curve, result.model.friction_curve)
    row = friction_table(result).rows[0]
    assert row[:3] == ['j1', 'link', 'presliding friction'] and row[4] == 'N m'
    assert float(row[3]) == pytest.approx(entry['value'], rel=1e-3)
    assert row[5] == f'{entry["distance"]:.4g} rad'
    # along a motion, the prediction and what the nodes use are the same
    sharp = rd.identify(arm(0.0), first, friction_width=0.0)
    for fit in (result, sharp):
        segment = fit.observations.segments[0]
        q, qd, qdd = (x[:1500] for x in (segment.q, segment.qd, segment.qdd))
        dynamics = rd.Dynamics(fit.model)
        plain, added = dynamics.inverse_dynamics(q, qd, qdd), Presliding(dynamics).along(q, qd)
        want = fit.predict(q, qd, qdd, consistent=True, rate=segment.rate)
        without = fit.predict(q, qd, qdd, consistent=True)
        size = np.linalg.norm(want)
        assert np.linalg.norm(plain + added - want) < 0.001 * size
        assert np.linalg.norm(without - want) > 0.02 * size
        # without a past, sliding is steady, with the torque of the equations of motion
        assert np.linalg.norm(plain - without) < 0.001 * size
    np.testing.assert_allclose(added, want - without, atol=1e-9)


@pytest.mark.parametrize('seed', [11, 21, 31])
def test_plain_friction_gets_no_presliding(seed):
    result = rd.identify(arm(0.0), log_with(0.0, seed))
    assert not result.linear.friction.presliding


def test_wrong_presliding_is_refused_and_exported_c_says_that_it_lacks_it(tmp_path):
    for size, said in ((0.0, False), (SIZE, True)):
        files = rd.export_c(arm(size), tmp_path, terms=['friction'], prefix='arm')
        header = next(path for path in files if path.name == 'arm.h').read_text('utf-8')
        assert ('presliding friction is not contained' in ' '.join(header.split())) == said
    for key in ('presliding', 'presliding_distance'):
        with pytest.raises(rd.DescriptionError, match=key):
            rd.load_model(planar_2r(), motors={'joints': {'j1': {'friction_curve': {key: -1}}}})


@pytest.mark.parametrize('mode', ['feedforward', 'feedforward_pd'])
def test_feed_forward_follows_the_state_after_a_reversal(mode):
    dynamics = rd.Dynamics(arm())
    bench = Bench(mode=mode)
    bench.controller.use(law(dynamics, mode=mode), 0.0)
    times = np.array([0.0, 0.5, 1.0, 1.5])
    q, qd = np.tile(Q, (4, 1)), np.zeros((4, 2))
    q[:, 0] += [0.0, 0.1, 0.05, 0.05]  # up, back, and rest
    reference = Reference(times, q, qd, np.zeros((4, 2)))
    step = (lambda: bench.state(reference.sample(bench.now - start)[0])) \
        if mode != 'feedforward' else bench.tick
    start = bench.now
    step()
    start = bench.now
    bench.play(reference, int(start * 1e9))
    torques = [step().torque for _ in range(150)]
    path = np.array([reference.sample(0.01 * k)[0] for k in range(151)])
    z = step_by_step(path[:, 0], DISTANCE)
    still = rd.Dynamics(dynamics.model.without_friction()).gravity(path[-1])[0]
    assert -1 < z[-1] < -0.5  # the way back was too short for the whole friction
    # at rest, after the way back: Coulomb friction in the last direction, less what is missing
    assert torques[-1][0] == pytest.approx(still - 3.0 + SIZE * (z[-1] + 1), abs=0.05)
