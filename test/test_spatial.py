"""Rigid bodies, rotations, safe division and threads of BLAS."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from threadpoolctl import threadpool_info, threadpool_limits

from robodyn_ros.description.tree import joints_parent_first
from robodyn_ros.model import Joints
from robodyn_ros.numerics import one_blas_thread, safe_divide
from robodyn_ros.spatial import (
    axis_rotation,
    inertia_components,
    inertia_tensor,
    point_inertia,
    skew,
)


def test_six_numbers_and_a_tensor(rng):
    six = rng.normal(size=6)
    tensor = inertia_tensor([*six, 7.0])
    assert (tensor == tensor.T).all() and inertia_components(tensor).tolist() == six.tolist()
    assert tensor[0, 2] == six[2] and tensor[1, 2] == six[4]


def test_rotations_and_cross_products(rng):
    axis, a, b = rng.normal(size=(3, 3))
    axis /= np.linalg.norm(axis)
    np.testing.assert_allclose(axis_rotation(axis, 0.7),
                               Rotation.from_rotvec(0.7 * axis).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(skew(a) @ b, np.cross(a, b), atol=1e-15)
    np.testing.assert_allclose(point_inertia(a), -skew(a) @ skew(a), atol=1e-14)


def test_safe_division():
    assert safe_divide(3.0, 2.0) == 1.5 and isinstance(safe_divide(3.0, 2.0), float)
    assert safe_divide(3.0, 0.0) == 0.0 and safe_divide(1.0, 0.0, at_zero=np.inf) == np.inf
    assert safe_divide(1e300, 1e-300) == np.inf and safe_divide(0.0, 1e-320) == 0.0
    np.testing.assert_array_equal(safe_divide([[1.0, 2.0], [3.0, 4.0]], [2.0, 0.0]),
                                  [[0.5, 0.0], [1.5, 0.0]])


def test_blas_has_one_thread_during_a_call():
    """Afterwards, also after an error, it has as many as before."""
    def threads():
        return {one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas'}

    @one_blas_thread
    def fail(seen):
        seen.append(threads())
        raise ValueError

    with threadpool_limits(2, user_api='blas'):
        before, seen = threads(), []
        with pytest.raises(ValueError):
            fail(seen)
        assert seen == [{1}] and threads() == before


def test_poses_are_within_the_limits(rng):
    inf = np.full(3, np.inf)
    joints = Joints(('a', 'b', 'c'), np.array([-1.0, 0.5, -np.inf]), np.array([2.0, 0.6, np.inf]),
                    inf, inf)
    poses = joints.sample_poses(rng, 1000)
    assert poses.shape == (1000, 3) and (poses[:, :2] >= joints.lower[:2]).all() and \
        (poses[:, :2] <= joints.upper[:2]).all()
    assert 3.0 < np.abs(poses[:, 2]).max() <= np.pi and poses[:, 0].min() < -0.9
    lower, upper = joints.position_range([1.0, 1.0, 0.2])
    assert (lower.tolist(), upper.tolist()) == ([-1.0, 0.5, -0.2], [2.0, 0.6, 0.2])


def test_a_tree_is_walked_parents_first():
    from robots import joint, link, robot

    from robodyn_ros.description.urdf import parse_urdf

    description = parse_urdf(robot(
        *(link(name, 1.0) for name in 'abcde'), joint('cd', 'revolute', 'c', 'd'),
        joint('ab', 'revolute', 'a', 'b'), joint('ac', 'revolute', 'a', 'c'),
        joint('be', 'revolute', 'b', 'e')))
    walked = [(j.name, depth) for j, depth in joints_parent_first(
        description.root, description.joints)]
    assert description.root == 'a'
    assert walked == [('ab', 1), ('be', 2), ('ac', 1), ('cd', 2)]
    with pytest.raises(StopIteration):
        next(iter(joints_parent_first('e', description.joints)))
