"""Real-time scheduling and locked memory where the user has no permission for them."""

import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='ROS 2 is not set up')

SCRIPT = '''
import os, resource, sys
from robodyn_ros.nodes.real_time import lock_memory, set_priority
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
resource.setrlimit(resource.RLIMIT_MEMLOCK, (2**20, 2**20))
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
print(set_priority(50))
print(lock_memory())
assert os.sched_getscheduler(0) == os.SCHED_OTHER
held = bytearray(2**26)  # fails if the limit on locked memory still applies
'''


def test_missing_permission_is_reported_with_the_remedy_and_changes_nothing():
    done = subprocess.run([sys.executable, '-c', SCRIPT], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    priority, memory = done.stdout.splitlines()
    assert 'realtime_priority is 50, but this user may use at most 0' in priority
    assert 'rtprio 51" in /etc/security/limits.d' in priority
    assert 'this user may lock 1048576 bytes' in memory and 'memlock unlimited' in memory
