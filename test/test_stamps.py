"""Stamps of messages as whole nanoseconds."""

import pytest

pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from builtin_interfaces.msg import Time  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402

from robodyn_ros.nodes.stamps import LATEST, nanoseconds, set_nanoseconds  # noqa: E402


@pytest.mark.parametrize('ns, held', [(0, 0), (1_700_000_000_123_456_789,) * 2, (LATEST, LATEST),
                                      (LATEST + 1, LATEST), (10**20, LATEST)])
def test_a_stamp_beyond_the_latest_time_does_not_wrap_around(ns, held):
    stamp = Time()
    set_nanoseconds(stamp, ns)
    assert nanoseconds(deserialize_message(serialize_message(stamp), Time)) == held
