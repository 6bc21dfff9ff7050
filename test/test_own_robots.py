"""The robots in `urdf/`: each loads, is judged good, and is as its comments say."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import robodyn_ros as rd
from robodyn_ros.check import check_robot

ROOT = Path(__file__).parent.parent
NAMES = sorted(path.name.removesuffix('.urdf.xacro') for path in ROOT.glob('urdf/*.urdf.xacro'))
G0 = 9.80665


def own(name, **arguments):
    model = rd.load_model(ROOT / f'urdf/{name}.urdf.xacro', xacro_arguments=arguments)
    return rd.Dynamics(model), yaml.safe_load((ROOT / f'config/robots/{name}.yaml').read_text())


@pytest.mark.parametrize('name', NAMES)
def test_the_robots_of_the_repository_have_no_fault(name):
    report = check_robot(ROOT / f'urdf/{name}.urdf.xacro')
    assert report.verdict == 'good' or [issue.text for issue in report.issues] == [
        'a point mass: 0.5 kg without inertia']  # which the tip mass is
    assert all(np.isfinite(entry['effort_limit']) for entry in report.joints)


def test_planar_2r_agrees_with_its_closed_form(rng):
    dynamics, p = own('planar_2r')
    one, two, length = p['link1'], p['link2'], p['link1']['length']
    q = rng.uniform(-3, 3, 2)
    a4 = G0 * (one['mass'] * one['com'] + two['mass'] * length)
    a5 = G0 * two['mass'] * two['com']
    np.testing.assert_allclose(dynamics.gravity(q), [
        a4 * np.cos(q[0]) + a5 * np.cos(q.sum()), a5 * np.cos(q.sum())], atol=1e-12)
    a3 = two['inertia'] + two['mass'] * two['com']**2
    a2 = two['mass'] * length * two['com']
    assert dynamics.mass_matrix(q)[0, 1] == pytest.approx(a3 + a2 * np.cos(q[1]))
    assert dynamics.pose([0.0, 0.0], 'tip')[0, 3] == pytest.approx(length + two['length'])


def test_rp_with_a_tip_mass_agrees_with_its_closed_form(rng):
    dynamics, p = own('rp_tip_mass')
    (m2, i2), behind = (p['link2']['mass'], p['link2']['inertia']), p['link2']['behind']
    m3, (th, d), (thd, dd) = p['tip']['mass'], rng.uniform(0.5, 1.0, 2), rng.normal(size=2)
    h11 = m3 * d**2 + m2 * (d - behind)**2 + i2 + p['link1']['inertia']
    np.testing.assert_allclose(dynamics.mass_matrix([th, d]), np.diag([h11, m2 + m3]), atol=1e-13)
    b = m3 * d + m2 * (d - behind)
    np.testing.assert_allclose(dynamics.coriolis_matrix([th, d], [thd, dd]),
                               b * np.array([[dd, thd], [-thd, 0]]), atol=1e-13)
    np.testing.assert_allclose(dynamics.gravity([th, d]), G0 * np.array(
        [b * np.cos(th), (m2 + m3) * np.sin(th)]), atol=1e-12)


def test_the_waist_of_articulated_3r_is_decoupled(rng):
    dynamics, _ = own('articulated_3r')
    mass = dynamics.mass_matrix(rng.uniform(-3, 3, (20, 3)))
    np.testing.assert_allclose(mass[:, 0, 1:], 0, atol=1e-15)
    np.testing.assert_allclose(dynamics.gravity(rng.uniform(-3, 3, 3))[0], 0, atol=1e-13)


def test_only_the_slide_of_the_scara_carries_weight(rng):
    dynamics, p = own('scara')
    weight = G0 * (p['quill']['mass'] + p['flange']['mass'])
    q = rng.uniform(-1, 1, (5, 4))
    np.testing.assert_allclose(dynamics.gravity(q), np.tile([0, 0, weight, 0], (5, 1)),
                               atol=1e-13)
    down = dynamics.pose(q, 'tip')[:, :3, 3] - dynamics.pose(q + [0, 0, 0.1, 0], 'tip')[:, :3, 3]
    np.testing.assert_allclose(down, np.tile([0, 0, -0.1], (5, 1)), atol=1e-15)


def test_the_five_bar_closes_at_its_stated_points(rng):
    dynamics, p = own('five_bar')
    q1, q2 = rng.uniform(0.2, 1.5, 2)
    lengths = {p[f'link{i}']['length'] for i in (1, 3)}, {p[f'link{i}']['length'] for i in (2, 4)}
    assert list(map(len, lengths)) == [1, 1]  # a parallelogram: 3 runs parallel to 1, 4 to 2
    q = [q1, q2, q1 - q2, q2 - q1]
    end = dynamics.pose(q, 'link3')[:3] @ [p['link3']['length'], 0, 0, 1]
    np.testing.assert_allclose(dynamics.pose(q, 'tip')[:3, 3], end, atol=1e-15)


def test_lwr4_has_the_published_kinematics():
    dynamics, p = own('kuka_lwr4')
    model, d = dynamics.model, p['kinematics']
    assert model.n == 7
    np.testing.assert_allclose(dynamics.pose(np.zeros(7), 'tip')[:3, 3],
                               [0, 0, sum(d.values())], atol=1e-15)
    np.testing.assert_allclose(model.upper, np.pi * np.array(
        [17 / 18, 2 / 3, 17 / 18, 2 / 3, 17 / 18, 1 / 2, 17 / 18]))
    np.testing.assert_allclose(model.velocity_limit, np.pi * np.array(
        [11 / 18, 11 / 18, 32 / 45, 32 / 45, 51 / 45, 46 / 45, 46 / 45]))
    np.testing.assert_array_equal(model.effort_limit, [176, 176, 100, 100, 100, 38, 38])
    # the axes at q = 0, in the base: z, y, z, -y, z, y, z up to sign, meeting at three points
    axes = [dynamics.pose(np.zeros(7), f'link{i}')[:3, 2] for i in range(1, 8)]
    np.testing.assert_allclose(np.abs(axes), [[0, i % 2, 1 - i % 2] for i in range(7)],
                               atol=1e-15)
    np.testing.assert_allclose(
        [dynamics.pose(np.zeros(7), f'link{i}')[2, 3] for i in range(1, 8)],
        np.cumsum([d['d1'], 0, d['d3'], 0, d['d5'], 0, 0]))
    loaded, _ = own('kuka_lwr4', payload='true')
    payload = loaded.model.inertial_parameters[6] - model.inertial_parameters[6]
    assert payload[6] == pytest.approx(3.28)
    # the arm's weight by its data sheet
    assert model.inertial_parameters[:, 6].sum() == pytest.approx(16.0)
