"""The worked examples of the course texts, at random values."""

import numpy as np
import pytest
from reference import Lagrange
from robots import joint, link, robot

import robodyn_ros as rd

G0 = 9.80665
EXACT = {'rtol': 1e-12, 'atol': 1e-12}


def test_planar_2r_kolyubin_2_2_3(rng):
    l1, d1, d2, m1, m2, i1, i2 = rng.uniform(0.2, 2.0, 7)
    model = rd.load_model(robot(
        link('base'), link('a', m1, (d1, 0, 0), (0, 0, 0, 0, 0, i1)),
        link('b', m2, (d2, 0, 0), (0, 0, 0, 0, 0, i2)),
        joint('j1', 'revolute', 'base', 'a'), joint('j2', 'revolute', 'a', 'b', (l1, 0, 0))),
        gravity=(0, -G0, 0))
    a1 = i1 + m1 * d1**2 + i2 + m2 * l1**2 + m2 * d2**2
    a2, a3 = m2 * l1 * d2, i2 + m2 * d2**2
    a4, a5 = G0 * (m1 * d1 + m2 * l1), G0 * m2 * d2
    dynamics = rd.Dynamics(model)
    for q, qd, qdd in rng.uniform(-3, 3, (20, 3, 2)):
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        m12 = a3 + a2 * c2
        mass = np.array([[a1 + 2 * a2 * c2, m12], [m12, a3]])
        c = np.array([-a2 * s2 * (qd[1]**2 + 2 * qd[0] * qd[1]), a2 * s2 * qd[0]**2])
        g = np.array([a4 * np.cos(q[0]) + a5 * np.cos(q.sum()), a5 * np.cos(q.sum())])
        np.testing.assert_allclose(dynamics.mass_matrix(q), mass, **EXACT)
        np.testing.assert_allclose(dynamics.coriolis(q, qd), c, **EXACT)
        np.testing.assert_allclose(dynamics.gravity(q), g, **EXACT)
        np.testing.assert_allclose(dynamics.inverse_dynamics(q, qd, qdd), mass @ qdd + c + g,
                                   rtol=1e-11, atol=1e-11)


def test_planar_2r_with_motors_velagic_4_1_and_4_2(rng):
    a1, l1, l2, m1, m2, i1, i2, mm2 = rng.uniform(0.2, 2.0, 8)
    k1, k2 = rng.uniform(10, 100, 2)
    im1, im2 = rng.uniform(1e-4, 1e-2, 2)
    motors = {'joints': {
        'j1': {'gear_ratio': k1, 'rotor_inertia': im1, 'spin_axis': [0, 0, 1],
               'rotor_in_link': False},
        'j2': {'gear_ratio': k2, 'rotor_inertia': im2, 'spin_axis': [0, 0, 1], 'rotor_mass': mm2,
               'rotor_position': [a1, 0, 0], 'rotor_in_link': False}}}
    model = rd.load_model(robot(
        link('base'), link('a', m1, (l1, 0, 0), (0, 0, 0, 0, 0, i1)),
        link('b', m2, (l2, 0, 0), (0, 0, 0, 0, 0, i2)),
        joint('j1', 'revolute', 'base', 'a'), joint('j2', 'revolute', 'a', 'b', (a1, 0, 0))),
        gravity=(0, -G0, 0), motors=motors)
    dynamics = rd.Dynamics(model)
    for q, qd, qdd in rng.uniform(-3, 3, (20, 3, 2)):
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        b11 = (i1 + m1 * l1**2 + k1**2 * im1 + i2 + m2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2)
               + im2 + mm2 * a1**2)
        b12 = i2 + m2 * (l2**2 + a1 * l2 * c2) + k2 * im2
        b22 = i2 + m2 * l2**2 + k2**2 * im2
        h = -m2 * a1 * l2 * s2
        c = np.array([[h * qd[1], h * qd.sum()], [-h * qd[0], 0]])
        c1, c12 = np.cos(q[0]), np.cos(q.sum())
        g = np.array([(m1 * l1 + mm2 * a1 + m2 * a1) * G0 * c1 + m2 * l2 * G0 * c12,
                      m2 * l2 * G0 * c12])
        mass = np.array([[b11, b12], [b12, b22]])
        np.testing.assert_allclose(dynamics.mass_matrix(q), mass, **EXACT)
        np.testing.assert_allclose(dynamics.coriolis_matrix(q, qd), c, **EXACT)
        np.testing.assert_allclose(dynamics.gravity(q), g, **EXACT)
        # Newton-Euler, the second formulation, gives the same torques
        np.testing.assert_allclose(dynamics.inverse_dynamics(q, qd, qdd),
                                   mass @ qdd + c @ qd + g, rtol=1e-11, atol=1e-11)


