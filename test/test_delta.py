"""The Delta of the how-to page: geometry, virtual work, and its files."""

from pathlib import Path

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros.kernels import Kernel

FOLDER = Path(__file__).parent.parent / 'examples/delta'
BASE, PLATFORM, ARM, ROD = 0.20, 0.05, 0.30, 0.80  # m, as in the description


@pytest.fixture(scope='module')
def delta():
    return rd.ClosedLoopDynamics(rd.load_model(FOLDER / 'delta.urdf.xacro'),
                                 FOLDER / 'loops.yaml')


def test_the_platform_is_where_the_rods_hold_it(delta):
    """Three motors, no passive joint; the platform stays level, a rod's length from each elbow."""
    assert delta.joint_names == delta.driven_names == ('motor1', 'motor2', 'motor3')
    q = np.array([[0.1, 0.3, -0.2], [0.0, 0.0, 0.0], [0.5, 0.4, 0.6]])
    full = delta.positions(q)
    pose = delta.tree.pose(full, 'platform')
    np.testing.assert_allclose(pose[:, :3, :3], np.tile(np.eye(3), (3, 1, 1)), atol=1e-9)
    for k, angle in enumerate((0.0, 2 * np.pi / 3, -2 * np.pi / 3)):
        outward = np.array([np.cos(angle), np.sin(angle), 0.0])
        elbow = (BASE - PLATFORM + ARM * np.cos(q[:, k, None])) * outward
        elbow[:, 2] = -ARM * np.sin(q[:, k])
        np.testing.assert_allclose(np.linalg.norm(elbow - pose[:, :3, 3], axis=1), ROD,
                                   atol=1e-9)


def test_torques_are_those_of_virtual_work(delta):
    q, qd, h = np.array([0.1, 0.3, -0.2]), np.array([0.4, -0.3, 0.2]), 1e-5
    moved = [delta.energy(q + s * h * e, np.zeros(3)).potential
             for e in np.eye(3) for s in (1, -1)]
    np.testing.assert_allclose(delta.gravity(q), np.array(
        [a - b for a, b in zip(moved[::2], moved[1::2], strict=True)]) / (2 * h), atol=1e-6)
    kinetic = delta.energy(q, qd).kinetic
    np.testing.assert_allclose(qd @ delta.mass_matrix(q) @ qd / 2, kinetic, rtol=1e-9)


def test_frames_cost_six_equations_each(delta):
    """Operations of a Newton step, and of torques in a closed pose, per those of the tree."""
    closure, tree = (delta.closure_of(delta.tree.catalogue),
                     Kernel(delta.tree.catalogue.spec('inverse_dynamics')).operations())
    assert closure.kernel('closing').operations() < 3.5 * tree
    assert closure.kernel('inverse_dynamics').operations() < 9 * tree
    assert closure.constraints(delta.home, np.zeros(15)).shape == (12, 15 + 2)
