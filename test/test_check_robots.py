"""Reports of `robodyn check` on real robots, compared with independently computed facts."""

from xml.etree import ElementTree

import numpy as np
import pytest
from robots import BROKEN_MIMICS, ROBOTS, text_of

import robodyn_ros as rd
from robodyn_ros.check import check_model, check_robot

pin = pytest.importorskip('pinocchio')


def path_of(name):
    return next(ROBOTS.rglob(f'{name}.urdf'))


def issues_of(name):
    report = check_robot(path_of(name))
    return report, {(issue.severity, issue.where): issue.text for issue in report.issues}


def element(name, tag, of):
    root = ElementTree.parse(path_of(name)).getroot()
    return next(entry for entry in root.iter(tag) if entry.get('name') == of)


def moments(name, link):
    written = element(name, 'link', link).find('inertial/inertia')
    xx, xy, xz, yy, yz, zz = (float(written.get(key)) for key in (
        'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'))
    return np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def mesh_of(name, link):
    """The collision mesh of a link, which has no scale or origin of its own, by trimesh."""
    import trimesh

    file = element(name, 'link', link).find('collision/geometry/mesh').get('filename')
    return trimesh.load_mesh(ROBOTS.parent.parent / file.removeprefix('package://'))


def largest_gravity(name, joint, samples=4000):
    """The largest gravity torque of a joint over random poses, by Pinocchio."""
    model = pin.buildModelFromUrdf(str(path_of(name)))
    data, rng = model.createData(), np.random.default_rng(7)
    model.gravity.linear = np.array([0, 0, -9.80665])
    index = model.joints[model.getJointId(joint)].idx_v
    lower, upper = np.full(model.nv, -np.pi), np.full(model.nv, np.pi)
    for one in model.joints[1:]:
        if one.nq == one.nv:  # a joint without limits has cos and sin for its position
            lower[one.idx_v] = model.lowerPositionLimit[one.idx_q]
            upper[one.idx_v] = model.upperPositionLimit[one.idx_q]
    zero = pin.neutral(model)
    return max(abs(pin.computeGeneralizedGravity(
        model, data, pin.integrate(model, zero, rng.uniform(lower, upper)))[index])
        for _ in range(samples)), float(model.effortLimit[index])


def test_the_inertia_of_panda_link_1_is_too_large_for_its_geometry():
    report, issues = issues_of('panda')
    assert report.verdict == 'doubtful'
    assert 'too large for its geometry' in issues['warning', 'link panda_link1']
    inertial = element('panda', 'link', 'panda_link1').find('inertial')
    com = np.array(inertial.find('origin').get('xyz').split(), float)
    mass = float(inertial.find('mass').get('value'))
    vertices = mesh_of('panda', 'panda_link1').vertices
    corners = np.array([vertices.min(axis=0), vertices.max(axis=0)])
    farthest = np.linalg.norm(np.abs(corners - com).max(axis=0))
    assert moments('panda', 'panda_link1')[2] > 3 * mass * farthest**2
    assert len(report.issues) == 1


@pytest.mark.parametrize(('name', 'link'), [
    ('allegro_right_hand', 'link_3.0'), ('pr2', 'double_stereo_link')])
def test_triangle_inequality(name, link):
    report, issues = issues_of(name)
    assert 'triangle' in issues['fault', f'link {link}'] and report.exit_code == 1
    small, middle, large = moments(name, link)
    assert large > small + middle


def test_tiago_antennas_have_a_negative_moment():
    report, issues = issues_of('tiago')
    # the link has about a gram, so this is a warning and not a fault
    assert 'negative' in issues['warning', 'link base_antenna_left_link']
    assert moments('tiago', 'base_antenna_left_link')[0] < -1e-8


@pytest.mark.parametrize(('name', 'joint'), [
    ('baxter', 'right_s1'), ('pr2', 'r_shoulder_lift_joint'), ('talos_left_arm',
                                                               'arm_left_2_joint')])
def test_joints_that_cannot_hold_themselves_up(name, joint):
    report, issues = issues_of(name)
    assert 'cannot hold its load' in issues['warning', f'joint {joint}']
    needed, limit = largest_gravity(name, joint)
    assert needed > limit
    stated = next(entry for entry in report.joints if entry['joint'] == joint)
    assert stated['effort_limit'] == limit
    assert stated['largest_gravity'] == pytest.approx(needed, rel=0.1)


def test_romeo_has_joints_that_move_no_mass():
    report, issues = issues_of('romeo')
    assert 'moves no inertia' in issues['fault', 'joint LHand']
    model = pin.buildModelFromUrdf(str(path_of('romeo')))
    index = model.joints[model.getJointId('LHand')].idx_v
    assert pin.crba(model, model.createData(), pin.neutral(model))[index, index] == 0


def test_human_has_massless_links():
    report, issues = issues_of('human')
    assert 'its mass is taken as zero' in issues['warning', 'link left_foot_virtual']
    assert element('human', 'link', 'left_foot_virtual').find('inertial') is None


def test_g1_foot_is_denser_than_its_collision_geometry_allows():
    report, issues = issues_of('g1_29dof_rev_1_0')
    assert 'denser than lead' in issues['warning', 'link left_ankle_roll_link']
    link = element('g1_29dof_rev_1_0', 'link', 'left_ankle_roll_link')
    spheres = [float(entry.get('radius')) for entry in link.findall('collision/geometry/sphere')]
    mass = float(link.find('inertial/mass').get('value'))
    assert len(spheres) == len(link.findall('collision'))
    assert mass / (4 / 3 * np.pi * np.sum(np.power(spheres, 3))) > 1e5


def test_centauro_wheels_have_limits_without_a_range():
    report, issues = issues_of('centauro')
    limit = element('centauro', 'joint', 'j_wheel_1').find('limit')
    assert 'no range' in issues['warning', 'joint j_wheel_1']
    assert float(limit.get('lower', 0)) == float(limit.get('upper', 0))


def test_alex_mimics_joints_that_do_not_exist():
    with pytest.raises(rd.UnknownNameError, match="'index_q1'.*did you mean 'Left_index_q1'"):
        check_robot(path_of('alex_psyonic_hands'))
    mended = check_model(rd.load_model(text_of(BROKEN_MIMICS)), thorough=False)
    assert not any('mimic' in issue.text for issue in mended.issues)
    names = {entry.get('name') for entry in ElementTree.parse(
        path_of('alex_psyonic_hands')).getroot().iter('joint')}
    assert element('alex_psyonic_hands', 'joint', 'Left_index_q2').find('mimic').get(
        'joint') not in names


def test_icub_links_are_reported_as_point_masses():
    report, issues = issues_of('icub')
    assert 'a point' in issues['warning', 'link neck_1']
    assert not moments('icub', 'neck_1').any()
    assert report.verdict == 'doubtful'  # its 1e-20 kg m^2 are noise of the exporter, not a fault


def test_density_is_mass_over_mesh_volume():
    report, _ = issues_of('panda')
    link = next(entry for entry in report.links if entry['link'] == 'panda_link4')
    assert link['density_kg_m3'] == pytest.approx(
        link['mass_kg'] / mesh_of('panda', 'panda_link4').volume)