def test_rp_robot_technion_exercise_8(rng):
    m2, m3, i2, com = rng.uniform(0.3, 2.0, 4)
    # link 2 slides along x of link 1; its centre of mass lies `com` behind the tip at d2
    model = rd.load_model(robot(
        link('base'), link('turn'), link('slide', m2, (-com, 0, 0), (0, 0, 0, 0, 0, i2)),
        link('tip', m3), joint('j1', 'revolute', 'base', 'turn'),
        joint('j2', 'prismatic', 'turn', 'slide', axis=(1, 0, 0)),
        joint('f', 'fixed', 'slide', 'tip')), gravity=(0, -G0, 0))
    dynamics = rd.Dynamics(model)
    for q, qd in rng.uniform(-2, 2, (20, 2, 2)):
        d2, inner = q[1], m2 * (q[1] - com)
        b = m3 * d2 + inner
        np.testing.assert_allclose(dynamics.mass_matrix(q), np.diag(
            [m3 * d2**2 + inner * (d2 - com) + i2, m2 + m3]), **EXACT)
        np.testing.assert_allclose(dynamics.coriolis_matrix(q, qd),
                                   b * np.array([[qd[1], qd[0]], [-qd[0], 0]]), **EXACT)
        np.testing.assert_allclose(dynamics.gravity(q), [
            b * G0 * np.cos(q[0]), (m2 + m3) * G0 * np.sin(q[0])], **EXACT)


def test_pendulum_with_motor_and_gear_kolyubin_2_35(rng):
    i_l, m, d, i_m, k_fl, k_fm, length = rng.uniform(0.1, 1.0, 7)
    ratio, force = 50.0, 3.0
    model = rd.load_model(robot(
        link('base'), link('bob', m, (d, 0, 0), (0, 0, 0, 0, 0, i_l)),
        link('end', None), joint('j', 'revolute', 'base', 'bob'),
        joint('f', 'fixed', 'bob', 'end', (length, 0, 0))),
        gravity=(G0, 0, 0), motors={'joints': {'j': {
            'gear_ratio': ratio, 'rotor_inertia': i_m, 'link_friction': {'viscous': k_fl},
            'motor_friction': {'viscous': k_fm}}}})
    dynamics = rd.Dynamics(model)
    inertia = i_l + m * d**2 + ratio**2 * i_m
    for q, qd, qdd in rng.uniform(-2, 2, (20, 3, 1)):
        th, thd, thdd = q[0], qd[0], qdd[0]
        # theta hangs from gravity's direction x; F_x is horizontal, along y
        wrench = {'end': [0, force, 0, 0, 0, 0]}
        tau_m = dynamics.inverse_dynamics(q, qd, qdd, wrench)[0] / ratio
        tau = ratio * tau_m - (k_fl + ratio**2 * k_fm) * thd + length * np.cos(th) * force
        np.testing.assert_allclose(inertia * thdd + m * G0 * d * np.sin(th), tau, rtol=1e-11,
                                   atol=1e-11)
        # the motor's side: everything divided by the ratio, in the motor's own angle
        acceleration, speed = ratio * thdd, ratio * thd
        motor_side = ((inertia / ratio**2) * acceleration + (k_fl / ratio**2 + k_fm) * speed
                      + (m * G0 * d * np.sin(th) - length * np.cos(th) * force) / ratio)
        np.testing.assert_allclose(tau_m, motor_side, rtol=1e-11, atol=1e-11)


