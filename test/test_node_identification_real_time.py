"""The node `identification` in real time: what happens if it dies or hangs during a motion."""

import signal

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from identification_world import ABORTED  # noqa: E402
from ros_world import seconds  # noqa: E402

from robodyn_ros.experiment.script import STOPS  # noqa: E402

pytestmark = [pytest.mark.nodes, pytest.mark.real_time]


@pytest.fixture
def at_real_pace(planar):
    """The world in real time, with the default lease, and a server that runs."""
    if planar.ended:
        planar.restart()
    planar.begin(planar.start_pose)  # where the motion begins
    for node, name, value in (('simulator', 'real_time_factor', 1.0),
                              ('identification', 'lease', 0.4)):
        assert planar.world.set_parameter(node, name, value).successful
    return planar


def excited(planar, name):
    """Send a goal, and wait until the arm moves; repeat it if a stall lets the lease end early."""
    for attempt in range(5):
        client = planar.excite(f'{name}{attempt}')
        try:
            client.until('excite', 0.1)
            return client
        except AssertionError:
            if attempt == 4:
                raise


def brakes(planar, number):
    """End the server with a signal while the arm moves; it brakes within half a second."""
    ended = seconds(planar.loop.states[-1])
    planar.end(number)
    planar.at_rest()
    last = planar.sent[-1].points[-1].time_from_start
    stop = seconds(planar.sent[-1]) + last.sec + 1e-9 * last.nanosec - STOPS[0]
    assert stop < ended + 0.5  # the latest time at which the stop begins


def test_a_suspended_server_lets_the_arm_brake_and_does_not_resume_the_motion(at_real_pace):
    planar = at_real_pace
    client = excited(planar, 'stopped')
    brakes(planar, signal.SIGSTOP)
    pieces = len(planar.sent)
    planar.go_on()
    result = client.result()
    assert client.status == ABORTED and 'was suspended' in result.reasons[0], result.reasons
    assert len(planar.sent) == pieces and planar.speed() < 0.05


def test_without_its_server_the_arm_brakes_within_half_a_second(at_real_pace):
    excited(at_real_pace, 'killed')
    brakes(at_real_pace, signal.SIGKILL)
