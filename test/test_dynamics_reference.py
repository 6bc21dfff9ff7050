"""The recursions against Lagrange's closed form on random robots; guarantees of the API."""

import numpy as np
import pytest
from reference import Lagrange
from robots import PANDA_URDF, joint, link, planar_2r, random_robot, robot

import robodyn_ros as rd


@pytest.mark.parametrize('seed', range(12))
def test_random_robots_agree_with_lagrange(seed, rng):
    model = rd.load_model(random_robot(seed), gravity=(1.0, -2.0, -9.0)).without_friction()
    reference, dynamics = Lagrange(model), rd.Dynamics(model)
    q, qd, qdd = rng.uniform(-1.5, 1.5, (3, model.n))
    mass, gravity = reference.mass_matrix(q), reference.gravity(q)
    c = reference.coriolis_matrix(q, qd)
    np.testing.assert_allclose(dynamics.mass_matrix(q), mass, atol=1e-11 * np.abs(mass).max())
    np.testing.assert_allclose(dynamics.gravity(q), gravity, atol=1e-6)
    np.testing.assert_allclose(dynamics.coriolis_matrix(q, qd), c, atol=1e-6)
    np.testing.assert_allclose(dynamics.coriolis(q, qd), c @ qd, atol=1e-6)
    np.testing.assert_allclose(dynamics.inverse_dynamics(q, qd, qdd),
                               mass @ qdd + c @ qd + gravity, atol=1e-6)
    energy = dynamics.energy(q, qd)
    assert energy.kinetic == pytest.approx(qd @ mass @ qd / 2)
    base = reference.potential(0 * q) - dynamics.energy(0 * q, qd).potential
    assert energy.potential + base == pytest.approx(reference.potential(q))
    for name, (rotation, origin, linear, angular) in reference.links(q).items():
        np.testing.assert_allclose(dynamics.jacobian(q, name), np.vstack([linear, angular]),
                                   atol=1e-12)
        np.testing.assert_allclose(dynamics.pose(q, name)[:3, 3], origin, atol=1e-12)
        np.testing.assert_allclose(dynamics.pose(q, name)[:3, :3], rotation, atol=1e-12)
        step = 1e-6
        drift = (dynamics.jacobian(q + step * qd, name) - dynamics.jacobian(q - step * qd, name)
                 ) / (2 * step) @ qd
        np.testing.assert_allclose(dynamics.jacobian_dot_qd(q, qd, name), drift, atol=1e-6)


@pytest.mark.parametrize('seed', [1, 5])
def test_the_recursions_on_floats_equal_the_kernels(seed, rng):
    """The code that is compiled gives the same results when it is run on floats."""
    model = rd.load_model(random_robot(seed))
    dynamics = rd.Dynamics(model)
    plain = dynamics.catalogue
    q, qd, qdd = rng.uniform(-1.5, 1.5, (3, model.n))
    for name, arguments in (('inverse_dynamics', (q, qd, qdd)), ('gravity', (q,)),
                            ('coriolis', (q, qd)), ('coriolis_matrix', (q, qd)),
                            ('mass_matrix', (q,)), ('momentum', (q, qd)), ('friction', (qd,)),
                            ('wrenches', (q, qd, qdd)), ('energy', (q, qd))):
        expected = np.asarray(getattr(plain, name)(*arguments), float)
        np.testing.assert_allclose(dynamics.kernel(name).single(*arguments), expected,
                                   rtol=1e-11, atol=1e-12)


