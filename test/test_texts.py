"""Numbers and intermediate results of the course texts that no other test asserts."""

import numpy as np
import scipy.stats
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.dynamics.catalogue import Catalogue
from robodyn_ros.identification.decimation import OUTPUT_RATE, Decimation
from robodyn_ros.identification.statistics import F_LIMIT, significant

G0 = 9.80665


def test_reactions_of_the_planar_2r_velagic_4_2(rng):
    """f1, f2, mu1 and mu2 of the example, with spinning rotors, then tau of 4.97 and 4.98."""
    a1, l1, l2, m1, m2, i1, i2 = 0.7, 0.3, 0.25, 2.0, 1.5, 0.05, 0.03
    k1, k2, im1, im2 = 50.0, 30.0, 1e-3, 2e-3
    motors = {'joints': {
        'j1': {'gear_ratio': k1, 'rotor_inertia': im1, 'spin_axis': [0, 0, 1]},
        'j2': {'gear_ratio': k2, 'rotor_inertia': im2, 'spin_axis': [0, 0, 1]}}}
    dynamics = rd.Dynamics(rd.load_model(planar_2r(m1, m2, a1, l1, l2, i1, i2), motors=motors,
                                         gravity=(0, -G0, 0)))
    for q, qd, qdd in rng.normal(size=(5, 3, 2)):
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        c1, s1, c12, s12 = np.cos(q[0]), np.sin(q[0]), np.cos(q.sum()), np.sin(q.sum())
        both, speed = qdd.sum(), qd.sum()
        f2 = m2 * np.array([a1 * s2 * qdd[0] - a1 * c2 * qd[0]**2 - l2 * speed**2 + G0 * s12,
                            a1 * c2 * qdd[0] + l2 * both + a1 * s2 * qd[0]**2 + G0 * c12])
        mu2 = (i2 * both + m2 * l2**2 * both + m2 * a1 * l2 * c2 * qdd[0]
               + m2 * a1 * l2 * s2 * qd[0]**2 + m2 * l2 * G0 * c12)
        f1 = np.array([
            -m2 * l2 * s2 * both - m1 * l1 * qd[0]**2 - m2 * a1 * qd[0]**2
            - m2 * l2 * c2 * speed**2 + (m1 + m2) * G0 * s1,
            m1 * l1 * qdd[0] + m2 * a1 * qdd[0] + m2 * l2 * c2 * both - m2 * l2 * s2 * speed**2
            + (m1 + m2) * G0 * c1])
        mu1 = (i1 * qdd[0] + m2 * a1**2 * qdd[0] + m1 * l1**2 * qdd[0]
               + m2 * a1 * l2 * c2 * qdd[0] + i2 * both + m2 * a1 * l2 * c2 * both
               + m2 * l2**2 * both + k2 * im2 * qdd[1] + m2 * a1 * l2 * s2 * qd[0]**2
               - m2 * a1 * l2 * s2 * speed**2 + m1 * l1 * G0 * c1 + m2 * a1 * G0 * c1
               + m2 * l2 * G0 * c12)
        first, second = dynamics.joint_wrenches(q, qd, qdd)
        np.testing.assert_allclose(second[[0, 1, 5]], [*f2, mu2], atol=1e-11)
        np.testing.assert_allclose(first[[0, 1, 5]], [*f1, mu1], atol=1e-11)
        # the rotors' own equations add the rest (4.97, 4.98)
        np.testing.assert_allclose(dynamics.inverse_dynamics(q, qd, qdd), [
            mu1 + k1**2 * im1 * qdd[0], mu2 + k2 * im2 * (qdd[0] + k2 * qdd[1])], atol=1e-11)


