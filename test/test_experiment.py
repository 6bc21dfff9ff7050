"""What the node `identification` sees in joint states, message by message."""

import time

import pytest

pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from rclpy.serialization import serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from synthetic import LWR4  # noqa: E402

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.nodes.experiment import Eye, Fault, Silent  # noqa: E402
from robodyn_ros.nodes.stamps import set_nanoseconds  # noqa: E402

JOINTS = rd.load_model(LWR4.parent / 'planar_2r.urdf.xacro').joints


def see(eye, seconds):
    message = JointState(name=list(JOINTS.joint_names), position=[0.1, 0.2],
                         velocity=[0.0, 0.0], effort=[0.0, 0.0])
    set_nanoseconds(message.header.stamp, round(seconds * 1e9))
    eye.on_state(serialize_message(message))


@pytest.fixture
def eye():
    eye = Eye(JOINTS, timeout=60.0, frozen_after=1.0, tracking=0.1)
    see(eye, 100.0)
    return eye


@pytest.mark.parametrize('stall', [0.0, 0.6])
@pytest.mark.parametrize('jump', [1000.0, 2.5, -2.5])
def test_a_clock_that_jumps_is_a_fault_also_after_a_stall(eye, stall, jump):
    time.sleep(stall)
    see(eye, 100.0 + jump)
    with pytest.raises(Fault, match='jumped'):
        eye.check()


def test_states_that_are_late_by_the_wall_clock_have_not_jumped(eye):
    time.sleep(1.1)
    see(eye, 101.1)  # they stayed out
    time.sleep(1.1)
    see(eye, 101.2)  # the world was in a pause
    eye.check()


def test_silence_is_not_said_where_something_worse_is_wrong(eye):
    eye.timeout = 0.01
    time.sleep(0.02)
    with pytest.raises(Silent, match='stay out'):
        eye.check()
    see(eye, 1000.0)
    time.sleep(0.02)
    with pytest.raises(Fault, match='jumped') as caught:
        eye.check()
    assert not isinstance(caught.value, Silent)