def test_elementary_arms(rng):
    def body(name):
        return link(name, 1.5, rng.normal(size=3) * 0.2, (0.1, 0.01, 0.02, 0.2, 0.01, 0.15))

    cartesian = rd.Dynamics(rd.load_model(robot(
        link('base'), body('x'), body('y'), body('z'),
        joint('j1', 'prismatic', 'base', 'x', axis=(1, 0, 0)),
        joint('j2', 'prismatic', 'x', 'y', axis=(0, 1, 0)),
        joint('j3', 'prismatic', 'y', 'z', axis=(0, 0, 1)))))
    np.testing.assert_allclose(cartesian.mass_matrix(rng.normal(size=(5, 3))),
                               np.tile(np.diag([4.5, 3.0, 1.5]), (5, 1, 1)), **EXACT)
    assert not np.any(cartesian.coriolis(rng.normal(size=3), rng.normal(size=3)))

    pr = rd.Dynamics(rd.load_model(robot(
        link('base'), body('p'), body('r'), joint('j1', 'prismatic', 'base', 'p', axis=(1, 0, 0)),
        joint('j2', 'revolute', 'p', 'r'))))
    q = rng.normal(size=(6, 2))
    q[1::2, 1] = q[::2, 1]  # same q2, other q1
    mass = pr.mass_matrix(q)
    np.testing.assert_allclose(mass[1::2], mass[::2], **EXACT)
    assert np.ptp(mass[:, 0, 1]) > 1e-3 and np.ptp(mass[:, 0, 0]) < 1e-12

    # articulated 3R: q1 vertical, q2 and q3 horizontal and parallel, links in one plane
    articulated = rd.Dynamics(rd.load_model(robot(
        link('base'), link('a', 1.0, (0, 0, 0.1), (0.1, 0, 0, 0.2, 0, 0.15)),
        link('b', 1.0, (0.2, 0, 0), (0.1, 0, 0, 0.2, 0, 0.15)),
        link('c', 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.2, 0, 0.15)),
        joint('j1', 'revolute', 'base', 'a'), joint('j2', 'revolute', 'a', 'b', axis=(0, -1, 0)),
        joint('j3', 'revolute', 'b', 'c', (0.4, 0, 0), axis=(0, -1, 0)))))
    mass = articulated.mass_matrix(rng.normal(size=(20, 3)))
    np.testing.assert_allclose(mass[:, 0, 1:], 0, atol=1e-14)
    assert np.ptp(mass[:, 0, 0]) > 1e-2


def test_solids_and_steiner_kolyubin_appendix_3():
    from robodyn_ros.spatial import inertial_parameters, transform_inertial

    m, a, b, c = 2.0, 0.3, 0.4, 0.5
    box = m / 12 * np.diag([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    grid = [np.linspace(-s / 2, s / 2, 41) for s in (a, b, c)]
    weights = [np.where(np.isin(x, (x[0], x[-1])), 0.5, 1.0) / 40 for x in grid]
    points = np.stack(np.meshgrid(*grid, indexing='ij'), -1).reshape(-1, 3)
    mass = m * np.prod(np.stack(np.meshgrid(*weights, indexing='ij'), -1), -1).ravel()
    squares = np.einsum('k,ki,kj', mass, points, points)
    np.testing.assert_allclose(np.trace(squares) * np.eye(3) - squares, box, rtol=2e-3, atol=1e-9)
    shift = np.array([0.1, -0.2, 0.3])
    moved = transform_inertial(inertial_parameters(rd.Inertial(m, np.zeros(3), box)),
                               np.eye(3), shift)
    steiner = box + m * (shift @ shift * np.eye(3) - np.outer(shift, shift))
    np.testing.assert_allclose(moved, [*steiner[np.triu_indices(3)], m, *(m * shift)], **EXACT)


@pytest.mark.parametrize('convention', ['standard', 'modified'])
def test_denavit_hartenberg_tables(convention, rng):
    table = np.column_stack([rng.normal(size=4) * 0.3, rng.choice([0, np.pi / 2, 0.4], 4),
                             rng.normal(size=4) * 0.3, rng.normal(size=4)])
    slides = [False, False, True, False]
    inertials = [rd.Inertial(1.0 + i, rng.normal(size=3) * 0.1, np.diag([0.1, 0.2, 0.25]))
                 for i in range(4)]
    model = rd.model_from_dh(table, inertials, convention=convention, prismatic=slides)
    assert model.joint_names == ('joint1', 'joint2', 'joint3', 'joint4')
    dynamics, q = rd.Dynamics(model), rng.normal(size=4)
    pose = np.eye(4)
    for (a, alpha, d, theta), sliding, value in zip(table, slides, q, strict=True):
        d, theta = (d + value, theta) if sliding else (d, theta + value)
        ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
        if convention == 'standard':
            step = np.array([[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st],
                             [0, sa, ca, d], [0, 0, 0, 1]])
        else:
            step = np.array([[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa],
                             [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]])
        pose = pose @ step
    np.testing.assert_allclose(dynamics.pose(q, 'link4'), pose, atol=1e-12)
    np.testing.assert_allclose(dynamics.mass_matrix(q), Lagrange(model).mass_matrix(q), atol=1e-12)
    with pytest.raises(rd.UnknownNameError, match='standard, modified'):
        rd.model_from_dh(table, inertials, convention='classic')
    with pytest.raises(rd.ShapeError):
        rd.model_from_dh(table[:, :3], inertials)
