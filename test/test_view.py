"""The robot in the browser: what is drawn, the text of the page, and who can open it."""

import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from browser import PROGRAM, Browser
from robots import PANDA_URDF, planar_2r

import robodyn_ros as rd
from robodyn_ros.check import mesh_folders
from robodyn_ros.commands.main import main
from robodyn_ros.description.solids import box
from robodyn_ros.dynamics.tree import build_tree
from robodyn_ros.excitation import sample_motion
from robodyn_ros.excitation.capsules import Capsule
from robodyn_ros.spatial import axis_rotation
from robodyn_ros.view.scene import body_poses, inertia_box, quaternion


def rotation_of(q):
    w, x, y, z = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def test_quaternions_equal_their_rotation_matrices(rng):
    for angle in (0.0, 1e-9, *rng.uniform(-np.pi, np.pi, 20), np.pi):
        axis = rng.normal(size=3)
        turn = axis_rotation(axis / np.linalg.norm(axis), angle)
        np.testing.assert_allclose(rotation_of(quaternion(turn)), turn, atol=1e-9)


def test_the_inertia_box_of_a_uniform_box_is_that_box():
    size, axes = inertia_box(box(0.1, 0.2, 0.4).inertial(mass=3.0))
    turned = np.abs(axes) @ size
    np.testing.assert_allclose(turned, [0.1, 0.2, 0.4])
    assert np.linalg.det(axes) == pytest.approx(1.0)


def test_bodies_are_drawn_at_their_kinematic_poses(rng):
    model = rd.load_model(planar_2r())
    q = rng.uniform(-1, 1, model.n)
    poses, dynamics = body_poses(build_tree(model), q), rd.Dynamics(model)
    for name, place in model.link_frames.items():
        if place.body < 0:
            continue
        rotation, origin = poses[place.body]
        pose = dynamics.pose(q, name)
        np.testing.assert_allclose(pose[:3, :3], rotation @ place.rotation, atol=1e-12)
        np.testing.assert_allclose(pose[:3, 3], origin + rotation @ place.translation, atol=1e-12)


@pytest.fixture
def server():
    viser = pytest.importorskip('viser')
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    one = viser.ViserServer(host='127.0.0.1', port=port, verbose=False)
    yield one
    one.stop()


def test_sliders_move_the_robot_and_its_torques(server):
    """The nominal and a heavier model side by side; links with issues are marked."""
    from robodyn_ros.view import Viewer

    model = rd.load_model(PANDA_URDF)
    viewer = Viewer(server, model, mesh_folders(PANDA_URDF),
                    beside=model.with_payload('panda_hand', 2.0))
    assert not viewer.scene.notes  # every link has geometry that can be drawn
    marked = {handle.name for handle in viewer.scene._inertials if handle.name.endswith('/issue')}
    assert marked == {'/robot/panda_link1/issue'}
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.6, 0.7, 0.02])
    viewer.set_pose(q)
    np.testing.assert_allclose(viewer.q, q, atol=1e-9)
    row = next(line for line in viewer.table.content.splitlines() if 'panda_joint2' in line)
    gravity, _, heavier, _ = (float(cell) for cell in row.split('|')[2:6])
    dynamics = rd.Dynamics(model)
    assert gravity == pytest.approx(dynamics.gravity(q)[1], rel=1e-2)
    assert abs(heavier) > abs(gravity) + 1.0
    hand = viewer.scene._frames['panda_hand']
    np.testing.assert_allclose(hand.position, dynamics.pose(q, 'panda_hand')[:3, 3], atol=1e-9)


def test_a_motion_is_played_with_its_limits_and_capsules(server):
    from robodyn_ros.view import Viewer

    model = rd.load_model(PANDA_URDF)
    motion = sample_motion(model, period=1.0)
    viewer = Viewer(server, model, mesh_folders(PANDA_URDF), motion=motion)
    playback, dynamics = viewer.playback, rd.Dynamics(model, friction_width=0.02)
    state = playback.go_to(0.31)
    np.testing.assert_allclose(viewer.q, state.q, atol=1e-3)
    used = playback.limits.at(0.31)
    middle, half = (model.upper + model.lower) / 2, (model.upper - model.lower) / 2
    np.testing.assert_allclose(used[0], np.abs(state.q - middle) / half)
    np.testing.assert_allclose(used[1], np.abs(state.qd) / model.velocity_limit)
    np.testing.assert_allclose(used[2], np.abs(dynamics.inverse_dynamics(*state[:3]))
                               / model.effort_limit)
    row = next(line for line in playback.table.content.splitlines() if 'panda_joint4' in line)
    velocity = np.abs(motion.samples(100.0)[1].qd[:, 3]).max() / model.velocity_limit[3]
    assert row.split('|')[3].strip() == f'{100 * used[1, 3]:.0f} ({100 * velocity:.0f})'
    nearest, least = playback.limits.clearance(0.31), playback.limits.clearance()
    assert least.distance <= nearest.distance
    assert f'{" and ".join(nearest.links)}, {nearest.distance:.3f} m' in playback.table.content
    capsules = viewer.scene._capsules
    assert set(nearest.links) <= set(capsules) and capsules['panda_link1'].visible
    playback.capsules.value = False
    assert not capsules['panda_link1'].visible
    playback.time.value = 0.9
    playback.play()
    np.testing.assert_allclose(viewer.q, motion.at(1.0).q, atol=1e-3)
    assert playback.button.label == 'Play'


