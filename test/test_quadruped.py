"""A payload on the trunk of a Solo 12 that trots in MuJoCo is found from its log."""

import numpy as np
import pytest

pytest.importorskip('mujoco')
from quadruped import (  # noqa: E402
    FEET,
    MOTORS,
    PAYLOAD,
    described,
    mass,
    simulated,
    true_robot,
    walk,
)

import robodyn_ros as rd  # noqa: E402

TROT = {'rate': 2.0, 'stride': 0.02, 'lift': 0.05, 'sway': 0.08, 'bob': 0.015}
OTHER_TROT = {'rate': 1.6, 'stride': -0.03, 'lift': 0.04, 'sway': 0.12, 'bob': 0.02}


@pytest.fixture(scope='module')
def motions(tmp_path_factory):
    """The motion of the fit, and another one for the validation."""
    engine = simulated(tmp_path_factory.mktemp('solo'))
    return walk(engine, 8.0, **TROT), walk(engine, 5.0, **OTHER_TROT)


def wrenches(motion):
    return {foot: motion[foot] for foot in FEET}


def arrays(motion):
    return motion['q'], motion['qd'], motion['qdd']


def unexplained(robot, motion):
    """Part of the forces, without those at the feet, that a robot does not explain."""
    dynamics = rd.Dynamics(robot)
    measured = np.pad(motion['torques'], ((0, 0), (6, 0)))
    wrong = dynamics.inverse_dynamics(*arrays(motion), wrenches(motion)) - measured
    return np.linalg.norm(wrong) / np.linalg.norm(dynamics.inverse_dynamics(*arrays(motion)))


def center_of_mass(robot):
    pose = rd.Dynamics(robot).home
    pose[7:] = 4 * [0.0, 0.8, -1.6]
    return rd.Dynamics(robot).center_of_mass(pose)


def test_it_trots_and_the_forces_at_its_feet_carry_it(motions):
    """In the engine, the true robot's equations hold; those of the description do not."""
    weight = 9.80665 * mass(true_robot())
    for motion in motions:
        carried = sum(motion[foot][:, 2] for foot in FEET)
        assert carried.mean() == pytest.approx(weight, rel=0.01)
        for foot in FEET:
            assert 0.5 < (motion[foot][:, 2] > 0).mean() < 0.85  # it steps
        assert (motion['q'][:, 2] > 0.18).all()  # and does not fall
        assert unexplained(true_robot(), motion) < 1e-8
        assert unexplained(described(), motion) > 0.2


@pytest.mark.parametrize('with_torques', [True, False])
def test_the_payload_on_its_trunk_is_found(motions, with_torques):
    """Also from the six equations of the base alone, without torques of the joints."""
    motion, other = motions
    found = rd.identify_floating_base(
        described(), *arrays(motion), wrenches=wrenches(motion),
        torques=motion['torques'] if with_torques else None)
    assert mass(described()) == pytest.approx(2.5, abs=1e-4)
    assert mass(found.model) == pytest.approx(2.5 + PAYLOAD['mass'], abs=2e-4)
    assert found.error < 5e-4 < 0.2 < found.nominal_error
    np.testing.assert_allclose(center_of_mass(found.model), center_of_mass(true_robot()),
                               atol=1e-4)
    if with_torques:  # friction and rotors of the joints as well
        chi = dict(zip(found.model.parameter_names, found.model.standard_parameters, strict=True))
        for joint in found.model.joint_names:
            assert chi[f'Fvl:{joint}'] == pytest.approx(MOTORS['damping'], rel=0.06)
            assert chi[f'Ia:{joint}'] == pytest.approx(MOTORS['armature'], rel=0.05)
        assert unexplained(found.model, other) < 5e-4
    else:
        still = found.model.with_standard_parameters(np.where(
            [name[:2] in ('Fv', 'Ia') for name in true_robot().parameter_names],
            true_robot().standard_parameters, found.model.standard_parameters))
        assert unexplained(still, other) < 5e-3


@pytest.mark.parametrize(('measured', 'accuracy'), [
    ('wrenches', 0.005), ('wrenches alone', 0.005), ('torques and contacts', 0.03)])
def test_the_payload_is_found_from_a_log(motions, measured, accuracy):
    """Velocities, accelerations and forces of the fit come from the filter.

    The unknown forces act at the origins of the feet in the equations, and at the surface of
    spheres in the engine.
    """
    motion, other = motions
    robot, touches = described(), measured == 'torques and contacts'
    log = rd.FloatingBaseLog(
        motion['t'], motion['q'][:, :7], motion['q'][:, 7:], robot.joint_names,
        twist=motion['qd'][:, :6],
        tau=None if measured == 'wrenches alone' else motion['torques'],
        wrenches={} if touches else wrenches(motion),
        contacts={foot: motion[foot][:, 2] > 0 for foot in FEET} if touches else {})
    filtered = rd.floating_base_motion(robot, log, cutoff=40.0)
    found = rd.identify_floating_base(
        robot, filtered.q, filtered.qd, filtered.qdd, torques=filtered.torques,
        wrenches=filtered.wrenches, contacts=filtered.contacts)
    assert mass(found.model) == pytest.approx(mass(true_robot()), rel=accuracy)
    assert found.error < 0.02 < 0.2 < found.nominal_error
    assert unexplained(found.model, other) < 0.04 < 0.2 < unexplained(robot, other)
