"""Parameters of which a log tells nothing: joints at rest, torques that are not used."""

import numpy as np
import pytest
from robots import joint, link, robot
from synthetic import own_robot

import robodyn_ros as rd

GUESS = (0.3, 0.4)  # viscous and Coulomb friction of the description
TRUE = (0.5, 0.8)


def with_drives(model, friction, armature):
    chi = model.standard_parameters.reshape(-1, 17).copy()
    chi[:, 10:12], chi[:, 13] = friction, armature
    return model.with_standard_parameters(chi.ravel())


def arm(name='articulated_3r'):
    model = rd.load_model(own_robot(name))
    return with_drives(model, TRUE, 0.05), with_drives(model, GUESS, 0.02)


def log_of(true, seed, rest=None, noise=0.0, source='log'):
    """A log of 20 s in which a joint may rest, with noise of the positions."""
    rng, t = np.random.default_rng(seed), np.arange(4000) / 200
    w = 2 * np.pi * 0.1 * np.arange(1, 6)[:, None, None]
    size, phase = rng.normal(size=(5, true.n, 1)), rng.uniform(0, 6, (5, true.n, 1))
    size *= 0.4 / np.abs(size).sum(axis=0)
    middle = np.where(np.isfinite(true.lower + true.upper), (true.lower + true.upper) / 2, 0.3)
    q, qd, qdd = ((size * part).sum(axis=0).T for part in (
        np.sin(w * t + phase), w * np.cos(w * t + phase), -w**2 * np.sin(w * t + phase)))
    q = q + middle
    if rest is not None:
        q[:, rest], qd[:, rest], qdd[:, rest] = 0.3, 0.0, 0.0
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    tau += 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return rd.Log(t, q + noise * rng.normal(size=q.shape), tau, joint_names=true.joint_names,
                  source=source)


@pytest.mark.parametrize('rest', [1, 2])
@pytest.mark.parametrize('noise', [0.0, 1e-5])
def test_drives_of_a_joint_at_rest_keep_their_nominal_values(rest, noise):
    """The noise of a resting joint's positions is no motion either."""
    true, guess = arm()
    result = rd.identify(guess, log_of(true, 1, rest, noise))
    moving = [k for k in range(3) if k != rest]
    np.testing.assert_allclose(result.model.link_friction[rest, :2], GUESS)
    np.testing.assert_allclose(result.model.armature[rest], 0.02)
    np.testing.assert_allclose(result.model.link_friction[moving, :2], [TRUE] * 2, rtol=0.1)
    name = true.joint_names[rest]
    assert any(f'Fvl:{name}, Fcl:{name}' in note for note in result.notes if
               note.startswith('not excited at all by this motion'))
    validation = rd.validate(result, log_of(true, 2, rest, noise), consistent=True)
    # the friction of a joint that has not moved yet has an unknown direction
    assert validation.total < 0.05 and not validation.implausible


def test_what_a_resting_joint_leaves_undetermined_has_wide_intervals():
    """Offset and gravity of a joint at rest; the noise of its positions does not tell them."""
    true, guess = arm()
    result = rd.identify(guess, log_of(true, 1, 1, 1e-4))
    for name in ('mx:shoulder', 'mz:shoulder', 'offl:shoulder'):
        value = result.estimate_.values[result.base_.names.index(name)]
        assert abs(value) < 3 * result.standard_deviation(name), name


@pytest.mark.parametrize('name, used', [('scara', 'shoulder'), ('scara', 'turn'),
                                        ('articulated_3r', 'shoulder')])
def test_torques_that_are_not_used_leave_drives_as_they_are(name, used):
    """Base parameters are those of the torques that are used."""
    true, guess = arm(name)
    result = rd.identify(guess, log_of(true, 1), torques_of=[used])
    k = true.joint_names.index(used)
    others = [j for j in range(true.n) if j != k]
    np.testing.assert_allclose(result.model.link_friction[k, :2], TRUE, rtol=0.1)
    np.testing.assert_allclose(result.model.link_friction[others, :2], [GUESS] * len(others))
    assert result.uncertainty_.condition < 5000
    assert any(f'Fvl:{true.joint_names[others[0]]}' in note for note in result.notes
               if note.startswith('not excited at all, since'))
    validation = rd.validate(result, log_of(true, 2))
    assert validation.verdict != 'bad' and not validation.implausible


def test_base_parameters_of_some_torques():
    model = rd.load_model(own_robot('scara'))
    every = rd.base_parameters(model)
    first = rd.base_parameters(model, torques_of=['shoulder'])
    assert first.count < every.count
    assert {'Fvl:elbow', 'Fcl:turn'} <= set(first.without_effect)
    with pytest.raises(rd.UnknownNameError, match="'waist'"):
        rd.base_parameters(model, torques_of=['waist'])


def test_a_joint_without_end_that_turns_one_way():
    """Its Coulomb friction and offset are one number, which is divided between the two."""
    text = robot(link('base'), link('table', 3.0, (0.1, 0, 0), (0.1, 0, 0, 0.1, 0, 0.2)),
                 link('arm', 1.0, (0.2, 0, 0), (0.01, 0, 0, 0.02, 0, 0.02)),
                 joint('turn', 'continuous', 'base', 'table'),
                 joint('tilt', 'revolute', 'table', 'arm', (0.3, 0, 0.2), axis=(0, 1, 0)))
    model = rd.load_model(text)
    true, guess = with_drives(model, TRUE, 0.05), with_drives(model, GUESS, 0.02)
    t = np.arange(4000) / 200
    q, qd, qdd = (np.column_stack([one, other]) for one, other in zip(
        (1.5 * t + 0.3 * np.sin(2 * t), 1.5 + 0.6 * np.cos(2 * t), -1.2 * np.sin(2 * t)),
        (0.5 * np.sin(1.3 * t), 0.65 * np.cos(1.3 * t), -0.845 * np.sin(1.3 * t)), strict=True))
    assert q[:, 0].max() > 25  # several turns are no degrees
    tau = rd.Dynamics(true).inverse_dynamics(q, qd, qdd)
    tau += 0.01 * tau.std(axis=0) * np.random.default_rng(1).normal(size=tau.shape)
    result = rd.identify(guess, rd.Log(t, q, tau, joint_names=model.joint_names))
    _, coulomb, offset = result.model.link_friction[0]
    assert abs(coulomb + offset - 0.8) < 0.1 and 0 <= coulomb < 1.5
    with pytest.raises(rd.LogError, match='are they in degrees'):
        rd.Log(t, np.rad2deg(q), tau, joint_names=model.joint_names).for_model(model)


def test_a_short_fragment_of_a_log_does_not_set_the_filters():
    """For example after a clock jump, when the recording began anew."""
    true, guess = arm()
    log = log_of(true, 1)
    t, q, tau = map(np.asarray, (log.t, log.q, log.tau))
    longer = rd.Log(np.append(t, t[:60] + 100), np.vstack([q, q[500:560]]),
                    np.vstack([tau, tau[500:560]]), joint_names=true.joint_names)
    alone, both = (rd.identify(guess, one) for one in (log, longer))
    assert both.filtering.band == alone.filtering.band < 1
    np.testing.assert_allclose(both.filtering.cutoff, alone.filtering.cutoff, rtol=0.1)