def test_links_with_motors_have_the_parameters_of_velagic_4_99(rng):
    """A rotor on link 1 as a body of its own, or as a part of an augmented link."""
    a1, l1, l2, m1, m2, i1, i2, mm2, im2, k2 = 0.7, 0.3, 0.25, 2.0, 1.5, 0.05, 0.03, 0.4, 2e-3, 30
    rotor = {'gear_ratio': k2, 'rotor_inertia': im2, 'spin_axis': [0, 0, 1]}
    apart = rd.load_model(planar_2r(m1, m2, a1, l1, l2, i1, i2), motors={'joints': {'j2': {
        **rotor, 'rotor_mass': mm2, 'rotor_position': [a1, 0, 0], 'rotor_in_link': False}}})
    mass = m1 + mm2
    centre = a1 + m1 * (l1 - a1) / mass  # m lC = ml (l - a), lC from the end of the link
    inertia = i1 + m1 * (l1 - a1)**2 + im2 - mass * (centre - a1)**2
    augmented = rd.load_model(planar_2r(mass, m2, a1, centre, l2, inertia, i2),
                              motors={'joints': {'j2': rotor}})
    state = rng.normal(size=(3, 2))
    np.testing.assert_allclose(Catalogue(apart).inverse_dynamics(*state),
                               Catalogue(augmented).inverse_dynamics(*state), rtol=1e-12)


def test_the_regressor_is_triangular_kolyubin_remark_5_1(rng):
    """The torque of a joint depends on the parameters of its own link and of those behind it."""
    regressor = rd.Dynamics(rd.load_model(planar_2r())).regressor(*rng.normal(size=(3, 2)))
    assert not regressor[1, :17].any()
    assert regressor[0, 17:].any() and regressor[1, 17:].any()


def test_the_threshold_of_the_f_test_kolyubin_5_6_1():
    assert F_LIMIT == 3.842
    assert abs(scipy.stats.f.ppf(0.95, 1, 10**7) - F_LIMIT) < 1e-3
    # a parameter stays if its square over its variance is above the threshold
    values = np.sqrt(np.array([F_LIMIT * 1.001, F_LIMIT * 0.999, 100.0]))
    assert significant(values, np.eye(3)) == (0, 2)


def test_decimation_beside_the_formula_kolyubin_5_5_2():
    """n_d = 0.8 pi f_s / (2 w_cd) is 100 at 1 kHz and 2 Hz (the text has 20); here it is 156."""
    rate, cutoff = 1000.0, 2.0
    formula = 0.8 * np.pi * rate / (2 * 2 * np.pi * cutoff)
    assert formula == 100
    ours = Decimation.at(rate, cutoff)
    assert ours.step == 156 and abs(rate / ours.step / cutoff / OUTPUT_RATE - 1) < 0.02
    # the decimated rate is above twice the cutoff, so nothing in the pass band is folded
    assert rate / ours.step > 2 * cutoff
    slow = np.cos(2 * np.pi * 0.5 * np.arange(6000) / rate)
    np.testing.assert_allclose(ours(slow[:, None])[:, 0], slow[ours.centres(6000)], atol=5e-4)
    fast = np.cos(2 * np.pi * 8.0 * np.arange(6000) / rate)
    assert np.abs(ours(fast[:, None])).max() < 5e-3


def test_smooth_columns_may_be_decimated_at_a_stride():
    """Torques pass the filter at the full rate, smooth columns at a stride: both must agree."""
    rate, t = 1000.0, np.arange(8000) / 1000.0
    one = Decimation.at(rate, 2.0)
    assert one.stride > 50
    smooth = np.cos(2 * np.pi * np.array([0.3, 1.1, 1.9, 2.6]) * t[:, None])
    np.testing.assert_allclose(one(smooth[::one.stride], one.stride), one(smooth), atol=2e-5)
    # noise of accelerations up to 40 Hz: nothing is folded into the pass band
    noisy = np.cos(2 * np.pi * np.linspace(15, 40, 60) * t[:, None])
    other = Decimation.at(rate, 2.0, highest=40.0)
    assert np.abs(other(noisy[::other.stride], other.stride)).max() < 1e-3


def test_short_pieces_pass_a_shorter_filter():
    """Of 15 decimated samples, five are lost at each end; long pieces lose seven."""
    reach = {}
    for count in (15, 17, 19, 100):
        size = 156 * count
        one = Decimation.at(1000.0, 2.0, size=size)
        reach[count] = one.half // one.step
        slow = np.cos(2 * np.pi * 0.5 * np.arange(size) / 1000.0)[:, None]
        found = one(slow)[:, 0]
        assert len(found) == one.count(size) >= 4
        np.testing.assert_allclose(found, slow[one.centres(size), 0], atol=2e-3)
    assert reach == {15: 5, 17: 6, 19: 7, 100: 7}
