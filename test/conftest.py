"""Fixtures shared by the tests."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


@pytest.fixture
def world():
    """The test's view of the ROS graph; for tests that have ROS."""
    from ros_world import World

    world = World()
    yield world
    world.close()