def test_capsules_contain_their_links_and_are_marked_where_they_touch(server):
    from robodyn_ros.view.scene import CAPSULE, SUSPECT, RobotScene

    model = rd.load_model(planar_2r())
    scene = RobotScene(server.scene, model)
    link = model.description.links[-1].name
    scene.add_capsules([Capsule(link, (0.1, 0.0, 0.0), (0.1, 0.4, 0.0), 0.05),
                        Capsule(model.description.root, (0, 0, 0), (0, 0, 0), 0.1)])
    handle = scene._capsules[link]
    points = handle.vertices @ rotation_of(handle.wxyz).T + handle.position
    np.testing.assert_allclose(points.min(axis=0), [0.05, -0.05, -0.05], atol=1e-3)
    np.testing.assert_allclose(points.max(axis=0), [0.15, 0.45, 0.05], atol=1e-3)
    scene.mark_capsules([link])
    assert tuple(handle.color) == SUSPECT
    scene.mark_capsules([])
    assert tuple(handle.color) == CAPSULE


def test_the_page_of_an_experiment_shows_what_is_measured(server):
    from robodyn_ros.view import ExperimentPage

    model = rd.load_model(planar_2r())
    page, (first, second) = ExperimentPage(server, model), model.joint_names
    page.move({second: 0.5, 'gripper': 1.0})
    np.testing.assert_allclose(page.viewer.q, [0.0, 0.5], atol=1e-3)
    assert all(slider.disabled for slider in page.viewer.sliders)
    for k in range(1, 4):
        page.show('excite', k / 4, samples=100 * k, condition=90 / k,
                  tracking={first: 0.01, second: -0.02},
                  unexplained={first: 0.5 / k, second: float('nan')})
    assert page.phase.content == '**excite**, 75%, 300 samples, condition number 30'
    assert f'| {first} | +0.0100 rad | 16.7% |' in page.table.content
    assert f'| {second} | -0.0200 rad | - |' in page.table.content
    samples, condition = page._condition.data
    assert list(samples) == [100, 200, 300] and list(condition) == [90, 45, 30]
    np.testing.assert_allclose(page._unexplained.data[1], [50, 25, 50 / 3])
    page.end('good', ['3 % of the torque are unexplained'])
    assert page.phase.content.startswith('**good**\n\n- 3 %')


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason='there is no Chromium on this machine')
def test_a_browser_shows_the_page(server, tmp_path):
    pytest.importorskip('websockets')
    from robodyn_ros.view import Viewer

    viewer = Viewer(server, rd.load_model(planar_2r()))
    with Browser(f'http://127.0.0.1:{server.get_port()}', tmp_path) as page:
        text = page.wait_for('diagonal of M')
        assert all(name in text for name in viewer.model.joint_names)
        viewer.set_pose(np.array([0.5, 0.25]))
        page.wait_for(viewer.table.content.splitlines()[-1].split('|')[2].strip())
        page.picture(tmp_path / 'page.png')
    assert (tmp_path / 'page.png').stat().st_size > 5000


def test_errors_of_the_viewer_name_the_culprit(tmp_path, capsys):
    pytest.importorskip('viser')
    path, motion = tmp_path / 'planar.urdf', tmp_path / 'motion.yaml'
    path.write_text(planar_2r())
    assert main(['view', str(path), '--port', '80']) == 2
    assert 'port is 80; valid: 1024 to 65535' in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        assert main(['view', str(path), '--port', str(taken.getsockname()[1])]) == 2
    assert 'it is in use' in capsys.readouterr().err
    motion.write_text(rd.Excitation(('a',), 1.0, 1, np.zeros(1), np.zeros((2, 1)),
                                    np.zeros((2, 1))).to_yaml())
    assert main(['view', str(path), '--motion', str(motion)]) == 2
    assert 'joints of the motion is a; valid: ' in capsys.readouterr().err


def test_the_command_listens_only_on_loopback_and_ends_on_interrupt(tmp_path):
    pytest.importorskip('viser')
    path = tmp_path / 'planar.urdf'
    path.write_text(planar_2r())
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, '-m', 'robodyn_ros.commands.main', 'view', path, '--port', str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert any(f'The robot is at http://127.0.0.1:{port}' in line for line in process.stdout)
        with socket.socket() as other:
            other.bind(('127.0.0.2', port))  # fails if the server listens on all interfaces
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        process.stdout.close()
