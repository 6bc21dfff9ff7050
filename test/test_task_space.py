"""The analytic Jacobian and its operational space, for wrists whose angles are joint positions."""

import numpy as np
import pytest
from robots import joint, link, robot

import robodyn_ros as rd

INERTIA = (0.02, 0.003, -0.002, 0.03, 0.004, 0.05)
AXES = {'rpy': ((0, 0, 1), (0, 1, 0), (1, 0, 0)), 'zyz': ((0, 0, 1), (0, 1, 0), (0, 0, 1))}


def wrist(kind):
    """A wrist of three joints; its angles are the joints' positions, for rpy in reverse order."""
    return rd.Dynamics(rd.load_model(robot(
        link('base'), *(link(f'l{k}', 1.0 + k, (0.1, 0.05 * k, -0.08), INERTIA) for k in range(3)),
        *(joint(f'j{k}', 'revolute', f'l{k - 1}' if k else 'base', f'l{k}', axis=axis)
          for k, axis in enumerate(AXES[kind])))))


@pytest.fixture(scope='module', params=['rpy', 'zyz'])
def case(request):
    """(kind, robot, the joints in the order of the angles)."""
    return request.param, wrist(request.param), [2, 1, 0] if request.param == 'rpy' else [0, 1, 2]


Q, QD = np.array([0.4, 0.7, -0.9]), np.array([0.8, -1.1, 0.6])


def test_angles_and_rates_of_a_wrist_are_those_of_its_joints(case):
    kind, wrist_, order = case
    np.testing.assert_allclose(wrist_.angles(Q, 'l2', kind), Q[order], atol=1e-12)
    jacobian = wrist_.analytic_jacobian(Q, 'l2', kind)
    np.testing.assert_allclose(jacobian[3:], np.eye(3)[order], atol=1e-12)
    np.testing.assert_allclose(wrist_.analytic_jacobian_dot_qd(Q, QD, 'l2', kind), 0, atol=1e-12)


def test_the_operational_space_of_these_angles_is_the_joint_space(case):
    """Lambda = M, mu = c, rho = g; with the geometric Jacobian, T' Lambda T is the same."""
    kind, wrist_, order = case
    space = wrist_.operational_space(Q, QD, 'l2', (3, 4, 5), angles=kind)
    terms = wrist_.terms(Q, QD)
    np.testing.assert_allclose(space.Lambda, terms.mass_matrix[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_allclose(space.mu, terms.coriolis[order], atol=1e-12)
    np.testing.assert_allclose(space.rho, terms.gravity[order], atol=1e-12)
    assert not space.singular
    geometric = wrist_.operational_space(Q, QD, 'l2', (3, 4, 5))
    turn = wrist_.jacobian(Q, 'l2')[3:][:, order]  # T, as the angles are the joints
    np.testing.assert_allclose(turn.T @ geometric.Lambda @ turn, space.Lambda, atol=1e-12)
    assert np.abs(geometric.Lambda - space.Lambda).max() > 1e-3
    batch = wrist_.operational_space(np.array([Q, 0.5 * Q]), QD, 'l2', (3, 4, 5), angles=kind)
    np.testing.assert_allclose(batch.mu[0], space.mu, atol=1e-12)


def test_the_analytic_jacobian_is_the_derivative_of_the_angles(case, rng):
    """On the other wrist, whose joints are not these angles; also its time derivative."""
    kind, *_ = case
    other = wrist('zyz' if kind == 'rpy' else 'rpy')
    h = 1e-5

    def task(q):
        return np.concatenate([other.pose(q, 'l2')[:3, 3], other.angles(q, 'l2', kind)])

    qdd = rng.normal(size=3)
    path = [task(Q + t * QD + t * t / 2 * qdd) for t in (-h, 0, h)]
    np.testing.assert_allclose((path[2] - path[0]) / (2 * h),
                               other.analytic_jacobian(Q, 'l2', kind) @ QD, atol=1e-8)
    np.testing.assert_allclose(
        (path[2] - 2 * path[1] + path[0]) / h**2, other.analytic_jacobian(Q, 'l2', kind) @ qdd
        + other.analytic_jacobian_dot_qd(Q, QD, 'l2', kind), atol=1e-4)


def test_singular_angles_are_reported(case):
    kind, wrist_, _ = case
    q = np.array([0.3, np.pi / 2 if kind == 'rpy' else 0.0, 0.2])
    space = wrist_.operational_space(q, QD, 'l2', (3, 4, 5), angles=kind)
    assert space.singular and space.rank == 2 and np.abs(space.Lambda).max() < 10
    assert np.isfinite(space.mu).all()
    with pytest.raises(rd.UnknownNameError, match="unknown angles 'xyz'; valid: rpy, zyz"):
        wrist_.operational_space(q, QD, 'l2', angles='xyz')


@pytest.mark.parametrize(('base', 'first'), [('floating', ()), ('fixed', (
    link('v'), joint('k', 'revolute', 'v', 'base')))])
def test_a_mass_matrix_that_is_singular_in_every_pose_is_refused(base, first, rng):
    """Rounding made it seem regular in some poses, with an inertia of 1e16 or a LinAlgError."""
    model = rd.load_model(robot(*first, link('base'), link('a', 1.0, (0.1, 0.2, 0.3), INERTIA),
                                joint('j', 'revolute', 'base', 'a')), base=base)
    dynamics = rd.Dynamics(model)
    for joints in rng.uniform(-3, 3, (30, len(model.joint_names))):
        q = np.append(dynamics.home[:-len(joints)], joints)
        with pytest.raises(rd.ValueRangeError, match='mass matrix is singular'):
            dynamics.operational_space(q, np.zeros(model.n), 'a')