def test_batches_equal_single_states(rng):
    model = rd.load_model(PANDA_URDF)
    dynamics, threaded = rd.Dynamics(model), rd.Dynamics(model, threads=2)
    for count in (1, 3, 4, 103):
        q, qd, qdd = rng.uniform(-2, 2, (3, count, model.n))
        tau = dynamics.inverse_dynamics(q, qd, qdd)
        assert tau.shape == (count, model.n) and tau.dtype == np.float64
        each = [dynamics.inverse_dynamics(*one) for one in zip(q, qd, qdd, strict=True)]
        np.testing.assert_allclose(tau, each, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(threaded.inverse_dynamics(q, qd, qdd), tau)
        terms = dynamics.terms(q, qd)
        assert terms.mass_matrix.shape == (count, model.n, model.n)
        np.testing.assert_allclose(terms.gravity, dynamics.gravity(q), atol=1e-12)
        assert dynamics.regressor(q, qd, qdd).shape == (count, model.n, 17 * 9)
    large = np.tile(q, (160, 1)), np.tile(qd, (160, 1)), np.tile(qdd, (160, 1))
    np.testing.assert_array_equal(threaded.inverse_dynamics(*large),
                                  dynamics.inverse_dynamics(*large))
    # a single state is repeated for the batch
    np.testing.assert_allclose(dynamics.inverse_dynamics(q[0], qd, qdd)[5],
                               dynamics.inverse_dynamics(q[0], qd[5], qdd[5]), rtol=1e-13)
    assert dynamics.inverse_dynamics(np.zeros((0, model.n)), *np.zeros((2, 0, model.n))).shape == (
        0, model.n)


def test_array_likes_are_accepted(rng):
    model = rd.load_model(planar_2r())
    dynamics = rd.Dynamics(model)
    q = rng.normal(size=2)
    expected = dynamics.mass_matrix(q)
    for other in (q.tolist(), tuple(q), q.astype(np.float64)[::-1][::-1], np.repeat(q, 2)[::2]):
        np.testing.assert_array_equal(dynamics.mass_matrix(other), expected)
    np.testing.assert_allclose(dynamics.mass_matrix([0, 1]), dynamics.mass_matrix([0.0, 1.0]))
    many = rng.normal(size=(2, 7))
    np.testing.assert_array_equal(dynamics.gravity(many.T), dynamics.gravity(many.T.copy()))


@pytest.mark.parametrize('bad', [
    np.zeros(3), np.zeros((4, 3)), np.zeros((2, 2, 2)), 1.0, 'ab', None, [[0, 1], [2]], [1j, 0]])
def test_wrong_arrays_are_refused(bad):
    dynamics = rd.Dynamics(rd.load_model(planar_2r()))
    with pytest.raises(rd.ShapeError, match=r'valid: .*\(2,\) or \(N, 2\)'):
        dynamics.gravity(bad)


def test_wrong_batches_and_names_are_refused():
    dynamics = rd.Dynamics(rd.load_model(planar_2r()))
    with pytest.raises(rd.ShapeError, match='different length'):
        dynamics.coriolis(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(rd.UnknownNameError, match="'loewr'.*did you mean 'lower'"):
        dynamics.jacobian(np.zeros(2), 'loewr')
    with pytest.raises(rd.UnknownNameError, match='joint, root'):
        dynamics.joint_wrenches(np.zeros(2), np.zeros(2), np.zeros(2), frame='world')
    with pytest.raises(rd.ShapeError, match='f_ext'):
        dynamics.inverse_dynamics(*np.zeros((3, 2)), f_ext={'lower': [1, 2, 3]})
    with pytest.raises(rd.ShapeError, match='0 to 33'):
        dynamics.regressor(*np.zeros((3, 2)), columns=[34])
    with pytest.raises(rd.ValueRangeError):
        rd.Dynamics(dynamics.model, friction_width=-1.0)


def test_model_is_frozen():
    model = rd.load_model(planar_2r())
    with pytest.raises(AttributeError):
        model.name = 'other'
    with pytest.raises(ValueError, match='read-only'):
        model.inertial_parameters[0, 0] = 1.0


def test_joint_order_is_that_of_the_urdf():
    text = robot(link('c', 1.0), joint('zeta', 'revolute', 'b', 'c'), link('b', 1.0),
                 link('a', 1.0), joint('alpha', 'revolute', 'a', 'b'))
    model = rd.load_model(text)
    assert model.joint_names == ('zeta', 'alpha') and model.body_joints == ('alpha', 'zeta')


def test_locked_joints(rng):
    full = rd.load_model(PANDA_URDF)
    locked = {'panda_joint3': 0.4, 'panda_finger_joint1': 0.02}
    model = rd.load_model(PANDA_URDF, locked_joints=locked)
    assert model.n == 6 and 'panda_joint3' not in model.joint_names
    q, qd, qdd = rng.uniform(-1, 1, (3, 6))
    keep = [full.joint_names.index(name) for name in model.joint_names]
    big = np.zeros((3, full.n))
    big[:, keep] = q, qd, qdd
    for name, value in locked.items():
        big[0, full.joint_names.index(name)] = value
    np.testing.assert_allclose(rd.Dynamics(model).inverse_dynamics(q, qd, qdd),
                               rd.Dynamics(full.without_friction()).inverse_dynamics(*big)[keep]
                               + rd.Dynamics(model).friction(qd), atol=1e-11)
    with pytest.raises(rd.UnknownNameError, match='panda_joint3'):
        rd.load_model(PANDA_URDF, locked_joints={'panda_joint33': 0.0})
    with pytest.raises(rd.DescriptionError, match='mimics'):
        rd.load_model(PANDA_URDF, locked_joints={'panda_finger_joint2': 0.0})


def test_payload(rng):
    model = rd.load_model(PANDA_URDF)
    q, qd, qdd = rng.uniform(-1, 1, (3, model.n))
    com, tensor = np.array([0.02, 0.01, 0.1]), np.diag([0.02, 0.03, 0.04])
    before = model.inertial_parameters.copy()
    loaded = model.with_payload('panda_hand', 3.0, com, tensor)
    # the payload as a separate link
    text = PANDA_URDF.read_text().replace('</robot>', link(
        'load', 3.0, com, tensor[np.triu_indices(3)]) + joint(
        'hold', 'fixed', 'panda_hand', 'load') + '</robot>')
    expected = rd.Dynamics(rd.load_model(text)).inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(rd.Dynamics(loaded).inverse_dynamics(q, qd, qdd), expected,
                               atol=1e-11)
    np.testing.assert_array_equal(model.inertial_parameters, before)
    for bad in ({'mass': -1.0}, {'mass': np.nan}, {'mass': 1.0, 'com': [1, 2]},
                {'mass': 1.0, 'inertia': np.diag([1.0, 0.1, 0.1])},
                {'mass': 1.0, 'inertia': np.full((3, 3), np.inf)}):
        with pytest.raises(rd.RobodynError, match='valid'):
            model.with_payload('panda_hand', **bad)


def test_operational_space_at_singular_and_redundant_poses(rng):
    planar = rd.Dynamics(rd.load_model(planar_2r()))
    text = planar_2r().replace('</robot>', link('tip') + joint(
        'end', 'fixed', 'lower', 'tip', (0.5, 0, 0)) + '</robot>')
    planar = rd.Dynamics(rd.load_model(text))
    bent = planar.operational_space([0.1, 0.8], [0.2, 0.3], 'tip', axes=(0, 1))
    assert bent.rank == 2 and not bent.singular and bent.redundancy == 0
    jacobian = planar.jacobian([0.1, 0.8], 'tip')[:2]
    expected = np.linalg.inv(jacobian @ np.linalg.inv(planar.mass_matrix([0.1, 0.8])) @ jacobian.T)
    np.testing.assert_allclose(bent.Lambda, expected, rtol=1e-9)
    straight = planar.operational_space([0.1, 0.0], [0.2, 0.3], 'tip', axes=(0, 1))
    assert straight.rank == 1 and straight.singular and straight.condition > 1e12
    assert np.isfinite(straight.Lambda).all() and np.abs(straight.Lambda).max() < 100
    full = planar.operational_space(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), 'tip')
    assert full.singular.all() and (full.rank == 2).all() and full.Lambda.shape == (5, 6, 6)


def test_state_space(rng):
    dynamics = rd.Dynamics(rd.load_model(PANDA_URDF))
    for shape in ((8,), (5, 8)):
        q, qd, tau = rng.uniform(-1, 1, (3, *shape))
        f, g = dynamics.state_space(q, qd)
        rate = f + np.einsum('...ij,...j->...i', g, tau)
        np.testing.assert_allclose(rate[..., :8], qd)
        np.testing.assert_allclose(rate[..., 8:], dynamics.forward_dynamics(q, qd, tau),
                                   rtol=1e-8, atol=1e-7)


def test_inertia_bounds():
    model = rd.load_model(planar_2r())
    bounds, dynamics = rd.inertia_bounds(model), rd.Dynamics(model)
    angles = np.column_stack([np.zeros(2001), np.linspace(-3, 3, 2001)])
    values = np.linalg.eigvalsh(dynamics.mass_matrix(angles))
    assert bounds.lambda_min == pytest.approx(values.min(), rel=1e-3)
    assert bounds.lambda_max == pytest.approx(values.max(), rel=1e-3)
    np.testing.assert_allclose(np.linalg.eigvalsh(dynamics.mass_matrix(bounds.q_max))[-1],
                               bounds.lambda_max)


def test_smooth_friction():
    text = planar_2r().replace('<axis', '<dynamics damping="0.5" friction="2"/><axis')
    model = rd.load_model(text)
    sharp, smooth = rd.Dynamics(model), rd.Dynamics(model, friction_width=0.01)
    np.testing.assert_allclose(sharp.friction([0.0, -1e-6]), [0, -2 - 5e-7])
    np.testing.assert_allclose(smooth.friction([0.0, 0.01]), [0, 0.005 + 2 * np.sqrt(5) / 3])
    np.testing.assert_allclose(smooth.friction([5.0, -5.0]), sharp.friction([5.0, -5.0]),
                               rtol=1e-5)


def test_normal_equations(rng):
    model = rd.load_model(PANDA_URDF)
    dynamics = rd.Dynamics(model)
    q, qd, qdd, tau = rng.uniform(-1, 1, (4, 1001, model.n))
    weights, columns = rng.uniform(0.5, 2, model.n), [0, 5, 9, 23, 24, 40, 100]
    w = dynamics.regressor(q, qd, qdd, columns) * weights[:, None]
    w, y = w.reshape(-1, len(columns)), (tau * weights).ravel()
    found = dynamics.normal_equations(q, qd, qdd, tau, columns=columns, weights=weights)
    np.testing.assert_allclose(found.matrix, w.T @ w, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(found.vector, w.T @ y, rtol=1e-10, atol=1e-8)
    assert found.square == pytest.approx(y @ y)
    with pytest.raises(rd.ShapeError, match='same N'):
        dynamics.normal_equations(q, qd, qdd[:5], tau)
    with pytest.raises(rd.ShapeError, match='weights'):
        dynamics.normal_equations(q, qd, qdd, tau, weights=[1.0])
